"""One layer of hidden neurons or more? Creases of the first layer go on for ever, those of deeper ones bend."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reluctant.extraction.planes import look_along
from reluctant.geometry import DistanceNoise, Frame, Lines
from reluctant.oracles import Counting

__all__ = ["CreaseKinds", "look_for_layers"]

HOPELESS = 0.1  # unresolved stretches for each crease
SOME = 12  # creases followed at first
MORE_LINES = 3  # looked at if a line has none
MOSTLY = 0.9  # straight creases of all: the others may be pairs too close to each other


@dataclass(frozen=True)
class CreaseKinds:
    """Creases of a random line that were followed, and how many of them go straight on, far away on both sides."""

    creases: int
    straight: int
    unresolved: int  # stretches of the line in which creases could not be told apart

    @property
    def hopeless(self) -> bool:
        """True if the line is not made of pieces that any exact method could work with."""
        return self.unresolved > HOPELESS * self.creases

    @property
    def one_layer(self) -> bool:
        """True if none of them bends."""
        return self.creases > 0 and self.straight == self.creases

    @property
    def mostly_straight(self) -> bool:
        """True if so few bend that it may be one layer with creases close to each other."""
        return self.creases > 0 and self.straight >= MOSTLY * self.creases

    def __str__(self) -> str:
        if self.hopeless:
            return f"{self.unresolved} stretches of a line could not be resolved: not made of linear pieces."
        depth = "one hidden layer" if self.one_layer else "more than one hidden layer"
        return f"{self.straight} of {self.creases} creases of a line go straight on: {depth}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def look_for_layers(oracle: Counting, noise: DistanceNoise, rng: np.random.Generator) -> CreaseKinds:
    """Follow some creases of a random line in a random plane, and all of another line if none of them bends.

    Cost: about 5 rows a crease and 11 for each that is followed.
    """
    with oracle.stage("layers"):
        kinds = _follow(oracle, noise, rng, SOME)
        for _ in range(MORE_LINES):
            kinds = kinds if kinds.creases or kinds.unresolved else _follow(oracle, noise, rng, SOME)
        return _follow(oracle, noise, rng, None) if kinds.mostly_straight and kinds.creases == SOME else kinds


def _follow(oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, most: int | None) -> CreaseKinds:
    lines = Lines.random(rng, 1, oracle.dim)
    line = Frame(lines.origins[0], lines.directions)
    plane = line.extended(line.new_directions(1, rng))
    seen = look_along(oracle.query, plane, lines, np.empty(0), noise, rng, most=most)
    followed = len(seen.t) if most is None else min(most, len(seen.t))
    return CreaseKinds(followed, int(seen.sure.sum()), seen.open)

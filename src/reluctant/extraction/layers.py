"""One layer of hidden neurons or more? Creases of the first layer go on for ever, those of deeper ones bend."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reluctant.extraction.depth_three.planes import look_along
from reluctant.geometry import DistanceNoise, Frame, Lines
from reluctant.oracles import Counting

__all__ = ["CreaseKinds", "look_for_layers"]


@dataclass(frozen=True)
class CreaseKinds:
    """Creases on a random line, and how many of them were seen to go straight on, far away on both sides."""

    creases: int
    straight: int

    @property
    def one_layer(self) -> bool:
        """True if none of them bends."""
        return self.straight == self.creases

    def __str__(self) -> str:
        depth = "one hidden layer" if self.one_layer else "more than one hidden layer"
        return f"{self.straight} of {self.creases} creases on a line go straight on: {depth}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def look_for_layers(oracle: Counting, noise: DistanceNoise, rng: np.random.Generator) -> CreaseKinds:
    """Follow every crease of a random line in a random plane. Cost: about 16 rows a crease."""
    lines = Lines.random(rng, 1, oracle.dim)
    line = Frame(lines.origins[0], lines.directions)
    plane = line.extended(line.new_directions(1, rng))
    with oracle.stage("layers"):
        seen = look_along(oracle.query, plane, lines, np.empty(0), noise, rng)
    return CreaseKinds(len(seen.t), int(seen.sure.sum()))

"""FewDigits: the stages in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.extraction.candidate import Candidate
from reluctant.extraction.certificate import Certificate
from reluctant.extraction.failures import StageFailed
from reluctant.extraction.few_digits.anywhere import ask_anywhere
from reluctant.extraction.few_digits.extension import extend
from reluctant.extraction.few_digits.far import choose_distance, exactly_from_afar, refitted_nearby
from reluctant.extraction.few_digits.inside import look_inside
from reluctant.extraction.few_digits.inside_growth import grow_star
from reluctant.extraction.few_digits.line import read_line
from reluctant.extraction.few_digits.noise import look_from
from reluctant.extraction.few_digits.polish import Fit, polish_all
from reluctant.extraction.few_digits.sides import turned
from reluctant.extraction.few_digits.subspace import Known, grow_subspace
from reluctant.extraction.few_digits.view import View
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting

__all__ = ["FewDigits"]

RANDOM_SHARE, MANY_RANDOM_SHARE = 2.0, 1.0  # answers at random inputs for each parameter
MANY_PARAMETERS = 50_000  # from here on half as many have to do: they take minutes
LINES_A_DIRECTION = 2  # inside a box, where a line does not meet every crease
STARS = 2  # of lines, that are tried in one attempt
SHARE_OF_SPENT = 0.15  # and at least this part of the rows before: small networks can afford more
LARGEST_CHI = 2.0  # of all answers after the last fit


@dataclass(frozen=True)
class FewDigits:
    """Extraction of f(x) = A max(W x + b, 0) + S x + c from answers of few digits, to the noise they have.

    Arguments:
        directions: dimensions of the subspace grown from a line, besides the line.
        lines: how many lines may be tried in one attempt; at 128 neurons about every second one takes two close
            neurons for one and is given up.
    """

    directions: int = 3
    lines: int = 8

    def __post_init__(self) -> None:
        if self.directions < 1 or self.lines < 1:
            got = (self.directions, self.lines)
            raise InvalidInput.about("directions, lines", got=got, expected="at least 1 each")

    def run(
        self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]
    ) -> Candidate:
        """One attempt; raises StageFailed where it gets stuck."""
        if not oracle.facts.domain.is_space:
            return self._inside(oracle, rng, keep)
        near = look_from(oracle, 1.0, rng)
        distance = choose_distance(near, rng)
        if distance.exact:
            candidate = exactly_from_afar(oracle, distance.scale, rng, keep)
        else:
            view = near if distance.scale == 1 else look_from(oracle, distance.scale, rng)
            candidate = self._from(view, rng, keep)
        if distance.scale > 1 and not distance.exact:
            candidate = replace(candidate, network=refitted_nearby(oracle, candidate.network, distance.scale, rng))
        return replace(candidate, precision=near.precision)

    def _inside(self, oracle: Counting, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]) -> Candidate:
        """All stages inside a box."""
        near, before = look_inside(oracle, rng), oracle.queries
        view, known = self._subspace(
            STARS, lambda: grow_star(near, min(LINES_A_DIRECTION * self.directions, near.dim), rng)
        )
        candidate = self._beyond(view, known, before, rng, keep)
        return replace(candidate, precision=near.precision)

    def _from(self, view: View, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]) -> Candidate:
        """All stages at one distance."""
        before = view.oracle.queries
        view, known = self._subspace(self.lines, lambda: _grow_line(view, min(self.directions, view.dim - 1), rng))
        return self._beyond(view, known, before, rng, keep)

    def _beyond(
        self, view: View, known: Known, before: int, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]
    ) -> Candidate:
        """From a subspace to all directions."""
        oracle = view.oracle
        keep(view.lifted(known.framed.lifted()))
        extension = extend(view, known.framed, rng)
        parameters = known.framed.neurons * (oracle.dim + 1 + oracle.outputs)
        share = RANDOM_SHARE if parameters < MANY_PARAMETERS else MANY_RANDOM_SHARE
        count = int(max(share * parameters / oracle.outputs, SHARE_OF_SPENT * (oracle.queries - before)))
        random = ask_anywhere(view, known.framed.frame, extension.directions, count, rng)
        fit, errors = polish_all(turned(Fit(known.framed.network, extension, known.points, random)))
        network = view.lifted(fit.lifted(known.framed.frame))
        keep(network)
        if not fit.chi < LARGEST_CHI:
            reason = "answers are not explained"
            raise StageFailed("polish", reason, number=fit.chi, limit=LARGEST_CHI, partial=network)
        return Candidate(network, certificate=Certificate(errors, float(np.max(errors)), view.farthest))

    def _subspace(self, tries: int, grow: Callable[[], tuple[View, Known]]) -> tuple[View, Known]:
        """The first line, or star of lines, that grows into a subspace."""
        for attempt in range(tries):
            try:
                return grow()
            except StageFailed:
                if attempt == tries - 1:
                    raise
        raise AssertionError("at least one line is tried")


def _grow_line(view: View, directions: int, rng: np.random.Generator) -> tuple[View, Known]:
    line = read_line(view, rng)
    return line.view, grow_subspace(line, directions, rng)

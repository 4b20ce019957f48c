"""`FewDigits`: the stages for one hidden layer and answers of few digits, in order.

Noise, line or star, growth, subspace, extension, sides, polish; or, where noise does not grow with the answers, the
exact method from afar.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

import numpy as np

from reluctant.extraction.few_digits.box import BoxView, grow_star, look_inside
from reluctant.extraction.few_digits.extension import Extension, extend
from reluctant.extraction.few_digits.growth import LAYERS, KnownSubspace, grow_subspace
from reluctant.extraction.few_digits.joint_fit import JointFit, ask_anywhere, polish_all, turned_fit
from reluctant.extraction.few_digits.noisy_line import promising_lines
from reluctant.extraction.few_digits.view import View, choose_distance, exactly_from_afar, look_from, refitted_nearby
from reluctant.extraction.method import Candidate, Certificate, Method, StageFailed, check_settings
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, one_blas_thread
from reluctant.oracles import Counting


@dataclass(frozen=True)
class FewDigits(Method):
    """Extraction of f(x) = A max(W x + b, 0) + S x + c from answers of few digits, to the noise they have.

    Arguments:
        directions: dimensions of the subspace grown from a line, besides the line.
        lines: how many lines may be tried in one attempt; at 128 neurons about every second one takes two close
            neurons for one and is given up.
        stars: how many stars of lines may be tried in one attempt, inside a box.
        random_share: answers at random inputs for each parameter, in the last fit.
        spent_share: and at least this part of the rows before. Small networks can afford more.
        many_parameters: from so many parameters on the last fit is to random inputs alone; the equations of all other
            answers would take minutes.
        many_random_share: answers at random inputs for each parameter, for so many.
        fit_error: largest root mean square of all answers after the last fit, in deviations of their noise.
    """

    few_digits: ClassVar[bool] = True

    directions: int = 3
    lines: int = 8
    stars: int = 2
    random_share: float = 2.0
    spent_share: float = 0.15
    many_parameters: int = 50_000
    many_random_share: float = 2.5
    fit_error: float = 2.0

    def __post_init__(self) -> None:
        check_settings(self, may_be_zero=("spent_share",))

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
        return _with_precision(candidate, near)

    def _inside(self, oracle: Counting, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]) -> Candidate:
        """All stages inside a box."""
        near, before = look_inside(oracle, rng), oracle.queries
        with one_blas_thread():
            view, known = self._star(near, rng)
        return _with_precision(self._all_directions(view, known, before, rng, keep), near)

    def _from(self, view: View, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]) -> Candidate:
        """All stages at one distance."""
        before = view.oracle.queries
        with one_blas_thread():
            view, known = self._subspace(view, rng)
        return self._all_directions(view, known, before, rng, keep)

    def _subspace(self, view: View, rng: np.random.Generator) -> tuple[View, KnownSubspace]:
        """The first line that grows into a subspace."""
        failure = StageFailed("line", "no line could be read", number=0, limit=1)
        for line in islice(promising_lines(view, rng), self.lines):
            if isinstance(line, StageFailed):
                failure = line
                continue
            try:
                return line.view, grow_subspace(line, min(self.directions, view.dim - 1), rng)
            except StageFailed as stuck:
                if stuck.stage == LAYERS:
                    raise
                failure = stuck
        raise failure

    def _star(self, view: BoxView, rng: np.random.Generator) -> tuple[View, KnownSubspace]:
        """The first star of lines that grows into a subspace."""
        lines_a_direction = 2  # inside a box, where a line does not meet every crease
        failure = StageFailed("line", "no line could be read", number=0, limit=1)
        for _ in range(self.stars):
            try:
                return grow_star(view, min(lines_a_direction * self.directions, view.dim), rng)
            except StageFailed as stuck:
                failure = stuck
        raise failure

    def _all_directions(
        self,
        view: View,
        known: KnownSubspace,
        before: int,
        rng: np.random.Generator,
        keep: Callable[[ReLUNetwork], None],
    ) -> Candidate:
        """From a subspace to all directions."""
        with one_blas_thread():
            keep(view.lifted(known.framed.lifted()))
            extension = extend(view, known.framed, rng)
        fit, errors = self._polished_fit(view, known, extension, view.oracle.queries - before, rng)
        network = view.lifted(fit.network)
        keep(network)
        if not fit.chi < self.fit_error:
            reason = "answers are not explained"
            raise StageFailed("polish", reason, number=fit.chi, limit=self.fit_error, partial=network)
        return Candidate(network, certificate=Certificate(errors, float(np.max(errors)), view.farthest))

    def _polished_fit(
        self, view: View, known: KnownSubspace, extension: Extension, spent: int, rng: np.random.Generator
    ) -> tuple[JointFit, FloatArray]:
        """The last fit, and the standard error of a weight of each neuron."""
        # Of scales of random inputs, in the logarithm, where no other answers tell constants from weights.
        many_spread = 0.7
        parameters = known.framed.neurons * (view.dim + 1 + view.outputs)
        many = parameters >= self.many_parameters
        share = self.many_random_share if many else self.random_share
        count = int(max(share * parameters / view.outputs, self.spent_share * spent))
        spread = many_spread if many else 0.0
        random = ask_anywhere(view, known.framed.frame, extension.directions, count, rng, spread)
        fit = turned_fit(JointFit(known.framed.network, extension, known.points, random))
        if many:
            return polish_all(replace(fit, extension=fit.extension.without_answers()))
        with one_blas_thread():
            return polish_all(fit)


def _with_precision(candidate: Candidate, near: View) -> Candidate:
    """With the precision of the target, and errors called what they are."""
    certificate = candidate.certificate and replace(candidate.certificate, estimated=True)
    return replace(candidate, precision=near.precision, certificate=certificate)

"""`FewDigits`: the stages for one hidden layer and answers of few digits, in order.

Noise, line or star, growth, subspace, extension, sides, polish. Where noise does not grow with the answers (decimals,
added noise) answers far from the origin have all digits: the exact method finds weights there, and biases, which are
small from there, are fitted anew near the origin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

import numpy as np

from reluctant.extraction.depth_two import DepthTwo
from reluctant.extraction.depth_two.assembly import refit_biases
from reluctant.extraction.few_digits.growth import KnownSubspace, grow_star, grow_subspace
from reluctant.extraction.few_digits.joint_fit import JointFit, ask_anywhere, polish_all, turned_fit
from reluctant.extraction.few_digits.noisy_extension import NoisyExtension, extend
from reluctant.extraction.few_digits.noisy_line import OnLine, promising_lines
from reluctant.extraction.few_digits.parallel_neurons import with_parallel_neurons
from reluctant.extraction.few_digits.scaled_view import (
    BoxView,
    View,
    carried_precision,
    look_from,
    look_inside,
    noise_and_answers,
    short_line_noise,
)
from reluctant.extraction.few_digits.shared_hyperplanes import cross_subspace
from reluctant.extraction.method import (
    Candidate,
    Certificate,
    Method,
    Shows,
    StageFailed,
    check_settings,
    lifted,
    remember,
)
from reluctant.extraction.orientation import orient
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray, one_blas_thread
from reluctant.oracles import Counting, Oracle, Wrapper
from reluctant.verification.precision import Precision


@dataclass(frozen=True)
class FewDigits(Method):
    """Extraction of f(x) = A max(W x + b, 0) + S x + c from answers of few digits, to the noise they have.

    Arguments:
        directions: dimensions of the subspace that grows from a line, besides the line.
        lines: most lines in one attempt. At 128 neurons about every second line shows two close neurons as one, and
            the method drops it.
        stars: most stars of lines in one attempt, inside a box.
        random_share: answers at random inputs for each parameter, in the last fit.
        spent_share: the last fit gets at least this share of the rows before it. Small networks can afford more.
        many_parameters: with so many parameters or more there are no long steps, and the last fit uses random inputs
            alone, which hold more.
        many_random_share: answers at random inputs for each of these parameters.
        fit_error: largest root mean square of all answers after the last fit, in deviations of their noise.
    """

    few_digits: ClassVar[bool] = True

    directions: int = 3
    lines: int = 8
    stars: int = 2
    random_share: float = 2.0
    spent_share: float = 0.15
    many_parameters: int = 50_000
    many_random_share: float = 2.2
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
        if distance.bounded:
            near = look_from(oracle, 1.0, rng, noise_far_out=BOUNDED_FAR_OUT)
        if distance.exact:
            candidate = exactly_from_afar(oracle, distance.scale, rng, keep)
        else:
            view = near if distance.scale == 1 else look_from(oracle, distance.scale, rng)
            candidate = self._from(view, rng, keep)
        if distance.exact:
            return _with_precision(candidate, near.precision)
        if distance.scale == 1:
            return _with_precision(candidate, carried_precision(near, candidate.network, rng))
        network = refitted_nearby(oracle, candidate.network, distance.scale, rng)[0]
        return _with_precision(replace(candidate, network=network), near.precision)

    def _inside(self, oracle: Counting, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]) -> Candidate:
        """All stages inside a box."""
        near, before = look_inside(oracle, rng), oracle.queries
        with one_blas_thread():
            view, known = self._star(near, rng)
        return _with_precision(self._all_directions(view, known, before, rng, keep), near.precision)

    def _from(self, view: View, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]) -> Candidate:
        """All stages at one distance."""
        before = view.oracle.queries
        with one_blas_thread():
            view, known = self._subspace(view, rng)
        return self._all_directions(view, known, before, rng, keep)

    def _subspace(self, view: View, rng: np.random.Generator) -> tuple[View, KnownSubspace]:
        """The first line that grows into a subspace; lines that cross one where a line is crowded or gets stuck."""
        failure, crossed = StageFailed("line", "no line could be read", number=0, limit=1), False
        for line in islice(promising_lines(view, rng), self.lines):
            if isinstance(line, StageFailed):
                failure = line
                continue
            ways: list[Callable[[OnLine], KnownSubspace]] = [lambda line: self._grown(line, rng)]
            if not crossed:
                ways.insert(0 if line.crowded else 1, lambda line: cross_subspace(line, rng))
            crossed = True
            for way in ways:
                try:
                    return line.view, way(line)
                except StageFailed as stuck:
                    if stuck.shows is Shows.BENT_CREASES:
                        raise
                    failure = stuck
        raise failure

    def _grown(self, line: OnLine, rng: np.random.Generator) -> KnownSubspace:
        return grow_subspace(line, min(self.directions, line.view.dim - 1), rng)

    def _star(self, view: BoxView, rng: np.random.Generator) -> tuple[View, KnownSubspace]:
        """The first star of lines that grows into a subspace."""
        lines_a_direction = 2  # inside a box, where a line does not meet every crease
        failure = StageFailed("line", "no line could be read", number=0, limit=1)
        for _ in range(self.stars):
            try:
                return grow_star(view, min(lines_a_direction * self.directions, view.dim), rng)
            except StageFailed as stuck:
                if stuck.shows is Shows.BENT_CREASES:
                    raise
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
            extension = extend(view, known.framed, rng, long_steps=not self._many(view, known))
        fit, errors = self._polished_fit(view, known, extension, view.oracle.queries - before, rng)
        network = view.lifted(fit.network)
        keep(network)
        if not fit.chi < self.fit_error:
            reason = "answers are not explained"
            raise StageFailed("polish", reason, number=fit.chi, limit=self.fit_error, partial=network)
        return Candidate(network, certificate=Certificate(errors, float(np.max(errors)), view.farthest))

    def _polished_fit(
        self, view: View, known: KnownSubspace, extension: NoisyExtension, spent: int, rng: np.random.Generator
    ) -> tuple[JointFit, FloatArray]:
        """The last fit, and the standard error of a weight of each neuron."""
        parameters, many = _parameters(view, known), self._many(view, known)
        share = self.many_random_share if many else self.random_share
        count = int(max(share * parameters / view.outputs, self.spent_share * spent))
        scales = _scales_of_inputs(view, count, many, rng)
        random = ask_anywhere(view, known.framed.frame, extension.directions, scales, rng)
        answered = extension.without_answers() if many else extension
        fit, far = turned_fit(JointFit(known.framed.network, answered, known.points, random)), scales > 1
        if not many and far.any() and not far.all():
            fit = replace(fit, anywhere=random.carried(fit.network, far))
        with one_blas_thread():
            return polish_all(fit)

    def _many(self, view: View, known: KnownSubspace) -> bool:
        return _parameters(view, known) >= self.many_parameters


def _scales_of_inputs(view: View, count: int, many: bool, rng: np.random.Generator) -> FloatArray:
    """Scales (n,) of random inputs: those of use, and as many larger ones where the target may be asked.

    Noise of large constants would hide the digits of weights, and far out these would be missing. In many dimensions
    Gaussian inputs are all as long, and hardly tell constants from weights that differ a little.
    """
    spread, farthest = 0.7, 100.0  # spread in the logarithm; farthest: as verification looks
    drawn = rng.uniform(-1, 1, count)
    if isinstance(view, BoxView):
        return np.ones(count)
    return np.exp(spread * drawn) if many else farthest ** np.maximum(drawn, 0)


def _parameters(view: View, known: KnownSubspace) -> int:
    return known.framed.neurons * (view.dim + 1 + view.outputs)


def _with_precision(candidate: Candidate, precision: Precision) -> Candidate:
    """With the precision of the target, and errors called what they are."""
    certificate = candidate.certificate and replace(candidate.certificate, estimated=True)
    return replace(candidate, precision=precision, certificate=certificate)


FARTHER_LOOKS = 1  # look at short lines, there
SPREAD_ROWS = 6
BOUNDED_FAR_OUT = 10.0  # where noise still grows, though answers end
CUT_OFF_NEARBY = 0.1  # of the answers near the origin: a network that is cut off at 0 and 1 has more there
CLOSER_SCALE = 64.0  # from one scale of the refit to the next


@dataclass(frozen=True)
class Distance:
    """The distance to query a target from.

    exact: it has all digits from there. bounded: far out its answers stay as they are.
    """

    scale: float
    exact: bool
    bounded: bool = False


def choose_distance(near: View, rng: np.random.Generator) -> Distance:
    """Where weights have the most digits left. Cost: 198 rows, 64 more where answers end at 0 and 1."""
    farthest_look = 1e6  # where a health check still asks
    grown_noise = 3.0  # times the noise nearby: noise that grows with the answers has shown
    grown_answers = 1e3  # times those nearby: units that are cut off leave them as they are
    plain = replace(near, rounded=False)  # rows of few digits would look like noise that grows
    with near.oracle.stage("noise"):
        far_noise, far_answers = noise_and_answers(plain, farthest_look, rng)
        spread = float(near.ask(rng.standard_normal((SPREAD_ROWS, near.dim)))[1].std(axis=0).mean())
    noise, far = near.noise.near, float(far_noise.mean())
    rounding = DOUBLE.rounding * max(spread, noise)
    if rounding == 0:
        raise StageFailed("noise", "answers that never differ", number=0.0, limit=0.0)
    ended = far_answers.std(axis=0).mean() < grown_answers * spread
    at_ends = float(np.isin(np.round(np.abs(far_answers * near.units), 6), (0.0, 1.0)).mean())
    if ended and at_ends == 1 and (nearby := _share_at_ends(near, rng)) < CUT_OFF_NEARBY:
        reason = "answers end at 0 and 1: they may be those of a link, which makes curves"
        raise StageFailed("noise", reason, number=nearby, limit=CUT_OFF_NEARBY)
    if ended:
        return Distance(1.0, exact=False, bounded=True)
    if far <= grown_noise * noise:
        return Distance(exact_distance(noise / rounding), exact=True)
    return Distance(rounded_distance(noise, far / farthest_look), exact=False)


def _share_at_ends(near: View, rng: np.random.Generator) -> float:
    """The share of answers near the origin that are 0, 1 or -1 exactly: a sigmoid hardly has one there."""
    rows = 64
    with near.oracle.stage("noise"):
        return float(np.isin(near.oracle.query(near.sample(rng, rows)), (-1.0, 0.0, 1.0)).mean())


def exact_distance(noise: float) -> float:
    """The distance for noise of so many roundings of float64: biases drown as far out."""
    bias_digits = 100.0  # times as far rounding in float64 would hide as much of the biases as the noise does
    largest_scale = 1e8
    return _power_of_two(min(noise / bias_digits, largest_scale))


def rounded_distance(noise: float, growth: float) -> float:
    """The distance for noise that stays, and noise that grows by so much a size of an input."""
    # Sizes of an input: noise that stays the same as far out as this does not grow with the answers.
    absolute_noise = 8.0  # columns far from 0 in float32: 12 to 20; a plain network in float32: 3 at most
    beyond_same = 10.0  # how much farther than where both kinds of noise are the same
    same = noise / growth  # here both kinds of noise are as large
    return _power_of_two(beyond_same * same) if same > absolute_noise else 1.0


def _power_of_two(scale: float) -> float:
    return float(2.0 ** max(0, round(np.log2(scale))))


class _ScaledOracle(Wrapper):
    """A target seen from afar: rows times the scale, answers over it."""

    def __init__(self, inner: Oracle, scale: float) -> None:
        super().__init__(inner)
        self.scale = scale

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on with both scaled."""
        return self.inner.answer(self.scale * rows) / self.scale


def exactly_from_afar(
    oracle: Counting, scale: float, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]
) -> Candidate:
    """The exact method for two layers from there, then biases near the origin."""
    skip_gone = 1e-4  # of the largest term: what may be left of a skip term
    scaled = _seen_from(oracle, scale)
    noise = _noise_from(oracle, scale, rng)
    candidate = DepthTwo().run(scaled, noise, rng, lambda known: keep(brought_near(lifted(known), scale)))
    network = brought_near(candidate.network, scale)
    if network.depth != 2:
        return Candidate(network)
    network, rows, answers = refitted_nearby(oracle, orient(network, gone=skip_gone), scale, rng)
    network = with_parallel_neurons(network, rows, answers, scale * noise.near / DOUBLE.safety)
    return Candidate(network, certificate=candidate.certificate)


def _noise_from(oracle: Counting, scale: float, rng: np.random.Generator) -> DistanceNoise:
    """Noise for the exact method, measured there."""
    exact_far_out = 1e4  # in sizes of the distance: here float64 itself shows
    view = View(oracle, scale, np.ones(oracle.outputs), DistanceNoise(0.0, 0.0), rounded=False)
    with oracle.stage("noise"):
        near, far = (float(short_line_noise(view, distance, rng).max()) for distance in (1.0, exact_far_out))
    least = DOUBLE.rounding
    return DistanceNoise(
        DOUBLE.safety * max(near, least), DOUBLE.safety * max(far / (exact_far_out * view.size), least)
    )


def brought_near(network: ReLUNetwork, scale: float) -> ReLUNetwork:
    """A network seen from afar as it is."""
    return ReLUNetwork(network.weights, [scale * b for b in network.biases], network.skip)


def refitted_nearby(
    oracle: Counting, network: ReLUNetwork, scale: float, rng: np.random.Generator
) -> tuple[ReLUNetwork, FloatArray, FloatArray]:
    """Biases and constants anew, from random inputs at smaller and smaller scales, the scale of use last.

    One step all the way would start with too many neurons in the wrong state. Also the last rows and their answers.
    """
    *on_the_way, last = nearby_shares(scale, oracle.dim)
    for share in on_the_way:
        scale /= CLOSER_SCALE
        from_there = brought_near(network, 1 / scale)
        network = brought_near(refit_biases(_seen_from(oracle, scale), from_there, rng, share=share), scale)
    remembered, memory = remember(oracle)
    network = refit_biases(remembered, network, rng, share=last)
    return network, *memory.everything()


def nearby_shares(scale: float, dim: int) -> list[float]:
    """Rows for each bias in every refit from this scale to the scale of use."""
    share_on_the_way = 4.0  # rows for a bias at the scales between
    refit_share, fewest_share, most_share = 0.1, 25.0, 100.0  # rows for a bias: this part of the inputs, within limits
    shares = []
    while scale > CLOSER_SCALE:
        scale /= CLOSER_SCALE
        shares.append(share_on_the_way)
    return [*shares, float(np.clip(refit_share * dim, fewest_share, most_share))]


def _seen_from(oracle: Counting, scale: float) -> Counting:
    return Counting(_ScaledOracle(oracle.inner, scale), oracle.ledger, oracle.facts.domain)

"""The target seen from a chosen distance, with its outputs in units of their noise.

Rows are rounded to float32 before they are asked, and the rounded row is the one that counts: a float32 target
would round it anyway. Noise is what straight lines leave of answers at eight points each, near and far, for each
output. Where it does not grow with the answers (decimals, added noise) answers far from the origin have all digits:
weights are found there, and biases, which are small from there, are fitted anew near the origin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from reluctant.extraction.depth_two import DepthTwo
from reluctant.extraction.depth_two.assembly import refit_biases
from reluctant.extraction.method import Candidate, StageFailed, lifted
from reluctant.extraction.orientation import orient
from reluctant.geometry import DistanceNoise, Frame
from reluctant.interface.noise import rounding_noise
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting, Oracle, Wrapper
from reluctant.verification.precision import Precision

FARTHEST_CREASE = 3e4  # in units of the size of an input: creases beyond are not looked for


@dataclass(frozen=True)
class View:
    """A function g(x) = f(scale · x) / (scale · units), answered with noise of the same size for every output.

    units: (m,) of mean one; noise: standard deviation of an answer by the distance from the origin of the frame.
    """

    oracle: Counting
    scale: float
    units: FloatArray
    noise: DistanceNoise
    rounded: bool = True  # rows to float32

    @property
    def dim(self) -> int:
        """Number of inputs."""
        return self.oracle.dim

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.oracle.outputs

    @property
    def size(self) -> float:
        """Length of a typical input."""
        return float(np.sqrt(self.dim))

    @property
    def in_single(self) -> bool:
        """True if rows that were asked are numbers of float32 in the coordinates of the view too."""
        return self.rounded

    @property
    def precision(self) -> Precision:
        """The noise of the target as a verification is told it."""
        return Precision(self.noise.near * self.units, self.noise.growth * self.units)

    @property
    def farthest(self) -> float:
        """How far out creases are looked for."""
        return FARTHEST_CREASE * self.size

    def ask(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows that were really asked, and the answers to them."""
        asked = self.scale * rows
        if self.rounded:
            asked = asked.astype(np.float32).astype(np.float64)
        return asked / self.scale, self.oracle.query(asked) / (self.scale * self.units)

    def with_noise(self, factor: float) -> Self:
        """The same view where noise has turned out to be this many times as large."""
        return replace(self, noise=DistanceNoise(factor * self.noise.near, factor * self.noise.growth))

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Inputs (n, d) as they are in use."""
        return rng.standard_normal((n, self.dim))

    def noise_at_use(self, rows: FloatArray) -> FloatArray:
        """Noise (n,) of answers at such inputs."""
        return np.full(len(rows), self.noise.near)

    def pulled_in(self, frame: Frame, y: FloatArray) -> FloatArray:
        """Coordinates of a frame, moved towards its origin where the target may not be asked."""
        return y

    def steps_inside(self, points: FloatArray, directions: FloatArray, steps: FloatArray) -> FloatArray:
        """Steps (D, n) from each of n points into each of D directions, shorter where the target may not be asked."""
        return np.broadcast_to(steps, (len(directions), len(points)))

    def lifted(self, network: ReLUNetwork) -> ReLUNetwork:
        """A network of the view as one of the target."""
        (w, a), (b, c), skip = network.weights, network.biases, network.skip
        units = self.units[:, None]
        skip = None if skip is None else units * skip
        return ReLUNetwork([w, units * a], [self.scale * b, self.scale * self.units * c], skip)


NOISE_LINES, NOISE_POINTS = 24, 8
NEAR_AND_FAR = 2  # looks at short lines that a view takes
NOISE_FAR_OUT = 1e3  # where noise that grows with the answers is all there is
LEAST_NOISE = (
    float(np.finfo(np.float64).tiny) ** 0.25
)  # where there is none: its inverse can be squared twice and added up


def look_from(oracle: Counting, scale: float, rng: np.random.Generator) -> View:
    """The view from this scale, with its noise measured. Cost: 384 rows."""
    plain = View(oracle, scale, np.ones(oracle.outputs), DistanceNoise(0.0, 0.0))
    with oracle.stage("noise", expected=NEAR_AND_FAR * NOISE_LINES * NOISE_POINTS):
        near, far = short_line_noise(plain, 1.0, rng), short_line_noise(plain, NOISE_FAR_OUT, rng)
    units = near / near.mean()
    growth = float(np.mean(far / units)) / (NOISE_FAR_OUT * plain.size)
    return View(oracle, scale, units, DistanceNoise(float(near.mean()), growth))


def short_line_noise(view: View, scale: float, rng: np.random.Generator) -> FloatArray:
    """Standard deviation (m,) of each output around straight lines at inputs of this scale."""
    spacing = 3e-4  # of the size of an input: rounding errors of float32 are independent, and few creases lie between
    jitter = 0.3  # of the spacing
    quietest = 1e-8  # of the noisiest output: one that is 0 where it was asked has no noise there, and is no unit
    d, size = view.dim, scale * view.size
    centres = scale * view.sample(rng, NOISE_LINES)[:, None]
    directions = rng.standard_normal((NOISE_LINES, 1, d))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    places = np.arange(NOISE_POINTS) + rng.uniform(-jitter, jitter, (NOISE_LINES, NOISE_POINTS))
    rows, answers = view.ask((centres + spacing * size * places[:, :, None] * directions).reshape(-1, d))
    along = ((rows.reshape(NOISE_LINES, NOISE_POINTS, d) - centres) * directions).sum(axis=2) / (spacing * size)
    left = _around_lines(along, answers.reshape(NOISE_LINES, NOISE_POINTS, -1))
    rounding = rounding_noise(answers * (view.scale * view.units)) / (view.scale * view.units)
    found = np.maximum(
        np.median(np.sqrt((left**2).sum(axis=1) / (NOISE_POINTS - 2)), axis=0), np.maximum(rounding, LEAST_NOISE)
    )
    return np.maximum(found, quietest * found.max())


def _around_lines(t: FloatArray, f: FloatArray) -> FloatArray:
    """What straight lines through (n, points) leave of the values (n, points, m)."""
    t = (t - t.mean(axis=1, keepdims=True))[:, :, None]
    f = f - f.mean(axis=1, keepdims=True)
    return np.asarray(f - t * (t * f).sum(axis=1, keepdims=True) / (t**2).sum(axis=1, keepdims=True))


FARTHER_LOOKS = 1  # look at short lines, there
SPREAD_ROWS = 6
CLOSER_SCALE = 64.0  # from one scale of the refit to the next


@dataclass(frozen=True)
class Distance:
    """From how far a target is to be looked at; `exact` if it has all digits from there."""

    scale: float
    exact: bool


def choose_distance(near: View, rng: np.random.Generator) -> Distance:
    """Where weights have the most digits left. Cost: 198 rows."""
    farthest_look = 1e6  # where a health check still asks
    grown_noise = 3.0  # times the noise nearby: noise that grows with the answers has shown
    plain = replace(near, rounded=False)  # rows of few digits would look like noise that grows
    with near.oracle.stage("noise"):
        far = float(short_line_noise(plain, farthest_look, rng).mean())
        spread = float(near.ask(rng.standard_normal((SPREAD_ROWS, near.dim)))[1].std(axis=0).mean())
    noise = near.noise.near
    rounding = DOUBLE.rounding * max(spread, noise)
    if rounding == 0:
        raise StageFailed("noise", "answers that never differ", number=0.0, limit=0.0)
    if far <= grown_noise * noise:
        return Distance(exact_distance(noise / rounding), exact=True)
    return Distance(rounded_distance(noise, far / farthest_look), exact=False)


def exact_distance(noise: float) -> float:
    """From how far a target is looked at whose noise is so many roundings of float64: biases drown as far out."""
    bias_digits = 100.0  # times as far rounding in float64 would hide as much of the biases as the noise does
    largest_scale = 1e8
    return _power_of_two(min(noise / bias_digits, largest_scale))


def rounded_distance(noise: float, growth: float) -> float:
    """From how far a target is looked at with noise that stays and noise that grows by so much a size of an input."""
    # Sizes of an input: noise that stays the same as far out as this does not grow with the answers.
    absolute_noise = 30.0
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
    network = refitted_nearby(oracle, orient(network, gone=skip_gone), scale, rng)
    return Candidate(network, certificate=candidate.certificate)


def _noise_from(oracle: Counting, scale: float, rng: np.random.Generator) -> DistanceNoise:
    """Noise as the exact method is told it."""
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


def refitted_nearby(oracle: Counting, network: ReLUNetwork, scale: float, rng: np.random.Generator) -> ReLUNetwork:
    """Biases and constants anew, from random inputs at smaller and smaller scales, the scale of use last.

    One step all the way would start with too many neurons in the wrong state.
    """
    *on_the_way, last = nearby_shares(scale, oracle.dim)
    for share in on_the_way:
        scale /= CLOSER_SCALE
        from_there = brought_near(network, 1 / scale)
        network = brought_near(refit_biases(_seen_from(oracle, scale), from_there, rng, share=share), scale)
    return refit_biases(oracle, network, rng, share=last)


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

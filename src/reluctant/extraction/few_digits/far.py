"""Targets whose noise does not grow with the answers: rounding to decimals, noise added to every answer.

Far from the origin their answers have all digits, so that weights are found there; biases, which are small from
there, are fitted anew near the origin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.candidate import Candidate
from reluctant.extraction.depth_two import DepthTwo
from reluctant.extraction.depth_two.assemble import refit_biases
from reluctant.extraction.failures import StageFailed
from reluctant.extraction.few_digits.noise import short_line_noise
from reluctant.extraction.few_digits.view import View
from reluctant.extraction.orientation import orient
from reluctant.extraction.so_far import lifted
from reluctant.geometry import DistanceNoise
from reluctant.geometry.noise import SAFETY
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Counting, Oracle, Wrapper

__all__ = [
    "FARTHER",
    "Distance",
    "choose_distance",
    "exact_distance",
    "exactly_from_afar",
    "nearby_shares",
    "refitted_nearby",
    "rounded_distance",
]

FARTHEST = 1e6  # where a health check still asks
FARTHER = 1  # look at short lines, there
GROWN = 3.0  # times the noise nearby: noise that grows with the answers has shown
ABSOLUTE = 30.0  # sizes of an input: noise that stays the same as far out as this does not grow with the answers
BEYOND = 10.0  # how much farther than where both kinds of noise are the same
BIAS_DIGITS = 100.0  # times as far rounding in float64 would hide as much of the biases as the noise does
LARGEST_SCALE = 1e8
SPREAD_ROWS = 6
FAR_OUT = 1e4  # in sizes of the distance: here float64 itself shows
GONE = 1e-4  # of the largest term: what may be left of a skip term
CLOSER = 64.0  # from one scale of the refit to the next
SHARE_ON_THE_WAY = 4.0  # rows for a bias at the scales between
REFIT_SHARE, FEWEST_SHARE, MOST_SHARE = 0.1, 25.0, 100.0  # rows for a bias: this part of the inputs, within limits


@dataclass(frozen=True)
class Distance:
    """From how far a target is to be looked at; `exact` if it has all digits from there."""

    scale: float
    exact: bool


def choose_distance(near: View, rng: np.random.Generator) -> Distance:
    """Where weights have the most digits left. Cost: 198 rows."""
    plain = replace(near, rounded=False)  # rows of few digits would look like noise that grows
    with near.oracle.stage("noise"):
        far = float(short_line_noise(plain, FARTHEST, rng).mean())
        spread = float(near.ask(rng.standard_normal((SPREAD_ROWS, near.dim)))[1].std(axis=0).mean())
    noise = near.noise.near
    rounding = unit_roundoff(np.float64) * max(spread, noise)
    if rounding == 0:
        raise StageFailed("noise", "answers that never differ", number=0.0, limit=0.0)
    if far <= GROWN * noise:
        return Distance(exact_distance(noise / rounding), exact=True)
    return Distance(rounded_distance(noise, far / FARTHEST), exact=False)


def exact_distance(noise: float) -> float:
    """From how far a target is looked at whose noise is so many roundings of float64: biases drown as far out."""
    return _power_of_two(min(noise / BIAS_DIGITS, LARGEST_SCALE))


def rounded_distance(noise: float, growth: float) -> float:
    """From how far a target is looked at with noise that stays and noise that grows by so much a size of an input."""
    same = noise / growth  # here both kinds of noise are as large
    return _power_of_two(BEYOND * same) if same > ABSOLUTE else 1.0


def _power_of_two(scale: float) -> float:
    return float(2.0 ** max(0, round(np.log2(scale))))


class _Scaled(Wrapper):
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
    scaled = _seen_from(oracle, scale)
    noise = _noise_from(oracle, scale, rng)
    candidate = DepthTwo().run(scaled, noise, rng, lambda known: keep(brought_near(lifted(known), scale)))
    network = brought_near(candidate.network, scale)
    if network.depth != 2:
        return Candidate(network)
    network = refitted_nearby(oracle, orient(network, gone=GONE), scale, rng)
    return Candidate(network, certificate=candidate.certificate)


def _noise_from(oracle: Counting, scale: float, rng: np.random.Generator) -> DistanceNoise:
    """Noise as the exact method is told it."""
    view = View(oracle, scale, np.ones(oracle.outputs), DistanceNoise(0.0, 0.0), rounded=False)
    with oracle.stage("noise"):
        near, far = (float(short_line_noise(view, distance, rng).max()) for distance in (1.0, FAR_OUT))
    least = unit_roundoff(np.float64)
    return DistanceNoise(SAFETY * max(near, least), SAFETY * max(far / (FAR_OUT * view.size), least))


def brought_near(network: ReLUNetwork, scale: float) -> ReLUNetwork:
    """A network seen from afar as it is."""
    return ReLUNetwork(network.weights, [scale * b for b in network.biases], network.skip)


def refitted_nearby(oracle: Counting, network: ReLUNetwork, scale: float, rng: np.random.Generator) -> ReLUNetwork:
    """Biases and constants anew, from random inputs at smaller and smaller scales, the scale of use last.

    One step all the way would start with too many neurons in the wrong state.
    """
    *on_the_way, last = nearby_shares(scale, oracle.dim)
    for share in on_the_way:
        scale /= CLOSER
        from_there = brought_near(network, 1 / scale)
        network = brought_near(refit_biases(_seen_from(oracle, scale), from_there, rng, share=share), scale)
    return refit_biases(oracle, network, rng, share=last)


def nearby_shares(scale: float, dim: int) -> list[float]:
    """Rows for each bias in every refit from this scale to the scale of use."""
    shares = []
    while scale > CLOSER:
        scale /= CLOSER
        shares.append(SHARE_ON_THE_WAY)
    return [*shares, float(np.clip(REFIT_SHARE * dim, FEWEST_SHARE, MOST_SHARE))]


def _seen_from(oracle: Counting, scale: float) -> Counting:
    return Counting(_Scaled(oracle.inner, scale), oracle.ledger, oracle.facts.domain)

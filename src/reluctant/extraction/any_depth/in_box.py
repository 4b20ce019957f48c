"""`DeepInBox`: several hidden layers behind a link, inside the box where probabilities keep their digits.

Deeper methods look out to some thirty times a typical input. In units of the box that is where the box ends: there the
target is like any other, and `AnyDepth` runs as it is. Digits that probabilities lose next to 0 and 1 count as noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from reluctant.domains import Domain
from reluctant.extraction.any_depth.layer import LayerLimits
from reluctant.extraction.any_depth.method import AnyDepth
from reluctant.extraction.method import Candidate, Hybrid, Keep, Method, PartialNetwork, StageFailed, lifted
from reluctant.geometry import DistanceNoise
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.input_units import InputUnits, Scaled
from reluctant.oracles.links import lost_digits

REACH = 30.0  # in units of the scale: how far out rows of a fit may lie
LINES_END = 0.9 * REACH
SIZES = 0.5 ** np.arange(4)  # of the box, from the largest
SHELL = 32  # rows asked at the end of each
ELSEWHERE = 8.0  # times the loss at these rows: others may lie closer to 0 and 1
SPREAD = float(np.sqrt(3))  # half width of a box in which coordinates have deviation one
IN_BOUNDS = AnyDepth(
    first_lines=32,
    search=LayerLimits(quiet_lines=12, quiet_lines_first=12, new_lines=40, followed=500),
)
MOST_LOST = 1e-11  # of the spread of the values: what may be lost at the end of a box


@dataclass(frozen=True)
class DeepInBox(Method):
    """Exact extraction of several hidden layers inside a box that a link leaves. Cost: that of `AnyDepth` and 128 rows.

    Arguments:
        method: what runs there; its lines end before the box does.
    """

    method: AnyDepth = field(default_factory=lambda: AnyDepth(lines_end=LINES_END))

    def run(self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Keep) -> Candidate:
        """One attempt; raises StageFailed where no box keeps enough digits, or the method gets stuck."""
        half = float(np.min(oracle.facts.domain.high))
        size, lost = _largest_size(oracle, half, rng)
        units = InputUnits(np.zeros(oracle.dim), np.full(oracle.dim, size / REACH))
        view = Counting(Scaled(oracle.inner, units, Domain(), None), oracle.ledger)
        own = DistanceNoise(max(noise.near, ELSEWHERE * lost), noise.growth * size / REACH)
        found = self.method.run(view, own, rng, partial(_keep_in_units, units, keep))
        return replace(found, network=units.network(found.network), certificate=None)


@dataclass(frozen=True)
class DeepInBounds(Method):
    """Several hidden layers inside the bounds that a user has set: a network that is equal to the target there.

    Inside a box a crease does not visit every cell, so weights are not determined; the function is. Each layer may see
    all those below it: then the side of no neuron has to be known. What creases leave open of the weights is chosen by
    lines and answers. Cost: 50 answers a parameter and up.

    Arguments:
        method: what runs there, on more and shorter lines than in all of space.
        most_inputs: beyond, a box shows too little of each crease.
    """

    method: AnyDepth = field(default_factory=lambda: IN_BOUNDS)
    most_inputs: int = 64

    def run(self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Keep) -> Candidate:
        """One attempt; raises StageFailed where the method gets stuck."""
        domain = oracle.facts.domain
        if not domain.is_box:
            raise StageFailed("bounds", "bounds that leave a side open", number=1, limit=0, certain=True)
        if oracle.dim > self.most_inputs:
            raise StageFailed("bounds", "many inputs", number=oracle.dim, limit=self.most_inputs, certain=True)
        low, high = (np.broadcast_to(side, (oracle.dim,)) for side in (domain.low, domain.high))
        units = InputUnits((low + high) / 2, (high - low) / (2 * SPREAD))
        view = Counting(Scaled(oracle.inner, units, domain, None), oracle.ledger)
        near = float(noise.at(np.array([np.linalg.norm(units.centre)]))[0])
        own = DistanceNoise(near, noise.growth * float(units.scale.max()))
        found = self.method.run(view, own, rng, partial(_keep_in_units, units, keep))
        return replace(found, network=units.network(found.network))


def _keep_in_units(units: InputUnits, keep: Keep, part: PartialNetwork) -> None:
    """A part in the target's own inputs."""
    network = units.network(lifted(part))
    keep(replace(part, network=network) if isinstance(part, Hybrid) else network)


def _largest_size(oracle: Counting, half: float, rng: np.random.Generator) -> tuple[float, float]:
    """The largest half width out to which values keep their digits, and what they lose there."""
    rows = rng.standard_normal((SHELL, oracle.dim))
    rows *= np.sqrt(oracle.dim) / np.linalg.norm(rows, axis=1, keepdims=True)
    with oracle.stage("reach", expected=len(SIZES) * SHELL):
        asked = np.concatenate([size * half * rows for size in SIZES])
        values = np.asarray(Counting(oracle.inner, oracle.ledger).answer(asked)).reshape(len(SIZES), SHELL, -1)
    for size, found in zip(SIZES, values, strict=True):
        lost = _lost(found, oracle)
        if np.isfinite(lost) and lost <= MOST_LOST * float(found.std(axis=0).max()):
            return float(size * half), lost
    raise StageFailed("reach", "no box where values keep their digits", number=lost, limit=MOST_LOST)


def _lost(values: FloatArray, oracle: Counting) -> float:
    """The most that digits of these values are off by; infinite where some cannot be read."""
    return float(lost_digits(values, oracle).max()) if np.isfinite(values).all() else np.inf

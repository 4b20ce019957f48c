"""The range that inputs are clipped to: beyond it answers no longer change.

Some coordinates of random inputs are moved together, far below and far above all others. A target that clips them
answers the same from a bound on, and from the same bound whichever coordinates are moved; a function that is flat far
out for another reason has a bound of its own on every line. Of one or two inputs there are not enough such lines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.domains import Domain
from reluctant.health.lines import ask
from reluctant.health.shape import NOISE_FACTOR
from reluctant.health.summary import Health
from reluctant.numerics import FloatArray
from reluctant.oracles.ledger import Counting

__all__ = ["clipped_range"]

PROBES, MOVED = 6, 0.5  # random inputs; share of their coordinates that are moved
AGREEING = 3  # different choices of coordinates that have the same bound
FEWEST_INPUTS = 3  # so that there are more choices than that
SIZES: FloatArray = 2.0 ** np.arange(-6.0, 13.0)  # 1/64 to 4096
PLACES: FloatArray = np.concatenate([-SIZES[::-1], [0.0], SIZES])
POINTS, ROUNDS = 8, 8  # between two places, and how often they are laid anew: to a ten millionth of a bound
SAME, RESOLVED = 1e-5, 1e-6  # of the range: bounds that differ by less are the same; to so much they are told
SLOPE = 10.0  # times less steep than most a line may be where it ends: so much farther noise hides the bound
COARSEST = 0.05  # of the range: bounds that are known no better say nothing


def clipped_range(oracle: Counting, health: Health, rng: np.random.Generator) -> Domain | None:
    """The box that inputs seem to be clipped to, if it has the same bounds for all of them; else None.

    Cost: 234 rows, and 768 to find the bounds if there are any; nothing for less than three inputs.
    """
    if oracle.dim < FEWEST_INPUTS:
        return None
    at = oracle.facts.domain.interior(rng, PROBES, oracle.dim)
    moved = rng.random(at.shape) < MOVED
    moved[np.arange(PROBES), rng.integers(oracle.dim, size=PROBES)] = True
    probes = _Probes(oracle, at, moved, NOISE_FACTOR * health.noise.at(health.spread))
    with oracle.stage("reach"):
        ends = probes.ends()
    if np.isnan(ends).all(axis=1).any():
        return None
    low, high = np.nanmin(ends[0]), np.nanmax(ends[1])
    within = max(SAME, SLOPE * probes.noise / health.spread) * (high - low)
    agree = np.abs(ends - np.array([[low], [high]])) <= within
    choices = [len(np.unique(moved[same], axis=0)) for same in agree]
    if min(choices) < AGREEING or within > COARSEST * (high - low):
        return None
    known = max(RESOLVED, SLOPE * probes.noise / health.spread) * (high - low)
    return Domain(_told(low, known, inward=1.0), _told(high, known, inward=-1.0))


def _told(bound: float, known: float, inward: float) -> float:
    """A bound in as many digits as it is known to; what is moved by more than that is moved inward."""
    unit = 10.0 ** np.ceil(np.log10(known))
    nearest = np.round(bound / unit)
    outward = inward * (bound - nearest * unit) > known
    decimals = int(max(0.0, -np.log10(unit)))
    return float(np.round((nearest + inward * outward) * unit, decimals)) + 0.0


@dataclass(frozen=True)
class _Probes:
    """Inputs (n, d) some of whose coordinates are moved together."""

    oracle: Counting
    at: FloatArray
    moved: np.ndarray
    noise: float

    def ask(self, places: FloatArray) -> FloatArray:
        """Answers (n, k, outputs) with the coordinates at these places (n, k)."""
        rows = np.where(self.moved[:, None], places[..., None], self.at[:, None])
        return ask(self.oracle, rows.reshape(-1, self.oracle.dim)).reshape(*places.shape, -1)

    def ends(self) -> FloatArray:
        """Below and above what place (2, n) answers no longer change; NaN where they always do, or never."""
        places = np.array([PLACES[::-1], PLACES])
        answers = self.ask(np.broadcast_to(PLACES, (PROBES, len(PLACES))))
        far = np.stack([answers[:, 0], answers[:, -1]])
        last = np.stack([self._last_other(answers[:, ::-1], far[0]), self._last_other(answers, far[1])])
        ended = (last >= 0) & (last < len(PLACES) - 2)
        if not ended.any(axis=1).all():
            return np.full(last.shape, np.nan)
        inside, outside = (np.take_along_axis(places, np.clip(last + k, 0, len(PLACES) - 1), axis=1) for k in (0, 1))
        for _ in range(ROUNDS):
            inside, outside = self._closer(inside, outside, far)
        return np.where(ended, (inside + outside) / 2, np.nan)

    def _closer(self, inside: FloatArray, outside: FloatArray, far: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Places (2, n) that still differ and no longer do, after one round of points between them."""
        parts = np.linspace(0, 1, POINTS + 2)
        between = inside[..., None] + parts * (outside - inside)[..., None]
        asked = between[..., 1:-1].transpose(1, 0, 2).reshape(PROBES, -1)
        answers = self.ask(asked).reshape(PROBES, 2, POINTS, -1)
        last = np.stack([self._last_other(answers[:, side], far[side]) for side in (0, 1)]) + 1
        both = (np.take_along_axis(between, (last + k)[..., None], axis=2)[..., 0] for k in (0, 1))
        return next(both), next(both)

    def _last_other(self, answers: FloatArray, far: FloatArray) -> np.ndarray:
        """Index (n,) of the last of the answers (n, k, outputs) that is not the one far out; -1 if all are."""
        other = np.abs(answers - far[:, None]).max(axis=2) > self.noise
        count = other.shape[1]
        return np.where(other.any(axis=1), count - 1 - np.argmax(other[:, ::-1], axis=1), -1)

"""Looking for what the model misses: points where target and model differ have an unknown crease before them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reluctant.extraction.bounded.inside import Inside
from reluctant.extraction.bounded.known import Known
from reluctant.extraction.bounded.neurons import neurons_on_a_ray
from reluctant.extraction.bounded.unseen import new_creases
from reluctant.extraction.bounded.walls import axis_points, end_of_ray, exploration_points, far_corners
from reluctant.extraction.failures import StageFailed
from reluctant.geometry.samples import TOLERANCE, IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["FIRST_GATE", "explore"]

POINTS = 256  # looked at together
QUIET_BATCHES = 2  # in a row, without a difference
FIRST_GATE = 3e-10  # error of a neuron that is accepted, in units of the spread
LAST_GATE = 1e-6
WIDER = 10.0  # the next gate, when nothing passes the last one, and tolerance for differences without a crease
NOT_NOISE = 1e-4  # of the spread: a difference that is no error of a neuron
DULL_RAYS = 4  # in a row without a new neuron, until the gate is widened
MOST_RAYS = 4000


def explore(inside: Inside, known: Known, keep: Callable[[ReLUNetwork], None]) -> Known:
    """Look at batches of points until they show no difference; learn the neurons before those that do."""
    domain, dim = inside.domain, inside.oracle.dim
    quiet, special = 0, np.concatenate([axis_points(domain, dim), far_corners(domain, known.slope)])
    while quiet < QUIET_BATCHES:
        rows = np.concatenate([special, exploration_points(domain, inside.rng, POINTS, dim)])
        before = known.neurons
        known = _Batch(inside, rows).explained_by(known)
        keep(known.network())
        quiet = 0 if known.neurons > before else quiet + 1
        special = far_corners(domain, known.weights[before:])
    return known


class _Batch:
    """Points with their answers: asked once, compared with the model as it grows."""

    def __init__(self, inside: Inside, rows: FloatArray) -> None:
        self.inside, self.rows = inside, rows
        with inside.oracle.stage("exploration", expected=len(rows)):
            self.answers = inside.ask(rows)
        self.noise = inside.noise_of(rows, self.answers)

    def explained_by(self, known: Known) -> Known:
        """The model with neurons added until it gives all answers of the batch."""
        gate, dull = FIRST_GATE, 0
        for _ in range(MOST_RAYS):
            loud = self.loud(known, gate / FIRST_GATE)
            if not len(loud):
                return known
            more = self.learn(known, self.rows[self.inside.rng.choice(loud)], gate)
            self.check_still_quiet(known, more, loud)
            dull = dull + 1 if more.neurons == known.neurons else 0
            known = more
            if dull == DULL_RAYS:
                gate, dull = WIDER * gate, 0
            if gate > LAST_GATE:
                break
        raise StageFailed(
            "exploration", "differences no crease explains", number=len(loud), limit=0, partial=known.network()
        )

    def check_still_quiet(self, known: Known, more: Known, loud: IntArray) -> None:
        """What was explained stays so: a neuron that changes it is not one everywhere."""
        off = self.off(more) / self.inside.spread
        off[loud] = 0.0
        off[self.off(known) >= NOT_NOISE * self.inside.spread] = 0.0  # with a wide gate such points are not loud
        if not off.max() < NOT_NOISE:
            reason = "creases that bend: there is another hidden layer"
            raise StageFailed("exploration", reason, number=float(off.max()), limit=NOT_NOISE, partial=more.network())

    def off(self, known: Known) -> FloatArray:
        """How far (n,) the answers are from a model's."""
        return np.asarray(np.abs(self.answers - known(self.rows)).max(axis=1))

    def loud(self, known: Known, leniency: float) -> IntArray:
        """Points where target and model differ by more than noise."""
        return np.flatnonzero(self.off(known) > leniency * TOLERANCE * np.hypot(self.noise, known.error(self.rows)))

    def learn(self, known: Known, point: FloatArray, gate: float) -> Known:
        """Neurons on the ray through a point, as far as the domain goes."""
        inside = self.inside
        stop = end_of_ray(inside.domain, known.anchor, point, inside.scale)
        with inside.oracle.stage("rays"):
            ray = new_creases(inside, known, stop)
            return known if ray is None or not len(ray) else neurons_on_a_ray(inside, known, ray, gate)

"""Hyperplanes along which a target bends, followed to the last digit, and the network with these hyperplanes.

A normal read from two gradients has few digits where neurons lie close together, because steps between them are short.
But along a crease there is room. Four answers across the place where it is expected tell where it is; places
spread over a small disc give a better normal, and that one reaches a larger disc. Neurons 1e-9 apart come
apart in three or four discs.

The output weights are fitted by least squares over one ReLU for each hyperplane, x and 1 (LEARNFROMQUERIES of the
paper). Gaussian samples say nothing of a neuron that none of them activates, so there are samples in a strip around
each hyperplane, and a prior: the gradient's jump across it is its output weight. A hyperplane found twice, the first
time badly, would stay twice. The paper calls neurons (Δ, α)-close (Definition 3.7) if their angle is at most Δ and
their thresholds differ by at most α; a close one is left out if the answers are explained as well without it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import scipy.linalg

from reluctant.errors import InvalidInput
from reluctant.geometry import DistanceNoise
from reluctant.geometry.gradients import EXTRAPOLATION_NOISE, SMALLEST_CROSSED_BEND, Crossings, cross
from reluctant.geometry.lines import Batch, BoolArray, IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray, unit_roundoff
from reluctant.oracles.base import Ask
from reluctant.oracles.ledger import check_time

PLANE_ROUNDINGS = 64.0  # of a network's own hyperplanes, in units of one
CLOSE_DEVIATIONS = 3.0  # deviations


@dataclass(frozen=True)
class CreasePlanes(Batch):
    """Creases {x : normals[j]·x + offsets[j] = 0} with unit normals.

    centre: a point of each, near those it was measured at. place_sd: uncertainty there; tilt: how much is added for
    each unit of distance from it. jump: change of the gradient across, along the normal. room: distance to the
    nearest other crease where it was found. gate: whether more than a bend is there, a cluster that does not come
    apart; what it switches on is any affine map.
    """

    normals: FloatArray  # (h, d)
    offsets: FloatArray  # (h,)
    centre: FloatArray  # (h, d)
    place_sd: FloatArray  # (h,)
    tilt: FloatArray  # (h,)
    jump: FloatArray  # (h, m)
    jump_sd: FloatArray  # (h,)
    room: FloatArray  # (h,)
    gate: BoolArray  # (h,)

    @classmethod
    def none(cls, dim: int, outputs: int) -> CreasePlanes:
        """An empty collection."""
        empty, rows = np.empty(0), np.empty((0, dim))
        return cls(rows, empty, rows, empty, empty, np.empty((0, outputs)), empty, empty, np.empty(0, dtype=bool))

    @classmethod
    def of(cls, network: ReLUNetwork, off: float = 0.0) -> CreasePlanes:
        """Those of a network whose answers are typically off by so much; neurons that never bend have none."""
        if network.depth != 2:
            return cls.none(network.dim, network.outputs)
        normals, offsets = network.hyperplanes()
        live = np.flatnonzero(np.isfinite(normals).all(axis=1))
        normals, offsets = normals[live], offsets[live]
        jump = (network.weights[1] * np.linalg.norm(network.weights[0], axis=1)).T[live]
        size = np.maximum(np.linalg.norm(jump, axis=1), DOUBLE.tiny)
        sure = PLANE_ROUNDINGS * (unit_roundoff(np.float64) + off / size)
        far = np.full(len(live), np.inf)
        no_gate = np.zeros(len(live), dtype=bool)
        return cls(normals, offsets, -offsets[:, None] * normals, sure, sure, jump, far, far, no_gate)

    def replaced(self, which: IntArray, others: CreasePlanes) -> CreasePlanes:
        """With others in these places."""
        parts = {field.name: getattr(self, field.name).copy() for field in fields(self)}
        for name, part in parts.items():
            part[which] = getattr(others, name)
        return CreasePlanes(**parts)

    def distance(self, points: FloatArray) -> FloatArray:
        """Signed distances (n, h)."""
        return points @ self.normals.T + self.offsets

    def uncertainty(self, points: FloatArray) -> FloatArray:
        """How far (n, h) each hyperplane may be from where the fit puts it, near each point."""
        away = np.linalg.norm(points[:, None] - self.centre[None], axis=2)
        return self.place_sd + self.tilt * away

    def close_to(self, others: CreasePlanes) -> BoolArray:
        """Which of them are, as far as is known, the same as one of the others."""
        if not len(others):
            return np.zeros(len(self), dtype=bool)
        cosine = self.normals @ others.normals.T
        turned = np.linalg.norm(self.normals[:, None] - np.sign(cosine)[:, :, None] * others.normals[None], axis=2)
        size = np.sqrt(self.normals.shape[1])
        alike = turned <= CLOSE_DEVIATIONS * size * (self.tilt[:, None] + others.tilt)
        apart = np.abs(others.distance(self.centre))
        near = apart <= CLOSE_DEVIATIONS * (others.uncertainty(self.centre) + self.place_sd[:, None])
        return np.asarray((alike & near).any(axis=1))

    def on(self, points: FloatArray, blur: FloatArray) -> BoolArray:
        """Points (n,), known up to `blur` (n,), that lie on one of them."""
        if not len(self):
            return np.zeros(len(points), dtype=bool)
        near = np.abs(self.distance(points)) <= self.uncertainty(points) + blur[:, None]
        return np.asarray(near.any(axis=1))


PLACES_AN_UNKNOWN, EXTRA_PLACES = 1.5, 6  # places for each unknown, and more
SPARE_PLACES = 3  # places more than unknowns that must agree
INSIDE_ROOM = 0.03  # of the room around a crease: how far off it may be expected
WIDER_CROSSING = 4.0  # a crossing is so many times as long as the crease is expected to be off
LONGEST_CROSSING = 0.15  # of the room, or of a unit
WITHIN_REACH = 0.45  # of a crossing's reach: between its inner points
SHARP_FIT = 8.0  # deviations of noise: a fit farther off saw something else at some of its places
MOST_TURNED = 3.0  # a better normal is no farther from the one before, in its deviations
SMALLER_DISC = 4.0  # the disc after one on which the crease was lost
MOST_DISCS, MOST_LOST = 12, 4  # discs in all, and in a row on which a crease was lost
FIT_DEVIATIONS = 4.0  # deviations of a fit


def follow_planes(ask: Ask, planes: CreasePlanes, noise: DistanceNoise, rng: np.random.Generator) -> CreasePlanes:
    """The hyperplanes that could be followed over all that Gaussian inputs meet, to their last digit.

    Cost: about 6 d + 30 rows for each disc, one or two discs a hyperplane and two or three more in a cluster.
    """
    size = float(np.sqrt(planes.normals.shape[1]))
    limit = np.full(len(planes), size)  # of the discs
    todo, done = np.arange(len(planes)), np.zeros(len(planes), dtype=bool)
    lost = np.zeros(len(planes), dtype=int)  # times in a row
    for _ in range(MOST_DISCS):
        if not len(todo):
            break
        now = planes.chosen(todo)
        radius = np.minimum(limit[todo], _safe_radius(now))
        everywhere = radius >= size
        rows = _places_on(now, radius, everywhere, rng)
        found, good = _refitted_planes(now, rows, _crossings(ask, now, rows, noise))
        planes = planes.replaced(todo, found)
        limit[todo] = np.where(good, size, radius / SMALLER_DISC)
        done[todo], lost[todo] = good & everywhere, np.where(good, 0, lost[todo] + 1)
        hopeless = ~good & ((_disc_gain(now, radius / SMALLER_DISC, noise) < 1) | (lost[todo] == MOST_LOST))
        todo = todo[~done[todo] & ~hopeless]
    return planes.chosen(done)


def _safe_radius(planes: CreasePlanes) -> FloatArray:
    """How far from its centre each crease is known well enough to be separate from its neighbours."""
    margin = INSIDE_ROOM * np.minimum(planes.room, 1.0) - planes.place_sd
    return np.maximum(margin, DOUBLE.tiny) / np.maximum(planes.tilt, DOUBLE.tiny)


def _disc_gain(planes: CreasePlanes, radius: FloatArray, noise: DistanceNoise) -> FloatArray:
    """How much better than now a disc of this radius could give the normals."""
    dim = planes.normals.shape[1]
    blur = noise.at(np.linalg.norm(planes.centre, axis=1)) * EXTRAPOLATION_NOISE / np.linalg.norm(planes.jump, axis=1)
    return planes.tilt * radius / (FIT_DEVIATIONS * blur * np.sqrt(dim / _place_count(dim)))


def _place_count(dim: int) -> int:
    return int(PLACES_AN_UNKNOWN * dim) + EXTRA_PLACES


def _places_on(planes: CreasePlanes, radius: FloatArray, everywhere: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Places (h, k, d) on each hyperplane: on a disc, or where Gaussian inputs come closest."""
    h, d = planes.normals.shape
    drawn = rng.standard_normal((h, _place_count(d), d))
    spread = np.where(everywhere, 1.0, radius / np.sqrt(d))
    start = np.where(everywhere[:, None], 0.0, planes.centre)
    rows = start[:, None] + spread[:, None, None] * drawn
    off = np.einsum("hkd,hd->hk", rows, planes.normals) + planes.offsets[:, None]
    return np.asarray(rows - off[:, :, None] * planes.normals[:, None])


def _crossings(ask: Ask, planes: CreasePlanes, rows: FloatArray, noise: DistanceNoise) -> Crossings:
    """Cross every hyperplane at its places, no longer than it takes to meet the crease."""
    _, k, d = rows.shape
    away = np.linalg.norm(rows - planes.centre[:, None], axis=2)
    off = planes.place_sd[:, None] + planes.tilt[:, None] * away
    size = np.linalg.norm(planes.jump, axis=1)[:, None]
    shortest = 2 * SMALLEST_CROSSED_BEND * noise.at(np.linalg.norm(rows, axis=2)) / size
    longest = LONGEST_CROSSING * np.minimum(planes.room, 1.0)[:, None]
    reach = np.clip(WIDER_CROSSING * off, shortest, np.maximum(longest, shortest)).reshape(-1)
    return cross(ask, rows.reshape(-1, d), np.repeat(planes.normals, k, axis=0), reach, noise, WITHIN_REACH * reach)


def _refitted_planes(planes: CreasePlanes, rows: FloatArray, seen: Crossings) -> tuple[CreasePlanes, BoolArray]:
    """Hyperplanes through where the creases were seen, and for which of them that gave one."""
    h, k, _ = rows.shape
    good = np.zeros(h, dtype=bool)
    position = np.where(np.isfinite(seen.position), seen.position, 0.0)  # no bend has no position
    points = rows + position.reshape(h, k, 1) * planes.normals[:, None]
    blur = EXTRAPOLATION_NOISE * seen.sd.reshape(h, k) / np.linalg.norm(planes.jump, axis=1)[:, None]
    bend, critical = seen.bend.reshape(h, k, -1), seen.critical.reshape(h, k)
    for i in range(h):
        check_time()
        at = np.flatnonzero(critical[i])
        fit = _PlaneFit.through(points[i, at], planes.normals[i], float(np.median(blur[i])))
        if fit is None or fit.turned > MOST_TURNED * np.sqrt(rows.shape[2]) * planes.tilt[i]:
            continue
        good[i] = True
        planes = planes.replaced(np.array([i]), _plane_of_fit(planes.chosen(np.array([i])), fit, bend[i, at[fit.kept]]))
    return planes, good


@dataclass(frozen=True)
class _PlaneFit:
    """A hyperplane through points: the ones that were used, how far off they are and how far they spread."""

    normal: FloatArray
    centre: FloatArray
    kept: IntArray
    blur: float
    radius: float
    turned: float  # distance of the normal from the one expected

    @classmethod
    def through(cls, points: FloatArray, expected: FloatArray, blur: float) -> _PlaneFit | None:
        """Leave out the farthest points, one by one, until noise explains the others; None if too few are left."""
        kept, dim = np.arange(len(points)), points.shape[1]
        while len(kept) >= dim + SPARE_PLACES:
            centre = points[kept].mean(axis=0)
            normal = np.linalg.svd(points[kept] - centre, full_matrices=False)[2][-1]
            distance = np.abs((points[kept] - centre) @ normal)
            off = float(np.sqrt((distance**2).sum() / (len(kept) - dim)))
            if off <= SHARP_FIT * blur:
                normal = normal * np.sign(normal @ expected)
                radius = float(np.linalg.norm(points[kept] - centre, axis=1).mean())
                turned = float(np.linalg.norm(normal - expected))
                return cls(normal, centre, kept, max(off, blur), radius, turned)
            kept = np.delete(kept, np.argmax(distance))
        return None


def _plane_of_fit(plane: CreasePlanes, fit: _PlaneFit, bend: FloatArray) -> CreasePlanes:
    """One hyperplane as the fit gives it, its jump as most crossings saw it."""
    jump = np.median(bend, axis=0)
    on_a_line = len(fit.normal) == 1  # no direction to be wrong about; all crossings are at one place and err alike
    tilt = 0.0 if on_a_line else FIT_DEVIATIONS * fit.blur * np.sqrt(len(fit.normal) / len(fit.kept)) / fit.radius
    return replace(
        plane,
        normals=fit.normal[None],
        offsets=np.array([-fit.normal @ fit.centre]),
        centre=fit.centre[None],
        place_sd=np.array([FIT_DEVIATIONS * fit.blur]),
        tilt=np.array([tilt]),
        jump=jump[None],
        jump_sd=np.array([np.inf if on_a_line else np.median(np.abs(bend - jump).max(axis=1))]),
    )


# ---- the network with these hyperplanes

SAMPLES_AN_UNKNOWN, EXTRA_SAMPLES = 1.5, 20  # Gaussian samples for each unknown, and more
SAMPLES_IN_STRIP = 4  # samples around each hyperplane
WIDEST_STRIP = 0.3  # of a strip, or of the room


@dataclass(frozen=True)
class OutputSample:
    """Rows, answers, and how much each answer weighs: one over its noise."""

    rows: FloatArray
    answers: FloatArray
    weight: FloatArray  # (n, 1)

    def misfit(self, network: ReLUNetwork) -> float:
        """Sum of the squared residuals, in deviations of the noise."""
        return float(((self.weight * (self.answers - network(self.rows))) ** 2).sum())


def draw_sample(ask: Ask, planes: CreasePlanes, noise: DistanceNoise, rng: np.random.Generator) -> OutputSample:
    """Gaussian rows and rows around every hyperplane. Cost: 1.5 rows for each unknown and 4 a hyperplane."""
    dim = planes.normals.shape[1]
    unknowns = len(planes) + dim + 1 + dim * int(planes.gate.sum())
    gaussian = rng.standard_normal((int(SAMPLES_AN_UNKNOWN * unknowns) + EXTRA_SAMPLES, dim))
    rows = np.concatenate([gaussian, _strip_rows(planes, rng)])
    return OutputSample(rows, ask(rows), 1 / noise.at(np.linalg.norm(rows, axis=1))[:, None])


def fit_outputs(planes: CreasePlanes, sample: OutputSample) -> ReLUNetwork:
    """The network with these hyperplanes. No queries."""
    plain, gates = planes.chosen(~planes.gate), planes.chosen(planes.gate)
    rows, h = sample.rows, len(plain)
    inputs = np.column_stack([rows, np.ones(len(rows))])
    features = np.column_stack([np.maximum(plain.distance(rows), 0), *_gate_features(gates, rows, inputs), inputs])
    least = 1 / float(sample.weight.max())
    prior = np.where(np.isfinite(plain.jump_sd), 1 / np.maximum(plain.jump_sd, least), 0.0)[:, None]
    weight = sample.weight * _sure_of_gates(gates, rows)[:, None]
    design = np.concatenate([weight * features, prior * np.eye(h, features.shape[1])])
    wanted = np.concatenate([weight * sample.answers, prior * plain.jump])
    scale = np.linalg.norm(design, axis=0)
    scale[scale == 0] = 1.0
    found = scipy.linalg.lstsq(design / scale, wanted, lapack_driver="gelsd", check_finite=False)[0] / scale[:, None]
    neurons = [(plain.normals, plain.offsets, found[:h].T)]
    maps = found[h : -inputs.shape[1]].reshape(len(gates), inputs.shape[1], sample.answers.shape[1])
    neurons += [_gate_pair(gates.normals[k], gates.offsets[k], maps[k]) for k in range(len(gates))]
    w, b, a = (list(parts) for parts in zip(*neurons, strict=True))
    affine = found[-inputs.shape[1] :]
    return ReLUNetwork([np.concatenate(w), np.hstack(a)], [np.concatenate(b), affine[-1]], affine[:-1].T)


def _gate_features(gates: CreasePlanes, rows: FloatArray, inputs: FloatArray) -> list[FloatArray]:
    """For each gate x and 1 where it is open, and zero elsewhere."""
    return [np.where(side[:, None] > 0, inputs, 0.0) for side in gates.distance(rows).T]


def _sure_of_gates(gates: CreasePlanes, rows: FloatArray) -> FloatArray:
    """Zero for rows so close to a gate that it may be open or not, else one."""
    return np.asarray(1.0 - (np.abs(gates.distance(rows)) < gates.uncertainty(rows)).any(axis=1))


def _gate_pair(normal: FloatArray, offset: float, switched: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """An affine map (d + 1, m) that is on beyond a hyperplane, as pairs of neurons: max(Mz + ℓ, 0) - max(Mz, 0).

    The larger M, the narrower the slab in which they are wrong, and the more digits they lose; both errors are of
    the size of a third of the digits for this M.
    """
    outputs = switched.shape[1]
    steep = np.linalg.norm(switched, axis=0) * unit_roundoff(np.float64) ** (-2 / 3)
    weights = steep[:, None] * normal
    first = np.concatenate([weights + switched[:-1].T, weights])
    bias = np.concatenate([steep * offset + switched[-1], steep * offset])
    return first, bias, np.hstack([np.eye(outputs), -np.eye(outputs)])


def _strip_rows(planes: CreasePlanes, rng: np.random.Generator) -> FloatArray:
    h, dim = planes.normals.shape
    rows = rng.standard_normal((h, SAMPLES_IN_STRIP, dim))
    off = np.einsum("hkd,hd->hk", rows, planes.normals) + planes.offsets[:, None]
    width = WIDEST_STRIP * np.minimum(planes.room, 1.0)[:, None] * rng.uniform(-1, 1, (h, SAMPLES_IN_STRIP))
    return np.asarray((rows + (width - off)[:, :, None] * planes.normals[:, None]).reshape(-1, dim))


def pair_sines(v: FloatArray) -> FloatArray:
    """|sin ∠(v_i, v_j)| for all pairs (n, n), from sums and differences, which keep the digits of small angles."""
    u = _unit_rows(v)
    apart = np.linalg.norm(u[:, None] - u, axis=2)
    return np.asarray(apart * np.linalg.norm(u[:, None] + u, axis=2) / 2)


def pair_offsets(v: FloatArray, b: FloatArray) -> FloatArray:
    """‖b_i v_j - b_j v_i‖ / (‖v_i‖ ‖v_j‖) for all pairs (n, n)."""
    u, beta = _unit_rows(v), b / np.linalg.norm(v, axis=1)
    return np.asarray(np.linalg.norm(beta[:, None, None] * u - beta[None, :, None] * u[:, None], axis=2))


def are_close(v: FloatArray, b: FloatArray, separation: float, alpha: float) -> BoolArray:
    """Definition 3.7: which pairs (n, n) are (Δ, α)-close. Opposite neurons are close to each other too."""
    return np.asarray((pair_sines(v) <= separation) & (pair_offsets(v, b) <= alpha))


def _unit_rows(v: FloatArray) -> FloatArray:
    norms = np.linalg.norm(v, axis=1, keepdims=True)
    if not norms.all():
        raise InvalidInput.about("v", got="a neuron without weights", expected="vectors that have a direction")
    return np.asarray(v / norms)


CLOSE_ANGLE, CLOSE_THRESHOLD = 0.05, 0.05  # Δ and α
NO_WORSE = 1.1  # times the sum of squares with all of them


def prune(planes: CreasePlanes, sample: OutputSample) -> CreasePlanes:
    """The hyperplanes without those that a close one makes superfluous. No queries."""
    close = are_close(planes.normals, -planes.offsets, CLOSE_ANGLE, CLOSE_THRESHOLD)
    kept = np.ones(len(planes), dtype=bool)
    misfit = None
    for i in reversed(range(len(planes))):
        check_time()
        if close[i, kept].sum() == 1:  # to itself
            continue
        misfit = sample.misfit(fit_outputs(planes.chosen(kept), sample)) if misfit is None else misfit
        kept[i] = False
        left = sample.misfit(fit_outputs(planes.chosen(kept), sample))
        kept[i] = left > NO_WORSE * misfit
        misfit = misfit if kept[i] else left
    return planes.chosen(kept)

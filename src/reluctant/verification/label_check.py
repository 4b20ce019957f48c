"""`check_labels`: a network compared with a target that answers labels alone.

Points of the network's decision boundary are asked a step δ to both sides, δ on a ladder from 1e-3 to 1e-11 of a
typical input. The smallest δ at which every label is right is the boundary error. Points lie between random inputs, on
both sides of every crease that meets the boundary, and on both sides of every crease between every two classes that
meet there. Random inputs at two scales search for regions of another label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import gammaincinv

from reluctant.messages import Diagnosis, Notes
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting

LADDER = (1e-3, 1e-5, 1e-7, 1e-9, 1e-11)  # of a typical input
CONFIDENCE = 0.95
CLASS_POOL = 2**14  # segments of each scale between which rare facets of several classes are looked for

Draw = Callable[[int], FloatArray]  # so many inputs (n, d)


@dataclass(frozen=True)
class LabelVerification:
    """Comparison of a target's labels with those of a network.

    boundary_error: smallest step off the predicted boundary, in typical inputs, at which every label was right;
        infinite if some were wrong at every step.
    tol: the largest that counts as right.
    points: of the boundary, with an answer from both sides at that step.
    pairs: of classes that meet at these.
    undecided: other points of it, too close to another boundary of the network.
    wrong: points at the step below, 0 at the last.
    inputs, wrong_inputs: random ones, and those of another label.
    share: part of the boundary that may be off by more.
    input_share: part of the inputs of one scale that may have another label.
    untested: neurons whose crease was not seen to meet the boundary.
    """

    ok: bool
    boundary_error: float
    tol: float
    points: int
    pairs: int
    undecided: int
    wrong: int
    inputs: int
    wrong_inputs: int
    share: float
    input_share: float
    confidence: float
    untested: int
    queries: int

    @property
    def notes(self) -> Notes:
        """How it ended, and which questions it leaves open, as diagnoses."""
        seen = asdict(self) | {"boundary_error": self.boundary_error if np.isfinite(self.boundary_error) else None}
        found = [Diagnosis("labels-agree" if self.ok else "labels-differ", seen)]
        found += [Diagnosis("pairs-meet", {"pairs": self.pairs})] if self.pairs > 1 else []
        found += [Diagnosis("creases-off-boundary", {"untested": self.untested})] if self.untested else []
        found += [Diagnosis("points-undecided", {"undecided": self.undecided})] if self.undecided else []
        return Notes(tuple(found))

    def __str__(self) -> str:
        return str(self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def largest_share(events: int, looks: int) -> float:
    """The share of events that so many independent looks leave possible, with CONFIDENCE: 3 / n where none was seen."""
    return min(1.0, float(gammaincinv(events + 1, CONFIDENCE)) / max(looks, 1))


def classes(network: ReLUNetwork, rows: FloatArray) -> np.ndarray:
    """Labels (n,) of a network as class numbers: whether one output is above 0, or which of several is largest."""
    values = network(rows)
    return np.asarray(values[:, 0] > 0).astype(int) if network.outputs == 1 else values.argmax(axis=1)


@dataclass(frozen=True)
class PredictedBoundary:
    """Points (n, d) of a network's boundary with unit normals (n, d), and the two classes (n, 2) that meet at each."""

    network: ReLUNetwork
    points: FloatArray
    normals: FloatArray
    pairs: np.ndarray

    @classmethod
    def none(cls, network: ReLUNetwork) -> PredictedBoundary:
        """No points."""
        rows = np.empty((0, network.dim))
        return cls(network, rows, rows, np.empty((0, 2), dtype=int))

    def __len__(self) -> int:
        return len(self.points)

    def __add__(self, other: PredictedBoundary) -> PredictedBoundary:
        both = self, other
        points, normals = np.concatenate([x.points for x in both]), np.concatenate([x.normals for x in both])
        return PredictedBoundary(self.network, points, normals, np.concatenate([x.pairs for x in both]))

    def __getitem__(self, which: np.ndarray) -> PredictedBoundary:
        return PredictedBoundary(self.network, self.points[which], self.normals[which], self.pairs[which])

    @classmethod
    def between(cls, network: ReLUNetwork, first: FloatArray, second: FloatArray) -> PredictedBoundary:
        """One point on each segment whose ends have different labels."""
        halvings = 60
        start = classes(network, first)
        apart = start != classes(network, second)
        low, way, start = first[apart], (second - first)[apart], start[apart]
        inner, outer = np.zeros(len(low)), np.ones(len(low))
        for _ in range(halvings):
            middle = (inner + outer) / 2
            same = classes(network, low + middle[:, None] * way) == start
            inner, outer = np.where(same, middle, inner), np.where(same, outer, middle)
        points, beyond = low + inner[:, None] * way, low + outer[:, None] * way
        return cls.at(network, points, start, classes(network, beyond))

    @classmethod
    def at(cls, network: ReLUNetwork, points: FloatArray, one: np.ndarray, other: np.ndarray) -> PredictedBoundary:
        """The predicted boundary at points between two classes each."""
        normals = pair_slopes(network, points, one, other)
        length = np.linalg.norm(normals, axis=1)
        sound = length > DOUBLE.tiny
        pairs = np.sort(np.stack([one, other], axis=1), axis=1)
        return cls(network, points[sound], normals[sound] / length[sound, None], pairs[sound])

    def of_rare_kinds(self, first: int, each: int) -> np.ndarray:
        """Points beyond the first ones, for so many on each side of every neuron between every two classes.

        An output weight that is wrong, of one class and one neuron, is wrong on one such side alone.
        """
        every = np.ones((len(self), 1), dtype=bool)
        side = np.concatenate([every, *self.network.patterns(self.points)], axis=1)
        pair = np.unique(self.pairs, axis=0, return_inverse=True)[1].reshape(-1)[:, None]
        columns = np.arange(side.shape[1])
        kinds = np.unique((pair * len(columns) + columns) * 2 + side, return_inverse=True)[1].reshape(len(self), -1)
        lacking = each - np.bincount(kinds[:first].ravel(), minlength=kinds.max(initial=0) + 1)
        chosen: list[int] = []
        for kind in np.argsort(np.bincount(kinds.ravel()), kind="stable"):  # the rarest bring others with them
            if lacking[kind] > 0:
                mine = first + np.flatnonzero((kinds[first:] == kind).any(axis=1))
                new = np.setdiff1d(mine, chosen)[: lacking[kind]]
                lacking -= np.bincount(kinds[new].ravel(), minlength=len(lacking))
                chosen += list(new)
        return np.array(chosen, dtype=int)


def pair_slopes(network: ReLUNetwork, points: FloatArray, one: np.ndarray, other: np.ndarray) -> FloatArray:
    """Gradients (n, d) of the difference of two classes at each point."""
    gradients = network.gradients(points)
    if network.outputs == 1:
        return np.where(one > other, 1.0, -1.0)[:, None] * gradients[:, 0]
    at = np.arange(len(points))
    return np.asarray(gradients[at, one] - gradients[at, other])


def beside_creases(network: ReLUNetwork, draw: Draw, aside: float, pairs: int) -> tuple[PredictedBoundary, int]:
    """Boundary points close to every hidden neuron's crease, on both sides, and how many creases have none.

    On a crease, two inputs of different label have a boundary point between them; it is moved aside to both sides and
    back onto the boundary.
    """
    found, untested = PredictedBoundary.none(network), 0
    if network.depth != 2:
        return found, 0
    for normal, offset in zip(*network.hyperplanes(), strict=True):
        if not np.isfinite(normal).all():
            continue
        first, second = ((x - np.outer(x @ normal + offset, normal)) for x in (draw(pairs), draw(pairs)))
        on = PredictedBoundary.between(network, first, second)
        near = PredictedBoundary.none(network)
        for side in (aside, -aside):
            start = on.points + side * normal
            far = 8 * aside * on.normals
            near += PredictedBoundary.between(network, start - far, start + far)
        untested += not len(near)
        found += near[np.arange(len(near))[:2] if len(near) < 4 else np.array([0, 1, len(near) // 2, len(near) - 1])]
    return found, untested


def check_labels(
    oracle: Counting, network: ReLUNetwork, draw: Draw, size: float, label_of: Callable[[FloatArray], np.ndarray],
    *, tol: float, finest: float = 0.0, points: int = 32, inputs: int = 96,
) -> LabelVerification:  # fmt: skip
    """Compare the labels of a target with those of a network.

    Arguments:
        oracle: answers labels.
        draw: random typical inputs; size is their norm.
        label_of: class numbers of answers (n, 1), as the network counts them.
        tol: largest boundary error, in typical inputs, that counts as right.
        finest: steps below this, in typical inputs, are within the rounding of the target.
        points, inputs: how many are compared, at each of two scales; besides four at each crease, and two on each
            side of every crease between every two classes that meet there.

    Where most boundary points lie too close to another boundary to be asked, nothing counts as right.

    Cost: about 4 rows a boundary point and 2 an input.
    """
    before, part, each_kind = oracle.queries, 4, 2
    pool = 8 * points if network.outputs == 1 else max(8 * points, CLASS_POOL)
    own = [4 * finest, finest] if finest > LADDER[-1] else []
    steps = sorted([step for step in LADDER if step > finest] + own, reverse=True)
    with oracle.stage("verify"):
        far = 3.0 if oracle.facts.domain.is_space else 1.0
        rows = np.concatenate([draw(inputs), far * draw(inputs)])
        decided = _clear_of_boundary(network, rows, steps[-1] * size)
        other_label = np.zeros(len(rows), dtype=bool)
        other_label[decided] = label_of(oracle.query(rows[decided])) != classes(network, rows[decided])
        boundary = others = PredictedBoundary.none(network)
        for scale in (1.0, far):
            found = PredictedBoundary.between(network, scale * draw(pool), scale * draw(pool))
            boundary += found[np.arange(len(found))[:points]]
            others += found[found.of_rare_kinds(points, each_kind)]
        random_points = len(boundary)  # other points are chosen, and say nothing of shares
        boundary += others
        near, untested = beside_creases(network, draw, 1e-2 * size, pairs=16)
        boundary += near[np.flatnonzero(oracle.facts.domain.inside(near.points))]
        error, wrong, seen = np.inf, 0, np.zeros(len(boundary), dtype=bool)
        off = ~seen
        for step in reversed(steps):
            off, seen = _wrong_beside(oracle, boundary, step * size, label_of)
            if not off.any():
                error = step
                break
            wrong = wrong or int(off.sum())
        for step in steps:  # another region may lie a longer step away
            if len(boundary) and step > error:
                some = np.arange(0, len(boundary), part)
                beside = _wrong_beside(oracle, boundary[some], step * size, label_of)[0]
                if beside.any():
                    error, off[some] = np.inf, beside
    most_seen = 2 * seen.sum() > len(boundary)
    return LabelVerification(
        ok=bool(most_seen and error <= tol and not other_label.any()), boundary_error=float(error), tol=tol,
        points=int(seen.sum()), pairs=len(np.unique(boundary[seen].pairs, axis=0)), undecided=int((~seen).sum()),
        wrong=wrong, inputs=int(decided.sum()), wrong_inputs=int(other_label.sum()),
        share=largest_share(int(off[:random_points].sum()), int(seen[:random_points].sum())),
        input_share=max(
            largest_share(int(wrong.sum()), int(asked.sum()))
            for wrong, asked in zip(np.split(other_label, 2), np.split(decided, 2), strict=True)
        ),
        confidence=CONFIDENCE, untested=untested, queries=oracle.queries - before,
    )  # fmt: skip


def _clear_of_boundary(network: ReLUNetwork, rows: FloatArray, step: float) -> np.ndarray:
    """Rows whose label the network is sure of: two largest classes differ by more than a step changes."""
    values = network(rows)
    if network.outputs == 1:
        one = (values[:, 0] > 0).astype(int)
        gap, other = np.abs(values[:, 0]), 1 - one
    else:
        order = np.argsort(values, axis=1)
        one, other = order[:, -1], order[:, -2]
        at = np.arange(len(rows))
        gap = values[at, one] - values[at, other]
    return np.asarray(gap > step * np.linalg.norm(pair_slopes(network, rows, one, other), axis=1))


def _wrong_beside(
    oracle: Counting, boundary: PredictedBoundary, step: float, label_of: Callable[[FloatArray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Which points have another label than predicted a step to one side, and which were asked on both sides.

    Rows near another boundary are not asked: nobody can say which label they should have.
    """
    wrong, seen = np.zeros(len(boundary), dtype=bool), np.ones(len(boundary), dtype=bool)
    for side in (step, -step):
        rows = boundary.points + side * boundary.normals
        clear = _clear_of_boundary(boundary.network, rows, step / 2) & oracle.facts.domain.inside(rows)
        asked = np.flatnonzero(clear)
        if len(asked):
            wrong[asked] |= label_of(oracle.query(rows[asked])) != classes(boundary.network, rows[asked])
        seen &= clear
    return wrong, seen

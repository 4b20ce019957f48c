"""The completion test: the network must explain all answers, fresh ones too, or a neuron is missing.

Fresh points are random, or extreme in some hidden layer: a neuron that hardly ever switches does so where the layer
before it takes unusual values, and points climb there without a query. Where a coefficient is open, the points at
which its neuron is most likely to switch after all come first. Between a point where a missing neuron is on and one
where it is off lies its crease: a line from the one to the other brings the kink that was missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from reluctant.domains import Domain
from reluctant.extraction.any_depth.crease_equations import IncomingWeights
from reluctant.extraction.any_depth.features import KnownLayers
from reluctant.extraction.any_depth.layer import MOST_WRONG, Ladder
from reluctant.extraction.any_depth.open_weights import with_fitted_weights
from reluctant.extraction.any_depth.output_layer import (
    FITTED_DISTANCE,
    Readout,
    fit_most,
    leftovers,
    readout_deviations,
    rows_for_fit,
)
from reluctant.extraction.method import Memory, StageFailed, check_settings
from reluctant.geometry import Lines
from reluctant.geometry.lines import BoolArray, IntArray
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles.ledger import check_time

MOST_FITTED = 300  # unknowns of a fit of open weights: more take minutes, and more places of use than are asked
CHECK_POOL = 10_000  # random points to choose from
CHECK_DISTANCES = (0.3, 1.0, 3.0, 10.0)  # of extreme points from the origin, in units of the scale of use


def check_points(known: KnownLayers, count: int, rng: np.random.Generator) -> FloatArray:
    """Fresh points (n, d), no more than `count`."""
    extreme_share = 0.75  # share of the points
    layers = [known.lowest(k + 1) for k in range(len(known.layers) - 1)] or [known.lowest(0)]
    pool, each = (
        rng.standard_normal((CHECK_POOL, known.dim)),
        int(extreme_share * count / (len(layers) * len(CHECK_DISTANCES))),
    )
    pools = [known.domain.away(distance * pool, 0.0) for distance in CHECK_DISTANCES]
    extreme = [_extremes(layer, some, each, rng) for layer in layers for some in pools]
    return np.concatenate([_random_points(count - len(extreme) * each, known, rng), *extreme])


def _random_points(count: int, known: KnownLayers, rng: np.random.Generator) -> FloatArray:
    check_scales = (0.1, 10.0)
    dim = known.dim
    if not known.domain.is_space:
        return known.domain.sample(rng, count, dim)
    at_use_share = 0.5  # share of points at the scale of use; the others are spread over the scales
    low, high = np.log(check_scales)
    scale = np.where(rng.random(count) < at_use_share, 1.0, np.exp(rng.uniform(low, high, count)))
    return scale[:, None] * rng.standard_normal((count, dim))


def _extremes(known: KnownLayers, pool: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Points (count, d), as far from the origin as those of the pool, where random directions of the features peak."""
    # Share of directions in the units of the layer; the others in units of its spread in each direction.
    as_they_are = 0.5
    features = known.features(pool)
    rows = rng.standard_normal((count, features.shape[1]))
    rows[int(as_they_are * count) :] @= _whitening(features)
    return _climbed(known, pool[farthest_along(features, rows)], rows)


def farthest_along(values: FloatArray, directions: FloatArray) -> IntArray:
    """Which of the values (n, k) is farthest along each direction."""
    direction_chunk = 50  # directions at a time
    parts = [directions[i : i + direction_chunk] for i in range(0, len(directions), direction_chunk)]
    none = np.empty(0, dtype=np.intp)
    return np.concatenate([none, *((values @ part.T).argmax(axis=0) for part in parts)])


def suspected_points(known: KnownLayers, rest: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Points that are extreme along rows `rest` (n, k) of the layer before the last, on both sides.

    If the residual of the outputs, beside the known neurons, is a neuron that is hardly ever off, it is off there.
    """
    before, pool = known.lowest(len(known.layers) - 1), _random_points(CHECK_POOL, known, rng)
    rows = np.concatenate([rest, -rest])
    points = pool[farthest_along(before.features(pool), rows)]
    return np.concatenate([points, _climbed(before, points, rows)])


def _climbed(known: KnownLayers, points: FloatArray, rows: FloatArray) -> FloatArray:
    """Points (n, d) moved to where rows (n, k) of the features are larger, no farther from the origin."""
    climb_steps, climb_step = 12, 0.2  # the first step, of the distance from the origin; the others are shorter
    size = np.linalg.norm(points, axis=1, keepdims=True)
    for step in np.linspace(climb_step, 0, climb_steps, endpoint=False):
        slope = known.around(points).feature_gradients(rows)
        length = np.linalg.norm(slope, axis=1, keepdims=True)
        points = points + step * size * slope / np.where(length > 0, length, 1.0)
        points *= size / np.linalg.norm(points, axis=1, keepdims=True)
        points = known.domain.away(points, 0.0)
    return points


def _whitening(values: FloatArray) -> FloatArray:
    """A matrix (k, k): directions times it see values (n, k) with unit spread in every direction that has any."""
    _, sizes, directions = np.linalg.svd(values - values.mean(axis=0), full_matrices=False)
    kept = sizes > np.sqrt(DOUBLE.rounding) * sizes[0]
    return np.asarray(directions[kept].T @ (directions[kept] * (sizes[0] / sizes[kept, None])))


POINTS_FOR_EACH = 12  # points for every neuron, at every distance, on either side


def undetermined_points(
    known: KnownLayers, incomings: Iterable[IncomingWeights], rng: np.random.Generator
) -> FloatArray:
    """Points (n, d) at which a neuron on top of `known` depends on coefficients that are open, some for each."""
    open_pool = 10_000  # random points to choose from
    open_distances = (0.3, 1.0, 3.0, 10.0)  # from the origin, in units of the scale of use
    chosen, pool = [np.empty((0, known.dim))], rng.standard_normal((open_pool, known.dim))
    for incoming in incomings:
        check_time()
        if not incoming.closed:
            open_ = _OpenNeuron(known, incoming, _open_direction(known, incoming, pool, rng))
            pools = [known.domain.away(distance * pool, 0.0) for distance in open_distances]
            chosen += [open_.extremes(each, side) for each in pools for side in (-1.0, 1.0)]
    return np.concatenate(chosen)


def _open_direction(
    known: KnownLayers, incoming: IncomingWeights, pool: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """A combination (k,) of the open features, not negative where it is not zero at most points."""
    direction = incoming.open @ rng.standard_normal(incoming.open.shape[1])
    sign = np.sign(((known.features(pool) - incoming.start) @ direction).sum()) or 1.0
    return np.asarray(sign * direction / np.linalg.norm(direction))


@dataclass(frozen=True)
class _OpenNeuron:
    """A neuron, and a direction of its features along which its weights are open."""

    known: KnownLayers
    incoming: IncomingWeights
    direction: FloatArray

    def ratios(self, points: FloatArray) -> tuple[FloatArray, BoolArray]:
        """z/h (n,), and where h is on."""
        features = self.known.features(points)
        on = (features - self.incoming.start) @ self.direction
        usable = (on > 0) & ~self.incoming.determined(features)
        return self.incoming.values(features) / np.where(usable, on, 1.0), usable

    def extremes(self, pool: FloatArray, side: float) -> FloatArray:
        """Points with the largest ratios, or the smallest, as far from the origin as those of the pool."""
        open_steps, open_step = 25, 0.2  # the first step, of the distance from the origin
        shorter_step = 0.5  # after a step that did not help
        ratio, usable = self.ratios(pool)
        there = np.flatnonzero(usable)
        points = pool[there[np.argsort(-side * ratio[there])[:POINTS_FOR_EACH]]]
        size, step = np.linalg.norm(points, axis=1, keepdims=True), np.full((len(points), 1), open_step)
        ratio, _ = self.ratios(points)
        for _ in range(open_steps):
            moved = points + step * size * self.uphill(points, side, ratio)
            moved *= size / np.linalg.norm(moved, axis=1, keepdims=True)
            moved = self.known.domain.away(moved, 0.0)
            after, usable = self.ratios(moved)
            better = usable & (side * after > side * ratio)
            points, ratio = np.where(better[:, None], moved, points), np.where(better, after, ratio)
            step = np.where(better[:, None], step, shorter_step * step)
        return points

    def uphill(self, points: FloatArray, side: float, ratio: FloatArray) -> FloatArray:
        """Unit directions (n, d) in which the ratio changes most."""
        rows = side * (self.incoming.weights - ratio[:, None] * self.direction)
        slope = self.known.around(points).feature_gradients(rows)
        length = np.linalg.norm(slope, axis=1, keepdims=True)
        return np.asarray(slope / np.where(length > 0, length, 1.0))


@dataclass(frozen=True)
class Completion:
    """When the layers are complete.

    Arguments:
        points, share: fresh points that they have to explain: so many, or this share of a point for every parameter
            where that is more. What these do not meet is rare.
        again: part of these points in later rounds, when neurons were found since.
        rounds: how often missing neurons are looked for.
        fruitless: rounds in a row that find nothing. Networks that are recovered have one, as a rule.
        error: deviation of an answer, of the spread of the answers, that no rounding in the layers explains.
    """

    points: int = 2000
    share: float = 0.25
    again: float = 0.25
    rounds: int = 12
    fruitless: int = 4
    error: float = 1e-6

    def __post_init__(self) -> None:
        check_settings(self)


def complete(ladder: Ladder, memory: Memory, rng: np.random.Generator, settings: Completion) -> KnownLayers:
    """Look for missing neurons until fresh points are explained.

    Cost: the fresh points, about 40 rows more for each missing neuron, and a part of the fresh points again.
    """
    checks, fruitless = _Checks(ladder, rng, settings), 0
    for _ in range(settings.rounds):
        check_time()
        starts = (_Explained.at_best(known, memory, rng, settings.error) for known in ladder.starts())
        found = min(starts, key=lambda each: float(each.wrong.mean()))
        for points in checks.points(found.known, found.readout):
            if found.wrong.any():
                break
            if len(points):
                with ladder.oracle.stage("check"):
                    ladder.store.ask(points)
                found = _Explained.at_best(found.known, memory, rng, settings.error)
        if not found.wrong.any():
            return found.known
        if found.astray:
            break  # without a row that is right no segment leads to the missing neuron
        ladder.remember_fit(found.known)
        with ladder.oracle.stage("completion"):
            ladder.store.scan(found.segments(rng, found.known.domain))
            put_back, before = ladder.kept(), ladder.settled
            most = wrong_share(found.known, memory, rng, settings)
            try:
                ladder.look_again()
                worse = ladder.settled != before and wrong_share(ladder.known(), memory, rng, settings) > most
            except StageFailed:
                worse = True
            if worse:  # a neuron was lost on the way, or one was added that is none
                put_back()
        fruitless = fruitless + 1 if ladder.settled == before else 0
        if fruitless == settings.fruitless:
            break
    raise StageFailed(
        "completion", "answers that the layers do not explain", number=float(found.wrong.mean()), limit=0,
    )  # fmt: skip


@dataclass
class _Checks:
    """Points that were not asked before: first those where something is known to be open, then random and extreme ones.

    Those of earlier rounds stay in use, so that later rounds need fewer.
    """

    ladder: Ladder
    rng: np.random.Generator
    settings: Completion
    share: float = 1.0

    def points(self, known: KnownLayers, readout: Readout) -> Iterator[FloatArray]:
        most_suspects = 128  # directions
        open_ = [undetermined_points(s.known, [n.incoming for n in s.neurons], self.rng) for s in self.ladder.searches]
        yield np.concatenate(open_)
        yield suspected_points(known, leftovers(known, readout, most_suspects, self.rng), self.rng)
        count = max(self.settings.points, self.settings.share * known.parameters)
        yield check_points(known, int(self.share * count), self.rng)
        self.share = self.settings.again


def wrong_share(known: KnownLayers, memory: Memory, rng: np.random.Generator, settings: Completion) -> float:
    """Share of the answers that an output layer on top leaves unexplained."""
    return float(_Explained.by(known, memory, rng, settings.error).wrong.mean())


@dataclass(frozen=True)
class _Explained:
    """All rows there are, by how much the best fit to most of them is off, and where that is too much."""

    known: KnownLayers
    readout: Readout
    rows: FloatArray
    off: FloatArray
    wrong: BoolArray

    @classmethod
    def by(cls, known: KnownLayers, memory: Memory, rng: np.random.Generator, largest: float) -> _Explained:
        rows, answers = rows_for_fit(known, memory, rng)
        readout = fit_most(known, rows, answers)
        found = cls.of(known, readout, memory, largest)
        if not (found.wrong.any() and any(layer.open for layer in known.layers)):
            return found
        rows_each = 4  # of an unknown, and half as many of the rows that are off most
        unknowns = readout.weights.shape[1] + sum(p.basis.shape[1] for layer in known.layers for p in layer.open)
        if unknowns > MOST_FITTED:
            return found
        worst = np.argsort(-found.off)[: min(rows_each * unknowns // 2, int(found.wrong.sum()))]
        every_row, every_answer = memory.near(FITTED_DISTANCE * np.sqrt(known.dim))
        some = rng.permutation(len(rows))[: rows_each * unknowns]
        fit_rows, fit_answers = (
            np.concatenate([part[some], every[worst]]) for part, every in ((rows, every_row), (answers, every_answer))
        )
        known = with_fitted_weights(known, readout, fit_rows, fit_answers)
        rows, answers = np.concatenate([rows, every_row[worst]]), np.concatenate([answers, every_answer[worst]])
        fitted = cls.of(known, fit_most(known, rows, answers), memory, largest)
        return fitted if fitted.wrong.mean() < found.wrong.mean() else found

    @classmethod
    def of(cls, known: KnownLayers, readout: Readout, memory: Memory, largest: float) -> _Explained:
        rows, answers = memory.near(FITTED_DISTANCE * np.sqrt(known.dim))
        off = readout_deviations(known, readout, rows, answers)
        return cls(known, readout, rows, off, off > largest)

    @classmethod
    def at_best(cls, known: KnownLayers, memory: Memory, rng: np.random.Generator, largest: float) -> _Explained:
        """By the best of some fits, each to other rows: where many are wrong, a fit may follow those."""
        fits = 3
        found = cls.by(known, memory, rng, largest)
        for _ in range(1, fits):
            if not found.astray:
                break
            found = min(found, cls.by(known, memory, rng, largest), key=lambda each: float(each.wrong.mean()))
        return found

    @property
    def astray(self) -> bool:
        """True if rows that are wrong are too many: the layers are, or the fit alone."""
        return bool(self.wrong.mean() >= MOST_WRONG)

    def segments(self, rng: np.random.Generator, domain: Domain) -> Lines:
        """Segments from wrong rows, some of the worst, to rows nearby that are right, and to others that are wrong.

        The first cross the missing neuron; the second see it where it is, beyond creases that are known.
        """
        segments = 3  # scanned in a round
        neighbours = 5  # right points near a wrong one, to choose one from
        segment_beyond = 0.5  # of its length, a segment goes on at both ends: creases are better not at the very end
        wrong = np.flatnonzero(self.wrong)[np.argsort(-self.off[self.wrong])]
        chosen = rng.choice(wrong[: segments * neighbours], min(segments, len(wrong)), replace=False)
        right, among = self.rows[~self.wrong], self.rows[self.wrong]
        start, stop = [], []
        for row in self.rows[chosen]:
            nearest = right[np.argsort(np.linalg.norm(right - row, axis=1))[:neighbours]]
            apart = among[np.linalg.norm(among - row, axis=1) > 0]
            for other in (rng.choice(nearest), *rng.permutation(apart)[:1]):
                along = (other - row)[None]
                if not along.any():  # the same place, asked twice
                    continue
                before, behind = (
                    min(segment_beyond, float(domain.room(at[None], way)[0]))
                    for at, way in ((row, -along), (other, along))
                )
                start.append(row - before * along[0])
                stop.append(other + behind * along[0])
        dim = self.rows.shape[1]
        return Lines.between(np.reshape(start, (-1, dim)), np.reshape(stop, (-1, dim)), float(np.sqrt(dim)))

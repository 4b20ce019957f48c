"""Lines through points that the network does not explain, and the hyperplanes on them.

GETNEURONS of the learning paper compares gradients on the intervals of a fine grid. Here the line is searched by
adaptive subdivision, so that only pieces beside a crease are measured; gradients on its two sides give the
hyperplane. Neurons closer than the noise allows to tell apart, whose outputs cancel, leave a step: an affine map,
as small as their distance, that is switched on at one hyperplane (the corner case of Lemma 3.19). Such a gate is
found by subdivision too: of four parts the one with the step changes by more than the others, however short they
become.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.any_position.accuracy import DrawnPoints, Model, check_network, fitted_model
from reluctant.extraction.any_position.crease_planes import CreasePlanes, follow_planes
from reluctant.extraction.method import Memory, remember
from reluctant.fitting.network_fit import MOST_PARAMETERS, polish
from reluctant.geometry import Creases, DistanceNoise, Gradients, Lines, Scan, gradients, scan_lines
from reluctant.geometry.lines import BoolArray, IntArray
from reluctant.numerics import DOUBLE, FloatArray, quotient
from reluctant.oracles import Counting
from reluctant.oracles.base import Ask

Residual = Callable[[FloatArray], FloatArray]  # rows to target less network


@dataclass(frozen=True)
class LineLook:
    """New hyperplanes that a line meets, as far as gradients tell, and the noise with which it could be read."""

    planes: CreasePlanes
    creases: int
    unresolved: int  # intervals
    noise: DistanceNoise


def line_through(point: FloatArray, rng: np.random.Generator) -> Lines:
    """A long line in a random direction."""
    # A hyperplane that crosses farther out is nearly parallel to the line, and better seen on another one.
    drawn = Lines.random(rng, 1, len(point))
    far = np.array([1e3 * drawn.scale])
    return Lines(point[None], drawn.directions, drawn.scale, -far, far)


@dataclass(frozen=True)
class LineReader:
    """Reads the hyperplanes of all creases on a line. Lengths are relative to the scale of the line."""

    farthest_plane: float = 6.0  # from the origin: Gaussian inputs meet none that is farther
    gradient_step: float = 0.03  # of a piece's length, for a gradient in its middle
    crowd_gap: float = 1e-3  # creases closer than that may belong to neurons that are nearly parallel
    normal_safety: float = 4.0  # deviations of the noise of a normal
    clear_tilt: float = 0.1  # error of a normal that is still worth following
    nearest_place: float = 2.0**-36  # the shortest of the steps from the origin that double
    doublings: int = 40  # of these steps
    first_rows: int = 1200  # on a line, before noise is read from what they show
    more_rows: int = 4  # as many times more on the next scan
    dust: float = 1e-7  # creases that are mostly this close to each other are noise
    more_noise: float = 8.0  # times the noise, on the next scan
    most_scans: int = 6
    origin_slopes: int = 6  # beside the origin, where something narrow may be
    beside_origin: float = 1e-6  # length of the steps for them

    def read(
        self, ask: Ask, line: Lines, noise: DistanceNoise, rng: np.random.Generator, known: CreasePlanes
    ) -> LineLook:
        """Scan a line at whose origin something may be narrow; measure the hyperplane of each crease that is not known.

        Cost: about 100 rows, five a crease, and d + 2 for each piece beside a new crease.
        """
        scan, noise = self._scanned_line(ask, line, self._noise_at_origin(ask, line, noise, rng), rng)
        planes = self._first_planes(ask, line, scan, noise, rng, known)
        return LineLook(planes, len(scan.creases), int(scan.open.sum()), noise)

    def _scanned_line(
        self, ask: Ask, line: Lines, noise: DistanceNoise, rng: np.random.Generator
    ) -> tuple[Scan, DistanceNoise]:
        """Scan a line; if that ends in dust, the noise is larger where it passes than where it was measured."""
        most, places = self.first_rows, self._doubling_places(line.scale)
        for _ in range(self.most_scans):
            used = noise
            scan = _without_infinite(scan_lines(ask, line, used, rng, places=places, most=most))
            dusty = len(scan.creases) > 1 and bool(np.median(np.diff(scan.creases.t)) < self.dust * line.scale)
            if not scan.open.any() and not (dusty and len(scan.samples) >= most):
                break
            if len(scan.samples) >= most and not dusty:
                most *= self.more_rows
            else:
                noise = self._noise_at_slopes(noise.times(self.more_noise), self._wide_slopes(scan, line), line)
        return scan, self._noise_at_slopes(used, self._wide_slopes(scan, line), line)

    def _noise_at_slopes(self, noise: DistanceNoise, slopes: FloatArray, line: Lines) -> DistanceNoise:
        """The noise, or what roundings of the sums inside a network leave that gives slopes like these."""
        sums = DOUBLE.answer * float(np.abs(slopes).max(initial=0))
        return DistanceNoise(max(noise.near, sums * line.scale), max(noise.growth, sums))

    def _wide_slopes(self, scan: Scan, line: Lines) -> FloatArray:
        return scan.pieces.slope[scan.pieces.certified & (scan.pieces.length > self.dust * line.scale)]

    def _noise_at_origin(self, ask: Ask, line: Lines, noise: DistanceNoise, rng: np.random.Generator) -> DistanceNoise:
        """Noise where a target that is flat elsewhere is steep. Cost: 7 rows."""
        dim = line.origins.shape[1]
        steps = rng.standard_normal((self.origin_slopes, dim)) * line.scale * self.beside_origin / np.sqrt(dim)
        answers = ask(np.concatenate([line.origins, line.origins + steps]))
        return self._noise_at_slopes(
            noise, np.sqrt(dim) * (answers[1:] - answers[0]) / (line.scale * self.beside_origin), line
        )

    def _doubling_places(self, scale: float) -> FloatArray:
        """Places on both sides of the origin: of two halves of a bump one holds it, the other one of these."""
        steps = scale * self.nearest_place * 2.0 ** np.arange(self.doublings)
        return np.concatenate([-steps[::-1], [0.0], steps])

    def _first_planes(
        self,
        ask: Ask,
        line: Lines,
        scan: Scan,
        noise: DistanceNoise,
        rng: np.random.Generator,
        known: CreasePlanes,
    ) -> CreasePlanes:
        """What gradients beside the new creases tell of their hyperplanes."""
        t, jump = scan.creases.t, scan.creases.jump
        points = line.points(np.zeros(len(t), dtype=int), t)
        blur = quotient(DOUBLE.in_line * noise.at(np.abs(t)), np.linalg.norm(jump, axis=1))
        new = np.flatnonzero(~known.on(points, blur))
        if not len(new):
            return known.chosen(new)
        measured, index = self._gradients_beside(ask, line, t, new, noise, rng)
        before, after = index[new], index[new + 1]
        change = np.nan_to_num(measured.slope[after] - measured.slope[before])  # (c, m, d)
        _, sizes, directions = np.linalg.svd(change, full_matrices=False)
        ahead = np.where(directions[:, 0] @ line.directions[0] < 0, -1.0, 1.0)  # parallel neurons have one direction
        normals, sd = ahead[:, None] * directions[:, 0], np.hypot(measured.sd[before], measured.sd[after])
        tilt = quotient(self.normal_safety * sd, sizes[:, 0])
        room = _room_beside(t, self.crowd_gap * line.scale)[new] * np.abs(normals @ line.directions[0])
        offsets = -(normals * points[new]).sum(axis=1)
        steps = np.einsum("cmd,cd->cm", change, normals)
        good = (
            measured.good[before]
            & measured.good[after]
            & (tilt < self.clear_tilt)
            & (np.abs(offsets) < self.farthest_plane)
        )
        no_gate = np.zeros(len(new), dtype=bool)
        return CreasePlanes(normals, offsets, points[new], blur[new], tilt, steps, sd, room, no_gate).chosen(good)

    def _gradients_beside(
        self,
        ask: Ask,
        line: Lines,
        t: FloatArray,
        new: IntArray,
        noise: DistanceNoise,
        rng: np.random.Generator,
    ) -> tuple[Gradients, IntArray]:
        """Gradients in the middle of the pieces beside new creases, and where each piece's is among them."""
        ends = np.concatenate([[t[0] - line.scale - abs(t[0])], t, [t[-1] + line.scale + abs(t[-1])]])
        beside = np.unique(np.concatenate([new, new + 1]))
        middle, length = (ends[beside] + ends[beside + 1]) / 2, ends[beside + 1] - ends[beside]
        index = np.zeros(len(t) + 1, dtype=np.intp)
        index[beside] = np.arange(len(beside))
        steps = self.gradient_step * np.clip(length, 0, line.scale)
        places = line.points(np.zeros(len(middle), dtype=int), middle)
        return gradients(ask, places, None, steps, noise, rng), index


def _without_infinite(scan: Scan) -> Scan:
    """Without creases at infinity, where coarse answers let pieces of one slope seem to cross."""
    found = scan.creases
    kept = ~found.nowhere
    return replace(scan, creases=Creases(found.line[kept], found.t[kept], found.jump[kept], found.jump_sd[kept]))


def _room_beside(t: FloatArray, crowd: float) -> FloatArray:
    """Distance from each crease to the next; in a crowd the least of all, for elsewhere the order is another."""
    gaps = np.diff(t)
    members = np.concatenate([[0], np.cumsum(gaps > crowd)])
    room = np.minimum(np.append(np.inf, gaps), np.append(gaps, np.inf))
    least = np.full(members[-1] + 1, np.inf)
    np.minimum.at(least, members, room)
    return least[members]


@dataclass(frozen=True)
class _GateSteps:
    """Where on each line the residual steps, how much, and in how short an interval."""

    t: FloatArray
    size: FloatArray
    width: FloatArray


@dataclass(frozen=True)
class GateSearch:
    """Finds the hyperplane of the largest step on a line. Lengths are relative to the scale of the line."""

    reach: float = 4.0  # of the grid, to both sides
    samples: int = 96  # of the residual on it
    jitter: float = 0.3  # of a step of the grid: nothing is met by rule
    parts: int = 4  # of an interval, of which one is kept
    in_one_part: float = 0.35  # of the change in an interval must be in one part; a bend leaves a quarter in each
    width: float = 1e-9  # down to which a step is followed
    widest: float = 1e-3  # a change that is spread over more is no step
    lines_an_unknown: float = 2.0  # lines for each unknown of a hyperplane
    extra_lines: int = 12
    disc: float = 0.02  # where the hyperplane is sought first
    bracket: float = 12.0  # times the disc
    far_bracket: float = 30.0  # times the error of the first hyperplane
    alike: float = 0.1  # of the first step: sizes of steps on the same hyperplane
    outlier: float = 6.0  # median distances from the fitted hyperplane
    refits: int = 3  # without outliers
    spare_places: int = 4  # more than unknowns that must agree

    def find(
        self, residual: Residual, line: Lines, noise: DistanceNoise, rng: np.random.Generator
    ) -> CreasePlanes | None:
        """The hyperplane of the largest step of the residual along a line, None if there is no step.

        Cost: about 200 rows, and 100 (d + 5) more if there is one.
        """
        bracket = self._largest_change(residual, line, rng)
        first = self._follow_steps(residual, line.origins, line.directions, bracket, self.width * line.scale)
        point = line.points(np.zeros(1, dtype=int), first.t)
        least = DOUBLE.in_line * float(noise.at(np.linalg.norm(point, axis=1))[0])
        if (
            not first.size[0] > least
            or first.width[0] > self.widest * line.scale
            or not self._step_lasts(residual, line, first)
        ):
            return None
        dim = point.shape[1]
        count = int(self.lines_an_unknown * dim) + self.extra_lines
        disc = self.disc * line.scale
        starts = point + disc / np.sqrt(dim) * rng.standard_normal((count, dim))
        reach = np.full((count, 1), self.bracket * disc)
        near = self._gate_plane(residual, starts, line.directions, np.hstack([-reach, reach]), first, line.scale)
        if near is None:
            return None
        normal, centre, off = near
        starts = rng.standard_normal((count, dim))
        starts -= ((starts - centre) @ normal)[:, None] * normal
        reach = self.far_bracket * off * (1 + np.linalg.norm(starts - centre, axis=1, keepdims=True) / disc)
        far = self._gate_plane(residual, starts, normal[None], np.hstack([-reach, reach]), first, line.scale)
        return None if far is None else _gate(*far, residual(point[:1]).shape[1])

    def _step_lasts(self, residual: Residual, line: Lines, step: _GateSteps) -> bool:
        """True if what changes at a step does not change back at once: that would be a bump."""
        beside = step.t + self.widest * line.scale * np.array([-1.0, 1.0])
        before, after = residual(line.points(np.zeros(2, dtype=int), beside))
        return bool(np.linalg.norm(after - before) > self.in_one_part * step.size[0])

    def _largest_change(self, residual: Residual, line: Lines, rng: np.random.Generator) -> FloatArray:
        """The interval (1, 2) of a coarse grid in which the residual changes most beside its neighbours."""
        t = self.reach * line.scale * np.linspace(-1, 1, self.samples)
        t[1:-1] += rng.uniform(-self.jitter, self.jitter, self.samples - 2) * (t[1] - t[0])
        slopes = np.diff(residual(line.points(np.zeros(self.samples, dtype=int), t)), axis=0) / np.diff(t)[:, None]
        bends = np.linalg.norm(np.diff(slopes, axis=0), axis=1)
        k = int(np.argmax(np.minimum(bends[:-1], bends[1:]) * np.diff(t)[1:-1])) + 1  # unlike both of its neighbours
        return t[None, k : k + 2]

    def _follow_steps(
        self, residual: Residual, starts: FloatArray, directions: FloatArray, brackets: FloatArray, width: float
    ) -> _GateSteps:
        """Subdivide brackets (n, 2) along lines until they are short, or the step is spread over the rest."""
        low, high = brackets[:, 0].copy(), brackets[:, 1].copy()
        change, todo, shares = np.zeros(len(starts)), np.arange(len(starts)), np.linspace(0, 1, self.parts + 1)
        while len(todo):
            t = low[todo, None] + shares * (high - low)[todo, None]
            rows = starts[todo, None] + t[:, :, None] * directions[todo, None]
            values = residual(rows.reshape(-1, starts.shape[1])).reshape(len(todo), self.parts + 1, -1)
            steps = np.diff(values, axis=1)
            off = np.linalg.norm(steps - np.median(steps, axis=1, keepdims=True), axis=2)
            best, each = np.argmax(off, axis=1), np.arange(len(todo))
            whole = off[each, best] > self.in_one_part * change[todo]
            todo, best, each = todo[whole], best[whole], each[whole]
            low[todo], high[todo], change[todo] = t[each, best], t[each, best + 1], off[each, best]
            todo = todo[high[todo] - low[todo] > width]
        return _GateSteps((low + high) / 2, change, high - low)

    def _gate_plane(
        self,
        residual: Residual,
        starts: FloatArray,
        directions: FloatArray,
        brackets: FloatArray,
        first: _GateSteps,
        scale: float,
    ) -> tuple[FloatArray, FloatArray, float] | None:
        """Normal, centre and uncertainty of the hyperplane through the steps of many lines; None if it is none."""
        directions = np.broadcast_to(directions, starts.shape)
        seen = self._follow_steps(residual, starts, directions, brackets, self.width * scale)
        kept = self._agreeing_steps(seen, first)
        points, dim = starts + seen.t[:, None] * directions, starts.shape[1]
        for _ in range(self.refits):
            if kept.sum() < dim + self.spare_places:
                return None
            centre = points[kept].mean(axis=0)
            normal = np.linalg.svd(points[kept] - centre, full_matrices=False)[2][-1]
            distance = np.abs((points - centre) @ normal)
            typical = float(np.median(distance[kept])) + float(np.median(seen.width[kept]))
            kept = kept & (distance <= self.outlier * typical)
        return normal, centre, self.outlier * typical

    def _agreeing_steps(self, seen: _GateSteps, first: _GateSteps) -> BoolArray:
        """Steps that are as large as the first one, more or less."""
        alike = (seen.size > self.alike * first.size[0]) & (seen.size < first.size[0] / self.alike)
        return np.asarray(alike & (seen.width < first.width[0] / self.alike))


def _gate(normal: FloatArray, centre: FloatArray, off: float, outputs: int) -> CreasePlanes:
    size = float(np.sqrt(len(normal)))
    one = np.ones(1)
    return CreasePlanes(
        normal[None], np.array([-normal @ centre]), centre[None], off * one, off / size * one,
        np.zeros((1, outputs)), np.inf * one, one, np.ones(1, dtype=bool),
    )  # fmt: skip


READER, GATES = LineReader(), GateSearch()
COMPLETE = 1e-4  # error of a network that lacks no neuron: all parameters are fitted from there on
FARTHEST_FITTED = 5.0  # from the origin, in typical inputs, of the answers they are fitted to
WORST_POINTS = 8  # unexplained points, of which one is chosen for the next line


def improve_by_lines(
    oracle: Counting,
    model: Model,
    drawn: DrawnPoints,
    noise: DistanceNoise,
    rng: np.random.Generator,
    *,
    eps: float,
    patience: int,
    keep: Callable[[Model], Model],
) -> Model:
    """Add the hyperplanes of one line after the other; the best model met on the way.

    Ends at an error of eps, or after `patience` lines in a row that make nothing better; `keep` gets each that is
    the best so far.

    Cost: for each line what `LineReader.read` and `follow_planes` ask, and for each that brings something a new fit.
    """
    most_lines = 40
    empty_line = 2  # a line that brings no hyperplane counts for so many that make nothing better
    better_share = 0.5  # of the error before
    best, waiting = model, 0
    oracle, memory = remember(oracle)
    for _ in range(most_lines):
        if best.good_for(eps) or not len(model.checked.unexplained) or waiting >= patience:
            break
        found = _new_planes(oracle, model, noise, rng)
        if len(found):
            model = fitted_model(oracle, model.planes + found, drawn, noise, rng)
            model = model if model.good_for(eps) else _polished(oracle, model, memory, drawn, noise, rng)
        better = model.checked.accuracy.error < better_share * best.checked.accuracy.error
        waiting = 0 if better else waiting + (1 if len(found) else empty_line)
        best = keep(model) if model.better_than(best) else best
    return best


def _polished(
    oracle: Counting,
    model: Model,
    memory: Memory,
    drawn: DrawnPoints,
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> Model:
    """All parameters fitted to all answers, if nothing is missing any more and that is better."""
    if model.checked.accuracy.error > COMPLETE or model.network.parameters > MOST_PARAMETERS:
        return model
    network = polish(model.network, *memory.near(FARTHEST_FITTED * np.sqrt(oracle.dim)), noise)
    polished = Model(network, model.planes, check_network(oracle, network, drawn, noise, rng))
    return polished if polished.better_than(model) else model


def _new_planes(oracle: Counting, model: Model, noise: DistanceNoise, rng: np.random.Generator) -> CreasePlanes:
    """Hyperplanes on a line through one of the worst points that are not among the model's."""
    worst = min(WORST_POINTS, model.checked.standing_out)
    line = line_through(model.checked.rows[rng.choice(model.checked.unexplained[:worst])], rng)
    bends = model.planes.chosen(~model.planes.gate)  # a gate hides creases that may be separable after all
    with oracle.stage("lines"):
        looked = READER.read(oracle.query, line, noise, rng, bends)
    with oracle.stage("hyperplanes"):
        found = follow_planes(oracle.query, looked.planes, looked.noise, rng)
    found = found.chosen(~found.close_to(bends))
    return found if len(found) else _new_gate(oracle, model, line, noise, rng)


def _new_gate(
    oracle: Counting,
    model: Model,
    line: Lines,
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> CreasePlanes:
    """A step on a line whose creases could not be followed, or nothing."""
    with oracle.stage("gates"):
        gate = GATES.find(lambda rows: oracle.query(rows) - model.network(rows), line, noise, rng)
    none = model.planes.chosen(np.zeros(len(model.planes), dtype=bool))
    return none if gate is None or gate.close_to(model.planes).any() else gate

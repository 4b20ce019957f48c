"""Hyperplanes that lines of a small frame share: first layers of one or two hidden layers.

All lines lie in one affine subspace of four dimensions. Beside each kink a gradient in these directions is measured;
its jump is a multiple of the hyperplane's normal. Kinks of one neuron of the first layer agree in normal and offset
on all lines, and the hyperplane is a kink wherever a line crosses it. Those of a second layer bend on the way.

`cross_subspace` finds one hidden layer this way where a line shows too many neurons to grow from. Two close neurons
look like one on a crowded line, but other lines cross them elsewhere. A fit to points all over the frame adds the
neurons that few lines show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.few_digits.answer_store import Asked, central_gradients, steps_both_ways
from reluctant.extraction.few_digits.growth import KnownSubspace, questioned, random_points
from reluctant.extraction.few_digits.incomplete_lines import LineReading, rank_one, read_incomplete_line
from reluctant.extraction.few_digits.noisy_line import OnLine
from reluctant.extraction.few_digits.subspace_fit import (
    Points,
    fit_hyperplanes,
    misfit,
    with_missing_neurons,
)
from reluctant.extraction.method import StageFailed
from reluctant.geometry import Frame
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import FloatArray

SMALL_FRAME = 4  # dimensions: enough against chance matches of normals, and few rows a piece
LINE_SAMPLES, MOST_SAMPLES = 160, 1500
FEWEST_LINES, MOST_LINES = 5, 16
NORMAL_ERROR = 0.02  # from here on normals match by chance
HITS_A_MISS = 2.0  # crossings that are kinks, for each that is not
GRADIENT_STEP = 0.35  # of a piece


@dataclass(frozen=True)
class CrossedLine:
    """A line origin + t · size · direction of the small frame, and its reading."""

    origin: FloatArray
    direction: FloatArray
    size: float
    reading: LineReading

    def at(self, t: FloatArray) -> FloatArray:
        """Coordinates (n, k) in the small frame."""
        return self.origin + np.atleast_1d(t)[:, None] * self.size * self.direction


@dataclass(frozen=True, eq=False)
class NormalKink:
    """A kink with unit normal n ± error at the point y ± sd; middles (2,) and lengths (2,) of the runs beside it."""

    line: int
    normal: FloatArray
    error: float
    y: FloatArray
    sd: float
    middles: FloatArray
    lengths: FloatArray


def _matches(kinks: list[NormalKink]) -> BoolArray:
    """Whether two kinks (n, n) can lie on one hyperplane."""
    normals, points = np.array([kink.normal for kink in kinks]), np.array([kink.y for kink in kinks])
    errors, sds = np.array([kink.error for kink in kinks]), np.array([kink.sd for kink in kinks])
    turned = 2 - 2 * np.abs(normals @ normals.T)  # squares of the distance of normals, of either sign
    close = np.sqrt(np.maximum(turned, 0)) < 5 * (errors[:, None] + errors) + 1e-6
    i, j = np.nonzero(close)
    apart = points[j] - points[i]
    away = np.linalg.norm(apart, axis=1)
    for one in (i, j):
        off = np.abs((normals[one] * apart).sum(axis=1))
        close[i, j] &= off < 6 * (errors[one] * away + sds[i] + sds[j])
    return np.asarray(close)


@dataclass(frozen=True)
class Hyperplane:
    """normal · y + offset = 0 in the small frame; crossings of lines that are kinks, and that are not."""

    normal: FloatArray
    offset: float
    error: float
    kinks: list[NormalKink]
    hits: int
    misses: int

    @property
    def share(self) -> float:
        """Part of its crossings that are kinks."""
        return self.hits / (self.hits + self.misses + 0.5)


class SmallFrame:
    """Lines in a frame of few dimensions, their kinks with normals, and the hyperplanes that these share.

    neurons: about as many creases as a line is known to have; lines of many begin with more samples. off_centre: how
    far the frame passes the origin, in sizes of an input; biases of zero make all hyperplanes meet there.
    """

    def __init__(self, asked: Asked, neurons: int = 0, off_centre: float | None = None) -> None:
        samples_a_neuron, most_a_neuron = 3, 24
        self.samples = max(LINE_SAMPLES, samples_a_neuron * neurons)
        self.most_samples = max(MOST_SAMPLES, most_a_neuron * neurons)
        rng, d = asked.rng, asked.view.dim
        k = min(SMALL_FRAME, d)
        basis = asked.view.directions(rng, k)
        off_centre = asked.view.off_centre if off_centre is None else off_centre
        origin = off_centre * asked.view.sample(rng, 1)[0] if d > k else np.zeros(d)
        self.asked, self.frame = asked, Frame(origin, basis)
        self.lines: list[CrossedLine] = []
        self.kinks: list[NormalKink] = []
        self.kinks_read = 0

    def find(self, least_share: float = 0.0) -> list[Hyperplane]:
        """Read lines until two more add no hyperplane and nearly each has three kinks. Cost: 15 to 25 rows a kink.

        Two that show fewer kinks than there are hyperplanes are not enough: answers are constant on parts of them.
        least_share: hyperplanes for each kink of a line, below which few lines are enough.
        """
        enough_kinks, still_enough, rare_share = 3, 2, 0.02
        found: list[Hyperplane] = []
        still = kinks = 0
        with self.asked.view.oracle.stage("first layer"):
            for lines in range(1, MOST_LINES + 1):
                self.read_line()
                if lines < FEWEST_LINES:
                    continue
                before, found = len(found), self.hyperplanes()
                still, kinks = (still + 1, kinks) if len(found) == before else (0, len(self.kinks))
                if len(found) < least_share * self.kinks_a_line:
                    break
                rare = sum(len(plane.kinks) < enough_kinks for plane in found)
                seen = len(self.kinks) - kinks >= len(found) > 0
                if still >= still_enough and seen and rare <= rare_share * len(found):
                    break
        return found

    def find_more(self, lines: int) -> list[Hyperplane]:
        """The hyperplanes after so many lines more."""
        with self.asked.view.oracle.stage("first layer"):
            for _ in range(lines):
                self.read_line()
        return self.hyperplanes()

    @property
    def kinks_a_line(self) -> float:
        """Kinks that a line shows, in the mean."""
        return self.kinks_read / max(len(self.lines), 1)

    def read_line(self) -> None:
        """One more random line, with the normals of its kinks."""
        size = self.asked.view.size
        origin, direction = self.asked.view.random_line(self.frame, self.asked.rng)
        places = self.asked.view.line_places(self.frame.points(origin), direction @ self.frame.basis, self.samples)

        def ask(t: FloatArray) -> tuple[FloatArray, FloatArray]:
            return self.asked.ask(self.frame.points(origin + t[:, None] * size * direction))

        line = CrossedLine(origin, direction, size, read_incomplete_line(ask, places, most=self.most_samples))
        self.lines.append(line)
        self.kinks_read += len(line.reading.kinks)
        self.kinks += self._normals(line, len(self.lines) - 1)

    def _normals(self, line: CrossedLine, number: int) -> list[NormalKink]:
        reading, found = line.reading, []
        if not reading.kinks:
            return []
        beside, middles, lengths = reading.around(reading.kinks)
        points, steps = self.frame.points(line.at(middles)), GRADIENT_STEP * lengths * line.size
        steps = steps_both_ways(self.asked.view, points, self.frame.basis, steps[:, None])
        slopes, sds = central_gradients(self.asked.ask, points, self.frame.basis, steps)
        place = {run: i for i, run in enumerate(beside)}
        for kink in reading.kinks:
            pair = [place[kink.left], place[kink.right]]
            sd = float(np.linalg.norm(sds[pair]))
            normal, amount, left = rank_one((slopes[pair[1]] - slopes[pair[0]]).T)
            size = float(np.linalg.norm(amount))
            if not sd < NORMAL_ERROR * size or left > 6 * sd:
                continue
            y = line.at(np.array([kink.t]))[0]
            found.append(NormalKink(number, normal, sd / size, y, kink.sd * line.size, middles[pair], lengths[pair]))
        return found

    def hyperplanes(self) -> list[Hyperplane]:
        """Groups of kinks that agree, the best known first, and that lines confirm."""
        kinks, found = sorted(self.kinks, key=lambda kink: kink.error), []
        if not kinks:
            return []
        matches, lines = _matches(kinks), np.array([kink.line for kink in kinks])
        free = np.ones(len(kinks), dtype=bool)
        for i in range(len(kinks)):
            others = np.flatnonzero(matches[i] & free & (lines != lines[i]))
            if not free[i] or not len(others):
                continue
            group = [i, *others[np.sort(np.unique(lines[others], return_index=True)[1])]]
            plane = self._joined([kinks[j] for j in group])
            if plane.hits >= max(3, HITS_A_MISS * plane.misses):
                free[group] = False
                found.append(plane)
        return found

    def _joined(self, kinks: list[NormalKink]) -> Hyperplane:
        """The weighted mean of the normals, and through all positions."""
        errors = np.array([kink.error for kink in kinks])
        weights = errors**-2.0
        normals = np.array([kink.normal * np.sign(kink.normal @ kinks[0].normal) for kink in kinks])
        mean = (weights[:, None] * normals).sum(axis=0) / weights.sum()
        mean, error, k = mean / np.linalg.norm(mean), float(weights.sum() ** -0.5), len(mean)
        points, sds = np.array([kink.y for kink in kinks]), np.array([max(kink.sd, 1e-9) for kink in kinks])
        equations = np.concatenate(
            [
                np.column_stack([points, np.ones(len(points))]) / sds[:, None],
                np.column_stack([np.eye(k), np.zeros(k)]) / error,
            ]
        )
        solution = np.linalg.lstsq(equations, np.concatenate([np.zeros(len(points)), mean / error]), rcond=None)[0]
        solution = solution / np.linalg.norm(solution[:k])
        hits, misses = self._crossings(solution[:k], float(solution[k]), error)
        return Hyperplane(solution[:k], float(solution[k]), error, kinks, hits, misses)

    def _crossings(self, normal: FloatArray, offset: float, error: float) -> tuple[int, int]:
        """How many of the lines have a kink where they cross the hyperplane, and how many none."""
        hits = misses = 0
        for line in self.lines:
            slope, samples = float(normal @ line.direction) * line.size, line.reading.samples.t
            t = -(float(normal @ line.origin) + offset) / slope if slope else np.inf
            if not samples[0] < t < samples[-1]:
                continue
            away = float(np.linalg.norm(line.at(np.array([t]))))
            shown = line.reading.shows(t, 6 * error * away / abs(slope) + 1e-5 * (1 + abs(t)))
            hits, misses = hits + (shown is True), misses + (shown is False)
        return hits, misses


FIRST_SHARE, LEAST_SHARE = 0.6, 0.85  # hyperplanes for each kink of a line, by few lines and all: two layers have fewer
MOST_MISSING = 12  # neurons that the fit adds


def cross_subspace(line: OnLine, rng: np.random.Generator) -> KnownSubspace:
    """The network in a small frame, of about as many neurons as a line shows. Cost: about 220 rows a neuron."""
    fitted_a_neuron = 40  # answers of the lines that are fitted
    view = line.view
    asked = Asked(view, rng)
    # Through the origin: off the frame the mean of random inputs is zero, which the last fit relies on.
    small = SmallFrame(asked, line.network.widths[1], off_centre=0.0)
    planes, wanted = small.find(FIRST_SHARE), LEAST_SHARE * small.kinks_a_line
    if not planes or len(planes) < wanted:
        raise StageFailed("hyperplanes", "kinks that lines do not share", number=len(planes), limit=max(1, wanted))
    with view.oracle.stage("subspace"):
        points = _crossed_points(asked, small.frame, fitted_a_neuron * len(planes), rng)
        points += random_points(view, small.frame, len(planes), rng)
        network = fit_hyperplanes(*_normals_and_offsets(planes), points)
        if _unexplained(misfit(network, points)):
            network = with_missing_neurons(network, points, MOST_MISSING, rng)
        return questioned(view, small.frame, network, points, rng)


def _crossed_points(asked: Asked, frame: Frame, count: int, rng: np.random.Generator) -> Points:
    """Some answers on the lines and beside them."""
    y, answers, _ = asked.in_frame(frame)
    chosen = rng.permutation(len(y))[:count]
    y, answers = y[chosen], (answers * asked.unit)[chosen]
    return Points(y, answers, 1 / asked.view.noise.at(np.linalg.norm(y, axis=1)))


def _normals_and_offsets(planes: list[Hyperplane]) -> tuple[FloatArray, FloatArray]:
    return np.array([plane.normal for plane in planes]), np.array([plane.offset for plane in planes])


def _unexplained(left: FloatArray) -> bool:
    doubtful_chi, largest = 1.3, 12.0
    return bool(np.sqrt(np.mean(left**2)) > doubtful_chi or left.max() > largest)

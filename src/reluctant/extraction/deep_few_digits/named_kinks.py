"""Both layers of two, if the first has more neurons than there are inputs: the outputs of a kink name its neuron.

A second-layer neuron bends all outputs along one direction, whatever is on below it. Kinks of lines with the same
direction are its kinks, and each gives as many equations for its weights as there are inputs. On which side neurons of
the first layer are on shows in the affine terms that wrong sides leave. Cost: no row for a name, 4d + 2 for a jump.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from reluctant.extraction.deep_few_digits.first_hyperplanes import FirstLayer, KinkGradients, larger_frame
from reluctant.extraction.deep_few_digits.kink_rows import is_of_first
from reluctant.extraction.deep_few_digits.orthant import ROW_ERROR, SecondRow
from reluctant.extraction.few_digits.answer_store import Asked
from reluctant.extraction.few_digits.incomplete_lines import rank_one, read_incomplete_line
from reluctant.extraction.few_digits.shared_hyperplanes import LINE_SAMPLES, MOST_SAMPLES, Hyperplane, SmallFrame
from reluctant.extraction.method import StageFailed
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import FloatArray

NAME_ERROR, NAME_ERRORS = 3e-3, 3.0  # of a kink that may name a neuron; and by how many two of one neuron may differ
LINES, ROUNDS = 6, 6  # that are read before kinks are measured; and how often
RARE_LINES = 18  # for neurons that are rarely on or rarely off; they need no gradients
AIMED, AIMED_SAMPLES = 3, 41  # lines for a neuron in a round
AIMED_REACH, AIMED_AWAY = 0.6, 0.3  # of an input: how far they go, and pass a kink of a neuron with few
JUST_ON = 0.2  # of a usual value of the first layer, where a line is aimed at a unit
ALONE_ROUNDS = 2  # in which lines are aimed at a name that few kinks have: it may be none
FEWEST_KINKS, MOST_KINKS = 3, 14  # measured for a neuron; each doubles the signs that are tried
SIDE_NEURONS, SIDE_KINKS = 8, 8  # that tell the sides
FARTHEST_SIDE = 0.1  # from 0 or 1: 4e-4 when right
PRIOR = 10.0  # deviation of a weight that no kink tells, in usual weights
CONSISTENT = 5.0  # deviations, root mean square, that the equations of one neuron leave at most: 1 when right
WELL_KNOWN = 0.02  # error of a weight over the size of all: the fit needs two digits
MOST_OPEN = 0.3  # of the weights of a row


@dataclass(frozen=True, eq=False)
class _NamedKink:
    """A kink at y (k,) where slopes change along the unit output (m,) ± error.

    middles (2, k) and lengths (2,): of the straight pieces beside it.
    """

    y: FloatArray
    output: FloatArray
    error: float
    middles: FloatArray
    lengths: FloatArray


@dataclass(frozen=True)
class _Jump:
    """A jump ± of the gradient, along the normal n (k,), at y (k,)."""

    y: FloatArray
    n: FloatArray
    error: float


@dataclass(frozen=True)
class _Solution:
    """Weights of a second-layer neuron [v, c], or [v, s, c]; a root of their covariance; what the equations leave."""

    x: FloatArray
    root: FloatArray
    chi: float

    def open(self, h: int) -> BoolArray:
        """Which of the first h weights no kink tells."""
        errors = np.linalg.norm(self.root[:h], axis=1)
        return np.asarray(~(errors < WELL_KNOWN * np.linalg.norm(self.x[:h])))

    def row(self, h: int) -> SecondRow:
        """Of norm one."""
        v, errors = np.where(self.open(h), 0.0, self.x[:h]), np.linalg.norm(self.root[:h], axis=1)
        size = float(np.linalg.norm(v))
        return SecondRow(v / size, float(self.x[-1]) / size, float(np.linalg.norm(errors)) / size, errors / size)


def find_wide_layers(asked: Asked, small: SmallFrame, planes: list[Hyperplane]) -> tuple[FirstLayer, list[SecondRow]]:
    """The first layer with its sides, and rows of the second."""
    return _WideLayers(asked, small, planes).found()


class _WideLayers:
    """Rows of the first layer, kinks of the second by their names, and their jumps."""

    def __init__(self, asked: Asked, small: SmallFrame, planes: list[Hyperplane]) -> None:
        self.asked, self.frame = asked, larger_frame(asked, small.frame, len(planes))
        self.gradients = KinkGradients(asked, small, self.frame)
        rows = self.gradients.rows(planes)
        known = [(plane, row) for plane, row in zip(planes, rows, strict=True) if row is not None]
        sizes = np.array([np.linalg.norm(row.normal) for _, row in known])
        self.w = np.array([row.normal for _, row in known]) / sizes[:, None]
        self.b = np.array([plane.offset for plane, _ in known]) / sizes
        self.row_error = float(np.median([row.error for _, row in known]))
        self.kinks: list[_NamedKink] = []
        self.jumps: dict[_NamedKink, _Jump | None] = {}  # None where no step was straight

    @property
    def width(self) -> int:
        """Neurons of the first layer."""
        return len(self.b)

    @property
    def size(self) -> int:
        """Directions of the frame."""
        return self.w.shape[1]

    def found(self) -> tuple[FirstLayer, list[SecondRow]]:
        """Lines, sides, weights, and more lines where a weight is open."""
        with self.asked.view.oracle.stage("second layer"):
            farthest = self._turn()
            self._read_lines(RARE_LINES)
            h = self.width
            for turn in range(ROUNDS):
                settled = [(group, self._settled(group)) for group in self._groups()]
                lines = [
                    line
                    for group, solution in settled
                    if solution is not None or turn < ALONE_ROUNDS
                    for line in self._aimed_lines(group, solution)
                ]
                if turn + 1 == ROUNDS or not lines:
                    break
                for origin, direction in lines:
                    self._read_line(origin, direction, np.linspace(-AIMED_REACH, AIMED_REACH, AIMED_SAMPLES))
        known = [s for _, s in settled if s is not None and s.chi < CONSISTENT and s.open(h).mean() < MOST_OPEN]
        if not known:
            raise StageFailed("second layer", "no neuron with kinks enough", number=0, limit=1)
        return FirstLayer(self.frame, self.w, self.b, farthest, 0.0), [s.row(h) for s in self._apart(known)]

    def _apart(self, solutions: list[_Solution]) -> list[_Solution]:
        """One of those that agree on the weights they share: kinks with a poor name may repeat a neuron."""
        same, h = 0.1, self.width
        kept: list[_Solution] = []
        for solution in sorted(solutions, key=lambda solution: int(solution.open(h).sum())):
            told, v = ~solution.open(h), solution.x[:h]
            units = [other.x[:h][told] / np.linalg.norm(other.x[:h][told]) for other in kept]
            cosines = [abs(unit @ v[told]) / np.linalg.norm(v[told]) for unit in units]
            if not any(cosine > 1 - same**2 / 2 for cosine in cosines):
                kept.append(solution)
        return kept

    def _turn(self) -> float:
        """Turn rows of the first layer to the sides where they are on; how far from 0 or 1 the worst of them was."""
        farthest = np.inf
        for _ in range(ROUNDS):
            self._read_lines(LINES)
            sides = self._sides([group for group in self._groups() if len(group) >= FEWEST_KINKS])
            farthest = float(np.minimum(np.abs(sides), np.abs(1 - sides)).max())
            if farthest < FARTHEST_SIDE:
                signs = np.where(sides > 0.5, -1.0, 1.0)
                self.w, self.b = self.w * signs[:, None], self.b * signs
                return farthest
        raise StageFailed("sides", "neither side of a first-layer neuron", number=farthest, limit=FARTHEST_SIDE)

    def _read_lines(self, count: int) -> None:
        """Random lines, as far out as creases may be."""
        view = self.asked.view
        for _ in range(count):
            origin, direction = view.random_line(self.frame, self.asked.rng)
            places = view.line_places(self.frame.points(origin), direction @ self.frame.basis, LINE_SAMPLES)
            self._read_line(origin, direction, places)

    def _aimed_lines(self, group: list[_NamedKink], solution: _Solution | None) -> list[tuple[FloatArray, FloatArray]]:
        """Origins and directions (k,) across the crease of a neuron, where a unit with an open weight is just on."""
        rng, size = self.asked.rng, self.asked.view.size
        if solution is None:
            away = AIMED_AWAY * size * rng.standard_normal((AIMED, self.size)) / np.sqrt(self.size)
            ways = rng.standard_normal((AIMED, self.size))
            return [(group[0].y + move, way / np.linalg.norm(way)) for move, way in zip(away, ways, strict=True)]
        found: list[tuple[FloatArray, FloatArray]] = []
        y = np.array([kink.y for kink in group])
        for unit in rng.permutation(np.flatnonzero(solution.open(self.width))):
            nearest = y[np.argsort(-(y @ self.w[unit]))[:AIMED]]
            walks = (self._walked(start, solution, int(unit)) for start in nearest)
            found += [walk for walk in walks if walk is not None][:1]
            if len(found) == AIMED:
                break
        return found

    def _walked(self, y: FloatArray, solution: _Solution, unit: int) -> tuple[FloatArray, FloatArray] | None:
        """Along the crease, as far as its weights are known, to where the unit is just on; the place and the normal."""
        steps, longest, least_gain = 100, 0.1 * self.asked.view.size, 1e-3
        just_on = JUST_ON * self.asked.view.size / np.sqrt(self.size)
        open_ = solution.open(self.width)
        v, c = np.where(open_, 0.0, solution.x[: self.width]), float(solution.x[-1])
        others = self.w[open_ & (np.arange(self.width) != unit)], self.b[open_ & (np.arange(self.width) != unit)]
        for _ in range(steps):
            z = self.w @ y + self.b
            n = (v * (z > 0)) @ self.w
            square = float(n @ n)
            if not square > 0:
                return None
            y = y - (v @ np.maximum(z, 0) + c) / square * n
            missing, open_values = just_on - float(self.w[unit] @ y + self.b[unit]), others[0] @ y + others[1]
            if missing <= 0:
                off = abs(v @ np.maximum(self.w @ y + self.b, 0) + c) / np.sqrt(square)
                return (y, n / np.sqrt(square)) if off < longest and not (open_values > 0).any() else None
            along = self.w[unit] - (self.w[unit] @ n) / square * n
            along -= others[0].T @ np.where(open_values > -longest / 2, 0.5, 0.0)  # they have to stay off
            length, gain = float(np.linalg.norm(along)), float(self.w[unit] @ along)
            if not gain > least_gain * length:
                return None
            y = y + min(1.1 * missing / gain, longest / length) * along
        return None

    def _read_line(self, origin: FloatArray, direction: FloatArray, places: FloatArray) -> None:
        """One more line in all directions, with the names of its kinks. Cost: about 7 rows a kink."""
        view, asked = self.asked.view, self.asked
        way = view.size * direction

        def ask(t: FloatArray) -> tuple[FloatArray, FloatArray]:
            return asked.ask(self.frame.points(origin + t[:, None] * way))

        reading = read_incomplete_line(ask, places, most=MOST_SAMPLES)
        for kink in reading.kinks:
            pair = [reading.runs[kink.left], reading.runs[kink.right]]
            change, sd = pair[1].slope - pair[0].slope, float(np.hypot(pair[0].slope_sd, pair[1].slope_sd))
            bend = float(np.linalg.norm(change))
            y, middles = origin + kink.t * way, np.array([origin + run.middle * way for run in pair])
            place = 6 * kink.sd * view.size + 5 * self.row_error * float(np.linalg.norm(y))
            if sd < NAME_ERROR * bend and not is_of_first(asked, self.w, self.b, y, place):
                lengths = np.array([run.length for run in pair]) * view.size
                self.kinks.append(_NamedKink(y, change / bend, sd / bend, middles, lengths))

    def _groups(self) -> list[list[_NamedKink]]:
        """Kinks of each neuron of the second layer, those with the best known names first."""
        groups: list[list[_NamedKink]] = []
        for kink in sorted(self.kinks, key=lambda kink: kink.error):
            near = [
                group
                for group in groups
                if np.linalg.norm(group[0].output - kink.output) < NAME_ERRORS * (group[0].error + kink.error) + 1e-4
            ]
            if not near:
                groups.append([kink])
            elif len(near) == 1:  # else its name is not known well enough
                near[0].append(kink)
        return sorted(groups, key=len, reverse=True)

    def _measure(self, kinks: list[_NamedKink]) -> None:
        """Jumps at these kinks. Cost: 4k + 2 rows each."""
        kinks = [kink for kink in kinks if kink not in self.jumps]
        if not kinks:
            return
        middles, lengths = np.array([kink.middles for kink in kinks]), np.array([kink.lengths for kink in kinks])
        for kink, row in zip(kinks, self.gradients.between(middles, lengths), strict=True):
            self.jumps[kink] = None
            if row is not None and row.error < ROW_ERROR:
                normal, amount, left = rank_one(row.gradients[1] - row.gradients[0])
                size = float(np.linalg.norm(amount))
                if left < 6 * row.error * size:
                    error = float(np.hypot(row.error, self.row_error))
                    self.jumps[kink] = _Jump(kink.y, size * normal, error)

    def _known(self, group: list[_NamedKink]) -> list[_Jump]:
        jumps = (self.jumps.get(kink) for kink in group)
        return [jump for jump in jumps if jump is not None][:MOST_KINKS]

    def _settled(self, group: list[_NamedKink]) -> _Solution | None:
        """The weights of a neuron, after so many of its kinks that they are known well."""
        wanted = FEWEST_KINKS
        while True:
            jumps = self._known(group)
            solution = self._solved(jumps, affine=False) if len(jumps) >= FEWEST_KINKS else None
            left = [kink for kink in group if kink not in self.jumps]
            if solution is not None:
                wanted, open_ = 1, solution.open(self.width)
                left = [kink for kink in left if (self.w[open_] @ kink.y + self.b[open_] > 0).any()]
            if not left or len(jumps) >= MOST_KINKS:
                return solution
            self._measure(self._most_telling(left, jumps, wanted, affine=False))

    def _sides(self, groups: list[list[_NamedKink]]) -> FloatArray:
        """For each neuron of the first layer 1 if it is on where its row is negative, 0 if not, as far as kinks tell.

        On the wrong side max(-z, 0) = max(z, 0) - z, which leaves s = -sum of v w over those neurons.
        """
        rounds, h, k = 4, self.width, self.size
        solutions = []
        for group in groups[:SIDE_NEURONS]:
            self._measure(self._most_telling(group, [], SIDE_KINKS, affine=True))
            jumps = self._known(group)
            if len(jumps) >= FEWEST_KINKS:
                solutions.append(self._solved(jumps, affine=True))
            solutions = [solution for solution in solutions if solution.chi < CONSISTENT]
        idle = self._idle(solutions)
        if idle.any():  # hyperplanes that are none of the first layer
            self.w, self.b = self.w[~idle], self.b[~idle]
            return self._sides(groups)
        f = found = np.full(h, 0.5)
        for _ in range(rounds):
            matrix, right = [np.eye(h)], [np.full(h, 0.5)]
            for solution in solutions:
                v, s = solution.x[:h], solution.x[h : h + k]
                root = (self.w * f[:, None]).T @ solution.root[:h] + solution.root[h : h + k]
                floor = 1e-3 * np.linalg.norm(s) / np.sqrt(k)
                whiten = np.linalg.inv(np.linalg.cholesky(root @ root.T + floor**2 * np.eye(k)))
                matrix.append(whiten @ (self.w * v[:, None]).T)
                right.append(-whiten @ s)
            found = np.linalg.lstsq(np.concatenate(matrix), np.concatenate(right), rcond=None)[0]
            f = (found > 0.5).astype(np.float64)
        return found

    def _idle(self, solutions: list[_Solution]) -> BoolArray:
        """Which units (h,) of the first layer no neuron reads."""
        least, h = 1e-3, self.width
        read, unread = np.zeros((2, h), dtype=bool)
        for solution in solutions:
            sizes, sds = np.abs(solution.x[:h]), np.linalg.norm(solution.root[:h], axis=1)
            small = sizes < 5 * sds + least * np.linalg.norm(sizes)
            read |= ~solution.open(h) & ~small
            unread |= ~solution.open(h) & small
        return np.asarray(unread & ~read)

    def _equations(self, jump: _Jump, size: float, affine: bool) -> tuple[FloatArray, FloatArray]:
        """Matrix (k + 1, unknowns) and right side of a jump of this size, over their noise."""
        k, z = self.size, self.w @ jump.y + self.b
        normal, place = (self.w * (z > 0)[:, None]).T, np.maximum(z, 0)
        if affine:
            normal, place = np.column_stack([normal, np.eye(k)]), np.append(place, jump.y)
        matrix = np.concatenate([np.column_stack([normal, np.zeros(k)]), np.append(place, 1.0)[None]])
        weights = np.full(k + 1, np.sqrt(k) / (jump.error * size))
        weights[k] *= np.sqrt(k) / np.linalg.norm(np.append(jump.y, 1.0))
        return matrix * weights[:, None], np.append(jump.n, 0.0) * weights

    def _prior(self, usual: float, affine: bool) -> FloatArray:
        """Deviations (unknowns,) of the weights, the affine term and the constant, if jumps are of this size."""
        weights = np.full(self.width, PRIOR * usual / np.sqrt(self.width / 2))
        term = np.full(self.size if affine else 0, PRIOR**2 * usual)
        return np.concatenate([weights, term, [PRIOR**2 * usual * self.asked.view.size]])

    def _solved(self, jumps: list[_Jump], affine: bool) -> _Solution:
        """The weights that explain these jumps, with the signs of the jumps that leave least."""
        usual = float(np.median([np.linalg.norm(jump.n) for jump in jumps]))
        parts = [self._equations(jump, float(np.linalg.norm(jump.n)), affine) for jump in jumps]
        rows, prior = self.size + 1, self._prior(usual, affine)
        q, r = np.linalg.qr(np.concatenate([part for part, _ in parts] + [np.diag(1 / prior)]) * prior)
        right = np.zeros((len(jumps), len(q)))
        for i, (_, side) in enumerate(parts):
            right[i, i * rows : (i + 1) * rows] = side
        left = right - (right @ q) @ q.T
        signs = np.array([(1.0, *rest) for rest in product([1.0, -1.0], repeat=len(jumps) - 1)])
        squares = np.einsum("si,ij,sj->s", signs, left @ left.T, signs)
        chi = float(np.sqrt(max(squares.min(), 0) / max(len(jumps) * rows - len(prior), 1)))
        root = prior[:, None] * np.linalg.inv(r)
        return _Solution(root @ (q.T @ (signs[int(np.argmin(squares))] @ right)), root, chi)

    def _most_telling(
        self, kinks: list[_NamedKink], measured: list[_Jump], count: int, affine: bool
    ) -> list[_NamedKink]:
        """Those of the kinks that together tell most of what the measured ones leave open."""
        covariance = np.diag(self._prior(1.0, affine) ** 2)
        for jump in measured:
            covariance = _narrowed(covariance, self._equations(jump, 1.0, affine)[0])
        nothing = np.zeros(self.size)
        errors = [float(np.hypot(kink.error, self.row_error)) for kink in kinks]
        expected = [
            self._equations(_Jump(kink.y, nothing, error), 1.0, affine)[0]
            for kink, error in zip(kinks, errors, strict=True)
        ]
        chosen: list[int] = []
        for _ in range(min(count, len(kinks))):
            gains = [
                -np.inf if i in chosen else np.linalg.slogdet(np.eye(len(matrix)) + matrix @ covariance @ matrix.T)[1]
                for i, matrix in enumerate(expected)
            ]
            chosen.append(int(np.argmax(gains)))
            covariance = _narrowed(covariance, expected[chosen[-1]])
        return [kinks[i] for i in chosen]


def _narrowed(covariance: FloatArray, matrix: FloatArray) -> FloatArray:
    """The covariance after these equations, of deviation one."""
    across = matrix @ covariance
    return np.asarray(covariance - across.T @ np.linalg.solve(np.eye(len(matrix)) + across @ matrix.T, across))

"""`Lines`, `Frame`, `FramedNetwork` and `Samples`, batched, and the error that noise causes in a crease's position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reluctant.interface import Interface
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, HOST, MANY_NEURONS, Array, Arrays, FloatArray
from reluctant.oracles.ledger import check_time

FAR_END = 1e6  # whole lines end here, in units of the scale: creases beyond are not found

IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]

NO_NUMBER = -1  # no pair, no check


@dataclass(frozen=True)
class Batch:
    """Many of one kind, as arrays with an entry for each: some of them, and those of two batches after each other."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def __add__(self, other: Self) -> Self:
        parts = {part.name: (getattr(self, part.name), getattr(other, part.name)) for part in fields(self)}
        return replace(self, **{name: np.concatenate(pair) for name, pair in parts.items()})

    def chosen(self, which: Any) -> Self:
        """The elements with these indices, or of this mask."""
        return replace(self, **{part.name: getattr(self, part.name)[which] for part in fields(self)})

    def __getitem__(self, which: Any) -> Self:
        return self.chosen(which)


@dataclass(frozen=True)
class Lines:
    """Origins (n, d), unit directions (n, d), and the positions between which a line may be asked.

    `scale` is the typical size of an input, the unit of t.
    """

    origins: FloatArray
    directions: FloatArray
    scale: float
    low: FloatArray  # (n,)
    high: FloatArray

    @classmethod
    def random(
        cls, rng: np.random.Generator, n: int, dim: int, scale: float = 1.0, *, end: float = 2 * FAR_END
    ) -> Lines:
        """Lines through Gaussian points of this scale, in random directions; whole, or so many scales long."""
        directions = rng.standard_normal((n, dim))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        size = scale * float(np.sqrt(dim))
        far = np.full(n, end * size)
        return cls(scale * rng.standard_normal((n, dim)), directions, size, -far, far)

    @classmethod
    def between(cls, start: FloatArray, stop: FloatArray, scale: float) -> Lines:
        """Segments from each point of `start` to the one of `stop`; t is the distance from the first."""
        directions = stop - start
        lengths = np.linalg.norm(directions, axis=1)
        return cls(start, directions / lengths[:, None], scale, np.zeros(len(start)), lengths)

    def __len__(self) -> int:
        return len(self.origins)

    def points(self, line: IntArray, t: FloatArray) -> FloatArray:
        """Rows (len(t), d) at positions t on the lines of these indices."""
        return self.origins[line] + t[:, None] * self.directions[line]

    def angle(self, t: FloatArray) -> FloatArray:
        """Position as an angle: creases of random neurons are spread evenly in it."""
        return np.arctan(t / self.scale)

    def position(self, angle: FloatArray) -> FloatArray:
        """Inverse of `angle`."""
        return self.scale * np.tan(angle)


@dataclass(frozen=True)
class Frame:
    """Points origin + y @ basis; the rows of `basis` (k, d) are orthonormal."""

    origin: FloatArray
    basis: FloatArray

    def points(self, y: FloatArray) -> FloatArray:
        """Rows (n, d) of input space at coordinates (n, k)."""
        return self.origin + y @ self.basis

    def extended(self, directions: FloatArray) -> Frame:
        """The frame with more directions, orthonormal to those it has."""
        return Frame(self.origin, np.concatenate([self.basis, directions]))

    def new_directions(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Random orthonormal directions (n, d) orthogonal to the frame."""
        d = len(self.origin)
        drawn = rng.standard_normal((d, n))
        for _ in range(2):  # twice is enough for orthogonality to rounding
            drawn = np.linalg.qr(drawn - self.basis.T @ (self.basis @ drawn))[0]
        return drawn.T

    def span(self) -> FloatArray:
        """Orthonormal rows whose combinations hold all points of the frame, as vectors."""
        off = self.origin - self.basis.T @ (self.basis @ self.origin)
        length = np.linalg.norm(off)
        inside = length <= DOUBLE.rounding * np.sqrt(len(off)) * np.linalg.norm(self.origin)
        return self.basis if inside else np.concatenate([self.basis, off[None] / length])

    def restricted(self, network: ReLUNetwork) -> ReLUNetwork:
        """The network as a function of the coordinates."""
        return network.with_inputs(lambda w: (w @ self.basis.T, w @ self.origin))

    def lifted(self, network: ReLUNetwork) -> ReLUNetwork:
        """A network of the coordinates as a function of the input itself; it ignores the complement of the frame."""
        return network.with_inputs(lambda w: (w @ self.basis, -(w @ self.basis) @ self.origin))

    def random_lines(self, rng: np.random.Generator, n: int) -> Lines:
        """Whole lines inside the frame, as far from its origin as random points are from that of input space."""
        k, d = self.basis.shape
        inside = Lines.random(rng, n, k, float(np.sqrt(d / k)))
        return replace(inside, origins=self.points(inside.origins), directions=inside.directions @ self.basis)


def whole_space(dim: int) -> Frame:
    """The frame whose coordinates are inputs themselves."""
    return Frame(np.zeros(dim), np.eye(dim))


@dataclass(frozen=True)
class FramedNetwork:
    """A depth-two network in the coordinates of a frame: the known part of a target.

    Gauge: output weights of each neuron have norm one, and the skip term is the affine map of the region
    the search began with, so every neuron counts from zero there.

    Each neuron was seen on a line: a point of its crease is known exactly, its weight along the line with the noise
    `along_sd`, those across it with `weight_sd`. That line is the frame's first axis, which the search began on, or
    else the one through `seen_at` (h, k) along `seen_along`.
    """

    frame: Frame
    network: ReLUNetwork
    weight_sd: FloatArray  # (h,)
    along_sd: FloatArray
    seen_at: FloatArray | None = None
    seen_along: FloatArray | None = None

    @property
    def neurons(self) -> int:
        """Number of hidden neurons."""
        return self.network.widths[1]

    @property
    def positions(self) -> FloatArray:
        """Where each neuron's crease meets the first axis (h,)."""
        return np.asarray(-self.network.biases[0] / self.network.weights[0][:, 0])

    @property
    def points(self) -> FloatArray:
        """A point (h, k) of each crease that is known exactly."""
        if self.seen_at is not None:
            return self.seen_at
        points = np.zeros_like(self.network.weights[0])
        points[:, 0] = self.positions
        return points

    @property
    def lines(self) -> FloatArray:
        """Directions (h, k) of the lines on which the neurons were seen."""
        if self.seen_along is not None:
            return self.seen_along
        lines = np.zeros_like(self.network.weights[0])
        lines[:, 0] = 1
        return lines

    def sd_at(self, y: FloatArray, arrays: Arrays = HOST) -> Array:
        """Noise (n, h) of the neurons' values at these points: it grows from where a crease is known."""
        across, along = self._away(y, arrays)
        return arrays.xp.sqrt(across * arrays.put(self.weight_sd**2) + along * arrays.put(self.along_sd**2))

    def _away(self, y: FloatArray, arrays: Arrays) -> tuple[Array, Array]:
        """Squares of how far points are from where each crease is known, across its line and along it."""
        if self.seen_at is None:
            along = (arrays.put(y[:, :1]) - arrays.put(self.positions)) ** 2
            return arrays.put((y[:, 1:] ** 2).sum(axis=1))[:, None], along
        points, lines, rows = self.points, self.lines, arrays.put(y)
        squares = rows @ arrays.put(-2 * points.T)
        squares += arrays.put((points**2).sum(axis=1))
        squares += arrays.put((y**2).sum(axis=1))[:, None]
        along = (rows @ arrays.put(lines.T) - arrays.put((points * lines).sum(axis=1))) ** 2
        return arrays.xp.clip(squares - along, 0, None), along

    def sd_within(self, reach: float) -> FloatArray:
        """About the noise (h,) of the neurons' values at points this far from the origin, where that is largest."""
        return np.hypot(self.weight_sd * reach, self.along_sd * np.linalg.norm(self.points, axis=1))

    def reach(self, scale: float) -> float:
        """How far from the origin of the frame points without a crease near are looked for."""
        climb_reach = 5.0  # in median distances of a crease from the origin of the frame
        (g, _), (z, _) = self.network.weights, self.network.biases
        typical = float(np.median(np.abs(z) / np.linalg.norm(g, axis=1)))
        return max(climb_reach * typical * float(np.sqrt(g.shape[1])), 0.5 * scale)

    def weight_sizes(self, reach: float) -> FloatArray:
        """Typical size of one coordinate of each neuron's weights; among many, more for one that is known badly.

        A margin as large as margins are is then also a few times the error of such a neuron's values.
        """
        sure_margin = 2.0  # errors of a neuron's value that the usual margin is to hold
        g = self.network.weights[0]
        if len(g) < MANY_NEURONS:
            return np.sqrt((g**2).mean(axis=1))
        return np.hypot(
            np.sqrt((g**2).mean(axis=1)), sure_margin * self.sd_within(reach) / reach * len(g) / np.sqrt(g.shape[1])
        )

    def lifted(self) -> ReLUNetwork:
        """The network as a function of the input itself."""
        return self.frame.lifted(self.network)


def climb(
    known: FramedNetwork, scale: float, candidates: int, rng: np.random.Generator, arrays: Arrays = HOST
) -> FloatArray:
    """Random points of a ball, moved away from the creases around them."""
    (g, _), (z, _) = known.network.weights, known.network.biases
    k, reach = g.shape[1], known.reach(scale)
    y = rng.standard_normal((candidates, k))
    y *= reach * rng.uniform(0.3, 1.0, (candidates, 1)) / np.linalg.norm(y, axis=1, keepdims=True)
    size, block = known.weight_sizes(reach), max(1, arrays.cells // len(z))
    # In units of the reach and of each neuron's size single precision is plenty to find room in.
    units = (np.asarray(part, dtype=np.float32) for part in (g / size[:, None], z / (size * reach), y / reach))
    normals, offsets, starts = (arrays.put(part) for part in units)
    parts = [_climb_block(normals, offsets, starts[i : i + block], arrays.xp) for i in range(0, candidates, block)]
    return reach * np.concatenate([arrays.get(part) for part in parts]).astype(np.float64)


def _climb_block(g: Array, z: Array, y: Array, xp: Any) -> Array:
    """Follow the gradient of a soft minimum of |g y + z| inside the unit ball; keep the best point met."""
    climb_steps, cool = 40, 2.5  # strides are full at first and shorten over the last 1/cool of the steps
    share = 0.5  # of the margin: creases this much farther than the nearest still push
    smallest_margin = 1e-3  # of the typical one, for a point that starts on a crease
    no_pull = -80.0  # exponent below which numbers lose digits, and time, in single precision
    stride, first_stride = 2.0, 0.3  # in margins, and at least in typical ones
    length = float(xp.sqrt((g**2).sum(axis=1)).mean())
    typical = length / len(z)  # margin to expect with this many creases
    best, best_margin = y, xp.zeros_like(y[:, 0])
    for step in range(climb_steps):
        check_time()
        values = y @ g.T + z
        sizes = xp.abs(values)
        margin = xp.amin(sizes, axis=1)
        better = margin > best_margin
        best, best_margin = xp.where(better[:, None], y, best), xp.maximum(margin, best_margin)
        softness = share * xp.clip(margin, smallest_margin * typical, None)
        pull = xp.subtract(margin[:, None], sizes, out=sizes)
        pull /= softness[:, None]
        xp.exp(xp.clip(pull, no_pull, None, out=pull), out=pull)
        direction = xp.copysign(pull, values, out=pull) @ g
        direction /= xp.linalg.norm(direction, axis=1, keepdims=True) + float(np.finfo(np.float32).tiny)
        cooling = min(1.0, cool * (1 - step / climb_steps))
        y = y + (cooling * stride / length * xp.clip(margin, first_stride * typical, None))[:, None] * direction
        y = y / xp.clip(xp.linalg.norm(y, axis=1, keepdims=True), 1, None)
    return best


@dataclass(frozen=True)
class Samples(Batch):
    """Answers on lines, sorted by line and position.

    pair: samples asked together to find a slope share a number. check: those asked on the two sides of an
    expected crease do. sd: noise of each answer. round: when it was asked, counted from 0.
    """

    line: IntArray
    t: FloatArray
    f: FloatArray  # (n, m)
    sd: FloatArray
    pair: IntArray
    check: IntArray
    round: IntArray

    def __add__(self, other: Samples) -> Samples:
        both = super().__add__(other)
        return both.chosen(np.lexsort([both.t, both.line]))

    def room_after(self, which: IntArray) -> FloatArray:
        """Distance to the next sample of the line, 0 for its last."""
        following = np.minimum(which + 1, len(self) - 1)
        return np.where(self.line[following] == self.line[which], self.t[following] - self.t[which], 0.0)

    def room_before(self, which: IntArray) -> FloatArray:
        """Distance to the sample before, 0 for the first of a line."""
        before = np.maximum(which - 1, 0)
        return np.where(self.line[before] == self.line[which], self.t[which] - self.t[before], 0.0)

    def without_any(self) -> Samples:
        """No sample."""
        return self.chosen(np.empty(0, dtype=np.intp))


@dataclass(frozen=True)
class Pieces:
    """Pieces in order: index of first and last sample, whether a third sample agrees, and the line they lie on."""

    first: IntArray
    last: IntArray
    certified: BoolArray
    length: FloatArray
    slope: FloatArray  # (n, m)
    sd: FloatArray  # noise of the two end samples together

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def between(cls, s: Samples, first: IntArray, last: IntArray, certified: BoolArray) -> Pieces:
        """Pieces from sample `first` to sample `last`, with the slope their ends give."""
        length = s.t[last] - s.t[first]
        slope = (s.f[last] - s.f[first]) / length[:, None]
        return cls(first, last, certified, length, slope, np.hypot(s.sd[first], s.sd[last]))

    def slope_sd(self) -> FloatArray:
        """Noise of the slopes."""
        return self.sd / self.length

    def tolerance(self, s: Samples, which: IntArray, t: FloatArray, sd: FloatArray) -> FloatArray:
        """How far an answer of noise `sd` at t may be from the line of a piece and still belong to it."""
        first, last = self.first[which], self.last[which]
        to_first, to_last = np.abs(t - s.t[first]), np.abs(t - s.t[last])
        # From the nearer end: the farther one may be very far out, and has lost its digits.
        near_sd = np.where(to_first < to_last, s.sd[first], s.sd[last])
        slope = self.sd[which] * np.minimum(to_first, to_last) / self.length[which]
        return DOUBLE.in_line * np.hypot(sd, near_sd + slope)


def find_pieces(s: Samples) -> Pieces:
    """Runs of samples joined by flat ones, and pairs that no run touches."""
    inside = s.line[1:] == s.line[:-1]  # edge k joins samples k and k + 1
    joined = np.zeros(len(inside), dtype=bool)
    joined[1:] = inside[1:] & inside[:-1] & _is_flat(s)[1:-1]
    starts = np.flatnonzero(inside & ~joined)
    stops = np.flatnonzero(inside & ~np.append(joined[1:], False))
    is_run = stops > starts
    touched = np.zeros(len(inside) + 2, dtype=bool)  # edge k is at k + 1
    touched[starts[is_run] + 1] = touched[stops[is_run] + 1] = True
    is_pair = (s.pair[starts] == s.pair[starts + 1]) & (s.pair[starts] != NO_NUMBER)
    keep = is_run | (is_pair & ~touched[starts] & ~touched[starts + 2])
    return Pieces.between(s, starts[keep], stops[keep] + 1, is_run[keep])


def _is_flat(s: Samples) -> BoolArray:
    flat = np.zeros(len(s), dtype=bool)
    same = s.line[2:] == s.line[:-2]
    length = s.t[2:] - s.t[:-2]  # zero where rounding puts three positions in one place
    share = (s.t[1:-1] - s.t[:-2]) / np.where(same & (length > 0), length, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):  # answers close to the largest number
        off = np.abs(s.f[1:-1] - (s.f[:-2] + (s.f[2:] - s.f[:-2]) * share[:, None])).max(axis=1)
        sd = np.sqrt(s.sd[1:-1] ** 2 + ((1 - share) * s.sd[:-2]) ** 2 + (share * s.sd[2:]) ** 2)
        flat[1:-1] = same & (off <= DOUBLE.in_line * sd)
    return flat


# Rows (n, d) and their answers (n, m) to noise (n,) that these answers have besides.
ExtraNoise: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]

LEAST_NOISE = DOUBLE.rounding / 1000  # of the spread: a target that computes exactly still has some noise


@dataclass(frozen=True)
class DistanceNoise:
    """Standard deviation hypot(near, growth · distance): what sums inside a network leave of its digits."""

    near: float
    growth: float

    @classmethod
    def of(cls, health: Interface, dim: int) -> DistanceNoise:
        """From the readings of a health check: one at the scale of use, one far out if there is one."""
        shared_growth = 0.5  # of what noise read at the scale of use would be, if it grew like the inputs
        near, far = health.readings[0], health.readings[-1]
        at_origin = max(DOUBLE.safety * near.sd, LEAST_NOISE * health.spread)
        growth = DOUBLE.safety * far.sd / (far.scale * np.sqrt(dim))
        # Far out all of a few lines may meet a flat place, but sums inside the network round as inputs grow.
        return cls(at_origin, max(float(growth), shared_growth * at_origin / float(np.sqrt(dim))))

    def times(self, factor: float) -> DistanceNoise:
        """The noise times a factor."""
        return DistanceNoise(factor * self.near, factor * self.growth)

    def at(self, distance: FloatArray) -> FloatArray:
        """Standard deviation of an answer at this distance."""
        return np.hypot(self.near, self.growth * np.abs(distance))


def orthogonal_moves(basis: FloatArray, n: int, length: float, rng: np.random.Generator) -> FloatArray:
    """Random steps (n, d) of this length, orthogonal to the rows of an orthonormal basis."""
    moves = rng.standard_normal((n, basis.shape[1]))
    for _ in range(2):  # twice is enough for orthogonality to rounding
        moves -= (moves @ basis.T) @ basis
        moves *= length / np.linalg.norm(moves, axis=1, keepdims=True)
    return moves


def around_lines(t: FloatArray, f: FloatArray) -> FloatArray:
    """What straight lines through (n, points) leave of the values (n, points, m)."""
    t = (t - t.mean(axis=1, keepdims=True))[:, :, None]
    f = f - f.mean(axis=1, keepdims=True)
    return np.asarray(f - t * (t * f).sum(axis=1, keepdims=True) / (t**2).sum(axis=1, keepdims=True))


def piece_ends(t: FloatArray, scale: float) -> FloatArray:
    """Ends (n + 2,) of the pieces between creases at t (n,), in order; the outermost pieces are cut off."""
    outermost = 2.0  # how far beyond the outermost crease a piece goes, in its distance or the scale
    first, last = outermost * np.maximum(scale, np.abs(t[[0, -1]]))
    return np.concatenate([[t[0] - first], t, [t[-1] + last]])


def answer_roundings(size: FloatArray) -> FloatArray:
    """A few roundings of an answer of this size."""
    return np.asarray(DOUBLE.answer * size)

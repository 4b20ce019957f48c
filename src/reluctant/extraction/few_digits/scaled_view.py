"""The target seen from a chosen distance or inside a box, with its outputs in units of their noise.

Rows are rounded to float32 before they are asked, and the rounded row is the one that counts: a float32 target
would round it anyway. Noise is the scatter of answers around straight lines at eight points each, near and far, for
each output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from reluctant.domains import Domain
from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise, Frame
from reluctant.geometry.lines import BoolArray, around_lines
from reluctant.interface.noise import rounding_noise
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.verification.precision import CarriedPrecision, Precision, rounding_sizes

FARTHEST_ANGLE = 1.5  # of samples of a line whose positions are even in angle
FARTHEST_CREASE = 3e4  # in units of the size of an input: creases beyond are not looked for


@dataclass(frozen=True)
class View:
    """A function g(x) = f(scale · x) / (scale · units), answered with noise of the same size for every output.

    units: (m,) of mean one; noise: standard deviation of an answer by the distance from the origin of the frame.
    """

    oracle: Counting
    scale: float
    units: FloatArray
    noise: DistanceNoise
    rounded: bool = True  # rows to float32
    centre: FloatArray | float = 0.0  # of the inputs

    @property
    def dim(self) -> int:
        """Number of inputs."""
        return self.oracle.dim

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.oracle.outputs

    @property
    def size(self) -> float:
        """Length of a typical input."""
        return float(np.sqrt(self.dim))

    @property
    def input_size(self) -> float:
        """The same of the target's own inputs."""
        return self.scale * self.size

    @property
    def usual_noise(self) -> float:
        """Noise of an answer at typical inputs."""
        return self.noise.near

    @property
    def in_single(self) -> bool:
        """True if rows that were asked are numbers of float32 in the coordinates of the view too."""
        return self.rounded

    @property
    def precision(self) -> Precision:
        """The noise of the target, for verification."""
        return Precision(self.noise.near * self.units, self.noise.growth * self.units)

    @property
    def farthest(self) -> float:
        """How far out creases are looked for."""
        return FARTHEST_CREASE * self.size

    def ask(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows that were really asked, and the answers to them."""
        asked = self.scale * rows
        if self.rounded:
            asked = asked.astype(np.float32).astype(np.float64)
        return asked / self.scale, self.oracle.query(asked) / (self.scale * self.units)

    def with_noise(self, factor: float) -> Self:
        """The same view where noise has turned out to be this many times as large."""
        return replace(self, noise=DistanceNoise(factor * self.noise.near, factor * self.noise.growth))

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Inputs (n, d) as they are in use."""
        return rng.standard_normal((n, self.dim))

    def scaled(self, rows: FloatArray, scales: FloatArray) -> FloatArray:
        """Inputs (n, d) times these scales (n,), as far as the target may be asked."""
        return scales[:, None] * rows

    def directions(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Random orthonormal directions (count, d)."""
        return np.asarray(np.linalg.qr(rng.standard_normal((self.dim, count)))[0].T)

    def random_line(self, frame: Frame, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """A point (k,) and a direction (k,) of a frame."""
        k = len(frame.basis)
        direction = rng.standard_normal(k)
        direction /= np.linalg.norm(direction)
        origin = self.off_line * self.size * rng.standard_normal(k) / np.sqrt(k)
        return origin - (origin @ direction) * direction, direction

    @property
    def off_line(self) -> float:
        """How far a random line passes the origin, in sizes: somewhat nearer than typical inputs."""
        return 0.7

    def line_places(self, point: FloatArray, direction: FloatArray, count: int) -> FloatArray:
        """Where to look on a line through a point, in sizes of an input: even in angle, far out on both sides."""
        return np.tan(np.linspace(-FARTHEST_ANGLE, FARTHEST_ANGLE, count))

    def room(self, points: FloatArray, moves: FloatArray) -> FloatArray:
        """How often (n,) each move (n, d) may be made from its point."""
        return np.full(np.broadcast_shapes(points.shape, moves.shape)[:-1], np.inf)

    @property
    def is_space(self) -> bool:
        """True if the target may be asked everywhere."""
        return self.oracle.facts.domain.is_space

    @property
    def off_centre(self) -> float:
        """How far from the middle a frame of few dimensions should pass, in sizes of an input."""
        return 0.3

    @property
    def roomy(self) -> float:
        """Part of the way out to which inputs have room on all sides."""
        return 1.0

    def inside(self, frame: Frame, y: FloatArray) -> BoolArray:
        """Which points (n,) of a frame may be asked."""
        return np.ones(len(y), dtype=bool)

    def noise_at_use(self, rows: FloatArray, scales: FloatArray) -> FloatArray:
        """Noise (n,) of answers at such inputs, times these scales (n,)."""
        usual, there = (self.noise.at(self.size * times) for times in (np.ones(1), np.maximum(scales, 1.0)))
        return np.asarray(self.noise.near * there / usual)

    def pulled_in(self, frame: Frame, y: FloatArray) -> FloatArray:
        """Coordinates of a frame, moved towards its origin where the target may not be asked."""
        return y

    def steps_inside(self, points: FloatArray, directions: FloatArray, steps: FloatArray) -> FloatArray:
        """Steps (D, n) from each of n points into each of D directions, shorter where the target may not be asked."""
        return np.broadcast_to(steps, (len(directions), len(points)))

    def lifted(self, network: ReLUNetwork) -> ReLUNetwork:
        """A network of the view as one of the target."""
        (*inner, a), (*biases, c), skip = network.weights, network.biases, network.skip
        units = self.units[:, None]
        skip = None if skip is None else units * skip
        biases = [*(self.scale * b for b in biases), self.scale * self.units * c]
        return ReLUNetwork([*inner, units * a], biases, skip)


NOISE_LINES, NOISE_POINTS = 24, 8
NEAR_AND_FAR = 2  # looks at short lines that a view takes
# Noise of a target without any: its inverse can still be squared twice and added up.
LEAST_NOISE = float(np.finfo(np.float64).tiny) ** 0.25


NOISE_FAR_OUT = 1e3  # where noise that grows with the answers is all there is


def look_from(oracle: Counting, scale: float, rng: np.random.Generator, noise_far_out: float = NOISE_FAR_OUT) -> View:
    """The view from this scale, with its noise measured. Cost: 384 rows."""
    plain = View(oracle, scale, np.ones(oracle.outputs), DistanceNoise(0.0, 0.0))
    with oracle.stage("noise", expected=NEAR_AND_FAR * NOISE_LINES * NOISE_POINTS):
        near, far = short_line_noise(plain, 1.0, rng), short_line_noise(plain, noise_far_out, rng)
    units = near / near.mean()
    growth = float(np.mean(far / units)) / (noise_far_out * plain.size)
    return View(oracle, scale, units, DistanceNoise(float(near.mean()), growth))


def short_line_noise(view: View, scale: float, rng: np.random.Generator) -> FloatArray:
    """Standard deviation (m,) of each output around straight lines at inputs of this scale."""
    return noise_and_answers(view, scale, rng)[0]


def noise_and_answers(view: View, scale: float, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """The same, and the answers (n, m) themselves."""
    quietest = 1e-8  # of the noisiest output: one that is 0 where it was asked has no noise there, and is no unit
    _, scatter, answers = _short_lines(view, scale, rng)
    rounding = rounding_noise(answers * (view.scale * view.units)) / (view.scale * view.units)
    found = np.maximum(_usual(scatter), np.maximum(rounding, LEAST_NOISE))
    return np.maximum(found, quietest * found.max()), answers


def _usual(scatter: FloatArray) -> FloatArray:
    """The median (m,) of those lines (n, m) that have noise: one on which no neuron is on has none."""
    return np.array([np.median(each[each > 0]) if each.any() else 0.0 for each in scatter.T])


def _short_lines(view: View, scale: float, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Middles (lines, d) of short lines at inputs of this scale, deviations (lines, m) around them, and all answers."""
    spacing = 3e-4  # of the size of an input: rounding errors of float32 are independent, and few creases lie between
    jitter = 0.3  # of the spacing
    d, size = view.dim, scale * view.size
    centres = scale * view.sample(rng, NOISE_LINES)[:, None]
    directions = rng.standard_normal((NOISE_LINES, 1, d))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    places = np.arange(NOISE_POINTS) + rng.uniform(-jitter, jitter, (NOISE_LINES, NOISE_POINTS))
    rows, answers = view.ask((centres + spacing * size * places[:, :, None] * directions).reshape(-1, d))
    along = ((rows.reshape(NOISE_LINES, NOISE_POINTS, d) - centres) * directions).sum(axis=2) / (spacing * size)
    left = around_lines(along, answers.reshape(NOISE_LINES, NOISE_POINTS, -1))
    return centres[:, 0], np.sqrt((left**2).sum(axis=1) / (NOISE_POINTS - 2)), answers


def carried_precision(view: View, network: ReLUNetwork, rng: np.random.Generator) -> Precision:
    """The noise of a float32 target: by distance, and roundings that its network carries to the outputs.

    Roundings differ manyfold between inputs, and distance alone does not tell by how much. Cost: 384 rows.
    """
    scales, plain = (1.0, 10.0), view.precision
    with view.oracle.stage("noise", expected=len(scales) * NOISE_LINES * NOISE_POINTS):
        lines = [_short_lines(view, scale, rng)[:2] for scale in scales]
    sizes = np.concatenate([rounding_sizes(network, centres) for centres, _ in lines])
    scatter = view.units * np.concatenate([scatter for _, scatter in lines])
    factor = _usual(scatter / np.maximum(sizes, LEAST_NOISE))
    return CarriedPrecision(plain.near, plain.growth, network=network, factor=factor)


CUBE = Domain(-1.0, 1.0)
LONGEST_STEP = 0.98  # of the way to a wall: room for the rounding of sums


@dataclass(frozen=True)
class BoxView(View):
    """A function g(x) = f(centre + half · x) / units on the cube -1 ≤ x ≤ 1; nothing outside is asked.

    centre, half: (d,). Noise grows with the distance from the middle.
    """

    half: FloatArray | float = 1.0

    @property
    def size(self) -> float:
        """Length of a typical input."""
        return float(np.sqrt(self.dim / 3))

    def ask(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows that were really asked, and the answers to them."""
        asked = self.centre + self.half * CUBE.nearest(rows)
        asked = self.oracle.facts.domain.in_single(asked)
        return (asked - self.centre) / self.half, self.oracle.query(asked) / self.units

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Inputs (n, d) all over the cube."""
        return CUBE.sample(rng, n, self.dim)

    def noise_at_use(self, rows: FloatArray, scales: FloatArray) -> FloatArray:
        """Noise (n,) of answers at such inputs."""
        return self.noise.at(np.linalg.norm(rows, axis=1))

    def pulled_in(self, frame: Frame, y: FloatArray) -> FloatArray:
        """Coordinates of a frame, moved towards its origin where they would leave the cube."""
        room = CUBE.room(frame.origin, y @ frame.basis)
        return y * np.minimum(1.0, LONGEST_STEP * room)[:, None]

    def steps_inside(self, points: FloatArray, directions: FloatArray, steps: FloatArray) -> FloatArray:
        """Steps (D, n), shorter where they would leave the cube."""
        moves = steps[:, None] * directions[:, None, :]  # (D, n, d)
        return np.asarray(steps * np.minimum(1.0, LONGEST_STEP * CUBE.room(points, moves)))

    def scaled(self, rows: FloatArray, scales: FloatArray) -> FloatArray:
        """Inputs (n, d) times these scales (n,), and no farther out."""
        return np.minimum(scales, 1.0)[:, None] * rows

    def directions(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Orthonormal directions (count, d), nearly towards corners: there a box is longest."""
        corners = rng.choice([-1.0, 1.0], (self.dim, count)) + 0.1 * rng.standard_normal((self.dim, count))
        return np.asarray(np.linalg.qr(corners)[0].T)

    @property
    def off_line(self) -> float:
        """Close: a line past the middle meets the most creases."""
        return 0.2

    def line_places(self, point: FloatArray, direction: FloatArray, count: int) -> FloatArray:
        """Where to look on a line through a point, in sizes of an input: from wall to wall."""
        back, ahead = self.room(point, np.stack([-direction, direction]))
        return np.linspace(-back, ahead, count) / self.size

    def room(self, points: FloatArray, moves: FloatArray) -> FloatArray:
        """How often (n,) each move (n, d) may be made from its point, before it comes to a wall."""
        return LONGEST_STEP * CUBE.room(points, moves)

    @property
    def off_centre(self) -> float:
        """Close: farther off lines are shorter, and meet fewer creases."""
        return 0.1

    @property
    def roomy(self) -> float:
        """Half way to the walls."""
        return 0.5

    def inside(self, frame: Frame, y: FloatArray) -> BoolArray:
        """Which points (n,) of a frame lie in the cube."""
        return CUBE.inside(frame.points(y))

    @property
    def input_size(self) -> float:
        """The same of the target's own inputs, from the middle."""
        return float(np.median(self.half)) * self.size

    @property
    def usual_noise(self) -> float:
        """Noise of an answer at typical inputs."""
        return float(self.noise.at(np.array([self.size]))[0])

    @property
    def in_single(self) -> bool:
        """Coordinates of the cube are not, in general."""
        return False

    @property
    def precision(self) -> Precision:
        """The noise of the target, in its own inputs, for verification."""
        growth = self.noise.growth * self.units / float(np.median(self.half))
        return Precision(self.noise.near * self.units, growth, self.centre)

    @property
    def farthest(self) -> float:
        """Creases outside say nothing."""
        return float(np.inf)

    def reach(self, origin: FloatArray, direction: FloatArray) -> float:
        """How far a line may go to both sides of its origin."""
        return LONGEST_STEP * float(CUBE.room(origin, np.stack([direction, -direction])).min())

    def lifted(self, network: ReLUNetwork) -> ReLUNetwork:
        """A network of the cube as one of the target's own inputs."""
        (w, *inner, a), (b, *biases, c), skip = network.weights, network.biases, network.skip
        units, w = self.units[:, None], w / self.half
        b, c = b - w @ self._centres, self.units * c
        if skip is None:
            return ReLUNetwork([w, *inner, units * a], [b, *biases, c])
        skip = units * skip / self.half
        return ReLUNetwork([w, *inner, units * a], [b, *biases, c - skip @ self._centres], skip)

    @property
    def _centres(self) -> FloatArray:
        return np.broadcast_to(np.asarray(self.centre, dtype=np.float64), (self.dim,))


def look_inside(oracle: Counting, rng: np.random.Generator) -> BoxView:
    """The view of a target whose domain is a box, with its noise measured. Cost: 384 rows."""
    near_middle, near_walls = 0.1, 0.9  # of the way to the walls: where noise is measured
    # Times as much noise at the walls: float32 has five; rounded probabilities hundreds, and no scale.
    most_uneven = 12.0
    low, high = (np.asarray(side, dtype=np.float64) for side in (oracle.facts.domain.low, oracle.facts.domain.high))
    centre, half = (low + high) / 2, (high - low) / 2
    nothing = DistanceNoise(0.0, 0.0)
    plain = BoxView(oracle, 1.0, np.ones(oracle.outputs), nothing, centre=centre, half=half)
    with oracle.stage("noise"):
        near, far = (short_line_noise(plain, scale, rng) for scale in (near_middle, near_walls))
    uneven = float((far / near).max())
    if not uneven < most_uneven:
        raise StageFailed("noise", "digits are lost towards the walls", number=uneven, limit=most_uneven)
    return replace(
        plain, units=far / far.mean(), noise=_noise_by_distance(near.mean(), far.mean(), near_walls * plain.size)
    )


def _noise_by_distance(near: float, far: float, distance: float) -> DistanceNoise:
    """Noise as it is in the middle and at this distance from it."""
    return DistanceNoise(float(near), float(np.sqrt(max(far**2 - near**2, 0.0))) / distance)

"""Few digits inside a box: a star of lines replaces the one line, and grows into a subspace.

A line that is bounded does not meet every crease, but of several lines through one point nearly always one does. A
neuron a max(w·y + b, 0) with outputs of norm one bends a line through the origin at t = -b / w·u by a |w·u|: bend
times distance is a |b|, the same on every line, so that it tells which bends belong to one neuron. Points that
growth leaves unexplained are a neuron that no line met, or two that a line took for one: another star may do
better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.domains import Domain
from reluctant.extraction.few_digits.growth import KnownSubspace, ask_in, questioned, random_points
from reluctant.extraction.few_digits.noisy_line import OnLine, read_stretch
from reluctant.extraction.few_digits.subspace_fit import Points, fit_to_points, misfit
from reluctant.extraction.few_digits.view import View, short_line_noise
from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise, Frame
from reluctant.geometry.lines import IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.verification.precision import Precision

CUBE = Domain(-1.0, 1.0)
LONGEST_STEP = 0.98  # of the way to a wall: room for the rounding of sums


@dataclass(frozen=True)
class BoxView(View):
    """A function g(x) = f(centre + half · x) / units on the cube -1 ≤ x ≤ 1; nothing outside is asked.

    centre, half: (d,). Noise grows with the distance from the middle.
    """

    centre: FloatArray | float = 0.0
    half: FloatArray | float = 1.0

    @property
    def size(self) -> float:
        """Length of a typical input."""
        return float(np.sqrt(self.dim / 3))

    def ask(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows that were really asked, and the answers to them."""
        asked = self.centre + self.half * np.clip(rows, CUBE.low, CUBE.high)
        asked = self.oracle.facts.domain.in_single(asked)
        return (asked - self.centre) / self.half, self.oracle.query(asked) / self.units

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Inputs (n, d) all over the cube."""
        return CUBE.sample(rng, n, self.dim)

    def noise_at_use(self, rows: FloatArray) -> FloatArray:
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

    @property
    def in_single(self) -> bool:
        """Coordinates of the cube are not, in general."""
        return False

    @property
    def precision(self) -> Precision:
        """The noise of the target, in its own inputs, as a verification is told it."""
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
        (w, a), (b, c), skip = network.weights, network.biases, network.skip
        units, w = self.units[:, None], w / self.half
        b, c = b - w @ self._centres, self.units * c
        if skip is None:
            return ReLUNetwork([w, units * a], [b, c])
        skip = units * skip / self.half
        return ReLUNetwork([w, units * a], [b, c - skip @ self._centres], skip)

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


@dataclass(frozen=True)
class Star:
    """Lines along the axes of a frame, and the network that they show on its axes."""

    view: BoxView
    frame: Frame
    lines: list[OnLine]
    network: ReLUNetwork

    @property
    def points(self) -> Points:
        """All samples of the lines, in coordinates of the frame."""
        parts = [_on_axis(line, axis, len(self.frame.basis)) for axis, line in enumerate(self.lines)]
        points = parts[0]
        for part in parts[1:]:
            points += part
        return Points(points.y, points.f, 1 / self.view.noise.at(np.linalg.norm(points.y, axis=1)))


def read_star(view: BoxView, directions: int, rng: np.random.Generator) -> Star:
    """Scan so many lines through a point near the middle. Cost: 50 to 100 rows a neuron and line."""
    off_centre = 0.1  # of the box: neurons without a bias all meet in its middle
    frame = Frame(off_centre * view.sample(rng, 1)[0], _long_directions(view.dim, directions, rng))
    lines = [read_stretch(view, frame.origin, u, view.reach(frame.origin, u), rng) for u in frame.basis]
    noise = float(np.mean([line.view.noise.near for line in lines]))
    return Star(view.with_noise(noise / view.noise.near), frame, lines, _joined_lines(lines, noise))


def _long_directions(dim: int, count: int, rng: np.random.Generator) -> FloatArray:
    """Orthonormal directions (count, d), nearly towards corners: there a box is longest."""
    corners = rng.choice([-1.0, 1.0], (dim, count)) + 0.1 * rng.standard_normal((dim, count))
    return np.asarray(np.linalg.qr(corners)[0].T)


def _on_axis(line: OnLine, axis: int, k: int) -> Points:
    y = np.zeros((len(line.data), k))
    y[:, axis] = line.data.t
    return Points(y, line.data.f, line.data.weight)


@dataclass(frozen=True)
class _LineBends:
    """Creases of one line: positions (n,), bends (n, m), and bend times distance with its deviation."""

    t: FloatArray
    bend: FloatArray
    product: FloatArray
    sd: FloatArray

    @classmethod
    def of(cls, line: OnLine, noise: float) -> _LineBends:
        position_noises = 3.0  # deviations of an answer by which a crease, times its bend, may be off
        (w, a), b = line.network.weights, line.network.biases[0]
        t, bend = -b / w[:, 0], (a * w[:, 0]).T
        gaps = np.diff(np.concatenate([[line.data.t[0]], t, [line.data.t[-1]]]))
        slopes = noise / np.minimum(gaps[:-1], gaps[1:])
        return cls(t, bend, np.abs(t)[:, None] * bend, position_noises * noise + np.abs(t) * slopes)


def _joined_lines(lines: list[OnLine], noise: float) -> ReLUNetwork:
    """The neurons of all lines, each off at the common point; a weight along a line that does not show it is 0."""
    bends = [_LineBends.of(line, noise) for line in lines]
    neurons = _matched_bends(bends)
    weights = np.zeros((len(neurons), len(lines)))
    outputs, sizes = np.zeros((bends[0].bend.shape[1], len(neurons))), np.zeros(len(neurons))
    for j, places in enumerate(neurons):
        seen = np.flatnonzero(places >= 0)
        total = np.sum([bends[i].bend[places[i]] for i in seen], axis=0)
        outputs[:, j] = total / np.linalg.norm(total)
        sizes[j] = np.mean([np.linalg.norm(bends[i].product[places[i]]) for i in seen])
        weights[j, seen] = [np.sign(bends[i].t[places[i]]) * np.linalg.norm(bends[i].bend[places[i]]) for i in seen]
    at_origin = [line.network for line in lines]
    skip = np.column_stack([_slope_at_origin(network) for network in at_origin])
    return ReLUNetwork([weights, outputs], [-sizes, at_origin[0](np.zeros((1, 1)))[0]], skip)


def _slope_at_origin(network: ReLUNetwork) -> FloatArray:
    (w, a), b = network.weights, network.biases[0]
    assert network.skip is not None
    return np.asarray(network.skip[:, 0] + (a * w[:, 0]) @ (b > 0))


def _matched_bends(bends: list[_LineBends]) -> list[IntArray]:
    """For each neuron its place on every line, -1 where that line does not show it."""
    same_product = 30.0  # deviations within which two products of bend and distance are one
    neurons: list[IntArray] = []
    for axis, found in enumerate(bends):
        for k in range(len(found.t)):
            off = [_unlike(bends, neuron, found, k) if neuron[axis] < 0 else np.inf for neuron in neurons]
            best = int(np.argmin(off)) if off else -1
            if off and off[best] < same_product:
                neurons[best][axis] = k
            else:
                fresh = np.full(len(bends), -1, dtype=np.intp)
                fresh[axis] = k
                neurons.append(fresh)
    return neurons


def _unlike(bends: list[_LineBends], neuron: IntArray, found: _LineBends, k: int) -> float:
    """How far a bend is from those of a neuron, in deviations."""
    others = [(bends[axis].product[place], bends[axis].sd[place]) for axis, place in enumerate(neuron) if place >= 0]
    return max(float(np.linalg.norm(product - found.product[k]) / np.hypot(sd, found.sd[k])) for product, sd in others)


MISFIT, MISFITS = 6.0, 0.03  # deviations, and share of the points of a pass that may have more


def grow_star(view: BoxView, directions: int, rng: np.random.Generator) -> tuple[View, KnownSubspace]:
    """Read a star of so many lines, then the network in its subspace. Cost: about 70 rows a neuron, 80 a line more."""
    star = read_star(view, directions, rng)
    return star.view, _grown_star(star, rng)


def _grown_star(star: Star, rng: np.random.Generator) -> KnownSubspace:
    pass_offsets = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # from the lines, in sizes of an input
    star_steps, star_huber, star_damping, star_enough = 8, 5.0, 1e-8, 3e-2
    points, network = _some_samples(star, rng), star.network
    with star.view.oracle.stage("growth"):
        for offset in pass_offsets:
            new = ask_in(star.view, star.frame, _beside_lines(star, offset, rng))
            points += new
            network = fit_to_points(
                network, points, steps=star_steps, damping=star_damping, huber=star_huber, enough=star_enough
            )
            _check_pass(network, new)
    with star.view.oracle.stage("subspace"):
        points += random_points(star.view, star.frame, network.widths[1], rng)
        return questioned(star.view, star.frame, network, points, rng)


def _some_samples(star: Star, rng: np.random.Generator) -> Points:
    on_lines, fewest_on_lines = 16, 600  # samples a neuron and line
    points, h = star.points, star.network.widths[1]
    return points.chosen(rng.permutation(len(points))[: max(on_lines * h, fewest_on_lines) * len(star.lines)])


def _beside_lines(star: Star, offset: float, rng: np.random.Generator) -> FloatArray:
    """Points beside the lines, as far as this; the farthest are anywhere in the box."""
    points_per_neuron = 8  # points of a pass
    k, n = len(star.frame.basis), points_per_neuron * star.network.widths[1]
    axis, on = rng.integers(k, size=n), np.zeros((n, k))
    reaches = np.array([np.abs(line.data.t).max() for line in star.lines])
    on[np.arange(n), axis] = rng.uniform(-1, 1, n) * reaches[axis]
    return star.view.pulled_in(star.frame, on + offset * star.view.size * rng.standard_normal((n, k)))


def _check_pass(network: ReLUNetwork, new: Points) -> None:
    share = float(np.mean(misfit(network, new) > MISFIT))
    if share > MISFITS:
        raise StageFailed("growth", "points off the lines are not explained", number=share, limit=MISFITS)

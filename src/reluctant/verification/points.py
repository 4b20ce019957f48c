"""The points at which a network is compared with a target.

Random points alone are blind: two nearly parallel neurons merged into one agree with the target everywhere except
within their distance of the crease. So a comparison has several groups of points:

- random, at the scales 0.1, 1, 3 and 10: errors of any size that matter on a share of all inputs;
- on lines through the scale of use, one between any two creases: a neuron too many or too few on the line;
- on a ray to either side of an input, in even steps of its logarithm: a narrow ridge, wherever the ray crosses it;
- on lines to far out, and where units that a layer may lack would be on: units that only large inputs switch on;
- where a neuron that is hardly ever on (or off) at the scale of use is on (or off) after all;
- where an output, or a random sum of hidden neurons, is largest: a neuron of a layer above that few inputs switch;
- inside cells where chosen units are on and the others off, near and far out (`cells`);
- on the crease of every hidden neuron: neurons that the target does not have;
- beside these creases, at distances from 1e-8 to 1 of the point's norm: neurons merged, or turned to the wrong side;
- far along the creases of the first layer, 3 % beside them: neurons that are really parts of deeper ones.

Each group comes from one function of (network, domain, rng), and `comparison_points` lists the groups: a new kind of
point is one more function and one more group. Nothing here queries the target.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluctant.domains import Domain
from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.numerics import HOST, Arrays, FloatArray, joined
from reluctant.verification.cells import LINE_REACH, alone_points, covering_points, far_points

SCALES = (0.1, 1.0, 3.0, 10.0)  # of the random points; 1 is the scale of use
LINE_POINTS = 64  # on lines, where neurons are rarely on, and at extremes
FARTHEST_CREASE = 2 * SCALES[-1]  # of √d: no point of a crease is sought farther from the origin
NEAREST_BESIDE, FARTHEST_BESIDE = 1e-8, 1.0  # of the point's norm: from just above rounding to the norm itself
FAR_SCALE, FAR_BESIDE = 30.0, 0.03  # far along a crease, where one of a deeper layer has bent away


@dataclass(frozen=True)
class PointCounts:
    """How many points of each kind a comparison has.

    points: at each scale.
    per_neuron: beside each crease, besides the one on it.
    at_use: at the scale of use, if more.
    on_lines: on lines, where neurons are rarely on, and at extremes.
    most_on_lines: on the two lines together, where half of them are enough for every piece of a line.
    on_rays: on two rays from a random input, which cross narrow ridges.
    far: far along the creases of the first layer.
    alone: at most so many where one unit of the first layer is on alone.
    far_cells: also far out, where one unit of a layer is on alone.
    whole_lines: on lines to far out, in every piece.
    covering: at most so many for each layer, where units that it may lack would be on.
    """

    points: int = 64
    per_neuron: int = 2
    at_use: int = 0
    on_lines: int = LINE_POINTS
    most_on_lines: int = 0
    on_rays: int = 0
    far: int = 0
    alone: int = 0
    far_cells: bool = False
    whole_lines: int = 0
    covering: int = 0

    def __post_init__(self) -> None:
        if self.points < 2 or self.per_neuron < 0:
            got = (self.points, self.per_neuron)
            raise InvalidInput.about("points, per_neuron", got=got, expected="at least 2 and 0")

    @property
    def random(self) -> int:
        """Random points, at all scales."""
        return (len(SCALES) - 1) * self.points + max(self.points, self.at_use)


@dataclass(frozen=True)
class PointGroup:
    """Rows (n, d) of one kind, and its name in the result."""

    name: str
    rows: FloatArray


def random_group(scale: float, rows: FloatArray) -> PointGroup:
    """Random points of one scale."""
    return PointGroup(f"random, scale {scale:g}", rows)


def comparison_points(
    network: ReLUNetwork,
    domain: Domain,
    rng: np.random.Generator,
    counts: PointCounts,
    *,
    creases: bool = True,
    on_creases: bool = True,
    extremes: bool = True,
    samples: FloatArray | None = None,
    arrays: Arrays = HOST,
) -> tuple[list[PointGroup], int]:
    """The groups of one comparison, the scales first, and the number of neurons without a crease in reach.

    creases: False where others were asked on the creases before. on_creases: False where points beside them are
    enough, since gradients have two values on a crease. extremes: False where answers saturate at them. samples: rows
    of the kind the target is for.
    """
    at_scales = [max(counts.points, counts.at_use) if scale == 1 else counts.points for scale in SCALES]
    drawn = zip(SCALES, at_scales, strict=True)
    groups = [random_group(scale, domain.sample(rng, count, network.dim, scale)) for scale, count in drawn]
    rarely = rare_points(network, counts.on_lines // 2, domain, rng)
    largest = extreme_points(network, counts.on_lines // 4 if extremes else 0, domain, rng)
    on_line = line_points(network, counts.on_lines - len(rarely) - len(largest), domain, rng, counts.most_on_lines)
    anywhere, none = domain.is_space, np.empty((0, network.dim))
    rays = ray_points(network.dim, counts.on_rays, rng) if counts.on_rays and anywhere else none
    single = alone_points(network, counts.alone, rng) if counts.alone and anywhere else none
    outer = far_points(network, rng) if counts.far_cells and anywhere else none
    whole = whole_line_points(network, counts.whole_lines, rng) if counts.whole_lines and anywhere else none
    covered = covering_points(network, rng, most=counts.covering) if counts.covering and anywhere else none
    named = (
        ("on lines", on_line), ("on rays", rays), ("rarely on", rarely), ("extremes", largest),
        ("one unit on", single), ("one unit on, far out", outer), ("on whole lines", whole), ("missing units", covered),
    )  # fmt: skip
    for name, rows in named:
        groups += [PointGroup(name, rows)] if len(rows) else []
    untested = 0
    if creases:
        on = crease_points(network, domain, rng, arrays)
        untested = on.missed
        if len(on.points):
            groups += [PointGroup("on creases", on.points)] if on_creases else []
            if counts.per_neuron:
                beside = points_beside(np.repeat(on.points, counts.per_neuron, axis=0), domain, rng)
                groups.append(PointGroup("beside creases", beside))
    along = far_along_creases(network, counts.far, domain, rng)
    if len(along):
        groups.append(PointGroup("far along creases", along))
    if samples is not None:
        given = samples[[domain.contains(row) for row in samples]]
        if len(given):
            groups.append(PointGroup("given inputs", given[rng.permutation(len(given))[: counts.points]]))
    return groups, untested


@dataclass(frozen=True)
class CreasePoints:
    """Points (n, d) on creases, the (layer, neuron) of each, and how many neurons have none in reach."""

    points: FloatArray
    neurons: NDArray[np.intp]  # (n, 2)
    missed: int


def crease_points(
    network: ReLUNetwork, domain: Domain, rng: np.random.Generator, arrays: Arrays = HOST
) -> CreasePoints:
    """One random point on the crease of every hidden neuron whose crease passes the scale of use."""
    attempts = 8
    points, neurons, missed = [], [], 0
    for layer, width in enumerate(network.widths[1:-1]):
        found = _drawn_on_creases(network, layer, np.arange(width), domain, rng, arrays)
        for _ in range(attempts - 1):
            open_ = np.flatnonzero(np.isnan(found[:, 0]))
            if not len(open_):
                break
            found[open_] = _drawn_on_creases(network, layer, open_, domain, rng, arrays)
        hit = np.flatnonzero(~np.isnan(found[:, 0]))
        points.append(found[hit] if len(hit) < width else found)
        neurons.append(np.column_stack([np.full(len(hit), layer), hit]))
        missed += width - len(hit)
    if not points:
        return CreasePoints(np.empty((0, network.dim)), np.empty((0, 2), dtype=np.intp), 0)
    return CreasePoints(joined(points), joined(neurons), missed)


def _drawn_on_creases(
    network: ReLUNetwork,
    layer: int,
    neurons: NDArray[np.intp],
    domain: Domain,
    rng: np.random.Generator,
    arrays: Arrays,
) -> FloatArray:
    """A random point on the crease of each of these neurons of a layer, NaN where none was met."""
    if layer == 0 and domain.is_space:
        return _projected(network, neurons, rng, arrays)
    return _crossed(network, layer, neurons, domain, rng)


def _random_scales(n: int, rng: np.random.Generator) -> FloatArray:
    """Scales (n, 1), evenly spread on a logarithmic scale."""
    return np.exp(rng.uniform(np.log(SCALES[0]), np.log(SCALES[-1]), (n, 1)))


def _projected(network: ReLUNetwork, neurons: NDArray[np.intp], rng: np.random.Generator, arrays: Arrays) -> FloatArray:
    """Random points projected onto hyperplanes of the first layer; NaN where that leads too far out."""
    w, b, scale = network.weights[0], network.biases[0], _random_scales(len(neurons), rng)
    normals = arrays.put(w if len(neurons) == len(w) else w[neurons])
    lengths = arrays.xp.linalg.norm(normals, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN for a neuron without a crease
        normals, offsets = normals / lengths[:, None], arrays.put(b[neurons]) / lengths
    points = arrays.put(scale) * arrays.normals(rng, (len(neurons), network.dim))
    points -= ((points * normals).sum(axis=1) + offsets)[:, None] * normals
    sizes = arrays.xp.linalg.norm(points, axis=1)
    points[~(sizes <= FARTHEST_CREASE * float(np.sqrt(network.dim)))] = np.nan
    return arrays.get(points)


def _crossed(
    network: ReLUNetwork, layer: int, neurons: NDArray[np.intp], domain: Domain, rng: np.random.Generator
) -> FloatArray:
    """A zero of each neuron's pre-activation between two random points; NaN where none of 17 samples changes sign."""
    n = len(neurons)

    def random_ends() -> FloatArray:
        scale = _random_scales(n, rng)
        if domain.is_box:
            return domain.sample(rng, n, network.dim)
        return domain.fold(scale * rng.standard_normal((n, network.dim)))

    start, stop = random_ends(), random_ends()

    def values(t: FloatArray) -> FloatArray:
        rows = start + t[:, None] * (stop - start)
        return network.preactivations(rows)[layer][np.arange(n), neurons]

    grid = np.linspace(0, 1, 17)
    signs = np.array([values(np.full(n, t)) > 0 for t in grid])
    changes = signs[1:] != signs[:-1]
    first = changes.argmax(axis=0)
    low, high = grid[first], grid[first + 1]
    below = signs[first, np.arange(n)]
    for _ in range(60):  # more than float64 has bits
        middle = (low + high) / 2
        same = (values(middle) > 0) == below
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    points = start + low[:, None] * (stop - start)
    points[~changes.any(axis=0)] = np.nan
    return points


def points_beside(points: FloatArray, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Each point moved by a random step, its length spread evenly over eight orders of magnitude."""
    steps = rng.standard_normal(points.shape)
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    sizes = np.exp(rng.uniform(np.log(NEAREST_BESIDE), np.log(FARTHEST_BESIDE), (len(points), 1)))
    return domain.nearest(points + sizes * np.linalg.norm(points, axis=1, keepdims=True) * steps)


def far_along_creases(network: ReLUNetwork, count: int, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Points (n, d) far out along the hyperplanes of the first layer, a little beside them; none if it has none.

    A network whose neurons are really parts of deeper ones is wrong there, long before random points show it. In a
    bounded domain they are all over it.
    """
    if not count:
        return np.empty((0, network.dim))
    normals, offsets = network.hyperplanes()
    there = np.flatnonzero(np.abs(offsets) <= FAR_SCALE * np.sqrt(network.dim))  # False where there is none
    which = there[rng.permutation(np.arange(count) % len(there))] if len(there) else there
    points = domain.sample(rng, len(which), network.dim, FAR_SCALE)
    sizes = np.linalg.norm(points - points.mean(axis=0), axis=1, keepdims=True) if len(points) else points[:, :1]
    points = points - ((points * normals[which]).sum(axis=1) + offsets[which])[:, None] * normals[which]
    return domain.nearest(points + FAR_BESIDE * sizes * rng.standard_normal(points.shape))


def line_points(
    network: ReLUNetwork, count: int, domain: Domain, rng: np.random.Generator, most: int = 0
) -> FloatArray:
    """Points (n, d) on two lines through the scale of use, in turn between any two creases of the network there.

    A neuron that the network lacks, or has too many, bends the target at one place of a line and shows in every piece
    beyond. So one point in each piece finds it wherever the line meets it, also if another takes its bend back further
    on. The two lines share `most` points: one of up to `most // 2` pieces gets a point in each, also if n passes
    `count`.
    """
    most_values = 2_000_000  # of neurons along a line: a wide network is read in coarser steps
    points = [np.empty((0, network.dim))]
    for part in (count - count // 2, count // 2):
        ends = _line_ends(network.dim, domain, rng)
        widest = max(network.widths[1:])
        shares = np.linspace(0, 1, int(np.clip(most_values // widest, 33, 1001)))
        patterns = network.patterns(ends[0] + shares[:, None] * (ends[1] - ends[0]))
        changed = np.zeros(len(shares) - 1, dtype=bool)
        for active in patterns[: network.depth - 1]:
            changed |= (active[1:] != active[:-1]).any(axis=1)
        bounds = np.concatenate([[0.0], shares[1:][changed], [1.0]])
        part = len(bounds) - 1 if part < len(bounds) - 1 <= most // 2 else part
        pieces = rng.permutation(len(bounds) - 1)[np.arange(part) % (len(bounds) - 1)]
        chosen = bounds[pieces] + rng.uniform(0.1, 0.9, part) * np.diff(bounds)[pieces]
        points.append(ends[0] + chosen[:, None] * (ends[1] - ends[0]))
    return joined(points)


def whole_line_points(network: ReLUNetwork, count: int, rng: np.random.Generator) -> FloatArray:
    """Points (count, d) on lines to a thousand times the scale of use, in turn one in each piece.

    One line is random, and one goes through a crease of each hidden layer. Pieces are those of the network: with a
    unit that it lacks, the target has another gradient in some of them.
    """
    steps = 2001
    if not count or network.depth < 2:
        return np.empty((0, network.dim))
    points, lines = [np.empty((0, network.dim))], network.depth
    through = rng.standard_normal((lines, network.dim))
    for layer in range(network.depth - 1):
        on_crease = _drawn_on_creases(
            network, layer, rng.integers(network.widths[layer + 1], size=1), Domain(), rng, HOST
        )
        through[layer + 1] = np.where(np.isnan(on_crease[0]), through[layer + 1], on_crease[0])
    angles = np.linspace(-np.arctan(FARTHEST_ON_LINES), np.arctan(FARTHEST_ON_LINES), steps)
    for number, start in enumerate(through):
        part = count // lines + (number < count % lines)
        direction = rng.standard_normal(network.dim)
        patterns = network.patterns(start + np.tan(angles)[:, None] * direction)[: network.depth - 1]
        changed = np.any([(on[1:] != on[:-1]).any(axis=1) for on in patterns], axis=0)
        bounds = np.concatenate([angles[:1], angles[1:][changed], angles[-1:]])
        pieces = rng.permutation(len(bounds) - 1)[np.arange(part) % (len(bounds) - 1)]
        chosen = bounds[pieces] + rng.uniform(0.1, 0.9, part) * np.diff(bounds)[pieces]
        points.append(start + np.tan(chosen)[:, None] * direction)
    return joined(points)


FARTHEST_ON_LINES = 1e3  # scales of use


def ray_points(dim: int, count: int, rng: np.random.Generator) -> FloatArray:
    """So many points (n, d) on two rays from a random input, in even steps of the logarithm of their distance.

    A hyperplane at distance b is crossed at distance b / cos, where a ridge is as much wider: rows that lie closer than
    width / b, relatively, meet it at any angle.
    """
    nearest, farthest = 0.3, 30.0  # scales of use
    through, direction = rng.standard_normal((2, dim))
    each = np.array([count - count // 2, count // 2])
    places = [nearest * (farthest / nearest) ** ((np.arange(n) + rng.random()) / max(n, 1)) for n in each]
    return np.asarray(through + np.concatenate([places[0], -places[1]])[:, None] * direction)


def _line_ends(dim: int, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Two ends (2, d): of a line through a random input and far to both sides, in a bounded domain two inputs."""
    if not domain.is_space:
        return domain.sample(rng, 2, dim)
    through, direction = rng.standard_normal((2, dim))
    return np.stack([through - LINE_REACH * direction, through + LINE_REACH * direction])


def rare_points(network: ReLUNetwork, most: int, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Points (n, d) where neurons are on that hardly any input switches on, or off: one for each, in all `most`."""
    samples, rare = 128, 0.03
    starts = domain.sample(rng, samples, network.dim)
    points = [np.empty((0, network.dim))]
    for layer, values in enumerate(network.preactivations(starts)[: network.depth - 1]):
        on = (values > 0).mean(axis=0)
        neurons = rng.permutation(np.flatnonzero((on < rare) | (on > 1 - rare)))[:most]
        if len(neurons):
            sides = np.where(on[neurons] < rare, 1.0, -1.0)
            nearest = starts[np.argmax(sides * values[:, neurons], axis=0)]
            points.append(_climbed(network, layer, neurons, sides, nearest, domain))
    found = joined(points)
    return found[rng.permutation(len(found))[:most]]


def _climbed(
    network: ReLUNetwork,
    layer: int,
    neurons: NDArray[np.intp],
    sides: FloatArray,
    points: FloatArray,
    domain: Domain,
) -> FloatArray:
    """The points moved uphill, each for one neuron and one side of it, as far as the scale of the lines reaches."""
    steps, farthest = 8, LINE_REACH * np.sqrt(network.dim)
    for _ in range(steps):
        values = network.preactivations(points)
        short = sides * values[layer][np.arange(len(neurons)), neurons] <= 0
        if not short.any():
            break
        sums = {s: sides[:, None] * w[neurons] for s, w in network.incoming(layer + 1).items()}
        uphill = network.input_slopes([each > 0 for each in values[:layer]], sums)
        moved = points + farthest / steps * _unit_rows(uphill) * short[:, None]
        points = _kept_near(moved, farthest, domain)
    return points


def _kept_near(points: FloatArray, radii: FloatArray | float, domain: Domain) -> FloatArray:
    """The points in the domain: in all of space no farther out than their radius."""
    if not domain.is_space:
        return domain.nearest(points)
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points * np.minimum(1.0, radii / np.maximum(lengths, 1e-300)))


def extreme_points(network: ReLUNetwork, count: int, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Points (count, d) where an output, of either sign, or a random sum of hidden neurons is largest.

    A neuron of a layer above is such a sum. One that all random points leave on or off switches at an extreme first.
    """
    samples, steps = 128, 0.5 * 0.8 ** np.arange(16)  # of the radius: long ones, then short ones
    if network.depth == 1 or not count:
        return np.empty((0, network.dim))
    sums = _sums_of_outputs(network, count, rng)
    starts = domain.sample(rng, samples, network.dim)
    below = [starts, *(np.maximum(values, 0) for values in network.preactivations(starts))]
    points = starts[np.argmax(sum(w @ below[k].T for k, w in sums.items()), axis=1)]
    radii = np.sqrt(network.dim) * np.where(np.arange(count) % 2, LINE_REACH, 1.0)[:, None]
    best, largest = points, np.full(count, -np.inf)
    for step in steps:
        values = network.preactivations(points)
        below = [points, *(np.maximum(each, 0) for each in values)]
        found = np.add.reduce([(w * below[k]).sum(axis=1) for k, w in sums.items()])
        best, largest = np.where((found > largest)[:, None], points, best), np.maximum(found, largest)
        uphill = _unit_rows(network.input_slopes([each > 0 for each in values], sums))
        points = _kept_near(points + step * radii * uphill, radii, domain)
    return np.asarray(best)


def _sums_of_outputs(network: ReLUNetwork, count: int, rng: np.random.Generator) -> dict[int, FloatArray]:
    """Coefficients (n, width) of layers, by layer: of outputs with both signs, and random ones."""
    of_outputs = min(count // 2, 4 * network.outputs)  # each up and down, at two scales
    which, signs = np.arange(of_outputs) // 4, np.where(np.arange(of_outputs) // 2 % 2, 1.0, -1.0)[:, None]
    others = _sums_of_layers(network, count - of_outputs, rng)
    sums = {}
    for source, w in (others | network.incoming(network.depth)).items():
        first = signs * w[which] if source in network.incoming(network.depth) else np.zeros((of_outputs, w.shape[1]))
        sums[source] = np.concatenate([first, others.get(source, np.zeros((count - of_outputs, w.shape[1])))])
    return sums


def _sums_of_layers(network: ReLUNetwork, count: int, rng: np.random.Generator) -> dict[int, FloatArray]:
    """Random coefficients (n, width) of hidden layers, by layer: half of the last one, the others of those below.

    Of those half are single neurons, up or down.
    """
    last = network.depth - 1
    of_last = count if last == 1 else count - count // 2
    layers = np.concatenate([np.full(of_last, last), rng.integers(1, max(last, 2), count - of_last)])
    sums = {}
    for layer in range(1, last + 1):
        own, width = np.flatnonzero(layers == layer), network.widths[layer]
        sums[layer] = np.zeros((count, width))
        sums[layer][own] = rng.standard_normal((len(own), width))
        if layer < last:
            single = own[::2]
            sums[layer][single] = 0
            sums[layer][single, rng.integers(width, size=len(single))] = rng.choice([-1.0, 1.0], len(single))
    return sums


def _unit_rows(rows: FloatArray) -> FloatArray:
    """Each of length 1, or 0 where it has none."""
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, sizes, out=np.zeros_like(rows), where=sizes > 0)

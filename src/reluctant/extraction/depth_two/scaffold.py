"""First stages of depth two: creases on one line, neurons in a frame of few directions, and a probe.

The line shows one crease of each neuron. Short lines in other directions give each neuron's weights along the frame.
The probe asks a few fresh points and stops early where the network in the frame is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.method import Handover, Shows, StageFailed
from reluctant.fitting.least_squares import design_matrix, solve_weighted
from reluctant.geometry import DistanceNoise, Frame, FramedNetwork, Lines, LineSearch, Scan, scan_lines
from reluctant.geometry.creases import merge_slivers
from reluctant.geometry.lines import IntArray, piece_ends
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, Arrays, FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.base import Fans, Steps
from reluctant.verification import HeldOutRows

# Two creases this close are of neurons that are nearly parallel: of the scale, and of what a neuron adds there.
CROWD = 1000  # creases on a line: some are likely to be too close to each other
PROBE = "probe"  # a stage that fails where the creases of a line do not explain points beside it


class NoCrease(Exception):
    """The target is affine along the whole line."""


@dataclass(frozen=True)
class Regions:
    """Pieces of the line between creases: middle, width, value and slope there and how well they are known."""

    middle: FloatArray
    width: FloatArray
    value: FloatArray  # (n, m)
    value_sd: FloatArray
    slope: FloatArray  # (n, m)
    slope_sd: FloatArray
    scale: float

    def chosen(self, which: IntArray) -> Regions:
        """These regions only."""
        places, values = (self.middle[which], self.width[which]), (self.value[which], self.value_sd[which])
        return Regions(*places, *values, self.slope[which], self.slope_sd[which], self.scale)

    def __len__(self) -> int:
        return len(self.middle)


def neurons_on_a_line(
    oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, frame: Frame | None = None, *, lines: int
) -> tuple[FramedNetwork, Regions]:
    """Scan one random line, of a frame if one is given; another where a few creases are too close to each other.

    lines: how many are scanned at most.

    Cost: about five rows a neuron.
    """
    sliver, shallow = 1e-6, 3e-9
    few_open = 0.01  # of a line's creases, left open by chance: with more, the target is curved
    crowded_by_chance = 3000  # neurons: with more, creases of any two may be that close by chance
    for _ in range(lines):
        line = Lines.random(rng, 1, oracle.dim) if frame is None else frame.random_lines(rng, 1)
        scan = _scan_a_line(oracle, line, noise, rng)
        unresolved = _unresolved(scan)
        if not 0 < unresolved < few_open * len(scan.creases):
            break
    if not len(scan.creases):
        raise NoCrease
    _refuse_unresolved(unresolved)
    usual = float(np.median(np.linalg.norm(scan.creases.jump, axis=1)))
    least = line.scale * min(1.0, (crowded_by_chance / len(scan.creases)) ** 2)
    scan = merge_slivers(scan, sliver * least, shallow * least * usual)
    _refuse_unresolved(_unresolved(scan))  # the sum of two that bend against each other may be nothing
    return _network_on_line(scan, line), _regions(scan, line)


def _refuse_unresolved(unresolved: int) -> None:
    if unresolved:
        raise StageFailed("line", "creases too close to each other to separate", number=unresolved, limit=0)


def _scan_a_line(oracle: Counting, lines: Lines, noise: DistanceNoise, rng: np.random.Generator) -> Scan:
    def ask_at(line: IntArray, t: FloatArray) -> FloatArray:
        return oracle.query_moves(Steps(lines.origins, line, t, line, lines.directions))

    with oracle.stage("line"):
        scan = scan_lines(oracle.query, lines, noise, rng, ask_at=ask_at)
        oracle.ledger.show(LineSearch.of(lines, scan))
    return scan


def _unresolved(scan: Scan) -> int:
    """Places of the line that stay open, creases that are not in order, and such that bend nothing or are nowhere."""
    creases = scan.creases
    nothing = ~creases.jump.any(axis=1) | creases.nowhere
    return int(scan.open.sum() + (np.diff(creases.t[~creases.nowhere]) <= 0).sum() + nothing.sum())


def _network_on_line(scan: Scan, lines: Lines) -> FramedNetwork:
    """The function on the line as a network of one input; the leftmost piece is its skip term."""
    sizes = np.linalg.norm(scan.creases.jump, axis=1)
    outputs = (scan.creases.jump / sizes[:, None]).T
    near = scan.pieces.last[0]  # the near end: the far one has lost its digits
    slope = scan.pieces.slope[0]
    constant = scan.samples.f[near] - slope * scan.samples.t[near]
    network = ReLUNetwork([sizes[:, None], outputs], [-sizes * scan.creases.t, constant], slope[:, None])
    return FramedNetwork(Frame(lines.origins[0], lines.directions), network, scan.creases.jump_sd, scan.creases.jump_sd)


def _regions(scan: Scan, lines: Lines) -> Regions:
    t, pieces, s = scan.creases.t, scan.pieces, scan.samples
    ends = piece_ends(t, lines.scale)
    middle = (ends[1:] + ends[:-1]) / 2
    to_first, to_last = middle - s.t[pieces.first], middle - s.t[pieces.last]
    nearest = np.where(np.abs(to_first) < np.abs(to_last), pieces.first, pieces.last)
    step = middle - s.t[nearest]
    value = s.f[nearest] + pieces.slope * step[:, None]
    value_sd, slope_sd = pieces.sd * (1 + np.abs(step) / pieces.length), pieces.sd / pieces.length
    return Regions(middle, np.diff(ends), value, value_sd, pieces.slope, slope_sd, lines.scale)


def grow_scaffold(
    oracle: Counting,
    known: FramedNetwork,
    regions: Regions,
    directions: int,
    noise: DistanceNoise,
    rng: np.random.Generator,
    *,
    spread: float = 0.0,
) -> FramedNetwork:
    """Extend the neurons of a line into more directions. Cost: about directions + 1 rows a region.

    spread: of half a region, over which its rows are spread along the line: a ridge there, which no sample of the line
    has met, speaks against the line. With 0 all are in the middle.
    """
    if directions == 0:
        return known
    new = known.frame.new_directions(directions, rng)
    used = regions.chosen(_enough_regions(regions, known.network.weights[1]))
    with oracle.stage("scaffold", expected=len(used) * (directions + 1)):
        gradients, steps = _region_gradients(
            oracle, known, used, new, noise, _spread_places(used, directions, spread, rng)
        )
    sd = np.repeat(noise.at(np.hypot(used.middle, used.scale)) / steps, known.network.outputs)
    rows = gradients.reshape(-1, directions)
    if known.network.outputs == 1:
        found, found_sd = _between_neighbours(rows, sd, known.network.weights[1][0])
    else:
        active = known.network.patterns(used.middle[:, None])[0]
        solution = solve_weighted(design_matrix(active, known.network.weights[1]), 1 / sd)
        found, found_sd = solution @ rows, np.sqrt(((solution * sd) ** 2).sum(axis=1))[: known.neurons]
    return _extended(known, new, found, np.maximum(known.weight_sd, found_sd))


def _between_neighbours(rows: FloatArray, sd: FloatArray, outputs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Neurons, then the skip row, from the gradients (n + 1, k) of one output along a line, region by region.

    Each region has one neuron more on than the one before; in the first none is.
    """
    neurons = outputs[:, None] * np.diff(rows, axis=0)
    return np.concatenate([neurons, rows[:1]]), np.hypot(sd[1:], sd[:-1])


def _enough_regions(regions: Regions, outputs: FloatArray) -> IntArray:
    """All regions for one output; with m outputs one in about m, the widest of each stretch.

    Outputs distinguish the neurons between two of them.
    """
    m = len(outputs)
    if m == 1:
        return np.arange(len(regions))
    chosen, last = [0], len(regions) - 1
    nearest, farthest = stretch_of_regions(m)
    while chosen[-1] < last:
        start = chosen[-1]
        stop = start + _told_apart(outputs[:, start : start + farthest])
        stretch = np.arange(min(start + nearest, stop), stop + 1)
        chosen.append(int(stretch[np.argmax(regions.width[stretch])]) if stop < last else last)
    return np.array(chosen)


def stretch_of_regions(m: int) -> tuple[int, int]:
    """Fewest and most neurons between two regions whose gradients are measured, with m outputs."""
    # Neurons for each output between two of these regions, at least and at most.
    nearest_stretch, farthest_stretch = 0.45, 0.85
    return max(1, int(nearest_stretch * m)), max(1, int(farthest_stretch * m))


def _told_apart(outputs: FloatArray) -> int:
    """How many of these neurons, from the first, have outputs (m, n) that are clearly independent; at least one."""
    independent = 0.02  # smallest singular value of the outputs, of norm one, of neurons measured together
    many = outputs.shape[1]
    while many > 1 and np.linalg.svd(outputs[:, :many], compute_uv=False)[-1] < independent:
        many -= 1
    return many


def _spread_places(regions: Regions, directions: int, spread: float, rng: np.random.Generator) -> FloatArray | None:
    """Where along each region its rows (n, directions + 1) are, from its middle; None if all are there.

    No farther than the line is known as well as in the middle.
    """
    if not spread:
        return None
    shape = (len(regions), directions + 1)
    places = (rng.permuted(np.tile(np.arange(shape[1]), (shape[0], 1)), axis=1) + rng.random(shape)) / shape[1]
    reach = np.minimum(spread * regions.width, 2 * regions.value_sd / regions.slope_sd)
    return np.asarray(reach[:, None] * (places - 1 / 2))


def _region_gradients(
    oracle: Counting,
    known: FramedNetwork,
    regions: Regions,
    new: FloatArray,
    noise: DistanceNoise,
    places: FloatArray | None,
) -> tuple[FloatArray, FloatArray]:
    """Gradients (n, m, k) along the new directions, and the steps (n,) they were measured with.

    places: of the rows along each region, from its middle. A row that stays off with a shorter step is no step across a
    crease, which the line shows, but inside a ridge that it does not show.
    """
    simplex_step = 0.03  # of half a region's width: few steps cross a crease, and digits are left
    shorter_step = 4.0
    most_rounds = 14
    rounds_of_ridge = 3  # in which a region is off by the same: a step across a crease is off by less and less
    k, m = len(new), known.network.outputs
    corners, to_gradient = _simplex(k)
    middles = known.frame.points(regions.middle[:, None])
    sd = np.hypot(regions.value_sd, noise.at(np.hypot(regions.middle, regions.scale)))
    steps = simplex_step * np.minimum(_room_in_regions(known, regions, oracle.arrays), regions.scale)
    if places is not None:
        sd = sd + regions.slope_sd * np.abs(places).max(axis=1)
    gradients = np.empty((len(regions), m, k))
    todo, before, same = np.arange(len(regions)), np.full(len(regions), np.inf), np.zeros(len(regions), dtype=int)
    for _ in range(most_rounds):
        moves = Fans(middles[todo], steps[todo], np.arange(k + 1), corners @ new)
        if places is None:
            answers = oracle.query_moves(moves).reshape(len(todo), k + 1, m)
        else:
            rows = moves.rows() + (places[todo, :, None] * known.frame.basis[0]).reshape(-1, oracle.dim)
            answers = oracle.query(rows).reshape(len(todo), k + 1, m)
            asked = HeldOutRows(rows, answers.reshape(-1, m), name="beside the line")
            answers = answers - places[todo, :, None] * regions.slope[todo, None]
        solved = np.einsum("ck,nkm->ncm", to_gradient, answers)
        gradients[todo] = np.swapaxes(solved[:, 1:] / steps[todo, None, None], 1, 2)
        off = np.abs(solved[:, 0] - regions.value[todo]).max(axis=1)
        crossed = off > DOUBLE.in_line * 2 * sd[todo]
        same[todo] = np.where(off > before[todo] / 2, same[todo] + 1, 0)
        before[todo] = off
        if places is not None and (same[todo][crossed] >= rounds_of_ridge).any():
            number, reason = int(crossed.sum()), "a ridge between creases of the line"
            against = Handover(against=asked)
            raise StageFailed("scaffold", reason, number=number, limit=0, partial=known, handover=against)
        todo = todo[crossed]
        if not len(todo):
            return gradients, steps
        steps[todo] /= shorter_step
    raise StageFailed("scaffold", "regions that are never linear", number=len(todo), limit=0, partial=known)


def _room_in_regions(known: FramedNetwork, regions: Regions, arrays: Arrays) -> FloatArray:
    """About how far it is from the middle of each region to the next crease, in directions other than the line's.

    A neuron that hardly changes along the line is likely to change more across it.
    """
    steeper = 3.0  # times as steep as the line's slope says may the usual neuron be in other directions
    steepest = 0.01  # shorter steps than that are made only where they are needed
    slopes = known.network.weights[0][:, 0]
    position = -known.network.biases[0] / slopes
    share = np.clip(steeper * slopes / np.median(slopes), steepest, 1)
    position, share, found = arrays.put(position), arrays.put(share), []
    size = max(1, arrays.cells // len(slopes))
    for start in range(0, len(regions), size):
        middle = arrays.put(regions.middle[start : start + size])
        found.append(arrays.get(arrays.xp.amin(arrays.xp.abs(middle[:, None] - position) * share, axis=1)))
    return np.concatenate(found)


def _simplex(k: int) -> tuple[FloatArray, FloatArray]:
    """Corners (k + 1, k) around the origin, and the matrix from answers there to centre and gradient."""
    corners = np.concatenate([np.eye(k), -np.ones((1, k)) / np.sqrt(k)])
    return corners, np.linalg.inv(np.column_stack([np.ones(k + 1), corners]))


def _extended(known: FramedNetwork, new: FloatArray, found: FloatArray, weight_sd: FloatArray) -> FramedNetwork:
    (g, a), biases, skip = known.network.weights, known.network.biases, known.network.skip
    h = known.neurons
    assert skip is not None
    network = ReLUNetwork([np.hstack([g, found[:h]]), a], biases, np.hstack([skip, found[h:]]))
    return FramedNetwork(known.frame.extended(new), network, weight_sd, known.along_sd)


def probe_subspace(
    oracle: Counting, known: FramedNetwork, rng: np.random.Generator, *, points: int, largest: float, crowded: bool
) -> None:
    """Compare target and model at random points of the frame. Cost: a row a point.

    largest: the error that is allowed, of the spread; the subspace only has to tell on which side of its creases a
    point is.

    A crowded line may hide a neuron too small to matter there, for which the main pass would be spent in vain: then
    the model has to be as good as it says it is.
    """
    # Times the error that the neurons' own errors explain: on a crowded line two may have passed for one.
    probe_surprise = 5.0
    scale = np.sqrt(oracle.dim)
    y = scale * rng.standard_normal((points, len(known.frame.basis)))
    with oracle.stage(PROBE, expected=points):
        answers = oracle.query(known.frame.points(y))
    error, spread = np.abs(known.network(y) - answers).max(axis=1), answers.std()
    limits = np.full(points, largest * spread)
    if crowded:
        limits = np.minimum(limits, probe_surprise * _explained_error(known, y))
    worst = int(np.argmax(error / limits))
    if not error[worst] < limits[worst]:
        number, limit = float(error[worst] / spread), float(limits[worst] / spread)
        raise StageFailed(
            PROBE, "the subspace model is wrong", number=number, limit=limit, partial=known, shows=Shows.SUBSPACE
        )


def _explained_error(known: FramedNetwork, y: FloatArray) -> FloatArray:
    """Standard deviation (n,) of the model at these points that follows from that of its weights."""
    return np.asarray(np.linalg.norm(known.network.patterns(y)[0] * known.sd_at(y), axis=1))

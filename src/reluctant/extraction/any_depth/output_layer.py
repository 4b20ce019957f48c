"""The output layer, by linear least squares on the last two hidden layers; then the fit to the last digits.

While the sides of the last layer are open, outputs are u·max(z, 0) + v·h with h the layer before. If the neurons
that are the wrong way round follow from v, they are turned and v is gone. Else v stays, as always-active
neurons. The rows of a fit must show every neuron on both sides of its crease, the rare one too.

All parameters are fitted to some of the answers, then also to the answers that this fit explains worst. Where the
search went on in a row space, which has few digits, the first-layer weights are measured once more, coordinate by
coordinate: at points far from every crease a gradient is a known combination of them. The certificate counts units
that stand for sums apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg

from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.extraction.any_depth.kinks import Asker
from reluctant.extraction.method import Certificate, Memory
from reluctant.extraction.orientation import always_active, find_turned, turn_terms
from reluctant.fitting.least_squares import Linearisation, StepRules, least_squares
from reluctant.fitting.network_fit import neuron_errors, polish
from reluctant.geometry import DistanceNoise, Question, gradients
from reluctant.geometry.lines import BoolArray, IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting

FITTED_DISTANCE = 30.0  # in units of the scale


def rows_for_fit(known: KnownLayers, memory: Memory, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Random rows of the memory, and for every neuron enough on the side of its crease that is met less often."""
    fitted_rows = 3.0  # for every parameter
    rows, answers = memory.near(FITTED_DISTANCE * np.sqrt(known.dim))
    order = rng.permutation(len(rows))
    rows, answers = rows[order], answers[order]
    chosen = np.arange(len(rows)) < fitted_rows * known.parameters
    rare = _rare_sides(known.patterns(rows))
    chosen |= (rare & (np.cumsum(rare, axis=0) <= _enough_rare_rows(known))).any(axis=1)
    return rows[chosen], answers[chosen]


def rows_on_rare_sides(known: KnownLayers, memory: Memory, rng: np.random.Generator) -> FloatArray:
    """Rows (n, d) to ask where the memory has too few: random ones, and ones around those it has."""
    rare_pool = 20_000  # random points, to choose rows on rare sides from
    rare_spread = 0.3  # of a row: how far around it others are looked for
    rare_around = 10  # points around every row
    rows, _ = memory.near(FITTED_DISTANCE * np.sqrt(known.dim))
    active = known.patterns(rows)
    rare, often_off = _rare_sides(active), active.mean(axis=0) < 0.5
    short = np.maximum(_enough_rare_rows(known) - rare.sum(axis=0), 0).astype(int)
    chosen = [rows[:0]]
    pool = known.domain.sample(rng, rare_pool, known.dim)
    for neuron in np.flatnonzero(short):
        mine = rows[rare[:, neuron]]
        size = np.linalg.norm(mine, axis=1, keepdims=True) / np.sqrt(known.dim)
        around = np.concatenate(
            [mine + rare_spread * size * rng.standard_normal(mine.shape) for _ in range(rare_around)]
        )
        candidates = np.concatenate([pool, known.domain.away(around, 0.0)])
        there = known.patterns(candidates)[:, neuron] == often_off[neuron]
        chosen.append(candidates[there][-short[neuron] :])
    return np.concatenate(chosen)


def _rare_sides(active: BoolArray) -> BoolArray:
    """Patterns (n, H) turned so that the side met less often is True."""
    return np.asarray(np.where(active.mean(axis=0) < 0.5, active, ~active))


def _enough_rare_rows(known: KnownLayers) -> FloatArray:
    """How many rows each neuron should have on its rare side."""
    rare_rows = 3.0  # for every weight of a neuron, on the side of its crease that is met less often
    return np.concatenate([np.full(len(layer), rare_rows * layer.weights.shape[1]) for layer in known.layers])


READOUT_RANK = 1e-13  # relative
ALWAYS_ON = 1.0  # bias of carried features; rows have norm one, so values are of this order


@dataclass(frozen=True)
class Readout:
    """Output weights (m, F) of all features, constants (m,); spread: of the answers, relative to the distance."""

    weights: FloatArray
    constants: FloatArray
    spread: float


def fit_readout(known: KnownLayers, rows: FloatArray, answers: FloatArray) -> Readout:
    """Least squares; answers count less the farther out they are."""
    return _ReadoutFit.of(known, rows, answers).by_least_squares(np.ones(len(rows)))


def fit_most(known: KnownLayers, rows: FloatArray, answers: FloatArray) -> Readout:
    """A fit to the rows that agree, as long as they are more than others: where a missing neuron plays a part.

    A series of least squares in which rows count less the farther they are off, beyond a floor that sinks. Where the
    floor is high, no row is left out; in the end only those that agree count.
    """
    robust_rounds, exact_rounds = 50, 8
    highest_floor, agrees_within = 0.1, 1e-6  # relative; in the end rows no farther off than this count alike
    explained = 1e-9  # relative: if no row is farther off, all are explained
    fit = _ReadoutFit.of(known, rows, answers)
    readout = fit.by_least_squares(np.ones(len(rows)))
    for k, floor in enumerate(np.geomspace(highest_floor, agrees_within, robust_rounds)):
        off = fit.deviations(readout)
        if off.max() <= explained:
            break
        weight = floor / np.maximum(off, floor)
        exact = k >= robust_rounds - exact_rounds
        readout = fit.by_least_squares(weight) if exact else fit.by_normal_equations(weight)
    return readout


@dataclass(frozen=True)
class _ReadoutFit:
    """Features and answers at rows, both divided by the distance; `size` of each feature, by which it is divided."""

    design: FloatArray
    answers: FloatArray
    size: FloatArray

    @classmethod
    def of(cls, known: KnownLayers, rows: FloatArray, answers: FloatArray) -> _ReadoutFit:
        near = 1 / np.hypot(np.sqrt(known.dim), np.linalg.norm(rows, axis=1))[:, None]
        design = np.column_stack([known.features(rows), np.ones(len(rows))]) * near
        size = np.linalg.norm(design, axis=0)
        size[size == 0] = 1.0
        return cls(design / size, answers * near, size)

    @property
    def spread(self) -> float:
        return float(self.answers.std(axis=0).max())

    def by_least_squares(self, weight: FloatArray | BoolArray) -> Readout:
        """To the last digit; rows count as much as their weight (n,)."""
        left, right = self.design * weight[:, None], self.answers * weight[:, None]
        return self._readout(np.asarray(np.linalg.lstsq(left, right, rcond=READOUT_RANK)[0], dtype=np.float64))

    def by_normal_equations(self, weight: FloatArray) -> Readout:
        """To half the digits, many times as fast."""
        left = self.design * weight[:, None]
        normal, right = left.T @ left, left.T @ (self.answers * weight[:, None])
        normal[np.diag_indices_from(normal)] += READOUT_RANK * normal.trace()
        try:
            return self._readout(scipy.linalg.solve(normal, right, assume_a="pos", check_finite=False))
        except np.linalg.LinAlgError:  # features that depend on each other at the rows that count
            return self.by_least_squares(weight)

    def _readout(self, found: FloatArray) -> Readout:
        found = (found.T / self.size).T
        return Readout(found[:-1].T, found[-1], self.spread)

    def deviations(self, readout: Readout) -> FloatArray:
        """How far off (n,) a readout is at each row, relative to the spread of the answers."""
        weights = np.column_stack([readout.weights, readout.constants]) * self.size
        return np.asarray(np.abs(self.design @ weights.T - self.answers).max(axis=1) / self.spread)


def readout_deviations(known: KnownLayers, readout: Readout, rows: FloatArray, answers: FloatArray) -> FloatArray:
    """How far off (n,) the fit is at each row, relative to the spread of the answers."""
    predicted = known.features(rows) @ readout.weights.T + readout.constants
    distance = np.hypot(np.sqrt(known.dim), np.linalg.norm(rows, axis=1))
    return np.asarray(np.abs(predicted - answers).max(axis=1) / distance / readout.spread)


def leftovers(known: KnownLayers, readout: Readout, most: int, rng: np.random.Generator) -> FloatArray:
    """What may be left (n, k) of the layer before the last when neurons are turned to their sides; none if nothing is.

    If the right sides leave something, it is the sum of neurons that were never seen to switch.
    """
    most_bits = 62  # of a whole number
    h, m = len(known.layers[-1]), len(readout.weights)
    terms, skip = _turn_terms(known, readout)
    if find_turned(terms, -skip) is not None:
        return np.empty((0, known.layers[-1].weights.shape[1]))
    numbers = np.arange(2**h) if 2**h <= most else rng.integers(0, 2 ** min(h, most_bits), most)
    choices = (numbers[:, None] >> np.arange(h)) & 1
    return np.asarray((skip + choices @ terms.T).reshape(len(choices) * m, -1))


def _turn_terms(known: KnownLayers, readout: Readout) -> tuple[FloatArray, FloatArray]:
    """What each neuron of the last layer would add to the layer before, all outputs (m·k, h), and the present one."""
    h = len(known.layers[-1])
    return turn_terms(known.layers[-1].weights, readout.weights[:, :h]), readout.weights[:, h:].reshape(-1)


def oriented_network(known: KnownLayers, readout: Readout, rows: FloatArray, answers: FloatArray) -> ReLUNetwork:
    """The whole network, its last layer turned to the right sides where they can be found."""
    h = len(known.layers[-1])
    outputs, skip = readout.weights[:, :h], readout.weights[:, h:]
    terms, rest = _turn_terms(known, readout)
    turned = find_turned(terms, -rest)
    if turned is not None:
        known = known.with_sides(turned)
        readout = fit_readout(known, rows, answers)
    if _sees_below(known):
        return _skipping_network(known, readout)
    if turned is not None:
        return _whole_network(known, readout.weights, readout.constants)
    if len(known.layers) == 1:
        return _whole_network(known, outputs, readout.constants, skip)
    before = known.lowest(len(known.layers) - 1).features(rows)
    return _with_always_active(known, outputs, skip, readout.constants, before.mean(axis=0))


def _with_always_active(
    known: KnownLayers, outputs: FloatArray, skip: FloatArray, constants: FloatArray, typical: FloatArray
) -> ReLUNetwork:
    """The skip term carried by more neurons of the last layer; `typical` (k,) values of the one before.

    Their biases keep them on where what they look at is zero: at zero itself a later fit could turn them off.
    """
    no_skip = 1e-9  # singular values of v this small, relative to the output weights, are rounding
    rows, more = always_active(skip, no_skip * float(np.abs(outputs).max()))
    last, biases = known.layers[-1], rows @ typical
    layer = Layer.of(np.concatenate([last.weights, rows]), np.concatenate([last.biases, biases]))
    known = known.lowest(len(known.layers) - 1).extended(layer)
    return _whole_network(known, np.hstack([outputs, more]), constants - more @ biases)


def fitted_top(known: KnownLayers, rows: FloatArray, answers: FloatArray) -> ReLUNetwork:
    """The layers known, with the output of all their features that fits best; others may be missing between them."""
    return _skipping_network(known, fit_readout(known, rows, answers))


def without_outputs(known: KnownLayers, outputs: int) -> ReLUNetwork:
    """A part: the layers known, with nothing above them."""
    known = known.with_both_halves()
    if _sees_below(known):
        features = known.features(np.zeros((1, known.dim))).shape[1]
        return _skipping_network(known, Readout(np.zeros((outputs, features)), np.zeros(outputs), 1.0))
    width = len(known.layers[-1]) + len(known.layers[-1].carried)
    return _whole_network(known, np.zeros((outputs, width)), np.zeros(outputs))


def _whole_network(
    known: KnownLayers, outputs: FloatArray, constants: FloatArray, skip: FloatArray | None = None
) -> ReLUNetwork:
    layers = [_with_carried(layer) for layer in known.layers]
    weights = [*(layer.weights for layer in layers), outputs]
    biases = [*(layer.biases for layer in layers), constants]
    for k, layer in enumerate(known.layers):  # the bias that keeps carried features on is subtracted again above
        biases[k + 1] = biases[k + 1] - ALWAYS_ON * weights[k + 1][:, len(layer) :][:, : len(layer.carried)].sum(axis=1)
    return ReLUNetwork(weights, biases, skip)


def _sees_below(known: KnownLayers) -> bool:
    """True if sides of a layer below the last are open: then layers see more than the one before them."""
    return any(layer.undecided.any() for layer in known.layers[:-1])


def _skipping_network(known: KnownLayers, readout: Readout) -> ReLUNetwork:
    """The network whose layers see all those below them that are among the features."""
    seen: dict[int, FloatArray] = {0: np.eye(known.dim)}  # rows of features, by the layer they are of
    weights, biases = [], []
    skips: dict[tuple[int, int], FloatArray] = {}
    tops = [*((layer.weights, layer.biases) for layer in known.layers), (readout.weights, readout.constants)]
    for k, (rows, constants) in enumerate(tops, 1):
        incoming = {source: rows @ part for source, part in seen.items()}
        weights.append(incoming.pop(k - 1))
        biases.append(constants)
        skips |= {(source, k): part for source, part in incoming.items() if part.any()}
        if k <= len(known.layers):
            layer, below = known.layers[k - 1], {}
            for source, part in seen.items():
                below[source] = np.concatenate([np.zeros((len(layer), part.shape[1])), layer.beside @ part])
            seen = {k: np.eye(len(layer) + len(layer.beside), len(layer)), **below}
    return ReLUNetwork(weights, biases, skips=skips)


def _with_carried(layer: Layer) -> Layer:
    """Carried features as neurons: they are not negative, and a bias keeps them on whatever is fitted later."""
    rows = np.eye(layer.weights.shape[1])[layer.carried]
    biases = np.concatenate([layer.biases, np.full(len(rows), ALWAYS_ON)])
    return Layer.of(np.concatenate([layer.weights, rows]), biases)


FEW_PARAMETERS = 2000  # beyond, a thorough fit takes minutes


def polish_to_all(
    network: ReLUNetwork, rows: FloatArray, answers: FloatArray, memory: Memory, noise: DistanceNoise, rounds: int
) -> ReLUNetwork:
    """Fit to these rows, then to the worst of all others too, as long as that helps, in so many rounds at most.

    Two neurons that are hardly ever on together leave a weight to few rows; those are where the fit is worst.
    """
    added_rows = 0.5  # rows for every parameter, in a round
    every_row, every_answer = memory.near(FITTED_DISTANCE * np.sqrt(network.dim))
    sd = noise.at(np.linalg.norm(every_row, axis=1))

    def deviations(candidate: ReLUNetwork) -> FloatArray:
        return np.asarray(np.abs(candidate(every_row) - every_answer).max(axis=1) / sd)

    def linearise(at: _Covered) -> Linearisation[_Covered, ReLUNetwork] | None:
        if at.all_explained:
            return None
        polished = polish(at.best, at.rows, at.answers, noise, thorough=network.parameters <= FEW_PARAMETERS)
        return Linearisation(at, at.off, lambda _: polished, partial(covered, at))

    def covered(at: _Covered, polished: ReLUNetwork) -> tuple[_Covered, float]:
        now = deviations(polished)
        off = float(now.max())
        best, least = (polished, off) if off < at.off else (at.best, at.off)
        worst = np.argsort(-now)[: int(added_rows * network.parameters)]
        worst = worst[now[worst] > DOUBLE.in_line]  # also of a fit that ran away: these rows hold it
        more = np.concatenate([at.rows, every_row[worst]]), np.concatenate([at.answers, every_answer[worst]])
        return _Covered(best, least, *more, all_explained=not len(worst)), off

    start = _Covered(network, float(deviations(network).max()), rows, answers)
    return least_squares(start, linearise, StepRules(rounds, accept=lambda *_: True)).state.best


@dataclass(frozen=True)
class _Covered:
    """The best network, its largest deviation anywhere, and the rows it is fitted to."""

    best: ReLUNetwork
    off: float
    rows: FloatArray
    answers: FloatArray
    all_explained: bool = False


def refine_first_weights(
    oracle: Counting, network: ReLUNetwork, noise: DistanceNoise, rng: np.random.Generator
) -> ReLUNetwork:
    """Weights of the first layer from gradients. Cost: about 1.25 (d + 2) rows a neuron, less with several outputs."""
    room_step = 0.5  # of the room, in the steepest coordinate
    gradient_rank = 1e-3  # relative; what the gradients hardly say stays as it is
    points, combinations, room = spanning_points(network, rng)
    with oracle.stage("first weights", expected=len(points) * (network.dim + 2)):
        found = gradients(Question.of(oracle), points, None, room_step * room, noise, rng)
    if not found.good.any():
        return network
    left = combinations[found.good].reshape(-1, network.widths[1])
    first = network.weights[0]
    rest = found.slope[found.good].reshape(len(left), -1) - left @ first
    change = np.linalg.lstsq(left, rest, rcond=gradient_rank)[0]
    return ReLUNetwork([first + change, *network.weights[1:]], network.biases)


def _room_of_coordinates(network: ReLUNetwork, points: FloatArray) -> FloatArray:
    """Longest step (n,) along any coordinate that crosses no crease."""
    room = np.full(len(points), np.inf)
    h, slopes = points, np.broadcast_to(np.eye(network.dim), (1, network.dim, network.dim))
    for w, b in zip(network.weights[:-1], network.biases[:-1], strict=True):
        values, slopes = h @ w.T + b, w @ slopes
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.abs(values) / np.abs(slopes).max(axis=2)  # not a number where a value neither is nor becomes any
        room = np.minimum(room, np.where(np.isnan(reach), np.inf, reach).min(axis=1))
        h, slopes = np.maximum(values, 0), np.where((values > 0)[:, :, None], slopes, 0.0)
    return room


def _by_first_layer(network: ReLUNetwork, points: FloatArray) -> FloatArray:
    """Derivatives (n, m, h) of the outputs by the values of the first layer."""
    active = network.patterns(points)
    slopes = np.broadcast_to(network.weights[-1], (len(points), *network.weights[-1].shape))
    for w, on in zip(network.weights[-2:0:-1], active[:0:-1], strict=True):
        slopes = (slopes * on[:, None, :]) @ w
    return slopes * active[0][:, None, :]


def spanning_points(network: ReLUNetwork, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Points (n, d) far from every crease whose gradients tell all first weights, and what these are made of.

    Besides derivatives (n, m, h) by the values of the first layer there, and the room in every coordinate.
    """
    roomy_pool = 2000  # random points, to choose some far from every crease
    roomy_share = 0.2  # share of them that stays in the choice
    of_each = 8  # roomiest points at which a neuron is on, besides
    hardly_seen = 1e-4  # of the combination of neurons that shows best: others may show this one
    farthest = 30.0  # of those, in units of the scale of use
    points = rng.standard_normal((roomy_pool, network.dim))
    room = _room_of_coordinates(network, points)
    order = np.argsort(-room)
    points, room = points[order], room[order]
    combinations = _by_first_layer(network, points)
    on = np.linalg.norm(combinations, axis=1) > 0  # (n, h): which neurons a point tells of
    first = (on & (np.cumsum(on, axis=0) <= of_each)).any(axis=1)
    first[: int(roomy_share * roomy_pool)] = True
    chosen, least = _telling(combinations[first])
    chosen = np.flatnonzero(first)[chosen]
    if least < hardly_seen:  # they show where units above are on and off in other ways, or farther out
        scales = np.exp(rng.uniform(0, np.log(farthest), (roomy_pool, 1)))
        points = np.concatenate([points, scales * rng.standard_normal((roomy_pool, network.dim))])
        room, combinations = _room_of_coordinates(network, points), _by_first_layer(network, points)
        chosen, _ = _telling(combinations)
    return points[chosen], combinations[chosen], room[chosen]


def _telling(combinations: FloatArray) -> tuple[IntArray, float]:
    """Few of these gradients (n, m, h) that show all first weights, and how well the worst combination shows."""
    points_share = 1.25  # points for every neuron at most: many outputs need fewer, unless layers above are mostly off
    well_told = 0.03  # smallest part of a neuron in the gradients, relative
    h = combinations.shape[2]
    size = np.sqrt((combinations**2).sum(axis=(0, 1)))
    rest = scaled = combinations / np.where(size > 0, size, 1.0)
    chosen = list[int]()
    for _ in range(int(points_share * h) + 1):
        chosen.append(int(np.argmax(np.linalg.norm(rest, axis=(1, 2)) * ~np.isin(np.arange(len(rest)), chosen))))
        _, sizes, told = np.linalg.svd(scaled[chosen].reshape(-1, h), full_matrices=False)
        known = told[sizes > well_told * sizes[0]]
        rest = scaled - (scaled @ known.T) @ known
        if len(known) == h:
            break
    return np.array(chosen), float(sizes[-1] / sizes[0]) if len(sizes) == h else 0.0


def certify(
    network: ReLUNetwork, known: KnownLayers, rows: FloatArray, asker: Asker, radius: float
) -> Certificate | None:
    """The certificate of a network that was fitted to these rows; None where that would take minutes.

    radius: as far out answers were checked. Neurons that stand for sums, or carry others on, come last in their layer
    and are counted apart.
    """
    if network.parameters > FEW_PARAMETERS:
        return None
    own = [np.arange(width) < len(layer) for width, layer in zip(network.widths[1:-1], known.layers, strict=True)]
    seen = np.concatenate(own)
    piece = asker.spacing * asker.scale
    resolution = DOUBLE.bend * float(asker.noise.at(np.array([asker.scale]))[0]) / piece
    errors = neuron_errors(network, rows, asker.noise)
    return Certificate(errors[seen], resolution, radius, sums=int((~seen).sum()))

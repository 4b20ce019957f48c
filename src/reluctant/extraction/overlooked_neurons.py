"""One neuron that a network lacks, where it is right but for it: two kinds that lines do not show.

A rare neuron of the last hidden layer: few inputs switch it. There the network errs by what the neuron adds, and
elsewhere by nothing. That is an affine function of the layer before, which is known: the errors around these inputs
give its weights by one linear fit.

A weak neuron of the first layer: its bend is far below those of the others, so that lines and gradients near many
creases lose it. With all others known it is seen where a line has no other crease for long: there three answers that
are not in line show it, and gradients with long steps on both sides of the bend give its weights. The weights of the
layers above and all else are then fitted to fresh answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.domains import Domain
from reluctant.fitting.network_fit import approach
from reluctant.geometry import DistanceNoise, Lines, Question, gradients, scan_lines
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray, Noise
from reluctant.oracles import Counting
from reluctant.oracles.links import lost_digits
from reluctant.verification.points import PointCounts, comparison_points

ROWS_EACH = 4.0  # asked for every weight of the neuron, in a round
ROUNDS = 4  # each around the rows that show the neuron so far
NEAREST, FARTHEST = 1e-2, 1.0  # of an input's size: how far around it rows are asked
FITTED_EACH = 1.5  # rows for every weight that have to show the neuron
SHOWN = 1e-2  # of the largest error: less may be the network's own
ONE_NEURON = 0.1  # of the largest error: what one neuron may leave of the others, before the network is fitted anew
RANK = 1e-13  # relative, of that fit
FRESH_EACH = 3.0  # fresh answers for every parameter, for a fit of the whole network


def with_rare_neuron(
    oracle: Counting, network: ReLUNetwork, against: FloatArray, noise: Noise, rng: np.random.Generator
) -> ReLUNetwork | None:
    """The network with one neuron more in its last hidden layer; None where no single one explains its errors.

    against: rows (k, d) at which it errs. Cost: up to sixteen rows for every weight of the neuron; where the network
    lacks digits besides, three for every parameter.
    """
    hidden = 2
    if network.skips or network.depth <= hidden or not len(against):
        return None
    shown = _Shown.around(oracle, network, against, noise, rng)
    if shown is None:
        return None
    neuron, outputs = shown.one_neuron()
    values = shown.design @ neuron
    side = np.sign(values.sum())
    left = np.abs(shown.errors - np.outer(values, outputs)).max()
    if not (side * values > 0).all() or left > ONE_NEURON * np.abs(shown.errors).max():
        return None
    *below, v, a = network.weights
    *biases, c, e = network.biases
    v, c = np.vstack([v, side * neuron[:-1]]), np.append(c, side * neuron[-1])
    wider = ReLUNetwork([*below, v, np.column_stack([a, side * outputs])], [*biases, c, e])
    if left <= DOUBLE.deviations * shown.sd:
        return wider
    count = int(FRESH_EACH * wider.parameters / wider.outputs)
    with oracle.stage("rare neuron", expected=count):
        rows = np.concatenate([shown.rows, oracle.facts.domain.sample(rng, count, oracle.dim)])
        answers = oracle.query(rows)
    return approach(wider, rows, answers)[0]


@dataclass(frozen=True)
class _Shown:
    """Rows (n, d) at which a network errs, its errors (n, m), and the layer before its last hidden one with a 1.

    sd: of the noise of their answers, at most.
    """

    rows: FloatArray
    errors: FloatArray
    design: FloatArray
    sd: float

    @classmethod
    def around(
        cls, oracle: Counting, network: ReLUNetwork, against: FloatArray, noise: Noise, rng: np.random.Generator
    ) -> _Shown | None:
        """In rounds around rows that show the error, until they tell all weights of a neuron; None if too few do."""
        weights = network.widths[-3] + 1
        count, rows, answers = int(ROWS_EACH * weights), against[:0], np.empty((0, oracle.outputs))
        found = None
        for _ in range(ROUNDS):
            more = _around(oracle, against if found is None else found.rows, count, rng)
            with oracle.stage("rare neuron", expected=count):
                rows, answers = np.concatenate([rows, more]), np.concatenate([answers, oracle.query(more)])
            errors = answers - network(rows)
            off = np.abs(errors).max(axis=1)
            sd = (np.hypot(noise.absolute, noise.relative * np.abs(answers)) + lost_digits(answers, oracle)).max(axis=1)
            shown = (off > DOUBLE.deviations * sd) & (off > SHOWN * off.max())
            before = np.maximum(network.preactivations(rows[shown])[network.depth - 3], 0)
            design = np.column_stack([before, np.ones(shown.sum())])
            if not shown.any():
                return None
            found = cls(rows[shown], errors[shown], design, float(sd[shown].max()))
            if len(design) >= FITTED_EACH * weights and np.linalg.matrix_rank(design) == weights:
                break
        return found if found is not None and len(found.rows) >= FITTED_EACH * weights else None

    def one_neuron(self) -> tuple[FloatArray, FloatArray]:
        """Weights (w + 1,) and output weights (m,) of the one neuron that explains the errors best."""
        size = np.linalg.norm(self.design, axis=0)
        size[size == 0] = 1.0
        found = np.linalg.lstsq(self.design / size, self.errors, rcond=RANK)[0] / size[:, None]
        left, sizes, right = np.linalg.svd(found, full_matrices=False)
        return left[:, 0] * sizes[0], right[0]


def _around(oracle: Counting, against: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Rows (count, d) at all distances around some that speak against the network, inside the domain."""
    domain, chosen = oracle.facts.domain, against[rng.integers(len(against), size=count)]
    size = np.linalg.norm(chosen, axis=1, keepdims=True) / np.sqrt(oracle.dim)
    share = np.exp(rng.uniform(np.log(NEAREST), np.log(FARTHEST), (count, 1)))
    return domain.nearest(chosen + share * size * rng.standard_normal(chosen.shape))


LINES = 24
REACH = 3.0  # of the lines to either side, in scales of use
LONGEST = 12  # pieces of a line that are asked
MOST_PARAMETERS = 1000  # of a fit that looks anew at what each of them does


@dataclass(frozen=True)
class LinePieces:
    """Stretches of lines without a crease of the network: both ends (n, d), and their lengths."""

    start: FloatArray
    stop: FloatArray
    length: FloatArray

    @classmethod
    def of(cls, network: ReLUNetwork, rng: np.random.Generator) -> LinePieces:
        """The longest ones on random lines, a little inside of the creases at their ends."""
        steps, inside = 1001, 2  # of a line, and how many from a crease
        shares, ends = np.linspace(-REACH, REACH, steps), []
        for _ in range(LINES):
            through, direction = rng.standard_normal((2, network.dim))
            patterns = np.hstack(network.patterns(through + shares[:, None] * direction)[: network.depth - 1])
            cuts = np.flatnonzero((patterns[1:] != patterns[:-1]).any(axis=1))
            low, high = np.append(-1, cuts) + 1 + inside, np.append(cuts, steps - 1) - inside
            order = np.argsort(low - high)[:LONGEST]
            order = order[(high - low)[order] > inside]
            ends += [(through + shares[low[k]] * direction, through + shares[high[k]] * direction) for k in order]
        start, stop = np.array(ends).reshape(-1, 2, network.dim).transpose(1, 0, 2)
        return cls(start, stop, np.linalg.norm(stop - start, axis=1))

    def bent(self, oracle: Counting, noise: DistanceNoise) -> LinePieces:
        """Those along which the target is not straight. Cost: 5 rows each."""
        shares = np.linspace(0, 1, 5)
        rows = self.start[:, None] + shares[:, None] * (self.stop - self.start)[:, None]  # (n, 5, d)
        answers = oracle.query(rows.reshape(-1, rows.shape[2])).reshape(*rows.shape[:2], -1)
        straight = answers[:, :1] + shares[:, None] * (answers[:, -1:] - answers[:, :1])
        sd = noise.at(np.linalg.norm(rows, axis=2).max(axis=1))
        bent = np.abs(answers - straight).max(axis=(1, 2)) > DOUBLE.in_line * sd
        return LinePieces(self.start[bent], self.stop[bent], self.length[bent])


def with_weak_neuron(
    oracle: Counting, network: ReLUNetwork, noise: DistanceNoise, rng: np.random.Generator
) -> ReLUNetwork | None:
    """The network with one neuron more in its first layer, and fitted anew; None where no such neuron is seen.

    Cost: about 1400 rows, some hundred for the crease, 2 (d + 2) for its weights and 3 for every m parameters,
    and some 800 where units are rarely on and beside creases.
    """
    smallest, largest = 0.2, 12.0  # fresh inputs, in units of the scale of use
    if network.skips or network.depth == 1 or network.parameters > MOST_PARAMETERS:
        return None
    with oracle.stage("weak neuron"):
        pieces = LinePieces.of(network, rng)
        found = _hyperplane(oracle, pieces.bent(oracle, noise), noise, rng) if len(pieces.length) else None
        if found is None:
            return None
        count = int(FRESH_EACH * (network.parameters + network.dim + network.widths[2]) / network.outputs)
        scales = np.exp(rng.uniform(np.log(smallest), np.log(largest), (count, 1)))
        groups, _ = comparison_points(network, Domain(), rng, PointCounts(on_lines=256, alone=128))
        rows = np.concatenate([scales * rng.standard_normal((count, network.dim)), *(each.rows for each in groups)])
        answers = oracle.query(rows)
    clear = _without_faint(network, rows, answers)
    fits = [approach(_with_first_neuron(clear, side * found[0], side * found[1]), rows, answers) for side in (1, -1)]
    return min(fits, key=lambda fit: fit[1])[0]


def _without_faint(network: ReLUNetwork, rows: FloatArray, answers: FloatArray) -> ReLUNetwork:
    """Without neurons of the last hidden layer that stand for a part of the missing one: they do about as much."""
    faint = 1e3  # times the error of the network, that no true neuron's part is below
    *below, v, a = network.weights
    unit, off = float(answers.std(axis=0).max()), float(np.abs(network(rows) - answers).max())
    parts = (np.abs(a).max(axis=0) * np.maximum(network.preactivations(rows)[-1], 0)).max(axis=0)
    keep = (parts == 0) | (parts > min(faint * off, unit / faint))
    *biases, c, e = network.biases
    return ReLUNetwork([*below, v[keep], a[:, keep]], [*biases, c[keep], e])


def _hyperplane(
    oracle: Counting, bent: LinePieces, noise: DistanceNoise, rng: np.random.Generator
) -> tuple[FloatArray, float] | None:
    """Unit weights and bias of the neuron that bends most of these pieces; None where fewer than half agree."""
    tried, most, agree, step = 4, 12, 1e-4, 0.1  # of the distance to the crease, in all coordinates together
    most_rows = 4000  # of the search for creases
    order = np.argsort(-bent.length)[:most]
    if not len(order):
        return None
    lines = Lines.between(bent.start[order], bent.stop[order], float(np.sqrt(oracle.dim)))
    scan = scan_lines(oracle.query, lines, noise, rng, most=most_rows)
    single = [k for k in range(len(lines)) if (scan.creases.line == k).sum() == 1 and not scan.open[k]]
    at = {k: float(scan.creases.t[scan.creases.line == k][0]) for k in single}
    single = [k for k in single if 0 < at[k] < lines.high[k]]
    on = np.array([lines.origins[k] + at[k] * lines.directions[k] for k in single])
    roomy = sorted(single, key=lambda k: -min(at[k], float(lines.high[k]) - at[k]))[:tried]
    for k in roomy:
        room = min(at[k], float(lines.high[k]) - at[k])
        middle = lines.points(np.full(2, k), at[k] + room * np.array([-0.5, 0.5]))
        slopes = gradients(Question.of(oracle), middle, None, np.full(2, step * room), noise, rng)
        _, sizes, rows = np.linalg.svd(slopes.slope[1] - slopes.slope[0], full_matrices=False)
        if not slopes.good.all() or sizes[0] == 0:
            continue
        point = lines.origins[k] + at[k] * lines.directions[k]
        off = np.abs((on - point) @ rows[0]) / np.sqrt(oracle.dim)
        if 2 * (off < agree).sum() > len(on):
            return rows[0], -float(rows[0] @ point)
    return None


def _with_first_neuron(network: ReLUNetwork, row: FloatArray, bias: float) -> ReLUNetwork:
    """One neuron more in the first layer, which nothing reads yet."""
    weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
    weights[0], biases[0] = np.vstack([weights[0], row]), np.append(biases[0], bias)
    weights[1] = np.column_stack([weights[1], np.zeros(len(weights[1]))])
    return ReLUNetwork(weights, biases)

"""A neuron of the last hidden layer that few inputs switch: found where a network without it errs.

There the network errs by what the neuron adds, and elsewhere by nothing. That is an affine function of the layer
before, which is known: the errors around these inputs give its weights by one linear fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.fitting.network_fit import approach
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray, Noise
from reluctant.oracles import Counting
from reluctant.oracles.links import lost_digits

ROWS_EACH = 4.0  # asked for every weight of the neuron, in a round
ROUNDS = 4  # each around the rows that show the neuron so far
NEAREST, FARTHEST = 1e-2, 1.0  # of an input's size: how far around it rows are asked
FITTED_EACH = 1.5  # rows for every weight that have to show the neuron
SHOWN = 1e-2  # of the largest error: less may be the network's own
ONE_NEURON = 0.1  # of the largest error: what one neuron may leave of the others, before the network is fitted anew
RANK = 1e-13  # relative, of that fit
FIT_EACH = 3.0  # fresh answers for every parameter, for that fit


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
    count = int(FIT_EACH * wider.parameters / wider.outputs)
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

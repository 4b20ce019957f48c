"""Signs of neurons: the active side of each hyperplane, by least squares, linear programme or lattice reduction.

a max(z, 0) = a max(-z, 0) + a z, so the skip term is a sum over the neurons that are the wrong way round. With no
more neurons than equations least squares finds them, with up to about twice as many a linear programme, beyond that
lattice reduction if fpylll is installed: the digits of the remainder hold more than one equation each. Else the
affine term stays: it is a freedom of the representation, and the network is exact with it. Above a hidden layer,
whose values y are never negative, the term becomes neurons that are always active: s·y = max(s⁺·y, 0) - max(s⁻·y,
0).
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time

import numpy as np
from scipy.optimize import linprog

from reluctant.fitting.least_squares import normal_solver
from reluctant.geometry.lines import BoolArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, HOST, MANY_NEURONS, Arrays, FloatArray
from reluctant.oracles.ledger import add_time_apart, check_time, time_left

LATTICE_BITS = 30  # of each equation: as many as extraction is sure of
SKIP_GONE = 1e-8  # of the largest term: what may be left of the skip


def orient(network: ReLUNetwork, *, gone: float = SKIP_GONE, arrays: Arrays = HOST) -> ReLUNetwork:
    """The same function without a skip term where the sides can be found, else the network as it is.

    gone: what may be left of the skip term, of the largest term it is made of.
    """
    if network.skip is None or network.depth != 2:
        return network
    terms = turn_terms(*network.weights)
    turned = find_turned(terms, -network.skip.reshape(-1), gone=gone, arrays=arrays)
    return network if turned is None else without_skip(network, turned)


def turn_terms(weights: FloatArray, outputs: FloatArray) -> FloatArray:
    """Terms (m·d, h) that neurons of weights (h, d) and outputs (m, h) add to the skip term, turned round."""
    return (outputs[:, None, :] * weights.T[None]).reshape(-1, len(weights))


def find_turned(
    terms: FloatArray, missing: FloatArray, *, gone: float = SKIP_GONE, arrays: Arrays = HOST
) -> BoolArray | None:
    """Which columns of `terms` (equations, neurons) add up to `missing`; None if that cannot be found.

    gone: what may be left, of the largest term. With few digits, `gone` being more, only least squares is tried.
    """
    (equations, neurons), few_digits, choice = terms.shape, gone > SKIP_GONE, None
    if neurons <= equations:
        if neurons >= MANY_NEURONS and not few_digits:
            choice = _normal_equations(terms, missing, arrays)
        if choice is None:
            choice = clear_choice(np.asarray(np.linalg.lstsq(terms, missing, rcond=None)[0], dtype=np.float64))
    elif not few_digits:
        choice = _linear_programme(terms, missing)
        choice = _lattice(terms, missing) if choice is None else choice
    if choice is None or np.abs(missing - terms @ choice).max() > gone * np.abs(terms).max():
        return None
    return choice.astype(bool)


def _normal_equations(terms: FloatArray, missing: FloatArray, arrays: Arrays) -> FloatArray | None:
    """Half the digits are plenty to tell 0 from 1, unless neurons depend on each other."""
    try:
        solve = normal_solver(arrays.put(terms), arrays)
    except np.linalg.LinAlgError:
        return None
    return clear_choice(arrays.get(solve(arrays.put(missing))))


def _linear_programme(terms: FloatArray, missing: FloatArray) -> FloatArray | None:
    lp_ratio = 2.0  # neurons over equations up to which a linear programme is tried
    most_lp_neurons = 400  # a larger one takes minutes
    equations, neurons = terms.shape
    if neurons > min(lp_ratio * equations, most_lp_neurons):
        return None
    objective = np.random.default_rng(0).standard_normal(neurons)  # any corner will do: the answer is unique
    left = time_left()
    options = {} if left is None else {"time_limit": left}
    found = linprog(objective, A_eq=terms, b_eq=missing, bounds=(0, 1), method="highs", options=options)
    check_time()
    return clear_choice(found.x) if found.status == 0 else None


def _lattice(terms: FloatArray, missing: FloatArray) -> FloatArray | None:
    """The 0/1 combination as a short vector of a lattice, found by LLL and BKZ reduction."""
    most_lattice_neurons = 128  # takes seconds
    spare_bits = 40  # the equations must hold this many more than there are neurons, or chance finds a solution
    equations, neurons = terms.shape
    if neurons > min(most_lattice_neurons, LATTICE_BITS * equations - spare_bits):
        return None
    if importlib.util.find_spec("fpylll") is None:
        return None
    signs = _reduced_apart(_lattice_basis(terms, missing), neurons)
    return None if signs is None else (signs[:-1] * signs[-1] + 1) / 2


# Importing fpylll replaces the handlers of SIGINT, SIGALRM and others, and fails outside the main thread.
REDUCTION = """
import json, sys
job = json.load(sys.stdin)
sys.path[:] = job["path"]
import fpylll
basis, wanted = fpylll.IntegerMatrix.from_matrix(job["basis"]), job["neurons"] + 1
fpylll.LLL.reduction(basis)
for block in job["blocks"]:
    if block:
        flags = fpylll.BKZ.AUTO_ABORT | fpylll.BKZ.MAX_TIME
        fpylll.BKZ.reduction(basis, fpylll.BKZ.Param(block, flags=flags, max_time=job["seconds"]))
    found = [list(row)[:wanted] for row in basis]
    short = [row for row in found if all(abs(entry) == 1 for entry in row)]
    if short:
        print(json.dumps(short[0]))
        break
"""


def _reduced_apart(basis: list[list[int]], neurons: int) -> FloatArray | None:
    """The first short vector whose leading entries are all ±1, or None.

    A process of its own reduces the lattice: the host keeps its signal handlers, any thread may call, and a reduction
    that runs out of time ends.
    """
    block_sizes = (0, 20, 30)  # of the reduction, stronger and slower; 0 is LLL alone
    most_seconds = 20  # of one reduction: on a remainder with too few digits it would go on for ever
    job = {"path": sys.path, "basis": basis, "neurons": neurons, "blocks": block_sizes, "seconds": most_seconds}
    start = _time_of_children()
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", REDUCTION], input=json.dumps(job), capture_output=True, text=True,
            timeout=time_left(), check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        done = None
    add_time_apart(_time_of_children() - start)
    check_time()
    if done is None or done.returncode or not done.stdout:
        return None
    return np.array(json.loads(done.stdout), dtype=np.float64)


def _time_of_children() -> float:
    """Processor time of processes that have ended; where the system does not tell, the time of the clock."""
    try:
        import resource
    except ImportError:
        return time.perf_counter()
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)  # finer than the ticks of os.times
    return spent.ru_utime + spent.ru_stime


def _lattice_basis(terms: FloatArray, missing: FloatArray) -> list[list[int]]:
    """Rows: one for each neuron and one for the target; a 0/1 solution is a combination of entries ±1 and zeros."""
    scale = 2.0**LATTICE_BITS / np.abs(terms).max()
    neurons = terms.shape[1]
    rows = [
        [2 * (i == j) for j in range(neurons + 1)] + [round(float(scale * value)) for value in terms[:, i]]
        for i in range(neurons)
    ]
    target = [-1] * neurons + [1] + [round(float(-scale * value)) for value in missing]
    return [*rows, target]


def clear_choice(found: FloatArray, within: float = 0.1) -> FloatArray | None:
    """The numbers rounded to 0 or 1; None if one is not as close to either."""
    choice = np.round(found)
    clear = np.abs(found - choice).max(initial=0) < within and set(np.unique(choice)) <= {0.0, 1.0}
    return choice if clear else None


def without_skip(network: ReLUNetwork, flip: BoolArray) -> ReLUNetwork:
    """Turn these neurons round and drop the skip term, which they account for."""
    (w, a), (b, c) = network.weights, network.biases
    sign = np.where(flip, -1.0, 1.0)
    return ReLUNetwork([sign[:, None] * w, a], [sign * b, c + a[:, flip] @ b[flip]])


def always_active(skip: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
    """Rows (r, k) that are not negative, and output weights (m, r): together the term skip (m, k) of values y ≥ 0.

    Two neurons for each output, or for each dimension of the term where those are fewer; a term smaller than
    `least` is left out.
    """
    row_rounding = 1e4 * DOUBLE.rounding  # of the largest entry of a row: its parts below this are nothing
    outputs, rows = _in_few_dimensions(skip, least)
    rows = np.concatenate([np.maximum(rows, 0), np.maximum(-rows, 0)])
    seen = rows.max(axis=1, initial=0) > row_rounding * np.abs(rows).max(initial=0)
    return rows[seen], np.hstack([outputs, -outputs])[:, seen]


def _in_few_dimensions(skip: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
    """Two factors of the term: the outputs themselves, or its singular vectors where they are fewer."""
    left, sizes, right = np.linalg.svd(skip, full_matrices=False)
    kept = sizes > least
    if kept.sum() < len(skip):
        return left[:, kept] * sizes[kept], right[kept]
    return np.eye(len(skip)), skip

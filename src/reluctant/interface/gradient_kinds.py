"""Whether the gradients of a target are gradients, and their kind if they are not.

Short steps change values as true gradients say. If they disagree, a few more differences decide their kind: input ×
gradient, absolute values, signs, a multiple of the gradient, integrated gradients, averages around the input
(SmoothGrad), or gradients of another function. Gradients with noise or fewer digits than values are named too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from reluctant.errors import InvalidGradient, NonFiniteAnswer, NonFiniteGradient
from reluctant.interface.noise import UNIFORM_SD, narrowest_format, rounding_noise
from reluctant.messages import Diagnosis, Remedy
from reluctant.numerics import DOUBLE, FloatArray, unit_roundoff
from reluctant.oracles.base import Explained
from reluctant.oracles.explanations import Unexplained
from reluctant.oracles.ledger import Counting

POINTS = 4  # inputs at which gradients are held against differences
SCALES = (1.0, 0.1, 0.01)  # of these inputs: probabilities behind a link may saturate farther out
COORDINATES = 12  # steps along single inputs, where gradients are something else
# Of a reading, where both smaller scales were needed.
MOST_KIND_ROWS = (len(SCALES) - 1) * 2 * POINTS + 3 * POINTS + 1 + 2 * COORDINATES
MOST_WRONG = 1  # of them: a step may cross a crease
SLOPE_ROUNDINGS = 2.0**12  # of the largest gradient
AGREEING = 1e-4  # of a slope: large weights that cancel round by more than the answer shows
ROUNDED = 1e-13  # of the largest gradient: coarser decimals are seen as such
DECIMALS_OFF = 2.0  # deviations of rounding: half of all rounded gradients are off by less than one
LIKE = 0.7  # cosine between averages around an input and its gradient: other functions have none
SAME = 1e-2  # of the answers: what creases on a step may change, where a kind differs from others
DIVIDED = Remedy("divide-by-input", "open", {"explanation": "input-times-gradient"})


class GradientKind(StrEnum):
    """The kind of the gradients."""

    GRADIENT = "gradient"
    TIMES_INPUT = "times-input"
    SIGN = "sign"
    ABSOLUTE = "absolute"
    SCALED = "scaled"
    INTEGRATED = "integrated"
    SMOOTHED = "smoothed"
    NOISY = "noisy"
    ROUNDED = "rounded"
    NOT_FINITE = "not-finite"
    INVALID = "invalid"
    OTHER = "other"


@dataclass(frozen=True)
class GradientReading:
    """The kind, how many of the inputs agree with differences of values, and what was wrong with the answer itself."""

    kind: GradientKind
    agreeing: int
    points: int
    error: InvalidGradient | None = None

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What the answers are, and what still works; None of gradients."""
        if self.kind is GradientKind.GRADIENT:
            return None
        if self.error is not None:
            return Diagnosis(f"explanation-{self.kind}", {"got": self.error.got, "expected": self.error.expected})
        remedies = (DIVIDED,) if self.kind is GradientKind.TIMES_INPUT else ()
        return Diagnosis(f"explanation-{self.kind}", {"agreeing": self.agreeing, "points": self.points}, remedies)


def trusted(oracle: Counting, rng: np.random.Generator) -> tuple[Counting, GradientReading | None]:
    """The target, without its gradients where they are none; and their kind, None if there are none.

    Cost: 8 rows, one more of a smooth function, and up to 45 more where they are none.
    """
    if oracle.explained is None:
        return oracle, None
    reading = GradientReading(GradientKind.NOT_FINITE, 0, POINTS)
    with oracle.stage("gradients"):
        for scale in SCALES:
            try:
                reading = read_gradients(oracle, rng, scale)
                break
            except NonFiniteAnswer:
                continue
            except InvalidGradient as error:
                reading = GradientReading(GradientKind.INVALID, 0, POINTS, error)
                break
    if reading.kind is GradientKind.GRADIENT:
        return oracle, reading
    return oracle.around(Unexplained(oracle.inner)), reading


def undefined_at(error: NonFiniteGradient) -> Diagnosis:
    """Gradients that agreed with differences, and are no numbers at other inputs."""
    bad = int((~np.isfinite(error.answers)).any(axis=1).sum())
    return Diagnosis("explanation-undefined", {"bad": bad, "asked": len(error.answers)})


def read_gradients(oracle: Counting, rng: np.random.Generator, scale: float = 1.0) -> GradientReading:
    """Hold gradients against differences of values at a few inputs."""
    rows = oracle.facts.domain.interior(rng, POINTS, oracle.dim, scale)
    found = oracle.query_gradients(rows)
    step = _step(found)
    moves = step * rng.standard_normal(rows.shape)
    near = oracle.query_gradients(rows + moves)
    change = near.values - found.values
    good = _agree(found, rows, moves, change)
    agreeing = int(good.sum())
    if agreeing >= POINTS - MOST_WRONG:
        uneven = np.flatnonzero(_differ(found.gradients, near.gradients))[:1]  # noise, a smooth function, or a crease
        if len(uneven) and _differ(found.gradients[uneven], oracle.query_gradients(rows[uneven]).gradients).any():
            return GradientReading(GradientKind.NOISY, agreeing, POINTS)
        return GradientReading(_digits_of(found, moves, change), agreeing, POINTS)
    return GradientReading(_other_kind(oracle, rows, found, moves, change, rng), agreeing, POINTS)


def _differ(one: FloatArray, other: FloatArray) -> np.ndarray:
    """Which inputs (n,) have gradients that are not the same to rounding."""
    size, rounding = float(np.abs(one).max()), unit_roundoff(narrowest_format(one))
    return np.asarray(np.abs(one - other).max(axis=(1, 2)) > DOUBLE.in_line * rounding * size)


def _digits_of(found: Explained, moves: FloatArray, change: FloatArray) -> GradientKind:
    """Gradients, or such that have fewer digits than the values, of answers that agree with differences."""
    size = float(np.abs(found.gradients).max())
    noise, lengths = rounding_noise(found.gradients), np.linalg.norm(moves, axis=1, keepdims=True)
    rounding = unit_roundoff(narrowest_format(found.gradients))
    if rounding > unit_roundoff(narrowest_format(found.values)):
        noise = max(noise, UNIFORM_SD * rounding * size)
    left = np.abs(change - np.einsum("nmd,nd->nm", found.gradients, moves)) / lengths
    rounded = noise > ROUNDED * size and np.median(left) > noise / 10  # weights may have few decimals themselves
    return GradientKind.ROUNDED if rounded else GradientKind.GRADIENT


def _step(found: Explained) -> float:
    """The step of one coordinate: a compromise between rounding and creases, as for a central difference."""
    number_format = narrowest_format(found.values)
    rounding = unit_roundoff("float32" if number_format == "float16" else number_format)
    return float(np.cbrt(rounding)) / np.sqrt(found.gradients.shape[2])


def _agree(found: Explained, rows: FloatArray, moves: FloatArray, change: FloatArray) -> np.ndarray:
    """Which inputs (n,) have gradients that the change (n, m) over a short move confirms."""
    rounding = max(unit_roundoff(narrowest_format(found.values)), unit_roundoff(narrowest_format(found.gradients)))
    if narrowest_format(found.gradients) == "float16":  # weights on a grid
        rounding = unit_roundoff(narrowest_format(found.values))
    lengths = np.linalg.norm(moves, axis=1, keepdims=True)
    slopes = np.linalg.norm(found.gradients, axis=2)
    inside = np.abs(found.values) + slopes * np.linalg.norm(rows, axis=1, keepdims=True)
    allowed = DOUBLE.in_line * rounding * inside + max(SLOPE_ROUNDINGS * rounding, AGREEING) * slopes * lengths
    predicted = np.einsum("nmd,nd->nm", found.gradients, moves)
    return np.asarray((np.abs(change - predicted) <= allowed).all(axis=1))


def _other_kind(
    oracle: Counting, rows: FloatArray, found: Explained, moves: FloatArray, change: FloatArray,
    rng: np.random.Generator,
) -> GradientKind:  # fmt: skip
    """The kind of answers that are not gradients. Cost: 9 rows, and 12 for each of two inputs."""
    given = found.gradients
    with np.errstate(divide="ignore", invalid="ignore"):
        divided = Explained(found.values, np.nan_to_num(given / rows[:, None]))
    if _agree(divided, rows, moves, change).sum() >= POINTS - MOST_WRONG:
        return GradientKind.TIMES_INPUT
    again = oracle.query_gradients(rows).gradients
    if given.any() and np.isin(given, (-1.0, 0.0, 1.0)).all():
        return GradientKind.SIGN
    origin = np.zeros((1, oracle.dim))
    if oracle.facts.domain.contains(origin):
        total = found.values - oracle.query(origin)
        size = np.abs(total).max() + np.abs(given.sum(axis=2)).max()
        if np.median(np.abs(given.sum(axis=2) - total)) <= SAME * size:
            return GradientKind.INTEGRATED
    slopes, which = _single_slopes(oracle, rows, found, rng)
    fresh = bool((again != given).any())
    given = (given + again) / 2 if fresh else given  # less noise
    return _by_slopes(given[: len(slopes)][:, :, which], slopes, fresh=fresh)


def _single_slopes(
    oracle: Counting, rows: FloatArray, found: Explained, rng: np.random.Generator
) -> tuple[FloatArray, np.ndarray]:  # fmt: skip
    """Slopes (2, m, k) along single inputs at two rows, by differences, and which inputs."""
    points = 2
    which = rng.permutation(oracle.dim)[:COORDINATES]
    step = _step(found)
    ends = np.repeat(rows[:points, None], len(which), axis=1)
    ends[:, np.arange(len(which)), which] += step
    answers = oracle.query(ends.reshape(-1, oracle.dim)).reshape(points, len(which), -1)
    return np.swapaxes(answers - found.values[:points, None], 1, 2) / step, which


def _by_slopes(given: FloatArray, slopes: FloatArray, *, fresh: bool) -> GradientKind:
    """By entries (n, m, k) of the answers beside slopes; fresh: the same row was answered otherwise before."""
    size = np.abs(slopes).max()

    def alike(one: FloatArray, other: FloatArray) -> bool:
        return bool(np.median(np.abs(one - other)) <= SAME * size)

    noise = rounding_noise(given)
    on_grid = noise > ROUNDED * size and bool(np.median(np.abs(given - slopes)) <= DECIMALS_OFF * noise)
    sizes = np.linalg.norm(given, axis=2) * np.linalg.norm(slopes, axis=2)
    cosine = np.divide((given * slopes).sum(axis=2), sizes, out=np.zeros_like(sizes), where=sizes > 0)
    tests: tuple[tuple[bool, Callable[[], bool], GradientKind], ...] = (
        (not fresh, lambda: on_grid, GradientKind.ROUNDED),
        (not fresh, lambda: bool((given >= 0).all()) and alike(given, np.abs(slopes)), GradientKind.ABSOLUTE),
        (not fresh, lambda: bool((cosine > 1 - SAME**2).all()) and not alike(given, slopes), GradientKind.SCALED),
        (True, lambda: float(np.mean(cosine)) > LIKE, GradientKind.NOISY if fresh else GradientKind.SMOOTHED),
    )
    return next((kind for may, holds, kind in tests if may and holds()), GradientKind.OTHER)

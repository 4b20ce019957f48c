"""`InputUnits`: the place and the spread of a target's inputs, column by column, and the target in these units.

Columns of real data differ: an age, a price, a share of 0.05. Every verb works on z and asks the target at
x = centre + scale · z, so that one step means the same in each column. Results go back to the user's own units.
Units come from a box whose sides differ (`domain=`), else from rows of the kind the target is for (`inputs=`). Where
neither is known they come from questions: slopes at the origin show whether columns are of one size; only where they
are not, a ladder of steps finds the step of each, and rays find the size at which the values bend. Probabilities give
no scales: where they are certain they do not change, and that may be wherever no rows are known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Noise
from reluctant.oracles.base import Explained, Facts, Oracle, Wrapper, layers
from reluctant.oracles.explanations import Rewritten
from reluctant.oracles.ledger import Counting

MOST_SAMPLES = 4096  # rows kept of `inputs`: their mean and deviation are known well enough by then
FEWEST_SAMPLES = 8
ONE_RANGE = 0.25  # share of columns that reach both ends of the range of all: then they are of one kind
ALIKE = 10.0  # columns whose scales differ less need no units of their own, nor do centres within so many scales


@dataclass(frozen=True)
class InputUnits:
    """Centre and scale (d,) of the inputs: x = centre + scale · z."""

    centre: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, facts: Facts) -> InputUnits:
        """Units of a target's inputs: those of its box if it has one, else of its samples; 0 and 1 where x = z will do.

        A column that is the same in all samples has the median scale of the others. Columns that share one range, such
        as the pixels of images, share one scale.
        """
        plain = cls(np.zeros(facts.dim), np.ones(facts.dim))
        if facts.domain.is_box:
            low, high = (np.broadcast_to(side, (facts.dim,)) for side in (facts.domain.low, facts.domain.high))
            centre, scale = (low + high) / 2, (high - low) / 2
            return plain if scale.max() < ALIKE * scale.min() else cls(centre, scale)
        if facts.samples is None:
            return plain
        below, middle, above = np.quantile(facts.samples, [0.25, 0.5, 0.75], axis=0)
        quartiles_of_normal = 1.349  # how far apart they are, in deviations
        spread = above > below
        scale = np.where(spread, (above - below) / quartiles_of_normal, facts.samples.std(axis=0))
        centre = np.where(spread, middle, facts.samples.mean(axis=0))
        low, high = facts.samples.min(axis=0), facts.samples.max(axis=0)
        varies = low < high
        scale = np.where(varies, scale, np.median(scale[varies]))
        if ((low == low.min()) & (high == high.max())).mean() > ONE_RANGE:
            centre, scale = np.full(facts.dim, facts.samples.mean()), np.full(facts.dim, facts.samples.std())
        near, alike = np.abs(centre).max() < ALIKE * scale.min(), scale.max() < ALIKE and scale.min() > 1 / ALIKE
        return plain if near and alike else cls(centre, scale)

    @property
    def are_plain(self) -> bool:
        """True if z = x."""
        return not self.centre.any() and bool((self.scale == 1).all())

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"centre": self.centre.tolist(), "scale": self.scale.tolist()}

    def rows(self, z: FloatArray) -> FloatArray:
        """Rows as the target takes them."""
        return self.centre + self.scale * z

    def reduced(self, x: FloatArray) -> FloatArray:
        """Rows in these units."""
        return (x - self.centre) / self.scale

    def reduced_domain(self, domain: Domain) -> Domain:
        """A domain in these units."""
        if domain.is_space:
            return domain
        return Domain(self.reduced(np.asarray(domain.low)), self.reduced(np.asarray(domain.high)))

    def directions(self, basis: FloatArray) -> FloatArray:
        """Orthonormal rows: the directions of x in which directions of z change.

        A slope along z is one along x times the scale, so rows are divided by it.
        """
        return np.asarray(np.linalg.qr((basis / self.scale).T)[0].T)

    def reduced_directions(self, basis: FloatArray) -> FloatArray:
        """Orthonormal rows: directions of x as those of z."""
        return np.asarray(np.linalg.qr((basis * self.scale).T)[0].T)

    def network(self, reduced: ReLUNetwork) -> ReLUNetwork:
        """A network of z as one of x: the same function of the target's own inputs."""
        return _with_inputs(reduced, 1 / self.scale, -self.centre / self.scale)

    def reduced_network(self, network: ReLUNetwork) -> ReLUNetwork:
        """A network of x as one of z."""
        return _with_inputs(network, self.scale, self.centre)


def _with_inputs(network: ReLUNetwork, factors: FloatArray, offset: FloatArray) -> ReLUNetwork:
    """The network of factors · x + offset."""
    return network.with_inputs(lambda w: (w * factors, w @ offset))


class Scaled(Wrapper):
    """The target in units of its inputs: the row z asks for centre + scale · z.

    bounds, samples: the domain and the rows of the kind the target is for, both in its own units.
    """

    def __init__(self, inner: Oracle, units: InputUnits, bounds: Domain, samples: FloatArray | None) -> None:
        super().__init__(inner)
        self.units, self.bounds, self.samples = units, bounds, samples

    @property
    def facts(self) -> Facts:
        """Facts in these units."""
        samples = None if self.samples is None else self.units.reduced(self.samples)
        return replace(self.inner.facts, domain=self.units.reduced_domain(self.bounds), samples=samples)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Ask the target at its own rows, which rounding may not carry over its bounds."""
        return self.inner.answer(self._own_rows(rows))

    def explaining(self, inner: Oracle) -> Oracle:
        """Gradients by these units."""
        return Rewritten(self, inner, self._in_units, self._own_rows)

    def _own_rows(self, rows: FloatArray) -> FloatArray:
        return self.bounds.nearest(self.units.rows(rows))

    def _in_units(self, found: Explained) -> Explained:
        return Explained(found.values, found.gradients * self.units.scale)


def scaled_by(opened: Counting, units: InputUnits, facts: Facts | None = None) -> Counting:
    """The target in these units, counted in the same ledger."""
    facts = facts or opened.facts
    scaled = Scaled(opened.inner, units, facts.domain, facts.samples)
    return Counting(scaled, opened.ledger, unread=opened.unread)


def in_own_units(oracle: Oracle) -> bool:
    """True if the coordinates of this oracle are not those of its target."""
    return any(isinstance(layer, Scaled) and not layer.units.are_plain for layer in layers(oracle))


@dataclass(frozen=True)
class Box:
    """A box of inputs; in_units: its bounds count deviations of the inputs around their middle."""

    domain: Domain
    in_units: bool = False

    @classmethod
    def of(cls, oracle: Oracle, domain: Domain) -> Box:
        """A box in the coordinates of this oracle."""
        return cls(domain, in_own_units(oracle))

    def __str__(self) -> str:
        described = self.domain.describe()
        if not self.in_units:
            return described
        plain = described.removesuffix(" in every coordinate")
        return f"{plain} {'' if plain != described else 'in '}deviations of each input around its middle"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        low, high = (np.asarray(bound).tolist() for bound in (self.domain.low, self.domain.high))
        return {"low": low, "high": high, "in_units": self.in_units}


def checked_samples(inputs: Any, dim: int, domain: Domain) -> FloatArray:
    """Rows of the kind the target is for, as (n, dim) float64, or an error that names the fault."""
    try:
        rows = np.asarray(inputs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput.about(
            "inputs", got=f"{type(inputs).__name__} ({error})", expected="an array of numbers",
            fix="Encode texts and categories as the target's own first step does.",
        ) from error  # fmt: skip
    if rows.ndim != 2 or rows.shape[1] != dim or len(rows) < FEWEST_SAMPLES:
        raise InvalidInput.about("inputs", got=f"shape {rows.shape}", expected=f"(n, {dim}) with n >= {FEWEST_SAMPLES}")
    missing = np.flatnonzero(~np.isfinite(rows).all(axis=0))
    if len(missing):
        raise InvalidInput.about(
            "inputs", got=f"NaN or inf in column {missing[0]}", expected="finite numbers",
            fix="Leave out rows with missing values, or fill them as the target's own first step does.",
        )  # fmt: skip
    if not np.ptp(rows, axis=0).any():
        raise InvalidInput.about("inputs", got="the same row again and again", expected="rows that differ")
    if not domain.contains(rows):
        raise InvalidInput.about("inputs", got="a row outside the domain", expected=domain.describe())
    return rows[:: -(-len(rows) // MOST_SAMPLES)]


FIRST_STEP = 1e-3
CLEAR = 1e-10  # of an answer: smaller changes may be rounding, and say nothing of a slope
UNLIKE = 2.0  # decades between the columns of the ends: those of one size differ by about one
ENDS = (0.1, 0.9)  # quantiles of the columns that count as the ends
LADDER = 10.0 ** np.arange(-8, 9)
RAYS = 12
BENDS = 0.02  # of the change along a ray, by which its middle is off: a bend, not rounding


def found_units(oracle: Counting, rng: np.random.Generator, *, uneven: bool = False) -> InputUnits | None:
    """Units in which every column changes the answers alike; None where columns are of one size, or no step matters.

    uneven: some column, be it one of many, is known to be of another size.

    Cost: d + 1 rows; where columns differ, 34·d and 408 more.
    """
    dim = oracle.dim
    with oracle.stage("column scales", expected=dim + 1):
        origin = oracle.query(np.zeros((1, dim)))
        first = _changes(oracle.query(FIRST_STEP * np.eye(dim)), origin)
    clear = first > CLEAR * np.abs(origin).max()
    if not uneven and 2 * clear.sum() > dim and not _differ(first[clear]):
        return None
    rows = (np.concatenate([LADDER, -LADDER])[:, None, None] * np.eye(dim)).reshape(-1, dim)
    with oracle.stage("column scales", expected=len(rows)):
        changes = _changes(oracle.query(rows), origin).reshape(2, len(LADDER), dim).max(axis=0)
    steps = _steps(np.where(changes > CLEAR * np.abs(origin).max(), changes, 0.0))
    if steps is None or not _differ(1 / steps, (0.0, 1.0) if uneven else ENDS):
        return None
    return InputUnits(np.zeros(dim), steps * _bending_size(oracle, steps, origin, rng))


def slope_ratio(oracle: Counting, noise: Noise) -> float | None:
    """The largest slope of a column at the origin over the smallest; None where columns are of one size.

    noise: of an answer; slopes within it say nothing. Cost: d + 1 rows.
    """
    with oracle.stage("column scales", expected=oracle.dim + 1):
        origin, *stepped = np.split(
            oracle.answer(np.vstack([np.zeros(oracle.dim), FIRST_STEP * np.eye(oracle.dim)])), [1]
        )
    size, several = float(np.abs(origin).max()), 10.0
    first = _changes(stepped[0], origin)
    slopes = first[first > max(CLEAR * size, several * noise.at(size))]
    return float(slopes.max() / slopes.min()) if len(slopes) > 1 and _differ(slopes) else None


def changing_units(oracle: Counting, rng: np.random.Generator) -> InputUnits | None:
    """Units around the nearest input at which a target answers otherwise than at most others; None where none does.

    The target is constant at most inputs, so that no short line shows what it is made of. Cost: 1000 rows.
    """
    count, scales = 1000, (1.0, 3.0)
    rows = np.repeat(scales, count // len(scales))[:, None] * rng.standard_normal((count, oracle.dim))
    with oracle.stage("changes", expected=count):
        answers = oracle.query(rows)
    usual = np.median(answers, axis=0)
    other = np.abs(answers - usual).max(axis=1) / max(float(np.abs(usual).max()), 1.0)
    if not np.isfinite(other).all() or not (other > CLEAR).any():
        return None
    nearest = np.flatnonzero(other > CLEAR)[np.argmin(np.linalg.norm(rows[other > CLEAR], axis=1))]
    return InputUnits(rows[nearest], np.ones(oracle.dim))


def _changes(answers: FloatArray, origin: FloatArray) -> FloatArray:
    """The largest change of an output, row by row; 0 where an answer is no number."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.abs(answers - origin).max(axis=1), nan=0.0, posinf=0.0)


def _differ(slopes: FloatArray, ends: tuple[float, float] = ENDS) -> bool:
    """True if the slopes of columns that matter differ by decades."""
    low, high = np.quantile(np.log10(slopes[slopes > 0]), ends)
    return bool(high - low > UNLIKE)


def _steps(changes: FloatArray) -> FloatArray | None:
    """The step of each column that makes the largest change which every column reaches; None if none does anything.

    A column that does nothing has the median step.
    """
    most = changes.max(axis=0)
    if not most.any():
        return None
    typical = float(np.min(most[most > 0]))
    steps = np.full(changes.shape[1], np.nan)
    for column in np.flatnonzero(most >= typical):
        rung = int(np.argmax(changes[:, column] >= typical))
        steps[column] = LADDER[rung] * min(1.0, typical / changes[rung, column])
    return np.where(np.isnan(steps), np.nanmedian(steps), steps)


def _bending_size(oracle: Counting, steps: FloatArray, origin: FloatArray, rng: np.random.Generator) -> float:
    """The size, times these steps, from which on most rays bend; 1 where none do."""
    rays = rng.normal(size=(RAYS, oracle.dim)) / np.sqrt(oracle.dim)
    sizes = LADDER[:, None, None]
    rows = np.concatenate([(sizes * rays).reshape(-1, oracle.dim), (2 * sizes * rays).reshape(-1, oracle.dim)]) * steps
    with oracle.stage("column scales", expected=len(rows)):
        near, far = np.split(oracle.query(rows), 2)
    off, whole = np.abs(far - 2 * near + origin).max(axis=1), np.abs(far - origin).max(axis=1)
    bent = (off > BENDS * whole).reshape(len(LADDER), RAYS).mean(axis=1) > 0.5
    return float(LADDER[np.argmax(bent)]) if bent.any() else 1.0

"""`Subspace`: a linear subspace of input space, its complement and file, and the long steps that test and correct it.

`Subspace` is the finished value, with projections, angles and a file format. `Complement` is the same under
construction: directions found so far and an orthonormal basis of everything else, kept up to date together.

Orthogonal to the true span nothing changes, however long the step. Where something does, the part of the step
along which the answers change most is worth a gradient. Orthogonal to a rough span the function hardly moves, so
steps there may be a million times as long as those of a gradient. With V the rough basis and W the rest, the true
span is V + E W for some small E, and a step h along W changes the answer by h·(gradient along V)·E: one equation
for each point and output. Solved and added, E leaves an error that is smaller by the length of the step.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from reluctant._files import replacement
from reluctant.errors import InvalidInput, UnsupportedModel
from reluctant.geometry.gradients import gradients, row_batches
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.results import Outcome
from reluctant.span.first_look import Ground, as_long_as_allowed, moves_outside

NPZ_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Subspace:
    """The span of orthonormal rows. Equal if the rows are, to the last bit: `distance` compares spans.

    Arguments:
        basis: (k, d) orthonormal rows; k = 0 is the subspace of the origin alone. `Subspace.spanned_by` takes any.
    """

    basis: FloatArray

    def __post_init__(self) -> None:
        orthonormal = 1e-10  # how far the rows of a basis may be from it
        basis = np.array(self.basis, dtype=np.float64)
        if basis.ndim != 2 or not 0 <= len(basis) <= basis.shape[1] or not np.isfinite(basis).all():
            raise InvalidInput.about("basis", got=f"shape {basis.shape}", expected="finite rows (k, d) with k ≤ d")
        if np.abs(basis @ basis.T - np.eye(len(basis))).max(initial=0.0) > orthonormal:
            raise InvalidInput.about(
                "basis", got="rows that are not orthonormal", expected="orthonormal rows",
                fix="Use Subspace.spanned_by(rows).",
            )  # fmt: skip
        basis.flags.writeable = False
        object.__setattr__(self, "basis", basis)

    @classmethod
    def spanned_by(cls, rows: ArrayLike, *, tol: float | None = None) -> Self:
        """The span of any rows (n, d); singular values below `tol` of the largest do not count."""
        no_direction = 4.0  # roundings a coordinate, of the longest row: shorter parts are rounding
        array = np.asarray(rows, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] == 0 or not np.isfinite(array).all():
            raise InvalidInput.about("rows", got=f"shape {array.shape}", expected="finite rows (n, d)")
        if len(array) == 0:
            return cls(array)
        _, sizes, directions = np.linalg.svd(array, full_matrices=False)
        least = no_direction * max(array.shape) * DOUBLE.rounding if tol is None else tol
        return cls(directions[sizes > least * sizes[0]] if sizes[0] > 0 else directions[:0])

    # ---- facts

    @property
    def rank(self) -> int:
        """Number of directions."""
        return len(self.basis)

    @property
    def dim(self) -> int:
        """Number of coordinates of the space around it."""
        return int(self.basis.shape[1])

    @property
    def invisible_share(self) -> float:
        """Share of the directions of input space that lie outside: what a target with this span cannot see."""
        return 1 - self.rank / self.dim

    @cached_property
    def null_basis(self) -> FloatArray:
        """Orthonormal rows (d - k, d) of everything orthogonal to it."""
        rows = np.linalg.qr(self.basis.T, mode="complete")[0].T[self.rank :] if self.rank else np.eye(self.dim)
        rows.flags.writeable = False
        return rows

    @property
    def null_space(self) -> Subspace:
        """Everything orthogonal to it."""
        return Subspace(self.null_basis)

    @cached_property
    def projector(self) -> FloatArray:
        """The (d, d) matrix that projects onto it."""
        projector = self.basis.T @ self.basis
        projector.flags.writeable = False
        return projector

    # ---- what it does to rows

    def project(self, rows: ArrayLike) -> FloatArray:
        """The part (n, d) of rows that lies in it."""
        return (self._rows(rows) @ self.basis.T) @ self.basis

    def reject(self, rows: ArrayLike) -> FloatArray:
        """The part (n, d) of rows that is orthogonal to it."""
        rest = self._rows(rows)
        for _ in range(2):  # twice is enough for orthogonality to rounding
            rest = rest - (rest @ self.basis.T) @ self.basis
        return rest

    def visible_share(self, rows: ArrayLike) -> FloatArray:
        """Share (n,) of the squared norm of each row that lies in it; 0 for a row of zeros."""
        array = self._rows(rows)
        whole = (array**2).sum(axis=1)
        inside = ((array @ self.basis.T) ** 2).sum(axis=1)
        return np.asarray(np.divide(inside, whole, out=np.zeros_like(whole), where=whole > 0))

    def _rows(self, rows: ArrayLike) -> FloatArray:
        array = np.asarray(rows, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != self.dim:
            raise InvalidInput.about("rows", got=f"shape {array.shape}", expected=f"(n, {self.dim})")
        return array

    # ---- beside another one

    def angles(self, other: Subspace) -> FloatArray:
        """Principal angles in radians, min(k, k') of them, smallest first; small ones are exact to rounding."""
        self._check_same_space(other)
        if min(self.rank, other.rank) == 0:
            return np.empty(0)
        small, large = (self, other) if self.rank <= other.rank else (other, self)
        cosines = np.linalg.svd(small.basis @ large.basis.T, compute_uv=False)
        sines = np.linalg.svd(large.reject(small.basis), compute_uv=False)[::-1]
        return np.asarray(
            np.where(cosines**2 > 0.5, np.arcsin(np.clip(sines, 0, 1)), np.arccos(np.clip(cosines, 0, 1)))
        )

    def distance(self, other: Subspace) -> float:
        """Largest sine between a direction of either and the other: 0 if equal, 1 if the ranks differ."""
        self._check_same_space(other)
        if self.rank != other.rank:
            return 1.0
        return float(np.linalg.norm(other.reject(self.basis), 2)) if self.rank else 0.0

    def _check_same_space(self, other: Subspace) -> None:
        if self.dim != other.dim:
            raise InvalidInput.about("other", got=f"{other.dim} coordinates", expected=f"{self.dim}")

    # ---- on disk

    def save(self, path: str | Path) -> None:
        """Write it as `.npz`."""
        path = Path(path)
        if path.suffix != ".npz" or not path.parent.is_dir():
            raise InvalidInput.about("path", got=f"'{path}'", expected="a name ending in .npz, in an existing folder")
        with replacement(path) as fresh, fresh.open("wb") as file:
            np.savez(file, format=np.array(NPZ_FORMAT), basis=self.basis)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read it from `.npz`."""
        path = Path(path)
        if not path.is_file():
            raise InvalidInput.about("path", got=f"'{path}'", expected="an existing file")
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
                found, basis = int(data["format"]), np.asarray(data["basis"], dtype=np.float64)
        except (KeyError, ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise UnsupportedModel.about(
                "path", got=f"'{path}'", expected="an .npz written by Subspace.save"
            ) from error
        if found != NPZ_FORMAT:
            raise UnsupportedModel.about(
                "path", got=f"'{path}' of format {found}", expected=f"format {NPZ_FORMAT}", fix="Update reluctant."
            )
        return cls(basis)

    def __eq__(self, other: object) -> bool:
        return np.array_equal(self.basis, other.basis) if isinstance(other, Subspace) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.basis.shape, self.basis.tobytes()))

    def __repr__(self) -> str:
        return f"Subspace(rank {self.rank} of {self.dim})"


class Complement:
    """Rows orthogonal to the directions removed so far; at first all coordinates."""

    def __init__(self, dim: int) -> None:
        self.rows = np.eye(dim)  # (d - k, d)
        self._taken: list[FloatArray] = []

    @classmethod
    def of(cls, basis: FloatArray) -> Complement:
        """The complement of orthonormal rows (k, d)."""
        complement = cls(basis.shape[1])
        complement.take(basis)
        return complement

    @property
    def rank(self) -> int:
        """Number of directions removed."""
        return len(self._taken)

    @property
    def basis(self) -> FloatArray:
        """The directions removed (k, d), orthonormal."""
        return np.array(self._taken).reshape(-1, self.rows.shape[1])

    def take(self, directions: FloatArray) -> None:
        """Take orthonormal directions (q, d - k), in coordinates of the complement, out of it."""
        directions = directions.copy()
        for i in range(len(directions)):
            normal = directions[i].copy()
            normal[0] += 1.0 if normal[0] >= 0 else -1.0
            mirror = np.asarray(normal / np.linalg.norm(normal))
            self.rows -= np.outer(2 * mirror, mirror @ self.rows)
            directions -= np.outer(directions @ mirror, 2 * mirror)
            self._taken.append(self.rows[0].copy())
            self.rows, directions = self.rows[1:], directions[:, 1:]


# ---- directions and long steps orthogonal to them


@dataclass(frozen=True)
class FoundSpan:
    """Directions and the points whose gradients brought them.

    size: of a gradient; leak and limit are in this unit. margin: what counted as nothing over the weakest direction;
    infinite if more is there than could be measured. leak: what long steps still show outside. limit: what they may,
    and the weakest direction that could not have been overlooked.
    """

    basis: FloatArray  # (k, d)
    points: FloatArray  # (p, d)
    values: FloatArray  # (p, m): answers there
    steps: FloatArray  # (p,): within which the function is straight there
    size: float
    margin: float
    leak: float
    limit: float
    gradients: int
    kept: float = float("inf")  # part of a gradient that brought the weakest direction

    @property
    def angle(self) -> float:
        """How far directions are off at most: the error shows in gradients, times the part that the weakest has."""
        return min(self.leak / self.kept, 1.0) if np.isfinite(self.kept) and self.kept > 0 else float("nan")

    @property
    def rank(self) -> int:
        """Number of directions."""
        return len(self.basis)


@dataclass(frozen=True)
class SpanEnding:
    """How a search ended: the basis, how clear its rank is, how far it is off, and the numbers behind it.

    basis: None where there is nothing beyond what the run had kept. typical: norm of an input.
    """

    outcome: Outcome
    basis: FloatArray | None = None
    margin: float = np.inf
    angle: float = np.nan
    evidence: dict[str, Any] = field(default_factory=dict)
    typical: float = 0.0

    @classmethod
    def of(cls, outcome: Outcome, found: FoundSpan, evidence: dict[str, Any], typical: float) -> SpanEnding:
        """With directions, and what brought them."""
        evidence |= {"gradients": found.gradients, "leak": found.leak, "limit": found.limit}
        return cls(outcome, found.basis, found.margin, found.angle, evidence, typical)


LEAST_NEW = 1e-5  # part of a gradient outside the span that may be a direction; those so far are not exact either
LONG_STEPS = 32  # long steps
LONG_STEPS_IN_BOUNDS = 128  # long steps where bounds make them short


@dataclass(frozen=True)
class Heard:
    """Largest leak of the long steps, and places on the loudest where a gradient may be new."""

    leak: float
    points: FloatArray
    values: FloatArray


def leak_slopes(
    ground: Ground, basis: FloatArray, starts: FloatArray, before: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Change (n,) of the answers on a long step from each start, as a slope along one direction; moves and noise too.

    The step is random, so a direction is met by its length over √(n - k) only: the slope counts that. Cost: 1 row each.
    """
    moves = moves_outside(basis, starts, ground.reach * ground.typical, ground.domain, rng)
    after = ground.ask(starts + moves)
    met = np.linalg.norm(moves, axis=1) / np.sqrt(max(1, ground.dim - len(basis)))
    sd = np.sqrt(2) * ground.sd(starts + moves) / met
    with np.errstate(over="ignore"):  # answers close to the largest number: an infinite slope
        slope = np.linalg.norm(after - before, axis=1) / met
    return slope, moves, sd


def span_tilt(ground: Ground, found: FoundSpan, rng: np.random.Generator) -> float:
    """How far directions are off, in gradients: what short steps outside show where they were measured.

    Weak directions, which long steps would meet as well, are part of the gradients there. Cost: 1 row a point.
    """
    moves = moves_outside(found.basis, found.points, found.steps, ground.domain, rng)
    change = np.linalg.norm(ground.ask(found.points + moves) - found.values, axis=1)
    slope = change / np.linalg.norm(moves, axis=1) * np.sqrt(ground.dim - found.rank)
    return float(slope.max()) / found.size


def slopes_along(ground: Ground, directions: FloatArray, starts: FloatArray, before: FloatArray) -> FloatArray:
    """Change (n,) of the answers on a long step along each direction (n, d) from its start, as a slope.

    A direction that a crease made up shows nothing here. Cost: 1 row each.
    """
    moves = as_long_as_allowed(ground.domain, starts, ground.reach * ground.scale * directions)
    change = np.linalg.norm(ground.ask(starts + moves) - before, axis=1)
    return np.asarray(change / np.linalg.norm(moves, axis=1))


def loud_places(
    ground: Ground,
    basis: FloatArray,
    active: FloatArray,
    values: FloatArray,
    size: float,
    least: float,
    rng: np.random.Generator,
) -> Heard:
    """Long steps from points known to be active and from others; the places on the loudest, none if all are silent."""
    places_on_a_step = 8  # sampled on a step that changes the answers
    loudest = 4  # steps that are followed
    fewest = LONG_STEPS if ground.domain.is_space else LONG_STEPS_IN_BOUNDS
    others = ground.sample(max(fewest - len(active), fewest // 4), rng)
    answers = ground.ask(others)
    starts = np.concatenate([active, others])
    before = np.concatenate([values.reshape(-1, answers.shape[1]), answers])
    slope, moves, sd = leak_slopes(ground, basis, starts, before, rng)
    loud = slope > np.maximum(least * size, DOUBLE.in_line * sd)
    leak = float(slope.max() / size) if size > 0 else 0.0
    if not loud.any():
        return Heard(leak, np.empty((0, ground.dim)), np.empty((0, 0)))
    chosen = np.flatnonzero(loud)[np.argsort(-slope[loud])[:loudest]]
    shares = (np.arange(places_on_a_step) + rng.uniform(0, 1, (len(chosen), places_on_a_step))) / places_on_a_step
    places = (starts[chosen, None] + shares[:, :, None] * moves[chosen, None]).reshape(-1, ground.dim)
    return Heard(leak, places, ground.ask(places))


LONGEST_STEP = 1e3  # of a long step, in typical coordinates: further out answers lose the digits that the step gains
STRAIGHT_SHARE = 0.1  # of the straight part around a point that a long step may use up, by the error it looks for


@dataclass(frozen=True)
class SlopesInside:
    """Points with their values and the slopes along a basis there."""

    points: FloatArray  # (p, d)
    value: FloatArray  # (p, m)
    slope: FloatArray  # (p, m, k)


def refine_basis(
    ground: Ground, basis: FloatArray, inside: SlopesInside, length: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """A better basis by one stage, with steps of these lengths (p,). Cost: d - k rows a point."""
    outside = Subspace(basis).null_basis
    across = np.empty((*inside.value.shape, len(outside)))
    for some in row_batches(len(inside.points), len(outside), ground.dim):
        starts = inside.points[some, None]
        taken = _step_lengths(ground, starts, outside, length[some], rng)
        answers = ground.ask((starts + taken[:, :, None] * outside).reshape(-1, ground.dim))
        change = answers.reshape(*taken.shape, -1) - inside.value[some, None]
        across[some] = np.swapaxes(change / taken[:, :, None], 1, 2)
    slopes = inside.slope.reshape(-1, len(basis))
    correction = np.linalg.lstsq(slopes, across.reshape(-1, len(outside)), rcond=None)[0]
    return np.asarray(np.linalg.qr((basis + correction @ outside).T)[0].T)


def slopes_inside(
    ground: Ground, basis: FloatArray, points: FloatArray, steps: FloatArray, rng: np.random.Generator
) -> tuple[SlopesInside, FloatArray]:
    """Slopes along the basis by forward differences, and the steps. Cost: k + 2 rows a point."""
    starts = without_rest(ground, basis, points)
    found = gradients(ground.ask, starts, basis, steps, ground.noise, rng, domain=ground.domain)
    good = found.good
    return SlopesInside(starts[good], found.value[good], found.slope[good]), found.step[good]


def long_steps(ground: Ground, straight: FloatArray, angle: float, share: float = STRAIGHT_SHARE) -> FloatArray:
    """How long steps across may be beside points that are straight so far, with a span so far off."""
    longest = LONGEST_STEP * ground.scale
    return np.clip(
        np.divide(share * straight, angle, out=np.full_like(straight, longest), where=angle > 0), straight, longest
    )


def without_rest(ground: Ground, basis: FloatArray, points: FloatArray) -> FloatArray:
    """Points in all of space without their invisible part, which only costs digits."""
    return (points @ basis.T) @ basis if ground.domain.is_space else points


def _step_lengths(
    ground: Ground, starts: FloatArray, outside: FloatArray, length: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Signed lengths (p, n - k) of the steps: to the side with more room where there are bounds, else to either.

    Random sides keep the noise of the value that all steps share from adding up.
    """
    shape = (len(starts), len(outside))
    if ground.domain.is_space:
        return rng.choice([-1.0, 1.0], shape) * length[:, None]
    ahead = np.minimum(ground.domain.room(starts, outside[None]), length[:, None])
    behind = np.minimum(ground.domain.room(starts, -outside[None]), length[:, None])
    return np.where(ahead >= behind, ahead, -behind)

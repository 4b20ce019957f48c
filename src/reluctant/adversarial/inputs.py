"""What a probe is given, checked before anything is asked."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from reluctant.domains import Domain
from reluctant.errors import InvalidInput, InvalidRows, OutsideDomain
from reluctant.numerics import FloatArray

__all__ = ["HasBasis", "checked_basis", "checked_input", "checked_steps"]


class HasBasis(Protocol):
    """A subspace: anything with an orthonormal `basis` (k, d)."""

    @property
    def basis(self) -> FloatArray:
        """Orthonormal rows."""


def checked_input(x: ArrayLike, dim: int, domain: Domain) -> FloatArray:
    """One input (d,) inside the domain, or an error."""
    start = np.asarray(x, dtype=np.float64)
    if start.shape == (1, dim):
        start = start[0]
    if start.shape != (dim,) or not np.isfinite(start).all():
        raise InvalidRows.about("x", got=f"shape {start.shape}", expected=f"({dim},), finite")
    if not domain.contains(start[None]):
        raise OutsideDomain.about("x", got="an input outside", expected=f"one in the domain, {domain.describe()}")
    return start


def checked_basis(span: HasBasis | None, dim: int) -> FloatArray | None:
    """The basis (k, d) of a span, None without one."""
    if span is None:
        return None
    basis = np.asarray(getattr(span, "basis", None), dtype=np.float64)
    if basis.ndim != 2 or basis.shape[1] != dim or not len(basis):
        raise InvalidInput.about(
            "span", got=f"{type(span).__name__} with a basis of shape {basis.shape}",
            expected=f"an object with a basis (rank, {dim}), rank above 0",
        )  # fmt: skip
    return basis


def checked_steps(steps: int) -> None:
    """A whole number of steps."""
    if not isinstance(steps, int | np.integer) or isinstance(steps, bool) or steps < 1:
        raise InvalidInput.about("steps", got=repr(steps), expected="a whole number, at least 1")

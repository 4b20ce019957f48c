"""Input obfuscation: noise that a model cannot see, and a check that it cannot (Figure 3 of the span paper).

Noise in the null space of the span changes an input beyond recognition and the answers not at all. The check is made at
the norm that is claimed: a neuron that is dead on the data may wake up far out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from reluctant.errors import InvalidInput
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Oracle
from reluctant.span.result import Span
from reluctant.span.subspace import Subspace

__all__ = ["Obfuscation", "check_obfuscation", "obfuscate"]


def obfuscate(span: Span | Subspace, x: ArrayLike, scale: float = 10.0, rng: Rng = 0) -> FloatArray:
    """Add noise that a model with this span cannot see.

    Arguments:
        span: what `recover_span` gave; it must be ok, because a direction that was missed lets noise be seen. The
            subspace of a partial one may be given all the same.
        x: rows (n, d).
        scale: norm of the noise, times the norm of its row.
        rng: seed of the noise.

    Returns rows (n, d); a row of zeros stays as it is. Cost: none.
    """
    subspace = _subspace(span)
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != subspace.dim or not np.isfinite(rows).all():
        raise InvalidInput.about("x", got=f"shape {rows.shape}", expected=f"finite rows (n, {subspace.dim})")
    if not (np.isfinite(scale) and scale >= 0):
        raise InvalidInput.about("scale", got=scale, expected="a number of at least 0")
    if subspace.rank == subspace.dim:
        raise InvalidInput.about(
            "span", got=f"rank {subspace.rank} of {subspace.dim}", expected="a span with a null space",
            fix="A model that looks at every direction sees all noise.",
        )  # fmt: skip
    noise = as_generator(rng).standard_normal((len(rows), subspace.dim - subspace.rank)) @ subspace.null_basis
    noise *= scale * np.linalg.norm(rows, axis=1, keepdims=True) / np.linalg.norm(noise, axis=1, keepdims=True)
    return rows + noise


@dataclass(frozen=True)
class Obfuscation:
    """What a model makes of obfuscated inputs.

    largest_change: of any answer. size: of the largest answer. same_label: share of rows whose largest output (or sign,
    if there is one output) is the same. visible_share: part of the squared norm of inputs that it sees, mean.
    invisible_share: part of the directions of input space that it does not see.
    """

    rows: FloatArray
    largest_change: float
    size: float
    same_label: float
    visible_share: float
    invisible_share: float

    def __str__(self) -> str:
        return (
            f"{self.same_label:.2%} of {len(self.rows)} obfuscated inputs keep their label; answers change by at most "
            f"{self.largest_change:.1e} of {self.size:.2g}. {self.invisible_share:.1%} of the directions are invisible."
        )


def check_obfuscation(
    oracle: Oracle, span: Span | Subspace, x: ArrayLike, scale: float = 10.0, rng: Rng = 0
) -> Obfuscation:
    """Ask a model about inputs and their obfuscated versions, at the norm claimed. Cost: 2 rows an input."""
    before_rows = np.asarray(x, dtype=np.float64)
    rows = obfuscate(span, before_rows, scale, rng)
    before, after = np.split(oracle.query(np.concatenate([before_rows, rows])), 2)
    subspace = _subspace(span)
    return Obfuscation(
        rows=rows,
        largest_change=float(np.abs(after - before).max()),
        size=float(np.abs(before).max()),
        same_label=float((_labels(before) == _labels(after)).mean()),
        visible_share=float(subspace.visible_share(before_rows).mean()),
        invisible_share=subspace.invisible_share,
    )


def _labels(answers: FloatArray) -> FloatArray:
    return np.asarray(answers.argmax(axis=1) if answers.shape[1] > 1 else np.sign(answers[:, 0]), dtype=np.float64)


def _subspace(span: Span | Subspace) -> Subspace:
    if isinstance(span, Span):
        return span.raise_for_status().subspace
    if isinstance(span, Subspace):
        return span
    raise InvalidInput.about("span", got=type(span).__name__, expected="what recover_span gave, or a Subspace")

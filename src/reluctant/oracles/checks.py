"""Checking at the edge: rows on the way in, answers on the way out, each exactly once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from reluctant.domains import Domain
from reluctant.errors import InvalidAnswer, InvalidRows, NonFiniteAnswer, OutsideDomain
from reluctant.numerics import FloatArray, all_finite
from reluctant.oracles.moves import Moves

__all__ = ["as_answers", "check_finite", "check_moves", "check_rows"]


def check_rows(x: ArrayLike, dim: int, domain: Domain) -> FloatArray:
    """Rows as a C-contiguous (n, dim) float64 array inside the domain, or an error that says why not."""
    rows = _as_float64(x)
    if rows.ndim != 2 or rows.shape[1] != dim:
        fix = "One point is x[None, :]." if rows.shape == (dim,) else ""
        raise InvalidRows.about("x", got=f"shape {rows.shape}", expected=f"(n, {dim})", fix=fix)
    if len(rows) == 0:
        raise InvalidRows.about("x", got="no rows", expected="at least one row", fix="Skip empty batches.")
    if not all_finite(rows):
        bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise InvalidRows.about("x", got=f"NaN or inf in row {bad}", expected="finite numbers")
    if not domain.contains(rows):
        raise OutsideDomain.about(
            "x",
            got="a row outside the domain",
            expected=domain.describe(),
            fix="Clip it, or open the target anew.",
        )
    return rows


def check_moves(moves: Moves, dim: int) -> None:
    """Raise if described rows would not be finite rows (n, dim)."""
    if moves.dim != dim or len(moves) == 0:
        raise InvalidRows.about("moves", got=f"{len(moves)} rows of {moves.dim}", expected=f"some rows of {dim}")
    parts = [moves.points, moves.steps, *([] if moves.directions is None else [moves.directions])]
    if not all(all_finite(part) for part in parts):
        raise InvalidRows.about("moves", got="NaN or inf", expected="finite numbers")


def _as_float64(x: ArrayLike) -> FloatArray:
    try:
        array = np.asarray(x)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"dtype {array.dtype}")
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidRows.about("x", got=f"{type(x).__name__} ({error})", expected="an array of numbers") from error


def check_finite(asked: Callable[[], FloatArray], answers: FloatArray, advice: str) -> FloatArray:
    """The answers, or an error that keeps the rows `asked` and answers if any is NaN or inf."""
    if all_finite(answers):
        return answers
    bad, rows = np.flatnonzero(~np.isfinite(answers).all(axis=1)), asked()
    raise NonFiniteAnswer(
        f"target: got NaN or inf for {len(bad)} of {len(rows)} rows (first: row {bad[0]}), expected finite "
        f"numbers. {advice}",
        rows=rows,
        answers=answers,
    )


def as_answers(raw: object, rows: int, outputs: int | None) -> FloatArray:
    """What a target returned, as (rows, m) float64; `outputs` is m once it is known."""
    try:
        answers = np.asarray(raw)
        if answers.dtype.kind not in "fiub":
            raise TypeError(f"dtype {answers.dtype}")
        answers = answers.astype(np.float64, copy=False)
    except (TypeError, ValueError, RuntimeError) as error:  # torch refuses a tensor with gradient so
        raise InvalidAnswer(
            f"target: got {type(raw).__name__} ({error}), expected an array of numbers.{_about_names(raw)}"
        ) from error
    if answers.ndim == 0 or len(answers) != rows:
        raise InvalidAnswer(
            f"target: got an answer of shape {answers.shape} for {rows} rows, expected one row of answers per "
            "row. Check that it answers batches."
        )
    answers = answers.reshape(rows, -1)
    if answers.shape[1] == 0 or (outputs and answers.shape[1] != outputs):
        raise InvalidAnswer(
            f"target: got {answers.shape[1]} outputs per row, expected {outputs or 'at least one'}. "
            "A target must keep its output shape."
        )
    return answers


def _about_names(raw: object) -> str:
    """Class names are labels too, once they are numbered."""
    if not (isinstance(raw, np.ndarray) and raw.dtype.kind in "USO"):
        return ""
    return " Number class names: lambda x: np.searchsorted(model.classes_, model.predict(x))."

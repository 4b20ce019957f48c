"""Input obfuscation: noise that a model cannot see, and a check of it (Figure 3 of the span paper).

Noise in the null space of the span changes an input beyond recognition and the answers not at all. The check is made at
the norm that is claimed: a neuron that is dead on the data may wake up far out.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from reluctant.domains import Domain
from reluctant.errors import InvalidInput
from reluctant.geometry.boundary import are_whole_numbers, as_labels
from reluctant.messages import Diagnosis
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Kind
from reluctant.oracles.base import check_rows
from reluctant.oracles.keywords import OpeningKeywords
from reluctant.oracles.open import Target, opened_target
from reluctant.span.recover import Span
from reluctant.span.subspace import Subspace


def obfuscate(span: Span | Subspace, x: ArrayLike, scale: float | None = None, rng: Rng = 0) -> FloatArray:
    """Add noise that a model with this span cannot see.

    Arguments:
        span: a result of `recover_span` that is ok, and that was followed as far as the noise goes (`reach`), inside
            its domain. A bare subspace is accepted without these checks.
        x: rows (n, d).
        scale: norm of the noise, times the norm of its row. By default 10, or less if the span was not followed so far.
        rng: seed of the noise.

    Returns rows (n, d). A row of zeros stays unchanged. Cost: none.
    """
    subspace = _subspace(span)
    rows = check_rows(x, subspace.dim, Domain())
    if subspace.rank == subspace.dim:
        raise InvalidInput.about(
            "span", got=f"rank {subspace.rank} of {subspace.dim}", expected="a span with a null space",
            fix="A model that looks at every direction sees all noise.",
        )  # fmt: skip
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    scale = _checked_scale(span, scale, float(norms.max()))
    noise = as_generator(rng).standard_normal((len(rows), subspace.dim - subspace.rank)) @ subspace.null_basis
    noise *= scale * norms / np.linalg.norm(noise, axis=1, keepdims=True)
    if isinstance(span, Span) and not span.domain.contains(rows + noise):
        raise InvalidInput.about(
            "scale", got=f"{scale:g}, noise that leaves {span.domain.describe()}",
            expected="rows where the span was recovered",
            fix="Use a smaller scale, a span recovered without a domain, or span.subspace at your own risk.",
        )  # fmt: skip
    return rows + noise


def _checked_scale(span: Span | Subspace, scale: float | None, norm: float) -> float:
    """The scale of noise for a span."""
    most = 10.0  # times the norm of a row, unless asked for
    rounding = 1e-9  # relative, of a norm
    followed = span.followed if isinstance(span, Span) else np.inf
    if scale is None:
        return min(most, followed / norm) if norm > 0 else most
    if not (np.isfinite(scale) and scale >= 0):
        raise InvalidInput.about("scale", got=scale, expected="a number of at least 0")
    if scale * norm > followed * (1 + rounding):
        raise InvalidInput.about(
            "scale", got=f"{scale:g} times rows of norm {norm:.3g}", expected=f"noise of a norm up to {followed:.3g}",
            fix=f"The span was followed no farther, and neurons may wake up there: recover it with a reach "
                f"{scale * norm / followed:.1f} times as large.",
        )  # fmt: skip
    return float(scale)


@dataclass(frozen=True)
class Obfuscation:
    """The answers of a model to obfuscated inputs.

    largest_change: of any answer. size: of the largest answer. same_label: share of rows with the same label: the
    largest of several outputs; one output itself if the answers are whole numbers, else by the threshold.
    visible_share: part of the squared norm of inputs that it sees, mean. invisible_share: part of the directions of
    input space that it does not see.
    """

    rows: FloatArray
    largest_change: float
    size: float
    same_label: float
    visible_share: float
    invisible_share: float

    def __str__(self) -> str:
        numbers = {field.name: getattr(self, field.name) for field in fields(self)}
        return str(Diagnosis("obfuscation", numbers | {"rows": len(self.rows)}))


def check_obfuscation(
    oracle: Target,
    span: Span | Subspace,
    x: ArrayLike,
    scale: float | None = None,
    rng: Rng = 0,
    *,
    threshold: float | None = None,
    **opening: Unpack[OpeningKeywords],
) -> Obfuscation:
    """Ask a model about inputs and their obfuscated versions, at the norm claimed. Cost: 2 rows an input.

    oracle: the target: an oracle, or anything that `open_oracle` takes, with its keywords.
    threshold: for the label of one output, if it is not a whole number; 0.5 if not given.
    """
    before_rows = np.asarray(x, dtype=np.float64)
    rows = obfuscate(span, before_rows, scale, rng)
    with opened_target(oracle, opening) as opened:
        answers, kind = opened.query(np.concatenate([before_rows, rows])), opened.facts.kind
    before, after = np.split(answers, 2)
    whole = threshold is None and (kind is Kind.LABELS or are_whole_numbers(answers))
    labels = as_labels(answers, threshold, whole=whole)[:, 0]
    subspace = _subspace(span)
    return Obfuscation(
        rows=rows,
        largest_change=float(np.abs(after - before).max()),
        size=float(np.abs(before).max()),
        same_label=float((labels[: len(before)] == labels[len(before) :]).mean()),
        visible_share=float(subspace.visible_share(before_rows).mean()),
        invisible_share=subspace.invisible_share,
    )


def _subspace(span: Span | Subspace) -> Subspace:
    if isinstance(span, Span):
        return span.raise_for_status().subspace
    if isinstance(span, Subspace):
        return span
    raise InvalidInput.about("span", got=type(span).__name__, expected="what recover_span gave, or a Subspace")

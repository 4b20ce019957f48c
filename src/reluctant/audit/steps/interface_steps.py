"""The first steps: the interface of the target (link, range of inputs), and its span from values or labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from reluctant.audit.budget import rows_needed
from reluctant.audit.findings import Findings, Skip, seen, skip_where
from reluctant.errors import BudgetExhausted, ReluctantError, TargetError
from reluctant.interface import Interface, check_health
from reluctant.interface.diagnoses import FAR_ENOUGH
from reluctant.interface.kinds import Shape
from reluctant.interface.noise import are_labels, ask
from reluctant.interface.reach import FEW_ROWS, answered_box, likely_link, probability_format
from reluctant.numerics import as_generator
from reluctant.oracles import Counting, Kind
from reluctant.oracles.ledger import Limit
from reluctant.oracles.links import AnswerLink
from reluctant.results import Outcome
from reluctant.span import output_space, recover_span
from reluctant.span.answer_space import QUIET_ROWS
from reluctant.span.recover import values_refusal

SURELY = 5.0  # deviations of noise that hardly any of so few answers goes beyond


def check_interface(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """Check the interface as it answers, then as it is read: behind a link, or one output. Cost: 102 or 204 rows.

    Where it does not answer far out, a range is looked for in which it does, and checked again: from then on nothing is
    asked outside. Cost: at most 240 rows more, and the check. Where all answers are the same, honest inputs are asked.
    """
    found = _with_rare_labels(oracle, known, _looked(oracle, known, seed), seed)
    rest = seen(oracle, "identity", None, without=found.get("without", ()))
    return found | {"rows_needed": rows_needed(rest, replace(known, **found), found["health"])}


def _looked(oracle: Counting, known: Findings, seed: int) -> dict[str, Any]:
    try:
        found = _check(oracle, known, seed)
    except TargetError:
        inside = _check_inside(oracle, known, seed)
        if inside is None:
            raise
        return inside
    served: Interface = found["served"]
    near = served.largest_scale is not None and served.largest_scale < FAR_ENOUGH
    limited = oracle.facts.domain.is_space and (near or served.refusal is Outcome.NON_FINITE)
    return (_check_inside(oracle, known, seed) if limited else None) or found


def _check_inside(oracle: Counting, known: Findings, seed: int) -> dict[str, Any] | None:
    """The check inside the range that is answered; None where there is none."""
    links: tuple[AnswerLink, ...] = ("identity", "softmax") if known.link == "identity" else (known.link,)
    found: dict[str, Any] | None = None
    for link in links if oracle.facts.domain.is_space else ():
        written = None if found is None else found.get("written")
        box = answered_box(seen(oracle, link, known.given.output, written=written), as_generator(seed))
        if box is None:
            break
        inside = _check(seen(oracle, "identity", None, box), known, seed)
        found = inside | {"reach": box, "given": known.given.inside(box, seed)}
        if inside["served"].answers is not Kind.PROBABILITIES:
            break  # else once more: where a class is certain to the last digit there is no value behind it
    return found


def _check(oracle: Counting, known: Findings, seed: int) -> dict[str, Any]:
    """The answers as they are; percentages, and probabilities among NaN, as plain ones. Cost: a second check of these.

    What may be percentages and may be values is divided only where a link was given. Numbers of classes are left out
    where values stand beside them: the larger of the two is no label.
    """
    served = check_health(oracle, rng=seed)
    if served.class_columns and known.given.output is None and not known.linked:
        without = served.class_columns
        kept = [k for k in range(oracle.outputs) if k not in without]
        found = _check(seen(oracle, "identity", None, without=without), known, seed)
        return found | {"without": tuple(sorted([*without, *(kept[k] for k in found.get("without", ()))]))}
    written = probability_format(served)
    if written is None or not (served.are_probabilities or known.linked):
        return _read(oracle, known, served, seed)
    plain = seen(oracle, "identity", None, written=written)
    found = _read(plain, known, check_health(plain, rng=seed), seed)
    return found | {"written": written}


def _read(oracle: Counting, known: Findings, served: Interface, seed: int) -> dict[str, Any]:
    """Answers are read through their softmax, sigmoid or tanh also where nobody said so."""
    output = known.given.output
    noisy = _are_noisy_probabilities(oracle, known, served, seed)
    if known.linked or output is not None:
        health = check_health(seen(oracle, known.link, output, noisy=noisy), rng=seed)
        return {"served": served, "health": health, "noisy": noisy}
    link = likely_link(oracle, served, as_generator(seed))
    try:
        behind = None if link is None else check_health(seen(oracle, link, None, noisy=noisy), rng=seed)
    except ReluctantError:
        behind = None  # these values cannot be read
    if behind is None or behind.refusal is not None:
        return {"served": served, "health": served, "looked_behind": behind is not None}
    return {"served": served, "health": behind, "link": link, "noisy": noisy}


def _are_noisy_probabilities(oracle: Counting, known: Findings, served: Interface, seed: int) -> bool:
    """True if answers are probabilities but for fresh noise: below 0 by no more than it, adding up to 1 in the mean.

    Cost: none where there is no noise, or it is too small to take one for anything else.
    """
    if served.deterministic or served.answers is Kind.PROBABILITIES or known.link != "softmax":
        return not served.deterministic and served.answers is Kind.PROBABILITIES
    answers = ask(oracle, oracle.facts.domain.sample(as_generator(seed), FEW_ROWS, oracle.dim))
    slack = SURELY * served.fresh_noise
    off = abs(float(answers.sum(axis=1).mean()) - 1) / np.sqrt(oracle.outputs / FEW_ROWS)
    return bool(np.all((answers >= -slack) & (answers <= 1 + slack)) and off <= slack)


def _with_rare_labels(oracle: Counting, known: Findings, found: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """What was found of an interface; with other labels among honest inputs it does not count as constant.

    Cost: none where it is not; else a row for each honest input, given or drawn, and a few.
    """
    served = found["served"]
    if served is not found["health"] or served.refusal is not Outcome.CONSTANT:
        return dict(found)
    written, given = found.get("written"), found.get("given", known.given)
    inside = seen(oracle, "identity", None, found.get("reach"), written=written, without=found.get("without", ()))
    few = inside.facts.domain.sample(as_generator(seed), FEW_ROWS, inside.dim)
    try:
        answers = ask(inside, np.concatenate([few, given.inputs]))
    except (BudgetExhausted, TargetError):
        return dict(found)
    if not are_labels(answers) or np.ptp(answers, axis=0).max() == 0:
        return dict(found)
    rare = replace(served, shape=Shape.PIECEWISE_CONSTANT)
    return {**found, "served": rare, "health": rare}


# ---- span

WIDE_ANSWERS = 32  # outputs: last hidden layers of fewer neurons than that are rare
TREE_ROWS = 10_000  # a few splits of a few inputs take fewer; those of a forest never end
FROM_LABELS = (Outcome.PIECEWISE_CONSTANT, Outcome.NOT_PIECEWISE_LINEAR, Outcome.OUT_OF_REACH)


def span_from_labels(known: Findings, outputs: int) -> bool:
    """True if values do not give the span, and labels of so many outputs may, of the answers as they are.

    Values are no pieces of linear functions, or rounding leaves nothing of them, or none can be read through a link.
    """
    served, health = known.served, known.health
    if served is None or health is None:
        return False
    refusal = values_refusal(health)
    coarse = refusal is Outcome.TOO_NOISY and served.deterministic and (outputs > 1 or health.raw is None)
    unread = known.linked and refusal is Outcome.NON_FINITE
    readable = served.refusal not in (Outcome.CONSTANT, Outcome.NON_FINITE)
    return refusal in FROM_LABELS or ((coarse or unread) and readable)


def find_span(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """From values; from labels where these do not give it. Trees have too many splits for more than a few rows.

    Many outputs may lie in a space of few dimensions, the width of the last hidden layer. Cost: that and 20 rows.
    """
    if known.health is not None and known.health.trees:
        open_ = Skip("splits-of-trees", settles=False, rows=TREE_ROWS)  # which inputs they split is open
        oracle = Limit(TREE_ROWS, refusal=lambda wanted, most: open_).of(oracle)
    labels = span_from_labels(known, oracle.outputs)
    if not labels and (known.health is None or values_refusal(known.health) is not None):
        skip_where(known, Outcome.CONSTANT, Outcome.NON_FINITE, missing="directions")
    # Coarse directions of few digits do not pass verification, and finding them anew costs more.
    few = known.health is not None and known.health.number_format != "float64"
    threshold = _middle(oracle, known, seed) if labels else None
    span = recover_span(oracle, labels=labels, threshold=threshold, fine=few, rng=seed)
    wide = not labels and oracle.outputs >= WIDE_ANSWERS
    return {"span": span, "answer_space": output_space(oracle, rng=seed, quiet=QUIET_ROWS) if wide else None}


def _middle(oracle: Counting, known: Findings, seed: int) -> float | None:
    """An answer of one output that others are on both sides of, which is a label too; None where it answers labels."""
    if oracle.outputs > 1 or known.health is None or known.health.answers is Kind.LABELS:
        return None
    return float(np.median(ask(oracle, oracle.facts.domain.sample(as_generator(seed), FEW_ROWS, oracle.dim))))

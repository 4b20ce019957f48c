"""The diagnosis for each interface: why a target is refused, and the remedies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from reluctant.interface.kinds import IntegerKind, Shape
from reluctant.interface.noise import ENOUGH_DECIMALS
from reluctant.messages import Diagnosis, Remedy
from reluctant.messages.catalogue import (
    FLOAT64,
    GIVE_DOMAIN,
    GIVE_INPUTS,
    SPAN_FROM_LABELS,
    SPAN_FROM_LABELS_WITHOUT_LINK,
    TRAIN,
    TRAIN_AS_ANSWERED,
    TRAIN_WITHOUT_LINK,
)
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.oracles.base import Kind
from reluctant.oracles.links import PERCENT, AnswerLink
from reluctant.results import Outcome

if TYPE_CHECKING:
    from reluctant.interface.health import Interface

PERCENT_DECIMALS = 2  # that a percentage has fewer than the fraction
NOISIEST_READ = 1e-6  # of the output's deviation: more noise hides what lines inside a box show

ON_ONE_OUTPUT = Remedy("one-output", "open", {"output": None})
NO_LINK = Remedy("no-link", "open", {"link": "identity"})
NEARER_DOMAIN = Remedy("nearer-domain", "open", {"domain": None})
READ_MISSING = Remedy("fill-missing", "audit")


def refusal_diagnosis(found: Interface) -> Diagnosis | None:
    """Why an exact method cannot work on this target, and what to try; None if it can."""
    refusal, raw = found.refusal, found.raw
    if refusal is None:
        return None
    curved, noisy = refusal is Outcome.NOT_PIECEWISE_LINEAR, refusal is Outcome.TOO_NOISY
    in_steps, no_number = refusal is Outcome.PIECEWISE_CONSTANT, refusal is Outcome.NON_FINITE
    table: tuple[tuple[bool, Callable[[], Diagnosis]], ...] = (
        (
            refusal is Outcome.CONSTANT and found.facts.samples is not None,
            lambda: Diagnosis("same-at-inputs"),
        ),
        (
            refusal is Outcome.CONSTANT and found.varies_far_out,
            lambda: Diagnosis("same-near", remedies=(GIVE_DOMAIN, GIVE_INPUTS)),
        ),
        (curved and raw is not None, lambda: _curved_behind(found)),
        ((curved or noisy) and found.are_of_a_link, lambda: _of_a_link(found)),
        (curved and found.may_be_sigmoids and not found.curved_odds, lambda: _may_be_sigmoid(found)),
        (
            no_number and found.top_k is not None,
            lambda: Diagnosis("missing-is-nan", likeness_fields(found), (READ_MISSING,)),
        ),
        (
            in_steps and found.answers is Kind.LABELS,
            lambda: Diagnosis(labels_slug(found), remedies=(TRAIN, SPAN_FROM_LABELS)),
        ),
        (in_steps and found.step_function, lambda: Diagnosis(steps_slug(found), remedies=what_is_left(found))),
        ((no_number or noisy) and raw is not None and raw.too_coarse, lambda: unreadable_values(found)),
        (no_number and raw is not None, lambda: _certain(found)),
        (noisy, lambda: hidden_structure(found)),
    )
    return next((diagnosis() for applies, diagnosis in table if applies), refusal.diagnosis)


def labels_slug(found: Interface) -> str:
    """The slug of labels, by whether they may be numbers."""
    return "labels-or-numbers" if found.integers is IntegerKind.UNDECIDED else "answers-are-labels"


def steps_slug(found: Interface) -> str:
    """The slug of answers that change in steps, by whether they are those of trees."""
    return "answers-of-trees" if found.trees else "answers-in-steps"


def _may_be_sigmoid(found: Interface) -> Diagnosis:
    remedies = (TRAIN_AS_ANSWERED, Remedy("read-if-sigmoid", "extract", _link_options(found)))
    return Diagnosis("may-be-sigmoid", _top(found), remedies)


def _curved_behind(found: Interface) -> Diagnosis:
    """Values that are curved after the link was undone: by smooth neurons, or another link."""
    assert found.raw is not None
    return Diagnosis("curved-behind-link", {"link": found.raw.link}, (TRAIN_AS_ANSWERED, SPAN_FROM_LABELS_WITHOUT_LINK))


def _certain(found: Interface) -> Diagnosis:
    """Answers at the ends of their link, where no value can be read."""
    assert found.raw is not None
    if found.raw.certain:
        return Diagnosis("nothing-behind-link", {"link": found.raw.link}, (NO_LINK, NEARER_DOMAIN))
    return Diagnosis("certain-behind-link", {"link": found.raw.link}, (NEARER_DOMAIN,))


def unreadable_values(found: Interface) -> Diagnosis:
    """Answers behind a link with too few digits for it."""
    raw = found.raw
    assert raw is not None
    fields = {"link": raw.link, "decimals": raw.decimals, "number_format": raw.number_format}
    remedies = (FLOAT64,) if found.more_digits else (TRAIN_WITHOUT_LINK, SPAN_FROM_LABELS_WITHOUT_LINK)
    return Diagnosis("values-unreadable", fields, remedies)


def hidden_structure(found: Interface) -> Diagnosis:
    """Answers whose digits are too few against their spread."""
    return Diagnosis("structure-hidden", digits_limit(found) | {"spread": found.spread}, what_is_left(found))


def what_is_left(found: Interface) -> tuple[Remedy, ...]:
    """What to try with answers that no exact method reads; labels of noisy answers flicker, trees have no span."""
    behind = found.raw is not None
    train, span = (TRAIN_WITHOUT_LINK, SPAN_FROM_LABELS_WITHOUT_LINK) if behind else (TRAIN, SPAN_FROM_LABELS)
    return (train, span) if found.deterministic and not found.trees else (train,)


def digits_limit(found: Interface) -> dict[str, Any]:
    """What limits the digits of the answers: decimals, noise or the number format, the coarsest of them."""
    given = found if found.raw is None else found.raw
    fields: dict[str, Any] = {"link": None if found.raw is None else found.raw.link}
    if given.decimals is not None:
        return fields | {"limit": "decimals", "decimals": given.decimals}
    if not found.deterministic:
        return fields | {"limit": "fresh-noise", "noise": found.fresh_noise}
    if given.number_format == "float64":
        return fields | {"limit": "noise", "noise": found.noise.absolute}
    return fields | {"limit": "number-format", "number_format": given.number_format}


def likeness_fields(found: Interface) -> dict[str, Any]:
    """The kind of the answers: values, labels, values of a tanh, or probabilities, all or the largest few."""
    fields: dict[str, Any] = {"percent": found.percent}
    if found.tanh:
        return {"kind": "tanh", "percent": False}
    if found.answers is Kind.LABELS:
        return fields | {"kind": "labels-or-numbers" if found.integers is IntegerKind.UNDECIDED else "labels"}
    if found.top_k is not None:
        return fields | {"kind": "top-k", "largest": found.top_k.largest, "classes": found.top_k.classes}
    return fields | {"kind": _link(found) if found.are_probabilities else "values"}


def _link(found: Interface) -> AnswerLink:
    """What would undo these answers."""
    if found.top_k is not None:
        return "top-k"
    if found.answers is Kind.PROBABILITIES:
        return "softmax"
    return "tanh" if found.tanh else "sigmoid"


def _link_options(found: Interface) -> dict[str, Any]:
    return {"link": _link(found)} | ({"percent": True} if found.percent else {})


def _top(found: Interface) -> dict[str, Any]:
    return {"top": PERCENT if found.percent else 1.0, "percent": found.percent}


def _of_a_link(found: Interface) -> Diagnosis:
    """Answers that only a link explains, and whether that link can read them."""
    fields = likeness_fields(found) | {"decimals": found.decimals, "number_format": found.number_format}
    train = TRAIN_AS_ANSWERED if found.refusal is Outcome.NOT_PIECEWISE_LINEAR else TRAIN_WITHOUT_LINK
    coarse = Diagnosis("link-too-coarse", fields, (train, SPAN_FROM_LABELS))
    few = Diagnosis("link-few-digits", fields, (train, Remedy("try-link", "extract", _link_options(found))))
    if found.top_k is not None and not found.top_k.all_but_one:
        return Diagnosis("top-k-incomplete", likeness_fields(found), (train,))
    if found.decimals is not None:
        return coarse if found.decimals + PERCENT_DECIMALS * found.percent < ENOUGH_DECIMALS else few
    if found.number_format == "float16" and not found.more_digits:
        return coarse
    noisy = found.noise.absolute > NOISIEST_READ * found.spread
    if noisy and (found.number_format == "float64" or not found.deterministic):
        return Diagnosis("link-too-noisy", likeness_fields(found) | {"noise": found.noise.absolute}, (train,))
    if _link(found) in ELEMENTWISE_LINKS and found.number_format != "float64" and not found.more_digits:
        return few
    options = _link_options(found) | ({"precision": "float64"} if found.more_digits else {})
    hidden = likeness_fields(found) | {"hidden": found.curves_hidden}
    return Diagnosis("answers-of-link", hidden, (Remedy("read-link", "open", options),))


FAR_ENOUGH = 1e4  # exact methods look for creases out to here


def findings(found: Interface) -> list[Diagnosis]:
    """All that was measured, most important first: one line of text each."""
    refused, hidden = found.diagnosis, found.curves_hidden or found.refusal is Outcome.TOO_NOISY
    named = refused is not None and ("kind" in refused.fields or found.answers is Kind.LABELS)  # what they look like
    return [
        *([] if refused is None else [refused]),
        *([] if hidden or named else [Diagnosis("shape", {"shape": str(found.shape)})]),
        Diagnosis("deterministic") if found.deterministic else Diagnosis("fresh-noise", {"noise": found.fresh_noise}),
        *_sizes(found),
        *(each for each in _caveats(found) if not (named and each.slug == "likeness")),
    ]


def _sizes(found: Interface) -> list[Diagnosis]:
    """Digits and noise, which labels do not have."""
    noise = found.noise
    if found.answers is Kind.LABELS or not np.isfinite(found.spread):
        return []
    slug, given = ("digits", found) if found.raw is None else ("digits-behind-link", found.raw)
    written: dict[str, Any] = {"decimals": given.decimals, "number_format": given.number_format}
    link = {} if found.raw is None else {"link": found.raw.link}
    floor = {"absolute": noise.absolute, "relative": noise.relative, "spread": found.spread}
    return [Diagnosis(slug, written | link), Diagnosis("noise-floor", floor)]


def _caveats(found: Interface) -> list[Diagnosis]:
    """Findings that may surprise a method or a reader."""
    in_steps = found.step_function or found.answers is Kind.LABELS  # which stay the same on most rays
    table: tuple[tuple[bool, str, dict[str, Any], tuple[Remedy, ...]], ...] = (
        (found.answers is not Kind.VALUES, "likeness", likeness_fields(found), ()),
        (bool(found.class_columns), "class-beside-values", {"columns": found.class_columns}, (ON_ONE_OUTPUT,)),
        (found.integers is IntegerKind.SCORES, "whole-in-order", {}, ()),
        (found.nonfinite > 0, "non-finite-rows", _non_finite(found), ()),
        (
            found.largest_scale is not None and found.largest_scale < FAR_ENOUGH,
            "unanswered-beyond",
            {"scale": found.largest_scale, "linked": found.raw is not None},
            (),
        ),
        (found.constant_beyond is not None and not in_steps, "constant-beyond", *_constant_beyond(found)),
        (
            found.like_sigmoids and found.may_be_sigmoids and found.refusal is None,
            "ends-at-0-and-1",
            _top(found),
            (Remedy("read-if-sigmoid", "extract", _link_options(found)),),
        ),
    )
    return [Diagnosis(slug, fields, remedies) for applies, slug, fields, remedies in table if applies]


def _non_finite(found: Interface) -> dict[str, Any]:
    link = None if found.raw is None else found.raw.link
    return {"rows": found.nonfinite, "queries": found.queries, "link": link}


def _constant_beyond(found: Interface) -> tuple[dict[str, Any], tuple[Remedy, ...]]:
    """Why answers no longer change far out, as far as they show it."""
    if found.are_of_a_link and found.saturated:
        return {"scale": found.constant_beyond, "why": "saturated"}, ()
    unclear = (found.shape is Shape.SMOOTH or found.may_be_sigmoids) and not found.are_of_a_link
    why = "saturated-or-clipped" if unclear else "clipped"
    return {"scale": found.constant_beyond, "why": why}, (GIVE_DOMAIN,)


# ---- what `extract` would do

WOULD_REFUSE = Diagnosis("would-refuse")


def extraction_prospects(found: Interface) -> tuple[Diagnosis, ...]:
    """What `extract` would do; nothing where the diagnosis of the interface says why it refuses the target."""
    refusal = found.exact_refusal
    if found.raw is not None and found.raw.too_coarse:
        fitted = found.raw.may_be_fitted(found.facts.outputs)
        return (Diagnosis("fits-probabilities") if fitted else WOULD_REFUSE,)  # the interface says why
    noisy = found.raw is not None and not found.deterministic and found.refusal is None
    if found.needs_box or noisy:  # noise far out leaves some probabilities that are not 0 or 1
        assert found.raw is not None
        if found.raw.certain:
            return ()
        if found.noise.absolute > NOISIEST_READ * found.spread:
            return (WOULD_REFUSE, too_few_digits(found, tried=False))
        return (Diagnosis("inside-a-box", remedies=_more_digits(found)),)
    if found.answers_labels:
        return (Diagnosis("from-labels"),)
    if found.refusal is not None:
        return ()
    if refusal is None:
        return (Diagnosis("exact-weights"),)
    if refusal is not Outcome.LOW_PRECISION:
        return (WOULD_REFUSE, refusal.diagnosis)
    if found.few_digits_are_enough:
        return (Diagnosis("with-few-digits", remedies=_more_digits(found)),)
    return (WOULD_REFUSE, too_few_digits(found, tried=False))


def _more_digits(found: Interface) -> tuple[Remedy, ...]:
    return (FLOAT64,) if found.more_digits else ()


def too_few_digits(found: Interface, *, tried: bool) -> Diagnosis:
    """Why a target ended with too few digits; tried: the method for few digits did not succeed."""
    if found.raw is not None and found.raw.too_coarse:
        return unreadable_values(found)
    fields = digits_limit(found) | {"tried": tried}
    return Diagnosis("too-few-digits", fields, _more_digits(found) or what_is_left(found))

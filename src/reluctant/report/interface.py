"""What the interface of a target looks like, as rows that a page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reluctant.health.answers import rounded_to
from reluctant.report.sentences import answers_labels, shape_words
from reluctant.report.words import count, size

__all__ = ["interface_facts"]

Data = Mapping[str, Any]
Facts = list[tuple[str, str]]


SEEN = {"log-softmax": "log-probabilities", "tanh": "values of a tanh"}  # behind other links probabilities


def interface_facts(record: Data) -> Facts:
    """What the target says of itself, and what the health check saw."""
    target, health, served = record["target"], record.get("health"), record.get("served")
    rows = [
        ("Inputs", _known(target.get("inputs"), count)),
        ("Outputs", _known(target.get("outputs"), count)),
        ("Answers", _answers(record)),
        ("Number format", _number_format(record)),
        ("Read through", _link(target)),
        ("Domain", None if target.get("answers only in") else target.get("domain")),
        ("Answers only in", _found(target.get("answers only in"))),
        ("Identity", target.get("identity")),
    ]
    linked, labels = _link(target) is not None, answers_labels(record)
    rows += _of_answers(_health(served, labels, None)) if served and linked else []
    seen = _health(health, labels, shape_words(record, health)) if health else []
    rows += _of_values(seen) if linked else seen
    return [(name, str(value)) for name, value in rows if value]


def _number_format(record: Data) -> str | None:
    """As the target says; a function says nothing, and labels have none."""
    target = record["target"]
    return None if answers_labels(record) or not target.get("identity") else target.get("number format")


def _answers(record: Data) -> str | None:
    """What they are: as the audit saw them, where the target says nothing better."""
    target, health = record["target"], record.get("health") or {}
    kind, link = target.get("kind"), _link(target)
    if target.get("look like"):
        return f"{target['look like']}, as the audit saw"
    if answers_labels(record):
        seen = "labels"
    elif link is not None or health.get("answers") == "probabilities":
        seen = SEEN.get(str(target.get("link")), "probabilities")
    elif target.get("may be sigmoids"):
        return f"{kind} between 0 and 1, which may be probabilities"
    else:
        return kind
    told = link is not None and not target.get("link found")
    return seen if seen == kind else f"{seen}, as the audit {'was told' if told else 'saw'}"


def _link(target: Data) -> str | None:
    link = target.get("link")
    if not link or link == "identity":
        return None
    return f"{link}, found by the audit" if target.get("link found") else str(link)


def _found(place: str | None) -> str | None:
    return f"{place}, found by the audit; it may be somewhat wider" if place else None


def _known(value: Any, words: Any) -> str | None:
    return None if value is None else words(value)


def _health(health: Data, labels: bool, shape: str | None) -> list[tuple[str, str | None]]:
    """What the check saw."""
    fresh, far = size(health.get("fresh_noise")), health.get("largest_scale")
    missing, largest = health.get("nonfinite"), None if far is None else f"size {size(far, 1)}"
    return [
        ("Shape at small scale", shape),
        ("The same every time", "yes" if health.get("deterministic") else f"no: fresh noise of {fresh}"),
        *([] if labels else _sizes(health)),
        ("Rows without a number", count(missing) if missing else None),
        ("Largest inputs answered", largest),
    ]


# Behind a link some is told of the answers, some of the values that were read from them, under names of their own.
OF_VALUES = {
    "Shape at small scale": "Shape of the values read, at small scale",
    "Spread of the answers": "Spread of the values read",
    "Rows without a number": "Rows whose answers tell no value",
    "Largest inputs answered": "Largest inputs that tell values",
}


def _of_answers(told: Sequence[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """All but their shape: their curves are those of their link."""
    return [(name, value) for name, value in told if name != "Shape at small scale"]


def _of_values(told: Sequence[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    return [(OF_VALUES[name], value) for name, value in told if name in OF_VALUES]


def _sizes(health: Data) -> list[tuple[str, str | None]]:
    """Digits, noise and spread, which labels do not have."""
    noise, constant = health.get("noise") or {}, health.get("constant_beyond")
    return [
        ("Digits seen", f"{health.get('number_format')}, {_rounded(health.get('decimals'))}"),
        ("Noise", f"{size(noise.get('absolute'))} absolute, {size(noise.get('relative'))} relative"),
        ("Spread of the answers", size(health.get("spread"))),
        ("No change beyond", None if constant is None else f"size {size(constant, 1)}"),
    ]


def _rounded(decimals: Any) -> str:
    return "not rounded" if decimals is None else rounded_to(decimals)

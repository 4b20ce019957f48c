"""`render`: text from the catalogue, its templates filled with the fields of a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reluctant.messages.audit_sentences import AUDIT_SENTENCES
from reluctant.messages.catalogue import OUTCOMES, PURPOSES, TEXTS
from reluctant.messages.diagnosis import Diagnosis, Remedy


def happened(diagnosis: Diagnosis) -> str:
    """What happened; a slug that only the page of an audit has a sentence for is read out with its fields."""
    slug, fields = diagnosis.slug, diagnosis.fields
    if slug in TEXTS:
        return TEXTS[slug].says.format_map(_Words(fields))
    return AUDIT_SENTENCES[slug].format_map(KnownFields(fields)) if slug in AUDIT_SENTENCES else _read_out(diagnosis)


def render(diagnosis: Diagnosis, write: Callable[[Remedy], str]) -> str:
    """What happened, what no call expresses, then a sentence for each remedy."""
    tried = [PURPOSES[remedy.purpose].format(call=write(remedy)) for remedy in diagnosis.remedies]
    hint = TEXTS[diagnosis.slug].hint if diagnosis.slug in TEXTS else ""
    return " ".join(filter(None, [happened(diagnosis), hint, *tried]))


class KnownFields(dict[str, Any]):
    """Fields of a template, with a dash for one that a record does not have."""

    def __missing__(self, name: str) -> str:
        return "–"


def _read_out(diagnosis: Diagnosis) -> str:
    fields = ", ".join(f"{name}: {_plain(value)}" for name, value in diagnosis.fields.items())
    return diagnosis.slug.replace("-", " ").capitalize() + (f" ({fields})." if fields else ".")


def _plain(value: Any) -> str:
    if isinstance(value, Mapping) and "slug" in value:
        return str(value["slug"])
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


# ---- phrases that several fields make together


class _Words(dict[str, Any]):
    """Fields of a diagnosis, and the phrases made of them."""

    def __missing__(self, name: str) -> str:
        return PHRASES[name](self)


Fields = Mapping[str, Any]


def rounded_to(decimals: int) -> str:
    """Of answers with so many digits after the point."""
    return "rounded to whole numbers" if decimals == 0 else f"rounded to {decimals} decimal{'s' * (decimals != 1)}"


def _noun(fields: Fields) -> str:
    return "answers" if fields["link"] == "tanh" else "probabilities"


def _ends(fields: Fields) -> str:
    return "-1 or 1" if fields["link"] == "tanh" else "0 or 1"


def _written(fields: Fields) -> str:
    decimals = fields["decimals"]
    return f"in {fields['number_format']}" if decimals is None else rounded_to(decimals)


def _digits(fields: Fields) -> str:
    """What limits the digits: decimals, the number format, noise, or noise that is new in each answer."""
    linked, limit = fields.get("link") is not None, fields["limit"]
    read = "The values read through the link" if linked else "The answers"
    if limit == "fresh-noise":
        return f"{read} change by {fields['noise']:.1e} when asked for again"
    if limit == "noise":
        return f"{read} have noise of {fields['noise']:.1e}"
    given = f"The {_noun(fields)} behind the link" if linked else "The answers"
    return f"{given} are {rounded_to(fields['decimals']) if limit == 'decimals' else 'in ' + fields['number_format']}"


LIKENESSES = {
    "values": "values",
    "labels": "labels",
    "labels-or-numbers": "labels, or values rounded to whole numbers",
    "softmax": "probabilities",
    "sigmoid": "probabilities of a sigmoid",
    "tanh": "values of a tanh",
}


def _likeness(fields: Fields) -> str:
    unit = _in_percent(fields)
    if fields["kind"] != "top-k":
        return f"{LIKENESSES[fields['kind']]}{unit}"
    k, classes = fields["largest"], fields["classes"]
    largest = "largest probability" if k == 1 else f"{k} largest probabilities"
    return f"the {largest} of {classes} classes{unit}, without the {'other' if k == classes - 1 else 'others'}"


def _in_percent(fields: Fields) -> str:
    return " in percent" if fields["percent"] else ""


def _columns_are(fields: Fields) -> str:
    which = ", ".join(map(str, fields["columns"]))
    return f"Output {which} answers" if len(fields["columns"]) == 1 else f"Outputs {which} answer"


def _why_non_finite(fields: Fields) -> str:
    if fields["link"] is None:
        return ""
    given = "an answer" if fields["link"] == "tanh" else "a probability"
    return f": {given} there is exactly {_ends(fields)}, or missing"


def _on_the_copy(fields: Fields) -> str:
    if fields["outcome"] == "not-flipped" and fields["steps"] > 1:
        return happened(Diagnosis("not-flipped-in-steps", {"steps": fields["steps"], "what": "network"}))
    return happened(Diagnosis(fields["outcome"], {"what": "network"}))


def _clipped_to(fields: Fields) -> str:
    return f" to [{fields['low']:.10g}, {fields['high']:.10g}]" if "low" in fields else ""


WHY_CONSTANT = {
    "saturated": "they saturate",
    "clipped": "inputs or answers may be clipped",
    "saturated-or-clipped": "they saturate, or inputs or answers are clipped",
}

PHRASES: Mapping[str, Callable[[Fields], str]] = {
    "what": lambda _: "target",
    "clipped_to": _clipped_to,
    "digits": _digits,
    "likeness": _likeness,
    "in_percent": _in_percent,
    "written": _written,
    "rounding": lambda fields: "not rounded" if fields["decimals"] is None else rounded_to(fields["decimals"]),
    "noun": _noun,
    "ends": _ends,
    "columns_are": _columns_are,
    "why_non_finite": _why_non_finite,
    "on_the_copy": _on_the_copy,
    "why_constant": lambda fields: WHY_CONSTANT[fields["why"]],
    "get_no_answer": lambda fields: "have no values to read" if fields["linked"] else "get no answer",
    "hidden_curves": lambda fields: ", by less than their noise at small scale" if fields["hidden"] else "",
    "ended": lambda fields: f"{OUTCOMES[fields['outcome']].says} " if "outcome" in fields else "",
    "few_digits_failed": lambda fields: (
        "the method for them, which recovers one hidden layer, did not succeed"
        if fields.get("tried")
        else "for the method for few digits"
    ),
}

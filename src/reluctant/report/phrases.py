"""Text of an audit's diagnoses: how steps ended, why, and what to try.

The record holds slugs with fields. Here each slug gets its text, those of `AUDIT_SENTENCES` as they are; an outcome
without one speaks as the catalogue of messages does. Remedies are written as settings of an audit, such as
`link="softmax"`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from reluctant.messages import Diagnosis, Remedy
from reluctant.messages.audit_sentences import AUDIT_SENTENCES
from reluctant.messages.grammar import KnownFields
from reluctant.oracles.links import noun_behind
from reluctant.report.numbers import count, distinct_percents, percent, rounding, size
from reluctant.results import Outcome

Fields = Mapping[str, Any]

OUTCOMES = {outcome.slug: outcome for outcome in Outcome}

# Slugs whose sentence is always the same, or takes its fields as they are.
SENTENCES: Mapping[str, str] = {
    **AUDIT_SENTENCES,
    # How a method ended, where an owner needs other words than one who calls it.
    "constant": "This step met the same answer everywhere. Other answers, if there are any, are rare or elsewhere.",
    "one-label": "This step met the same label everywhere. Other labels, if there are any, are rare or elsewhere.",
    "out-of-budget": "The step's share of the query budget ran out.",
    "not-accurate-enough": "No network was learned that is accurate enough.",
    "flat": "Around this input the target changes by less than its noise or rounding: there is no gradient to follow.",
    # What an interface gives.
    "answers-are-labels": "The answers are labels: they do not change under small steps.",
    "labels-or-numbers": (
        "The answers are whole numbers that do not change under small steps: classes or rounded values. The audit "
        "cannot tell which."
    ),
    "answers-in-steps": (
        "The answers change in steps, as those of trees, quantised numbers or rounded inputs do. They hold no weights "
        "and no gradients."
    ),
    "same-near": (
        "The target gave the same answer everywhere near the origin, and other answers far out. Give the range of "
        "inputs that it expects."
    ),
}

# Where values were read through a link, it is the values that end.
SATURATED: Mapping[str, str] = {
    "out-of-reach": (
        "Far from the origin, where the creases are, the answers are certain to the last digit or within their noise: "
        "they show no value there."
    ),
    "non-finite": "Some answers are certain to the last digit or within their noise: they show no value there.",
}

MISSING = {
    "anything": "nothing that this step could work with", "creases": "no creases to find",
    "gradient": "no gradient to follow", "directions": "no directions to tell apart",
}  # fmt: skip
GIVES = {
    "alike": "Answers that are nearly all alike",
    "certain": "Answers that are certain",
    "labels": "Labels",
    "labels-or-numbers": "Whole numbers that may be labels",
    "coarse": "Answers so coarse",
    "constant": "Answers that are all the same",
    "non-finite": "Answers that are NaN or inf",
    "not-piecewise-linear": "Curved answers",
    "piecewise-constant": "Answers that do not change under small steps",
    "too-noisy": "Answers with so much noise",
}

# What to try, in an audit.
PURPOSES: Mapping[str, str] = {
    "another-seed": "Another seed may settle it.",
    "give-domain": "Give the range of inputs that the target expects: {settings}.",
    "more-budget": "Raise the budget, which all steps share.",
    "read-link": "Name the link that made the answers: {settings}. Then the audit looks at the values before it.",
    "more-digits": "Open the model in float64: {settings}.",
}
OPEN_VALUES = {"domain": "(low, high)", "link": '"softmax", "sigmoid" or "tanh"', "budget": "N", "rng": "N"}


def sentence(diagnosis: Diagnosis | None) -> str:
    """What happened and what to try; empty without a diagnosis."""
    return "" if diagnosis is None else " ".join([said(diagnosis), *advice(diagnosis.remedies)]).strip()


def said(diagnosis: Diagnosis) -> str:
    """What happened."""
    slug, fields = diagnosis.slug, diagnosis.fields
    if fields.get("saturates") and slug in SATURATED:
        return SATURATED[slug]
    if slug in WRITTEN:
        return WRITTEN[slug](fields)
    if slug in SENTENCES:
        return SENTENCES[slug].format_map(KnownFields(fields)) + _more(slug, fields)
    if slug in OUTCOMES:
        return OUTCOMES[slug].happened + _more(slug, fields)
    return f"{slug.replace('-', ' ').capitalize()}."


def advice(remedies: Iterable[Remedy]) -> list[str]:
    """A sentence for each remedy."""
    return [text for remedy in remedies if (text := remedy_sentence(remedy))]


def remedy_sentence(remedy: Remedy) -> str:
    """What to try, as settings of an audit; empty for a purpose that an audit has no words for."""
    return PURPOSES.get(remedy.purpose, "").format(settings=setting(remedy.options))


def setting(options: Mapping[str, Any]) -> str:
    """Options as they are given: `link="softmax", percent=True`."""
    return ", ".join(f"{name}={_value(name, value)}" for name, value in options.items())


def _value(name: str, value: Any) -> str:
    if value is None:
        return OPEN_VALUES.get(name, "...")
    if isinstance(value, str):
        return f'"{value}"'
    return f"({', '.join(f'{each:.10g}' for each in value)})" if isinstance(value, Sequence) else str(value)


def listed(names: Sequence[str]) -> str:
    """a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def several(number: int, what: str) -> str:
    """1 query, 2 queries."""
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"1 {what}" if number == 1 else f"{count(number)} {plural}"


def shape_name(widths: Iterable[int]) -> str:
    """64-32-10."""
    return "-".join(map(str, widths))


def _more(slug: str, fields: Fields) -> str:
    """How far off the best network is, or what the target said itself."""
    if slug == "not-accurate-enough" and fields.get("typical_error") is not None:
        return f" The best one is off by {size(fields['typical_error'])} of the output's deviation, root mean square."
    return f" {fields['message']}" if slug == "target-failed" and fields.get("message") else ""


def lacks(fields: Fields) -> str:
    """What chance leaves open of a trained network, beside what counts as a copy."""
    most, allowed = distinct_percents(fields["most"], fields["allowed"])
    if not fields["labels"]:
        return f"its error may be as large as {most} of the answers' deviation, and a copy may have {allowed}"
    alone = fields.get("alone")
    one = "" if alone is None else f", since one label alone is right for {percent(alone)}"
    return f"as many as {most} of labels may differ, and in a copy {allowed} may{one}"


def _perhaps_a_copy(fields: Fields) -> str:
    return f"The network trained on the answers may be close enough to count as a copy: {lacks(fields)}."


def _with_the_copy(fields: Fields) -> str:
    rest = count(fields["directions"])
    return f"Random inputs showed all directions but {rest}. The recovered network has these; few inputs show them."


def _digits(fields: Fields) -> str:
    """What limits the digits of the answers."""
    link, limit = fields.get("link"), fields.get("limit")
    what = "The answers" if link is None else "The values read through the link"
    if limit == "fresh-noise":
        return f"{what} change by {size(fields['noise'])} when asked again"
    if limit == "noise":
        return f"{what} have noise of {size(fields['noise'])}"
    what = "The answers" if link is None else f"The {noun_behind(link)} behind the link"
    given = rounding(fields["decimals"]) if limit == "decimals" else f"in {fields.get('number_format')}"
    return f"{what} are {given}"


def _too_few_digits(fields: Fields) -> str:
    text = f"{_digits(fields)}: too few digits for exact extraction, and for the method for few digits."
    if fields.get("most_noise") is None:
        return text
    most, noise = size(fields["most_noise"], 1), size(fields["relative_noise"])
    return f"{text} Inside bounds it needs noise of at most {most} of the answers' deviation, and here it is {noise}."


def _unreadable(fields: Fields) -> str:
    decimals = fields.get("decimals")
    given = f"in {fields.get('number_format')}" if decimals is None else rounding(decimals)
    return f"The {noun_behind(fields.get('link'))} are {given}: too few digits to read the values before the link."


def _clipped(fields: Fields) -> str:
    if fields.get("low") is None:
        return "The target clips its inputs, and its answers bend where it does."
    low, high = (f"{fields[name]:.10g}" for name in ("low", "high"))
    return f"The target seems to clip its inputs to [{low}, {high}]: its answers bend at these bounds."


def _step_failed(fields: Fields) -> str:
    message, error = str(fields.get("message") or ""), str(fields.get("error") or "")
    return message if not error or error == "target-failed" else f"{message} [{error}]".strip()


def _rows_ran_out(fields: Fields) -> str:
    return f"The rows for {listed([str(step) for step in fields['steps']])} ran out."


def _by_a_stop(what: str) -> Callable[[Fields], str]:
    def written(fields: Fields) -> str:
        steps = [str(step) for step in fields["steps"]]
        return f"The audit was stopped: {listed(steps)} {'was' if len(steps) == 1 else 'were'} {what}."

    return written


def _time_ran_out(fields: Fields) -> str:
    return f"The time for {fields['step']} ran out."


def _not_ended(fields: Fields) -> str:
    why = fields.get("why")
    because = sentence(as_diagnosis(why)) if why else "it was not tried."
    return f"{str(fields['step']).capitalize()} did not come to its end: {because}"


def as_diagnosis(data: Any) -> Diagnosis:
    """A diagnosis inside the fields of another one."""
    if isinstance(data, Diagnosis):
        return data
    remedies = tuple(Remedy(each["purpose"], each["verb"], each["options"]) for each in data.get("remedies", ()))
    return Diagnosis(data["slug"], data.get("fields", {}), remedies)


def _unread_link(fields: Fields) -> str:
    if fields.get("link") == "tanh":
        return "The answers are those of a tanh."
    top, unit = ("100", " in percent") if fields.get("percent") else ("1", "")
    return f"The answers lie between 0 and {top}, as probabilities of a sigmoid{unit} do."


def _nothing_to_find(fields: Fields) -> str:
    gives, missing = str(fields.get("gives")), MISSING.get(str(fields.get("missing")), MISSING["anything"])
    if gives == "rounded-link":
        return f"{str(fields['noun']).capitalize()} {rounding(fields['decimals'])} have {missing}."
    return f"{GIVES.get(gives, 'Such answers')} have {missing}."


def _too_noisy(fields: Fields) -> str:
    return f"The answers have noise of {size(fields['noise'])}: too much against their spread to show structure."


def _too_coarse(fields: Fields) -> str:
    return f"The answers are {rounding(fields['decimals'])}: too coarse against their spread to show structure."


def _asked(fields: Fields) -> str:
    rows = f"The audit asked {count(fields['queries'])} rows of a budget of {count(fields['budget'])}"
    inside = fields.get("inside")
    kept = "" if inside is None else f" Extraction kept to {inside}, since answers saturate far out."
    return f"{rows}, in {fields['domain']}.{kept}"


def outputs_named(outputs: Sequence[int]) -> str:
    """Output 3 gives; outputs 3 and 4 give."""
    names = listed([str(each) for each in outputs])
    return f"Output {names} gives" if len(outputs) == 1 else f"Outputs {names} give"


def _left_out(fields: Fields) -> str:
    outputs = fields["outputs"]
    them = "it" if len(outputs) == 1 else "them"
    return (
        f"{outputs_named(outputs)} whole numbers, as a class or a count does, beside answers of another kind. No step "
        f"looked at {them}."
    )


def _read_through(fields: Fields) -> str:
    link = fields["link"]
    kind = "those of a tanh" if link == "tanh" else "probabilities"
    through = "softmax, the missing one from the others" if link == "top-k" else link
    read = "The audit read" if fields.get("all") else "The audit could read some of"
    noisy = " It put their noise right before: none below 0, and a sum of 1." if fields.get("noisy") else ""
    return f"The answers are {kind}. {read} the values before their {through}.{noisy}"


def _sweep_inputs(fields: Fields) -> str:
    drawn = "random inputs" if fields.get("sampled") else "inputs given"
    return f"Costs to users and errors behind defenses are over {count(fields['inputs'])} {drawn}."


WRITTEN: Mapping[str, Callable[[Fields], str]] = {
    "trained-perhaps-a-copy": _perhaps_a_copy, "span-with-copy": _with_the_copy, "too-few-digits": _too_few_digits,
    "values-unreadable": _unreadable, "answers-too-noisy": _too_noisy, "answers-too-coarse": _too_coarse,
    "clipped-inputs": _clipped, "step-failed": _step_failed, "rows-ran-out": _rows_ran_out,
    "steps-broken-off": _by_a_stop("broken off"), "steps-not-begun": _by_a_stop("not begun"),
    "time-ran-out": _time_ran_out, "step-not-ended": _not_ended, "unread-link": _unread_link,
    "nothing-to-find": _nothing_to_find, "asked": _asked, "class-outputs-left-out": _left_out,
    "read-through-link": _read_through, "sweep-inputs": _sweep_inputs,
}  # fmt: skip

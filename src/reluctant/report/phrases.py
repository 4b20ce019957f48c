"""Text of an audit's diagnoses: how steps ended, why, and what to try.

The record holds slugs with fields. Here each slug gets its text; an outcome without one speaks as the catalogue of
messages does. Remedies are written as settings of an audit, such as `link="softmax"`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from reluctant.messages import Diagnosis, Remedy
from reluctant.oracles.links import noun_behind
from reluctant.report.numbers import count, distinct_percents, percent, rounding, size
from reluctant.results import Outcome

__all__ = [
    "advice",
    "as_diagnosis",
    "lacks",
    "listed",
    "outputs_named",
    "remedy_sentence",
    "said",
    "sentence",
    "setting",
    "several",
    "shape_name",
]

Fields = Mapping[str, Any]

OUTCOMES = {outcome.slug: outcome for outcome in Outcome}
STRAIGHT_ON = "{straight} of {creases} creases on a line go straight on, so there is more than one hidden layer."

# Slugs whose sentence is always the same, or takes its fields as they are.
SENTENCES: Mapping[str, str] = {
    # How a method ended, where an owner needs other words than one who calls it.
    "constant": "This step met the same answer everywhere. Other answers, if there are any, are rare or elsewhere.",
    "one-label": "This step met the same label everywhere. Other labels, if there are any, are rare or elsewhere.",
    "out-of-budget": "The step's share of the query budget ran out.",
    "not-accurate-enough": "No network was learned that is accurate enough.",
    "flat": "Around this input the target changes by less than its noise or rounding: there is no gradient to follow.",
    "trained-copy": "A network trained on the answers is close enough to count as a copy.",
    "trained-no-copy": "A network trained on the answers is not close enough to count as a copy.",
    "trained-on-fewer-rows": (
        "The rows for training ran out. The network trained on the answers so far is not close enough to count as a "
        "copy."
    ),
    "few-digits-in-vain": (
        "The answers have too few digits for exact extraction, and the method for few digits did not succeed."
    ),
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
    "all-the-same": (
        "The first look met the same answer everywhere. Other answers, if there are any, are rare or elsewhere."
    ),
    "rare-labels": "The first look met the same answer everywhere. Other answers are rare, and came later.",
    "may-be-clipped": "Far out the answers no longer change, as if the target clipped its inputs or answers.",
    "rounded-numbers": (
        "The answers are whole numbers that change in order, as rounded values or levels of a score do. More digits "
        "may show more to methods for values."
    ),
    "maybe-rounded-numbers": (
        "The answers are whole numbers: classes, or perhaps rounded values. More digits may show more to methods for "
        "values."
    ),
    "squashed-far-out": (
        "The answers end far out, as if something stood after the values that no link here undoes. If they are "
        "probabilities in another form, audit them as numbers between 0 and 1, one for each class."
    ),
    "curved-inside": (
        "The answers are curved in this range: the neurons are smooth, or something after the values bends them that "
        "no link here undoes. Audit the values before it, if you have them."
    ),
    # Why a step had nothing to do.
    "left-out": "The settings of the audit leave this step out.",
    "no-rows-left": "No rows of the budget were left for this step.",
    "unusable-answers": "No step can use the answers: see the step {step}.",
    "time-over": "The time for this step ran out.",
    "target-not-open": "The target is not open.",
    "outputs-left-out": "Some outputs were left out, and defenses act on the answers with all of them.",
    "output-behind-link": "The audit looked at one output behind a link, and defenses act on all outputs.",
    "no-local-copy": "There is no local copy: the network was not recovered, and the target is not a file.",
    "copy-apart": "The trained network answers in another form than the target was read in.",
    "no-copy": "There is no copy to compare with the target.",
    "no-finite-answers": "The target answers NaN or inf almost everywhere here. Its answers may be certain.",
    "few-inputs": "This step needs {inputs} different inputs.",
    "one-input": "The target has one input, so there is no plane.",
    "no-sign": "One answer that may be a probability has no sign that could flip.",
    "only-the-origin": "Every input is the origin, and distances are in units of an input's norm.",
    "flat-target": "The target is flat or undecided around the input tried.",
    "flat-network": "The network is flat around every input tried.",
    "recovered-exactly": "The network was recovered exactly.",
    "copy-exists": "There is a copy of the whole network.",
    "interface-unknown": "Nothing is known about the interface.",
    "bounded-domain": "Learning needs Gaussian inputs, and the domain is {domain}.",
    "bounded-reach": "Learning needs Gaussian inputs, and the target answers only in {domain}.",
    "several-layers": f"Learning is for one hidden layer. {STRAIGHT_ON}",
    "no-part": "No part of a network was found.",
    "not-a-file": "The target is not a file, so its weights are unknown here.",
    "no-network": "There is no network to compare.",
    "unreadable-file": "The weights in the file cannot be read ({error}).",
    "file-differs": "The file and the target differ in inputs or outputs.",
    # What an audit assumed, and what it could miss.
    "nothing-asked": "The audit asked nothing: the target could not be opened.",
    "relu-methods": "The methods are for fully connected ReLU networks. Other models may leak to other methods.",
    "one-recipe": (
        "The audit trained networks by one recipe: small ones, for seconds. Larger networks, longer training or inputs "
        "like those of real users may do better."
    ),
    "training-not-tried": (
        "The audit did not train a network on the answers. Training may give a close copy where these methods do not."
    ),
    "no-proof": "A method that failed here may succeed with a larger budget, another seed or more digits.",
    "in-percent": (
        "The answers are probabilities in percent. The audit divided them by 100: digits, errors and the copy are "
        "those of numbers between 0 and 1."
    ),
    "among-nan": "Missing probabilities are NaN. The audit took them as 0.",
    "first-class-zero": (
        "Probabilities do not show a value that is added to every class alike, so the copy gives the first class 0."
    ),
    "one-gradient-step": "Flips are steps along one gradient, and smaller ones may exist. Sizes are Euclidean norms.",
    "truth-apart": "The comparison with the file is for the owner alone. No method has seen the file.",
    "range-found": (
        "Beyond {domain} the target does not answer every question. The audit found that range itself, and the "
        "findings hold inside it. If you know the true range, give it."
    ),
    "rows-left-out": 'The picture "{picture}" leaves out {rows} rows without a finite answer.',
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
        return SENTENCES[slug].format_map(_Known(fields)) + _more(slug, fields)
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


class _Known(dict[str, Any]):
    """Fields of a template, with a dash for one that a record does not have."""

    def __missing__(self, name: str) -> str:
        return "–"


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

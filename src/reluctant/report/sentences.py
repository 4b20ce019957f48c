"""Sentences of the page that the record has as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from reluctant.adversarial.decision import HALF_PROBABILITY
from reluctant.adversarial.flip_search import TYPICAL
from reluctant.audit.owner import told
from reluctant.audit.states import State, state_of
from reluctant.report.student import student_of
from reluctant.report.words import count, percent, size
from reluctant.results import Outcome

__all__ = [
    "also_found",
    "answers_labels",
    "flip_sentence",
    "is_curved",
    "is_linked",
    "line_sentence",
    "of_labels",
    "shape_words",
    "shown_classes",
    "target_name",
    "versions_sentence",
]

Data = Mapping[str, Any]
OUTCOMES = {outcome.slug: outcome for outcome in Outcome}
SIGN_CHANGES = "the sign of the answer changes"
SAME_SIZE = 0.8, 1.25  # times what random networks need: hardly another size


def target_name(record: Data) -> str:
    """The target as its owner calls it: a file without its folders, anything else as it stands."""
    name = str(record["target"].get("name") or "a target without a name")
    return PurePath(name).name if name.startswith("/") else name


def also_found(record: Data) -> list[str]:
    """What other methods said: extraction, learning and training where they are not what was recovered; the span."""
    student, sentences = student_of(record), []
    for part, words in (("extraction", "Exact extraction"), ("learning", "Learning"), ("training", "Training")):
        found = record.get(part)
        if part == "training" and student is not None:
            sentences.append(student.sentence)
        elif found and not found["ok"]:
            sentences.append(f"{words}: {_how_it_ended(part, record)}")
    return [*sentences, *_span(record)]


def _how_it_ended(part: str, record: Data) -> str:
    """As its step says, who knows why; else as an owner reads its outcome, or in the words of the record."""
    whys = [step.get("why") for step in record["steps"] if step["step"] == part and state_of(step) is State.DONE]
    return next((str(why) for why in whys if why), _in_words(record[part], record))


def _in_words(ended: Data, record: Data) -> str:
    outcome = OUTCOMES.get(ended["outcome"])
    return str(ended["text"]) if outcome is None else told(outcome, saturates=is_linked(record))


def _span(record: Data) -> list[str]:
    span = record.get("span")
    if not span:
        return []
    if not span["ok"]:
        return [f"Directions it looks at: {_how_it_ended('span', record)}"]
    if span["rank"] == span["inputs"]:
        return [f"It looks at all {count(span['inputs'])} directions of its input: none is invisible to it."]
    angle = f", each to within an angle of {size(span['angle'])}" if span.get("angle") is not None else ""
    found = f"It looks at {count(span['rank'])} of {count(span['inputs'])} directions of its input{angle}."
    others = span["inputs"] - span["rank"]
    which = "the other one" if others == 1 else f"the other {count(others)}"
    if of_labels(span):
        return [
            f"Its labels depend on {found.removeprefix('It looks at ')} Steps along {which} were seen to change none."
        ]
    return [f"{found} Noise along {which} changes no answer."]


def of_labels(span: Data) -> bool:
    """True if directions were taken from labels: values may depend on others too."""
    return "labels" in (span.get("evidence") or {})


def flip_sentence(record: Data) -> str:
    """What one gradient step did to the answers, what it was taken from and what that had cost; or why none was."""
    flip = record.get("flip")
    if not flip:
        return next((str(step.get("why") or "") for step in record["steps"] if step["step"] == "flip"), "")
    if not flip["ok"]:
        return _not_flipped(flip, record)
    flipped = [one for one in flip["tries"] if one["ok"]]
    said = f"One gradient step flips {count(len(flipped))} of {count(len(flip['tries']))} inputs that were tried"
    return f"{said}{_sizes(record, flip)}.{_taken_from(flip, flipped)}{_beside_random(record, flip)}"


def _not_flipped(flip: Data, record: Data) -> str:
    """How the tries ended, those that ended alike together."""
    ended = [_in_words(one | {"text": flip["text"]}, record) for one in flip["tries"]]
    alike = {said: f"{count(ended.count(said))} of {count(len(ended))} inputs: {said}" for said in ended}
    return ended[0] if len(alike) == 1 else " ".join(alike.values())


def _sizes(record: Data, flip: Data) -> str:
    """The middle size, and what the smallest step did."""
    labels, smallest, middle = shown_classes(record), flip.get("relative size"), flip.get("median relative size")
    halves = (
        record["target"].get("link") == "sigmoid" or (flip.get("evidence") or {}).get("threshold") == HALF_PROBABILITY
    )
    crosses = "the probability crosses one half" if halves else SIGN_CHANGES
    change = f"{labels[0]} becomes {labels[1]}" if labels else crosses
    if smallest is None:
        return f": {change}"
    if middle is None:
        return f"; the smallest change is {percent(smallest)} of the input's norm: {change}"
    return f", with {percent(middle)} of the input's norm in the median; with {percent(smallest)}, the least, {change}"


def _taken_from(flip: Data, flipped: Sequence[Data]) -> str:
    spent = sorted(one["queries"] for one in flipped)
    each = count(spent[0]) if spent[0] == spent[-1] else f"{count(spent[0])} to {count(spent[-1])}"
    by, before = flip.get("by"), flip.get("queries before")
    if not by:
        return f" Each took {each} queries."
    first = f", which had taken {count(before)} queries" if before else ""
    return f" The gradient is from {by}{first}; each input then took {each} more."


def _beside_random(record: Data, flip: Data) -> str:
    """What a random network with as many inputs needs, as theory has it: TYPICAL over the root of their number."""
    smallest, inputs = flip.get("relative size"), record["target"].get("inputs")
    if not smallest or not inputs:
        return ""
    typical = TYPICAL / float(inputs) ** 0.5
    return f" A random network with as many inputs needs about {percent(typical)}: {_times(smallest / typical)}."


def _times(ratio: float) -> str:
    low, high = SAME_SIZE
    if low <= ratio <= high:
        return "the least is about that"
    return f"the least is {size(ratio)} times that" if ratio > 1 else f"the least is {size(1 / ratio)} times smaller"


def shown_classes(record: Data) -> tuple[str, str] | None:
    """Names of the classes before and after a flip, if it is one of classes."""
    classes = (record.get("flip") or {}).get("classes")
    if not classes:
        return None
    names = record["target"].get("classes")
    first, second = (_class(names[k] if names and k < len(names) else k) for k in classes)
    return first, second


def _class(name: Any) -> str:
    """A number alone would not be read as a class."""
    return f"class {name}" if str(name).isdigit() else str(name)


def is_linked(record: Data) -> bool:
    """True if values were read from the answers through a link."""
    return record["target"].get("link") not in (None, "identity")


def answers_labels(record: Data) -> bool:
    """True if the target gives labels, by what it says or by what was seen."""
    return "labels" in (record["target"].get("kind"), (record.get("health") or {}).get("answers"))


def is_curved(health: Data) -> bool:
    """True if the values are not made of straight pieces, seen or not."""
    return health.get("shape") == "smooth" or health.get("refusal") == Outcome.NOT_PIECEWISE_LINEAR.slug


def shape_words(record: Data, health: Data) -> str | None:
    """The shape at small scale, and no more of it than digits show: probabilities are curved where these hide it."""
    shape = health.get("shape")
    if is_curved(health) and shape != "smooth":
        return "curved, by less than its digits show"
    open_ = (record.get("target") or {}).get("may be sigmoids") and record["verdict"]["level"] != "exact"
    return UNTOLD if open_ and shape in STRAIGHT else shape


STRAIGHT = ("piecewise linear", "affine")
UNTOLD = "straight as far as its digits show, and perhaps curved"


def line_sentence(record: Data) -> str:
    """What to see in the curves along a line; nothing of what their digits do not show."""
    health = record.get("health") or {}
    if answers_labels(record):
        return "Where it jumps, the label changes."
    if is_curved(health):
        return "It is curved, not made of straight pieces."
    straight = health.get("shape") == "piecewise linear" and not record["target"].get("may be sigmoids")
    return "Where a curve bends, a neuron turns on or off." if straight else ""


def versions_sentence(record: Data) -> str:
    """The versions of everything that decides over the last digit."""
    return ", ".join(f"{name} {version}" for name, version in record["versions"].items() if version)

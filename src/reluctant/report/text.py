"""Sentences about an audit for the owner of its target:

the level, the leaks, what else was found, and why a section is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from reluctant.adversarial.decision import HALF_PROBABILITY
from reluctant.adversarial.flip_search import TYPICAL
from reluctant.audit.closeness import Closeness, closeness
from reluctant.audit.owner import told
from reluctant.audit.states import WHY, State, state_of
from reluctant.audit.trained import gives_labels
from reluctant.report.numbers import count, percent, size
from reluctant.results import UNSETTLED, Outcome

__all__ = [
    "Leak",
    "Level",
    "Student",
    "absences",
    "also_found",
    "answers_labels",
    "flip_sentence",
    "has_part",
    "is_curved",
    "is_linked",
    "is_opened",
    "leaks",
    "level_of",
    "line_sentence",
    "of_labels",
    "shape_words",
    "shown_classes",
    "student_of",
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
    return [*sentences, *_span_words(record)]


def _how_it_ended(part: str, record: Data) -> str:
    """As its step says, who knows why; else as an owner reads its outcome, or in the words of the record."""
    whys = [step.get("why") for step in record["steps"] if step["step"] == part and state_of(step) is State.DONE]
    return next((str(why) for why in whys if why), _in_words(record[part], record))


def _in_words(ended: Data, record: Data) -> str:
    outcome = OUTCOMES.get(ended["outcome"])
    return str(ended["text"]) if outcome is None else told(outcome, saturates=is_linked(record))


def _span_words(record: Data) -> list[str]:
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
    return f"{said}{_flip_sizes(record, flip)}.{_taken_from(flip, flipped)}{_beside_random(record, flip)}"


def _not_flipped(flip: Data, record: Data) -> str:
    """How the tries ended, those that ended alike together."""
    ended = [_in_words(one | {"text": flip["text"]}, record) for one in flip["tries"]]
    alike = {said: f"{count(ended.count(said))} of {count(len(ended))} inputs: {said}" for said in ended}
    return ended[0] if len(alike) == 1 else " ".join(alike.values())


def _flip_sizes(record: Data, flip: Data) -> str:
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
    return (
        f" A random network with as many inputs needs about {percent(typical)}: {_beside_typical(smallest / typical)}."
    )


def _beside_typical(ratio: float) -> str:
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
    first, second = (_class_name(names[k] if names and k < len(names) else k) for k in classes)
    return first, second


def _class_name(name: Any) -> str:
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


@dataclass(frozen=True)
class Student:
    """Its shape, the share of labels it gives, and what one label alone would give; the verdict has its error.

    labelled: labels say something about it at all; telling: it surely gives many more than one label alone.
    """

    shape: str
    queries: int
    labels: float
    alone: float
    inputs: int
    labelled: bool
    telling: bool
    cut: bool
    close: Closeness | None = None

    @property
    def same(self) -> str:
        """Equal labels, beside those of the commonest one."""
        return f"gives {percent(self.labels)} of labels (one label alone: {percent(self.alone)})"

    @property
    def sentence(self) -> str:
        """What it gives, and that this is not called a copy."""
        cut = " Its training was cut short." if self.cut else ""
        lacks = f": {self.close.lacks}" if self.close is not None else ""
        enough = "may or may not be" if self.close is not None and self.close.is_open else "is not"
        made = f"Training: a network of {self.shape}, trained on {count(self.queries)} answers,"
        where = f"at {count(self.inputs)} inputs that it was not trained on"
        if not self.labelled:
            return f"{made} {enough} close enough to be called a copy here, by what was measured {where}{lacks}.{cut}"
        return f"{made} {self.same} {where}. That {enough} close enough to be called a copy here{lacks}.{cut}"


def _is_labelled(measured: Data) -> bool:
    """Where there is nothing else to tell labels are told, whatever they say."""
    return measured.get("error") is None or (measured.get("labelled", True) and measured["commonest"] < 1)


def _student_shape(training: Data, target: Data) -> str:
    """Its widths as it was trained: behind a softmax a record has the log-ratios, a class less."""
    *widths, last = training["network"]["widths"]
    evidence = training["evidence"]
    classes = evidence.get("link") == "softmax" and evidence.get("answers") == "probabilities"
    return "-".join(map(str, [*widths, target["outputs"] if classes else last]))


def student_of(record: Data) -> Student | None:
    """The trained network of a record without a copy; None where there is none."""
    training = record.get("training")
    if not training or not training.get("network") or record.get("recovered"):
        return None
    evidence = training["evidence"]
    measured, how = evidence.get("accuracy"), evidence.get("training") or {}
    if not measured or measured.get("agreement") is None:
        return None
    return Student(
        _student_shape(training, record["target"]), training["queries"], measured["agreement"],
        measured["commonest"], measured["points"], _is_labelled(measured), gives_labels(measured),
        bool(how.get("short") or how.get("hurried")), closeness(measured),
    )  # fmt: skip


@dataclass(frozen=True)
class Level:
    """A level in a few words, and its tone."""

    words: str
    tone: str


LEVELS = {
    "exact": Level("Exact copy possible", "bad"),
    "approximate": Level("Close copy possible", "bad"),
    "span": Level("What it looks at is visible", "warn"),
    "nothing": Level("No copy was made", "good"),
    "unknown": Level("Not decided", "calm"),
}


@dataclass(frozen=True)
class Leak:
    """One thing that an interface can leak, and whether it did here."""

    what: str
    state: str
    tone: str


MOST_LABELS = Level("No close copy was made, but most labels can be copied", "warn")
PART_COPIED = Level("Part of it copied, the rest not decided", "warn")


def level_of(record: Data) -> Level:
    """The level of the verdict; one without a copy is no good news while something else leaks."""
    if not is_opened(record):
        return replace(LEVELS["unknown"], words="Not opened")
    if record["verdict"]["level"] == "unknown" and has_part(record):
        return PART_COPIED
    level, student = LEVELS[record["verdict"]["level"]], student_of(record)
    if level.tone == "good" and student is not None and student.telling:
        return MOST_LABELS
    if level == LEVELS["span"] and student is not None and student.telling:
        return replace(level, words=f"{level.words}, and most labels can be copied")
    return replace(level, tone="warn") if level.tone == "good" and record["verdict"]["leaks"] else level


def is_opened(record: Data) -> bool:
    """False where the target could not even be opened: there is nothing to show then."""
    return not any(step["step"] == "open" and state_of(step) is State.FAILED for step in record["steps"])


def has_part(record: Data) -> bool:
    """True if neurons were found and confirmed where there is no copy of the whole network."""
    return bool(record.get("part") and record["part"]["confirmed"])


# What can leak: its name in the verdict, the parts of the record that would have shown it, its words.
LEAKS = (
    ("extractable", ("extraction",), "Exact copy"),
    ("approximable", ("learning", "extraction", "training"), "Close copy"),
    ("span", ("span",), "Directions it looks at"),
    ("flippable", ("flip",), "Flip by one small step"),
)


def leaks(record: Data) -> list[Leak]:
    """Each kind of leak: found, not found, not settled or not tried."""
    return [Leak(words, *_leak_state(record, name, parts)) for name, parts, words in LEAKS]


def _leak_state(record: Data, name: str, parts: tuple[str, ...]) -> tuple[str, str]:
    if name in record["verdict"]["leaks"]:
        return "yes", "bad"
    if name == "extractable" and has_part(record):
        return "a part of it", "warn"
    student = student_of(record)
    if name == "approximable" and student is not None and student.telling:
        return f"trained: {percent(student.labels)} of labels", "warn"
    found = [record[part] for part in parts if record.get(part)]
    if not found:
        return _untried_leak(record, name, parts), "calm"
    if name == "span" and found[0]["ok"]:
        return "all of them", "calm"
    unsettled = name in record["verdict"].get("unsettled", ()) or any(each["outcome"] in UNSETTLED for each in found)
    if name == "flippable" and found[0]["ok"]:
        return ("by a large one so far", "calm") if unsettled else ("by a large one", "good")
    if found[0]["outcome"] == Outcome.FLAT.slug:
        return "no gradient here", "calm"
    return ("not settled", "calm") if unsettled else ("not found", "good")


def _untried_leak(record: Data, name: str, parts: tuple[str, ...]) -> str:
    """Nothing was found: a step that broke off was tried all the same, one that was not reached is another matter.

    What was not tried and yet is settled gives the methods nothing to work with.
    """
    steps = [step for step in record["steps"] if step["step"] in parts]
    states = {state_of(step) for step in steps}
    if states & {State.FAILED, State.STOPPED}:
        return "broken off"
    if State.NOT_BEGUN in states:
        return "not begun"
    return "not tried" if name in record["verdict"].get("unsettled", (name,)) else "no method here"


# A section, the steps that fill it, and what to say before their reasons.
SECTIONS = {
    "recovered": (("open", "extraction", "learning", "training"), "No network was recovered from the answers."),
    "search": (("open", "extraction"), "There is no search for creases to show."),
    "function": (("open", "line", "plane", "errors"), "There is nothing to draw."),
    "defenses": (("open", "defenses"), "No defenses were tried."),
    "flip": (("open", "flip", "linearity"), "No step was tried."),
    "queries": (("open", "health"), "No query reached the target."),
    "truth": (("open", "truth"), "The copy was not compared with true weights."),
    "limits": ((), "No assumptions were recorded."),
    "names": ((), "No findings were recorded."),
    "interface": (("open", "health"), "Nothing is known of the interface."),
    "steps": ((), "No steps were recorded."),
}


NO_COPY = "There is no copy to compare with true weights."
BROKEN_OFF = "The audit was stopped while this was under way."
NOT_DRAWN = "The method that found the copy asks all over input space; there is no search along one line to draw."


def absences(record: Data) -> dict[str, str]:
    """For every section the sentence that stands in it when there is nothing to show."""
    said = " ".join(also_found(record))  # stands in the first section anyway
    found = {
        name: _stop_words(record, steps) or _reasons_of(record, steps, first, "")
        for name, (steps, first) in SECTIONS.items()
    }
    steps, first = SECTIONS["recovered"]
    if record.get("recovered"):
        found["search"] = NOT_DRAWN
    elif not has_part(record):
        found["truth"] = NO_COPY
    first, stopped = _part_words(record) or first, _stop_words(record, steps)
    return found | {"recovered": f"{first} {stopped}" if stopped else _reasons_of(record, steps, first, said)}


def _stop_words(record: Data, steps: tuple[str, ...]) -> str:
    """What a stop from outside did to these steps, which is all there is to say of them."""
    states = [state_of(step) for step in record["steps"] if step["step"] in steps]
    return BROKEN_OFF if State.STOPPED in states else WHY[State.NOT_BEGUN] if State.NOT_BEGUN in states else ""


def _part_words(record: Data) -> str:
    """What there is of the network, where there is no whole one."""
    if not has_part(record):
        return ""
    part = record["part"]
    return (
        f"No whole network was recovered, but a part: {count(part['neurons'])} neurons of its first layer. The target "
        f"was seen to bend at {count(part['confirmed'])} of them ({count(part['weights'])} weights and biases)."
    )


def _reasons_of(record: Data, steps: tuple[str, ...], first: str, said: str) -> str:
    """Reasons of the steps that did not run; of those that ran without result, what they say themselves."""
    named = [step for step in record["steps"] if step["step"] in steps and step.get("why")]
    tried = [step for step in named if step["why"] not in said]
    reasons = [str(step["why"]) for step in tried if state_of(step) is not State.DONE]
    reasons = reasons or [str(step["why"]) for step in tried]
    return " ".join([first, *dict.fromkeys(reasons)])

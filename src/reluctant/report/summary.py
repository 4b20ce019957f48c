"""The first screen of a report: how bad it is, what leaks, the three figures that matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reluctant.audit.states import State, state_of
from reluctant.defenses.words import defense_words
from reluctant.report.defenses import is_close, is_open, trained_note
from reluctant.report.findings import is_measured, is_trained
from reluctant.report.sentences import is_linked, shape_words
from reluctant.report.student import student_of
from reluctant.report.words import count, duration, money, percent, size
from reluctant.results import UNSETTLED, Outcome

__all__ = ["Figure", "Leak", "Level", "has_part", "is_opened", "leaks", "level_of", "three_figures"]

Data = Mapping[str, Any]
SHOWN = 3
DEFENSE = "Cheapest defense that stopped exact recovery"
UNTRIED = "training a copy on the answers was not tried, and may succeed"


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


@dataclass(frozen=True)
class Figure:
    """A number with its name and a note."""

    name: str
    value: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.value}" + (f" ({self.note})" if self.note else "")


MOST_LABELS = Level("No close copy was made, but most labels can be copied", "warn")
PART = Level("Part of it copied, the rest not decided", "warn")


def level_of(record: Data) -> Level:
    """The level of the verdict; one without a copy is no good news while something else leaks."""
    if not is_opened(record):
        return replace(LEVELS["unknown"], words="Not opened")
    if record["verdict"]["level"] == "unknown" and has_part(record):
        return PART
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
    return [Leak(words, *_state(record, name, parts)) for name, parts, words in LEAKS]


def _state(record: Data, name: str, parts: tuple[str, ...]) -> tuple[str, str]:
    if name in record["verdict"]["leaks"]:
        return "yes", "bad"
    if name == "extractable" and has_part(record):
        return "a part of it", "warn"
    student = student_of(record)
    if name == "approximable" and student is not None and student.telling:
        return f"trained: {percent(student.labels)} of labels", "warn"
    found = [record[part] for part in parts if record.get(part)]
    if not found:
        return _untried(record, name, parts), "calm"
    if name == "span" and found[0]["ok"]:
        return "all of them", "calm"
    unsettled = name in record["verdict"].get("unsettled", ()) or any(each["outcome"] in UNSETTLED for each in found)
    if name == "flippable" and found[0]["ok"]:
        return ("by a large one so far", "calm") if unsettled else ("by a large one", "good")
    if found[0]["outcome"] == Outcome.FLAT.slug:
        return "no gradient here", "calm"
    return ("not settled", "calm") if unsettled else ("not found", "good")


def _untried(record: Data, name: str, parts: tuple[str, ...]) -> str:
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


def three_figures(record: Data) -> list[Figure]:
    """The three that say most about this target; there are always three."""
    return [figure for _, figure in zip(range(SHOWN), _figures(record), strict=False)]


def _figures(record: Data) -> Iterator[Figure]:
    for make in (_copied, _part, _trained, _queries, _cheapest, _span, _flip, _digits, _steps, _time):
        figure = make(record)
        if figure is not None:
            yield figure


def _copied(record: Data) -> Figure | None:
    recovered = record.get("recovered")
    if recovered is None:
        return None
    layers = " → ".join([*map(str, recovered["widths"]), *_link(recovered)])
    if is_trained(recovered):
        return _of_its_own(record, recovered, layers)
    doubt = "" if recovered["verified"] else ", measured" if is_measured(recovered) else ", not verified"
    name = "Parameters of a copy" if doubt else "Parameters copied"
    return Figure(name, count(recovered["parameters"]), layers + _off(recovered) + doubt)


def _of_its_own(record: Data, recovered: Data, layers: str) -> Figure:
    """A trained network has none of the target's parameters: what counts is how far off it is, or its labels."""
    error, which = recovered["error"].get("typical"), f"{layers}: a network of its own, none of the model's parameters"
    if error is not None:
        return Figure("Error of a trained copy", size(error), f"root mean square, of the answers' deviation; {which}")
    measured = (record.get("training") or {}).get("evidence", {}).get("accuracy") or {}
    return Figure("The same label from a trained copy", percent(measured.get("agreement")), which)


def _part(record: Data) -> Figure | None:
    if not has_part(record):
        return None
    part = record["part"]
    found = f"of {count(part['neurons'])} found, " if part["confirmed"] < part["neurons"] else ""
    note = f"{found}confirmed at their creases: {count(part['weights'])} weights and biases"
    return Figure("Neurons of the first layer copied", count(part["confirmed"]), note)


def _trained(record: Data) -> Figure | None:
    student = student_of(record)
    if student is None or not student.telling:
        return None
    inputs = f"at {count(student.inputs)} inputs that it was not trained on"
    note = f"{student.shape}; one label alone: {percent(student.alone)}; {inputs}"
    return Figure("The same label from a trained network", percent(student.labels), note)


def _link(recovered: Data) -> list[str]:
    return [name for name in [recovered.get("link", "identity")] if name != "identity"]


def _off(recovered: Data) -> str:
    """The largest error seen, as the verdict has it; where none was measured one by one, the typical one."""
    error = recovered.get("error") or {}
    if error.get("largest") is not None:
        inputs = error.get("inputs")
        return f", largest error seen {size(error['largest'])}" + (f" at {count(inputs)} inputs" if inputs else "")
    return f", error {size(error['typical'])} rms" if error.get("typical") is not None else ""


def _queries(record: Data) -> Figure | None:
    recovered = record.get("recovered")
    if recovered is None:
        student = student_of(record)
        which = "closer " if student is not None and student.telling else "whole " if has_part(record) else ""
        return Figure("Queries spent", count(record["queries"]["total"]), f"without a {which}copy of the network")
    per = None if is_trained(recovered) else recovered.get("queries per parameter")
    notes = [f"{size(per)} for each parameter"] if per is not None else []
    cost = recovered.get("cost")
    notes += [f"at a cost of {money(cost, _currency(record))}"] if cost is not None else []
    seconds = recovered.get("seconds")
    notes += [f"{duration(seconds)} at the rate given"] if seconds is not None else []
    return Figure("Queries it took", count(recovered["queries"]), ", ".join(notes))


def _currency(record: Data) -> str:
    return str((record.get("price") or {}).get("currency") or "")


def _cheapest(record: Data) -> Figure | None:
    defenses = record.get("defenses")
    if not defenses or not any(row["rebuilt"] and row["rebuilt"]["ok"] for row in defenses["rows"]):
        return None  # nothing to defend against that was seen here
    name = defenses.get("cheapest")
    if name is None:
        return _no_defense([row for row in defenses["rows"] if row["defense"] != "none"])
    row = next((row for row in defenses["rows"] if row["defense"] == name), None)
    kept, rebuilt = ((row or {}).get(part) or {} for part in ("honest", "rebuilt"))
    note = f"keeps {percent(kept['labels kept'])} of labels" if kept.get("labels kept") is not None else ""
    if is_close(rebuilt):
        note = f"{note}; a close copy was made all the same, not verified".removeprefix("; ")
    return Figure(DEFENSE, defense_words(name), f"{note}; {trained_note(row or {}) or UNTRIED}".removeprefix("; "))


def _no_defense(rows: Sequence[Data]) -> Figure:
    """None that was seen to help; one that is not decided may."""
    tried, undecided = sum(bool(row["rebuilt"]) for row in rows), sum(is_open(row) for row in rows)
    if undecided:
        return Figure(DEFENSE, "not decided", f"for {undecided} of {tried} that were tried")
    return Figure(DEFENSE, "none", f"of {tried} that were tried")


def _span(record: Data) -> Figure | None:
    span = record.get("span")
    if not span or not span["ok"]:
        return None
    others = span["inputs"] - span["rank"]
    note = f"the other {count(others)} do not matter to it" if others > 1 else "the other one does not matter to it"
    note = note if others else "every direction counts"
    return Figure("Directions it looks at", f"{count(span['rank'])} of {count(span['inputs'])}", note)


def _flip(record: Data) -> Figure | None:
    flip = record.get("flip")
    if not flip or not flip["ok"] or flip.get("relative size") is None:
        return None
    smallest, middle = flip["relative size"], flip.get("median relative size")
    if middle is None:
        return Figure("Change that flips an answer", percent(smallest), "of the input's norm, the smallest seen")
    tried = f"median of {count(sum(one['ok'] for one in flip['tries']))}, the smallest {percent(smallest)}"
    return Figure("Change that flips an answer", percent(middle), f"of the input's norm, in one step; {tried}")


def _digits(record: Data) -> Figure | None:
    """What one answer tells; digits say nothing of answers that are all alike, or no numbers."""
    health, served = record.get("health"), record.get("served")
    if not health:
        return None
    if served and is_linked(record):
        return _digits_of(served, f"of probabilities, read through their {record['target']['link']}")
    shape = health["shape"]
    if shape == "unclear" and not health.get("nonfinite"):
        return _digits_of(health, "too coarse or noisy against their spread to see any structure")
    if shape in TELLING_LITTLE:
        return Figure("What an answer gives", *TELLING_LITTLE[shape])
    if shape == "piecewise constant":
        steps = "a few levels" if health.get("answers") == "values" else "a label"
        return Figure("What an answer gives", steps, "no change under small steps")
    told = shape_words(record, health)
    return _digits_of(health, f"{shape} at small scale" if told == shape else str(told))


def _digits_of(health: Data, note: str) -> Figure:
    """Fresh noise says more than the digits that it fills."""
    if not health.get("deterministic", True):
        return Figure("Noise of an answer", size(health.get("fresh_noise")), f"fresh each time; {note}")
    decimals = health.get("decimals")
    value = str(health["number_format"]) if decimals is None else f"{decimals} decimals"
    return Figure("Digits in an answer", value, note)


# Shapes of answers whose digits do not matter, and what they give instead.
TELLING_LITTLE = {
    "constant": ("nothing new", "it was the same wherever a first look asked"),
    "unclear": ("nothing clear", "NaN or inf"),
}


def _steps(record: Data) -> Figure:
    done = sum(state_of(step) is State.DONE for step in record["steps"])
    return Figure("Steps done", f"{done} of {len(record['steps'])}", "see the steps for why")


def _time(record: Data) -> Figure:
    return Figure("Time", duration(sum(step.get("seconds") or 0.0 for step in record["steps"])), "for all steps")

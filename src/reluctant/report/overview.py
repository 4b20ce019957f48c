"""The three figures of a report's first screen: those that say most about a target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reluctant.audit.states import State, state_of
from reluctant.defenses.registry import defense_words
from reluctant.interface.diagnoses import LABELS_OR_ROUNDED, STEPWISE
from reluctant.interface.digits import rounded_to
from reluctant.oracles.links import noun_behind
from reluctant.report.numbers import count, duration, money, percent, size
from reluctant.report.tables import is_close, is_measured, is_open, is_trained, trained_note
from reluctant.report.text import has_part, is_linked, of_labels, shape_words, student_of

__all__ = ["Figure", "three_figures"]

Data = Mapping[str, Any]
SHOWN = 3
DEFENSE = "Cheapest defense that stopped exact recovery"
UNTRIED = "training a copy on the answers was not tried, and may succeed"


@dataclass(frozen=True)
class Figure:
    """A number with its name and a note."""

    name: str
    value: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.value}" + (f" ({self.note})" if self.note else "")


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
    note = "its labels were seen to depend on no others" if of_labels(span) else note
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
        link = record["target"]["link"]
        return _digits_of(served, f"of {noun_behind(link)}, read through their {link}")
    shape = health["shape"]
    if shape == "unclear" and not health.get("nonfinite"):
        return _digits_of(health, "too coarse or noisy against their spread to see any structure")
    if shape in TELLING_LITTLE:
        return Figure("What an answer gives", *TELLING_LITTLE[shape])
    if shape == "piecewise constant":
        like = str((record.get("target") or {}).get("look like"))
        label = "a whole number" if like == LABELS_OR_ROUNDED else "a level" if like.endswith(STEPWISE) else "a label"
        steps = "a few levels" if health.get("answers") == "values" else label
        return Figure("What an answer gives", steps, "no change under small steps")
    told = shape_words(record, health)
    return _digits_of(health, f"{shape} at small scale" if told == shape else str(told))


def _digits_of(health: Data, note: str) -> Figure:
    """Fresh noise says more than the digits that it fills."""
    if not health.get("deterministic", True):
        return Figure("Noise of an answer", size(health.get("fresh_noise")), f"fresh each time; {note}")
    decimals = health.get("decimals")
    value = str(health["number_format"]) if decimals is None else rounded_to(decimals).removeprefix("rounded to ")
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

"""Defenses in words, and the table of what each one costs and stops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reluctant.audit.closeness import is_close as is_near
from reluctant.audit.leak import NO_METHOD
from reluctant.audit.sweep import TRAINED
from reluctant.audit.trained import alone_words, is_made, trained_words
from reluctant.defenses.registry import defense_words
from reluctant.report.sentences import answers_labels
from reluctant.report.tables import Cell, Column, Table
from reluctant.report.words import UNKNOWN, count, percent, powers, size
from reluctant.results import Outcome

__all__ = ["defense_table", "is_close", "is_open", "label_alone", "one_label", "stand_in", "trained_note"]

Data = Mapping[str, Any]

COLUMNS = (
    Column("defense"),
    Column("users' error", numeric=True),
    Column("labels kept", numeric=True),
    Column("directions", numeric=True),
    Column("copy"),
    Column("copy's error", numeric=True),
    Column("queries", numeric=True),
    Column("trained copy's error", numeric=True),
    Column("its labels", numeric=True),
)
EXACT = 1e-8  # relative error of a copy that has half the digits of float64 or more


def defense_table(defenses: Data) -> Table:
    """A row for each defense: what honest users lose, what one who asks still gets."""
    budget = defenses.get("budget")
    allowed = f" with up to {count(budget)} rows for each method" if budget else ""
    caption = f"Each defense tried on {defenses['on']}{allowed}; the model itself was not asked"
    return Table(caption, COLUMNS, [_row(row) for row in defenses["rows"]])


def stand_in(record: Data) -> str:
    """What errors are told of where a trained network stands for the model, whose own error is not among them."""
    if (record.get("defenses") or {}).get("on") != TRAINED:
        return ""
    off = ((record.get("recovered") or {}).get("error") or {}).get("typical")
    own = "" if off is None else f", from which that network is off by {size(off)} of the answers' deviation itself"
    held = "errors and labels are those of copies held against it, and not against the model"
    return f"The network that was trained on the answers stands for the model here: {held}{own}."


def one_label(record: Data) -> str:
    """What the label of one output is; empty where there are several, or labels."""
    target = record["target"]
    if target.get("outputs") != 1 or answers_labels(record):
        return ""
    linked = target.get("link") == "sigmoid" or target.get("kind") == "probabilities"
    return f"The label of one output: whether it is {'above one half' if linked else 'positive'}."


def _row(row: Data) -> list[Cell]:
    honest, span, rebuilt = (row.get(part) or {} for part in ("honest", "span", "rebuilt"))
    return [
        Cell(defense_words(row["defense"])),
        _users(honest.get("error rms")),
        _number(honest.get("labels kept"), percent),
        _span(span),
        _copy(row),
        _number(rebuilt.get("error"), size),
        _number(rebuilt.get("queries"), count),
        *_trained(row.get("trained") or {}),
    ]


def _users(error: float | None) -> Cell:
    """Errors are told between answers of the same kind; a label or a probability is another answer than a value."""
    return Cell("other answers", "") if error is None else Cell(size(error), error)


def _trained(trained: Data) -> list[Cell]:
    """Error and equal labels of a network trained on the answers."""
    error, labels = trained.get("error"), trained.get("labels kept")
    tone = "bad" if is_close(trained) else ""
    return [
        Cell(UNKNOWN, "") if error is None else Cell(size(error), error, tone),
        Cell(UNKNOWN, "") if labels is None else Cell(percent(labels) + _beside(trained), labels, tone),
    ]


def _beside(trained: Data) -> str:
    """How far the training went."""
    cut = ", cut short" if trained.get("cut short") else ""
    return f"{', as without it' if trained.get('as undefended') else ''}{cut}"


def label_alone(defenses: Data | None) -> str:
    """What to read beside the labels of all trained networks: that of one label alone, once for all rows."""
    students = (row.get("trained") or {} for row in (defenses or {}).get("rows", ()))
    return next((words for student in students if (words := alone_words(student))), "")


def trained_note(row: Data) -> str:
    """What training on the defended answers reaches, in a few words; empty where it was not tried."""
    student = row.get("trained") or {}
    if not is_made(student):
        return ""
    alone = alone_words(student)
    return f"a network trained on its answers {powers(trained_words(student))}{f' ({alone})' if alone else ''}"


def _number(value: Any, words: Any) -> Cell:
    return Cell(UNKNOWN, "") if value is None else Cell(words(value), value)


def _span(span: Data) -> Cell:
    if not span:
        return Cell(UNKNOWN, "")
    return Cell(count(span["rank"]), span["rank"]) if span["ok"] else Cell("not clear", -1)


def is_close(rebuilt: Data) -> bool:
    """True if a copy was measured to be close, verified or not."""
    return is_near(rebuilt.get("error"))


def is_open(row: Data) -> bool:
    """True if a copy was tried and not made, and that says nothing: what was tried did not come to its end."""
    rebuilt = row["rebuilt"]
    return bool(rebuilt) and row["stopped"] is None and not (rebuilt["ok"] or is_close(rebuilt))


def _copy(row: Data) -> Cell:
    rebuilt = row["rebuilt"]
    if "labels" in row["defense"] and (not rebuilt or rebuilt["outcome"] == Outcome.PIECEWISE_CONSTANT.slug):
        return Cell(NO_METHOD, "6", "calm")
    if not rebuilt:
        return Cell("not tried", "6", "calm")
    if is_open(row):
        return Cell("not decided", "5", "calm")
    if rebuilt["ok"]:
        return _good_copy(rebuilt)
    if is_close(rebuilt):
        return Cell("close, not verified", "3", "warn")
    return Cell("none by these methods", "4", "calm")


def _good_copy(rebuilt: Data) -> Cell:
    """Exact; else to all the digits that answers give, which an owner calls exact too; else close, or not even that."""
    error = rebuilt.get("error")
    if error is not None and not is_near(error):
        return Cell("rough", "3", "warn")
    if rebuilt["method"] != "extract":
        return Cell("close", "2", "bad")
    return Cell("exact", "0", "bad") if error is not None and error <= EXACT else Cell("every digit given", "1", "bad")

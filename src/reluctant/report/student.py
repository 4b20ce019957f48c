"""A network trained on the answers that is not close enough to be called a copy, and is no good news either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reluctant.audit.closeness import Closeness, closeness
from reluctant.audit.trained import gives_labels
from reluctant.report.words import count, percent

__all__ = ["Student", "student_of"]

Data = Mapping[str, Any]


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


def _labelled(measured: Data) -> bool:
    """Where there is nothing else to tell labels are told, whatever they say."""
    return measured.get("error") is None or (measured.get("labelled", True) and measured["commonest"] < 1)


def _shape(training: Data, target: Data) -> str:
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
        _shape(training, record["target"]), training["queries"], measured["agreement"],
        measured["commonest"], measured["points"], _labelled(measured), gives_labels(measured),
        bool(how.get("short") or how.get("hurried")), closeness(measured),
    )  # fmt: skip

"""Networks trained on defended answers: the first one, whose shape is that of all, and what they amount to in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

from reluctant.audit.closeness import CLOSE, error_words, is_close
from reluctant.audit.leak import NO_DEFENSE, Leak, Rebuilt
from reluctant.defenses.registry import defense_words
from reluctant.oracles import Oracle
from reluctant.percentages import percentage
from reluctant.results import UNSETTLED

__all__ = [
    "MODEL",
    "alone_words",
    "first_student",
    "gives_labels",
    "hidden_of",
    "is_made",
    "trained_sentence",
    "trained_words",
]

Data = Mapping[str, Any]

TELLING = 0.5  # of the labels that the commonest one alone gets wrong: who gives so many of them has learned something
MOST_NAMED = 2  # in a sentence, of defenses that leave different copies
MODEL = "the model"
NOT_TRAINED = "Training a copy on the answers was not tried, and may well succeed."


def first_student(
    copy: Oracle, try_one: Callable[..., Leak], undefended: Leak | None, seconds: float | None
) -> Rebuilt | None:
    """The one without a defense, trained before all others; inside the span, if that is known to be narrow."""
    span = None if undefended is None else undefended.span
    try:
        return try_one(deepcopy(copy), (), methods=("train",), span=span, seconds=seconds).trained
    except Exception:  # the row of this defense will say why
        return None


def hidden_of(student: Rebuilt | None) -> Sequence[int] | None:
    """Its hidden widths, None where there is none."""
    training = None if student is None else student.result.evidence.get("training")
    return None if training is None else tuple(training.hidden)


def gives_labels(measured: Data) -> bool:
    """True if a network surely gives many more labels than one label alone.

    measured: as `HeldOut.to_dict` has it; few inputs leave much to chance, and one number has no label.
    """
    alone, differing = measured["commonest"], measured.get("differing")
    surely = measured["agreement"] if differing is None else 1 - differing
    return bool(measured.get("labelled", True) and alone < 1 and surely - alone >= TELLING * (1 - alone))


def is_made(student: Data) -> bool:
    """True if there is such a network: it has an error, or labels."""
    return student.get("error") is not None or student.get("labels kept") is not None


def trained_words(student: Data, *, sampled: bool = True, model: str = MODEL) -> str:
    """How far off it is, how often it gives the same label, and whether it might have done better.

    student: as `Leak.student` has it, and the record; sampled: the inputs are random ones; model: what it is held
    against.
    """
    if not is_made(student):
        open_ = student["outcome"] in UNSETTLED
        return "was not made: rows or time ran out" if open_ else f"was not made ({student['outcome']})"
    error, labels, drawn = (student.get(part) for part in ("error", "labels kept", "held out labels"))
    off = "" if error is None else f"is within {error_words(error)} of {model}"
    beside = "" if sampled or error is not None or drawn is None else f" ({percentage(drawn)} of random ones)"
    same = "" if labels is None else f"gives the same label for {percentage(labels)} of the inputs{beside}"
    cut = "; its training was cut short" if student.get("cut short") else ""
    reused = ", as without the defense, whose answers hardly differ" if student.get("as undefended") else ""
    return f"{' and '.join(part for part in (off, same) if part)}{reused}{cut}"


def alone_words(student: Data) -> str:
    """What to read beside equal labels: the share of the commonest one; empty where they are not told."""
    alone = student.get("commonest label")
    return "" if alone is None or student.get("labels kept") is None else f"one label alone: {percentage(alone)}"


def trained_sentence(rows: Sequence[Leak], cheapest: Leak | None, *, sampled: bool = False, model: str = MODEL) -> str:
    """What training reaches behind the cheapest defense, and behind all of them."""
    tried = [row for row in rows if row.defense != NO_DEFENSE]
    behind = [(defense_words(row.defense), row.student) for row in tried if row.student is not None]
    if not behind:
        return NOT_TRAINED
    words = partial(trained_words, sampled=sampled, model=model)
    first = "" if cheapest is None or cheapest.student is None else f"{_despite(cheapest.student, words)} "
    far = [(name, words(student)) for name, student in behind if not is_close(student["error"])]
    close = f"{len(behind) - len(far)} of {len(behind)} defenses" if len(far) < len(behind) else "none of the defenses"
    alike = {said: ", ".join(name for name, other in far if other == said) for _, said in far}
    told = "".join(f"; behind {names} it {said}" for said, names in list(alike.items())[:MOST_NAMED])
    rest = "; the table has the others" if len(alike) > MOST_NAMED else ""
    alone = next((f" ({said}.)" for _, student in behind if (said := alone_words(student).capitalize())), "")
    return f"{first}A trained copy is within {CLOSE:.0%} of {model} behind {close}{told}{rest}.{alone}"


def _despite(student: Data, words: Callable[[Data], str]) -> str:
    stops = "That does not stop training" if is_close(student["error"]) else "Of training it leaves this"
    return f"{stops}: a network trained on {student['queries']:,} of its answers {words(student)}."

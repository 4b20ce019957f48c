"""Networks trained on defended answers: the first one, whose shape is that of all, and what they amount to in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy

from reluctant.audit.leak import CLOSE, NO_DEFENSE, Leak, Rebuilt, is_close
from reluctant.defenses.words import defense_words
from reluctant.oracles import Oracle

__all__ = ["first_student", "hidden_of", "trained_sentence", "trained_words"]

MOST_NAMED = 2  # in a sentence, of defenses that leave different copies
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


def trained_words(trained: Rebuilt) -> str:
    """How far off it is, how often it gives the same label, and whether it might have done better."""
    if trained.agreement is None:
        ended = trained.result.outcome
        return "was not made: rows or time ran out" if not ended.settles else f"was not made ({ended.slug})"
    off = "" if trained.error is None else f"is within {trained.error:.1e} of the model and "
    measured = trained.result.evidence.get("accuracy")
    alone = [] if trained.commonest is None else [f"one label alone: {trained.commonest:.1%}"]
    drawn = [] if trained.error is not None or measured is None else [f"{measured.agreement:.1%} of random ones"]
    beside = f" ({'; '.join([*alone, *drawn])})" if alone or drawn else ""
    cut = "; its training was cut short" if trained.cut else ""
    reused = ", as without the defense, whose answers hardly differ" if trained.reused else ""
    return f"{off}gives the same label for {trained.agreement:.1%} of the inputs{beside}{reused}{cut}"


def trained_sentence(rows: Sequence[Leak], cheapest: Leak | None) -> str:
    """What training reaches behind the cheapest defense, and behind all of them."""
    tried = [row for row in rows if row.defense != NO_DEFENSE]
    behind = [(defense_words(row.defense), row.trained) for row in tried if row.trained is not None]
    if not behind:
        return NOT_TRAINED
    first = "" if cheapest is None or cheapest.trained is None else f"{_despite(cheapest.trained)} "
    far = [(name, trained_words(trained)) for name, trained in behind if not is_close(trained.error)]
    close = f"{len(behind) - len(far)} of {len(behind)} defenses" if len(far) < len(behind) else "none of the defenses"
    alike = {words: ", ".join(name for name, said in far if said == words) for _, words in far}
    told = "".join(f"; behind {names} it {words}" for words, names in list(alike.items())[:MOST_NAMED])
    rest = "; the table has the others" if len(alike) > MOST_NAMED else ""
    return f"{first}A trained copy is within {CLOSE:.0%} of the model behind {close}{told}{rest}."


def _despite(trained: Rebuilt) -> str:
    stops = "That does not stop training" if is_close(trained.error) else "Of training it leaves this"
    return f"{stops}: a network trained on {trained.result.queries:,} of its answers {trained_words(trained)}."

"""The verdict: what leaks, in one sentence, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reluctant.audit.endings import copy_reasons
from reluctant.audit.known import Known
from reluctant.audit.leaks import LEAKS, LEVELS, NEEDS, found_leaks, open_leaks
from reluctant.audit.reasons import elsewhere, no_exact_one, why_not
from reluctant.audit.record import Confidence, LeakKind, Level, VerdictFacts
from reluctant.audit.stopped import is_stopped
from reluctant.audit.taken import copied, part_taken, span_confidence, trained_on, verified, where

__all__ = ["LEAKS", "NEEDS", "Verdict", "judge", "judge_facts"]

RAN_OUT = "Exact extraction ran out of rows."
OF_THE_PART = "High for the part: the target was seen to bend on its creases, and not beside them. For the rest:"
OF_THE_STUDENT = "Measured for the trained network, at inputs that it had not seen. For the rest:"
UNSETTLED = "None: the audit could not look far enough. Mend what stopped it, or raise the budget, and run it again."
CUT_SHORT = "None: the audit was stopped before it could look far enough."
NO_PROOF = (
    "Low: these methods did not succeed with this budget; that is no proof that others would not, or with more queries."
)


@dataclass(frozen=True)
class Verdict:
    """How much leaks: level "exact", "approximate", "span", "nothing" or "unknown".

    leaks: those that were found; unsettled: those that were neither found nor looked for to the end.
    """

    level: str
    sentence: str
    confidence: str
    leaks: tuple[str, ...]
    unsettled: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "level": self.level,
            "sentence": self.sentence,
            "confidence": self.confidence,
            "leaks": list(self.leaks),
            "unsettled": list(self.unsettled),
        }


def judge(known: Known) -> Verdict:
    """From what the steps found."""
    leaks = found_leaks(known)
    level = next((level for leak, level in LEVELS.items() if leak in leaks), None)
    unsettled = open_leaks(known)
    if level is None:
        level = "unknown" if known.health is None or set(unsettled) & set(LEVELS) else "nothing"
    return Verdict(level, _sentence(known, level), _confidence(known, level), leaks, unsettled)


def judge_facts(known: Known) -> VerdictFacts:
    """The same as facts: what leaks, what that rests on, why there is not more."""
    found = judge(known)
    level = Level(found.level)
    leaks, unsettled = (tuple(map(LeakKind, names)) for names in (found.leaks, found.unsettled))
    return VerdictFacts(level, _rests_on(known, level), leaks, unsettled, copy_reasons(known, level))


def _rests_on(known: Known, level: Level) -> Confidence:
    if level in (Level.EXACT, Level.APPROXIMATE):
        assert known.copy is not None
        checked = known.copy.evidence.get("verification")
        if checked is None:
            return Confidence.MEASURED
        return Confidence.VERIFIED if checked.ok else Confidence.DISPUTED
    if "open" in known.said:
        return Confidence.NOT_OPENED
    if level is Level.SPAN:
        assert known.span is not None
        return Confidence.LABEL_DIRECTIONS if "labels" in known.span.evidence else Confidence.DIRECTIONS
    if level is Level.UNKNOWN:
        return Confidence.STOPPED if is_stopped(known) else Confidence.UNSETTLED
    return Confidence.NO_PROOF


def _sentence(known: Known, level: str) -> str:
    if level == "exact":
        return copied(known, "The whole network can be taken")
    if level == "approximate":
        trained = known.copy is known.training
        said = copied(known, f"A close copy of the network can be {'trained on its answers' if trained else 'taken'}")
        more = [*([f"{RAN_OUT} {known.needed}"] if known.needed else []), *no_exact_one(known), *elsewhere(known)]
        return " ".join([said, *more])
    if level == "span":
        return _span_sentence(known)
    if "open" in known.said:
        return "The target could not be opened: nothing is known of it."
    known_of_it = f"{part_taken(known)}{trained_on(known)}"
    said = "No closer copy was made." if trained_on(known) else "No copy of the network was made."
    if level == "unknown":
        said = f"What {'else ' if known_of_it else ''}can be taken could not be settled."
    return f"{known_of_it}{said} {why_not(known)}".strip() + where(known)


def _span_sentence(known: Known) -> str:
    assert known.span is not None
    trained = trained_on(known)
    no_copy = f". {trained}No closer copy was made." if trained else "; no copy of the network was made."
    seen = "labels were seen to depend on" if "labels" in known.span.evidence else "the network looks at"
    said = (
        f"The {known.span.rank} of {known.span.subspace.dim} directions that {seen} can be taken in "
        f"{known.span.queries:,} queries{no_copy} {part_taken(known)}{why_not(known)}"
    )
    return said.strip() + where(known)


def _confidence(known: Known, level: str) -> str:
    if level in ("exact", "approximate"):
        return verified(known)
    if "open" in known.said:
        return known.said["open"]
    if level == "span":
        return span_confidence(known)
    if level == "unknown":
        unsettled = CUT_SHORT if is_stopped(known) else UNSETTLED
        first = OF_THE_PART if part_taken(known) else OF_THE_STUDENT if trained_on(known) else ""
        return f"{first} {unsettled}".strip()
    return NO_PROOF

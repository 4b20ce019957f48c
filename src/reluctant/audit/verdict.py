"""The verdict: what leaks, in one sentence, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reluctant.adversarial import Flip
from reluctant.audit.known import Known
from reluctant.audit.recovered import accuracy_of, best_run
from reluctant.results import Outcome

__all__ = ["LEAKS", "SMALL_FLIP", "Verdict", "judge", "smallest_flip"]

LEAKS = ("extractable", "approximable", "span", "flippable")
SMALL_FLIP = 0.1  # of the input's norm: a step this small that flips the target counts as a leak
UNFINISHED = (Outcome.OUT_OF_BUDGET, Outcome.TARGET_FAILED)


@dataclass(frozen=True)
class Verdict:
    """How much leaks: level "exact", "approximate", "span", "nothing" or "unknown"."""

    level: str
    sentence: str
    confidence: str
    leaks: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "level": self.level,
            "sentence": self.sentence,
            "confidence": self.confidence,
            "leaks": list(self.leaks),
        }


def judge(known: Known) -> Verdict:
    """From what the steps found."""
    leaks = tuple(name for name, leaking in zip(LEAKS, _leaking(known), strict=True) if leaking)
    if "extractable" in leaks:
        return Verdict("exact", _copied(known, "The whole network can be taken"), _verified(known), leaks)
    if "approximable" in leaks:
        said = _copied(known, "A close copy of the network can be taken")
        return Verdict("approximate", said, _verified(known), leaks)
    if "span" in leaks:
        return Verdict("span", _span_sentence(known), _span_confidence(known), leaks)
    if known.health is None or any(run is not None and run.outcome in UNFINISHED for _, run in known.runs):
        said = f"What can be taken could not be settled. {_why_not(known)}"
        return Verdict("unknown", said.strip(), UNSETTLED, leaks)
    return Verdict("nothing", f"No copy of the network was made. {_why_not(known)}".strip(), NO_PROOF, leaks)


UNSETTLED = "None: the audit could not look far enough. Mend what stopped it, or raise the budget, and run it again."
NO_PROOF = (
    "Low: these methods did not succeed with this budget; that is no proof that others would not, or with more queries."
)


def _leaking(known: Known) -> tuple[bool, ...]:
    copy, flip = best_run(known), smallest_flip(known)
    return (
        copy is not None and copy.outcome is Outcome.RECOVERED,
        copy is not None,
        known.span is not None and known.span.outcome is Outcome.SPAN_RECOVERED,
        flip is not None and flip.ok and flip.relative_size <= SMALL_FLIP,
    )


def smallest_flip(known: Known) -> Flip | None:
    """The flip with the smallest step; one that failed if none succeeded."""
    flips = [flip for flip in known.flips if flip.ok] or list(known.flips)
    return min(flips, key=lambda flip: flip.relative_size if flip.ok else 0.0, default=None)


def _copied(known: Known, can_be_taken: str) -> str:
    run = best_run(known)
    assert run is not None
    assert run.network is not None
    network, accuracy = run.network, accuracy_of(run)
    return (
        f"{can_be_taken} through this interface: {'-'.join(map(str, network.widths))}, {network.parameters:,} "
        f"parameters, in {run.queries:,} queries, {accuracy['words']}."
    )


def _verified(known: Known) -> str:
    run = best_run(known)
    assert run is not None
    said = [run.evidence.get(name) for name in ("precision", "verification", "accuracy", "risk")]
    return " ".join(str(part) for part in said if part) or "Measured, not verified."


def _span_sentence(known: Known) -> str:
    assert known.span is not None
    return (
        f"The {known.span.rank} of {known.span.subspace.dim} directions that the network looks at can be taken in "
        f"{known.span.queries:,} queries; no copy of the network was made. {_why_not(known)}"
    )


def _span_confidence(known: Known) -> str:
    assert known.span is not None
    return (
        f"Margin of the rank {known.span.margin:.1e} (far below 1 is clear); long steps along all other directions "
        "changed nothing. That no copy was made is no proof that none can be."
    )


def _why_not(known: Known) -> str:
    """Why there is no copy."""
    if known.health is None:
        return known.said.get("open") or known.said.get("health", "")
    runs = {"extraction": known.extraction, "learning": known.learning}
    said = [
        f"The time for {name} ran out." if name in known.timed_out else run.outcome.happened
        for name, run in runs.items()
        if run is not None
    ]
    return " ".join(dict.fromkeys(said)) or known.said.get("extraction", "")

"""The leaks that an audit looks for: which were found, and which steps have to settle each."""

from __future__ import annotations

from collections.abc import Mapping

from reluctant.adversarial import Flip
from reluctant.audit.known import Known
from reluctant.results import Outcome

__all__ = ["LEAKS", "LEVELS", "NEEDS", "SMALL_FLIP", "found_leaks", "open_leaks", "open_steps", "smallest_flip"]

LEAKS = ("extractable", "approximable", "span", "flippable")
SMALL_FLIP = 0.1  # of the input's norm: a step this small that flips the target counts as a leak

# The steps that must have come to their end before a leak that was not found may be called absent.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "extractable": ("extraction",),
    "approximable": ("extraction", "learning", "training"),
    "span": ("span",),
    "flippable": ("flip",),
}

# What a leak makes of the level, the worst first.
LEVELS = {"extractable": "exact", "approximable": "approximate", "span": "span"}


def found_leaks(known: Known) -> tuple[str, ...]:
    """Those that were found."""
    return tuple(name for name, leaking in zip(LEAKS, _leaking(known), strict=True) if leaking)


def _leaking(known: Known) -> tuple[bool, ...]:
    copy, flip = known.copy, smallest_flip(known)
    return (
        copy is not None and copy.outcome is Outcome.RECOVERED,
        copy is not None,
        known.span is not None and known.span.outcome is Outcome.SPAN_RECOVERED,
        flip is not None and flip.ok and flip.relative_size <= SMALL_FLIP,
    )


def open_steps(known: Known, leak: str) -> list[str]:
    """The steps that leave open whether this leaks."""
    return [step for step in NEEDS[leak] if not known.settled(step) or (step == "flip" and _one_sided(known))]


def _one_sided(known: Known) -> bool:
    """True if one output had the same sign at every input, and none flipped: another threshold may be what decides."""
    return {flip.evidence.get("above") for flip in known.flips if not flip.ok} in ({True}, {False})


def open_leaks(known: Known) -> tuple[str, ...]:
    """Those that were not found, and not looked for to the end: with a number of the class left out, none was."""
    found = found_leaks(known)
    return tuple(leak for leak in LEAKS if leak not in found and (known.without or open_steps(known, leak)))


def smallest_flip(known: Known) -> Flip | None:
    """The flip with the smallest step; one that failed if none succeeded."""
    flips = [flip for flip in known.flips if flip.ok] or list(known.flips)
    return min(flips, key=lambda flip: flip.relative_size if flip.ok else 0.0, default=None)

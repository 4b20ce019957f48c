"""Whether a run settles what it was for: one rule for the verdict and for the rows of the defense sweep."""

from __future__ import annotations

from reluctant.audit.closeness import is_near
from reluctant.results import Ended, Outcome

__all__ = ["is_unlucky", "settles"]


def settles(run: Ended) -> bool:
    """True if it came to its end here: it found what it looks for, or the answers give it nothing to find that in.

    False where it was cut short, went part of the way, or could not see: more rows, time or digits may find more. Nor
    does one settle anything that chance may have kept from its end, where another seed may reach it.
    """
    return (run.outcome.settles or _is_far_too_noisy(run)) and not (is_unlucky(run) or is_near(run))


def _is_far_too_noisy(run: Ended) -> bool:
    """True if noise hides all inside the box that a link leaves: there far less of it is refused, with any seed."""
    return run.outcome is Outcome.TOO_NOISY and "inside" in run.evidence


def is_unlucky(run: Ended) -> bool:
    """True if the method for few digits was tried and did not succeed: with another seed it may."""
    return run.outcome is Outcome.LOW_PRECISION and bool(run.evidence.get("failures"))

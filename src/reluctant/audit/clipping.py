"""Inputs that the target clips: what bends at their bounds is no neuron, and inside them there is more to find."""

from __future__ import annotations

from reluctant.domains import Domain
from reluctant.extraction.prospects import seems_clipped
from reluctant.results import Result

__all__ = ["clipped_to", "clipped_words"]


def clipped_to(run: Result) -> Domain | None:
    """The range that inputs seem to be clipped to, where extraction failed for that; else None."""
    found = run.evidence.get("clipped")
    return None if found is None else Domain(*found)


def clipped_words(box: Domain) -> str:
    """What that means for an audit, and the option that helps."""
    return f"{seems_clipped(box)} Run the audit inside: --domain={float(box.low):.10g},{float(box.high):.10g}."

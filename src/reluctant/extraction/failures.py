"""A stage that did not succeed: which one, by which number, and what had been found until then."""

from __future__ import annotations

from reluctant.extraction.so_far import Known

__all__ = ["StageFailed"]


class StageFailed(Exception):
    """Hard luck in a stage; another attempt with other random choices may do better."""

    def __init__(self, stage: str, reason: str, *, number: float, limit: float, partial: Known | None = None) -> None:
        super().__init__(f"{stage}: {reason} ({number:.2g}, limit {limit:.2g})")
        self.stage, self.reason, self.number, self.limit, self.partial = stage, reason, number, limit, partial

"""A picture, with words for those who do not see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reluctant.report.figures import figure_markup

__all__ = ["Drawing"]


@dataclass(frozen=True)
class Drawing:
    """SVG that a template prints as it is, and what it shows in a sentence."""

    picture: Any
    alt: str

    @classmethod
    def of(cls, figure: Any, alt: str) -> Drawing:
        """A matplotlib figure with its words."""
        return cls(figure_markup(figure), alt)

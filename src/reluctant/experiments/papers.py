"""The four papers whose figures, tables and theorems are run again."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ADVERSARIAL", "EXTRACTION", "LEARNING", "PAPERS", "SPAN", "Paper"]


@dataclass(frozen=True)
class Paper:
    """Who wrote what, and where it appeared."""

    title: str
    authors: str
    venue: str

    @property
    def short(self) -> str:
        """Authors and venue."""
        return f"{self.authors}, {self.venue}"


SPAN = Paper(
    "Span Recovery for Deep Neural Networks with Applications to Input Obfuscation",
    "Jayaram, Woodruff and Zhang",
    "ICLR 2020",
)
LEARNING = Paper(
    "Efficiently Learning Any One Hidden Layer ReLU Network From Queries", "Chen, Klivans and Meka", "NeurIPS 2021"
)
EXTRACTION = Paper(
    "An Exact Poly-Time Membership-Queries Algorithm for Extracting a Three-Layer ReLU Network",
    "Daniely and Granot",
    "ICLR 2023",
)
ADVERSARIAL = Paper(
    "Adversarial Examples in Multi-Layer Random ReLU Networks", "Bartlett, Bubeck and Cherapanamjeri", "NeurIPS 2021"
)
PAPERS = (SPAN, LEARNING, EXTRACTION, ADVERSARIAL)

"""What is answered behind a link, in words: numbers that a tanh makes are no probabilities."""

from __future__ import annotations

__all__ = ["EXPECTED", "MOVED", "VALUES", "ends_of", "told_behind"]

VALUES = "Leave the link out (link='identity') if the target answers values."
MOVED = "No link reads {} that noise has moved: leave the link out (link='identity')."
EXPECTED = {"log-softmax": "log-probabilities", "tanh": "numbers between -1 and 1"}  # else probabilities


def told_behind(link: str | None) -> str:
    """What is answered behind this link, in a word."""
    return "answers" if link == "tanh" else "probabilities"


def ends_of(link: str | None) -> tuple[int, int]:
    """Between which numbers answers behind this link lie."""
    return (-1, 1) if link == "tanh" else (0, 1)

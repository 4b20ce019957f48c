"""Defenses as an owner calls them."""

from __future__ import annotations

__all__ = ["defense_words"]

WORDS = {
    "none": "no defense",
    "decimals": "{} decimals",
    "digits": "{} significant digits",
    "float32": "float32",
    "float16": "float16",
    "gaussian": "Gaussian noise {}",
    "laplace": "Laplace noise {}",
    "softmax": "probabilities",
    "log-softmax": "log-probabilities",
    "sigmoid": "a probability each",
    "top": "top {} probabilities",
    "labels": "label alone",
    "limit": "at most {} queries",
    "clip": "inputs clipped to {}",
}
OF_ONE = {
    "decimals": "1 decimal",
    "digits": "1 significant digit",
    "top": "top probability",
    "limit": "at most 1 query",
}
PROBABILITIES = ("softmax", "log-softmax", "sigmoid", "top")
JOINTS = {"decimals": " of ", "digits": " of ", "float32": " in ", "float16": " in "}


def defense_words(name: str) -> str:
    """`decimals=3` as "3 decimals"; several one after the other; a name that is not known as it stands."""
    parts = name.split(", ")
    if len(parts) > 1 and parts[0] == "softmax" and parts[1].startswith("top="):
        parts = parts[1:]  # of probabilities, as it says itself
    return "".join(_joined(part, before) for before, part in zip(["", *parts], parts, strict=False))


def _joined(part: str, before: str) -> str:
    """With what joins it to the one before: digits of probabilities belong to them."""
    kind, makes = part.partition("=")[0], before.partition("=")[0]
    joint = JOINTS.get(kind, ", ") if makes in PROBABILITIES else ", "
    return f"{joint}{_one(part)}" if before else _one(part)


def _one(name: str) -> str:
    head, *settings = name.split(",")
    kind, _, value = head.partition("=")
    words = WORDS.get(kind)
    if words is None:
        return name
    words = OF_ONE[kind] if value == "1" and kind in OF_ONE else words.format(value)
    return " ".join([words, *(f"({setting})" for setting in settings)])

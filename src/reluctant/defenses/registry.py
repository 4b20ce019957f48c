"""Defenses by name, as in `defend(oracle, "decimals=3")`, and their names in a report.

A new defense is one more entry in `DEFENSES`, and one in `DEFENSE_NAMES` for reports.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np

from reluctant.defenses.defense import (
    ClippedInputs,
    Decimals,
    Defense,
    Digits,
    GaussianNoise,
    LabelsOnly,
    LaplaceNoise,
    NumberFormat,
    Probabilities,
    QueryLimit,
    TopProbabilities,
)
from reluctant.errors import InvalidInput
from reluctant.oracles.base import Oracle

Maker = Callable[..., Defense]
NOISE_SETTINGS: Mapping[str, Callable[[str], Any]] = {"fixed": lambda text: text != "no", "seed": int}


@dataclass(frozen=True)
class DefenseEntry:
    """A defense in the list: how it is asked for, what it does, how to make it from the text after its name."""

    usage: str
    what: str
    make: Maker
    read: Callable[[str], tuple[Any, ...]]
    settings: Mapping[str, Callable[[str], Any]]


def _no_value(text: str) -> tuple[Any, ...]:
    if text:
        raise ValueError("takes no value")
    return ()


def _low_and_high(text: str) -> tuple[Any, ...]:
    low, high = text.split(":")
    return float(low), float(high)


def _entry(usage: str, what: str, make: Maker, read: Callable[[str], Any] = _no_value, **settings: Any) -> DefenseEntry:
    values = read if read in (_no_value, _low_and_high) else lambda text: (read(text),)
    return DefenseEntry(usage, what, make, values, settings)


DEFENSES: dict[str, DefenseEntry] = {
    "decimals": _entry("decimals=3", "answers rounded to decimals", Decimals, int),
    "digits": _entry("digits=4", "answers rounded to significant digits", Digits, int),
    "float32": _entry("float32", "answers rounded to float32", partial(NumberFormat, dtype=np.float32)),
    "float16": _entry("float16", "answers rounded to float16", partial(NumberFormat, dtype=np.float16)),
    "gaussian": _entry("gaussian=1e-3[,fixed][,seed=7]", "Gaussian noise, fresh or fixed to the input",
                       GaussianNoise, float, **NOISE_SETTINGS),
    "laplace": _entry("laplace=1e-3[,fixed][,seed=7]", "Laplace noise, fresh or fixed to the input",
                      LaplaceNoise, float, **NOISE_SETTINGS),
    "softmax": _entry("softmax", "probabilities of classes instead of values", partial(Probabilities, link="softmax")),
    "log-softmax": _entry("log-softmax", "log-probabilities instead of values",
                          partial(Probabilities, link="log-softmax")),
    "sigmoid": _entry("sigmoid", "a probability for each value", partial(Probabilities, link="sigmoid")),
    "top": _entry("top=1", "the largest probabilities, the others 0", TopProbabilities, int),
    "labels": _entry("labels", "the label alone", LabelsOnly),
    "limit": _entry("limit=10000", "a limit on the rows answered", QueryLimit, int),
    "clip": _entry("clip=0:1", "inputs moved into a range", ClippedInputs, _low_and_high),
}  # fmt: skip

NUMBER_FORMATS = frozenset({"float32", "float16"})  # how answers are written, after all else is done to them
FEWER_DIGITS = frozenset({"decimals", "digits"}) | NUMBER_FORMATS  # these leave fewer digits of the same answers


def defense_kind(defense: str) -> str:
    """Its name without its settings."""
    return defense.partition(",")[0].partition("=")[0].strip()


def split_last_defenses(defenses: Sequence[str], kinds: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those before, and the last of them that are all of these kinds."""
    last = list(takewhile(lambda name: defense_kind(name) in kinds, reversed(defenses)))
    return tuple(defenses[: len(defenses) - len(last)]), tuple(reversed(last))


def defend(oracle: Oracle, *defenses: str | Maker) -> Oracle:
    """Put defenses around an oracle, the first one next to the target.

    Arguments:
        oracle: the target to defend; `open_oracle` gives one.
        defenses: each a name from `DEFENSES` with its parameters, such as "decimals=3" or "gaussian=1e-3,fixed", or a
            function that wraps an oracle.
    """
    if not isinstance(oracle, Oracle):
        raise InvalidInput.about(
            "oracle",
            got=type(oracle).__name__,
            expected="an oracle",
            fix="Open the target first: rl.open_oracle(f).",
        )
    for defense in defenses:
        oracle = _defend_by_name(oracle, defense) if isinstance(defense, str) else defense(oracle)
    return oracle


def _defend_by_name(oracle: Oracle, text: str) -> Defense:
    head, *rest = (part.strip() for part in text.split(","))
    name, _, value = head.partition("=")
    entry = DEFENSES.get(name)
    if entry is None:
        usages = ", ".join(each.usage for each in DEFENSES.values())
        raise InvalidInput.about("defense", got=repr(text), expected=f"one of {usages}")
    try:
        pairs = (part.partition("=") for part in rest)
        settings = {key: entry.settings[key](setting) for key, _, setting in pairs}
        arguments = entry.read(value)
    except (KeyError, ValueError) as error:
        got = f"{text!r} ({error})"
        raise InvalidInput.about("defense", got=got, expected=f"something like {entry.usage}") from None
    made = entry.make(oracle, *arguments, **settings)
    made.title = text
    return made


DEFENSE_NAMES = {
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
DEFENSE_NAMES_OF_ONE = {
    "decimals": "1 decimal",
    "digits": "1 significant digit",
    "top": "top probability",
    "limit": "at most 1 query",
}
GIVE_PROBABILITIES = ("softmax", "log-softmax", "sigmoid", "top")
JOINTS = {"decimals": " of ", "digits": " of ", "float32": " in ", "float16": " in "}


def defense_words(name: str) -> str:
    """`decimals=3` as "3 decimals"; several one after the other; an unknown name unchanged."""
    parts = name.split(", ")
    if len(parts) > 1 and parts[0] == "softmax" and parts[1].startswith("top="):
        parts = parts[1:]  # of probabilities, as it says itself
    return "".join(_joined_words(part, before) for before, part in zip(["", *parts], parts, strict=False))


def _joined_words(part: str, before: str) -> str:
    """With what joins it to the one before: digits of probabilities belong to them."""
    kind, makes = part.partition("=")[0], before.partition("=")[0]
    joint = JOINTS.get(kind, ", ") if makes in GIVE_PROBABILITIES else ", "
    return f"{joint}{_words_of_one(part)}" if before else _words_of_one(part)


def _words_of_one(name: str) -> str:
    head, *settings = name.split(",")
    kind, _, value = head.partition("=")
    words = DEFENSE_NAMES.get(kind)
    if words is None:
        return name
    words = DEFENSE_NAMES_OF_ONE[kind] if value == "1" and kind in DEFENSE_NAMES_OF_ONE else words.format(value)
    return " ".join([words, *(f"({setting})" for setting in settings)])

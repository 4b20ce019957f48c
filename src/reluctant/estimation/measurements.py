"""The measured runs that formulas are fitted to, by shape (784-128-1) and kind of answers.

The points are part of the package: `scripts/measured_points.py` writes measured.json from benchmarks/results.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any

from reluctant.errors import InvalidInput
from reluctant.interface.noise import UNIFORM_SD

Widths = tuple[int, ...]

FEWEST_LAYERS = 3  # inputs, hidden neurons, outputs
EXPECTED_SHAPE = "widths from inputs to outputs with at least one hidden layer, such as 784-128-1"

FLOAT64, FLOAT32, FLOAT16, DECIMALS, NOISE, LABELS = "float64", "float32", "float16", "decimals", "noise", "labels"
ROUNDED_SINGLE = f"{FLOAT32},{DECIMALS}"
PLAIN = (FLOAT64, FLOAT32, FLOAT16, LABELS)
ROUNDED = (DECIMALS, ROUNDED_SINGLE)  # float64 or float32 behind it
KINDS = (*PLAIN, *(f"{name}=K" for name in ROUNDED), "noise=S")
MOST_DECIMALS = 15
UNMEASURED_SINGLE = 5  # decimals of float32: from here on its own digits are seen beside the rounding
UNMEASURED_DECIMALS = 9  # from here on neither noisy enough to be looked at from afar nor as exact as float64


def as_widths(shape: str | Sequence[int]) -> Widths:
    """Widths of all layers, from "784-128-1" or from numbers; InvalidInput if they are none."""
    got = f"'{shape}'" if isinstance(shape, str) else repr(shape)
    parts = shape.strip().split("-") if isinstance(shape, str) else shape if isinstance(shape, Iterable) else ()
    try:
        widths = tuple(int(str(part)) for part in parts)
    except ValueError:
        widths = ()
    if len(widths) < FEWEST_LAYERS:
        raise InvalidInput.about("shape", got=got, expected=EXPECTED_SHAPE)
    if min(widths) < 1:
        raise InvalidInput.about("shape", got=got, expected="at least 1 neuron in every layer")
    return widths


def parameters(widths: Sequence[int]) -> int:
    """Weights and biases of a network of these widths."""
    return sum(out * (into + 1) for into, out in pairwise(widths))


def answers_per_parameter(rows: float, widths: Sequence[int], in_a_row: int | None = None) -> float:
    """Answers for each parameter, where a row brings so many: one for each output if nothing is said."""
    return rows * (widths[-1] if in_a_row is None else in_a_row) / parameters(widths)


def shape_name(widths: Sequence[int]) -> str:
    """Widths as they are written: 784-128-1."""
    return "-".join(map(str, widths))


@dataclass(frozen=True)
class Answers:
    """A kind of answers; `amount` is the number of decimals, or the noise over the output's deviation.

    "decimals=3" is float64 that is rounded, "float32,decimals=3" what a model that computes in float32 gives then.
    """

    kind: str = FLOAT64
    amount: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Answers:
        """From "float64", "float32", "float16", "labels", "decimals=3", "float32,decimals=3" or "noise=1e-4"."""
        asked = str(text).replace(" ", "")
        name, _, value = asked.partition("=")
        if asked in PLAIN:
            return cls(asked)
        if name in ROUNDED and value.isdecimal() and 1 <= int(value) <= MOST_DECIMALS:
            return cls(name, float(value))
        try:
            amount = float(value) if name == NOISE else math.nan
        except ValueError:
            amount = math.nan
        if 0 < amount < 1:
            return cls(NOISE, amount)
        raise InvalidInput.about(
            "precision", got=f"'{text}'",
            expected=f"one of {', '.join(KINDS)} (K from 1 to {MOST_DECIMALS}, S between 0 and 1)",
        )  # fmt: skip

    def __str__(self) -> str:
        return self.kind if self.kind in PLAIN else f"{self.kind}={self.amount:g}"

    @property
    def noise(self) -> float:
        """Deviation of an answer's error where it does not grow with the answer, for outputs of deviation one."""
        return UNIFORM_SD * 10**-self.amount if self.kind in ROUNDED else self.amount

    @property
    def steady_noise(self) -> bool:
        """True for noise that is the same however large the answer is, and too large for exact methods."""
        return self.kind == NOISE or (self.kind in ROUNDED and not self.between)

    @property
    def between(self) -> bool:
        """True for so many decimals that another way begins, and so few that it sees the rounding."""
        most = UNMEASURED_DECIMALS if self.kind == DECIMALS else UNMEASURED_SINGLE
        return self.kind in ROUNDED and self.amount >= most

    def in_a_row(self, outputs: int) -> int:
        """How many answers a row brings: one for each output, and one label for all of them."""
        return 1 if self.kind == LABELS else outputs


@dataclass(frozen=True)
class MeasuredPoint:
    """What one shape took, over its networks.

    Arguments:
        name: as the benchmark calls it.
        widths: of the networks.
        answers: what they were asked for.
        networks: how many there were.
        ok: how many were recovered and verified.
        queries: median of the rows.
        most_queries: of the network that took the most.
        out: median error over the output's deviation; sine of the angle for spans.
        most_out: the largest.
        source: the kept results it comes from.
        memory: most GiB of the whole process, where that was measured.
    """

    name: str
    widths: Widths
    answers: Answers
    networks: int
    ok: int
    queries: float
    most_queries: float
    out: float | None
    most_out: float | None
    source: str
    memory: float | None = None

    @property
    def per_parameter(self) -> float:
        """Answers for each parameter."""
        return answers_per_parameter(self.queries, self.widths, self.answers.in_a_row(self.widths[-1]))

    @property
    def shape(self) -> str:
        """Widths as they are written."""
        return shape_name(self.widths)


@cache
def _data() -> Any:
    return json.loads(resources.files("reluctant.estimation").joinpath("measured.json").read_text("utf-8"))


@cache
def measured_points() -> tuple[MeasuredPoint, ...]:
    """Every shape that was measured."""
    return tuple(
        MeasuredPoint(**{**row, "widths": tuple(row["widths"]), "answers": Answers.parse(row["answers"])})
        for row in _data()["points"]
    )


def measured_speeds() -> Mapping[str, float]:
    """Operations a second of a target's arithmetic, by what computes it."""
    return dict(_data()["speeds"])

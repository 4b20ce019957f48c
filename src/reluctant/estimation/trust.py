"""How far a shape lies from the measured ones, in words: a number is worth what was measured around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

from reluctant.estimation.answers import Answers
from reluctant.estimation.measured import Point
from reluctant.estimation.model import Fitted
from reluctant.estimation.shapes import Widths, parameters

__all__ = ["Trust", "nearest", "trust"]

MEASURED, BETWEEN, EXTRAPOLATED = "measured", "between measured shapes", "extrapolated"
NO_DECIMALS_FROM = 10.0  # times: how much larger a shape is, in words
NEAR = 1.1  # times the largest that was measured: as good as measured
NEIGHBOURS = 3


@dataclass(frozen=True)
class Trust:
    """`level`: "measured", "between measured shapes" or "extrapolated"; `reasons` say in which way."""

    level: str
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.level}: {'; '.join(self.reasons)}" if self.reasons else self.level
        return f"{text[0].upper()}{text[1:]}."


def trust(widths: Widths, answers: Answers, fit: Fitted, failed: Sequence[Point]) -> Trust:
    """Compare a shape with the points of its kind, and with those that were tried and not recovered."""
    points = fit.points
    outside = _outside(widths, points, fit.model.sizes)
    reasons = (*outside, *_amount(answers, points), *_failed(widths, points, failed))
    if reasons:
        return Trust(EXTRAPOLATED, reasons)
    same = [point for point in points if point.widths == widths and point.answers == answers]
    return Trust(MEASURED, ("this very shape was run",)) if same else Trust(BETWEEN)


def _sizes(widths: Widths) -> dict[str, int]:
    """What a shape is measured by."""
    return {
        "parameters": parameters(widths),
        "parameters with several outputs": parameters(widths) if widths[-1] > 1 else 0,
        "inputs": widths[0],
        "neurons in the first layer": widths[1],
        "neurons in a deeper layer": max(widths[2:-1], default=0),
        "hidden layers": len(widths) - 2,
        "outputs": widths[-1],
    }


def _compared(widths: Widths) -> dict[str, float]:
    """Sizes, and for one hidden layer how wide it is for its inputs: each may be measured, and not the two together."""
    hidden = len(widths) - 2
    return {**_sizes(widths), "neurons for each input": widths[1] / widths[0] if hidden == 1 else 0}


def _outside(widths: Widths, points: Sequence[Point], names: Sequence[str]) -> Iterator[str]:
    """Each size that no measured shape reaches, or that all of them pass."""
    every = [_compared(point.widths) for point in points]
    here = _compared(widths)
    for name in names or here:
        size = here[name]
        least, most = min(each[name] for each in every), max(each[name] for each in every)
        if size > NEAR * most > 0:  # where no measured network has several outputs, their number says so
            yield f"{_times(size / most)} more {name} than any measured network ({_number(most)})"
        elif NEAR * size < least:
            yield f"fewer {name} than any measured network ({_number(least)})"


def _number(size: float) -> str:
    return f"{size:,}" if isinstance(size, int) else f"{size:.2g}"


def _times(factor: float) -> str:
    return f"{factor:,.0f}×" if factor >= NO_DECIMALS_FROM else f"{factor:.1f}×"


def _amount(answers: Answers, points: Sequence[Point]) -> Iterator[str]:
    """Noise that is larger or smaller than any that was measured."""
    if not answers.steady_noise:
        return
    noises = [point.answers.noise for point in points]
    if not min(noises) <= answers.noise <= max(noises):
        yield f"noise of {answers.noise:.1e} where {min(noises):.1e} to {max(noises):.1e} was measured"


def _failed(widths: Widths, points: Sequence[Point], failed: Sequence[Point]) -> Iterator[str]:
    """A try at a shape that is no larger and was not recovered, where nothing as wide was."""
    widest = max(point.widths[1] for point in points)
    for point in failed:
        if widths[1] > widest and point.widths[1] > widest:
            yield f"{point.shape} was tried and not recovered ({point.why})"


def nearest(widths: Widths, answers: Answers, points: Sequence[Point]) -> list[Point]:
    """The measured points that are most like a shape, the nearest first."""
    here = _place(widths, answers)

    def distance(point: Point) -> float:
        there = _place(point.widths, point.answers)
        return sum((a - b) ** 2 for a, b in zip(here, there, strict=True))

    best: dict[tuple[Widths, Answers], Point] = {}
    for point in sorted(points, key=lambda point: point.networks):  # of two results for a shape the one with more
        best[point.widths, point.answers] = point
    return sorted(best.values(), key=distance)[:NEIGHBOURS]


def _place(widths: Widths, answers: Answers) -> tuple[float, ...]:
    """Sizes and noise in their logarithms."""
    noise = log(answers.noise) if answers.steady_noise else 0.0
    return (*(log(max(size, 1)) for size in _sizes(widths).values()), noise)

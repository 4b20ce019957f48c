"""Record types for pictures: the data each one is drawn from, to the digits a picture shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LinePicture:
    """The target on a line through two inputs: positions in units of their distance, answers, creases of the copy."""

    positions: tuple[float, ...]
    answers: tuple[tuple[float, ...], ...]
    creases: tuple[float, ...] | None
    length: float

    def __post_init__(self) -> None:
        if len(self.positions) != len(self.answers):
            raise ValueError("positions and answers differ in length")
        if len({len(row) for row in self.answers}) > 1:
            raise ValueError("answers differ in length")


@dataclass(frozen=True)
class PlanePicture:
    """The target on a square: its largest output, the class that wins, creases of the copy and the layers they are of.

    low, high: corners of the square.
    """

    low: tuple[float, float]
    high: tuple[float, float]
    values: tuple[tuple[float, ...], ...]
    classes: tuple[tuple[int, ...], ...] | None
    creases: tuple[tuple[tuple[float, float], ...], ...]
    layers: tuple[int, ...]

    def __post_init__(self) -> None:
        if len({len(row) for row in self.values}) > 1:
            raise ValueError("rows of values differ in length")
        if len(self.creases) != len(self.layers):
            raise ValueError("creases and layers differ in length")
        if not all(low < high for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError("low is not below high")


@dataclass(frozen=True)
class FirstLayer:
    """Unit weights of the strongest first neurons as images; `of` so many there are."""

    height: int
    width: int
    images: tuple[tuple[float, ...], ...]
    of: int

    def __post_init__(self) -> None:
        if any(len(image) != self.height * self.width for image in self.images):
            raise ValueError("an image is not of height times width numbers")


@dataclass(frozen=True)
class ErrorHistogram:
    """Errors of the copy at inputs of one scale, counted between edges."""

    scale: float
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    largest: float
    points: int

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError("one edge more than counts is wanted")


@dataclass(frozen=True)
class SearchPicture:
    """The search for creases along one line, as it went.

    t: positions asked, answers there and in which round; known: stretches between them that are resolved; creases.
    """

    scale: float
    t: tuple[float, ...]
    answers: tuple[tuple[float | None, ...], ...]
    round: tuple[int, ...]
    known: tuple[bool, ...]
    creases: tuple[float, ...]
    found_in_round: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len({len(self.t), len(self.answers), len(self.round), len(self.known) + 1}) > 1:
            raise ValueError("t, answers, round and known are not of one length (known: one less)")
        if len({len(row) for row in self.answers}) > 1:
            raise ValueError("answers differ in length")
        if any(list(part) != sorted(part) for part in (self.t, self.creases)):
            raise ValueError("t or creases are not in order")
        if not self.t or not self.t[0] < self.t[-1]:
            raise ValueError("t has no length")


@dataclass(frozen=True)
class Pictures:
    """All of them; None where a step drew nothing."""

    line: LinePicture | None = None
    plane: PlanePicture | None = None
    first_layer: FirstLayer | None = None
    errors: tuple[ErrorHistogram, ...] = ()
    search: SearchPicture | None = None

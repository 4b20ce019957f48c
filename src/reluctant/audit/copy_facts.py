"""Record types for the copy: its error, its cost, the expected cost, the truth, and the range of inputs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from reluctant.domains import Domain


@dataclass(frozen=True)
class Bounds:
    """low ≤ x ≤ high: a number for all coordinates or one for each; None where there is no bound."""

    low: float | tuple[float | None, ...] | None = None
    high: float | tuple[float | None, ...] | None = None

    @classmethod
    def of(cls, domain: Domain) -> Bounds:
        """Those of a domain."""
        return cls(*(_side(bound) for bound in (domain.low, domain.high)))

    @property
    def domain(self) -> Domain:
        """As a domain again."""
        return Domain(_bound(self.low, -np.inf), _bound(self.high, np.inf))

    def describe(self) -> str:
        """One phrase."""
        return self.domain.describe()


def _side(bound: Any) -> float | tuple[float | None, ...] | None:
    if np.ndim(bound) == 0:
        return _finite(bound)
    return tuple(_finite(each) for each in np.asarray(bound))


def _bound(side: float | tuple[float | None, ...] | None, none: float) -> Any:
    if isinstance(side, tuple):
        return np.array([none if each is None else each for each in side])
    return none if side is None else side


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


class CopyMethod(StrEnum):
    """How a copy was made."""

    EXACT = "exact-extraction"
    FEW_DIGITS = "few-digits"
    LEARNING = "learning"
    TRAINING = "training"


class ErrorKind(StrEnum):
    """What the error of a copy is known by.

    every-digit: it explains answers to their last digit. digits: verified to so many digits. held-out: measured at
    inputs that it was not trained on. rms: measured, root mean square. unverified: none of these.
    """

    EVERY_DIGIT = "every-digit"
    DIGITS = "digits"
    HELD_OUT = "held-out"
    RMS = "rms"
    UNVERIFIED = "unverified"


@dataclass(frozen=True)
class CopyError:
    """Errors of a copy: the largest seen, at how many inputs, the typical one (rms).

    own: the copy's own error is at most that, where it is told apart from noise. digits: of a verified one. is_bound:
    `typical` is an upper end. agreement, commonest: share of equal labels, and what one label alone gives, where labels
    say something. inside: where the deviation was measured, if not at inputs of size 1.
    """

    kind: ErrorKind
    largest: float | None
    typical: float | None
    inputs: int | None
    own: float | None = None
    digits: int | None = None
    is_bound: bool = False
    agreement: float | None = None
    commonest: float | None = None
    inside: str | None = None


@dataclass(frozen=True)
class Recovered:
    """The copy. A trained one has parameters of its own: queries and answers for each are None."""

    method: CopyMethod
    verified: bool
    link: str
    widths: tuple[int, ...]
    linear_part: bool
    parameters: int
    error: CopyError
    queries: int
    queries_per_parameter: float | None
    answers_per_parameter: float | None
    cost: float | None
    seconds: float | None


@dataclass(frozen=True)
class RangeFacts:
    """A number to expect, between two."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class ShapeRows:
    """Rows that extraction of one shape is expected to take."""

    widths: tuple[int, ...]
    queries: RangeFacts


@dataclass(frozen=True)
class RowsNeeded:
    """Rows of exact extraction, where the budget ran out: of the shape in the file, else of a few that it may have.

    precision: what the answers give, as `estimate` takes it. times: a budget of so many times that gives extraction
    its rows.
    """

    of_file: bool
    precision: str
    shapes: tuple[ShapeRows, ...]
    times: int


@dataclass(frozen=True)
class ExpectedCost:
    """What an attack on such a shape is expected to cost.

    shape: widths of the network before its link; read_as: those of the values that were read, if they differ. reason:
    why there is no number ("inside-a-range", "behind-a-link", or what the estimate says). trust: how far the shape lies
    from measured ones.
    """

    shape: tuple[int, ...]
    precision: str
    reason: str | None = None
    queries: RangeFacts | None = None
    answers_per_parameter: RangeFacts | None = None
    seconds: RangeFacts | None = None
    cost: RangeFacts | None = None
    trust: str | None = None
    read_as: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Truth:
    """The copy beside the true weights. all_layers: neurons of all layers could be paired, else the first alone."""

    file: str
    widths: tuple[int, ...]
    parameters: int
    neurons_found: int
    neurons: int
    all_layers: bool
    largest_error: float | None
    largest_weight_error: float | None

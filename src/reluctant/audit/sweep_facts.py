"""Record types for defenses: what each leaves of the model and costs honest users."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reluctant.audit.copy_facts import Bounds


class StandsFor(StrEnum):
    """What stands for the model in the sweep of defenses."""

    RECOVERED = "recovered-network"
    TRAINED = "trained-network"
    FILE = "file"


@dataclass(frozen=True)
class SweepInputs:
    """Honest inputs that costs and errors were measured on; sampled: drawn from the domain."""

    count: int
    sampled: bool
    domain: Bounds | None = None


@dataclass(frozen=True)
class HonestFacts:
    """What honest users see: errors, None where they get answers of another kind; share of labels kept."""

    rms_error: float | None
    max_error: float | None
    labels_kept: float | None
    inputs: int


@dataclass(frozen=True)
class RowSpan:
    """What span recovery ended with behind a defense."""

    outcome: str
    ok: bool
    rank: int
    inputs: int
    angle: float | None
    queries: int
    from_labels: bool


@dataclass(frozen=True)
class Trial:
    """One method behind a defense: how it ended, and the errors of its network against the undefended model.

    copied: it is a copy, verified or measured to be close. settled: it ended as it would with any seed. undecided: its
    time was over. refused: a look at the answers was enough. in_vain: the method for few digits did not succeed.
    """

    method: str
    outcome: str
    ok: bool
    error: float | None
    largest_error: float | None
    labels_kept: float | None
    queries: int
    copied: bool
    settled: bool
    undecided: bool
    refused: bool
    in_vain: bool


@dataclass(frozen=True)
class Student:
    """A network trained on defended answers, held against the undefended model.

    commonest: share of the commonest label. held_out_error, held_out_labels: at random inputs. queries: with those for
    a span that was used. cut_short: rows or time were fewer than wanted. as_undefended: it is the network trained
    without a defense, for the answers hardly differ. copied: its error is that of a copy.
    """

    outcome: str
    ok: bool
    error: float | None
    largest_error: float | None
    labels_kept: float | None
    commonest: float | None
    held_out_error: float | None
    held_out_labels: float | None
    queries: int
    cut_short: bool
    as_undefended: bool
    copied: bool


@dataclass(frozen=True)
class DefenseRow:
    """What one defense leaves.

    defense: names as `defend` takes them, with commas; "none" is the model as it is. digits: decimal digits left to
    honest users, None where they get other answers. rebuilt: the best of `tried`, with the queries of all of them.
    stopped: True if no exact method gave a copy and all came to their end; False if one did; None if not settled.
    no_method: labels alone are left, which no exact method takes. cut: not all was tried.
    """

    defense: str
    honest: HonestFacts
    digits: float | None
    span: RowSpan | None
    tried: tuple[Trial, ...]
    rebuilt: Trial | None
    trained: Student | None
    stopped: bool | None
    no_method: bool
    cut: bool


@dataclass(frozen=True)
class FailedDefense:
    """A defense that could not be tried: the type of the error, and what it said."""

    defense: str
    error: str
    message: str


@dataclass(frozen=True)
class SweepFacts:
    """Defenses tried on what stands for the model, with this budget of rows for each method.

    open: the model can be copied without a defense, None if that is not settled. cheapest: the defense that stops a
    copy at the least cost to honest users.
    """

    on: StandsFor
    budget: int
    inputs: SweepInputs
    rows: tuple[DefenseRow, ...]
    failed: tuple[FailedDefense, ...] = ()
    open: bool | None = None
    cheapest: str | None = None

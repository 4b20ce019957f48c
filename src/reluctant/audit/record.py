"""`AuditRecord`: the record of an audit as typed facts, with its JSON schema.

Nothing here is a sentence. Where an audit has something to say, the record holds a `Diagnosis`: a slug, the numbers it
speaks of, what to try. Errors are relative to the standard deviation of the output unless a field says otherwise.
Numbers that are infinite or unknown are None. The JSON Schema is generated from these classes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, Literal

import numpy as np

from reluctant._files import write_text
from reluctant._optional import require
from reluctant.audit.copy_facts import (
    Bounds,
    CopyError,
    CopyMethod,
    ErrorKind,
    ExpectedCost,
    RangeFacts,
    Recovered,
    RowsNeeded,
    ShapeRows,
    Truth,
)
from reluctant.audit.picture_data import ErrorHistogram, FirstLayer, LinePicture, Pictures, PlanePicture, SearchPicture
from reluctant.audit.run_facts import (
    AtUse,
    Behind,
    CertificateFacts,
    Closeness,
    Ending,
    FlipFacts,
    FlipTry,
    GradientFrom,
    HeldOut,
    InterfaceFacts,
    LearnedAccuracy,
    Linearity,
    MissedBump,
    NetworkShape,
    NoiseFacts,
    NoiseReadingFacts,
    OwnErrorFacts,
    PartFacts,
    PrecisionFacts,
    RunFacts,
    SpanFacts,
    State,
    TopClasses,
    TrainingFacts,
    VerificationFacts,
)
from reluctant.audit.sweep_facts import (
    DefenseRow,
    FailedDefense,
    HonestFacts,
    RowSpan,
    StandsFor,
    Student,
    SweepFacts,
    SweepInputs,
    Trial,
)
from reluctant.errors import InvalidInput
from reluctant.messages import Diagnosis

__all__ = [
    "LEAKS",
    "SCHEMA",
    "AtUse",
    "AuditRecord",
    "Behind",
    "Bounds",
    "CertificateFacts",
    "Closeness",
    "Confidence",
    "CopyError",
    "CopyMethod",
    "DefenseRow",
    "Ending",
    "ErrorHistogram",
    "ErrorKind",
    "ExpectedCost",
    "FailedDefense",
    "FirstLayer",
    "FlipFacts",
    "FlipTry",
    "GradientFrom",
    "HeldOut",
    "HonestFacts",
    "InterfaceFacts",
    "KnownName",
    "LeakKind",
    "LearnedAccuracy",
    "Level",
    "LinePicture",
    "Linearity",
    "MissedBump",
    "NetworkShape",
    "NoiseFacts",
    "NoiseReadingFacts",
    "OwnErrorFacts",
    "PartFacts",
    "Pictures",
    "PlanePicture",
    "PrecisionFacts",
    "Price",
    "Queries",
    "RangeFacts",
    "Reason",
    "Recovered",
    "Repeat",
    "RowSpan",
    "RowsNeeded",
    "RunFacts",
    "SearchPicture",
    "ShapeRows",
    "SpanFacts",
    "StageRows",
    "StandsFor",
    "State",
    "StepFacts",
    "Stop",
    "Student",
    "SweepFacts",
    "SweepInputs",
    "Target",
    "TopClasses",
    "TrainingFacts",
    "Trial",
    "Truth",
    "VerdictFacts",
    "VerificationFacts",
    "Versions",
    "as_plain",
    "schema",
]

SCHEMA: Literal["reluctant-audit/2"] = "reluctant-audit/2"
EXPECTED = "a record that an audit wrote"


class Level(StrEnum):
    """How much leaks, the worst first; unknown: not settled."""

    EXACT = "exact"
    APPROXIMATE = "approximate"
    SPAN = "span"
    NOTHING = "nothing"
    UNKNOWN = "unknown"


class LeakKind(StrEnum):
    """What an audit looks for: an exact copy, a close one, the directions that count, a flip by one small step."""

    EXTRACTABLE = "extractable"
    APPROXIMABLE = "approximable"
    SPAN = "span"
    FLIPPABLE = "flippable"


LEAKS = tuple(LeakKind)


class Confidence(StrEnum):
    """What the verdict rests on.

    verified: the copy passed verification. disputed: it was compared and did not pass. measured: its error was measured
    at new inputs. directions: long steps along all others changed no answer; label-directions: no label.
    no-proof: the methods ran to their end without success. unsettled, stopped: the audit could not look far enough, or
    was stopped. not-opened: the target could not be opened.
    """

    VERIFIED = "verified"
    DISPUTED = "disputed"
    MEASURED = "measured"
    DIRECTIONS = "directions"
    LABEL_DIRECTIONS = "label-directions"
    NO_PROOF = "no-proof"
    UNSETTLED = "unsettled"
    STOPPED = "stopped"
    NOT_OPENED = "not-opened"


@dataclass(frozen=True)
class Reason:
    """Why there is no copy, or no exact one. step: the step that ended so, empty for what concerns all of them."""

    diagnosis: Diagnosis
    step: str = ""


@dataclass(frozen=True)
class VerdictFacts:
    """What leaks, what was neither found nor looked for to the end, what that rests on, why there is not more."""

    level: Level
    confidence: Confidence
    leaks: tuple[LeakKind, ...]
    unsettled: tuple[LeakKind, ...]
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Target:
    """The target as it was opened and as it was read; None where it could not be opened.

    classes: names of the outputs, if given. link: how answers were read; link_found: the audit found that out by
    itself. reach: the range that everything was asked in, where the target does not answer elsewhere and nobody said
    so. clipped: the range that inputs seem to be clipped to. percent, among_nan: its probabilities are in percent, or
    missing ones are NaN. outputs_left_out: outputs that look like numbers of classes and were left out. output: the one
    that was looked at, None for all. noisy: answers are probabilities with noise on them.
    The rest are guesses that leave leaks open: may_be_sigmoids, may_be_percent, may_be_clipped, may_be_numbers (whole
    numbers taken for labels that may be rounded values), squashed (answers that no link here explains).
    """

    name: str
    inputs: int | None = None
    outputs: int | None = None
    number_format: str | None = None
    kind: str | None = None
    domain: Bounds | None = None
    identity: str | None = None
    classes: tuple[str, ...] | None = None
    link: str = "identity"
    link_found: bool = False
    reach: Bounds | None = None
    clipped: Bounds | None = None
    percent: bool = False
    among_nan: bool = False
    outputs_left_out: tuple[int, ...] = ()
    output: int | None = None
    noisy: bool = False
    may_be_sigmoids: bool = False
    may_be_percent: bool = False
    may_be_clipped: bool = False
    may_be_numbers: bool = False
    squashed: bool = False


@dataclass(frozen=True)
class StageRows:
    """Rows of one stage: asked, sent to the target, replayed from a transcript."""

    asked: int
    sent: int
    replayed: int


@dataclass(frozen=True)
class Queries:
    """Rows that reached the target, in all and by stage."""

    total: int
    by_stage: Mapping[str, StageRows] = field(default_factory=dict)


@dataclass(frozen=True)
class Price:
    """What a thousand queries cost, and what those of the audit did."""

    per_thousand: float
    currency: str = ""
    cost: float | None = None


@dataclass(frozen=True)
class Stop:
    """An audit that was stopped from outside: in which step, of how many; recorded: a transcript goes on from there."""

    step: str
    number: int
    of: int
    recorded: bool


@dataclass(frozen=True)
class StepFacts:
    """How one step went, why, what it spent of what it was allowed."""

    step: str
    state: State
    diagnosis: Diagnosis | None = None
    queries: int = 0
    seconds: float = 0.0
    allowed: int | None = None


@dataclass(frozen=True)
class KnownName:
    """An entry of MITRE ATLAS, NIST AI 100-2 or OWASP that findings stand under; leak: the one it is about, if one."""

    id: str
    name: str
    source: str
    leak: LeakKind | None = None


@dataclass(frozen=True)
class Versions:
    """Everything that decides over the last digit."""

    reluctant: str
    numpy: str
    python: str


@dataclass(frozen=True)
class Repeat:
    """The command that repeats the audit, its seed, and the files that it wrote; None of one that was not kept."""

    command: str
    seed: int
    record: str | None = None
    page: str | None = None


@dataclass(frozen=True, kw_only=True)
class AuditRecord:
    """All that an audit found. A part that is None has no finding; `steps` says why.

    ok: the audit ran to its end. interface: what was seen of the answers as they were read; served: of the answers as
    they are, where others were read from them. limits: what was assumed, what could be missed.
    """

    schema: Literal["reluctant-audit/2"] = SCHEMA
    seed: int
    ok: bool
    versions: Versions
    target: Target
    queries: Queries
    budget: int
    verdict: VerdictFacts
    steps: tuple[StepFacts, ...]
    repeat: Repeat
    price: Price | None = None
    stopped: Stop | None = None
    interface: InterfaceFacts | None = None
    served: InterfaceFacts | None = None
    span: SpanFacts | None = None
    extraction: RunFacts | None = None
    part: PartFacts | None = None
    learning: RunFacts | None = None
    training: RunFacts | None = None
    flip: FlipFacts | None = None
    linearity: Linearity | None = None
    recovered: Recovered | None = None
    expected: ExpectedCost | None = None
    rows_needed: RowsNeeded | None = None
    truth: Truth | None = None
    defenses: SweepFacts | None = None
    pictures: Pictures = field(default_factory=Pictures)
    limits: tuple[Diagnosis, ...] = ()
    names: tuple[KnownName, ...] = ()

    def step(self, name: str) -> StepFacts | None:
        """How this step went, None if it is not among them."""
        return next((step for step in self.steps if step.step == name), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return dict(as_plain(self))

    def to_json(self) -> str:
        """One JSON object."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    def write(self, path: str | Path) -> None:
        """Write the JSON form."""
        write_text(Path(path), self.to_json() + "\n")

    @classmethod
    def from_dict(cls, data: Any, name: str = "the record") -> AuditRecord:
        """The record in plain data, checked; an error names the first place that is wrong."""
        version = data.get("schema") if isinstance(data, Mapping) else None
        if version != SCHEMA:
            made = "Run the audit again: this version reads no older records." if version else ""
            raise InvalidInput.about(
                "RECORD", got=f"{name} with schema {version!r}", expected=f"schema {SCHEMA!r}", fix=made
            )
        msgspec = require("msgspec", extra="report", purpose="Reading a record")
        try:
            return msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise InvalidInput.about("RECORD", got=f"{name}, which is wrong: {error}", expected=EXPECTED) from error

    @classmethod
    def load(cls, path: str | Path) -> AuditRecord:
        """The record in a file, checked."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_refuse)
        except OSError as error:
            raise InvalidInput.about("RECORD", got=f"'{path}' ({error.strerror})", expected=EXPECTED) from error
        except ValueError as error:  # not JSON, or not text
            raise InvalidInput.about("RECORD", got=f"'{path}', not JSON ({error})", expected=EXPECTED) from error
        return cls.from_dict(data, f"'{path}'")


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the record, made from its classes."""
    msgspec = require("msgspec", extra="report", purpose="The schema of a record")
    made = msgspec.json.schema(AuditRecord)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": SCHEMA, **made}


def as_plain(value: Any) -> Any:
    """Plain data that JSON can hold: NaN and inf become None, numpy's numbers plain ones."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: as_plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [as_plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    return value.item() if isinstance(value, np.generic) else value

"""`AuditRecord`: the record of an audit as typed facts, with its JSON schema.

Nothing here is a sentence. Where an audit has something to say, the record holds a `Diagnosis`: a slug, the numbers it
speaks of, what to try. Errors are relative to the standard deviation of the output unless a field says otherwise.
Numbers that are infinite or unknown are None. The JSON Schema is generated from these classes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from reluctant._files import as_plain, write_text
from reluctant.audit.facts import (
    AnswerSpaceFacts,
    Bounds,
    ExpectedCost,
    FlipFacts,
    InterfaceFacts,
    Linearity,
    PartFacts,
    Recovered,
    RowsNeeded,
    RunFacts,
    SpanFacts,
    State,
    Truth,
    is_close,
)
from reluctant.defenses import kinds_of
from reluctant.errors import InvalidInput, require
from reluctant.messages import Diagnosis

SCHEMA: Literal["reluctant-audit/4"] = "reluctant-audit/4"
EXPECTED = "a record that an audit wrote"


class Level(StrEnum):
    """How much leaks, the worst first; unknown: not settled."""

    EXACT = "exact"
    APPROXIMATE = "approximate"
    SPAN = "span"
    NOTHING = "nothing"
    UNKNOWN = "unknown"


class LeakKind(StrEnum):
    """The leaks of an audit: an exact copy, a close one, the input subspace, a flip by one small step."""

    EXTRACTABLE = "extractable"
    APPROXIMABLE = "approximable"
    SPAN = "span"
    FLIPPABLE = "flippable"


class LeakState(StrEnum):
    """The state of a leak. absent: the steps that would show it came to their end without it."""

    FOUND = "found"
    NOT_SETTLED = "not-settled"
    ABSENT = "absent"


LEAKS = tuple(LeakKind)


class Confidence(StrEnum):
    """The basis of the verdict.

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
    """The leaks found, the leaks still open, the basis of both, and the reasons."""

    level: Level
    confidence: Confidence
    leaks: tuple[LeakKind, ...]
    unsettled: tuple[LeakKind, ...]
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Target:
    """The target as it was opened and as it was read; None where it could not be opened.

    classes: names of the outputs, if given.
    link: how answers were read.
    link_found: the audit found the link by itself.
    reach: the range of all queries, if the target answers nowhere else.
    clipped: the range that inputs seem to be clipped to.
    percent, among_nan: its probabilities are in percent, or missing ones are NaN.
    outputs_left_out: outputs that look like class numbers, and that the audit ignored.
    output: the one that the audit read, None for all.
    noisy: answers are probabilities with noise on them.
    location: the file, module or address that it was opened by, None for an object.

    The rest are guesses that leave leaks open: may_be_sigmoids, may_be_percent, may_be_clipped, may_be_numbers (whole
    numbers read as labels that may be rounded values), squashed (answers that no link here explains).
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
    location: str | None = None


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
    """The price of a thousand queries, and of all queries of the audit."""

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
    """How one step ended, why, and how much of its share it used."""

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
    """The command that repeats the audit, its seed, and its files; None for a file that was not kept."""

    command: str
    seed: int
    record: str | None = None
    page: str | None = None


# ---- defenses


class StandsFor(StrEnum):
    """The stand-in for the model in the sweep of defenses."""

    RECOVERED = "recovered-network"
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

    @property
    def is_close(self) -> bool:
        """True if a copy was measured to be close, verified or not."""
        return is_close(self.error)


@dataclass(frozen=True)
class DefenseRow:
    """What one defense leaves.

    defense: names as `defend` takes them, with commas; "none" is the model as it is. digits: decimal digits left to
    honest users, None where they get other answers. rebuilt: the best of `tried`, with the queries of all of them.
    stopped: True if no exact method gave a copy and all came to their end; False if one did; None if not settled.
    no_method: labels alone are left, and gave no network. cut: not all was tried.
    """

    defense: str
    honest: HonestFacts
    digits: float | None
    span: RowSpan | None
    tried: tuple[Trial, ...]
    rebuilt: Trial | None
    stopped: bool | None
    no_method: bool
    cut: bool

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of its defenses without their settings."""
        return kinds_of(self.defense)

    @property
    def is_open(self) -> bool:
        """True if a copy was tried and not made, and that says nothing: the methods did not come to their end."""
        best = self.rebuilt
        return best is not None and self.stopped is None and not (best.ok or best.is_close)


@dataclass(frozen=True)
class FailedDefense:
    """A defense that could not be tried: the type of the error, and what it said."""

    defense: str
    error: str
    message: str


NO_DEFENSE, NO_GRADIENTS = "none", "gradient-none"  # the model as it is, and with values alone


@dataclass(frozen=True)
class SweepFacts:
    """Defenses tried on the stand-in for the model, with this budget of rows for each method.

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

    @property
    def cheapest_row(self) -> DefenseRow | None:
        """The row of the cheapest defense that stops a copy; None if there is none."""
        return next((row for row in self.rows if row.defense == self.cheapest), None)

    @property
    def explanations(self) -> tuple[int, int] | None:
        """Queries of a copy with the gradients that the target answers, and without; None where it answers none."""
        found = {row.defense: row.rebuilt for row in self.rows}
        bare, without = found.get(NO_DEFENSE), found.get(NO_GRADIENTS)
        if bare is None or without is None or not (bare.copied and without.copied):
            return None
        return bare.queries, without.queries

    def takes_saving(self, row: DefenseRow) -> bool:
        """True if a defense of gradients makes them no cheaper than values, to half of what these cost."""
        return (
            self.explanations is not None
            and row.rebuilt is not None
            and (not row.rebuilt.copied or 2 * row.rebuilt.queries >= self.explanations[1])
        )


# ---- pictures: the data each one is drawn from, to the digits a picture shows


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
class FirstLayerImages:
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
    first_layer: FirstLayerImages | None = None
    errors: tuple[ErrorHistogram, ...] = ()
    search: SearchPicture | None = None


# ---- the record


@dataclass(frozen=True, kw_only=True)
class AuditRecord:
    """All that an audit found. A part that is None has no finding; `steps` says why.

    ok: the audit ran to its end. interface: what was seen of the answers as they were read; served: of the answers as
    they are, where others were read from them. limits: what was assumed, what could be missed. gates: leaks that must
    not be found, as the pipeline that ran the audit says. began: date and time as ISO 8601 in UTC.
    """

    schema: Literal["reluctant-audit/4"] = SCHEMA
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
    answer_space: AnswerSpaceFacts | None = None
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
    gates: tuple[LeakKind, ...] = ()
    began: str | None = None

    @property
    def seconds(self) -> float:
        """How long all steps took."""
        return sum(step.seconds for step in self.steps)

    def step(self, name: str) -> StepFacts | None:
        """How this step went, None if it is not among them."""
        return next((step for step in self.steps if step.step == name), None)

    def leak_state(self, leak: LeakKind) -> LeakState:
        """The finding of the audit on one leak."""
        if leak in self.verdict.leaks:
            return LeakState.FOUND
        return LeakState.NOT_SETTLED if leak in self.verdict.unsettled else LeakState.ABSENT

    def leak_diagnosis(self, leak: LeakKind) -> Diagnosis:
        """What leaks, in numbers, or that it is not settled."""
        if self.leak_state(leak) is LeakState.NOT_SETTLED:
            return Diagnosis("leak-not-settled", {"leak": str(leak)})
        part, numbers = {
            LeakKind.SPAN: (self.span, ("rank", "inputs", "queries")),
            LeakKind.FLIPPABLE: (self.flip, ("relative_size", "queries")),
        }.get(leak, (self.recovered, ("queries", "parameters")))
        return Diagnosis(str(leak), {} if part is None else {name: getattr(part, name) for name in numbers})

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

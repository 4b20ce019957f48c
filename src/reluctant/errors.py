"""Every exception of the library, in one tree, and messages in parts.

ReluctantError
├── InvalidInput (ValueError)        an argument is wrong; nothing was sent to the target
│   ├── InvalidRows                  query rows of the wrong shape, type or with NaN/inf
│   │   └── OutsideDomain            a row leaves the domain the target was opened with
│   ├── InvalidWeights               weights or biases of the wrong shape or type, or with NaN/inf
│   ├── NoGradient                   around this input the target does not change, or not beyond its noise
│   ├── UnknownTarget                no adapter knows how to open this target
│   ├── UnsafeFile                   the file can run code and trust_code was not given
│   ├── UnsupportedModel             a model that cannot be read; the message names the node
│   └── UnusableEngine               nobody answers there, no workers, or the target cannot go to them
├── MissingDependency (ImportError)  an extra is not installed; the message gives the pip line
├── TargetError                      the target misbehaved
│   ├── TargetUnavailable            it raised or dropped the call: worth a retry
│   │   ├── TargetTimeout            it did not answer in time
│   │   └── TargetBusy               it took nothing: busy, limited, not reachable; not counted as sent
│   ├── TargetRefused                it understood and refused: credentials, a wrong name; not counted as sent
│   │   └── BatchRefused             it refused these rows together; fewer at a time may do
│   ├── TargetChanged                old rows are answered otherwise now: another model is served
│   └── InvalidAnswer                it answered with the wrong shape, type or number of rows
│       ├── NonFiniteAnswer          NaN or inf where a number was expected
│       │   └── NonFiniteGradient    the answers are numbers, their gradients are not
│       ├── InvalidGradient          gradients of the wrong shape or type beside the answers
│       └── LinkMismatch             answers that are not what the link says
├── BudgetExhausted                  the next rows would pass the budget; they were not sent
│   └── TimeExhausted                the time given to this part of a run is over; they were not sent
├── TranscriptError
│   ├── TranscriptMismatch           made for another target, seed or format
│   ├── TranscriptCorrupt            damaged in the middle, not only torn at its end
│   └── TranscriptInUse              another process is writing to it
└── NotRecovered                     raised by result.raise_for_status(); carries the result

Each class has a slug, which is its heading in docs/messages.md. A message gives the argument, what
was got, what was expected and what to do. It is kept in parts, text and keywords of the library, and each edge writes
the keywords in its own way.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from string import Formatter
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "BatchRefused",
    "BudgetExhausted",
    "InvalidAnswer",
    "InvalidGradient",
    "InvalidInput",
    "InvalidRows",
    "InvalidWeights",
    "LinkMismatch",
    "MissingDependency",
    "NoGradient",
    "NonFiniteAnswer",
    "NonFiniteGradient",
    "NotRecovered",
    "OutsideDomain",
    "ReluctantError",
    "TargetBusy",
    "TargetChanged",
    "TargetError",
    "TargetRefused",
    "TargetTimeout",
    "TargetUnavailable",
    "TimeExhausted",
    "TranscriptCorrupt",
    "TranscriptError",
    "TranscriptInUse",
    "TranscriptMismatch",
    "UnknownTarget",
    "UnsafeFile",
    "UnsupportedModel",
    "UnusableEngine",
]


class Placeholder(str):
    """A value that only the user knows, in a message."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


N, LOW, HIGH = Placeholder("N"), Placeholder("low"), Placeholder("high")


@dataclass(frozen=True)
class Argument:
    """An argument of the library, named in a message."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Option:
    """A keyword of the library in a message, with its value if it has one."""

    name: str
    value: Any = None

    def __str__(self) -> str:
        return f"{self.name}={'' if self.value is None else repr(self.value)}"


class Words(str):
    """A message in parts: text, and the arguments, keywords and diagnoses between it.

    As a string these are written as in Python; another edge writes them in its own way.
    """

    parts: tuple[Any, ...]

    def __new__(cls, *parts: Any) -> Self:
        flat = [each for part in parts for each in (part.parts if isinstance(part, Words) else (part,))]
        made = super().__new__(cls, "".join(map(str, flat)))
        made.parts = tuple(each for each in flat if each != "")
        return made

    def written(self, write: Callable[[Any], str]) -> str:
        """The message, with every part that is not text as `write` gives it."""
        return "".join(part if isinstance(part, str) else write(part) for part in self.parts)

    def with_text(self, change: Callable[[str], str]) -> Words:
        """The message with its text changed, part by part."""
        return Words(*(change(part) if isinstance(part, str) else part for part in self.parts))


def words(template: str, **values: Any) -> Words:
    """Words with a keyword for each `{name}` of the template, and these values of them."""
    parts: list[Any] = []
    for text, name, _, _ in Formatter().parse(template):
        parts += [text] if name is None else [text, Option(name, values.get(name))]
    return Words(*parts)


class ReluctantError(Exception):
    """Base of everything this library raises on purpose."""

    slug: ClassVar[str] = "error"

    @property
    def words(self) -> Words:
        """The message in parts."""
        first = self.args[0] if self.args else ""
        return first if isinstance(first, Words) else Words(str(self))

    def advised(self, *more: Any) -> Self:
        """Add what to do to the end of the message."""
        self.args = (Words(self.words, *(part for each in more for part in (" ", each))),)
        return self


class InvalidInput(ReluctantError, ValueError):
    """An argument is wrong; nothing was sent to the target."""

    slug = "invalid-input"
    argument: str = ""

    @classmethod
    def about(cls, argument: str, *, got: object, expected: str, fix: str = "") -> Self:
        """Build the message from its four parts: argument, got, expected, what to do."""
        shown = got if isinstance(got, Words) else str(got)
        error = cls(Words(Argument(argument), ": got ", shown, f", expected {expected}.", " " if fix else "", fix))
        error.argument = argument
        return error


class InvalidRows(InvalidInput):
    """Query rows have the wrong shape or type, or hold NaN or inf."""

    slug = "invalid-rows"


class InvalidWeights(InvalidInput):
    """Weights or biases of a network have the wrong shape or type, or hold NaN or inf."""

    slug = "invalid-weights"


class OutsideDomain(InvalidRows):
    """A row leaves the domain the target was opened with."""

    slug = "outside-domain"


class NoGradient(InvalidInput):
    """Around this input the target does not change, or not by more than its noise; it was asked to find that out."""

    slug = "no-gradient"


class UnknownTarget(InvalidInput):
    """No adapter knows how to open this target."""

    slug = "unknown-target"


class UnsafeFile(InvalidInput):
    """The file can run code when it is loaded, and trust_code was not given."""

    slug = "unsafe-file"


class UnsupportedModel(InvalidInput):
    """A model file that cannot be read, or not in the way that was asked for."""

    slug = "unsupported-model"


class UnusableEngine(InvalidInput):
    """An engine that cannot be reached, has no workers, another version, or workers that cannot hold the target."""

    slug = "unusable-engine"


class MissingDependency(ReluctantError, ImportError):
    """An optional library is not installed; the message gives the pip line."""

    slug = "missing-dependency"


def require(module: str, *, purpose: str, extra: str | None = None) -> Any:
    """Import `module`, or say how to install it: the extra of this package, else the library itself."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        wanted = f"'reluctant[{extra}]'" if extra else library
        raise MissingDependency(
            f"{purpose} needs {library}, which is not installed. Run: pip install {wanted}",
            name=library,
        ) from error


class TargetError(ReluctantError):
    """The target misbehaved; the rows it was asked may have been paid for."""

    slug = "target-error"


class TargetUnavailable(TargetError):
    """The target raised, dropped the call or was not there: asking again may help. replied: it took the call."""

    slug = "target-unavailable"

    def __init__(self, message: str = "", *, replied: bool = False) -> None:
        super().__init__(message)
        self.replied = replied


class TargetTimeout(TargetUnavailable):
    """The target did not answer within the timeout."""

    slug = "target-timeout"


class TargetBusy(TargetUnavailable):
    """The target took nothing: it is busy, limits the rate or cannot be reached. `retry_after`: seconds it asks for."""

    slug = "target-busy"

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TargetRefused(TargetError):
    """The target refused the request without answering it; the same request would be refused again.

    these_rows: others may be answered.
    """

    slug = "target-refused"

    def __init__(self, message: str, *, these_rows: bool = False) -> None:
        super().__init__(message)
        self.these_rows = these_rows


class BatchRefused(TargetRefused):
    """The target refused so many rows in one request; fewer may do."""

    slug = "batch-refused"


class TargetChanged(TargetError):
    """Rows that were answered before are answered otherwise now: another model is being served."""

    slug = "target-changed"


class InvalidAnswer(TargetError):
    """The target's answer has the wrong shape, type or number of rows."""

    slug = "invalid-answer"


class LinkMismatch(InvalidAnswer):
    """The target's answers are not what the link says: values instead of probabilities, or of another kind."""

    slug = "link-mismatch"


class NonFiniteAnswer(InvalidAnswer):
    """The target answered NaN or inf; the rows and all answers are kept on the error."""

    slug = "non-finite-answer"

    def __init__(self, message: str, *, rows: NDArray[Any], answers: NDArray[Any]) -> None:
        super().__init__(message)
        self.rows = rows
        self.answers = answers


class NonFiniteGradient(NonFiniteAnswer):
    """The target answered numbers, and NaN or inf for their gradients, as it may where a function bends."""

    slug = "non-finite-gradient"


class InvalidGradient(InvalidAnswer):
    """The gradients beside the answers have the wrong shape or type; `got` names it."""

    slug = "invalid-gradient"

    def __init__(self, message: str, *, got: str, expected: str) -> None:
        super().__init__(message)
        self.got = got
        self.expected = expected


class BudgetExhausted(ReluctantError):
    """The next rows would pass the budget; they were not sent."""

    slug = "budget-exhausted"

    def __init__(self, *, budget: int, spent: int, asked: int) -> None:
        super().__init__(
            f"budget: got {asked} more rows with {spent} of {budget} spent, expected at most {budget - spent}; "
            f"they were not sent. Raise the budget by at least {spent + asked - budget} (these may not be the last "
            "rows), and give a transcript so that nothing is paid twice."
        )
        self.budget = budget
        self.spent = spent
        self.asked = asked


class TimeExhausted(BudgetExhausted):
    """The time given to this part of a run is over; the next rows were not sent."""

    slug = "time-exhausted"

    def __init__(self, *, seconds: float, spent: int, asked: int) -> None:
        ReluctantError.__init__(
            self,
            f"seconds: got {spent} rows and no end after {seconds:.3g} seconds, expected one; nothing more was sent. "
            "Allow more time.",
        )
        self.seconds, self.spent, self.asked = seconds, spent, asked


class TranscriptError(ReluctantError):
    """The transcript folder cannot be used."""

    slug = "transcript-error"


class TranscriptMismatch(TranscriptError):
    """The transcript was made for another target, another seed or another format."""

    slug = "transcript-mismatch"


class TranscriptCorrupt(TranscriptError):
    """The transcript is damaged in the middle: more than a torn last block."""

    slug = "transcript-corrupt"


class TranscriptInUse(TranscriptError):
    """Another process is writing to the transcript."""

    slug = "transcript-in-use"


class NotRecovered(ReluctantError):
    """A result that is not ok was asked to raise; the whole result is on the error."""

    slug = "not-recovered"

    def __init__(self, message: str, *, result: object) -> None:
        super().__init__(message)
        self.result = result

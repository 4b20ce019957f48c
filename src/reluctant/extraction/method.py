"""`Method`, the base class of extraction methods, the `Candidate` that a method returns, and `Memory`.

A `Method` runs one attempt. It returns a `Candidate`, a network that has still to be verified, with a `Certificate`
of its errors and limits; or it raises `StageFailed`, which names the stage, the number and its limit. On the way it
hands its findings so far to `keep`: a network of the input, or of a frame inside input space. `Memory` keeps rows
and answers for later fits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from enum import Enum, auto
from typing import Any, ClassVar, TypeAlias

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.geometry import DistanceNoise, Frame, FramedNetwork, Question
from reluctant.geometry.jumps import SearchedLine
from reluctant.messages import Diagnosis, Notes
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting, Explained, Oracle, Wrapper
from reluctant.oracles.base import Moves
from reluctant.results import Outcome
from reluctant.verification import HeldOutRows
from reluctant.verification.agreement import AskedRows, Verification
from reluctant.verification.label_check import LabelVerification
from reluctant.verification.precision import Precision


@dataclass(frozen=True)
class FittedTop:
    """An output that was fitted on top of hidden layers that are certain, where others are missing between them.

    layers: hidden layers that are certain. right: share of fresh inputs at which the whole is right, to 1e-6 of the
    answers' deviation. median_error: relative to that deviation. rows: fresh inputs.
    """

    layers: int
    right: float
    median_error: float
    rows: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Hybrid:
    """Certain layers below, a fitted output above them: an approximation, never a verified network."""

    network: ReLUNetwork
    top: FittedTop


PartialNetwork: TypeAlias = ReLUNetwork | FramedNetwork | Hybrid
Keep: TypeAlias = Callable[[PartialNetwork], None]  # receives the part that is known so far


def lifted(known: PartialNetwork) -> ReLUNetwork:
    """The known part, as a function of the input itself."""
    if isinstance(known, Hybrid):
        return known.network
    return known.lifted() if isinstance(known, FramedNetwork) else known


def fitted_top(known: PartialNetwork | None) -> FittedTop | None:
    """The facts of an output that was fitted on top; None where there is none."""
    return known.top if isinstance(known, Hybrid) else None


def check_settings(settings: Any, *, may_be_zero: tuple[str, ...] = ()) -> None:
    """Raise InvalidInput unless every number of a settings object is above 0, or at least 0 where that is said.

    A count, which is typed as one, is a whole number of at least 1. None is allowed where it is the default.
    """
    for each in fields(settings):
        value, zero = getattr(settings, each.name), each.name in may_be_zero
        if value is None and each.default is None:
            continue
        counted = str(each.type).partition(" ")[0] == "int"
        if counted and not (isinstance(value, int | np.integer) and value >= (0 if zero else 1)):
            least = "0" if zero else "1"
            raise InvalidInput.about(each.name, got=value, expected=f"a whole number of at least {least}")
        if isinstance(each.default, float) and not (value >= 0 if zero else value > 0):
            raise InvalidInput.about(each.name, got=value, expected="at least 0" if zero else "a number above 0")


class Shows(Enum):
    """What a failed stage says of the target, where the choice of the next method depends on it.

    NOTHING: hard luck, as far as the stage can say. BENT_CREASES: creases bend, so there is another hidden layer.
    OTHER_CREASES: those of some lines do not explain another line, or random inputs. SUBSPACE: those of a line do not
    explain points beside it, in a few directions. WITNESSES: gradients at some points speak against the known part.
    WIDE_LAYER: more neurons than inputs.
    """

    NOTHING = auto()
    BENT_CREASES = auto()
    OTHER_CREASES = auto()
    SUBSPACE = auto()
    WITNESSES = auto()
    WIDE_LAYER = auto()


@dataclass(frozen=True)
class OrientedHyperplanes:
    """All hyperplanes normals @ y + offsets = 0 of a first layer, in coordinates y of a frame.

    normals: (n, k), independent, of norm one; they point to where their neurons are active.
    """

    frame: Frame
    normals: FloatArray
    offsets: FloatArray

    def __len__(self) -> int:
        return len(self.normals)


@dataclass(frozen=True)
class Handover:
    """What a failed stage hands to the next attempt.

    lines: searched lines with their creases.
    first: the first layer, if creases show more than two layers.
    against: rows with answers that its creases do not explain; the next network must.
    """

    lines: tuple[SearchedLine, ...] = ()
    first: OrientedHyperplanes | None = None
    against: HeldOutRows | None = None


NOTHING_TO_HAND_OVER = Handover()


class StageFailed(Exception):
    """A stage failed; another attempt with other random choices may succeed.

    With an outcome no attempt would: the run ends with it, and the diagnosis gives the reason. certain: the stage
    would fail again. shows: facts of the target that follow. raised: type of an exception of the method's own
    arithmetic, instead of a failed stage.
    """

    def __init__(
        self,
        stage: str,
        reason: str,
        *,
        number: float,
        limit: float,
        partial: PartialNetwork | None = None,
        outcome: Outcome | None = None,
        diagnosis: Diagnosis | None = None,
        certain: bool = False,
        shows: Shows = Shows.NOTHING,
        raised: str = "",
        handover: Handover = NOTHING_TO_HAND_OVER,
    ) -> None:
        super().__init__(f"{stage}: {reason} ({number:.2g}, limit {limit:.2g})")
        self.stage, self.reason, self.partial = stage, reason, partial
        self.number, self.limit = float(number), float(limit)  # plain, for records in JSON
        self.outcome, self.diagnosis, self.certain = outcome, diagnosis, certain
        self.shows, self.raised, self.handover = shows, raised, handover


@dataclass(frozen=True)
class Certificate:
    """Standard errors and limits of a recovered network.

    weight_errors: standard error of a weight of each hidden neuron, its output weights being of norm one.
    resolution: a neuron whose slope changes by less than this along a line could hide in the noise; without a neuron
        there is none to measure it by, and it says nothing.
    radius: creases farther from the origin than this were not looked for; infinite where that says nothing.
    width: the number of hidden neurons, up to equivalence: copies of a neuron count once, neurons that do
        nothing not at all.
    condition: condition number of the first layer, where layers above were found through its inverse; they lose
        the digits of it.
    layer: which layer's neurons these are, where there is more than one.
    estimated: errors are standard errors of a fit to answers of few digits, and not bounds.
    sums: units that stand for neurons that are always active, or carry others on: no answer tells more than their sum.
    """

    weight_errors: FloatArray
    resolution: float
    radius: float
    condition: float | None = None
    sums: int = 0
    layer: str = ""
    estimated: bool = False

    @property
    def width(self) -> int:
        """Number of hidden neurons found."""
        return len(self.weight_errors)

    @property
    def notes(self) -> Notes:
        """The neurons, their errors and what could be missing, as diagnoses."""
        badly_conditioned = 1e3  # from here on a condition number is worth a sentence
        place = {"layer": self.layer, "radius": self.radius if np.isfinite(self.radius) else None}
        found = [Diagnosis("no-neuron-found", place)]
        if self.width:
            errors = {"error": float(self.weight_errors.max()), "estimated": self.estimated}
            neurons = {"width": self.width, "resolution": self.resolution}
            found = [Diagnosis("neurons-found", neurons | errors | place)]
        if self.sums:
            found.append(Diagnosis("sums-of-neurons", {"sums": self.sums}))
        if self.condition is not None and self.condition > badly_conditioned:
            found.append(Diagnosis("ill-conditioned", {"condition": self.condition}))
        return Notes(tuple(found))

    def __str__(self) -> str:
        return str(self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        errors, resolution = self.weight_errors.tolist(), self.resolution if self.width else None
        return {
            "weight errors": errors, "resolution": resolution, "radius": self.radius, "width": self.width,
            "condition": self.condition, "sums": self.sums, "layer": self.layer,
        }  # fmt: skip


@dataclass(frozen=True)
class Candidate:
    """A network that has still to be verified."""

    network: ReLUNetwork
    held_out: HeldOutRows | tuple[FloatArray, FloatArray] | None = None  # rows and answers, of a method of your own
    certificate: Certificate | None = None
    limits: Notes | None = None  # what the method cannot know
    precision: Precision | None = None  # the noise to verify at, where the target has few digits
    asked: AskedRows | None = None  # points that it is verified at, asked before the network was made
    rounding: float = 0.0  # unit roundoff of the answers, where the method has read it from them

    def __post_init__(self) -> None:
        if isinstance(self.held_out, tuple):
            rows, answers = (np.asarray(each, dtype=float) for each in self.held_out)
            shapes, n = (rows.shape, answers.shape), len(rows)
            if shapes != ((n, self.network.dim), (n, self.network.outputs)):
                raise InvalidInput.about(
                    "held_out", got=f"rows and answers of shapes {shapes[0]} and {shapes[1]}",
                    expected=f"(n, {self.network.dim}) and (n, {self.network.outputs})",
                )  # fmt: skip
            held_out = HeldOutRows(rows, answers, name="held out", instead=False) if n else None
            object.__setattr__(self, "held_out", held_out)

    @property
    def held_out_rows(self) -> HeldOutRows | None:
        """Rows that it is verified at, with their answers."""
        assert not isinstance(self.held_out, tuple)
        return self.held_out

    @property
    def compared_lines(self) -> bool:
        """True if its method has compared lines with a noise that it has measured, as those for few digits do."""
        return self.precision is not None or self.asked is not None


@dataclass(frozen=True, kw_only=True)
class ComparedCandidate(Candidate):
    """A network with the comparison of a method of this library that does it itself, as those for labels do."""

    verification: LabelVerification | Verification


class Method(ABC):
    """The mathematics of one attempt. `extract` owns attempts, limits and verification.

    needs_space: it asks far from the origin, so the target has to answer everywhere.
    few_digits: it reads answers of few digits (float32, rounding, noise), which exact methods refuse.
    reads_gradients: it uses gradients where the target answers them; float32 is then enough for it.
    reads_labels: it uses labels alone, so that values are neither checked nor read through a link.
    reads_rounded: it fits probabilities of so few decimals that lines show no kink.
    depth_known_from: a stage. From it on the layers explain the lines of the run, and only digits can be missing.
    """

    needs_space: ClassVar[bool] = False
    few_digits: ClassVar[bool] = False
    reads_gradients: ClassVar[bool] = False
    reads_labels: ClassVar[bool] = False
    reads_rounded: ClassVar[bool] = False
    depth_known_from: ClassVar[str] = ""

    @abstractmethod
    def run(self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Keep) -> Candidate:
        """A candidate network, or `StageFailed`.

        Arguments:
            oracle: the target; `with oracle.stage(name):` enters rows under a name.
            noise: the noise of an answer by distance from the origin.
            rng: of this attempt; every other attempt has another.
            keep: call it with the findings so far, a network of the input or of a frame: it is the partial result of
                a run that ends here.
        """


def affine_map(oracle: Counting) -> ReLUNetwork:
    """The map as a network without hidden layer. Cost: d + 1 rows."""
    with oracle.stage("affine", expected=oracle.dim + 1):
        answers = oracle.query(np.vstack([np.zeros(oracle.dim), np.eye(oracle.dim)]))
    return ReLUNetwork([(answers[1:] - answers[0]).T], [answers[0]])


class Memory:
    """Rows with their answers, in the order in which they were asked; nothing once there are more than `most`."""

    def __init__(self, most: int | None = None) -> None:
        self.answers: list[FloatArray] = []
        self._asked: list[FloatArray | Moves] = []
        self._most, self._seen = most, 0

    def keep(self, rows: FloatArray | Moves, answers: FloatArray) -> None:
        """Keep them: copies of rows, descriptions as they are."""
        self._seen += len(rows)
        if self._most is not None and self._seen > self._most:
            self._asked, self.answers = [], []
            return
        self._asked.append(rows if isinstance(rows, Moves) else rows.copy())
        self.answers.append(answers.copy())

    @property
    def rows(self) -> list[FloatArray]:
        """Written out."""
        return [asked.rows() if isinstance(asked, Moves) else asked for asked in self._asked]

    def listening(self, question: Question) -> Question:
        """The same question; what it is asked and answers is kept, without gradients."""

        def asked(rows: FloatArray) -> FloatArray:
            answers = question.answers(rows)
            self.keep(rows, answers)
            return answers

        def explained(rows: FloatArray) -> Explained:
            assert question.explained is not None
            found = question.explained(rows)
            self.keep(rows, found.values)
            return found

        return Question(asked, None if question.explained is None else explained)

    def everything(self) -> tuple[FloatArray, FloatArray]:
        """All rows and their answers."""
        return np.concatenate(self.rows), np.concatenate(self.answers)

    def near(self, distance: float) -> tuple[FloatArray, FloatArray]:
        """Rows within this distance of the origin, with their answers."""
        rows, answers = self.everything()
        near = np.linalg.norm(rows, axis=1) < distance
        return rows[near], answers[near]


class _MemoryOracle(Wrapper):
    """Keeps rows and answers as they pass, of explained answers the values."""

    transparent = True

    def __init__(self, inner: Oracle, memory: Memory, *, explained: bool = False) -> None:
        super().__init__(inner)
        self.memory, self._gives_gradients = memory, explained

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, keep a copy."""
        answers = self.inner.answer(rows)
        values = Explained.unpacked(answers, rows.shape[1]).values if self._gives_gradients else answers
        self.memory.keep(rows, values)
        return answers

    def answer_moves(self, moves: Moves) -> FloatArray:
        """Pass on as they are described, keep what describes them."""
        answers = self.inner.answer_moves(moves)
        self.memory.keep(moves, answers)
        return answers

    def explaining(self, inner: Oracle) -> Oracle:
        """Fits use values alone."""
        return _MemoryOracle(inner, self.memory, explained=True)


def remember(oracle: Counting, most: int | None = None) -> tuple[Counting, Memory]:
    """The same opened target with the same ledger, and a memory of what it answers from now on."""
    memory = Memory(most)
    return Counting(_MemoryOracle(oracle.inner, memory), oracle.ledger, oracle.facts.domain), memory

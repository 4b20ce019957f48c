"""Record types for what the steps find: the interface, each method with its evidence, and the copy.

Errors are relative to the standard deviation of the output unless a field says otherwise. Numbers that are infinite or
unknown are None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np

from reluctant.domains import Domain
from reluctant.estimation import Range
from reluctant.extraction.any_position.accuracy import BumpRisk
from reluctant.learning.student_losses import OwnError
from reluctant.messages import Diagnosis
from reluctant.oracles.input_units import Box

T = TypeVar("T")


def finite(value: Any) -> float | None:
    """A number that JSON can hold; None where it is infinite or unknown."""
    return None if value is None or not np.isfinite(value) else float(value)


def mirror(facts: type[T], source: Any, **others: Any) -> T:
    """Facts whose fields are copied from fields of the same name in `source`; `others` gives the rest."""
    found = {each.name: getattr(source, each.name) for each in fields(facts) if each.name not in others}  # type: ignore[arg-type]
    return facts(
        **{name: finite(value) if isinstance(value, float) else value for name, value in found.items()}, **others
    )


class State(StrEnum):
    """How a step ended. stopped: broken off from outside while it ran; not begun: the stop came before it."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    STOPPED = "stopped"
    NOT_BEGUN = "not begun"


@dataclass(frozen=True)
class NoiseFacts:
    """Deviations of answers: so much absolute, so much of their size."""

    absolute: float | None
    relative: float | None


@dataclass(frozen=True)
class NoiseReadingFacts:
    """Noise at one scale of the inputs."""

    scale: float
    sd: float | None
    magnitude: float | None


@dataclass(frozen=True)
class RawFacts:
    """The answers that a link reads values from: their digits, and whether every one of them was certain."""

    link: str | None
    decimals: int | None
    number_format: str
    certain: bool
    too_coarse: bool


@dataclass(frozen=True)
class TopClasses:
    """Each answer tells the largest few probabilities, of so many classes."""

    largest: int
    classes: int


@dataclass(frozen=True)
class InterfaceFacts:
    """The interface as `check_health` measured it; most fields are those of `Interface`.

    refusal: slug of the outcome that exact methods would end with. of_a_link: probabilities, or answers of a tanh.
    """

    shape: str
    deterministic: bool
    fresh_noise: float | None
    noise: NoiseFacts
    readings: tuple[NoiseReadingFacts, ...]
    spread: float | None
    decimals: int | None
    number_format: str
    answers: str
    nonfinite: int
    largest_scale: float | None
    constant_beyond: float | None
    queries: int
    refusal: str | None = None
    raw: RawFacts | None = None
    top_k: TopClasses | None = None
    percent: bool = False
    tanh: bool = False
    integers: str | None = None
    step_function: bool = False
    class_columns: tuple[int, ...] = ()
    varies_far_out: bool = False
    saturated: bool = False
    of_a_link: bool = False
    more_digits: bool = False


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a method ended: the slug of its outcome, the stage, the rows it spent, why."""

    outcome: str
    ok: bool
    stage: str = ""
    queries: int = 0
    diagnosis: Diagnosis | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SpanFacts(Ending):
    """Directions that the target depends on, of how many inputs.

    from_labels: labels gave them, and values may depend on others. of_the_copy: directions known from the copy alone.
    margin: what counted as nothing over the weakest direction. angle: how far directions are from true ones, as a sine.
    """

    rank: int
    inputs: int
    invisible_share: float | None = None
    margin: float | None = None
    angle: float | None = None
    from_labels: bool = False
    of_the_copy: int = 0


@dataclass(frozen=True)
class AnswerSpaceFacts:
    """The space that the answers lie in: its rank, of how many outputs, and the margin of that rank."""

    rank: int
    outputs: int
    margin: float


@dataclass(frozen=True)
class NetworkShape:
    """Widths and parameters; skip: with a linear part from input to output."""

    widths: tuple[int, ...]
    parameters: int
    skip: bool = False


@dataclass(frozen=True)
class AtUseFacts:
    """Inputs outside the box that was verified: asked, comparable, differing, the largest difference.

    own_scales: of the columns' own sizes, and larger.
    """

    asked: int
    points: int
    differing: int
    largest: float | None
    own_scales: bool = False


@dataclass(frozen=True)
class VerificationFacts:
    """A network compared with the target at new inputs.

    bound: error that no point went beyond; of labels, distance of the boundary in typical inputs. share: the largest
    part of typical inputs, or of the boundary, that may err by more than it and not have been met, with this
    confidence. untested: neurons whose crease does not pass the scale of use.
    """

    ok: bool
    points: int
    max_error: float | None
    rms_error: float | None
    tol: float | None
    bound: float | None
    share: float | None
    confidence: float
    untested: int = 0
    undecided: bool = False
    only_inside: bool = False
    at_use: AtUseFacts | None = None


@dataclass(frozen=True)
class PrecisionFacts:
    """A network from few digits: noise of an answer, what held-out answers leave, its own error at most."""

    ok: bool
    noise: float | None
    residual: float | None
    error: float | None
    ratio: float | None
    cost: float | None


@dataclass(frozen=True)
class LearnedAccuracy:
    """Mean square error under the Gaussian over the variance of the target, with a confidence interval."""

    error: float | None
    low: float | None
    high: float | None
    confidence: float
    points: int


@dataclass(frozen=True)
class Closeness:
    """The limit that a trained network must meet to count as a copy, as a share of one.

    seen: what was seen to differ; most: with what chance may hide; allowed: in a copy. labels: shares are of labels;
    alone is what the commonest label is right for, where that makes `allowed` smaller. open: close enough as measured,
    and perhaps not by chance.
    """

    seen: float
    most: float
    allowed: float
    labels: bool
    open: bool
    alone: float | None = None


@dataclass(frozen=True)
class HeldOut:
    """A trained network at fresh inputs.

    error, high: mean square over the variance of the answers, and with what chance may hide; None of labels.
    of_copy: the network's own part.
    is_bound: the network's own part is known to be below that, and no more.
    agreement: share of equal labels.
    differing: of others, chance included.
    commonest: what one label alone gives.
    labelled: answers have labels.
    gives_labels: it surely gives many more labels than one label alone.
    """

    points: int
    error: float | None
    high: float | None
    agreement: float
    differing: float
    commonest: float
    own: OwnError | None
    repeated: float | None
    labelled: bool
    of_copy: float | None
    is_bound: bool
    gives_labels: bool
    closeness: Closeness | None


@dataclass(frozen=True)
class CertificateFacts:
    """Standard errors and limits of a recovered network, as extraction certifies them."""

    width: int
    largest_weight_error: float | None
    resolution: float | None
    radius: float | None
    condition: float | None
    sums: int
    layer: str
    estimated: bool


@dataclass(frozen=True)
class TrainingFacts:
    """How a network was trained; few_rows: on fewer rows than wanted; hurried: in fewer steps."""

    hidden: tuple[int, ...]
    rows: int
    steps: int
    few_rows: bool
    hurried: bool


@dataclass(frozen=True, kw_only=True)
class RunFacts(Ending):
    """A run that searches for a network: the network, and what speaks for it.

    inside: the box that it kept to, where answers saturate elsewhere. answers, link, own_link: what a
    trained network was trained on, behind which link, and the link of its own where others read answers otherwise.
    timed_out: its time was over before it ended.
    """

    network: NetworkShape | None = None
    verification: VerificationFacts | None = None
    precision: PrecisionFacts | None = None
    accuracy: LearnedAccuracy | None = None
    held_out: HeldOut | None = None
    certificate: CertificateFacts | None = None
    risk: BumpRisk | None = None
    training: TrainingFacts | None = None
    inside: Bounds | None = None
    answers: str | None = None
    link: str | None = None
    own_link: str | None = None
    timed_out: bool = False


@dataclass(frozen=True)
class PartFacts:
    """Neurons of a first layer that extraction found, those the target bends at, their weights and biases."""

    neurons: int
    confirmed: int
    weights: int


class GradientFrom(StrEnum):
    """The source of a gradient."""

    RECOVERED = "recovered-network"
    TRAINED = "trained-network"
    QUERIES = "queries"
    QUERIES_IN_SPAN = "queries-in-span"


@dataclass(frozen=True)
class FlipTry:
    """One input that was tried."""

    outcome: str
    ok: bool
    relative_size: float | None
    classes: tuple[int, int] | None
    queries: int


@dataclass(frozen=True, kw_only=True)
class FlipFacts(Ending):
    """The smallest flip, and every input that was tried.

    relative_size: of the input's norm; scaled_size: that times the root of the number of inputs. threshold: where one
    output changes side, None at 0. start, x: the input and the flipped one, where they are not too long. by: what the
    gradient came from, and the queries that the source had cost before.
    """

    size: float | None
    relative_size: float | None
    scaled_size: float | None
    classes: tuple[int, int] | None
    margins: tuple[float | None, float | None] | None
    threshold: float | None
    start: tuple[float, ...] | None
    x: tuple[float, ...] | None
    tries: tuple[FlipTry, ...]
    median_relative_size: float | None
    by: GradientFrom
    queries_before: int

    def __post_init__(self) -> None:
        if self.start is not None and self.x is not None and len(self.start) != len(self.x):
            raise ValueError("start and x differ in length")


@dataclass(frozen=True)
class Linearity:
    """Change of the gradient by radius, means over the inputs; random_networks: of random ones of this depth."""

    radii: tuple[float, ...]
    random: tuple[float | None, ...]
    along: tuple[float | None, ...]
    floor: float | None
    linear_radius: float | None
    linear_radius_along: float | None
    queries: int
    inputs: int
    by: GradientFrom
    random_networks: tuple[float, ...] | None

    def __post_init__(self) -> None:
        curves = (self.random, self.along, self.random_networks)
        if any(curve is not None and len(curve) != len(self.radii) for curve in curves):
            raise ValueError("the curves and radii differ in length")


# ---- the copy


@dataclass(frozen=True)
class Bounds:
    """low ≤ x ≤ high: a number for all coordinates or one for each; None where there is no bound.

    in_units: bounds count deviations of the inputs around their middle.
    """

    low: float | tuple[float | None, ...] | None = None
    high: float | tuple[float | None, ...] | None = None
    in_units: bool = False

    @classmethod
    def of(cls, domain: Domain) -> Bounds:
        """The bounds of a domain."""
        return cls(_side(domain.low), _side(domain.high))

    @classmethod
    def of_box(cls, box: Box | None) -> Bounds | None:
        """The bounds of the box that a run kept to; None without one."""
        return None if box is None else replace(cls.of(box.domain), in_units=box.in_units)

    @property
    def domain(self) -> Domain:
        """The domain with these bounds."""
        return Domain(_bound(self.low, -np.inf), _bound(self.high, np.inf))

    def describe(self) -> str:
        """One phrase."""
        return str(Box(self.domain, self.in_units))


def _side(bound: Any) -> float | tuple[float | None, ...] | None:
    return finite(bound) if np.ndim(bound) == 0 else tuple(map(finite, np.asarray(bound)))


def _bound(side: float | tuple[float | None, ...] | None, none: float) -> Any:
    if isinstance(side, tuple):
        return np.array([none if each is None else each for each in side])
    return none if side is None else side


class CopyMethod(StrEnum):
    """How a copy was made."""

    EXACT = "exact-extraction"
    FEW_DIGITS = "few-digits"
    LABELS = "labels"
    LEARNING = "learning"
    TRAINING = "training"


class ErrorKind(StrEnum):
    """How the error of a copy was measured.

    every-digit: it explains answers to their last digit. digits: verified to so many digits. held-out: measured at
    inputs that it was not trained on. rms: measured, root mean square. boundary: its decision boundary was verified;
    `largest` is the distance from the target's, in typical inputs. unverified: none of these.
    """

    EVERY_DIGIT = "every-digit"
    DIGITS = "digits"
    HELD_OUT = "held-out"
    RMS = "rms"
    BOUNDARY = "boundary"
    UNVERIFIED = "unverified"


CLOSE = 1e-2  # of the output's deviation, root mean square: a copy this good is one, verified or not


def is_close(error: float | None) -> bool:
    """True if a copy with this error is one, verified or not."""
    return error is not None and error <= CLOSE


@dataclass(frozen=True)
class CopyError:
    """Errors of a copy: the largest seen, at how many inputs, the typical one (rms).

    own: the copy's own error is at most that, where it differs from noise. digits: of a verified one. is_bound:
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
    inside: Bounds | None = None


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
class ShapeRows:
    """Rows that extraction of one shape is expected to take."""

    widths: tuple[int, ...]
    queries: Range


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
    """The expected cost of an attack on such a shape.

    shape: widths of the network before its link; read_as: those of the values that were read, if they differ. reason:
    why there is no number. beyond: sizes of the shape that no measured network reaches, and how many times they are
    larger; empty between measured shapes.
    """

    shape: tuple[int, ...]
    precision: str
    reason: Diagnosis | None = None
    queries: Range | None = None
    answers_per_parameter: Range | None = None
    seconds: Range | None = None
    cost: Range | None = None
    beyond: Mapping[str, float] = field(default_factory=dict)
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

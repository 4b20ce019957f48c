"""`Measured`: the facts in the evidence of a result, each under a name and a type.

The `evidence` of a result is a dictionary, for readers and for files. Later layers decide by these facts alone: a key
that changes its name, or holds another type, changes in this one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from reluctant.domains import Domain
from reluctant.extraction.any_position.accuracy import Accuracy, BumpRisk
from reluctant.extraction.crease_depth import CreaseKinds
from reluctant.extraction.ladder import Attempt, Attempts
from reluctant.extraction.method import Certificate
from reluctant.geometry.creases import LineSearch
from reluctant.interface import Interface
from reluctant.interface.kinds import IntegerKind
from reluctant.learning.student import Training
from reluctant.learning.student_losses import HeldOutError
from reluctant.messages import Diagnosis
from reluctant.messages.diagnosis import Notes
from reluctant.oracles import Kind
from reluctant.oracles.input_units import Box
from reluctant.results import Ended
from reluctant.verification import Verification
from reluctant.verification.label_check import LabelVerification
from reluctant.verification.own_scales import OwnScales
from reluctant.verification.precision import PrecisionCheck

COPY_DIRECTIONS = "directions of the copy"  # of a span: how many are known from the copy alone
OWN_LINK = "own link"  # of a network that was trained on answers which others read through a link

Fact = TypeVar("Fact")


@dataclass(frozen=True)
class Measured:
    """What a run measured; None where it did not measure that.

    inside: the box that it stayed in.
    clipped: the range that inputs seem to be clipped to.
    to_accuracy: it was to reach a given error.
    from_labels: it used labels alone.
    gradients: why what the target gave for gradients was not used.
    above: one output was above its threshold.
    copy_directions: directions of a span that are known from the copy alone.
    elsewhere: what shows that inputs are not where questions were asked.
    own_scales: the comparison at rows of the columns' own sizes.
    """

    health: Interface | None
    verification: Verification | LabelVerification | None
    precision: PrecisionCheck | None
    accuracy: Accuracy | None
    held_out: HeldOutError | None
    training: Training | None
    certificate: Certificate | None
    risk: BumpRisk | None
    layers: CreaseKinds | None
    line_search: LineSearch | None
    inside: Box | None
    clipped: Domain | None
    answers: Kind | None
    link: str | None
    own_link: str | None
    whole: IntegerKind | None
    limits: Notes
    attempts: tuple[Attempt, ...]
    failures: tuple[str, ...]
    above: bool | None
    threshold: float | None
    to_accuracy: bool
    from_labels: bool
    gradients: Diagnosis | None
    copy_directions: int
    elsewhere: Diagnosis | None
    own_scales: OwnScales | None

    @classmethod
    def of(cls, run: Ended) -> Measured:
        """The facts of a result."""
        evidence = run.evidence
        clipped, attempts, answers = (evidence.get(key) for key in ("clipped", "attempts", "answers"))
        return cls(
            health=evidence.get("health"),
            verification=evidence.get("verification"),
            precision=evidence.get("precision"),
            accuracy=_of_type(evidence, "accuracy", Accuracy),
            held_out=_of_type(evidence, "accuracy", HeldOutError),
            training=evidence.get("training"),
            certificate=evidence.get("certificate"),
            risk=evidence.get("risk"),
            layers=evidence.get("layers"),
            line_search=evidence.get("line search"),
            inside=evidence.get("inside"),
            clipped=None if clipped is None else Domain(*clipped),
            answers=None if answers is None else Kind(answers),
            link=evidence.get("link"),
            own_link=evidence.get(OWN_LINK),
            whole=evidence.get("whole"),
            limits=evidence.get("limits", Notes()),
            attempts=tuple(attempts.entries) if isinstance(attempts, Attempts) else (),
            failures=tuple(evidence.get("failures", ())),
            above=evidence.get("above"),
            threshold=evidence.get("threshold"),
            to_accuracy="eps" in evidence,
            from_labels="labels" in evidence,
            gradients=_of_type(evidence, "gradients", Diagnosis),
            copy_directions=int(evidence.get(COPY_DIRECTIONS, 0)),
            elsewhere=evidence.get("elsewhere"),
            own_scales=evidence.get("own scales"),
        )

    @property
    def value_check(self) -> Verification | None:
        """The comparison of a network with values; None where labels were compared, or nothing was."""
        return self.verification if isinstance(self.verification, Verification) else None

    @property
    def label_check(self) -> LabelVerification | None:
        """The comparison of a network with labels; None where values were compared, or nothing was."""
        return self.verification if isinstance(self.verification, LabelVerification) else None


def _of_type(evidence: Mapping[str, Any], key: str, wanted: type[Fact]) -> Fact | None:
    found = evidence.get(key)
    return found if isinstance(found, wanted) else None

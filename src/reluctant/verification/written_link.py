"""Verification of a network with a link: target and network in a comparable form.

The target may answer probabilities behind that link, the largest few of them, or the values before it. A few questions
tell which; labels and probabilities that noise has moved are refused: no network can be compared with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from reluctant.errors import InvalidInput, LinkMismatch
from reluctant.interface.kinds import find_top_k
from reluctant.interface.noise import RawDigits, answer_kind, in_unit
from reluctant.networks import ReLUNetwork
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Counting, Kind, Linked
from reluctant.oracles.links import NOISY_SLACK, ToFirst, answer_ends, in_percent, last_raw_answers, noun_behind
from reluctant.verification.agreement import Verification, verify

LINK_ROWS = 3  # asked to see what the target answers
LARGEST_ROWS = 12  # asked to see how many of its probabilities it tells
FAR = 100.0  # scale at which values are hardly between 0 and 1 by chance
MOSTLY = 0.9  # of the rows


class ComparedForm(StrEnum):
    """The form in which a target and a network were compared."""

    AS_GIVEN = "as given"
    THROUGH_LINK = "through the link"
    LARGEST_FEW = "the largest probabilities through a softmax"
    BEFORE_LINK = "before the link"
    DIFFERENCES = "differences to the first class, before the link"


def verify_as_written(
    oracle: Counting, network: ReLUNetwork, *, rng: Rng = 1, tol: float | None = None, points: int = 64
) -> tuple[Verification, ComparedForm]:
    """Compare a target, opened without a link, with a network in the form that the network was written for.

    Cost: that of `verify`; behind a link 3 rows more, and 12 where a target tells its largest probabilities alone.
    """
    if network.link == "identity" or network.outputs != oracle.outputs:
        return verify(oracle, network, rng=rng, tol=tol, points=points), ComparedForm.AS_GIVEN
    written = _Written(oracle, network, rng)
    read, form = written.read()
    try:
        return verify(read, network, rng=rng, tol=tol, points=points), form
    except LinkMismatch as error:
        if read is oracle:
            raise
        written.refuse(read, error)
    read, form = written.before_link()
    return verify(read, network, rng=rng, tol=tol, points=points), form


@dataclass(frozen=True)
class _Written:
    """A target that may answer behind the link of a network, or before it."""

    oracle: Counting
    network: ReLUNetwork
    rng: Rng

    def read(self) -> tuple[Counting, ComparedForm]:
        """The target in the form that the network was written for."""
        link, refused = self.network.link, None
        read = self._through(Linked(self.oracle.inner, link))
        try:
            read.answer(self._rows())
        except LinkMismatch as error:
            refused = error
        if link == "softmax" and self._tells_largest_few(last_raw_answers(read)):
            return self._through(Linked(self.oracle.inner, "top-k")), ComparedForm.LARGEST_FEW
        if refused is not None:
            self.refuse(read, refused)
            return self.before_link()
        return read, ComparedForm.THROUGH_LINK

    def before_link(self) -> tuple[Counting, ComparedForm]:
        """A target that answers values; a network of log-ratios has only their differences to the first."""
        if self.network.link in ELEMENTWISE_LINKS or not _holds_log_ratios(self.network):
            return self.oracle, ComparedForm.BEFORE_LINK
        return self._through(ToFirst(self.oracle.inner)), ComparedForm.DIFFERENCES

    def refuse(self, read: Counting, error: LinkMismatch) -> None:
        """Raise of labels, percentages and noisy probabilities: what the link refused is no answer of values."""
        link, behind, p = self.network.link, RawDigits.last_of(read), last_raw_answers(read)
        if p is not None and in_percent(p):
            raise error
        if behind is not None and behind.certain:
            fix = "Compare labels alone: rl.verify_labels(...), or --labels."
            raise _refused(f"labels, nothing but {behind.ends('and')}", fix) from error
        if link == "sigmoid" and p is not None and answer_kind(p) is Kind.PROBABILITIES:
            raise InvalidInput.about(
                "target", got="probabilities that sum to one, as a softmax gives them",
                expected="independent ones, as of the sigmoid that the network was written with",
                fix="Hold it against a network that was written with a softmax.",
            ) from error  # fmt: skip
        if _add_up(p) or (link in ELEMENTWISE_LINKS and self._stay_between()):
            fix = "How close a network comes to them, train_student and audit measure."
            raise _refused(f"{noun_behind(link)} that noise has moved, which no link reads", fix) from error

    def _through(self, wrapper: Linked | ToFirst) -> Counting:
        return self.oracle.around(wrapper)

    def _rows(self, scale: float = 1.0, rows: int = LINK_ROWS) -> FloatArray:
        return self.oracle.facts.domain.sample(as_generator(self.rng), rows, self.oracle.dim, scale)

    def _tells_largest_few(self, few: FloatArray | None) -> bool:
        """True if the target tells its largest probabilities alone: each of these few rows misses some."""
        if few is None or not ((few == 0) | np.isnan(few)).any(axis=1).all():
            return False
        return find_top_k(self.oracle.answer(self._rows(rows=LARGEST_ROWS)), no_values=True) is not None

    def _stay_between(self) -> bool:
        """True if far out answers are those of its link, but for noise, and the network's values are not."""
        rows, (low, high) = self._rows(FAR), answer_ends(self.network.link)
        answers, values = ((each - low) / (high - low) for each in (self.oracle.answer(rows), self.network(rows)))
        return in_unit(answers, NOISY_SLACK) and not in_unit(values, NOISY_SLACK)


def _add_up(p: FloatArray | None) -> bool:
    """True of probabilities of classes, but for noise."""
    if p is None or not in_unit(p, NOISY_SLACK):
        return False
    return bool(np.mean(np.abs(p.sum(axis=1) - 1) < NOISY_SLACK) >= MOSTLY)


def _refused(got: str, fix: str) -> InvalidInput:
    return InvalidInput.about("target", got=got, expected="values or probabilities to hold a network against", fix=fix)


def _holds_log_ratios(network: ReLUNetwork) -> bool:
    """True if the first of several outputs is 0 everywhere."""
    parts = [network.biases[-1][0], *(w[0] for w in network.incoming(network.depth).values())]
    return not any(np.any(part) for part in parts)

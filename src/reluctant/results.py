"""What a method gives back: a frozen result with a named outcome, what it cost and what it is based on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Any, Self

from reluctant.errors import LinkMismatch, NonFiniteAnswer, NotRecovered, TargetError
from reluctant.networks import ReLUNetwork
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.oracles.base import Oracle
from reluctant.oracles.ledger import Rows
from reluctant.oracles.links import link_of, written_link

__all__ = ["UNSETTLED", "Ended", "Outcome", "Result", "ended_by"]


class Outcome(Enum):
    """How a run ended: a slug, what happened, what to try."""

    RECOVERED = ("recovered", "The network was recovered and passed verification.", "")
    LEARNED = ("learned", "A network was learned to the accuracy asked for.", "")
    NOT_ACCURATE = (
        "not-accurate-enough",
        "No network was found that is as accurate as asked for; the best one is given, with its error.",
        "More rows may help. Where values or probabilities are answered, so may more digits, or a larger error that "
        "is allowed (eps=, learn --eps); of labels one in a hundred may differ.",
    )
    UNVERIFIED = (
        "unverified",
        "A network was found, but it does not agree with the target everywhere it was checked.",
        "Look at what failed; try another seed or more attempts.",
    )
    PARTIAL = (
        "partial",
        "Only a part of the network was recovered.",
        "Most likely it is deeper or wider than the method can follow, or has neurons too close to each other; "
        "see what failed.",
    )
    SPAN_RECOVERED = (
        "span-recovered",
        "Every direction that the target looks at was found: long steps along all others change nothing.",
        "",
    )
    FULL_RANK = (
        "full-rank",
        "The target looks at every direction of its input: no part of it is invisible.",
        "",
    )
    SPAN_PARTIAL = (
        "span-partial",
        "Not all directions that the target looks at were found, or not all that were found are its own.",
        "Nothing here was verified. Try another seed, inputs of the target's own kind (inputs=, --inputs), or answers "
        "with more digits.",
    )
    RANK_UNCLEAR = (
        "rank-unclear",
        "How many directions the target looks at cannot be told from its answers: the weakest are lost in their noise.",
        "Ask for more digits, or open a local model with precision='float64' (--precision float64).",
    )
    ONE_LABEL = (
        "one-label",
        "The target gave the same label everywhere it was asked.",
        "Give the domain of its inputs (--domain LOW,HIGH), inputs of different labels (inputs=, --inputs), or another "
        "threshold (--threshold).",
    )
    CONSTANT = (
        "constant",
        "The target gave the same answer everywhere it was asked.",
        "Check that inputs are in the range it expects, and give its domain.",
    )
    NOT_PIECEWISE_LINEAR = (
        "not-piecewise-linear",
        "The target is curved at small scale, as probabilities are: its answers are not the values of a ReLU network.",
        "Use extract with link='softmax', 'sigmoid' or 'tanh' (--link) on what such a link makes, with all its digits "
        "(float64 or float32). On rounded ones a network can be trained (rl.train_student, audit), and the span of a "
        "smooth network can be taken from its labels (labels=True, span --labels).",
    )
    PIECEWISE_CONSTANT = (
        "piecewise-constant",
        "The answers do not change under small steps: labels, or numbers rounded so coarsely that they say no more.",
        "No weights and no gradients can be read from them. A network can be trained on them (rl.train_student, "
        "audit), and the span can be taken from labels (labels=True, span --labels).",
    )
    LOW_PRECISION = (
        "low-precision",
        "The answers carry too few digits to recover the network: the method for few digits (float32, rounding, "
        "noise) could not be used on them, or did not succeed.",
        "If the target is a local model, open it with precision='float64' (--precision float64).",
    )
    OUT_OF_REACH = (
        "out-of-reach",
        "The target does not answer far from the origin, where this method looks: its range ends before, or its "
        "answers saturate there, or are not told.",
        "Give the range, if it has one (--domain LOW,HIGH). Use extract on those of a link with all their digits "
        "(float64 or float32): it looks by itself inside a box in which they do not saturate. On rounded ones, and "
        "on the largest alone, a network can be trained, without the link (rl.train_student, audit); the span can be "
        "had from labels alone (labels=True, span --labels).",
    )
    TOO_NOISY = (
        "too-noisy",
        "The answers are too noisy or too coarse against their spread to see what is looked for, or labels change when "
        "they are asked for again.",
        "Average repeated answers at the target if they are noisy; ask for more digits if they are rounded.",
    )
    NON_FINITE = (
        "non-finite",
        "The target answers NaN or inf where it was asked.",
        "Give the domain in which it is defined: domain=(low, high) (--domain LOW,HIGH).",
    )
    OUT_OF_BUDGET = (
        "out-of-budget",
        "The query budget ran out.",
        "Raise the budget; with a transcript, run again on it and nothing is paid twice.",
    )
    TARGET_FAILED = (
        "target-failed",
        "The target stopped answering properly.",
        "See what it said. If it answers only in some range, or few rows at once, say so (--domain LOW,HIGH, --batch); "
        "else mend it. With a transcript, run again on it and go on where it stopped.",
    )
    WRONG_LINK = (
        "wrong-link",
        "The target's answers are not such as this link reads.",
        "See what it answered, and give the link that it has (link=, --link), or none if it answers values or labels.",
    )

    FLIPPED = ("flipped", "A change of the input flips the target.", "")
    NOT_FLIPPED = (
        "not-flipped",
        "One gradient step did not flip the {}, as far as it was followed.",
        "Allow more steps (steps=3, --steps 3): each goes on from where the last one led; or start from another input.",
    )
    ON_BOUNDARY = (
        "on-boundary",
        "The {} is undecided at this input: the sign or the winning class is within the noise or rounding of its "
        "answers.",
        "Start from an input that is clearly on one side.",
    )
    FLAT = (
        "flat",
        "The {} does not change around this input, so there is no gradient to follow.",
        "Start from another input.",
    )

    def __init__(self, slug: str, happened: str, advice: str) -> None:
        self.slug = slug
        self.template = happened  # {}: what it happened to
        self.advice = advice

    @property
    def happened(self) -> str:
        """What happened, in words: to the target."""
        return self.happened_to("target")

    def happened_to(self, what: str) -> str:
        """The same of a network that stands for the target, where that can be."""
        return self.template.format(what)

    def __str__(self) -> str:
        return f"{self.happened} {self.advice}".strip()

    @property
    def settles(self) -> bool:
        """True if the method found what it looks for, or the target gives it nothing to find that in.

        False where it was cut short, or went part of the way: another run, with more rows, time or digits, may find
        more. Who reads such an outcome may not take it for the absence of a leak.
        """
        return self not in OPEN


OPEN = frozenset(
    {
        Outcome.CONSTANT,
        Outcome.NON_FINITE,
        Outcome.ONE_LABEL,
        Outcome.ON_BOUNDARY,
        Outcome.OUT_OF_BUDGET,
        Outcome.OUT_OF_REACH,
        Outcome.PARTIAL,
        Outcome.RANK_UNCLEAR,
        Outcome.SPAN_PARTIAL,
        Outcome.TARGET_FAILED,
        Outcome.TOO_NOISY,
        Outcome.UNVERIFIED,
        Outcome.WRONG_LINK,
    }
)


UNSETTLED = frozenset(outcome.slug for outcome in OPEN)  # as records have them: they say nothing of a longer run


def ended_by(error: TargetError, oracle: Oracle) -> Outcome:
    """The outcome of a run that an error of the target ended; saturated probabilities and wrong links are its own."""
    if isinstance(error, LinkMismatch):
        return Outcome.WRONG_LINK
    saturated = isinstance(error, NonFiniteAnswer) and oracle.facts.saturates
    return Outcome.OUT_OF_REACH if saturated else Outcome.TARGET_FAILED


class Ended(ABC):
    """What every result of a method has: how and where it ended, the numbers that decided, rows by stage."""

    outcome: Outcome
    rows: Mapping[str, Rows]
    stage: str
    evidence: Mapping[str, Any]

    @property
    @abstractmethod
    def ok(self) -> bool:
        """True only if the method reached what it promises, and checked it."""

    @property
    def queries(self) -> int:
        """Rows that reached the target in this call, verification included."""
        return sum(self.rows.values(), Rows()).queries

    def raise_for_status(self) -> Self:
        """Return self if ok, else raise `NotRecovered` with the same information."""
        if self.ok:
            return self
        where = f" (stage: {self.stage})" if self.stage else ""
        raise NotRecovered(f"{self.outcome}{where} {self.queries} queries were spent.", result=self)

    def ending(self) -> dict[str, Any]:
        """The shared part as plain data."""
        evidence = {
            name: value.to_dict() if hasattr(value, "to_dict") else value for name, value in self.evidence.items()
        }
        return {
            "outcome": self.outcome.slug,
            "text": str(self.outcome),
            "ok": self.ok,
            "stage": self.stage,
            "queries": self.queries,
            "evidence": evidence,
        }


@dataclass(frozen=True)
class Result(Ended):
    """Outcome of a method that looks for a network.

    `network` is the verified network if `ok`, else the best partial one or None. It has as many outputs as the target
    answers; behind a softmax they are logits, the first of them 0. `stage` is where the run
    ended; `evidence` holds the numbers that decided. `rows` counts by stage.
    """

    outcome: Outcome
    network: ReLUNetwork | None
    rows: Mapping[str, Rows]
    stage: str = ""
    evidence: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def ok(self) -> bool:
        """True only if the network passed verification, or was measured to be as accurate as asked for."""
        return self.outcome in {Outcome.RECOVERED, Outcome.LEARNED}

    def with_classes(self, oracle: Oracle) -> Self:
        """The same with a network of all classes, the first 0, where the target's softmax left log-ratios to read.

        The link is noted in the network: what it makes of the network's values are the target's answers.
        """
        link = link_of(oracle)
        if self.network is None or link is None or not oracle.facts.reference:
            return self
        return replace(self, network=self.network.before_link(written_link(link)))

    def with_log_ratios(self) -> Self:
        """The same with a network of the values that were read: log-ratios, where it has all classes of a softmax."""
        if self.network is None or self.network.link in ELEMENTWISE_LINKS:
            return self
        return replace(self, network=self.network.log_ratios())

    def as_written(self, link: str) -> ReLUNetwork:
        """The network as it is written and shown: with the link that answers were read through, and all its classes.

        One that was trained on answers as they are, where others read them through a link, has a link of its own.
        """
        network, own = self.network, self.evidence.get("own link")
        assert network is not None
        if own is None:
            return network.before_link(written_link(link))
        return ReLUNetwork(network.weights, network.biases, network.skip, own)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the outcome, what was recovered, what it cost, what it is based on."""
        network = self.network
        shape = None if network is None else {"widths": network.widths, "parameters": network.parameters}
        return {
            **self.ending(),
            "network": shape and shape | {"skip": network is not None and network.skip is not None},
        }

    def __repr__(self) -> str:
        return f"Result({self.outcome.slug}, {self.network!r}, queries={self.queries})"

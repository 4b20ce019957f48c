"""The link that answers show by themselves, and the target as it is read through it.

A verb checks the answers as they are. Where nobody gave a link and only one explains them, the verb goes on with the
values behind it. Straight pieces behind a link, where the answers are curved, prove it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reluctant.errors import TargetError
from reluctant.interface.health import Interface, examine
from reluctant.interface.noise import answer_kind, ask
from reluctant.oracles.base import Kind
from reluctant.oracles.ledger import Counting
from reluctant.oracles.links import AnswerLink, Linked, PlainProbabilities, ProbabilityFormat
from reluctant.results import Outcome

FEW_ROWS = 12  # asked to tell what kind of answers they are; all honest inputs may have the other label
# Refusals of answers that a link may explain, and of values behind one that is there all the same.
OF_ANSWERS = (Outcome.NOT_PIECEWISE_LINEAR, Outcome.TOO_NOISY, Outcome.NON_FINITE)
OF_VALUES = (None, Outcome.NON_FINITE, Outcome.NOT_PIECEWISE_LINEAR)


@dataclass(frozen=True)
class ReadTarget:
    """A target read through the link that its answers show, and its interface then."""

    oracle: Counting
    health: Interface
    link: AnswerLink
    percent: bool

    def evidence(self) -> dict[str, Any]:
        """For the result."""
        return {"health": self.health, "found link": self.link} | ({"percent": True} if self.percent else {})


def find_link(oracle: Counting, served: Interface, rng: np.random.Generator, lines: int) -> ReadTarget | None:
    """The target behind the link of its answers; None where the user gave one, or none explains them.

    Cost: none for values and labels; else a second health check, and 12 rows for curved answers of several outputs.
    """
    if not oracle.unread or served.step_function or served.refusal not in OF_ANSWERS:
        return None
    link = likely_link(oracle, served, rng)
    if link is None:
        return None
    writing = probability_format(served)
    plain = oracle.inner if writing is None else PlainProbabilities(oracle.inner, writing)
    read = Counting(Linked(plain, link), oracle.ledger, oracle.facts.domain, oracle.facts.samples)
    try:
        behind = examine(read, rng, lines)
    except TargetError:
        return None
    unreadable = behind.raw is not None and (behind.raw.certain or behind.raw.too_coarse)
    allowed = OF_VALUES if served.are_of_a_link else (None,)
    return None if unreadable or behind.refusal not in allowed else ReadTarget(read, behind, link, served.percent)


def likely_link(oracle: Counting, served: Interface, rng: np.random.Generator) -> AnswerLink | None:
    """What may stand after the values; None where nothing does, or noise would hide it."""
    if served.top_k is not None:
        return "top-k" if served.top_k.all_but_one else None
    if served.answers is Kind.PROBABILITIES:
        return "softmax"
    if served.tanh:
        return "tanh" if served.deterministic else None
    if served.refusal is Outcome.NOT_PIECEWISE_LINEAR and _are_log_probabilities(oracle, rng):
        return "log-softmax"
    known = oracle.facts.kind is Kind.PROBABILITIES
    curved = served.refusal is Outcome.NOT_PIECEWISE_LINEAR and served.may_be_sigmoids
    return "sigmoid" if (known or curved) and served.deterministic else None


def _are_log_probabilities(oracle: Counting, rng: np.random.Generator) -> bool:
    """True if the exponentials of curved answers add up to one. Cost: none for one output."""
    if oracle.outputs == 1:
        return False
    answers = ask(oracle, oracle.facts.domain.sample(rng, FEW_ROWS, oracle.dim))
    with np.errstate(over="ignore"):
        return answer_kind(np.exp(answers)) is Kind.PROBABILITIES


def probability_format(served: Interface) -> ProbabilityFormat | None:
    """How probabilities are written, None of plain ones and of other answers."""
    hidden = served.top_k is not None and served.refusal is Outcome.NON_FINITE
    number_format = served.number_format if served.decimals is None else None
    return ProbabilityFormat(served.percent, number_format, hidden) if served.percent or hidden else None

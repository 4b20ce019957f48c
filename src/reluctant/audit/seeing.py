"""A target as the steps of an audit see it: written plainly, read through a link, one output of many, in a range."""

from __future__ import annotations

from collections.abc import Collection

from reluctant.audit.tidied import Tidied
from reluctant.domains import Domain
from reluctant.oracles import Counting, Linked, Selected
from reluctant.oracles.links import AnswerLink, PlainProbabilities, ProbabilityFormat

__all__ = ["seen"]


def seen(
    oracle: Counting,
    link: AnswerLink,
    output: int | None,
    inside: Domain | None = None,
    *,
    noisy: bool = False,
    written: ProbabilityFormat | None = None,
    without: Collection[int] = (),
) -> Counting:
    """The same target as it is looked at: its probabilities turned back into values, one output of many, in a range.

    noisy: they have noise on them, and are put right before a link reads them; written: they are not written plainly;
    without: outputs that are left out before all else.
    """
    kept = [k for k in range(oracle.outputs) if k not in without]
    rest = Selected(oracle.inner, kept) if without else oracle.inner
    plain = rest if written is None else PlainProbabilities(rest, written)
    answered = Tidied(plain, link) if noisy and link != "identity" else plain
    values = answered if link == "identity" else Linked(answered, link)
    chosen = values if output is None else Selected(values, output)
    return Counting(chosen, oracle.ledger, oracle.facts.domain if inside is None else inside)

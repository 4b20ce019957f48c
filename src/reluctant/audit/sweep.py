"""The defense sweep as data: what each defense would leave of a local copy, and what follows from it in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluctant.audit.leak import NO_DEFENSE, OF_LABELS, Leak
from reluctant.audit.leaking import BUDGET
from reluctant.audit.sweep_facts import StandsFor
from reluctant.audit.trained import MODEL, trained_sentence
from reluctant.defenses.registry import defense_words
from reluctant.domains import Domain
from reluctant.percentages import percentage

__all__ = ["TRAINED", "Sweep"]

TRAINED = "the trained network"
STAND_INS = {TRAINED: StandsFor.TRAINED, "the recovered network": StandsFor.RECOVERED}
ON_A_STUDENT = (
    "What each defense leaves of the span, and of a network trained on the answers, was tried on the trained network; "
    "what stops exact recovery cannot be seen there."
)


@dataclass(frozen=True)
class Sweep:
    """Rows of the sweep in the order tried, and the cheapest defense that stops a copy.

    on: what stood for the model. base: digits of its answers without any defense. failed: defenses that could not be
    tried, with the reason. sampled: the inputs are random ones, of this domain; count: how many.
    """

    on: str
    rows: tuple[Leak, ...]
    base: float
    inputs: str
    failed: tuple[tuple[str, str], ...] = ()
    sampled: bool = False
    count: int = 0
    domain: Domain | None = None

    @property
    def stands_for(self) -> StandsFor:
        """What stood for the model."""
        return STAND_INS.get(self.on, StandsFor.FILE)

    @property
    def cheapest(self) -> Leak | None:
        """The defense that lets no verified or accurate copy through and costs honest users least; None if none."""
        stopping = [row for row in self.rows if row.defense != NO_DEFENSE and row.stopped]
        return min(stopping, key=_cost, default=None) if self.open else None

    @property
    def open(self) -> bool | None:
        """True if the model can be copied without any defense, None if that is not settled."""
        bare = [row.stopped for row in self.rows if row.defense == NO_DEFENSE]
        return not bare[0] if bare and bare[0] is not None else None

    @property
    def sentence(self) -> str:
        """What follows from it, in words."""
        if not self.rows:
            return "No defense could be tried."
        if self.open is not True:
            return self._nothing_to_stop()
        undecided = _by_ending(row for row in self.rows if row.stopped is None)
        open_ = f" Not decided: {undecided}." if undecided else ""
        if self.cheapest is None:
            said = "None of the defenses that were tried is known to stop exact recovery."
            return f"{said}{open_} {self._trained(None)}"
        return (
            f"The cheapest defense that stopped exact recovery is {defense_words(self.cheapest.defense)} "
            f"({self.cheapest.ending_in_full}); {_for_users(self.cheapest)}.{_span_left(self.cheapest)} "
            f"{self._trained(self.cheapest)}{self._stopped_too()}{open_}"
        )

    @property
    def model(self) -> str:
        """What errors are told of: a trained network has errors of its own, which these do not have in them."""
        return TRAINED if self.on == TRAINED else MODEL

    def _trained(self, cheapest: Leak | None) -> str:
        return trained_sentence(self.rows, cheapest, sampled=self.sampled, model=self.model)

    def _stopped_too(self) -> str:
        rows = (row for row in self.rows if row.stopped and row.defense != NO_DEFENSE and row is not self.cheapest)
        return f" Stopped too: {others}." if (others := _by_ending(rows)) else ""

    def _nothing_to_stop(self) -> str:
        """Without a copy no defense can be seen to stop one."""
        if self.on == TRAINED:
            return f"{ON_A_STUDENT} {self._trained(None)}"
        said = "Nothing was rebuilt even without a defense"
        if self.open is None:
            said = "Whether the network can be rebuilt without a defense is not settled"
        defended = [row for row in self.rows if row.defense != NO_DEFENSE]
        if any(row.tried for row in defended):
            return f"{said}, so none can be said to stop that. {self._trained(None)}"
        also = ", and of a network trained on the answers" if any(row.trained for row in defended) else ""
        return f"{said}; only what each leaves of the span{also} was tried. {self._trained(None)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "on": self.on,
            "budget": BUDGET,
            "inputs": self.inputs,
            "rows": [row.to_dict() | {"digits": self.digits(row)} for row in self.rows],
            "failed": [{"defense": name, "why": why} for name, why in self.failed],
            "cheapest": None if self.cheapest is None else self.cheapest.defense,
            "sentence": self.sentence,
        }

    def digits(self, row: Leak) -> float | None:
        """Decimal digits that honest users still get, of the answers' deviation; None where they get other answers."""
        error = row.honest.rms_error
        if np.isnan(error):
            return None
        return self.base if error == 0 else float(min(self.base, -np.log10(error)))


def _by_ending(rows: Iterable[Leak]) -> str:
    """Defenses in words, those that ended alike together."""
    alike: dict[str, list[str]] = {}
    for row in rows:
        alike.setdefault(row.ending, []).append(defense_words(row.defense))
    return "; ".join(f"{', '.join(names)} ({ending})" for ending, names in alike.items())


def _span_left(row: Leak) -> str:
    """What it leaves of the span, where that is less than all directions."""
    span = row.span
    if span is None or not span.ok or span.rank >= span.subspace.dim:
        return ""
    directions = f"{span.rank} of {span.subspace.dim} directions"
    if span.evidence.get(OF_LABELS) and "labels" not in row.defense:
        return f" It leaves what labels show of the span: {directions}; values may show more."
    return f" It leaves the span: {directions} are all that count."


def _for_users(row: Leak) -> str:
    honest = row.honest
    if np.isnan(honest.rms_error):
        return f"honest users get other answers than before, and keep {percentage(honest.agreement)} of labels"
    if honest.rms_error == 0:
        return "honest users lose no digit of it"
    return (
        f"honest users see an error of {honest.rms_error:.1e} of the answers' deviation and keep "
        f"{percentage(honest.agreement)} of labels"
    )


# Defenses after which users get other answers, by how much these tell.
TELLS_LESS = ("softmax", "top", "labels")


def _cost(row: Leak) -> tuple[int, float, float]:
    """Other answers cost more than an error, and most where least is told; then the error, the labels that change."""
    error, other = row.honest.rms_error, bool(np.isnan(row.honest.rms_error))
    less = max((k for k, name in enumerate(TELLS_LESS) if name in row.defense), default=0)
    return (1 + less if other else 0), 0.0 if other else error, 1 - row.honest.agreement

"""What tests of the audit share: the quick steps, a target that counts its rows, a look at one step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reluctant.audit import STEPS
from reluctant.audit.leak import Leak, Rebuilt
from reluctant.defenses import HonestCost
from reluctant.results import Outcome, Result

QUICK = tuple(name for name in STEPS if name != "defenses")
UNTRAINED = [name for name in QUICK if name != "training"]


class Rows:
    """A function that counts the rows it has answered."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.seen = function, 0

    def __call__(self, x: Any) -> Any:
        self.seen += len(x)
        return self.function(x)


def step(record: dict[str, Any], name: str) -> dict[str, Any]:
    """How one step went."""
    return next(each for each in record["steps"] if each["step"] == name)


def row_of(name: str, error: float, ok: bool, *, undecided: bool = False, copied: float = 1.0) -> Leak:
    """A row of the sweep: extraction gave a copy that is off by this, or ended for few digits."""
    outcome = Outcome.RECOVERED if ok else Outcome.LOW_PRECISION
    rebuilt = Rebuilt("extract", Result(outcome, None, {}), copied, undecided=undecided)
    return Leak(name, HonestCost(error, error, 1.0, 10), None, rebuilt)

"""What tests of the audit share: the quick steps, a target that counts its rows, a look at one step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reluctant.audit import STEPS

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

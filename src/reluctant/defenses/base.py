"""A defense is a wrapper with a name; one that always answers the same has an identity as well."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from reluctant.oracles.base import Facts, Oracle, Wrapper

__all__ = ["Defense"]


class Defense(Wrapper):
    """An oracle around an oracle that gives less away.

    `title` is how it was asked for, such as "decimals=3". `repeatable` defenses answer a row the same every time,
    so that a transcript knows the defended target by its identity.
    """

    title: str = ""
    repeatable: ClassVar[bool] = True

    def __init__(self, inner: Oracle) -> None:
        super().__init__(inner)
        self.title = self.title or type(self).__name__

    @property
    def facts(self) -> Facts:
        """Facts of what is left."""
        inner = self.inner.facts
        known = bool(inner.identity) and self.repeatable
        identity = f"{inner.identity} behind {self.title}" if known else ""
        return replace(inner, identity=identity, **self.changes(inner))

    def changes(self, facts: Facts) -> dict[str, Any]:
        """What the defense changes in the facts of the target."""
        return {}

    def __repr__(self) -> str:
        return f"{self.title}({self.inner!r})"

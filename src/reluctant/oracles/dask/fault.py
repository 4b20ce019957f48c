"""Errors as data: what a target raises on a worker travels back as a value and is raised again here.

dask sees a task that went well, so that it neither repeats it nor wraps its error into a traceback of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reluctant import errors
from reluctant.errors import ReluctantError

__all__ = ["Fault"]


@dataclass(frozen=True)
class Fault:
    """An error of this library: its class by name, since a class of the user's may not be known here."""

    kind: str
    arguments: tuple[Any, ...]
    state: dict[str, Any]

    @classmethod
    def of(cls, error: ReluctantError) -> Fault:
        """What it takes to raise it elsewhere; a class of somebody else's becomes the one of ours it stems from."""
        kind = next(base for base in type(error).__mro__ if getattr(errors, base.__name__, None) is base)
        if kind is not type(error):
            return cls(kind.__name__, (str(error),), {})
        return cls(kind.__name__, error.args, dict(vars(error)))

    def error(self) -> ReluctantError:
        """The error again, without going through a constructor of its own."""
        kind: type[ReluctantError] = getattr(errors, self.kind)
        error = kind.__new__(kind, *self.arguments)
        error.args = self.arguments
        vars(error).update(self.state)
        return error

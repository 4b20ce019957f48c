"""`ServedOracle`: what adapters of served models share, and gradients in their replies."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.oracles.base import Explained, Facts, Oracle
from reluctant.oracles.explanations import GradientFace, as_gradients
from reluctant.oracles.http.transport import Server


@dataclass(frozen=True)
class ServedGradients:
    """name: of the output tensor, or a path into a JSON reply. output: which output they are of, if of one alone."""

    name: str
    output: int | None = None

    @classmethod
    def of(cls, given: object, output: int | None) -> ServedGradients | None:
        """The gradients of a served model, as the user gives them; a function of their own has no place in a reply."""
        return cls(given, output) if isinstance(given, str) else None

    def beside(self, values: FloatArray, numbers: FloatArray, dim: int) -> Explained:
        """Answers (n, m) with the numbers of their gradients: a row may be flat, or in the shape of an input."""
        rows, outputs = values.shape
        if len(numbers) == rows and numbers.shape != (rows, dim):
            whole = numbers.size == rows * outputs * dim
            numbers = numbers.reshape(rows, outputs, dim) if whole else np.reshape(numbers, (rows, -1))
        return Explained(values, as_gradients(numbers, (rows, outputs), dim, self.output))


class ServedOracle(Oracle):
    """A served model; one call of `answer` is one request. It may change, so it has no identity."""

    def __init__(self, server: Server, gradients: ServedGradients | None) -> None:
        self._server, self._gradients = server, gradients
        self._facts: Facts

    @property
    def facts(self) -> Facts:
        """Facts as given, as the server describes them, or as the first answer shows them."""
        return self._facts

    @abstractmethod
    def _reply(self, rows: FloatArray, also: str | None = None) -> Any:
        """The answer to one request; also: the name of the gradients, where they are wanted."""

    @abstractmethod
    def _values(self, reply: Any, rows: int, besides: str = "") -> FloatArray:
        """The answers of a reply, those of `besides` left out."""

    @abstractmethod
    def _slopes(self, reply: Any) -> FloatArray:
        """The numbers of the gradients in a reply."""

    def answer(self, rows: FloatArray) -> FloatArray:
        """One request."""
        return self._values(self._reply(rows), len(rows))

    @property
    def explained(self) -> Oracle | None:
        """Values and gradients, where the reply holds them."""
        return None if self._gradients is None else GradientFace(self)

    def with_gradients(self, rows: FloatArray) -> Explained:
        """One request: both are in its reply."""
        assert self._gradients is not None  # as `explained` says
        name = self._gradients.name
        reply = self._reply(rows, name)
        return self._gradients.beside(self._values(reply, len(rows), name), self._slopes(reply), self._facts.dim)

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._server.shown})"

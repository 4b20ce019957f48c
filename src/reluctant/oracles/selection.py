"""Look at some of the outputs only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Facts, Oracle, Wrapper
from reluctant.oracles.moves import Moves

__all__ = ["Selected"]


class Selected(Wrapper):
    """Keeps the named outputs, in the named order; the target is asked for all of them all the same."""

    def __init__(self, inner: Oracle, output: int | Sequence[int]) -> None:
        super().__init__(inner)
        self.indices = _indices(output, inner.outputs)

    @property
    def facts(self) -> Facts:
        """Facts with the number of outputs that are kept."""
        inner = self.inner.facts
        identity = _append(inner.identity, f"outputs {self.indices}")
        return replace(inner, outputs=len(self.indices), identity=identity, reference=False)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, keep the selected columns."""
        return self.inner.answer(rows)[:, self.indices]

    def answer_moves(self, moves: Moves) -> FloatArray:
        """Pass on, keep the selected columns."""
        return self.inner.answer_moves(moves)[:, self.indices]


def _append(identity: str, what: str) -> str:
    return f"{identity} {what}" if identity else ""


def _indices(output: int | Sequence[int], outputs: int) -> list[int]:
    indices = list(output) if isinstance(output, Iterable) else [output]
    if not indices or not all(_is_index(i, outputs) for i in indices):
        raise InvalidInput.about("output", got=output, expected=f"an index from 0 to {outputs - 1}, or several")
    return [int(i) for i in indices]


def _is_index(i: object, outputs: int) -> bool:
    return isinstance(i, int | np.integer) and not isinstance(i, bool) and 0 <= int(i) < outputs

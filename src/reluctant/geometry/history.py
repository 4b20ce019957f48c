"""How one line was searched: what was asked in which round, and what was known of the function after it.

Plain data, taken from a scan while it goes on or when it has ended. Nothing here asks anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluctant.geometry.creases import Scan
from reluctant.geometry.lines import Lines
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.numerics import FloatArray

__all__ = ["LineSearch"]

MAKES_A_PIECE = 3  # samples in line


@dataclass(frozen=True)
class LineSearch:
    """Questions on one line in order of position, and the creases found.

    scale: the unit of t. t, answers (n, m), round: what was asked, and when. known (n - 1,): whether the function
    between a sample and the next is known: straight, or with one certified crease. creases: their positions.
    """

    scale: float
    t: FloatArray
    answers: FloatArray
    round: IntArray
    known: BoolArray
    creases: FloatArray

    @classmethod
    def of(cls, lines: Lines, scan: Scan) -> LineSearch:
        """The search of a scan of one line, finished or not."""
        s, pieces = scan.samples, scan.pieces
        t = np.sort(scan.creases.t)  # creases that rounding does not tell apart may change places
        steps = np.zeros(len(s), dtype=int)
        np.add.at(steps, pieces.first[pieces.certified], 1)
        np.add.at(steps, pieces.last[pieces.certified], -1)
        known = np.cumsum(steps)[:-1] > 0
        known[np.clip(np.searchsorted(s.t, t) - 1, 0, len(known) - 1)] = True
        return cls(lines.scale, s.t, s.f, s.round, known, t)

    @property
    def rounds(self) -> int:
        """How many batches were asked."""
        return int(self.round.max(initial=-1)) + 1

    @property
    def angles(self) -> FloatArray:
        """Positions of the samples as angles: in these the whole line is short, and creases are spread evenly."""
        return np.arctan(self.t / self.scale)

    @property
    def found_in(self) -> IntArray:
        """The round after which each crease was certain: it was looked at from both sides, between two pieces."""
        after = np.clip(np.searchsorted(self.t, self.creases), 1, len(self.t) - 1)
        piece = self._pieces()
        order = np.lexsort([self.round, piece])
        sizes = np.bincount(piece, minlength=len(self.creases) + 1)
        third = np.cumsum(sizes) - sizes + np.minimum(sizes, MAKES_A_PIECE) - 1
        settled = self.round[order][third]
        return np.maximum.reduce([self.round[after], self.round[after - 1], settled[:-1], settled[1:]])

    def at(self, round_: int) -> LineSearch:
        """The search as it stood after this round, told from where it ended."""
        asked, found = np.flatnonzero(self.round <= round_), self.found_in <= round_
        piece = self._pieces()[asked]
        left, right = piece[:-1], piece[1:]
        is_piece = np.bincount(piece, minlength=len(found) + 1)[left] >= MAKES_A_PIECE
        crossed = (right == left + 1) & np.append(found, False)[left]
        unknown = np.append(0, np.cumsum(~self.known))
        whole = unknown[asked[1:]] == unknown[asked[:-1]]
        known = whole & (((left == right) & is_piece) | crossed)
        return LineSearch(self.scale, self.t[asked], self.answers[asked], self.round[asked], known, self.creases[found])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "scale": self.scale,
            "t": self.t.tolist(),
            "answers": self.answers.tolist(),
            "round": self.round.tolist(),
            "known": self.known.tolist(),
            "creases": self.creases.tolist(),
            "found in round": self.found_in.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LineSearch:
        """The search again from its plain data."""
        t, answers = np.array(data["t"], dtype=float), np.array(data["answers"], dtype=float)
        return cls(
            float(data["scale"]), t, answers.reshape(len(t), -1), np.array(data["round"], dtype=int),
            np.array(data["known"], dtype=bool), np.array(data["creases"], dtype=float),
        )  # fmt: skip

    def _pieces(self) -> IntArray:
        """Index of the piece each sample lies on."""
        return np.searchsorted(self.creases, self.t)

"""A table as a page shows it: a caption, columns, cells with what they are sorted by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Cell", "Column", "Table"]


@dataclass(frozen=True)
class Cell:
    """Text, the number or word it is sorted by if that is another one, and a tone: good, bad, warn, calm."""

    text: str
    key: Any = None
    tone: str = ""

    @property
    def sort_key(self) -> Any:
        """What a browser sorts by."""
        return self.text if self.key is None else self.key


@dataclass(frozen=True)
class Column:
    """A heading; numbers stand to the right, sentences get room."""

    name: str
    numeric: bool = False
    prose: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns. Plain strings are cells too. The first cell names its row."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | str]]

    def cells(self) -> list[list[Cell]]:
        """All cells, strings included, as cells."""
        return [[cell if isinstance(cell, Cell) else Cell(str(cell)) for cell in row] for row in self.rows]

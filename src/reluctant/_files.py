"""Files replaced whole, so that a failed write leaves the old one unchanged; and plain data for JSON."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """A name to write to, beside `path`; that file takes its place once it is whole and on disk.

    A device or a pipe is written to directly: there is nothing to replace.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        yield path
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    fresh = Path(name)
    try:
        yield fresh
        with fresh.open("rb+") as file:
            os.fsync(file.fileno())
        fresh.chmod(stat.S_IMODE(path.stat().st_mode) if path.exists() else _mode_of_new_files())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a file of UTF-8 text, whole or not at all."""
    with replacement(path) as fresh:
        fresh.write_text(text, encoding="utf-8")


def _mode_of_new_files() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def as_plain(value: Any) -> Any:
    """Plain data that JSON can hold: NaN and inf become None, numpy's numbers plain ones."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: as_plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [as_plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    return value.item() if isinstance(value, np.generic) else value

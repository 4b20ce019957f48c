"""Files replaced whole: a write that fails, on a full disk for example, leaves the old file as it was."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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

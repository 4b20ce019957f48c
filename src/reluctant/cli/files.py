"""What commands write: networks, records, folders; a name that cannot be written is found before anything is asked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Protocol

import typer

from reluctant._optional import require
from reluctant.audit.record import AuditRecord
from reluctant.errors import InvalidInput
from reluctant.report import report
from reluctant.results import Result

__all__ = [
    "NetworkOut",
    "check_network_path",
    "check_page_path",
    "check_record_path",
    "make_folder",
    "tell",
    "write_network",
    "write_page",
    "write_record",
]

NetworkOut = Annotated[
    Path | None, typer.Option("--out", "-o", help="Write the network: .onnx or .npz.", show_default=False)
]


def check_network_path(out: Path | None) -> None:
    """A name that cannot be written is found before anything is asked."""
    if out is None:
        return
    if out.suffix not in {".onnx", ".npz"}:
        raise InvalidInput.about("--out", got=f"'{out}'", expected="a name ending in .onnx or .npz")
    if not out.parent.is_dir():
        raise InvalidInput.about("--out", got=f"'{out}'", expected="a file in an existing folder")
    if out.suffix == ".onnx":
        require("onnx", extra="onnx", purpose="Writing an .onnx file")


def check_record_path(where: str | None) -> None:
    """A file for the record that cannot be written is found before anything is asked."""
    if where not in {None, "-"} and not Path(str(where)).parent.is_dir():
        raise InvalidInput.about("--json", got=f"'{where}'", expected="a file in an existing folder, or -")


def check_page_path(out: Path) -> None:
    """A page that cannot be written is found before anything is asked."""
    if not out.parent.is_dir() or out.is_dir():
        raise InvalidInput.about("--out", got=f"'{out}'", expected="a file in an existing folder")


def write_page(record: AuditRecord | Path, out: Path) -> None:
    """Write the page of an audit's record, or of the file of one."""
    try:
        report(record, out)
    except OSError as error:
        raise InvalidInput.about("--out", got=f"'{out}' ({error})", expected="a file to write") from error


def write_network(found: Result, out: Path | None, link: str = "identity") -> Path | None:
    """Write the network if there is one, with its link; one that is not verified gets a name that says so."""
    if out is None or found.network is None:
        return None
    path = out if found.ok else out.with_suffix(f".partial{out.suffix}")
    try:
        found.as_written(link).save(path)
    except OSError as error:
        raise InvalidInput.about("--out", got=f"'{path}' ({error})", expected="a file to write") from error
    return path


def make_folder(folder: Path) -> None:
    """Make a folder for results, if there is none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput.about("--out", got=f"'{folder}' ({error})", expected="a folder to write to") from error


class Written(Protocol):
    """What can be written as JSON."""

    def to_json(self) -> str:
        """One JSON object."""

    def write(self, path: Path) -> None:
        """Write it."""


def tell(record: Written, where: str | None, lines: Sequence[str]) -> None:
    """Write the record where it is wanted; the lines are printed unless it is what standard output has."""
    write_record(record, where)
    if where != "-":
        print("\n".join(lines))


def write_record(record: Written, where: str | None) -> None:
    """Write the record to a file, or to standard output for -."""
    if where == "-":
        sys.stdout.write(record.to_json() + "\n")
    elif where is not None:
        try:
            record.write(Path(where))
        except OSError as error:
            raise InvalidInput.about("--json", got=f"'{where}' ({error})", expected="a file to write") from error

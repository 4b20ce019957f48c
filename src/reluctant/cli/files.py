"""Files of the commands: arrays, networks, spans, pages and records, checked before the first query.

A command checks the names of its files before the first query, so that no run is lost to a mistyped one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from reluctant._files import write_text
from reluctant.errors import InvalidInput

if TYPE_CHECKING:
    from reluctant.audit.record import AuditRecord
    from reluctant.numerics import FloatArray
    from reluctant.report import ReportFormat
    from reluctant.results import Result

REPORT = Path("report.html")

NetworkOut = Annotated[
    Path | None, typer.Option("--out", "-o", help="Write the network: .onnx or .npz.", show_default=False)
]


def read_array(option: str, path: Path) -> FloatArray:
    """The numbers in a .npy file; nothing in it can run code."""
    import numpy as np

    try:
        x: Any = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InvalidInput.about(option, got=f"'{path}' ({error})", expected="a .npy file of numbers") from error
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiu":
        raise InvalidInput.about(option, got=f"'{path}'", expected="one array of numbers (np.save)")
    return np.asarray(x, dtype=np.float64)


# ---- names


def check_out(out: Path | None, *suffixes: str, option: str = "--out") -> None:
    """Refuse a name without one of these endings, or in a folder that does not exist."""
    if out is None:
        return
    if out.suffix not in suffixes:
        raise InvalidInput.about(option, got=f"'{out}'", expected=f"a name ending in {' or '.join(suffixes)}")
    check_writable(option, out)


def check_writable(option: str, path: Path, *, expected: str = "a file in an existing folder") -> None:
    """Refuse a name that no file can be written to: without a folder, of a folder, or in one that is closed."""
    if not path.parent.is_dir() or path.is_dir():
        raise InvalidInput.about(option, got=f"'{path}'", expected=expected)
    if path.exists() and not path.is_file():
        return  # a device or a pipe
    with writing(option, path, "a file in a folder that can be written to"), TemporaryFile(dir=path.parent):
        pass


def check_network_path(out: Path | None, option: str = "--out") -> None:
    """Refuse a name that a network cannot be written to."""
    check_out(out, ".onnx", ".npz", option=option)
    if out is not None and out.suffix == ".onnx":
        from reluctant.errors import require

        require("onnx", extra="onnx", purpose="Writing an .onnx file")


def check_record_path(where: str | None) -> None:
    """Refuse a name that a record cannot be written to."""
    if where not in {None, "-"}:
        check_writable("--json", Path(str(where)), expected="a file in an existing folder, or -")


def report_files(out: Path | None, formats: Sequence[ReportFormat] | None) -> dict[ReportFormat, Path]:
    """The file of each format: the one that is named, and others beside it with their own endings.

    Without a format the name decides. The name is that of the format whose ending it has, else of the first one.
    """
    from reluctant.report import ReportFormat

    if not formats:
        return {ReportFormat.of(out or REPORT): out or REPORT}
    named = next((each for each in formats if out is not None and out.suffix == each.ending), formats[0])
    return {each: out if out and each is named else (out or REPORT).with_suffix(each.ending) for each in formats}


def check_report_files(files: Mapping[ReportFormat, Path]) -> None:
    """Refuse names that a report cannot be written to."""
    for file in files.values():
        check_writable("--out", file)


def partial_name(out: Path, whole: bool) -> Path:
    """The name to write to: one that is not verified says so, copy.partial.onnx."""
    return out if whole else out.with_suffix(f".partial{out.suffix}")


# ---- writing


@contextmanager
def writing(option: str, path: object, expected: str = "a file to write") -> Iterator[None]:
    """Turn an error of the system into bad input of an option."""
    try:
        yield
    except OSError as error:
        raise InvalidInput.about(option, got=f"'{path}' ({error})", expected=expected) from error


def make_folder(folder: Path) -> None:
    """Make a folder for results, if there is none."""
    with writing("--out", folder, "a folder to write to"):
        folder.mkdir(parents=True, exist_ok=True)


def write_report(record: AuditRecord | Path, out: Path, format: ReportFormat | None = None) -> None:
    """Write an audit's record, or the file of one, as a page or in another format."""
    from reluctant.report import report

    with writing("--out", out):
        report(record, out, format)


def write_network(found: Result, out: Path | None, link: str = "identity") -> Path | None:
    """Write the network if there is one, with its link."""
    if out is None or found.network is None:
        return None
    path = partial_name(out, found.ok)
    with writing("--out", path):
        found.as_written(link).save(path)
    return path


class JsonRecord(Protocol):
    """A record: it can be written as JSON."""

    def to_json(self) -> str:
        """One JSON object."""


def write_record(record: JsonRecord, where: str | None) -> None:
    """Write the record to a file, or to standard output for -."""
    if where == "-":
        sys.stdout.write(record.to_json() + "\n")
    elif where is not None:
        with writing("--json", where):
            write_text(Path(where), record.to_json() + "\n")


def print_result(record: JsonRecord, where: str | None, lines: Sequence[str]) -> None:
    """Print the lines, unless the record goes to standard output; then write it where it is wanted."""
    if where != "-":
        print("\n".join(lines))
    write_record(record, where)


def print_and_write(
    record: JsonRecord,
    where: str | None,
    write: Callable[[], Path | None],
    lines: Callable[[Path | None], Sequence[str]],
) -> None:
    """Write the file of a result, then print its lines, which name it; a result outlives a file that cannot be written.

    write: gives the name of the file, None without one. lines: what to print with that name.
    """
    try:
        written = write()
    except InvalidInput:
        print_result(record, where, lines(None))
        raise
    print_result(record, where, lines(written))

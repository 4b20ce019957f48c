"""`Experiment` and `Finding`: a claim of a paper, its measurement in two sizes, and its checks.

Pictures have colours that are seen on white and on black, and numbers on axes as plain text: a page may show them
in any font.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from math import log10
from pathlib import Path
from typing import Any, Literal

from reluctant._files import write_text
from reluctant.errors import InvalidInput, require
from reluctant.numerics import Rng
from reluctant.report.drawings import COLOURS, figure_svg, log_axis, new_figure
from reluctant.report.text import UNKNOWN, size


@dataclass(frozen=True)
class Paper:
    """Who wrote what, and where it appeared. people: the authors in full, as BibTeX has them; book: its collection."""

    title: str
    authors: str
    venue: str
    people: str
    book: str

    @property
    def short(self) -> str:
        """Authors and venue."""
        return f"{self.authors}, {self.venue}"

    @property
    def bibtex(self) -> str:
        """An entry for a bibliography."""
        year, first = self.venue.split()[-1], self.people.partition(" and ")[0].split()[-1]
        written = {"author": self.people, "title": f"{{{self.title}}}", "booktitle": self.book, "year": year}
        lines = [f"  {name} = {{{value}}}," for name, value in written.items()]
        return "\n".join([f"@inproceedings{{{first.lower()}{year},", *lines, "}"])


ICLR = "International Conference on Learning Representations"
NEURIPS = "Advances in Neural Information Processing Systems"

SPAN_PAPER = Paper(
    "Span Recovery for Deep Neural Networks with Applications to Input Obfuscation",
    "Jayaram, Woodruff and Zhang",
    "ICLR 2020",
    "Rajesh Jayaram and David P. Woodruff and Qiuyi Zhang",
    ICLR,
)
LEARNING_PAPER = Paper(
    "Efficiently Learning Any One Hidden Layer ReLU Network From Queries",
    "Chen, Klivans and Meka",
    "NeurIPS 2021",
    "Sitan Chen and Adam R. Klivans and Raghu Meka",
    NEURIPS,
)
EXTRACTION_PAPER = Paper(
    "An Exact Poly-Time Membership-Queries Algorithm for Extracting a Three-Layer ReLU Network",
    "Daniely and Granot",
    "ICLR 2023",
    "Amit Daniely and Elad Granot",
    ICLR,
)
ADVERSARIAL_PAPER = Paper(
    "Adversarial Examples in Multi-Layer Random ReLU Networks",
    "Bartlett, Bubeck and Cherapanamjeri",
    "NeurIPS 2021",
    r"Peter L. Bartlett and S{\'e}bastien Bubeck and Yeshwanth Cherapanamjeri",
    NEURIPS,
)
GRADIENTS_PAPER = Paper(
    "Model Reconstruction from Model Explanations",
    "Milli, Schmidt, Dragan and Hardt",
    "FAT* 2019",
    "Smitha Milli and Ludwig Schmidt and Anca D. Dragan and Moritz Hardt",
    "Conference on Fairness, Accountability, and Transparency",
)
LOGITS_PAPER = Paper(
    "Stealing Part of a Production Language Model",
    "Carlini et al.",
    "ICML 2024",
    "Nicholas Carlini and Daniel Paleka and Krishnamurthy Dvijotham and others",
    "International Conference on Machine Learning",
)
PAPERS = (SPAN_PAPER, LEARNING_PAPER, EXTRACTION_PAPER, ADVERSARIAL_PAPER, GRADIENTS_PAPER, LOGITS_PAPER)

FEW_DECADES = 2.0  # on an axis: then numbers between the powers of ten are written too
BETWEEN_POWERS = (1.0, 2.0, 5.0)


def label_axes(axes: Any, x: str = "", y: str = "", *, log: str = "", **legend: Any) -> None:
    """Names of both axes, which of them are logarithmic ("x", "y", "xy"), and a legend if series have names."""
    axes.set(xlabel=x, ylabel=y, **{f"{axis}scale": "log" for axis in log})
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, **legend)


def _plain_axes(figure: Any) -> None:
    """Number every logarithmic axis of a figure without formulas; ticks that were chosen stay."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if axis.get_scale() != "log" or isinstance(axis.get_major_locator(), FixedLocator):
            continue
        low, high = axis.get_view_interval()
        if abs(log10(high / low)) >= FEW_DECADES:
            log_axis(axis)
            continue
        axis.set_major_locator(LogLocator(subs=BETWEEN_POWERS))
        axis.set_major_formatter(FuncFormatter(lambda value, _: size(value, 1)))
        axis.set_minor_formatter(NullFormatter())


FILE_SUFFIXES = (".svg", ".txt", ".json")


@dataclass(frozen=True)
class Check:
    """A number with its bounds."""

    name: str
    value: float
    low: float
    high: float

    @property
    def ok(self) -> bool:
        """True if the value lies between the bounds."""
        return self.low <= self.value <= self.high

    def __str__(self) -> str:
        return f"{'ok ' if self.ok else 'NOT'} {self.name}: {self.value:.4g} (bounds {self.low:g} to {self.high:g})"


@dataclass(frozen=True)
class Finding:
    """One experiment, run.

    Arguments:
        title: what was measured, in one line.
        claim: what the paper says about it.
        measured: what was found, in a sentence with its numbers.
        columns, rows: the table.
        draw: puts the picture on a matplotlib figure.
        checks: numbers that were asked of it.
        notes: what a reader has to know besides.
        name, paper, where: those of its `Experiment`, which fills them in.
    """

    title: str
    claim: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    draw: Callable[[Any], None]
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()
    measured: str = ""
    name: str = ""
    paper: Paper | None = None
    where: str = ""

    @property
    def ok(self) -> bool:
        """True if every check holds."""
        return all(check.ok for check in self.checks)

    def table(self) -> str:
        """The table as text, then checks and notes."""
        cells = [self.columns, *(tuple(cell_text(value) for value in row) for row in self.rows)]
        widths = [max(len(row[j]) for row in cells) for j in range(len(self.columns))]
        lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in cells]
        source = [] if self.paper is None else [f"{self.paper.short}: {self.where}"]
        measured = [f"Measured: {self.measured}"] if self.measured else []
        words = [self.title, *source, f"Claim: {self.claim}", *measured]
        return "\n".join([*words, "", *lines, "", *map(str, self.checks), *self.notes])

    def svg(self) -> str:
        """The picture as an inline SVG element, its series in the colours of the report."""
        matplotlib = require("matplotlib", extra="report", purpose="A picture")
        with matplotlib.rc_context({"axes.prop_cycle": matplotlib.cycler(color=COLOURS)}):
            figure = new_figure()
            self.draw(figure)
            _plain_axes(figure)
            return figure_svg(figure)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "name": self.name,
            "paper": None if self.paper is None else asdict(self.paper),
            "where": self.where,
            "title": self.title,
            "claim": self.claim,
            "measured": self.measured,
            "ok": self.ok,
            "columns": list(self.columns),
            "rows": [[_finite_or_none(value) for value in row] for row in self.rows],
            "checks": [
                {"name": c.name, "value": _finite_or_none(c.value), "low": c.low, "high": c.high, "ok": c.ok}
                for c in self.checks
            ],
            "notes": list(self.notes),
        }

    def write(self, folder: Path, **about: Any) -> list[Path]:
        """Write NAME.svg, NAME.txt and, last, NAME.json into a folder.

        Arguments:
            folder: where; it exists.
            about: more of the run that the JSON file has to say.
        """
        return write_files(folder, self.name, self.files(**about))

    def files(self, **about: Any) -> dict[str, str]:
        """Files to write, by suffix."""
        data = json.dumps({**self.to_dict(), **about}, indent=2, allow_nan=False)
        return dict(zip(FILE_SUFFIXES, (self.svg(), self.table(), data), strict=True))


def write_files(folder: Path, name: str, texts: Mapping[str, str]) -> list[Path]:
    """Write NAME.suffix for each suffix, in this order, in the place of all that was there under this name."""
    for suffix in FILE_SUFFIXES:
        (folder / f"{name}{suffix}").unlink(missing_ok=True)
    paths = [folder / f"{name}{suffix}" for suffix in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_text(path, text + "\n")
    return paths


def _finite_or_none(value: Any) -> Any:
    """JSON has no infinity: null replaces it."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cell_text(value: Any) -> str:
    """A value of a table as text."""
    if value is None:
        return UNKNOWN
    return f"{value:.4g}" if isinstance(value, float) else str(value)


Size = Literal["quick", "full"]
SIZES: tuple[Size, ...] = ("quick", "full")


@dataclass(frozen=True)
class Experiment:
    """A function that measures, with its place in a paper. Calling it gives a `Finding`.

    Arguments:
        name: as the command line knows it.
        paper, where: whose claim it is, and its number there.
        measure: takes rng= and numbers as keywords; those with mnist_folder= can use MNIST.
        quick: numbers for a first look; the function's own defaults are the full size.
    """

    name: str
    paper: Paper
    where: str
    measure: Callable[..., Finding]
    quick: Mapping[str, Any]

    @property
    def about(self) -> str:
        """The measurement, in one line."""
        return (self.measure.__doc__ or "").strip().splitlines()[0]

    @property
    def takes_images(self) -> bool:
        """Whether a folder with MNIST is of use."""
        return "mnist_folder" in inspect.signature(self.measure).parameters

    def __call__(
        self, *, size: Size = "full", mnist_folder: str | Path | None = None, rng: Rng = 0, **numbers: Any
    ) -> Finding:
        """Run it, at a named size or with numbers of one's own."""
        if size not in SIZES:
            raise InvalidInput.about("size", got=repr(size), expected=" or ".join(SIZES))
        settings = {**(self.quick if size == "quick" else {}), **numbers}
        if self.takes_images:
            settings["mnist_folder"] = mnist_folder
        finding = self.measure(rng=rng, **settings)
        return replace(finding, name=self.name, paper=self.paper, where=self.where)

    def unknown(self) -> dict[str, Any]:
        """In the place of a finding's data, where there is none."""
        about: dict[str, Any] = {"name": self.name, "paper": self.paper, "where": self.where}
        nothing = Finding(self.about, "", (), (), lambda figure: None, **about)
        return {**nothing.to_dict(), "ok": False}

"""Lines and branches of the engine that the tests run, counted by SlipCover: `pytest --branches`.

SlipCover removes its instruments from code that has run, so counting costs little. Each process counts for itself; the
one that started them adds up, prints the gaps and fails below `LEAST`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "reluctant"
ENGINE = [
    SOURCE / name
    for name in (
        "adversarial", "defenses", "domains.py", "extraction", "fitting", "geometry", "learning", "networks",
        "numerics.py", "oracles", "span", "verification",
    )
]  # fmt: skip
LEFT_OUT = ["if TYPE_CHECKING:", "raise NotImplementedError", r"@(abc\.)?abstractmethod"]
SHOWN = 12  # gaps of a file
LEAST = 95.0  # percent of lines and branches together


class EngineCoverage:
    """A plugin of pytest; it counts from where it is made, which is before the engine is imported."""

    def __init__(self) -> None:
        import slipcover

        assert not [name for name in sys.modules if name.startswith("reluctant.")], "imported before it is counted"
        folders = [str(path) for path in ENGINE if path.is_dir()]
        self.merge = slipcover.merge_coverage
        self.count = slipcover.Slipcover(branch=True, source=folders, exclude_also=LEFT_OUT)
        self.found: dict[str, Any] | None = None
        slipcover.ImportManager(self.count, slipcover.FileMatcher(sources=ENGINE)).__enter__()

    def add(self, found: dict[str, Any]) -> None:
        """What one process has run."""
        self.found = found if self.found is None else self.merge(self.found, found)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A process ended; one that crashed has counted nothing."""
        if "coverage" in getattr(node, "workeroutput", {}):
            self.add(json.loads(node.workeroutput["coverage"]))

    @pytest.hookimpl(tryfirst=True)  # before a process sends its output
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In a process: send what was run. In the first one: fail where that is too little."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["coverage"] = json.dumps(self.count.get_coverage())
            return
        if self.found is None:
            self.add(self.count.get_coverage())
        if session.exitstatus == pytest.ExitCode.OK and self.percent < LEAST:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @property
    def percent(self) -> float:
        """Share of lines and branches that ran."""
        return 0.0 if self.found is None else float(self.found["summary"]["percent_covered"])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The gaps, and the share."""
        terminalreporter.section("lines and branches of the engine that no test runs")
        for file, gaps in sorted({} if self.found is None else self.found["files"].items()):
            lines = gaps["missing_lines"]
            branches = [f"{line}->{to or 'exit'}" for line, to in gaps["missing_branches"] if line not in lines]
            both = [*map(str, lines), *branches]
            if both:
                terminalreporter.line(f"{gaps['summary']['percent_covered']:5.1f} % {file}: {' '.join(both[:SHOWN])}")
        terminalreporter.line(f"Lines and branches: {self.percent:.2f} %; at least {LEAST:g} % are required.")

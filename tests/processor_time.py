"""Processor time of the tests by folder and by file, child processes included: `pytest --cpu`.

A child process counts where it is waited for: a cluster and a browser, which live for a whole run, at its last test.
"""

from __future__ import annotations

import json
import resource
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

SHOWN = 25  # files


def processor_seconds() -> float:
    """Of this process and of the children it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class ProcessorTime:
    """A plugin of pytest: each process adds up its own tests, the one that started them prints the sums."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """One test with its fixtures."""
        start = processor_seconds()
        found = yield
        self.files[item.nodeid.partition("::")[0]] += processor_seconds() - start
        return found

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A process ended; one that crashed has sent nothing."""
        sent = getattr(node, "workeroutput", {}).get("processor time")
        self.files.update(json.loads(sent) if sent else {})

    @pytest.hookimpl(tryfirst=True)  # before a process sends its output
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In a process: send the sums."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["processor time"] = json.dumps(self.files)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The folders, and the files that take most."""
        folders: Counter[str] = Counter()
        for file, seconds in self.files.items():
            folders[file.split("/")[1] if "/" in file else file] += seconds
        terminalreporter.section("processor seconds")
        for name, seconds in [*folders.most_common(), *self.files.most_common(SHOWN)]:
            terminalreporter.line(f"{seconds:7.1f} {name}")
        terminalreporter.line(
            f"{self.files.total():7.1f} in tests, {processor_seconds():.1f} with imports, collection and coverage"
        )

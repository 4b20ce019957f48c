"""The tables of docs/figures.md are those of the kept results."""

from __future__ import annotations

import subprocess
import sys

from examples import ROOT


def test_the_tables_are_what_the_results_say() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "figures_page.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr

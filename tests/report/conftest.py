"""A page made from a real run, under any name the target may have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reluctant import check_health, extract, open_oracle
from reluctant.oracles import CallableOracle
from reluctant.report import ask_profile, write_page
from reluctant.runs import Record
from reluctant.testing import planted


@pytest.fixture
def write_report(tmp_path: Path) -> Callable[..., Path]:
    """Ask a target of this name, write the page, give back its path."""

    def write(
        name: str = "model.onnx", target=None, dim: int = 6, repeat: str = "reluctant demo", recover: bool = False
    ) -> Path:
        oracle = open_oracle(CallableOracle(target or planted((6, 8, 3)), dim, name=name))
        health, profile = check_health(oracle), ask_profile(oracle)
        found = extract(oracle) if recover else None
        record = Record.of(oracle, "demo", 0, health.refusal is None, health=health)
        write_page(tmp_path / "report.html", record, health, profile, repeat=repeat, extraction=found)
        return tmp_path / "report.html"

    return write

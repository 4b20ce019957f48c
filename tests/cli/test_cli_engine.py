"""`--engine`: a target, experiments and the sweep of an audit on a cluster, and what is said where there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reluctant as rl
from reluctant import engines as clusters
from reluctant.testing import planted

NETWORK = planted((6, 5, 1), 2)


@pytest.fixture
def model(folder: Path) -> Path:
    NETWORK.save(folder / "model.npz")
    return folder / "model.npz"


def test_extract_on_a_cluster(command: Any, model: Path, address: str) -> None:
    here = command("extract", str(model), "--json", "-", "-o", "here.npz")
    there = command("extract", str(model), "--json", "-", "-o", "there.npz", "--engine", address, "--transcript", "t")
    assert (here.status, there.status) == (0, 0)
    assert json.loads(there.out)["queries"] == json.loads(here.out)["queries"]
    one, two = (rl.ReLUNetwork.load(f"{name}.npz") for name in ("here", "there"))
    assert all((a == b).all() for a, b in zip(one.weights, two.weights, strict=True))
    again = command("extract", str(model), "--json", "-", "--engine", address, "--transcript", "t", "-v")
    assert ", 0 sent" in again.err


@pytest.mark.parametrize("verb", ["extract", "audit"])
def test_an_unreachable_scheduler_is_bad_input(
    verb: str, command: Any, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 0.5)
    ended = command(verb, str(model), "--engine", "dask://127.0.0.1:9")
    assert ended.status == 2
    assert "nobody answers" in ended.err
    assert "dask scheduler" in ended.err
    assert "[unusable-engine]" in ended.err
    assert "Traceback" not in ended.err


def test_reproduce_refuses_what_is_no_engine(command: Any) -> None:
    ended = command("reproduce", "depth", "--engine", "http://somewhere:8786")
    assert ended.status == 2
    assert 'expected "dask://host:port"' in ended.err


def test_help_teaches(command: Any) -> None:
    for verb in ("extract", "audit", "reproduce"):
        said = " ".join(command(verb, "--help").out.split())
        assert "--engine" in said
        assert "workers of a dask cluster" in said

"""The recipe for a gate in CI: its settings are ones that the commands take, its pipelines run commands there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from examples import ROOT

from reluctant.cli.app import COMMANDS, load
from reluctant.cli.config import configured_words, names_of_all_options, read_config

PAGE = (ROOT / "docs" / "ci-gate.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("target", ["digits", "served"])
def test_the_settings_are_options_of_the_audit(target: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(blocks("toml")[0])
    config = read_config(tmp_path, COMMANDS)
    assert config is not None
    command = load("audit")
    words = configured_words(config, command.choices(), {"target": target}, names_of_all_options)
    context = command.make_context("audit", [target, *words])
    assert list(context.params["fail_on"]) == ["extractable", "approximable"]
    assert context.params["budget"] == config.targets[target]["budget"]


def test_the_pipelines_run_commands_there_are() -> None:
    yaml = pytest.importorskip("yaml")
    github, gitlab = map(yaml.safe_load, blocks("yaml"))
    steps = github["jobs"]["audit"]["steps"]
    run = [line for step in steps for line in step.get("run", "").splitlines()] + gitlab["audit"]["script"]
    used = [line.split()[1] for line in run if line.startswith("reluctant ")]
    assert used == ["audit", "audit"]
    assert set(used) <= set(COMMANDS)

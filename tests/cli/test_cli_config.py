"""Defaults from reluctant.toml or pyproject.toml: which value counts, targets by name, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from reluctant.audit import STEPS
from reluctant.audit.record import AuditRecord

SKIPPED = [step for step in STEPS if step != "health"]


def write(folder: Path, text: str, name: str = "reluctant.toml") -> None:
    (folder / name).write_text(text)


@pytest.fixture
def budgets(command, npz, folder):
    """The budget that `extract` works with, given a file and words."""

    def run(text: str, *words: object, target: object = npz) -> str:
        write(folder, text.replace("NPZ", str(npz)))
        ended = command("audit", target, "-q", *words, *(word for step in SKIPPED for word in ("--skip", step)),
                        "--json", folder / "audit.json")  # fmt: skip
        assert ended.status == 0, ended.err
        return AuditRecord.load(folder / "audit.json").budget

    return run


def test_the_order_of_places(budgets):
    """The command line, then the target, then the command, then the top."""
    target = '\n[targets.small]\ntarget = "NPZ"\nbudget = 3000\n'
    assert budgets("budget = 1000") == 1000
    assert budgets("budget = 1000\n[audit]\nbudget = 2000\n") == 2000
    assert budgets(f"budget = 1000\n[audit]\nbudget = 2000\n{target}", target="small") == 3000
    assert budgets(f"budget = 1000\n{target}", "--budget", 4000, target="small") == 4000
    assert budgets(f"budget = 1000\n{target}") == 1000


def test_a_target_by_name_with_lists_and_switches(command, npz, folder):
    write(
        folder,
        f"[tool.reluctant.audit]\nskip = {SKIPPED}\nfail-on = []\nformat = ['json', 'sarif']\nquiet = true\n"
        f"[tool.reluctant.targets.small]\ntarget = '{npz}'\ndomain = [-5, 5]\nout = 'gate.json'\nseed = 3\n",
        "pyproject.toml",
    )
    ended = command("audit", "small")
    assert (ended.status, ended.err) == (0, "")
    record = AuditRecord.load(folder / "gate.json")
    assert (folder / "gate.sarif").is_file()
    assert (record.target.location, record.seed, record.target.domain.describe()) == (
        str(npz),
        3,
        "[-5, 5] in every coordinate",
    )
    assert f"reluctant audit {npz} --seed 3 --domain -5,5" in record.repeat.command


def test_words_of_the_command_line_replace_a_list(command, npz, folder):
    write(folder, "[audit]\nformat = ['html', 'sarif']\n")
    assert command("report", "missing.json").status == 2  # a table is for its own command
    skipped = [word for step in SKIPPED for word in ("--skip", step)]
    assert command("audit", npz, "-q", *skipped, "--format", "junit").status == 0
    assert [each.suffix for each in folder.glob("report.*")] == [".xml"]


def test_options_of_other_commands_are_left_to_them(command, npz, folder):
    write(folder, "attempts = 2\nbudget = 500\n[demo]\nquiet = true\n[estimate]\nnonsense = 1\n")
    assert command("health", npz, "-q").status == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("budgte = 3", ["reluctant.toml", "budgte", "budget"]),
        ("[audti]\nskip = []", ["audti", "audit"]),
        ("[audit]\nfail-onn = []", ["fail-onn", "fail-on"]),
        ("[audit]\nattempts = 3", ["attempts", "reluctant audit"]),
        ("budget = 'many'", ["budget", "reluctant.toml"]),
        ("percent = 3", ["percent", "true or false"]),
        ("budget = true", ["budget", "number"]),
        ("[audit]\nformat = ['pdf']", ["format", "pdf"]),
        ("[targets.a]\nbudget = 3", ["targets.a", "target ="]),
        ("[targets.'model.onnx']\ntarget = 'other.onnx'", ["model.onnx", "no path"]),
        ("budget = [", ["reluctant.toml", "TOML"]),
        ("trust-code = true", ["trust-code", "command line"]),
    ],
)
def test_what_is_wrong_in_the_file_is_bad_input(text, words, command, npz, folder):
    write(folder, text)
    ended = command("audit", npz, "-q")
    assert ended.status == 2
    assert len(ended.err.splitlines()) <= 2
    assert [word for word in words if word not in ended.err] == []


def test_a_missing_target_is_no_fault_of_the_file(command, folder):
    write(folder, "seed = 1\n[health]\nverbose = true\n")
    ended = command("health")
    assert ended.status == 2
    assert "reluctant.toml" not in ended.err


def test_help_needs_no_file(command, folder):
    write(folder, "budget = [")
    assert command("audit", "--help").status == 0


def test_a_project_without_a_table_is_no_configuration(command, npz, folder):
    write(folder, "[project]\nname = 'x'\n", "pyproject.toml")
    assert command("health", npz, "-q").status == 0


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("au", ["audit"]),
        ("audit --fo", ["--format"]),
        ("audit --format s", ["sarif"]),
        ("audit sm", ["small"]),
        ("audit --fail-on e", ["extractable"]),
    ],
)
def test_a_shell_completes_commands_options_values_and_targets(typed, offered, command, folder, monkeypatch):
    write(folder, "[targets.small]\ntarget = 'm.npz'\n")
    monkeypatch.setenv("_RELUCTANT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"reluctant {typed}")
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split())))
    assert command().out.split() == offered


def test_the_script_of_a_shell(command, monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # the parent process need not be a shell
    ended = command("--show-completion", "bash")
    assert ended.status == 0
    assert "_RELUCTANT_COMPLETE=complete_bash" in ended.out

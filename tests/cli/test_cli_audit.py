"""`reluctant audit` as it is typed: files, modules, servers, pipelines, and what cannot be opened."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from contextlib import suppress

import numpy as np
import pytest

import reluctant as rl
from reluctant.audit import STEPS
from reluctant.audit.record import AuditRecord
from reluctant.cli.commands import audit_commands
from reluctant.report import verdict_sentence
from reluctant.report.text import stop_sentence
from reluctant.testing import planted
from reluctant.testing.server import ModelServer

CONSTANT = "import numpy as np\ndef target(x): return np.ones(len(x))\n"
QUICK = ("--skip", "defenses", "-q")


def only(*steps: str) -> list[str]:
    """Options for these steps alone."""
    return [option for step in STEPS if step not in steps for option in ("--skip", step)]


REBUILT = (*only("health", "extraction"), "-q")
LEAKING = (*only("health", "span", "extraction", "learning", "training"), "-q")


def read(path) -> dict:
    return AuditRecord.load(path).to_dict()


@pytest.mark.usefixtures("short_training", "pictures")
def test_a_file_with_inputs_and_classes(command, npz, folder):
    """The one whole audit here, defenses included."""
    np.save(folder / "x.npy", np.random.default_rng(0).uniform(0, 1, (30, 5)))
    given = ("--inputs", folder / "x.npy", "--classes", "<b>yes</b>")
    ended = command("audit", npz, "-q", "--json", folder / "audit.json", "-o", folder / "page.html", *given)
    assert (ended.status, ended.err) == (0, "")
    assert f"Report: {folder / 'page.html'}" in ended.out
    record = read(folder / "audit.json")
    assert record["verdict"]["level"] == "exact"
    assert verdict_sentence(AuditRecord.load(folder / "audit.json")) in ended.out
    assert record["truth"]["neurons_found"] == 8
    assert record["defenses"]["on"] == "recovered-network"
    assert record["defenses"]["inputs"]["sampled"] is False
    assert record["defenses"]["rows"][1]["honest"]["inputs"] == 30
    assert record["target"]["classes"] == ["<b>yes</b>"]
    written = f"--json {folder / 'audit.json'} --out {folder / 'page.html'}"
    others = f"--inputs {folder / 'x.npy'} {written} --classes '<b>yes</b>'"
    assert record["repeat"]["command"] == f"reluctant audit {npz} {others}"
    page = (folder / "page.html").read_text()
    assert f'reluctant.report("{folder / "audit.json"}", "{folder / "page.html"}")' in page
    assert "<b>yes</b>" not in page


def test_one_json_object_on_standard_output(command, module, folder):
    ended = command("audit", f"{module(CONSTANT)}:target", "--dim", 3, "--json", "-")
    assert ended.status == 0
    assert json.loads(ended.out)["verdict"]["level"] == "unknown"
    assert (folder / "report.html").is_file()
    assert "audit 1/13: health" in ended.err


def test_a_rate_tells_how_long_an_attack_on_a_file_would_take(command, npz, folder):
    """Nothing is asked more slowly for it."""
    start = time.monotonic()
    ended = command("audit", npz, *REBUILT, "--rate", 2, "--price", 1, "--json", folder / "audit.json")
    assert ended.status == 0
    record = read(folder / "audit.json")
    assert "--rate 2 --price 1" in record["repeat"]["command"].replace(f"--json {folder / 'audit.json'} ", "")
    assert record["recovered"]["seconds"] == record["recovered"]["queries"] / 2
    expected = record["expected"]
    assert expected["seconds"]["expected"] == pytest.approx(expected["queries"]["expected"] / 2)
    assert time.monotonic() - start < expected["seconds"]["low"]


@pytest.mark.parametrize(("leak", "status"), [("extractable", 1), ("approximable", 1), ("span", 0)])
def test_fail_on(leak, status, command, npz):
    ended = command("audit", npz, *LEAKING, "--fail-on", leak)
    assert ended.status == status
    assert ended.out.count(f"Found, so --fail-on does not pass: {leak}.") == status


def test_every_format_beside_the_page(command, npz, folder):
    """The record, the findings and the tests: what the gate says, they say."""
    formats = [word for name in ("html", "json", "sarif", "junit") for word in ("--format", name)]
    ended = command("audit", npz, *REBUILT, *formats, "-o", folder / "a.sarif", "--fail-on", "extractable")
    assert ended.status == 1
    assert sorted(each.name for each in folder.glob("a.*")) == ["a.html", "a.json", "a.sarif", "a.xml"]
    record = read(folder / "a.json")
    assert (record["target"]["location"], record["gates"]) == (str(npz), ["extractable"])
    assert (record["repeat"]["record"], record["repeat"]["page"]) == (str(folder / "a.json"), str(folder / "a.html"))
    log = json.loads((folder / "a.sarif").read_text())
    assert log["runs"][0]["results"][0]["ruleId"] == "extractable"
    assert '<failure type="extractable"' in (folder / "a.xml").read_text()
    again = command("report", folder / "a.json", "--format", "sarif", "-o", folder / "again.sarif")
    assert again.status == 0
    assert json.loads((folder / "again.sarif").read_text()) == log


def test_files_are_written_though_nobody_reads_the_words(command, npz, folder, monkeypatch):
    """As behind `| head -1`: queries were paid for, so the report is there before the first word."""

    def closed(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(audit_commands, "print", closed, raising=False)
    with suppress(BrokenPipeError):
        command("audit", npz, *REBUILT, "-o", folder / "a.html", "--json", folder / "a.json")
    assert (folder / "a.html").exists()
    assert (folder / "a.json").exists()


def test_the_copy_is_written_in_the_inputs_own_units(command, module, folder):
    rows = np.random.default_rng(0).normal([2000.0, 0.1, 5e4], [10.0, 0.02, 2e4], (60, 3))
    np.save(folder / "x.npy", rows)
    served = module("""
import numpy as np
def target(x): return np.maximum((x - [2000, .1, 5e4]) / [10, .02, 2e4] @ np.eye(3, 6) + .1, 0).sum(1, keepdims=True)
""")
    given = (*REBUILT, "--dim", 3, "--inputs", folder / "x.npy")
    ended = command("audit", f"{served}:target", *given, "--copy", folder / "copy.npz")
    assert f"Copy: {folder / 'copy.npz'}" in ended.out
    copy = rl.ReLUNetwork.load(folder / "copy.npz")
    assert rl.verify(f"{served}:target", copy, dim=3, inputs=rows).ok
    command("audit", f"{module(CONSTANT)}:target", "--dim", 3, *REBUILT, "--copy", folder / "none.npz")
    assert not (folder / "none.npz").exists()
    refused = command("audit", f"{served}:target", *given, "--copy", folder / "copy.txt")
    assert (refused.status, "--copy" in refused.err) == (2, True)


def test_a_format_alone_has_the_ending_of_its_own(command, npz, folder):
    assert command("audit", npz, *only("health"), "-q", "--format", "junit").status == 0
    assert (folder / "report.xml").is_file()
    assert not (folder / "report.html").exists()


def test_fail_on_does_not_pass_what_is_not_settled(command, npz):
    ended = command("audit", npz, *QUICK, "--fail-on", "extractable", "--seconds", 1e-9)
    assert ended.status == 1
    assert ended.out.count("Not settled, so --fail-on does not pass: extractable.") == 1


@pytest.mark.parametrize(("leak", "step"), [("extractable", "extraction"), ("approximable", "learning")])
def test_fail_on_needs_its_steps(leak, step, command, npz):
    assert command("audit", npz, *QUICK, "--fail-on", leak, "--skip", step).status == 2


def test_fail_on_may_be_repeated(command, npz):
    """Those that do not pass are named in one line, beside a record on standard output too."""
    ended = command("audit", npz, *LEAKING, "--json", "-", *("--fail-on", "span", "--fail-on", "extractable") * 2)
    assert ended.status == 1
    assert ended.err == "Found, so --fail-on does not pass: extractable.\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--fail-on", "everything"),
        ("--price", "-1"),
        ("--price", "inf"),
        ("--input-shape", "five"),
        ("--input-shape", "2,2"),
        ("--inputs", "missing.npy"),
        ("-o", "missing/report.html"),
        ("--json", "missing/audit.json"),
        ("--link", "magic"),
        ("--link", "softmax"),  # of one output
        ("--rate", "0"),
        ("--rate", "nan"),
        ("--domain", "1"),
        ("--budget", "0"),
        ("--skip", "everything"),
        ("--seconds", "-5"),
    ],
)
def test_bad_usage_is_no_audit(arguments, command, npz, folder):
    ended = command("audit", npz, *arguments)
    assert ended.status == 2
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:9/v2/models/digits", "missing.onnx", "no_such_module:target", "notes.txt"]
)
def test_a_target_that_cannot_be_opened_has_a_report(target, command, folder):
    (folder / "notes.txt").write_text("no model")
    ended = command("audit", target, "--retries", 0, "--json", folder / "audit.json")
    assert ended.status == 1
    record = read(folder / "audit.json")
    assert record["ok"] is False
    assert record["verdict"]["level"] == "unknown"
    assert record["target"]["inputs"] is None
    assert record["queries"]["total"] == 0
    assert ended.out.splitlines()[1:] == [f"Report: {folder / 'report.html'}"]  # no figures of nothing
    assert record["verdict"]["confidence"] == "not-opened"


def test_a_page_is_not_lost_to_a_target_that_was_mistyped(command, folder):
    (folder / "report.html").write_text("an earlier page")
    ended = command("audit", "missing.onnx")
    assert ended.status == 1
    assert ended.out.splitlines()[1:] == [f"No report was written; kept, of an earlier audit: {folder / 'report.html'}"]
    assert (folder / "report.html").read_text() == "an earlier page"


def test_a_page_of_a_failure_is_not_kept_for_another(command, folder):
    command("audit", "missing.onnx")
    ended = command("audit", "another.onnx", "--json", folder / "audit.json")
    assert ended.out.splitlines()[1:] == [f"Report: {folder / 'report.html'}"]
    assert "another.onnx" in (folder / "report.html").read_text()


def test_a_record_that_was_not_kept_is_not_named(command, module, folder):
    command("audit", f"{module(CONSTANT)}:target", "--dim", 3, *QUICK)
    assert "was not kept" in (folder / "report.html").read_text()


def test_a_served_model(command, folder):
    with ModelServer(planted((5, 6, 2)), dim=5, outputs=2) as server:
        ended = command("audit", server.url, *QUICK, "--json", folder / "audit.json", "--price", 3, "--currency", "EUR")
    assert ended.status == 0
    record = read(folder / "audit.json")
    assert record["verdict"]["level"] == "exact"
    assert record["truth"] is None
    assert record["price"]["cost"] == pytest.approx(record["queries"]["total"] * 3 / 1000)


def test_a_wrong_model_name_has_a_report(command, folder):
    with ModelServer(planted((5, 6, 2)), dim=5, outputs=2) as server:
        ended = command("audit", server.url + "-other", "--json", folder / "audit.json", "-q")
    assert ended.status == 1
    assert read(folder / "audit.json")["target"]["inputs"] is None


def test_a_server_that_takes_few_rows_at_once(command, folder):
    with ModelServer(planted((4, 3, 1)), dim=4, most_rows=5) as server:
        ended = command("audit", server.url, *REBUILT, "--json", folder / "audit.json", "--budget", 4000)
    assert ended.status == 0
    assert read(folder / "audit.json")["verdict"]["level"] == "exact"


FEW_ROWS = """
from reluctant.testing import planted

def target(x):
    if len(x) > 100:
        raise ValueError("at most 100 rows")
    return planted((5, 4, 1))(x)
"""


def test_a_function_that_takes_few_rows_at_once(command, module, folder):
    target = f"{module(FEW_ROWS)}:target"
    steps = (*only("health", "extraction", "plane"), "-q")
    arguments = ("audit", target, "--dim", 5, *steps, "--json", folder / "audit.json")
    assert command(*arguments).status == 0
    record = read(folder / "audit.json")
    failed = [step["diagnosis"] for step in record["steps"] if step["state"] == "failed"]
    assert any("batch=" in diagnosis["fields"]["message"] for diagnosis in failed)
    assert command(*arguments, "--batch", 100).status == 0
    record = read(folder / "audit.json")
    assert record["verdict"]["level"] == "exact"
    assert not any(step["state"] == "failed" for step in record["steps"])
    assert "--batch 100" in record["repeat"]["command"]


def test_resumed_from_a_transcript(command, module, folder):
    source = "from reluctant.testing import planted\ntarget = planted((5, 4, 1)).__call__\n"
    target = f"{module(source)}:target"
    arguments = ("audit", target, "--dim", 5, *QUICK, "--transcript", folder / "kept", "--json", folder / "audit.json")
    command(*arguments)
    first = read(folder / "audit.json")
    command(*arguments)
    again = read(folder / "audit.json")
    sent = sum(rows["sent"] for rows in again["queries"]["by_stage"].values())
    assert sent == 3  # the opening question
    assert again["recovered"] == first["recovered"]
    assert again["pictures"] == first["pictures"]


def test_a_transcript_of_another_target_or_seed_is_a_mistake(command, module, folder):
    """No report is made of it, least of all over one that is there."""
    source = "from reluctant.testing import planted\ntarget = planted((5, 4, 1), {}).__call__\n"
    first, other = (f"{module(source.format(seed))}:target" for seed in (0, 1))
    kept = ("--dim", 5, "-q", "--skip", "defenses", "--skip", "extraction", "--transcript", folder / "kept")
    assert command("audit", first, *kept, "--json", folder / "audit.json").status == 0
    written = [(folder / name).read_bytes() for name in ("report.html", "audit.json")]
    for wrong in ((other,), (first, "--seed", 7)):
        ended = command("audit", *wrong, *kept, "--json", folder / "audit.json")
        assert (ended.status, ended.out) == (2, "")
        assert "[transcript-mismatch]" in ended.err
    assert [(folder / name).read_bytes() for name in ("report.html", "audit.json")] == written


HANGING = """
import time
from pathlib import Path
from reluctant.testing import planted

network, calls = planted((5, 4, 1)), 0

def target(x):
    global calls
    calls += 1
    if calls > 12:
        Path("hanging").touch()
        time.sleep(600)
    return network(x)
"""


@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_a_signal_ends_it_with_a_report(sent, status, main, folder, patience):
    (folder / "slow.py").write_text(HANGING)
    arguments = ["audit", "slow:target", "--dim", "5", "--json", "audit.json"]
    process = subprocess.Popen(
        [*main, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        end = time.monotonic() + patience
        while not (folder / "hanging").exists() and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(sent)
        out, err = process.communicate(timeout=patience)
    finally:
        process.kill()
    assert process.returncode == status
    record = read(folder / "audit.json")
    assert record["ok"] is False
    assert record["interface"] is not None
    states = [step["state"] for step in record["steps"]]
    stopped = states.index("stopped")
    assert set(states[stopped + 1 :]) == {"not begun"}
    assert stop_sentence(AuditRecord.load(folder / "audit.json")) in out.splitlines()[-2]  # before the report
    assert f"audit {stopped + 1}/13: " in err
    assert f"audit {stopped + 2}/13: " not in err  # nothing is announced that is not begun
    assert (folder / "report.html").is_file()

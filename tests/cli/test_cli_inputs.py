"""Inputs on the command line: rows and bounds from files, and files that cannot be written."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl

RAW = """
import numpy as np
from reluctant.testing import planted
centre, scale = np.array([0.0, 2000.0, -3e5, 0.05, 7.0]), np.array([1.0, 5.0, 4e4, 0.01, 100.0])
def target(x): return planted((5, 4, 1), 1)((x - centre) / scale)
"""
CENTRE, SCALE = np.array([0.0, 2000.0, -3e5, 0.05, 7.0]), np.array([1.0, 5.0, 4e4, 0.01, 100.0])


@pytest.mark.parametrize("option", ["--inputs", "--domain"])
def test_a_target_on_raw_columns_is_extracted_by_rows_or_bounds_of_a_file(option, command, module, folder):
    given = CENTRE + SCALE * np.random.default_rng(0).standard_normal((100, 5))
    np.save(folder / "given.npy", given if option == "--inputs" else [CENTRE - 3 * SCALE, CENTRE + 3 * SCALE])
    ended = command(
        "extract", f"{module(RAW)}:target", "--dim", 5, option, folder / "given.npy", "-o", folder / "c.npz"
    )
    assert ended.status == 0
    copy = rl.ReLUNetwork.load(folder / "c.npz")
    assert copy.widths == (5, 4, 1)
    assert np.abs(copy.hyperplanes()[0][:, 2]).max() < 1e-3  # of the column of 4e4: in its own units


def test_bounds_of_the_wrong_shape_are_refused(command, npz, folder):
    np.save(folder / "bounds.npy", np.zeros((3, 5)))
    ended = command("extract", npz, "--domain", folder / "bounds.npy")
    assert (ended.status, "(2, d)" in ended.err) == (2, True)


@pytest.mark.parametrize("option", ["--out", "--json"])
def test_a_file_in_a_closed_folder_is_refused_before_a_query(option, command, npz, folder, monkeypatch):
    def closed(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("reluctant.cli.files.TemporaryFile", closed)  # root may write everywhere
    ended = command("audit", npz, option, folder / "report.html")
    assert (ended.status, "Permission denied" in ended.err, ended.out) == (2, True, "")


def test_the_verdict_is_printed_where_its_page_cannot_be_written(command, npz, folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("reluctant.report.page.write_text", full)
    ended = command("audit", npz, "-o", folder / "report.html", "--skip", "defenses", "--budget", 2000)
    assert ended.status == 2
    assert "parameters" in ended.out
    assert "No space left" in ended.err


@pytest.mark.parametrize("name", ["extract", "span"])
def test_a_result_is_printed_where_its_file_cannot_be_written(name, command, npz, folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr({"extract": "reluctant.ReLUNetwork.save", "span": "reluctant.Span.save"}[name], full)
    ended = command(name, npz, "-o", folder / "copy.npz")
    assert ended.status == 2
    assert "queries." in ended.out
    assert "No space left" in ended.err


def test_a_copy_is_written_where_the_page_cannot_be(command, npz, folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("reluctant.report.page.write_text", full)
    files = ["-o", folder / "report.html", "--copy", folder / "copy.npz"]
    assert command("audit", npz, *files, "--skip", "defenses", "--skip", "plane", "--budget", 2000).status == 2
    assert rl.ReLUNetwork.load(folder / "copy.npz").widths == rl.ReLUNetwork.load(npz).widths


def test_a_copy_on_raw_columns_is_verified_at_rows_of_them(command, module, folder):
    steep = (
        "def chance(x):\n    z = np.clip(-10 * target(x), -700, 700)\n    return 1 / (1 + np.exp(np.hstack([-z, z])))\n"
    )
    rows = CENTRE + SCALE * np.random.default_rng(0).standard_normal((100, 5))
    np.save(folder / "x.npy", rows)
    name, copy = f"{module(RAW + steep)}:chance", folder / "c.npz"
    options = ["--dim", 5, "--inputs", folder / "x.npy"]
    assert command("extract", name, *options, "-o", copy).status == 0
    assert "agrees" in command("verify", name, copy, *options, "--points", 90).out


def test_a_gate_does_not_pass_probabilities_on_raw_columns(command, module, folder):
    chance = (
        "def chance(x):\n    z = np.clip(-4 * target(x), -700, 700)\n    return 1 / (1 + np.exp(np.hstack([-z, z])))\n"
    )
    np.save(folder / "x.npy", CENTRE + SCALE * np.random.default_rng(0).standard_normal((100, 5)))
    options = ["--dim", 5, "--inputs", folder / "x.npy", "--fail-on", "extractable", "-o", folder / "r.html"]
    skipped = [part for step in ("defenses", "plane", "errors") for part in ("--skip", step)]
    ended = command("audit", f"{module(RAW + chance)}:chance", *options, *skipped, "--budget", 8000)
    assert ended.status == 1
    assert "Found, so --fail-on does not pass: extractable" in ended.out + ended.err


def test_a_copy_of_one_output_keeps_its_sigmoid(command, module, folder):
    source = RAW + "\ndef chance(x):\n    p = 1 / (1 + np.exp(-target(x)))\n    return np.hstack([1 - p, p])\n"
    np.save(folder / "x.npy", CENTRE + SCALE * np.random.default_rng(0).standard_normal((100, 5)))
    name, copy, x = f"{module(source)}:chance", folder / "c.onnx", folder / "x.npy"
    options = ["--dim", 5, "--link", "sigmoid", "--output", 1, "--inputs", x]
    assert command("extract", name, *options, "-o", copy).status == 0
    assert rl.ReLUNetwork.load(copy).link == "sigmoid"
    assert command("verify", name, copy, *options).status == 0

"""Every experiment runs in a small version, and its checks can fail."""

from __future__ import annotations

import gzip
import inspect
import json
import struct
from dataclasses import replace

import numpy as np
import pytest
from sweeps import sweep

from reluctant import DepthTwo
from reluctant.errors import InvalidInput
from reluctant.papers.experiments import (
    exact_theorems,
    image_classifiers,
    learning_theorems,
    span_recovery,
    trials,
)
from reluctant.papers.experiments.experiment import PAPERS, Check, Finding
from reluctant.papers.experiments.gallery import is_only_drawn
from reluctant.papers.experiments.image_classifiers import (
    before_and_after,
    check_mnist,
    hit_rate,
    load_digits,
    load_mnist,
)
from reluctant.papers.experiments.reproduction import EXPERIMENTS
from reluctant.papers.experiments.trials import exact_run
from reluctant.testing import planted

SMALL = {
    "smallest-perturbation": {"dim": 200, "widths": (10, 100, 200), "runs": 4},
    "flip-steps": {"networks": {50: 6, 100: 6}, "depths": (2, 3), "asked": 1},
    "linearity-law": {"dim": 100, "hidden": (1, 2), "networks": 2},
    "bottlenecks": {"wide": 100, "narrow": 10, "networks": 2},
    "depth": {"widths": (30,), "depths": (1, 3, 10), "networks": 2},
    "trained": {"hidden": ((8,),), "inputs": 5},
    "span-thin": {"hidden": ((3, 3),), "networks": 1, "inputs": 60, "rank": 12},
    "span-moderate": {"hidden": ((10,),), "networks": 1, "inputs": 60, "rank": 12},
    "span-noise": {"hidden": (12,)},
    "span-values": {"hidden": ((6, 3),), "networks": 1},
    "span-labels": {"networks": {(50, 8, 16, 1): 1}},
    "learn-bump": {"widths": (0.1, 0.01), "networks": 2},
    "learn-clusters": {"families": ("clusters 1e-05", "stairs"), "networks": 1},
    "learn-theorem": {"widths": (0.3, 0.1), "networks": 2},
    "exact-one-layer": {"networks": {(20, 10, 1): 2, (64, 40, 1): 1}},
    "exact-orthant": {"networks": {(10, 20, 1): 2}},
    "exact-two-layers": {"networks": {(10, 10, 10, 1): 1, (20, 10, 20, 1): 1}},
    "milli-gradients": {"widths": (16, 32, 64), "inputs": (20, 60), "networks": 1},
    "logit-rank": {"heads": ((20, 8, 60),), "networks": 1},
}
# Small versions of these say the same as full ones: nothing in them depends on large numbers.
TRUE_WHEN_SMALL = (
    "span-noise", "span-values", "span-labels", "learn-bump", "learn-clusters", "learn-theorem", "exact-one-layer",
    "exact-orthant", "exact-two-layers", "milli-gradients", "logit-rank",
)  # fmt: skip
# At least one of each paper, none of which takes a second.
QUICK = (
    "smallest-perturbation", "linearity-law", "bottlenecks", "depth", "trained", "span-labels", "learn-bump",
    "learn-theorem", "exact-one-layer", "logit-rank",
)  # fmt: skip


@pytest.fixture(scope="module")
def small():
    """Each experiment once, its networks of few inputs and its classifiers after few epochs."""
    found: dict[str, Finding] = {}

    def run(name: str) -> Finding:
        if name not in found:
            found[name] = EXPERIMENTS[name](**SMALL[name])
        return found[name]

    with pytest.MonkeyPatch.context() as patch:
        for module in (trials, span_recovery):
            patch.setattr(module, "SPAN_DIM", 400)
            patch.setattr(module, "SPAN_RANK", 40)
        patch.setattr(image_classifiers, "FEW_IMAGES_FACTOR", 4)
        yield run


@pytest.mark.parametrize("name", sweep(EXPERIMENTS, fast=QUICK))
def test_an_experiment_gives_a_table_a_picture_and_data(name, small, tmp_path):
    finding = small(name)
    assert finding.name == name
    assert all(len(row) == len(finding.columns) for row in finding.rows)
    assert finding.checks
    assert finding.claim
    assert any(digit in finding.measured for digit in "0123456789")
    svg, text, data = finding.write(tmp_path, seed=0)
    assert svg.read_text().startswith("<svg")
    assert is_only_drawn(svg.read_text())
    written = json.loads(data.read_text())
    assert written["rows"]
    assert written["paper"]["title"] == EXPERIMENTS[name].paper.title
    assert (written["where"], written["seed"]) == (EXPERIMENTS[name].where, 0)
    assert finding.measured in text.read_text()


@pytest.mark.parametrize("name", sweep(TRUE_WHEN_SMALL, fast=[name for name in TRUE_WHEN_SMALL if name in QUICK]))
def test_what_the_paper_claims_holds(name, small):
    assert [str(check) for check in small(name).checks if not check.ok] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_the_paper_claims_holds_at_the_quick_size(name):
    assert [str(check) for check in EXPERIMENTS[name](size="quick", rng=0).checks if not check.ok] == []


@pytest.mark.parametrize("name", sweep(EXPERIMENTS, fast=QUICK))
def test_checks_are_numbers_each_with_a_name_of_its_own(name, small):
    checks = small(name).checks
    assert all(np.isfinite(check.value) for check in checks)
    assert len({check.name for check in checks}) == len(checks)


def test_nothing_is_asked_of_what_is_not_random():
    finding = EXPERIMENTS["smallest-perturbation"](dim=50, widths=(10, 50), runs=2)
    assert [check.name for check in finding.checks] == ["z at k = 10"]
    assert finding.rows[-1][-1] is None


def test_a_wide_bump_that_is_missed_fails_the_finding(monkeypatch):
    real = learning_theorems.paper_run
    missed = []

    def misses_one(seed, width):
        run = real(seed, width)
        if width >= 0.03 and not missed:
            missed.append(seed)
            return replace(run, error=1.0)
        return run

    monkeypatch.setattr(learning_theorems, "paper_run", misses_one)
    finding = EXPERIMENTS["learn-theorem"](widths=(0.3, 0.1, 0.02), networks=10)
    assert not finding.ok
    assert "19 of 20 bumps 0.1 to 0.3 wide and 10 of 10 bumps 0.02 wide" in finding.measured


def test_two_layers_that_cost_too_much_fail_the_finding(monkeypatch):
    real = exact_theorems.exact_run
    slow = lambda true, seed, **more: replace(real(true, seed, **more), queries=30 * len(true.weights[0]) ** 2)  # noqa: E731
    monkeypatch.setattr(exact_theorems, "exact_run", slow)
    finding = EXPERIMENTS["exact-two-layers"](networks={(10, 10, 10, 1): 1, (24, 24, 10, 1): 1})
    assert [check.name for check in finding.checks if not check.ok] == [
        "most queries for each parameter", "power of the parameters that queries follow",
    ]  # fmt: skip


def test_narrow_bumps_are_asked_for_only_where_there_are_any():
    finding = EXPERIMENTS["learn-bump"](widths=(0.1,), networks=1)
    assert not any("exact method alone missed" in check.name for check in finding.checks)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_quick_size_is_a_choice_of_numbers(name):
    experiment = EXPERIMENTS[name]
    assert set(experiment.quick) <= set(inspect.signature(experiment.measure).parameters) - {"rng", "mnist_folder"}


def test_sizes_are_handed_on():
    seen = []
    real = EXPERIMENTS["bottlenecks"]
    spy = type(real)("spy", real.paper, real.where, lambda **numbers: seen.append(numbers) or real.measure(
        **(numbers | SMALL["bottlenecks"])), {"networks": 3})  # fmt: skip
    spy(size="quick", rng=4)
    spy(rng=4)
    spy(size="quick", networks=1, rng=4)
    assert seen == [{"networks": 3, "rng": 4}, {"rng": 4}, {"networks": 1, "rng": 4}]
    with pytest.raises(InvalidInput, match="quick or full"):
        spy(size="huge")


def test_every_paper_has_experiments():
    assert {experiment.paper for experiment in EXPERIMENTS.values()} == set(PAPERS)


def test_a_finding_is_the_same_with_the_same_seed():
    law = EXPERIMENTS["linearity-law"]
    one, other, third = (law(dim=60, hidden=(1,), networks=2, rng=seed) for seed in (3, 3, 4))
    assert one.rows == other.rows != third.rows


def test_the_law_of_figure_one_holds():
    finding = EXPERIMENTS["smallest-perturbation"](dim=400, widths=(10, 100), runs=20, rng=5)
    assert finding.ok


def test_a_number_out_of_bounds_fails_the_finding():
    good, bad = Check("a", 0.5, 0, 1), Check("b", 2.0, 0, 1)
    finding = Finding("t", "c", ("x",), ((1,),), lambda figure: None, (good, bad))
    assert not finding.ok
    assert "NOT b" in finding.table()


def test_a_network_that_was_refused_counts_as_such():
    refused = exact_run(planted((10, 20, 20, 20, 1)), 0, DepthTwo(), domain=(0.0, 1.0))
    assert not refused.ok
    assert refused.why
    assert refused.out == refused.worst == np.inf
    assert not refused.wrong


def test_the_start_of_training_is_the_same_network():
    images = load_digits()
    before, after = before_and_after(images, (16,), 0)
    again, _ = before_and_after(images, (16,), 0)
    np.testing.assert_array_equal(before.weights[0], again.weights[0])
    assert hit_rate(before, images) < 0.4
    assert hit_rate(after, images) > 0.8


def write_idx(path, magic, values):
    sizes = values.shape
    path.write_bytes(gzip.compress(struct.pack(f">I{len(sizes)}I", magic, *sizes) + values.astype(np.uint8).tobytes()))


def test_mnist_files_are_read(tmp_path):
    rng = np.random.default_rng(0)
    pixels, labels = rng.integers(0, 256, (7, 28, 28)), rng.integers(0, 10, 7)
    for part in ("train", "t10k"):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte.gz", 0x803, pixels)
        with pytest.raises(InvalidInput, match="labels"):
            check_mnist(tmp_path)
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte.gz", 0x801, labels)
    check_mnist(tmp_path)
    images = load_mnist(tmp_path)
    np.testing.assert_allclose(images.test_x, pixels.reshape(7, -1) / 255)
    np.testing.assert_array_equal(images.train_y, labels)


def test_a_folder_without_mnist_is_refused(tmp_path):
    with pytest.raises(ValueError, match="mnist"):
        load_mnist(tmp_path)
    write_idx(tmp_path / "train-images-idx3-ubyte.gz", 0x801, np.zeros(3))
    with pytest.raises(ValueError, match="something else"):
        load_mnist(tmp_path)

"""Every experiment runs in a small version, and its checks can fail."""

from __future__ import annotations

import gzip
import json
import struct

import numpy as np
import pytest

from reluctant.experiments import EXPERIMENTS, Check, Finding
from reluctant.experiments.depth import depth_study
from reluctant.experiments.images import digits, mnist
from reluctant.experiments.linearity import bottleneck_study, linearity_law
from reluctant.experiments.perturbation import smallest_perturbation
from reluctant.experiments.span_noise import span_noise
from reluctant.experiments.span_ranks import span_moderate, span_thin
from reluctant.experiments.steps import flip_steps
from reluctant.experiments.trained import trained_linearity
from reluctant.experiments.training import accuracy, before_and_after

SMALL = {
    "smallest-perturbation": lambda: smallest_perturbation(dim=200, widths=(10, 100, 200), runs=4),
    "flip-steps": lambda: flip_steps(networks={50: 6, 100: 6}, depths=(2, 3), asked=1),
    "linearity-law": lambda: linearity_law(dim=100, hidden=(1, 2), networks=2),
    "bottlenecks": lambda: bottleneck_study(wide=100, narrow=10, networks=2),
    "depth": lambda: depth_study(widths=(30,), depths=(1, 3, 10), networks=2),
    "trained": lambda: trained_linearity(hidden=((8,),), inputs=5),
    "span-thin": lambda: span_thin(hidden=((3, 3),), networks=1, inputs=60, rank=12),
    "span-moderate": lambda: span_moderate(hidden=((10,),), networks=1, inputs=60, rank=12),
    "span-noise": lambda: span_noise(hidden=(12,)),
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_gives_a_table_a_picture_and_data(name, tmp_path):
    finding = SMALL[name]()
    assert finding.name == name
    assert all(len(row) == len(finding.columns) for row in finding.rows)
    assert finding.checks
    svg, data, text = finding.write(tmp_path)
    assert svg.read_text().startswith("<svg")
    assert json.loads(data.read_text())["rows"]
    assert finding.title in text.read_text()


def test_a_finding_is_the_same_with_the_same_seed():
    one, other = (linearity_law(dim=60, hidden=(1,), networks=2, rng=3) for _ in range(2))
    assert one.rows == other.rows


def test_the_law_of_figure_one_holds():
    finding = smallest_perturbation(dim=400, widths=(10, 100), runs=20, rng=5)
    assert finding.ok


def test_a_number_out_of_bounds_fails_the_finding():
    good, bad = Check("a", 0.5, 0, 1), Check("b", 2.0, 0, 1)
    finding = Finding("n", "t", "c", ("x",), ((1,),), lambda figure: None, (good, bad))
    assert not finding.ok
    assert "NOT b" in finding.table()


def test_the_start_of_training_is_the_same_network():
    images = digits()
    before, after = before_and_after(images, (16,), 0)
    again, _ = before_and_after(images, (16,), 0)
    np.testing.assert_array_equal(before.weights[0], again.weights[0])
    assert accuracy(before, images) < 0.4
    assert accuracy(after, images) > 0.8


def write_idx(path, magic, values):
    sizes = values.shape
    path.write_bytes(gzip.compress(struct.pack(f">I{len(sizes)}I", magic, *sizes) + values.astype(np.uint8).tobytes()))


def test_mnist_files_are_read(tmp_path):
    rng = np.random.default_rng(0)
    pixels, labels = rng.integers(0, 256, (7, 28, 28)), rng.integers(0, 10, 7)
    for part in ("train", "t10k"):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte.gz", 0x803, pixels)
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte.gz", 0x801, labels)
    images = mnist(tmp_path)
    np.testing.assert_allclose(images.test_x, pixels.reshape(7, -1) / 255)
    np.testing.assert_array_equal(images.train_y, labels)


def test_a_folder_without_mnist_is_refused(tmp_path):
    with pytest.raises(ValueError, match="--mnist"):
        mnist(tmp_path)
    write_idx(tmp_path / "train-images-idx3-ubyte.gz", 0x801, np.zeros(3))
    with pytest.raises(ValueError, match="something else"):
        mnist(tmp_path)

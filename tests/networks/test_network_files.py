"""Networks on disk: what was saved comes back bit by bit, and a file that is not ours is refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_graphs import run_onnx

from reluctant import ReLUNetwork
from reluctant.errors import InvalidInput, UnsupportedModel
from reluctant.testing import planted

DEPTHS = {1: (4, 3), 2: (4, 5, 3), 3: (4, 5, 6, 3), 4: (4, 5, 6, 2, 3)}
with_every_depth = pytest.mark.parametrize("depth", DEPTHS)
with_both_suffixes = pytest.mark.parametrize("suffix", [".npz", ".onnx"])


def with_link(network: ReLUNetwork, link: str) -> ReLUNetwork:
    return ReLUNetwork(network.weights, network.biases, network.skip, link)


def assert_equal_bits(network: ReLUNetwork, other: ReLUNetwork) -> None:
    assert (network.widths, network.link) == (other.widths, other.link)
    assert (network.skip is None) == (other.skip is None)
    pairs = [*zip(network.weights, other.weights, strict=True), *zip(network.biases, other.biases, strict=True)]
    for ours, theirs in [*pairs, *([] if network.skip is None else [(network.skip, other.skip)])]:
        assert ours.tobytes() == theirs.tobytes()


# A skip beside a single layer is one affine map in a graph: that one comes back as a function only.
EXACT = [
    (suffix, depth, skip)
    for suffix in (".npz", ".onnx")
    for depth in DEPTHS
    for skip in (False, True)
    if not (suffix == ".onnx" and depth == 1 and skip)
]


@pytest.mark.parametrize(("suffix", "depth", "skip"), EXACT)
@pytest.mark.parametrize("link", ["identity", "softmax", "sigmoid", "tanh"])
def test_what_is_saved_comes_back_exactly(suffix, depth, skip, link, tmp_path, seed):
    network = with_link(planted(DEPTHS[depth], seed, skip=skip), link)
    path = tmp_path / f"network{suffix}"
    network.save(path)
    assert_equal_bits(ReLUNetwork.load(path), network)


def test_an_affine_network_with_a_skip_comes_back_as_the_same_function(tmp_path, seed):
    network = planted((4, 3), seed, skip=True)
    network.save(tmp_path / "network.onnx")
    rows = np.random.default_rng(seed).standard_normal((12, 4))
    np.testing.assert_allclose(ReLUNetwork.load(tmp_path / "network.onnx")(rows), network(rows), atol=1e-13)


@with_both_suffixes
def test_special_numbers_come_back_exactly(suffix, tmp_path):
    tiny, huge = np.finfo(np.float64).smallest_subnormal, np.finfo(np.float64).max
    network = ReLUNetwork([[[tiny, -0.0], [huge, 0.1]], [[1 / 3, -tiny]]], [[0.0, -tiny], [np.pi]])
    path = tmp_path / f"network{suffix}"
    network.save(path)
    assert_equal_bits(ReLUNetwork.load(path), network)


@with_both_suffixes
def test_float32_is_rounded_once(suffix, tmp_path, seed):
    network = planted((4, 5, 3), seed, skip=True)
    path = tmp_path / f"network{suffix}"
    network.save(path, dtype="float32")
    loaded = ReLUNetwork.load(path)
    for ours, theirs in zip((*loaded.weights, *loaded.biases), (*network.weights, *network.biases), strict=True):
        np.testing.assert_array_equal(ours, theirs.astype(np.float32))
    np.testing.assert_array_equal(loaded.skip, network.skip.astype(np.float32))


@with_every_depth
@pytest.mark.parametrize("skip", [False, True], ids=["plain", "skip"])
def test_the_runtime_computes_what_the_network_does(depth, skip, tmp_path, seed):
    network = planted(DEPTHS[depth], seed, skip=skip)
    path = tmp_path / "network.onnx"
    network.save(path)
    rows = np.random.default_rng(seed).standard_normal((50, 4))
    np.testing.assert_allclose(run_onnx(path, rows), network(rows), rtol=0, atol=1e-13)


LINKS = {
    "softmax": lambda z: np.exp(z) / np.exp(z).sum(axis=1, keepdims=True),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "tanh": np.tanh,
}


@pytest.mark.parametrize("link", LINKS)
def test_the_link_is_part_of_the_written_model(link, tmp_path, seed):
    network = with_link(planted((4, 5, 3), seed), link)
    path = tmp_path / "network.onnx"
    network.save(path)
    rows = np.random.default_rng(seed).standard_normal((50, 4))
    np.testing.assert_allclose(run_onnx(path, rows), LINKS[link](network(rows)), rtol=0, atol=1e-13)


def test_the_runtime_runs_a_float32_file(tmp_path, seed):
    network = planted((4, 5, 3), seed)
    path = tmp_path / "network.onnx"
    network.save(path, dtype="float32")
    rows = np.random.default_rng(seed).standard_normal((50, 4))
    np.testing.assert_allclose(run_onnx(path, rows), network(rows), atol=1e-4)


def test_a_written_model_passes_the_full_onnx_check(tmp_path):
    path = tmp_path / "network.onnx"
    with_link(planted((4, 5, 6, 3), skip=True), "softmax").save(path)
    onnx.checker.check_model(str(path), full_check=True)


def test_a_path_may_be_text(tmp_path):
    network = planted((4, 5, 3))
    network.save(str(tmp_path / "network.npz"))
    assert_equal_bits(ReLUNetwork.load(str(tmp_path / "network.npz")), network)


# ---- files that are refused


@pytest.mark.parametrize("name", ["network.txt", "network", "network.npz.bak", "network.ONNX.zip"])
def test_another_suffix_is_refused(name, tmp_path):
    with pytest.raises(InvalidInput, match=rf"^path: got '{name}', expected a name ending in .npz or .onnx"):
        planted((4, 5, 3)).save(tmp_path / name)
    with pytest.raises(InvalidInput, match=r"expected a name ending in"):
        ReLUNetwork.load(tmp_path / name)


@with_both_suffixes
def test_a_missing_file_is_refused(suffix, tmp_path):
    with pytest.raises(InvalidInput, match=r"^path: got '.*', expected an existing file"):
        ReLUNetwork.load(tmp_path / f"missing{suffix}")


@with_both_suffixes
def test_a_folder_is_no_file(suffix, tmp_path):
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(InvalidInput, match="expected an existing file"):
        ReLUNetwork.load(tmp_path / f"folder{suffix}")


@with_both_suffixes
def test_a_folder_that_does_not_exist_cannot_be_written_to(suffix, tmp_path):
    with pytest.raises(InvalidInput, match=r"^path: got '.*', expected "):
        planted((4, 5, 3)).save(tmp_path / "missing" / f"network{suffix}")


JUNK = {"nothing": b"", "text": b"no model at all\n", "noise": bytes(range(256)) * 8, "half a zip": b"PK\x03\x04" * 9}


@with_both_suffixes
@pytest.mark.parametrize("content", JUNK)
def test_junk_is_refused(suffix, content, tmp_path):
    path = tmp_path / f"junk{suffix}"
    path.write_bytes(JUNK[content])
    with pytest.raises(UnsupportedModel, match=r"^path: got '.*', expected an"):
        ReLUNetwork.load(path)


@with_both_suffixes
def test_a_torn_file_is_refused(suffix, tmp_path):
    path = tmp_path / f"network{suffix}"
    planted((40, 30, 3)).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UnsupportedModel, match=r"^path: got '.*', expected an"):
        ReLUNetwork.load(path)


def saved_arrays(tmp_path, **changes) -> dict[str, np.ndarray]:
    planted((4, 5, 3)).save(tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as data:
        return dict(data) | changes


def test_an_npz_that_is_not_ours_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(UnsupportedModel, match=r"expected an \.npz written by ReLUNetwork\.save"):
        ReLUNetwork.load(tmp_path / "other.npz")


def test_an_array_under_our_suffix_is_refused(tmp_path):
    with (tmp_path / "array.npz").open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(UnsupportedModel, match=r"expected an \.npz written by"):
        ReLUNetwork.load(tmp_path / "array.npz")


def test_another_format_number_is_refused(tmp_path):
    np.savez(tmp_path / "later.npz", **saved_arrays(tmp_path, format=np.array(3)))
    with pytest.raises(UnsupportedModel, match=r"of format 3, expected format 2 or lower\. Update reluctant\."):
        ReLUNetwork.load(tmp_path / "later.npz")


def test_pickled_arrays_are_never_loaded(tmp_path):
    bomb = np.array([Bomb(tmp_path / "exploded")], dtype=object)
    np.savez(tmp_path / "bomb.npz", **saved_arrays(tmp_path, weight_0=bomb))
    with pytest.raises(UnsupportedModel, match=r"expected an \.npz written by"):
        ReLUNetwork.load(tmp_path / "bomb.npz")
    assert not (tmp_path / "exploded").exists()


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        import os

        return os.mkdir, (self.folder,)


def test_a_layer_missing_in_the_middle_is_refused(tmp_path):
    arrays = saved_arrays(tmp_path)
    del arrays["weight_0"]
    np.savez(tmp_path / "gap.npz", **arrays)
    with pytest.raises(UnsupportedModel, match=r"expected an \.npz written by"):
        ReLUNetwork.load(tmp_path / "gap.npz")

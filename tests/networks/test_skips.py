"""Skips from any layer into any higher one: evaluation, slopes, files, other forms and symmetries."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput
from reluctant.fitting.network_fit import polish
from reluctant.geometry import DistanceNoise, Frame
from reluctant.networks import canonical, equivalent, match
from reluctant.networks.network import evaluate
from reluctant.numerics import Arrays
from reluctant.verification.points import extreme_points, rare_points

WIDTHS = (4, 6, 5, 3, 2)
OVER = [(0, 2), (0, 3), (1, 3), (1, 4), (0, 4)]


def skipping(seed: int = 0, over=OVER, link="identity") -> rl.ReLUNetwork:
    rng = np.random.default_rng(seed)
    weights = [rng.standard_normal((m, n)) for n, m in itertools.pairwise(WIDTHS)]
    biases = [rng.standard_normal(m) for m in WIDTHS[1:]]
    return rl.ReLUNetwork(
        weights, biases, link=link, skips={(s, t): rng.standard_normal((WIDTHS[t], WIDTHS[s])) for s, t in over}
    )


def by_hand(network: rl.ReLUNetwork, rows: np.ndarray) -> np.ndarray:
    layers = [rows]
    for k, (w, b) in enumerate(zip(network.weights, network.biases, strict=True), 1):
        values = layers[-1] @ w.T + b + sum(layers[s] @ w.T for (s, t), w in network.skips.items() if t == k)
        layers.append(values if k == network.depth else np.maximum(values, 0))
    return layers[-1]


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(5).standard_normal((40, WIDTHS[0]))


def test_a_network_with_skips_is_evaluated_layer_by_layer(rows):
    network = skipping()
    expected = by_hand(network, rows)
    np.testing.assert_allclose(network(rows), expected, atol=1e-12)
    np.testing.assert_allclose(evaluate(network, rows, Arrays()), expected, atol=1e-12)
    assert repr(network).startswith("ReLUNetwork(4-6-5-3-2 + skips")
    assert network.parameters == 30 + 35 + 18 + 8 + sum(w.size for w in network.skips.values())
    assert not network.is_chain


def test_slopes_and_local_maps_are_those_of_the_function(rows):
    network, step = skipping(), 1e-6
    slopes = network.gradients(rows)
    for k, direction in enumerate(np.eye(WIDTHS[0])):
        change = (network(rows + step * direction) - network(rows - step * direction)) / (2 * step)
        np.testing.assert_allclose(slopes[:, :, k], change, atol=1e-6)
    np.testing.assert_allclose(network.local_maps(rows)(rows), network(rows), atol=1e-12)


@pytest.mark.parametrize("suffix", ["npz", "onnx"])
def test_files_bring_skips_back(suffix, rows, tmp_path):
    network = skipping(link="softmax")
    network.save(tmp_path / f"network.{suffix}")
    again = rl.ReLUNetwork.load(tmp_path / f"network.{suffix}")
    assert list(again.skips) == list(network.skips)
    assert again.link == "softmax"
    for ours, theirs in zip(network.skips.values(), again.skips.values(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(again(rows), network(rows))


def test_a_plain_network_is_written_as_before(tmp_path):
    plain = rl.ReLUNetwork(skipping().weights, skipping().biases)
    plain.save(tmp_path / "network.npz")
    with np.load(tmp_path / "network.npz") as data:
        assert int(data["format"]) == 1
        assert not [name for name in data if name.startswith("skip")]


def test_the_affine_term_is_one_of_the_skips():
    network = skipping(over=[(0, 4)])
    assert network.is_chain
    np.testing.assert_array_equal(network.skip, network.skips[0, 4])
    assert skipping(over=[(1, 3)]).skip is None


@pytest.mark.parametrize("key", [(0, 1), (2, 3), (3, 1), (1, 5), (-1, 2)])
def test_a_skip_goes_over_a_layer(key):
    with pytest.raises(InvalidInput, match="with a layer between"):
        rl.ReLUNetwork(skipping().weights, skipping().biases, skips={key: np.ones((2, 2))})


def test_a_skip_has_the_shape_of_its_layers():
    with pytest.raises(InvalidInput, match=r"skips\[1, 3\]: got shape \(2, 2\), expected \(3, 6\)"):
        rl.ReLUNetwork(skipping().weights, skipping().biases, skips={(1, 3): np.ones((2, 2))})


@pytest.mark.parametrize("over", [OVER, [(1, 3)], [(0, 2)], [(2, 4)]])
def test_torch_gives_the_same(over, rows):
    torch = pytest.importorskip("torch")
    network = skipping(over=over)
    found = network.to_torch()(torch.tensor(rows)).detach().numpy()
    np.testing.assert_allclose(found, network(rows), rtol=1e-12, atol=1e-11)


def test_order_and_scale_of_neurons_do_not_matter(rows):
    network, rng = skipping(), np.random.default_rng(8)
    weights, biases, skips = network.weights, network.biases, network.skips
    for k, width in enumerate(WIDTHS[1:-1], 1):
        order, scale = rng.permutation(width), rng.uniform(0.5, 2, width)
        weights[k - 1], biases[k - 1] = (weights[k - 1].T * scale).T[order], (biases[k - 1] * scale)[order]
        weights[k] = (weights[k] / scale)[:, order]
        skips |= {key: (w.T * scale).T[order] for key, w in skips.items() if key[1] == k}
        skips |= {key: (w / scale)[:, order] for key, w in skips.items() if key[0] == k}
    other = rl.ReLUNetwork(weights, biases, skips=skips)
    np.testing.assert_allclose(other(rows), network(rows), atol=1e-11)
    np.testing.assert_allclose(canonical(network)(rows), network(rows), atol=1e-11)
    assert equivalent(network, other)
    found = match(network, other)
    assert found is not None
    assert found.max_error < 1e-13
    changed = {**skips, (1, 3): skips[1, 3] + 1e-3}
    assert not equivalent(network, other.with_parts(skips=changed))
    assert match(network, skipping(over=[(0, 2)])) is None


def test_other_inputs_and_outputs_keep_the_skips(rows):
    network = skipping()
    frame = Frame(np.ones(4), np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0])
    np.testing.assert_allclose(frame.restricted(network)(rows), network(frame.points(rows)), atol=1e-12)
    np.testing.assert_allclose(frame.lifted(frame.restricted(network))(rows), network(rows), atol=1e-12)
    values = network(rows)
    np.testing.assert_allclose(network.log_ratios()(rows), values[:, 1:] - values[:, :1], atol=1e-12)


def test_a_fit_moves_skips_too():
    rng, true = np.random.default_rng(3), skipping()
    near = true.with_parts(skips={key: w + 1e-9 * rng.standard_normal(w.shape) for key, w in true.skips.items()})
    many = rng.standard_normal((800, 4))
    found = polish(near, many, true(many), DistanceNoise(1e-15, 0.0), thorough=True)
    assert np.abs(near(many) - true(many)).max() > 1e-9
    assert np.abs(found(many) - true(many)).max() < 1e-12


def test_verification_climbs_through_skips():
    network = skipping()
    rng = np.random.default_rng(0)
    domain = rl.Domain()
    extreme = extreme_points(network, 40, domain, rng)
    assert np.abs(network(extreme)).max() > np.abs(network(rng.standard_normal((40, 4)))).max()
    assert rare_points(network, 10, domain, rng).shape[1] == 4

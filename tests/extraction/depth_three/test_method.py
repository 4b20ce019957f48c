"""Two hidden layers from end to end: exact networks, numbers of rows, and what the result says about itself."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.extraction.depth_three import rows as singles
from reluctant.networks import ReLUNetwork
from reluctant.testing import largest_true_error, planted

BIAS = 0.3

# widths, most rows of the whole run, largest error
SHAPES = [
    ((10, 10, 10, 1), 4000, 1e-9),
    ((20, 10, 20, 1), 6000, 1e-11),
    ((20, 10, 35, 1), 6000, 1e-11),
    ((20, 10, 3, 1), 6500, 1e-9),
    ((30, 20, 8, 2), 6000, 1e-11),
    ((12, 5, 9, 4), 3500, 1e-11),
    ((64, 32, 16, 10), 11000, 1e-11),
    ((80, 40, 20, 1), 17000, 1e-12),
]


def extract(true: ReLUNetwork, seed: int, method: rl.DepthThree | None = None, attempts: int = 4) -> rl.Result:
    return rl.extract(rl.open_oracle(true), method or rl.DepthThree(), rng=seed, attempts=attempts)


def exact(true: ReLUNetwork, seed: int, rows: int, error: float) -> rl.Result:
    """A run that recovers the network within so many rows."""
    result = extract(true, seed)
    assert result.ok
    assert result.network is not None
    assert rl.compare(result.network, true).output_error <= error
    assert largest_true_error(result.network, true) <= 10 * error
    assert result.queries <= rows
    assert result.queries == sum(spent.asked for spent in result.rows.values())
    return result


def with_layers(true: ReLUNetwork, **layers: np.ndarray) -> ReLUNetwork:
    """The network with other first weights, second weights or second biases."""
    w, v, a = true.weights
    b, c, e = true.biases
    return ReLUNetwork([layers.get("w", w), layers.get("v", v), a], [b, layers.get("c", c), e])


def badly_conditioned(seed: int, condition: float) -> ReLUNetwork:
    true = planted((20, 10, 12, 1), seed, bias=BIAS)
    left, _, right = np.linalg.svd(true.weights[0], full_matrices=False)
    return with_layers(true, w=np.sqrt(10) * (left * np.geomspace(1, 1 / condition, 10)) @ right)


@pytest.mark.parametrize(("widths", "rows", "error"), sweep(SHAPES, fast=[SHAPES[k] for k in (0, 3, 5)], arguments=3))
def test_planted_networks_are_exact(widths: tuple[int, ...], rows: int, error: float, seed: int) -> None:
    result = exact(planted(widths, 300 + seed, bias=BIAS), seed, rows, error)
    assert result.network is not None
    assert result.network.widths == widths
    assert result.evidence["certificate"].sums == 0


@pytest.mark.parametrize("bias", [0.0, 10 * BIAS])
def test_biases_of_any_size(bias: float, seed: int) -> None:
    exact(planted((20, 10, 12, 1), 320 + seed, bias=bias), seed, 5000, 1e-11)


def test_dead_second_layer_neurons_are_left_out(seed: int) -> None:
    true = planted((20, 10, 12, 1), 330 + seed, bias=BIAS)
    v, c = true.weights[1].copy(), true.biases[1].copy()
    v[:3], c[:3] = -np.abs(v[:3]), -1.0
    result = exact(with_layers(true, v=v, c=c), seed, 5000, 1e-11)
    assert result.network is not None
    assert result.network.widths == (20, 10, 9, 1)


@pytest.mark.parametrize("outputs", [1, 2])
def test_always_active_second_layer_neurons_are_known_as_a_sum(outputs: int, seed: int) -> None:
    """Four of twelve are always on: at most two units for each output stand for them, and the result says so."""
    true = planted((20, 10, 12, outputs), 340 + seed, bias=BIAS)
    v, c = true.weights[1].copy(), true.biases[1].copy()
    v[:4], c[:4] = np.abs(v[:4]), 1.0
    result = exact(with_layers(true, v=v, c=c), seed, 5000, 1e-10)
    certificate = result.evidence["certificate"]
    assert result.network is not None
    assert certificate.width == 8
    assert 1 <= certificate.sums <= 2 * outputs
    assert result.network.widths == (20, 10, 8 + certificate.sums, outputs)
    hidden = np.maximum(np.random.default_rng(0).standard_normal((200, 20)) @ result.network.weights[0].T, 0)
    always_on = hidden @ result.network.weights[1].T + result.network.biases[1] > -1e-9
    assert always_on.all(axis=0).sum() >= certificate.sums


def test_condition_number_is_said_where_it_limits_the_digits(seed: int) -> None:
    result = exact(badly_conditioned(350 + seed, 1e4), seed, 12000, 1e-7)
    assert result.network is not None
    certificate = result.evidence["certificate"]
    assert certificate.condition == pytest.approx(np.linalg.cond(result.network.weights[0]), rel=1e-3)
    assert f"condition number {certificate.condition:.1e}" in str(certificate)
    assert certificate.to_dict()["condition"] == certificate.condition


def test_condition_number_stays_unsaid_where_it_does_not_matter() -> None:
    certificate = exact(planted((20, 10, 12, 1), 360, bias=BIAS), 0, 5000, 1e-11).evidence["certificate"]
    assert certificate.condition < 100
    assert "condition" not in str(certificate)


@pytest.mark.parametrize("condition", sweep([1e5, 1e6], fast=[1e5]))
def test_very_bad_conditions_are_right_or_refused_and_named(condition: float, seed: int) -> None:
    true = badly_conditioned(370 + seed, condition)
    result = extract(true, seed, attempts=2)
    if result.ok:
        assert result.network is not None
        assert largest_true_error(result.network, true) < 1e-6
    if "certificate" in result.evidence:
        assert "condition number" in str(result.evidence["certificate"])


def test_frugal_runs_leave_out_the_last_digits(seed: int) -> None:
    true = planted((80, 40, 10, 1), 380 + seed, bias=BIAS)
    result = exact(true, seed, 17000, 1e-12)
    frugal = extract(true, seed, rl.DepthThree(fit_share=0.0))
    assert frugal.ok
    assert "fit" in result.rows
    assert not {"fit", "rows again"} & set(frugal.rows)
    assert frugal.queries < result.queries
    assert frugal.network is not None
    assert rl.compare(frugal.network, true).output_error <= 1e-8


def test_wide_inputs_cost_little_more_than_a_row_a_weight(seed: int) -> None:
    """Of the outside of a neuron that is not seen alone the subspace is enough."""
    true = planted((400, 24, 12, 1), 390 + seed, bias=BIAS)
    assert exact(true, seed, 20000, 1e-12).queries
    frugal = extract(true, seed, rl.DepthThree(fit_share=0.0))
    assert frugal.ok
    assert frugal.queries <= 1.6 * true.parameters


@pytest.mark.parametrize(("widths", "depth"), [((10, 12, 1), 2), ((8, 5, 2), 2), ((10, 8, 6, 1), 3), ((9, 5, 7, 2), 3)])
def test_number_of_layers_is_found_out(widths: tuple[int, ...], depth: int, seed: int) -> None:
    true = planted(widths, 400 + seed, bias=BIAS)
    result = rl.extract(rl.open_oracle(true), rng=seed)
    assert result.ok
    assert result.network is not None
    assert result.network.depth == depth
    if depth == 3:
        layers = result.evidence["layers"]
        assert layers.straight < layers.creases
        assert result.evidence["failures"]  # what two layers could not explain
    else:
        assert "layers" not in result.evidence


def test_every_row_may_be_measured_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows found with the help of the subspace are never good enough here: none is left for it."""
    monkeypatch.setattr(singles, "GOOD_ENOUGH", 0.0)
    true = planted((80, 30, 10, 1), 1, bias=0.3)
    result = rl.extract(rl.open_oracle(true), rl.DepthThree(fit_share=0), rng=0)
    assert result.ok
    assert rl.compare(result.network, true).output_error < 1e-8

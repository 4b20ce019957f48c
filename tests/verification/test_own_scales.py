"""Networks of unlike columns are compared at rows of the columns' own sizes; others cost no row for it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import reluctant as rl
from reluctant.networks import ReLUNetwork
from reluctant.oracles import NetworkOracle
from reluctant.oracles.input_units import InputUnits
from reluctant.oracles.links import LINK_FUNCTIONS
from reluctant.testing import planted
from reluctant.verification.own_scales import column_sizes, compare_at_own_scales

SCALE = np.array([1e-6, 1e6, 1.0, 250.0, 3e5, 0.08, 1e-3, 12.0])
ONE_FAR = np.array([1.0] * 7 + [1e10])
UNUSED = np.array([1.0] * 7 + [np.inf])


def on_columns(widths: tuple[int, ...], seed: int, scale: np.ndarray):
    """A network on columns of these sizes."""
    network = planted(widths, seed)
    return lambda x: network(x / scale)


def copy_of(seed: int, scale: np.ndarray, wrong: float = 0.0) -> ReLUNetwork:
    """The same as a network, with the weights of its last column wrong by this share."""
    off = np.where(np.arange(8) == 7, 1 + wrong, 1.0)
    return InputUnits(np.zeros(8), scale / off).network(planted((8, 12, 1), seed))


def compared(scale: np.ndarray, wrong: float = 0.0, seed: int = 3):
    oracle = rl.open_oracle(on_columns((8, 12, 1), seed, scale), dim=8)
    found = compare_at_own_scales(oracle, copy_of(seed, scale, wrong), np.random.default_rng(seed))
    return found, oracle.queries


def test_an_error_that_rows_of_size_one_do_not_show() -> None:
    oracle = rl.open_oracle(on_columns((8, 12, 1), 3, ONE_FAR), dim=8)
    assert rl.verify(oracle, copy_of(3, ONE_FAR, wrong=0.1)).ok
    found, _ = compared(ONE_FAR, wrong=0.1)
    assert found is not None
    assert not found.ok
    assert found.check.max_error > 1e-2
    assert np.abs(found.check.counterexamples.rows[:, 7]).max() > 1e8  # in the target's own units


@pytest.mark.parametrize("scale", [SCALE, ONE_FAR, 1e3 * SCALE], ids=["all", "one", "large"])
def test_a_copy_agrees_at_its_own_scales(scale: np.ndarray) -> None:
    found, _ = compared(scale)
    assert found is not None
    assert found.ok
    assert found.check.max_error < 1e-10


@pytest.mark.parametrize("widths", [(8, 12, 1), (8, 3, 1), (30, 4, 2), (8, 6, 4, 1)], ids=str)
def test_even_columns_cost_nothing(widths: tuple[int, ...]) -> None:
    for seed in range(20):
        network = planted(widths, seed)
        oracle = rl.open_oracle(network)
        assert compare_at_own_scales(oracle, network, np.random.default_rng(seed)) is None
        assert oracle.queries == 0


def test_a_column_that_does_nothing_is_no_column_of_another_size() -> None:
    target = rl.open_oracle(on_columns((8, 12, 1), 3, UNUSED), dim=8)
    network = copy_of(3, np.where(np.isinf(UNUSED), 1e14, UNUSED))  # weights by rounding alone
    assert compare_at_own_scales(target, network, np.random.default_rng(0)) is None
    assert target.ledger.stages["verify"].asked == 72


def test_sizes_of_columns_count_every_path() -> None:
    network = ReLUNetwork([np.array([[2.0, 0.0]]), np.array([[-3.0]])], [np.zeros(1), np.zeros(1)])
    np.testing.assert_array_equal(column_sizes(network), [6.0, 0.0])


# ---- extract


@pytest.mark.parametrize("scale", [SCALE, ONE_FAR], ids=["all", "one"])
@pytest.mark.parametrize("seed", [10, 13])
def test_one_hidden_layer_is_right_at_rows_of_its_columns(scale: np.ndarray, seed: int) -> None:
    target = on_columns((8, 12, 1), seed, scale)
    result = rl.extract(target, dim=8, rng=seed, budget=60_000)
    assert result.ok
    assert result.units_found is not None
    rows = scale * np.random.default_rng(1).normal(size=(300, 8))
    assert np.abs(result.network(rows) - target(rows)).max() < 1e-8 * target(rows).std()


def test_a_method_that_was_asked_for_ends_unverified() -> None:
    result = rl.extract(on_columns((8, 12, 1), 10, SCALE), rl.DepthTwo(), dim=8, rng=10)
    assert result.outcome is rl.Outcome.UNVERIFIED
    assert not result.evidence["own scales"].ok
    assert not result.evidence["verification"].ok


def test_the_whole_network_is_kept_where_the_budget_ends_the_comparison() -> None:
    result = rl.extract(on_columns((8, 12, 1), 10, SCALE), dim=8, rng=10, budget=900)
    assert result.outcome is rl.Outcome.OUT_OF_BUDGET
    assert result.network.widths == (8, 12, 1)


def test_an_unused_column_stays_recovered() -> None:
    result = rl.extract(on_columns((8, 12, 1), 20, UNUSED), dim=8, rng=20)
    assert result.ok
    assert result.units_found is None


def test_hyperplanes_through_the_middle_set_no_unit() -> None:
    scale, rng = np.array([1e-3, *[1.0] * 6, 1e3]), np.random.default_rng(0)
    weights = [w.copy() for w in planted((8, 12, 1), 3).weights]
    true = InputUnits(np.zeros(8), scale).network(ReLUNetwork(weights, [np.zeros(12), np.zeros(1)]))
    copy = ReLUNetwork(true.weights, [1e-17 * rng.standard_normal(12), np.zeros(1)])  # as fits leave them
    found = compare_at_own_scales(rl.open_oracle(true), copy, rng)
    assert found is not None
    assert found.ok


# ---- inputs far from the origin

SPREAD = np.array([14.0, 0.5, 4.0, 14.0, 34.0, 30.0, 13.0, 1.3, 0.5, 11.0])  # as those of a table of patients
MIDDLE = np.array([48.0, 1.5, 26.0, 94.0, 189.0, 115.0, 49.0, 4.0, 4.6, 91.0])


def patients(widths: tuple[int, ...], seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """A network of scaled columns on raw ones; in probabilities if it has several outputs."""
    network = planted(widths, seed)

    def answers(x: np.ndarray) -> np.ndarray:
        values = network((x - MIDDLE) / SPREAD)
        return values if widths[-1] == 1 else np.asarray(LINK_FUNCTIONS["softmax"](values))

    return answers


@pytest.mark.parametrize(
    ("widths", "seed"),
    [
        ((10, 12, 6, 1), 3),
        pytest.param((10, 12, 6, 3), 3, marks=pytest.mark.slow),
        ((10, 12, 6, 3), 5),  # one linear piece holds all that verification asks: an affine model, but for the far look
    ],
)
def test_two_layers_of_raw_columns_are_right_at_their_rows(widths: tuple[int, ...], seed: int) -> None:
    """Near the origin, where nothing else is known, another network agrees: the hyperplanes show where to look."""
    target = patients(widths, seed)
    result = rl.extract(target, dim=10, rng=seed, budget=100_000)
    assert result.ok
    assert result.units_found.fields["middle"]
    rows = MIDDLE + SPREAD * np.random.default_rng(1).normal(size=(300, 10))
    copied = NetworkOracle(result.as_written("identity")).answer(rows).reshape(len(rows), -1)
    assert np.abs(copied - target(rows).reshape(copied.shape)).max() < 1e-8


def test_a_network_that_is_right_says_at_which_sizes_it_was_compared() -> None:
    result = rl.extract(patients((10, 4, 1), 1), dim=10, rng=1, budget=100_000)
    assert result.ok
    assert result.units_found.slug == "compared-at-own-scales"
    assert result.units_found.remedies[0].options == {"inputs": None}


def test_a_comparison_that_fails_names_rows_of_use() -> None:
    result = rl.extract(patients((10, 12, 6, 1), 3), rl.AnyDepth(), dim=10, rng=3, budget=100_000)
    assert result.outcome is rl.Outcome.UNVERIFIED
    assert result.diagnosis.slug == "agrees-near-origin"
    assert result.diagnosis.remedies[0].options == {"inputs": None}


def test_columns_that_never_vary_are_named() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 3)) * [1, 1, 0] + 5
    result = rl.extract(planted((3, 4, 1), 0), inputs=rows, rng=0)
    assert result.columns_constant.fields["columns"] == (2,)
    assert rl.extract(planted((3, 4, 1), 0), inputs=rows + rows[:, :1], rng=0).columns_constant is None


def on_raw_columns(seed: int):
    """Probabilities of a small network whose inputs are some deviations of raw columns from far means."""
    rng, dim = np.random.default_rng(seed), 12
    network, deviation = planted((dim, 3, 1), seed, bias=1.0), 10 ** rng.uniform(-2, 2, dim)
    mean = deviation * rng.uniform(0, 100, dim) * rng.choice([-1, 1], dim)
    return lambda x: LINK_FUNCTIONS["sigmoid"](network((x - mean) / deviation))


def test_an_affine_map_is_compared_far_out_where_it_stays_the_same() -> None:
    result = rl.extract(on_raw_columns(3), dim=12, rng=3, link="sigmoid", budget=3000)
    assert not result.ok  # its neurons have their creases at the far data, and none shows near the origin
    said = str(result.evidence["own scales"])
    assert "inputs, of the columns' own sizes and larger, it does NOT agree" in said
    assert said in str(result.evidence["verification"])
    assert "typical ones" not in str(result.evidence["verification"])


def test_an_affine_map_of_unlike_columns_costs_few_rows_more() -> None:
    rng, dim = np.random.default_rng(0), 20
    weights = rng.standard_normal((dim, 3)) / 10 ** rng.uniform(-2, 2, (dim, 1))
    weights[:2] = 0.0
    result = rl.extract(lambda x: LINK_FUNCTIONS["softmax"](x @ weights), dim=dim, rng=0, link="softmax")
    assert result.ok
    assert "own scales" in result.evidence
    assert result.queries <= dim + 60 + 48

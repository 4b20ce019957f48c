"""The learning paper's algorithms, each on its own and together, on small planted networks."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput
from reluctant.geometry import Lines
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.papers import learning_algorithms
from reluctant.papers.learning_theory import Constants

EPS, DELTA, TOL = 1e-6, 0.01, 1e-13
R, TAU, SAMPLES = 0.02, 20.0, 4000


def network(w: FloatArray, thresholds: FloatArray, signs: FloatArray) -> ReLUNetwork:
    """F(x) = Σ s_i max(⟨w_i, x⟩ - b_i, 0), as the paper writes it."""
    return ReLUNetwork([w, np.asarray(signs, dtype=float)[None]], [-np.asarray(thresholds), [0.0]])


def generic(seed: int) -> ReLUNetwork:
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((4, 3))
    w *= rng.uniform(0.7, 1.5, (4, 1)) / np.linalg.norm(w, axis=1, keepdims=True)
    return network(w, rng.uniform(-1, 1, 4), rng.choice([-1, 1], 4))


def duplicates(seed: int) -> ReLUNetwork:
    """Two equal neurons, one mirrored, one twice as large."""
    rng = np.random.default_rng(seed)
    w, b = rng.standard_normal((3, 3)), rng.uniform(-1, 1, 3)
    scale = np.array([1.0, 1.0, 1.0, 1.0, -1.0, 2.0])
    which = np.array([0, 1, 2, 0, 1, 2])
    return network(scale[:, None] * w[which], scale * b[which], [1, -1, 1, 1, -1, -1])


def bump(seed: int, width: float = 0.3) -> ReLUNetwork:
    """Example 1.2: zero but in a slab of this width."""
    u = np.random.default_rng(seed).standard_normal(3)
    u /= np.linalg.norm(u)
    return network(np.array([u, u, 2 * u]), [0.5, 0.5 + width, 1 + width], [1, 1, -1])


def kinks(true: ReLUNetwork, lines: Lines) -> FloatArray:
    """Proposition 4.2: the critical points on the first line."""
    w = true.weights[0]
    return np.asarray(-(w @ lines.origins[0] + true.biases[0]) / (w @ lines.directions[0]))


def good_line(true: ReLUNetwork, seed: int) -> int:
    """A seed whose Gaussian line has its kinks where Theorem 4.8 wants them: within τ, two intervals apart."""
    for candidate in range(100 * seed, 100 * seed + 100):
        t = np.sort(kinks(true, Lines.random(np.random.default_rng(candidate), 1, true.dim)))
        gaps = np.diff(t)
        if np.abs(t).max() < TAU - len(t) * R and (gaps[gaps > 1e-9] > 2 * R).all():
            return candidate
    raise AssertionError("no good line")


def setting(true: ReLUNetwork) -> tuple[Constants, learning_algorithms.Grid]:
    constants = Constants.of(true, EPS, DELTA)
    return constants, learning_algorithms.Grid.of(constants, R, TAU)


def square_error(found: ReLUNetwork, true: ReLUNetwork) -> float:
    x = np.random.default_rng(99).standard_normal((50_000, true.dim))
    return float(np.mean((found(x) - true(x)) ** 2))


# ---- GETBIAS


def test_get_bias_is_the_intercept_of_the_piece(seed: int) -> None:
    true, lines = generic(seed), Lines.random(np.random.default_rng(seed), 2, 3)
    line = np.array([0, 1, 1, 0])
    t = np.array([-3.0, -0.5, 2.0, 7.0])
    found = learning_algorithms.get_bias(true, lines, line, np.stack([t - 1e-5, t + 1e-5], axis=1))
    maps = true.local_maps(lines.points(line, t))
    expected = (maps.gradients[:, 0] * lines.origins[line]).sum(axis=1) + maps.offsets[:, 0]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_get_bias_and_slopes_give_the_kinks(seed: int) -> None:
    true = generic(seed)
    lines = Lines.random(np.random.default_rng(good_line(true, seed)), 1, 3)
    t = kinks(true, lines)
    ends = np.concatenate([t - R, t, t, t + R]).reshape(2, 2, -1)  # an interval on each side of each kink
    line = np.zeros(len(t), dtype=np.intp)
    before, after = (learning_algorithms.get_bias(true, lines, line, side.T) for side in ends)
    slopes = [
        np.diff(true(lines.points(np.tile(line, 2), side.ravel()))[:, 0].reshape(2, -1), axis=0)[0] / R for side in ends
    ]
    np.testing.assert_allclose((before - after) / (slopes[1] - slopes[0]), t, atol=1e-10)


def test_get_bias_costs_three_rows_an_interval() -> None:
    oracle, lines = rl.open_oracle(generic(0)), Lines.random(np.random.default_rng(0), 1, 3)
    learning_algorithms.get_bias(oracle.query, lines, np.zeros(5, dtype=np.intp), np.arange(10.0).reshape(5, 2))
    assert oracle.queries == 3 * 5


# ---- GETGRADIENT


def test_get_gradient_is_the_gradient(seed: int) -> None:
    true, rng = generic(seed), np.random.default_rng(seed)
    x = rng.standard_normal((20, 3))
    normals, offsets = true.hyperplanes()
    alpha = float(np.abs(x @ normals.T + offsets).min())  # (17) with equality
    np.testing.assert_allclose(
        learning_algorithms.get_gradient(true, x, alpha, rng), true.local_maps(x).gradients[:, 0], atol=1e-14 / alpha
    )


def test_get_gradient_needs_alpha_below_the_distance() -> None:
    true, rng = network(np.array([[1.0, 0.0]]), np.array([0.0]), np.array([1.0])), np.random.default_rng(0)
    x = np.array([[0.01, 0.3]])
    np.testing.assert_allclose(learning_algorithms.get_gradient(true, x, 0.01, rng), [[1, 0]], atol=1e-12)
    assert np.linalg.norm(learning_algorithms.get_gradient(true, x, 1.0, rng) - [[1, 0]]) > 0.1


def test_get_gradient_costs_d_plus_one_rows_a_point() -> None:
    oracle = rl.open_oracle(generic(0))
    learning_algorithms.get_gradient(oracle.query, np.ones((7, 3)), 1e-3, np.random.default_rng(0))
    assert oracle.queries == 7 * (3 + 1)


# ---- GETNEURONS


@pytest.mark.parametrize("family", [generic, bump])
def test_get_neurons_has_every_neuron_both_ways(family, seed: int) -> None:
    true = family(seed)
    constants, grid = setting(true)
    oracle = rl.open_oracle(true)
    found = learning_algorithms.get_neurons(
        oracle.query, constants, grid, TOL, np.random.default_rng(good_line(true, seed))
    )
    for w, b in zip(true.weights[0], -true.biases[0], strict=True):
        for sign in (1, -1):
            away = np.linalg.norm(found.w - sign * w, axis=1) + np.abs(found.b - sign * b)
            assert away.min() < 1e-7
    assert len(found) <= 2 * constants.k * (2 * constants.k + 1)
    assert oracle.queries == 2000 * (3 + 4)


def test_get_neurons_keeps_the_bounds(seed: int) -> None:
    true = duplicates(seed)
    constants, grid = setting(true)
    found = learning_algorithms.get_neurons(true, constants, grid, TOL, np.random.default_rng(seed))
    assert np.linalg.norm(found.w, axis=1).max() <= constants.k * constants.R * (1 + 1e-6)
    assert np.abs(found.b).max() <= constants.k * constants.B * (1 + 1e-6)


def test_a_network_through_the_origin_keeps_its_neurons(seed: int) -> None:
    """B is zero: the bounds (14) must leave room for rounding."""
    true = network(generic(seed).weights[0], np.zeros(4), np.ones(4))
    constants, grid = setting(true)
    assert (
        len(learning_algorithms.get_neurons(true, constants, grid, TOL, np.random.default_rng(good_line(true, seed))))
        >= 8
    )


def test_an_affine_function_has_no_neurons() -> None:
    constants = Constants(k=2, R=1.0, B=1.0, eps=EPS, delta=DELTA, d=3)
    found = learning_algorithms.get_neurons(
        lambda x: x @ np.array([[1.0], [2.0], [3.0]]) + 4,
        constants,
        learning_algorithms.Grid(0.1, 5.0, 0.01),
        TOL,
        np.random.default_rng(0),
    )
    assert len(found) == 0


def test_an_affine_function_is_learnt_as_one() -> None:
    constants, affine = Constants(k=2, R=1.0, B=1.0, eps=EPS, delta=DELTA, d=3), np.array([[1.0], [2.0], [3.0]])
    grid, rng = learning_algorithms.Grid(0.1, 5.0, 0.01), np.random.default_rng(0)
    found = learning_algorithms.learn_from_queries(lambda x: x @ affine / 4 + 1, constants, grid, 100, TOL, rng)
    assert found.widths == (3, 0, 1)
    np.testing.assert_allclose(found.skip, affine.T / 4, atol=1e-12)
    np.testing.assert_allclose(found.biases[-1], 1, atol=1e-12)


def test_more_pieces_than_k_allows_are_refused(seed: int) -> None:
    true = generic(seed)
    constants = Constants(k=1, R=5.0, B=5.0, eps=EPS, delta=DELTA, d=3)
    with pytest.raises(InvalidInput, match=r"more than 3 different intervals"):
        learning_algorithms.get_neurons(
            true, constants, learning_algorithms.Grid(R, TAU, 1e-4), TOL, np.random.default_rng(good_line(true, seed))
        )


def test_noise_above_tol_is_refused(seed: int) -> None:
    true = generic(seed)
    constants, grid = setting(true)
    with pytest.raises(InvalidInput, match="tol above the target's noise"):
        learning_algorithms.get_neurons(
            lambda x: np.round(true(x), 8), constants, grid, TOL, np.random.default_rng(seed)
        )


# ---- LEARNFROMQUERIES


@pytest.mark.parametrize("family", [generic, duplicates, bump])
def test_learn_from_queries_reaches_epsilon(family, seed: int) -> None:
    true = family(seed)
    constants, grid = setting(true)
    oracle, rng = rl.open_oracle(true), np.random.default_rng(good_line(true, seed))
    found = learning_algorithms.learn_from_queries(oracle.query, constants, grid, SAMPLES, TOL, rng)
    assert oracle.queries == 2000 * (3 + 4) + SAMPLES
    assert square_error(found, true) <= EPS


@pytest.mark.parametrize("fixed", range(3))
@pytest.mark.parametrize("family", [generic, duplicates, bump])
def test_where_samples_see_every_feature_the_error_is_rounding(family, fixed: int) -> None:
    """Seeds are fixed: a neuron that one sample in ten thousand activates leaves more, though less than ε."""
    true = family(fixed)
    constants, grid = setting(true)
    rng = np.random.default_rng(good_line(true, fixed))
    found = learning_algorithms.learn_from_queries(true, constants, grid, SAMPLES, TOL, rng)
    assert square_error(found, true) <= 1e-15


def test_the_affine_part_is_found_with_it(seed: int) -> None:
    plain = generic(seed)
    true = ReLUNetwork(plain.weights, [plain.biases[0], [0.7]], np.array([[1.0, -2.0, 0.5]]))
    constants, grid = setting(plain)
    found = learning_algorithms.learn_from_queries(
        true, constants, grid, SAMPLES, TOL, np.random.default_rng(good_line(true, seed))
    )
    assert square_error(found, true) <= EPS


def test_a_bump_between_the_points_of_the_grid_is_missed(seed: int) -> None:
    """What the theorem's tiny r is for: an error of one, and no answer that would show it."""
    true = bump(seed, width=1e-7)
    constants, grid = setting(true)
    found = learning_algorithms.get_neurons(
        true, constants, grid, TOL, np.random.default_rng(good_line(bump(seed), seed))
    )
    assert len(found) == 0


@pytest.mark.parametrize("angle", [1e-3, 1e-5])
def test_a_cancelling_pair_is_nearly_affine(angle: float, seed: int) -> None:
    """Lemma 3.19: its kinks share an interval, what is left out is of the order of the angle."""
    rng = np.random.default_rng(seed)
    w = np.array([0.6, 0.8, 0.0])
    pair = network(np.array([w, w + angle * rng.standard_normal(3)]), [0.3, 0.3], [1, -1])
    constants, grid = setting(pair)
    found = learning_algorithms.learn_from_queries(pair, constants, grid, SAMPLES, TOL, rng)
    assert square_error(found, pair) <= 10 * angle**2


def test_too_few_samples_are_refused() -> None:
    constants, grid = setting(generic(0))
    oracle = rl.open_oracle(generic(0))
    with pytest.raises(InvalidInput, match="at least 76"):
        learning_algorithms.learn_from_queries(oracle.query, constants, grid, 75, TOL, np.random.default_rng(0))
    assert oracle.queries == 0


def test_what_is_spent_is_what_was_asked(seed: int) -> None:
    true = bump(seed)
    constants, grid = setting(true)
    oracle, rng = rl.open_oracle(true), np.random.default_rng(good_line(true, seed))
    found = learning_algorithms.learn_from_queries(oracle.query, constants, grid, SAMPLES, TOL, rng)
    spent = learning_algorithms.spent(constants, grid, SAMPLES, found.widths[1])
    assert spent["queries"] == spent["search_queries"] + SAMPLES == oracle.queries


# ---- the grid and the regression


@pytest.mark.parametrize(("r", "tau", "intervals"), [(0.02, 20.0, 2000), (0.3, 1.0, 7), (2.0, 1.0, 1)])
def test_intervals_cover_the_line(r: float, tau: float, intervals: int) -> None:
    grid = learning_algorithms.Grid(r, tau, r / 10)
    assert len(grid) == len(grid.intervals) == intervals
    assert grid.intervals[0, 0] == -tau
    assert tau - 1e-9 <= grid.intervals[-1, 1] < tau + r
    np.testing.assert_allclose(np.diff(grid.intervals, axis=1), r)


@pytest.mark.parametrize(
    ("r", "tau", "alpha"), [(0.1, 1.0, 0.06), (0.1, 0.01, 0.01), (0.1, 1.0, 0.0), (0.1, np.inf, 0.01)]
)
def test_a_grid_that_makes_no_sense_is_refused(r: float, tau: float, alpha: float) -> None:
    with pytest.raises(InvalidInput, match="grid"):
        learning_algorithms.Grid(r, tau, alpha)


def test_least_squares_without_a_bound_is_the_shortest_solution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z, y = rng.standard_normal((30, 4)) @ rng.standard_normal((4, 6)), rng.standard_normal(30)
    expected = np.linalg.lstsq(z, y, rcond=None)[0]
    np.testing.assert_allclose(learning_algorithms.bounded_least_squares(z, y, np.inf), expected, atol=1e-10)


def test_bounded_least_squares_is_optimal(seed: int) -> None:
    """On the sphere ‖v‖ = W the gradient of the loss points along -v."""
    rng = np.random.default_rng(seed)
    z, y = rng.standard_normal((30, 6)), 5 * rng.standard_normal(30)
    largest = 0.5 * float(np.linalg.norm(np.linalg.lstsq(z, y, rcond=None)[0]))
    v = learning_algorithms.bounded_least_squares(z, y, largest)
    gradient = z.T @ (z @ v - y)
    assert np.linalg.norm(v) == pytest.approx(largest, rel=1e-6)
    assert gradient @ v == pytest.approx(-np.linalg.norm(gradient) * largest, rel=1e-9)

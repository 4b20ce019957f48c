"""Gradients by steps: right slopes, inside the domain, crossings noticed, rows counted."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant.domains import Domain
from reluctant.geometry import DistanceNoise, Frame, Lines, Question, gradients, scan_lines
from reluctant.networks import ReLUNetwork
from reluctant.oracles import open_oracle
from reluctant.testing import planted

NOISE = DistanceNoise(3e-15, 3e-15)
WIDTHS = (8, 12, 3)


def jacobians(network: ReLUNetwork, points: np.ndarray) -> np.ndarray:
    active = network.patterns(points)[0]
    return np.einsum("mh,nh,hd->nmd", network.weights[1], active, network.weights[0])


@pytest.mark.parametrize("domain", [Domain(), Domain(0, 1), Domain(0, np.inf)])
@pytest.mark.parametrize("own_directions", [False, True])
def test_slopes_are_those_of_the_network_inside_the_domain(seed: int, domain: Domain, own_directions: bool) -> None:
    rng, network = np.random.default_rng(seed), planted(WIDTHS, seed)
    points = domain.interior(rng, 20, WIDTHS[0])
    directions = np.linalg.qr(rng.standard_normal((8, 4)))[0].T if own_directions else None
    asked = []

    def ask(rows: np.ndarray) -> np.ndarray:
        asked.append(rows)
        return network(rows)

    found = gradients(ask, points, directions, np.full(20, 1e-2), NOISE, rng, domain=domain)
    true = jacobians(network, points) @ (np.eye(8) if directions is None else directions).T
    assert found.good.all()
    assert (np.abs(found.slope - true).max(axis=(1, 2)) <= 30 * found.sd).all()
    np.testing.assert_array_equal(found.value, network(points))
    assert domain.contains(np.concatenate(asked))


def test_steps_over_a_crease_are_shortened_and_only_those(seed: int) -> None:
    network = ReLUNetwork([np.eye(3)[:1], np.ones((1, 1))], [np.zeros(1), np.zeros(1)], np.ones((1, 3)))
    points = np.array([[-0.01, 0.3, 0.2], [0.5, 0.1, 0.7]])
    rows = []

    def ask(x: np.ndarray) -> np.ndarray:
        rows.append(len(x))
        return network(x)

    found = gradients(ask, points, None, np.full(2, 0.03), NOISE, np.random.default_rng(seed))
    assert found.good.all()
    np.testing.assert_allclose(found.slope[:, 0], [[1, 1, 1], [2, 1, 1]], rtol=1e-10)
    assert found.step[0] < 0.01 < found.step[1]
    assert sum(rows) == 3 * 5


@pytest.mark.parametrize("own_directions", [False, True])
@pytest.mark.parametrize("framed", [False, True])
def test_gradients_that_the_target_answers_cost_one_row_a_point(seed: int, own_directions: bool, framed: bool) -> None:
    rng, network = np.random.default_rng(seed), planted(WIDTHS, seed)
    oracle = open_oracle(network, gradients=True)
    basis = np.linalg.qr(rng.standard_normal((8, 5)))[0].T if framed else np.eye(8)
    frame = Frame(rng.standard_normal(8), basis)
    points = rng.standard_normal((20, len(basis)))
    directions = np.linalg.qr(rng.standard_normal((len(basis), 3)))[0].T if own_directions else np.eye(len(basis))
    question = Question.of(oracle).within(frame, 0.5)
    found = gradients(question, points, directions if own_directions else None, np.full(20, 1e-2), NOISE, rng)
    rows = frame.points(0.5 * points)
    true = 0.5 * jacobians(network, rows) @ basis.T @ directions.T
    assert oracle.queries == 20
    assert found.good.all()
    assert (np.abs(found.slope - true).max(axis=(1, 2)) <= 30 * found.sd).all()
    assert (found.shown_sd == found.sd).all()
    np.testing.assert_array_equal(found.value, network(rows))


def test_a_function_that_is_curved_everywhere_is_not_called_good() -> None:
    found = gradients(lambda x: (x**2).sum(axis=1, keepdims=True), np.ones((4, 5)), None, np.full(4, 0.1), NOISE,
                      np.random.default_rng(0))  # fmt: skip
    assert not found.good.any()


def test_steps_of_nothing_give_no_good_gradient() -> None:
    rng, network = np.random.default_rng(0), planted((5, 8, 1), 0)
    steps = np.array([1e-4, 0.0])
    found = gradients(network, rng.standard_normal((2, 5)), None, steps, NOISE, rng)
    assert found.good.tolist() == [True, False]
    assert np.isinf(found.sd[1])


@pytest.mark.parametrize("few", [False, True])
def test_segments_are_scanned_from_end_to_end_and_not_beyond(seed: int, few: bool) -> None:
    rng, network = np.random.default_rng(seed), planted((6, 20, 1), seed)
    start, stop = rng.uniform(size=(5, 6)), rng.uniform(size=(5, 6))
    asked: list[np.ndarray] = []

    def ask(rows: np.ndarray) -> np.ndarray:
        asked.append(rows)
        return network(rows)

    scan = scan_lines(ask, Lines.between(start, stop, 1.0), NOISE, rng, few=few)
    value = [network.preactivations(points)[0] for points in (start, stop)]
    crossed = (value[0] > 0) != (value[1] > 0)
    assert not scan.open.any()
    np.testing.assert_array_equal(np.bincount(scan.creases.line, minlength=5), crossed.sum(axis=1))
    rows = np.concatenate(asked)
    assert rows.min() >= np.minimum(start, stop).min() - 1e-15
    assert rows.max() <= np.maximum(start, stop).max() + 1e-15


def test_noise_by_what_is_answered_is_that_of_the_slopes() -> None:
    """Answers above 1 are rounded to 1e-6: there alone the check allows for it, and slopes are as much less known."""

    def ask(rows: np.ndarray) -> np.ndarray:
        answers = rows.sum(axis=1, keepdims=True)
        return np.where(answers > 1, answers.round(6), answers)

    def lost(_: np.ndarray, answers: np.ndarray) -> np.ndarray:
        return np.where(answers[:, 0] > 1, 1e-6, 0.0)

    points, steps = np.array([[0.1, 0.2], [1.234567, 1.3]]), np.full(2, 1e-3)
    blind = gradients(ask, points, None, steps, NOISE, np.random.default_rng(0))
    found = gradients(ask, points, None, steps, NOISE, np.random.default_rng(0), lost=lost)
    assert blind.good.tolist() == [True, False]
    assert found.good.tolist() == [True, True]
    assert found.sd[0] == blind.sd[0]
    assert found.sd[1] == pytest.approx(np.sqrt(2) * 1e-3)

"""Rows by description: the same answers, counted and refused like rows that are written out."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from oracle_models import torch_module

import reluctant as rl
from reluctant.errors import BudgetExhausted, InvalidAnswer, InvalidRows, TargetUnavailable
from reluctant.numerics import HOST, TorchArrays
from reluctant.oracles.adapters.torch import PARTS_AHEAD, TorchOracle
from reluctant.oracles.base import Fans, Moves, Steps
from reluctant.oracles.ledger import Limit
from reluctant.testing import planted, single_precision

torch = pytest.importorskip("torch")
NETWORK = single_precision(planted((6, 5, 2), 1))


def some_moves(directions: bool) -> Moves:
    rng = np.random.default_rng(0)
    return Fans(
        rng.standard_normal((3, 6)), rng.uniform(0.1, 1, 3), np.array([4, 0]),
        rng.standard_normal((5, 6)) if directions else None,
    )  # fmt: skip


def resident() -> TorchOracle:
    return TorchOracle(torch_module(NETWORK).double(), resident=True)


def test_rows_are_steps_from_points() -> None:
    moves = some_moves(directions=False)
    expected = np.repeat(moves.points, 2, axis=0)
    expected[np.arange(6), [4, 0, 4, 0, 4, 0]] += np.repeat(moves.steps, 2)
    np.testing.assert_array_equal(moves.rows(), expected)
    np.testing.assert_array_equal(moves.part(slice(3, 5)).rows(), expected[3:5])


@pytest.mark.parametrize("arrays", [HOST, TorchArrays("cpu")])
@pytest.mark.parametrize("directions", [False, True])
@pytest.mark.parametrize(("points", "along"), [(1, 1), (3, 1), (1, 4), (3, 4)])
def test_rows_are_written_beside_the_points(points: int, along: int, directions: bool, arrays) -> None:
    rng = np.random.default_rng(1)
    moves = Fans(
        rng.standard_normal((points, 6)), rng.uniform(0.1, 1, points), rng.permutation(6)[:along],
        rng.standard_normal((6, 6)) if directions else None,
    )  # fmt: skip
    given, along_ = moves.points.copy(), np.eye(6) if moves.directions is None else moves.directions
    expected = [x + step * along_[k] for x, step in zip(given, moves.steps, strict=True) for k in moves.along]
    np.testing.assert_array_equal(arrays.get(moves.on(arrays).rows(arrays)), expected)
    np.testing.assert_array_equal(moves.points, given)
    for start, stop in combinations(range(len(moves) + 1), 2):
        part = moves.on(arrays).part(slice(start, stop))
        np.testing.assert_array_equal(arrays.get(part.rows(arrays)), expected[start:stop])


def test_steps_are_cut_in_any_order() -> None:
    rng = np.random.default_rng(2)
    moves = Steps(rng.standard_normal((4, 6)), np.array([3, 1, 2, 1, 0]), rng.uniform(0.1, 1, 5), np.arange(5))
    for start, stop in combinations(range(6), 2):
        np.testing.assert_array_equal(moves.part(slice(start, stop)).rows(), moves.rows()[start:stop])


class Reusing(torch.nn.Module):
    """Answers into a buffer of its own, as graphs that were recorded once do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.out = torch_module(NETWORK).double(), None

    def forward(self, x):
        answers = self.inner(x)
        if self.out is None or self.out.shape != answers.shape:
            self.out = torch.empty_like(answers)
        return self.out.copy_(answers)


class Names(torch.nn.Module):
    """Answers with an array of numpy."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch_module(NETWORK).double()

    def forward(self, x):
        return self.inner(x).numpy()


@pytest.mark.parametrize("module", [torch_module(NETWORK).double(), Reusing(), Names()])
@pytest.mark.parametrize("batch", [1, 4, 5, 8, 100])  # fans of four rows: cut, one at a time, two, all
def test_parts_are_answered_as_the_whole(batch: int, module) -> None:
    rng = np.random.default_rng(3)
    moves = Fans(rng.standard_normal((5, 6)), rng.uniform(0.1, 1, 5), np.array([4, 0, 1, 3]))
    oracle = TorchOracle(module.eval(), shape=(6,), resident=True)
    oracle._batch = batch
    np.testing.assert_allclose(oracle.query_moves(moves), NETWORK(moves.rows()), rtol=0, atol=1e-14)
    np.testing.assert_allclose(oracle.query(moves.rows()), NETWORK(moves.rows()), rtol=0, atol=1e-14)


class Forgetful(torch.nn.Module):
    """Answers one row less than it is asked, except for a single one."""

    def forward(self, x):
        return x[: max(1, len(x) - 1), :2]


def test_answers_of_another_shape_are_refused_beside_the_module_too() -> None:
    with pytest.raises(InvalidAnswer, match=r"shape \(3, 2\) for 4 rows"):
        TorchOracle(Forgetful().double(), shape=(6,), resident=True).query(np.ones((4, 6)))


@pytest.mark.parametrize("directions", [False, True])
@pytest.mark.parametrize("make", [lambda: rl.open_oracle(NETWORK), lambda: rl.open_oracle(resident())])
def test_described_rows_are_answered_like_written_ones(make, directions: bool) -> None:
    oracle, moves = make(), some_moves(directions)
    np.testing.assert_allclose(oracle.query_moves(moves), NETWORK(moves.rows()), rtol=0, atol=1e-14)
    assert oracle.queries == len(moves)


def test_selected_outputs_and_domain() -> None:
    moves = some_moves(directions=False)
    one = rl.open_oracle(NETWORK, output=1)
    np.testing.assert_array_equal(one.query_moves(moves), NETWORK(moves.rows())[:, [1]])
    with pytest.raises(InvalidRows, match="outside the domain"):
        rl.open_oracle(NETWORK, domain=(-0.1, 0.1)).query_moves(moves)


def test_budget_refuses_before_anything_is_sent() -> None:
    oracle = rl.open_oracle(resident(), budget=5)
    with pytest.raises(BudgetExhausted):
        oracle.query_moves(some_moves(directions=False))
    assert oracle.queries == 0


def test_transcript_replays_described_rows(tmp_path) -> None:
    moves = some_moves(directions=True)
    with rl.open_oracle(NETWORK, transcript=tmp_path) as oracle:
        first = oracle.query_moves(moves)
    with rl.open_oracle(NETWORK, transcript=tmp_path) as oracle:
        np.testing.assert_array_equal(oracle.query_moves(moves), first)
        assert oracle.ledger.total.sent == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(bad: float) -> None:
    moves = some_moves(directions=False)
    moves.steps[1] = bad
    with pytest.raises(InvalidRows, match="moves"):
        rl.open_oracle(NETWORK).query_moves(moves)


class Cramped(torch.nn.Module):
    """Runs out of memory on more than a few rows, as a device would."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.inner, self.most = torch_module(NETWORK).double(), most

    def forward(self, x):
        if len(x) > self.most:
            raise torch.OutOfMemoryError("out of memory")
        return self.inner(x)


def test_out_of_memory_shrinks_the_batch_once_and_goes_on() -> None:
    rows = np.random.default_rng(1).standard_normal((40, 6))
    oracle = TorchOracle(Cramped(5).eval(), shape=(6,), resident=True)
    np.testing.assert_allclose(oracle.query(rows), NETWORK(rows), rtol=0, atol=1e-14)
    assert oracle.batch_rows == PARTS_AHEAD * 5
    with pytest.raises(TargetUnavailable, match=r"out of memory on cpu with .* Free memory"):
        TorchOracle(Cramped(1).eval(), shape=(6,), resident=True).query(rows)


def test_arrays_live_beside_a_module_on_a_device_only() -> None:
    assert rl.open_oracle(NETWORK).arrays is HOST
    assert rl.open_oracle(torch_module(NETWORK)).arrays is HOST
    assert isinstance(rl.open_oracle(resident()).arrays, TorchArrays)


@pytest.mark.parametrize("arrays", [HOST, TorchArrays("cpu")])
def test_factorisations_agree(arrays) -> None:
    rng = np.random.default_rng(2)
    a, weights = rng.standard_normal((9, 4)), rng.uniform(1, 2, 9)
    solution = arrays.get(arrays.least_squares(arrays.put(a), arrays.put(weights)))
    np.testing.assert_allclose(solution @ a, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(arrays.get(arrays.inverse(arrays.put(a[:4]))) @ a[:4], np.eye(4), atol=1e-12)
    assert set(arrays.row_pivots(arrays.put(np.diag([1.0, 5, 3])), 2)) <= {0, 1, 2}
    solve = arrays.cholesky_solver(arrays.put(a.T @ a))
    np.testing.assert_allclose(a.T @ a @ arrays.get(solve(arrays.put(weights[:4]))), weights[:4], atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        arrays.inverse(arrays.put(np.zeros((3, 3))))


def test_a_limit_passes_descriptions_on_if_all_their_rows_are_allowed(monkeypatch) -> None:
    target, passed = resident(), []
    answer_moves = target.answer_moves
    monkeypatch.setattr(target, "answer_moves", lambda moves: passed.append(len(moves)) or answer_moves(moves))
    limit, moves = Limit(rows=10), some_moves(directions=True)
    oracle = limit.of(rl.open_oracle(target))
    np.testing.assert_array_equal(oracle.query_moves(moves), target.query(moves.rows()))
    assert (passed, limit.passed, limit.answered, oracle.queries) == ([6], 6, 6, 6)
    with pytest.raises(BudgetExhausted):
        oracle.query_moves(moves)
    assert (passed, limit.passed, oracle.queries) == ([6], 6, 6)

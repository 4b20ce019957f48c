"""Never a wrong network presented as right: degenerate networks, other targets, failures on the way."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.errors import InvalidRows, InvalidWeights
from reluctant.extraction.method import Candidate, ComparedCandidate, StageFailed
from reluctant.testing import DEGENERATE, largest_true_error, planted
from reluctant.testing.faults import Dying, noisy
from reluctant.verification.agreement import AskedRows
from reluctant.verification.points import SCALES, PointGroup

LARGEST_ERROR = 1e-6
SLOW_FAMILIES = {
    "biases about 1e+06",  # the ladder is climbed to its end before they are refused
    "output weights × 1e-09",  # so is this one
    "near-parallel 1e-06, opposite sign, 5 outputs",
    "near-parallel 1e-08, opposite sign, 5 outputs",
}


@pytest.mark.parametrize("family", sweep(DEGENERATE, fast=DEGENERATE.keys() - SLOW_FAMILIES))
def test_degenerate_networks_are_right_or_refused(family: str, seed: int) -> None:
    true = DEGENERATE[family](300 + seed)
    result = rl.extract(rl.open_oracle(true), rng=seed)
    if result.ok:
        assert result.network is not None
        assert largest_true_error(result.network, true) <= LARGEST_ERROR
    else:
        assert result.outcome.advice
        assert result.evidence["failures"]


EXACT_FAMILIES = ["plain", "duplicate", "mirrored", "grid weights", "zero biases", "dead inputs", "sparse"]


@pytest.mark.parametrize("family", EXACT_FAMILIES)
def test_harmless_degeneracies_are_recovered(family: str) -> None:
    true = DEGENERATE[family](77)
    assert rl.extract(rl.open_oracle(true), rng=0).ok


@pytest.mark.parametrize("sign", ["same", "opposite"])
@pytest.mark.parametrize("distance", sweep(["0.01", "0.0001", "1e-06", "1e-08"], fast=["0.01", "1e-06"]))
def test_nearly_parallel_neurons_are_told_apart_or_one(distance: str, sign: str, seed: int) -> None:
    true = DEGENERATE[f"near-parallel {distance}, {sign} sign"](900 + seed)
    result = rl.extract(rl.open_oracle(true), rng=seed)
    assert result.ok
    assert result.network is not None
    assert largest_true_error(result.network, true) <= LARGEST_ERROR


@pytest.mark.parametrize("distance", [1e-4, 1e-6])
def test_a_sliver_costs_few_rows_and_comes_back_exactly(distance: float) -> None:
    true = DEGENERATE[f"near-parallel {distance:g}, opposite sign"](903)
    result = rl.extract(rl.open_oracle(true), rng=0)
    assert result.ok
    assert result.network is not None
    assert result.network.widths == true.widths
    assert largest_true_error(result.network, true) <= 1e-10
    assert 0 < result.rows["slivers"].queries < 4 * true.dim


@pytest.mark.parametrize("distance", ["0.01", "0.0001"])
def test_opposite_pairs_with_five_outputs_are_recovered(distance: str) -> None:
    true = DEGENERATE[f"near-parallel {distance}, opposite sign, 5 outputs"](902)
    assert rl.extract(rl.open_oracle(true), rng=0).ok


OTHER_TARGETS = {
    "tanh": (lambda x: np.tanh(x).sum(axis=1), rl.Outcome.NOT_PIECEWISE_LINEAR),
    "quadratic": (lambda x: (x**2).sum(axis=1), rl.Outcome.NOT_PIECEWISE_LINEAR),
    "constant": (lambda x: np.ones(len(x)), rl.Outcome.CONSTANT),
    "NaN": (lambda x: np.full(len(x), np.nan), rl.Outcome.NON_FINITE),
    "noise": (noisy(lambda x: np.maximum(x, 0).sum(axis=1), 3.0), rl.Outcome.TOO_NOISY),
}


@pytest.mark.parametrize("name", OTHER_TARGETS)
def test_other_targets_get_a_named_outcome(name: str) -> None:
    function, outcome = OTHER_TARGETS[name]
    result = rl.extract(rl.open_oracle(function, dim=8), rng=0)
    assert result.outcome is outcome
    assert result.network is None
    assert result.queries > 0


NOISES = [(1e-5, 1), (1e-5, 4), (1e-6, 4), (1e-7, 4)]


@pytest.mark.parametrize(("relative", "attempts"), sweep(NOISES, fast=NOISES[:1], arguments=2))
def test_noise_that_grows_with_the_answers_is_never_taken_for_exact(relative: float, attempts: int) -> None:
    """Verification would have to accept errors that no exact network has: right to the noise, or low precision."""
    true, rng = planted((6, 4, 1), 5), np.random.default_rng(0)
    target = lambda x: true(x) * (1 + relative * rng.standard_normal((len(x), 1)))  # noqa: E731
    result = rl.extract(rl.open_oracle(target, dim=6), rng=0, attempts=attempts)
    if result.ok:
        assert result.network is not None
        assert largest_true_error(result.network, true) <= 20 * relative
    else:
        assert result.outcome is rl.Outcome.LOW_PRECISION


@pytest.mark.parametrize("widths", [(10, 8, 6, 1), (20, 15, 10, 2)])
def test_three_layers_are_not_taken_for_two(widths: tuple[int, ...]) -> None:
    result = rl.extract(rl.open_oracle(planted(widths, 1)), rl.DepthTwo(), rng=0, attempts=2)
    assert not result.ok
    assert result.outcome in {rl.Outcome.PARTIAL, rl.Outcome.UNVERIFIED}


# Creases of few deeper neurons that are straight wherever random points of the scale of use are.
SHY_LAYERS = [((2, 2, 4, 1), 3), ((2, 2, 4, 1), 1000), ((2, 3, 2, 1), 1059), ((3, 2, 2, 1), 1047)]


@pytest.mark.parametrize(("widths", "network"), sweep(SHY_LAYERS, fast=SHY_LAYERS[2:], arguments=2))
def test_a_few_deeper_neurons_are_not_taken_for_one_layer(widths: tuple[int, ...], network: int) -> None:
    rng = np.random.default_rng(network)
    shapes = list(zip(widths[1:], widths[:-1], strict=True))
    weights = [rng.standard_normal(shape) / np.sqrt(shape[1]) for shape in shapes]
    true = rl.ReLUNetwork(weights, [0.3 * rng.standard_normal(width) for width in widths[1:]])
    for seed in range(3):
        result = rl.extract(rl.open_oracle(true), rl.DepthTwo(), rng=network % 1000 * (seed == 0) + seed, attempts=1)
        assert not result.ok
        assert result.outcome in {rl.Outcome.PARTIAL, rl.Outcome.UNVERIFIED}  # rows beside the line may see it first


def test_max_pooling_is_not_taken_for_two_layers() -> None:
    weights = np.random.default_rng(0).standard_normal((24, 10))
    target = lambda x: (x @ weights.T).reshape(len(x), 8, 3).max(axis=2).sum(axis=1)  # noqa: E731
    assert not rl.extract(rl.open_oracle(target, dim=10), rng=0, attempts=2).ok


def test_affine_target_is_recovered() -> None:
    target = rl.ReLUNetwork([[[1.0, -2.0, 0.5]]], [[3.0]])
    result = rl.extract(rl.open_oracle(target), rng=0)
    assert result.ok
    assert result.network is not None
    assert result.network.widths == (3, 1)
    np.testing.assert_allclose(result.network.weights[0], target.weights[0], atol=1e-12)


@pytest.mark.parametrize("budget", [10, 200, 1500])
def test_budget_that_ends_is_an_outcome(budget: int) -> None:
    true = planted((64, 40, 1), 0)
    oracle = rl.open_oracle(true, budget=budget)
    result = rl.extract(oracle, rng=0)
    assert result.outcome is rl.Outcome.OUT_OF_BUDGET
    assert result.queries == oracle.queries <= budget
    assert result.stage


def test_dying_target_is_an_outcome_and_resumes(tmp_path: Path) -> None:
    true = planted((30, 20, 1), 0)
    target = Dying(true, rows=500, failures=1)
    undisturbed = rl.extract(rl.open_oracle(lambda x: true(x), dim=30), rng=0)
    with rl.open_oracle(target, dim=30, transcript=tmp_path) as oracle:
        assert rl.extract(oracle, rng=0).outcome is rl.Outcome.TARGET_FAILED
    with rl.open_oracle(target, dim=30, transcript=tmp_path) as oracle:
        resumed = rl.extract(oracle, rng=0)
    assert resumed.ok
    assert resumed.network is not None
    assert undisturbed.network is not None
    np.testing.assert_array_equal(resumed.network.weights[0], undisturbed.network.weights[0])
    assert resumed.queries == undisturbed.queries
    assert target.seen <= undisturbed.queries + 9  # the opening question: twice, then once


@pytest.mark.parametrize(
    ("widths", "distance"),
    sweep(product([(64, 40, 5), (30, 20, 2)], [1e-2, 1e-4, 1e-5, 1e-6]), fast=[((30, 20, 2), 1e-5)], arguments=2),
)
def test_opposite_pairs_with_several_outputs_are_right_or_refused(
    widths: tuple[int, int, int], distance: float, seed: int
) -> None:
    for k in range(2):
        plain = planted(widths, 10 * seed + k)
        (w, a), (b, c) = (part.copy() for part in plain.weights), (part.copy() for part in plain.biases)
        rng = np.random.default_rng(k)
        w[1] = w[0] + distance * rng.standard_normal(widths[0]) / np.sqrt(widths[0])
        b[1] = b[0] + distance * rng.standard_normal()
        a[:, 1] = -0.999 * a[:, 0]
        true = rl.ReLUNetwork([w, a], [b, c])
        result = rl.extract(rl.open_oracle(true), rng=k)
        if result.ok:
            assert result.network is not None
            assert largest_true_error(result.network, true) <= LARGEST_ERROR


UNENDING = {
    "softplus": (lambda x: np.logaddexp(0, 50 * x).sum(axis=1) / 50, 6),
    "sharp softplus": (lambda x: np.logaddexp(0, 1e4 * x).sum(axis=1) / 1e4, 6),
    "ripples": (lambda x: np.maximum(x, 0).sum(axis=1) + 1e-6 * np.sin(x).sum(axis=1), 6),
    "one neuron": (planted((2, 1, 1), 203241544), 2),
    "one far neuron": (rl.ReLUNetwork([np.ones((1, 10)), [[1.0]]], [[-6.5], [0.0]]), 10),
}


@pytest.mark.parametrize("name", UNENDING)
def test_search_that_gets_nowhere_ends(name: str) -> None:
    function, dim = UNENDING[name]
    oracle = rl.open_oracle(lambda x: function(x), dim=dim)
    rl.extract(oracle, rng=50, attempts=2)
    assert oracle.queries < 70_000


@pytest.mark.parametrize(("budget", "stage"), [(60, "health"), (200, "line"), (350, "scaffold"), (1500, "main pass")])
def test_what_was_found_is_kept(budget: int, stage: str) -> None:
    result = rl.extract(rl.open_oracle(planted((64, 40, 1), 0), budget=budget), rng=0)
    assert result.stage == stage
    assert (result.network is not None) == (stage in {"scaffold", "main pass"})


@pytest.mark.parametrize("method", [rl.DepthThree(), rl.AnyDepth()])
def test_methods_that_look_far_refuse_a_domain_before_anything_is_asked(method: rl.DepthThree | rl.AnyDepth) -> None:
    oracle = rl.open_oracle(planted((6, 4, 1), 0), domain=(0, 1))
    with pytest.raises(rl.ReluctantError, match=r"^domain: got"):
        rl.extract(oracle, method, rng=0)
    assert oracle.queries == 0


@pytest.mark.parametrize("method", [rl.DepthTwo(), rl.DepthThree(), rl.AnyDepth()])
def test_a_target_that_computes_exactly_is_recovered(method: rl.DepthTwo) -> None:
    """Its answers show no noise at all."""
    result = rl.extract(rl.open_oracle(lambda x: np.maximum(x[:, :1], 0), dim=4), method, rng=0)
    assert result.ok
    assert result.network is not None
    assert result.network.widths == (4, 1, 1)


def test_numbers_that_cannot_be_factorised_are_an_outcome() -> None:
    class Singular(rl.Method):
        def run(self, *stages: object) -> Candidate:
            raise np.linalg.LinAlgError("Singular matrix")

    result = rl.extract(rl.open_oracle(planted((6, 4, 1), 0)), Singular(), rng=0, attempts=2)
    assert result.outcome is rl.Outcome.PARTIAL
    assert [each.stage for each in result.evidence["attempts"].entries] == ["arithmetic"] * 2
    assert [each.raised for each in result.evidence["attempts"].entries] == ["LinAlgError"] * 2
    assert all("Singular matrix" in failure for failure in result.evidence["failures"])


def not_finite(*stages: object) -> Candidate:
    return Candidate(rl.ReLUNetwork([np.full((2, 6), np.nan), np.ones((1, 2))], [np.zeros(2), np.zeros(1)]))


def test_weights_that_are_not_finite_are_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rl.DepthTwo, "run", not_finite)
    result = rl.extract(rl.open_oracle(planted((6, 4, 1), 0)), rl.DepthTwo(), rng=0, attempts=2)
    assert result.outcome is rl.Outcome.PARTIAL
    assert [failure.split(":")[0] for failure in result.evidence["failures"]] == ["invalid-weights"] * 2


def test_a_method_cannot_verify_its_own_network() -> None:
    right, wrong = planted((6, 4, 1), 0), planted((6, 4, 1), 1)

    class Certain(rl.Method):
        def __init__(self, candidate: Candidate) -> None:
            self.candidate = candidate

        def run(self, *stages: object) -> Candidate:
            return self.candidate

    with pytest.raises(TypeError, match="verification"):
        Candidate(wrong, verification=rl.verify(right, right))  # type: ignore[call-arg]
    rows = np.random.default_rng(0).normal(size=(40, 6))
    asked = AskedRows([PointGroup(f"scale {scale}", rows) for scale in SCALES], np.tile(wrong(rows), (len(SCALES), 1)))
    for candidate in (
        ComparedCandidate(wrong, verification=rl.verify(right, right)),
        Candidate(wrong, asked=asked),
        Candidate(wrong, rounding=1e6),
    ):
        result = rl.extract(rl.open_oracle(right), Certain(candidate), rng=0, attempts=1)
        assert result.outcome is rl.Outcome.UNVERIFIED
        assert result.evidence["verification"].max_error > 0.1


def test_wrong_rows_and_weights_of_a_method_of_ones_own_reach_the_program() -> None:
    class TooWide(rl.Method):
        def run(self, oracle: rl.Oracle, *rest: object) -> Candidate:
            return Candidate(rl.ReLUNetwork([oracle.query(np.zeros((1, 7)))], [np.zeros(1)]))

    class NotFinite(rl.Method):
        run = not_finite

    for method, error in ((TooWide(), InvalidRows), (NotFinite(), InvalidWeights)):
        with pytest.raises(error):
            rl.extract(rl.open_oracle(planted((6, 4, 1), 0)), method, rng=0)


@pytest.mark.parametrize("attempts", [0, -1])
def test_attempts_are_checked(attempts: int) -> None:
    with pytest.raises(rl.ReluctantError, match=r"^attempts: got"):
        rl.extract(rl.open_oracle(planted((3, 2, 1), 0)), attempts=attempts)


def test_method_must_be_an_object() -> None:
    with pytest.raises(rl.ReluctantError, match=r"^method: got"):
        rl.extract(rl.open_oracle(planted((3, 2, 1), 0)), rl.DepthTwo)  # type: ignore[arg-type]


def test_unverified_result_holds_the_network_that_was_verified() -> None:
    """A later attempt that gets stuck does not replace a whole network by a part."""
    true = planted((6, 4, 1), 0)
    whole = rl.ReLUNetwork(true.weights, [bias + 1e-3 for bias in true.biases])
    part = rl.ReLUNetwork([true.weights[0][:1], true.weights[1][:, :1]], [true.biases[0][:1], true.biases[1]])

    class WholeThenPart(rl.Method):
        attempts = 0

        def run(self, oracle: object, noise: object, rng: object, keep: Callable[[rl.ReLUNetwork], None]) -> Candidate:
            self.attempts += 1
            if self.attempts == 1:
                return Candidate(whole)
            keep(part)
            raise StageFailed("line", "hard luck", number=1, limit=0, partial=part)

    result = rl.extract(rl.open_oracle(true), WholeThenPart(), rng=0, attempts=2)
    assert result.outcome is rl.Outcome.UNVERIFIED
    assert result.network is whole
    assert not result.evidence["verification"].ok
    assert len(result.evidence["failures"]) == 2


def test_cost_does_not_depend_on_what_was_asked_before() -> None:
    true = planted((64, 40, 1), 3)
    fresh, used = rl.open_oracle(true), rl.open_oracle(true)
    used.query(np.random.default_rng(0).standard_normal((50_000, 64)))
    assert rl.extract(fresh, rng=0).rows == rl.extract(used, rng=0).rows

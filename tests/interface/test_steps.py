"""Steps of trees are told from rounded values, and from networks that are flat in places."""

import numpy as np
import pytest

import reluctant as rl
from reluctant.audit import audit
from reluctant.interface import Shape, check_health
from reluctant.interface.kinds import off_grid
from reluctant.oracles import Kind, open_oracle
from reluctant.results import Outcome
from reluctant.testing import planted

DIM = 6
NETWORK = planted((DIM, 12, 1), 3)


def forest(trees: int, depth: int, seed: int, outputs: int = 1):
    """Mean of trees: each asks one input after the other on which side of a bound it is."""
    rng = np.random.default_rng(seed)
    axes, bounds = rng.integers(DIM, size=(trees, depth)), rng.standard_normal((trees, depth))
    leaves = rng.standard_normal((trees, 2**depth, outputs))

    def target(x: np.ndarray) -> np.ndarray:
        leaf = (x[:, axes] > bounds) @ 2 ** np.arange(depth)
        return leaves[np.arange(trees), leaf].mean(axis=1)

    return target


def softmax(values):
    def target(x: np.ndarray) -> np.ndarray:
        powers = np.exp(values(x))
        return powers / powers.sum(axis=1, keepdims=True)

    return target


@pytest.mark.parametrize("domain", [None, (-2.0, 2.0)])
@pytest.mark.parametrize(("trees", "depth"), [(3, 5), (20, 4), (100, 6)])
def test_trees_are_piecewise_constant(trees: int, depth: int, domain, seed: int) -> None:
    health = check_health(open_oracle(forest(trees, depth, seed), dim=DIM, domain=domain), rng=seed)
    assert health.shape is Shape.PIECEWISE_CONSTANT
    assert health.step_function
    assert health.refusal is Outcome.PIECEWISE_CONSTANT
    assert health.diagnosis.slug == ("answers-of-trees" if domain is None else "answers-in-steps")
    assert "rounded to" not in str(health)
    assert "clipped" not in str(health)


def test_so_are_probabilities_of_trees(seed: int) -> None:
    health = check_health(open_oracle(softmax(forest(10, 4, seed, outputs=3)), dim=DIM), rng=seed)
    assert health.answers is Kind.PROBABILITIES
    assert health.trees
    assert health.diagnosis.slug == "answers-of-trees"


@pytest.mark.parametrize("votes", [10, 50, 100])
def test_votes_of_trees_are_no_rounded_probabilities(votes: int, seed: int) -> None:
    """A forest of a hundred trees answers in hundredths."""

    def target(x: np.ndarray) -> np.ndarray:
        trees = [forest(1, 5, votes * seed + k)(x) > 0 for k in range(votes)]
        share = np.mean(trees, axis=0)
        return np.column_stack([1 - share, share]).round(4)

    health = check_health(open_oracle(target, dim=DIM), rng=seed)
    assert health.trees
    assert health.decimals is None


def test_splits_far_out_are_those_of_trees_too() -> None:
    """On some rays an input is so small that it passes its last split beyond the farthest inputs but one."""
    votes, far = 100, 30.0

    def target(x: np.ndarray) -> np.ndarray:
        trees = [forest(1, 5, k)(x / far if k % 2 else x) > 0 for k in range(votes)]
        share = np.mean(trees, axis=0)
        return np.column_stack([1 - share, share]).round(4)

    assert all(check_health(open_oracle(target, dim=DIM), rng=seed).trees for seed in range(8))


def test_rounded_inputs_are_steps_of_no_tree(seed: int) -> None:
    """Each step depends on one input there too, but far out there are more of them."""
    health = check_health(open_oracle(lambda x: NETWORK(x.round(1)), dim=DIM), rng=seed)
    assert not health.trees


@pytest.mark.parametrize(
    "target",
    [
        NETWORK,
        lambda x: NETWORK(x).astype(np.float32),
        lambda x: NETWORK(x).astype(np.float16),
        lambda x: NETWORK(x).round(2),
        lambda x: np.maximum(NETWORK(x) - 1.0, 0.0),
        lambda x: np.clip(NETWORK(x), -0.25, 0.25),
    ],
    ids=["values", "float32", "float16", "decimals", "often flat", "clipped"],
)
def test_rounded_values_and_flat_places_are_no_steps(target, seed: int) -> None:
    assert not check_health(open_oracle(target, dim=DIM), rng=seed).step_function


def test_levels_of_few_digits_are_on_a_grid() -> None:
    assert not off_grid(np.array([[0.5], [0.25], [3.0]]))
    assert not off_grid(np.array([[0.1], [0.17], [-2.3]]))
    assert not off_grid(np.array([[0.1], [0.17], [-2.3]], dtype=np.float32).astype(float))
    assert off_grid(np.array([[1 / 3], [1 / 7], [2.0]]))


@pytest.mark.usefixtures("short_training")
def test_an_audit_of_trees_does_not_speak_of_a_part_or_clipped_inputs() -> None:
    target = open_oracle(forest(20, 4, 0), dim=DIM)
    found = audit(target, budget=6_000, steps=["health", "extraction", "part", "learning", "training"])
    assert "approximable" in found.verdict.unsettled
    assert "extractable" not in (*found.verdict.leaks, *found.verdict.unsettled)
    reasons = {reason.diagnosis.slug for reason in found.verdict.reasons}
    assert "answers-of-trees" in reasons
    assert {"may-be-clipped", "clipped-inputs"}.isdisjoint(reasons)
    assert found.known.part is None
    assert not rl.extract(target).ok


def test_trees_are_not_sent_on_to_a_span_of_labels() -> None:
    remedies = rl.extract(open_oracle(forest(20, 4, 0), dim=DIM)).diagnosis.remedies
    assert [remedy.verb for remedy in remedies] == ["train"]


@pytest.mark.parametrize("slope", [1, 3, 10, 30])
@pytest.mark.parametrize("units", [2, 6])
def test_ramps_are_no_steps(slope: int, units: int, seed: int) -> None:
    """Flat places on many levels, and a way from each to the next: a network that is recovered."""
    rng = np.random.default_rng(seed)
    ramps, outputs = slope * rng.standard_normal((DIM, units)), rng.standard_normal(units)
    health = check_health(open_oracle(lambda x: np.clip(x @ ramps, 0, 1) @ outputs, dim=DIM), rng=seed)
    assert not health.step_function
    network = rl.ReLUNetwork(
        [np.vstack([ramps.T, ramps.T]), np.concatenate([outputs, -outputs])[None]],
        [np.concatenate([np.zeros(units), -np.ones(units)]), np.zeros(1)],
    )
    assert rl.extract(rl.open_oracle(network), rng=seed).ok


def test_a_look_between_two_levels_takes_few_rows() -> None:
    trees, ramps = open_oracle(forest(20, 4, 0), dim=DIM), open_oracle(NETWORK)
    assert check_health(trees, rng=0).queries <= 102 + 4 * (30 + 3 + 2)
    assert check_health(ramps, rng=0).queries == 102


def test_the_inputs_that_a_forest_splits_stay_open_at_a_small_cost():
    found = audit(open_oracle(forest(20, 4, 0), dim=DIM), steps=("health", "span"))
    span = found.steps[1]
    assert span.diagnosis.slug == "splits-of-trees"
    assert span.queries <= 10_000
    assert "span" in found.verdict.unsettled


def on_columns_of_their_own(trees: int, seed: int):
    """Splits of most columns lie far from 0, so that a line near the origin meets a step or none."""
    middle, size = np.array([50.0, 3.0, 26.0, 94.0, 40.0, 4.6]), np.array([13.0, 0.5, 4.4, 14.0, 1.3, 0.5])
    within = forest(trees, 8, seed)
    return lambda x: within((x - middle) / size).astype(np.float32)


def test_a_forest_that_is_flat_near_the_origin_is_named_in_few_rows() -> None:
    """Where all lines of the first look but one are flat, and where all are, it is no network of few digits."""
    first_look = set()
    for seed in range(8):
        found = rl.extract(on_columns_of_their_own(50, seed), dim=DIM, rng=seed, budget=5_000)
        assert found.outcome is Outcome.PIECEWISE_CONSTANT
        assert found.diagnosis.slug == "answers-of-trees"
        assert found.queries <= 1_400
        first_look.add(found.queries < 250)
    assert first_look == {True, False}

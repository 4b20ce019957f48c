"""Steep probabilities: a span that typical inputs contradict is no span."""

import numpy as np

import reluctant as rl
from reluctant.domains import Domain
from reluctant.networks import ReLUNetwork
from reluctant.oracles.links import LINK_FUNCTIONS
from reluctant.span import Subspace
from reluctant.span.recover import TYPICAL_POINTS, seen_from_typical_inputs

SMALL = Domain(-0.1, 0.1)


def asleep_near_the_origin(times: float) -> ReLUNetwork:
    """Two neurons on the first two inputs; one on the third, active beyond 0.4 alone."""
    w = np.array([[1.0, 0.3, 0, 0], [0.2, -1.0, 0, 0], [0, 0, 1.0, 0]])
    a = times * np.array([[1.0, 0.5, 2.0], [-1.0, 1.0, 0.5], [0.3, -0.7, 1.0]])
    return ReLUNetwork([w, a], [np.array([0.01, 0.02, -0.4]), np.zeros(3)])


def opened(network: ReLUNetwork) -> rl.Oracle:
    return rl.open_oracle(lambda x: LINK_FUNCTIONS["softmax"](network(x)), dim=4, link="softmax")


def test_a_direction_that_typical_inputs_see_is_not_called_invisible() -> None:
    span = rl.recover_span(opened(asleep_near_the_origin(800.0)), rng=0)
    assert span.outcome is rl.Outcome.SPAN_PARTIAL
    assert span.rank == 2
    assert span.evidence["seen at typical inputs"] > 0.05
    assert span.diagnosis.slug == "span-beyond-box"
    assert span.diagnosis.fields["share"] == span.evidence["seen at typical inputs"]


def test_a_whole_span_stays_whole_and_its_check_is_counted() -> None:
    network = asleep_near_the_origin(800.0)
    (w, a), c = network.weights, network.biases[1]
    awake = ReLUNetwork([w, a], [np.array([0.01, 0.02, -0.001]), c])
    span = rl.recover_span(opened(awake), rng=0)
    assert span.ok
    assert span.rank == 3
    assert span.rows["verify"].asked == 3 * TYPICAL_POINTS


def test_nothing_is_asked_where_nothing_could_be_missed() -> None:
    oracle, rng = opened(asleep_near_the_origin(1.0)), np.random.default_rng(0)
    before = oracle.queries
    assert seen_from_typical_inputs(oracle, Subspace(np.eye(4)), SMALL, rng) is None
    assert seen_from_typical_inputs(oracle, Subspace(np.eye(4)[:2]), Domain(-4.0, 4.0), rng) is None
    assert oracle.queries == before


def test_noise_is_no_change() -> None:
    network, rng = asleep_near_the_origin(1.0), np.random.default_rng(0)
    noisy = rl.open_oracle(
        lambda x: 0.9 * LINK_FUNCTIONS["sigmoid"](network(x)) + 0.02 * rng.random((len(x), 3)), dim=4, link="sigmoid"
    )
    share = seen_from_typical_inputs(noisy, Subspace(np.eye(4)[:3]), SMALL, np.random.default_rng(1))
    assert share == 0

"""Two classes answered as [1 - p, p]: the first has lost digits next to 0, and a softmax costs what a sigmoid costs."""

import numpy as np
import pytest
from scipy.special import expit
from sweeps import sweep

import reluctant as rl
from reluctant.oracles import Linked
from reluctant.oracles.links import lost_digits
from reluctant.testing import planted

STEEP = 4.0


@pytest.mark.parametrize("seed", sweep([2, 4], fast=[2]))
def test_two_classes_cost_what_one_probability_costs(seed):
    network = planted((12, 16, 1), seed)

    def second(x):
        return expit(STEEP * network(x)[:, 0])

    def both(x):
        return np.column_stack([1 - second(x), second(x)])

    one = rl.extract(second, dim=12, link="sigmoid", rng=seed)
    two = rl.extract(both, dim=12, link="softmax", rng=seed)
    assert one.ok
    assert two.ok
    assert two.queries <= 1.2 * one.queries


def test_the_class_that_is_left_of_one_is_known_by_its_answers():
    values = np.array([[-20.0], [0.5], [20.0]])
    rows = values

    def left(x):
        return np.column_stack([1 - expit(x[:, 0]), expit(x[:, 0])])

    def divided(x):
        return np.column_stack([expit(-x[:, 0]), expit(x[:, 0])])

    for answers, coarse in ((left, True), (divided, False)):
        oracle = Linked(rl.open_oracle(answers, dim=1), "softmax")
        oracle.query(rows)
        noise = lost_digits(values, oracle)[:, 0]
        assert noise[0] < 1e-15
        assert (noise[2] > 1e-9) == coarse

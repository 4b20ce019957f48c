"""What later layers decide by is read from the evidence of a result under typed names."""

from __future__ import annotations

import numpy as np

import reluctant as rl
from reluctant.domains import Domain
from reluctant.evidence import Measured
from reluctant.oracles import Kind
from reluctant.results import Outcome, Result
from reluctant.testing import planted


def of(**evidence: object) -> Measured:
    return Measured.of(
        Result(Outcome.PARTIAL, None, {}, evidence={key.replace("_", " "): evidence[key] for key in evidence})
    )


def test_nothing_was_measured():
    empty = of()
    assert empty.health is None
    assert (empty.attempts, empty.failures, empty.copy_directions) == ((), (), 0)
    assert not empty.limits
    assert (empty.to_accuracy, empty.from_labels) == (False, False)


def test_plain_values_have_types():
    found = of(clipped=(0.0, 1.0), answers="labels", own_link="sigmoid", eps=1e-6, failures=["line: none"], above=True)
    assert found.clipped == Domain(0.0, 1.0)
    assert found.answers is Kind.LABELS
    assert (found.own_link, found.to_accuracy, found.failures, found.above) == ("sigmoid", True, ("line: none",), True)


def test_an_extraction():
    found = Measured.of(rl.extract(planted((4, 3, 1), 0), rng=0))
    assert found.health is not None
    assert found.value_check is found.verification
    assert found.value_check.ok
    assert [each.method for each in found.attempts] == ["DepthTwo"]
    assert found.line_search is not None
    assert found.held_out is None


def test_an_accuracy_is_of_points_or_held_out():
    network = planted((3, 2, 1), 0)
    learned = Measured.of(rl.learn(network, rng=0))
    trained = Measured.of(rl.train_student(network, inputs=np.random.default_rng(0).normal(size=(400, 3)), steps=50))
    assert learned.accuracy is not None
    assert learned.held_out is None
    assert trained.accuracy is None
    assert trained.held_out is not None
    assert trained.training is not None

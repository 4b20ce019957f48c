"""Every method that asks an oracle, by name; what is registered here is tested against the wall.

A method must give the same result and the same count on a network's own oracle and behind a bare
closure. A new method adds one line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluctant.adversarial import Flip, flip_sign, local_linearity
from reluctant.extraction import AnyDepth, DepthTwo, FewDigits, extract
from reluctant.health import check_health
from reluctant.learning import learn, train_student
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting
from reluctant.results import Result
from reluctant.span import Span, recover_span
from reluctant.verification import verify

__all__ = ["METHODS", "Method"]


@dataclass(frozen=True)
class Method:
    """A method under test: `run(oracle, candidate)` gives a value that can be compared.

    `candidate` is a network handed to methods that check one; it never is the oracle's own object.
    """

    name: str
    run: Callable[[Counting, ReLUNetwork], Any]


def _comparable(result: Result) -> Any:
    """Outcome, cost by stage and every weight, to the last bit."""
    network = result.network
    arrays = [] if network is None else [*network.weights, *network.biases, network.skip]
    return result.outcome, dict(result.rows), [None if array is None else array.tobytes() for array in arrays]


def _comparable_flip(flip: Flip) -> Any:
    """Outcome, cost by stage and the flipped input, to the last bit."""
    return flip.outcome, dict(flip.rows), None if flip.x is None else flip.x.tobytes()


def _comparable_span(span: Span) -> Any:
    """Outcome, cost by stage and the basis, to the last bit."""
    return span.outcome, dict(span.rows), span.basis.tobytes()


METHODS: tuple[Method, ...] = (
    Method("health", lambda oracle, candidate: check_health(oracle, rng=0)),
    Method("verify", lambda oracle, candidate: verify(oracle, candidate, rng=0)),
    Method("extract", lambda oracle, candidate: _comparable(extract(oracle, rng=0))),
    Method("extract, DepthTwo", lambda oracle, candidate: _comparable(extract(oracle, DepthTwo(directions=2), rng=0))),
    Method("learn", lambda oracle, candidate: _comparable(learn(oracle, rng=0, narrowest=0.1))),
    Method("train", lambda oracle, candidate: _comparable(train_student(oracle, rows=400, hidden=(8,), rng=0))),
    Method("extract, AnyDepth", lambda oracle, candidate: _comparable(extract(oracle, AnyDepth(), rng=0, attempts=1))),
    Method("span", lambda oracle, candidate: _comparable_span(recover_span(oracle, rng=0))),
    Method("extract, FewDigits", lambda oracle, candidate: _comparable(extract(oracle, FewDigits(), attempts=1))),
    Method("flip", lambda oracle, candidate: _comparable_flip(flip_sign(oracle, np.ones(oracle.dim), steps=2))),
    Method("linearity", lambda oracle, candidate: local_linearity(oracle, np.ones(oracle.dim)).to_dict()),
    Method("span, labels", lambda oracle, candidate: _comparable_span(recover_span(oracle, labels=True, rng=0))),
)

"""The list of methods that query an oracle; each is tested behind a bare closure.

A method must give the same result and the same count on a network's own oracle and behind a bare closure. A new
method adds one line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluctant.adversarial import Flip, flip_sign, local_linearity
from reluctant.extraction import AnyDepth, DepthTwo, FewDigits, extract
from reluctant.interface import check_health
from reluctant.learning import learn, train_student
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting
from reluctant.results import Result
from reluctant.span import Span, recover_span
from reluctant.verification import verify


@dataclass(frozen=True)
class MethodCase:
    """A method under test: `run(oracle, candidate)` gives a value that can be compared.

    `candidate` is a network handed to methods that check one; it never is the oracle's own object.
    """

    name: str
    run: Callable[[Counting, ReLUNetwork], Any]


def _comparable_result(result: Result) -> Any:
    """Outcome, cost by stage and every weight, to the last bit."""
    network = result.network
    arrays = [] if network is None else [*network.weights, *network.biases, network.skip, *network.skips.values()]
    return result.outcome, dict(result.rows), [None if array is None else array.tobytes() for array in arrays]


def _comparable_flip(flip: Flip) -> Any:
    """Outcome, cost by stage and the flipped input, to the last bit."""
    return flip.outcome, dict(flip.rows), None if flip.x is None else flip.x.tobytes()


def _comparable_span(span: Span) -> Any:
    """Outcome, cost by stage and the basis, to the last bit."""
    return span.outcome, dict(span.rows), span.basis.tobytes()


METHODS: tuple[MethodCase, ...] = (
    MethodCase("health", lambda oracle, candidate: check_health(oracle, rng=0)),
    MethodCase("verify", lambda oracle, candidate: verify(oracle, candidate, rng=0)),
    MethodCase("extract", lambda oracle, candidate: _comparable_result(extract(oracle, rng=0))),
    MethodCase(
        "extract, DepthTwo",
        lambda oracle, candidate: _comparable_result(extract(oracle, DepthTwo(directions=2), rng=0)),
    ),
    MethodCase("learn", lambda oracle, candidate: _comparable_result(learn(oracle, rng=0, narrowest=0.1))),
    MethodCase(
        "train", lambda oracle, candidate: _comparable_result(train_student(oracle, rows=400, hidden=(8,), rng=0))
    ),
    MethodCase(
        "extract, AnyDepth",
        lambda oracle, candidate: _comparable_result(extract(oracle, AnyDepth(), rng=0, attempts=1)),
    ),
    MethodCase("span", lambda oracle, candidate: _comparable_span(recover_span(oracle, rng=0))),
    MethodCase(
        "extract, FewDigits", lambda oracle, candidate: _comparable_result(extract(oracle, FewDigits(), attempts=1))
    ),
    MethodCase("flip", lambda oracle, candidate: _comparable_flip(flip_sign(oracle, np.ones(oracle.dim), steps=2))),
    MethodCase("linearity", lambda oracle, candidate: local_linearity(oracle, np.ones(oracle.dim)).to_dict()),
    MethodCase("span, labels", lambda oracle, candidate: _comparable_span(recover_span(oracle, labels=True, rng=0))),
)

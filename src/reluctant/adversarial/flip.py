"""`flip_sign`: one gradient step that changes the sign of a network, or the class it chooses.

Theorem 1.1 of the paper on random ReLU networks: around an input such a network is so nearly linear that a single
step along its gradient flips its sign, of a size about 1/√d of the input's. A linear function flips at
|f| / ‖∇f‖; the ray is searched around that length for the first flip there is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from reluctant.adversarial.confirmation import asked_again, explained, on_target
from reluctant.adversarial.inputs import HasBasis, checked_basis, checked_input, checked_network, checked_steps
from reluctant.adversarial.result import Flip
from reluctant.adversarial.search import follow
from reluctant.adversarial.sources import Known, Queried
from reluctant.domains import Domain
from reluctant.errors import BudgetExhausted, InvalidInput, NonFiniteAnswer, TargetError
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Counting, Oracle
from reluctant.oracles.opening import as_opened
from reluctant.results import Outcome

__all__ = ["flip_sign"]

ELSEWHERE = 8  # random inputs asked to tell a flat place from a constant target


def flip_sign(
    target: Oracle | ReLUNetwork,
    x: ArrayLike,
    *,
    span: HasBasis | None = None,
    network: ReLUNetwork | None = None,
    steps: int = 1,
    rng: Rng = 0,
) -> Flip:
    """Flip the sign of a target at x (the winning class, if it has several outputs) by one gradient step.

    Arguments:
        target: an opened target, or a network, which costs no query.
        x: the input (d,).
        span: a subspace outside which the target does not change; a gradient then costs its rank.
        network: a recovered network; the step is found on it, and the target is asked only to confirm.
        steps: gradients that may be taken. The first gives Theorem 1.1's step; every other one looks for a nearer
            point of the boundary, or for one at all, from where the last one led.
        rng: seed of all random choices.

    Cost: d + 42 rows for one step by values (d + 49 if the flip is far), rank + 42 with a span, 2 to 8 with a
    network, none for a network.
    """
    checked_steps(steps)
    if isinstance(target, ReLUNetwork):
        return _on_network(target, x, span, network, steps)
    opened = as_opened(target)
    start, basis = checked_input(x, opened.dim, opened.facts.domain), checked_basis(span, opened.dim)
    checked_network(network, opened)
    opened.begin("flip", rng)
    before = dict(opened.ledger.stages)
    try:
        if network is None:
            flip = _by_questions(opened, start, basis, steps, as_generator(rng))
        else:
            flip = _by_network(opened, start, network, steps)
    except BudgetExhausted as error:
        flip = Flip(Outcome.OUT_OF_BUDGET, start, evidence={"error": str(error)})
    except NonFiniteAnswer as error:
        flip = Flip(Outcome.NON_FINITE, start, evidence={"error": str(error)})
    except TargetError as error:
        flip = Flip(Outcome.TARGET_FAILED, start, evidence={"error": str(error)})
    return replace(flip, rows=opened.ledger.since(before), stage=opened.ledger.last_stage)


def _on_network(
    target: ReLUNetwork, x: ArrayLike, span: HasBasis | None, network: ReLUNetwork | None, steps: int
) -> Flip:
    if span is not None or network is not None:
        got = "span" if span is not None else "network"
        raise InvalidInput.about(got, got="one", expected="none where the target is a network itself")
    start = checked_input(x, target.dim, Domain())
    source = Known.at(target, start, Domain())
    return follow(source, start, steps, source.ask(start[None])[0], reference=False).flip()


def _by_questions(
    oracle: Counting, start: FloatArray, basis: FloatArray | None, steps: int, rng: np.random.Generator
) -> Flip:
    source = Queried.at(oracle, start, basis, rng)
    if source.probe.flat and _constant(oracle, source.values, rng):
        return Flip(Outcome.CONSTANT, start)
    search = asked_again(source, follow(source, start, steps, source.values, oracle.facts.reference))
    return explained(search, source.probe.answers).flip()


def _constant(oracle: Counting, values: FloatArray, rng: np.random.Generator) -> bool:
    with oracle.stage("probe"):
        return bool((oracle.query(oracle.facts.domain.sample(rng, ELSEWHERE, oracle.dim)) == values).all())


def _by_network(oracle: Counting, start: FloatArray, network: ReLUNetwork, steps: int) -> Flip:
    source = Known.at(network, start, oracle.facts.domain)
    search = follow(source, start, steps, source.ask(start[None])[0], oracle.facts.reference)
    return on_target(oracle, search).flip()

"""`flip_sign`: one gradient step that changes the sign of a network, or the class it chooses.

Theorem 1.1 of the paper on random ReLU networks: around an input such a network is so nearly linear that a single
step along its gradient flips its sign, of a size about 1/√d of the input's. A linear function flips at
|f| / ‖∇f‖; the ray is searched around that length for the first flip there is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from reluctant.adversarial.confirmation import asked_again, on_target
from reluctant.adversarial.explaining import CONSTANT, explained, look_like_labels, of_labels, without_link
from reluctant.adversarial.inputs import HasBasis, checked_basis, checked_input, checked_steps
from reluctant.adversarial.line import RAY_ROWS
from reluctant.adversarial.margins import Margins
from reluctant.adversarial.probe import AGAIN, PROBE_ROWS
from reluctant.adversarial.result import Flip
from reluctant.adversarial.search import follow
from reluctant.adversarial.sources import Known, Queried
from reluctant.adversarial.units import Copy, checked_threshold, crossed, own_threshold
from reluctant.domains import Domain
from reluctant.errors import BudgetExhausted, InvalidInput, NonFiniteAnswer, TargetError
from reluctant.geometry.gradients import GRADIENT_ROWS
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Counting, Oracle
from reluctant.oracles.opening import as_opened
from reluctant.results import Outcome

__all__ = ["MOST_ROWS", "flip_sign"]

ELSEWHERE = 64  # random inputs asked to tell a flat place from a constant target, and from one that answers labels
# Of one step at one input, besides one for each direction of the gradient; with a network it takes fewer.
MOST_ROWS = PROBE_ROWS + GRADIENT_ROWS + RAY_ROWS + AGAIN + ELSEWHERE


def flip_sign(
    target: Oracle | ReLUNetwork,
    x: ArrayLike,
    *,
    span: HasBasis | None = None,
    network: ReLUNetwork | None = None,
    steps: int = 1,
    threshold: float | None = None,
    rng: Rng = 0,
) -> Flip:
    """Flip the sign of a target at x (the winning class, if it has several outputs) by one gradient step.

    Arguments:
        target: an opened target, or a network, which costs no query.
        x: the input (d,).
        span: a subspace outside which the target does not change; a gradient then costs its rank.
        network: one that was recovered or trained; the step is found on it, and the target is asked only to confirm.
            It gives what the target answers, or the values before the link that is noted in it; of a target that
            answers labels, one value for each.
        steps: gradients that may be taken. The first gives Theorem 1.1's step; every other one looks for a nearer
            point of the boundary, or for one at all, from where the last one led.
        threshold: where one output changes side; if not given, one half of what is known to be a probability, else 0.
        rng: seed of all random choices.

    Cost: d + 42 rows for one step by values (7 more if the flip is far, 18 more if answers are noisy or have few
    digits, 64 more at a flat place), rank + 42 with a span, 2 or 11 with a network (3 or 12 if it is not exact, 39 if
    answers are noisy; of labels 3, 4 or 12, and 48 at most if they are noisy; one more if 0 and 1 may be rounded
    values), none for a network.
    """
    checked_steps(steps)
    if isinstance(target, ReLUNetwork):
        return _on_network(target, x, span, network, steps, threshold)
    opened = as_opened(target)
    start, basis = checked_input(x, opened.dim, opened.facts.domain), checked_basis(span, opened.dim)
    checked_threshold(threshold, opened.outputs, linked=opened.facts.saturates)
    copy = None if network is None else Copy.of(network, opened, threshold)
    opened.begin("flip", rng)
    before = dict(opened.ledger.stages)
    try:
        if copy is None:
            flip = _by_questions(opened, start, basis, steps, threshold, as_generator(rng))
        else:
            flip = _by_network(opened, start, copy, steps)
    except BudgetExhausted as error:
        flip = Flip(Outcome.OUT_OF_BUDGET, start, evidence={"error": str(error)})
    except NonFiniteAnswer as error:
        flip = Flip(Outcome.NON_FINITE, start, evidence={"error": str(error), **without_link(opened)})
    except TargetError as error:
        flip = Flip(Outcome.TARGET_FAILED, start, evidence={"error": str(error)})
    return replace(flip, rows=opened.ledger.since(before), stage=opened.ledger.last_stage)


def _on_network(
    target: ReLUNetwork,
    x: ArrayLike,
    span: HasBasis | None,
    network: ReLUNetwork | None,
    steps: int,
    threshold: float | None,
) -> Flip:
    if span is not None or network is not None:
        got = "span" if span is not None else "network"
        raise InvalidInput.about(got, got="one", expected="none where the target is a network itself")
    checked_threshold(threshold, target.outputs)
    start = checked_input(x, target.dim, Domain())
    source = Known.at(target, start, Domain())
    values = source.ask(start[None])[0]
    margins = Margins.at(values, threshold=0.0 if threshold is None else threshold)
    return follow(source, start, steps, values, margins).flip(margins.threshold)


def _by_questions(
    oracle: Counting,
    start: FloatArray,
    basis: FloatArray | None,
    steps: int,
    threshold: float | None,
    rng: np.random.Generator,
) -> Flip:
    facts = oracle.facts
    source = Queried.at(oracle, start, basis, rng, far=True)
    answers, still = source.probe.answers, source.probe.still
    if source.probe.flat:
        answers = np.concatenate([answers, _elsewhere(oracle, rng)])
    labels = threshold is None and look_like_labels(answers, facts.kind, still=still)
    if labels or not np.ptp(answers, axis=0).any():
        return _without_slopes(start, answers)
    margins = Margins.at(source.values, facts.reference, own_threshold(threshold, facts))
    search = asked_again(source, follow(source, start, steps, source.values, margins))
    if search.outcome is Outcome.FLAT and not (source.probe.coarse or source.probe.flat):
        answers = np.concatenate([answers, _elsewhere(oracle, rng)])  # which may show how they are rounded
    return explained(search, source, answers, steps, threshold).flip(crossed(margins, oracle))


def _without_slopes(start: FloatArray, answers: FloatArray) -> Flip:
    """Labels, or one answer alone, which may be a label."""
    if np.ptp(answers, axis=0).any():
        return Flip(Outcome.PIECEWISE_CONSTANT, start, evidence={"reason": of_labels(answers)})
    whole = answers.shape[1] == 1 and float(answers[0, 0]).is_integer()
    return Flip(Outcome.CONSTANT, start, evidence={"reason": CONSTANT} if whole else {})


def _elsewhere(oracle: Counting, rng: np.random.Generator) -> FloatArray:
    with oracle.stage("probe"):
        return oracle.query(oracle.facts.domain.sample(rng, ELSEWHERE, oracle.dim))


def _by_network(oracle: Counting, start: FloatArray, copy: Copy, steps: int) -> Flip:
    source = Known.at(copy.network, start, oracle.facts.domain)
    values = source.ask(start[None])[0]
    search = on_target(oracle, copy, follow(source, start, steps, values, copy.margins(values)), steps)
    return search.flip(crossed(search.margins, oracle))

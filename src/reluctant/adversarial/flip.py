"""`flip_sign`: one gradient step that changes the sign or the class of a target, and why none was found.

Theorem 1.1 of "Adversarial Examples in Multi-Layer Random ReLU Networks" (Bartlett, Bubeck and Cherapanamjeri,
2021). Around an input such a network is nearly linear: a single step along its gradient flips its sign. The step is
about 1/√d of the input's size. A linear function flips at |f| / ‖∇f‖; the ray is searched around that length for
the first flip. A flip found by queries is asked again; one found on a network is tried on the target. Where there is
none, the answers tell why: labels, few digits, noise, probabilities that are not read as such.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from reluctant.adversarial.answered_gradients import AnsweredTarget
from reluctant.adversarial.decision import (
    Margins,
    NetworkCopy,
    checked_threshold,
    crossed_threshold,
    own_threshold,
)
from reluctant.adversarial.flip_search import (
    RAY_ROWS,
    Flip,
    FlipSearch,
    asked_again,
    follow_gradients,
    on_target,
    unflipped,
)
from reluctant.adversarial.gradient_source import (
    ASKED_AGAIN,
    PROBE_ROWS,
    Basis,
    HasBasis,
    KnownNetwork,
    QueriedTarget,
    checked_basis,
    checked_input,
    checked_steps,
)
from reluctant.domains import Domain
from reluctant.errors import BudgetExhausted, InvalidGradient, InvalidInput, NonFiniteGradient, TargetError
from reluctant.geometry.gradients import GRADIENT_ROWS
from reluctant.interface.gradient_kinds import MOST_KIND_ROWS, trusted
from reluctant.interface.noise import (
    answer_kind,
    find_decimals,
    format_noise,
    in_unit,
    look_like_labels,
    narrowest_format,
)
from reluctant.messages import Diagnosis, Remedy
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Counting, Facts, Kind, Oracle
from reluctant.oracles.keywords import InputsKeywords
from reluctant.oracles.links import Linked
from reluctant.oracles.open import Target, in_units, opened_target
from reluctant.results import Outcome, Run

CERTAIN_MARGIN = 1e-3  # a probability that far from 0 or 1 is one of a class that is certain
ON_A_COPY = Remedy("on-a-copy", "flip", {"network": None})
IF_NUMBERS = Remedy("if-numbers", "flip", {"threshold": None})
OWN_THRESHOLD = Remedy("own-threshold", "flip", {"threshold": None})
HALF = Remedy("half-threshold", "flip", {"threshold": 0.5})
READ_SIGMOID = Remedy("read-if-sigmoid", "flip", {"link": "sigmoid"})
READ_SOFTMAX = Remedy("read-probabilities", "flip", {"link": "softmax"})
WITHOUT_LINK = Remedy("no-link", "flip", {"link": "identity"})
WITHOUT_LINK_AT_HALF = Remedy("no-link", "flip", {"link": "identity", "threshold": 0.5})
CONSTANT_REASON = Diagnosis("constant-or-labels", remedies=(*Outcome.CONSTANT.diagnosis.remedies, ON_A_COPY))


def labels_reason(answers: FloatArray) -> Diagnosis:
    """Why labels (n, m) have no gradient, and what to try; one column of labels may be numbers."""
    return Diagnosis("labels-without-gradient", remedies=(ON_A_COPY, *([IF_NUMBERS] if answers.shape[1] == 1 else [])))


def explain_unflipped(
    search: FlipSearch, source: QueriedTarget, answers: FloatArray, steps: int, threshold: float | None
) -> FlipSearch:
    """Name the kind of the answers (n, m), if that is why nothing flipped."""
    if search.outcome is Outcome.FLAT:
        if look_like_labels(answers, source.oracle.facts.kind, still=source.probe.still):
            return search.because(labels_reason(answers), Outcome.PIECEWISE_CONSTANT)
        certain = in_unit(source.values) and bool((np.minimum(source.values, 1 - source.values) < CERTAIN_MARGIN).all())
        if not certain and (source.probe.coarse or find_decimals(answers) is not None):
            hidden = Diagnosis("gradient-hidden", _digits_limit(source, answers), (ON_A_COPY,))
            return search.because(hidden, Outcome.TOO_NOISY)
        return search.because(Diagnosis("certain-answers", remedies=(ON_A_COPY,))) if certain else search
    if search.outcome is not Outcome.NOT_FLIPPED:
        return search
    unread = _unread(answers, source.oracle.facts, threshold)
    if unread:
        return search.because(unflipped(search.outcome, steps, *unread))
    plain = unflipped(search.outcome, steps)
    if source.probe.coarse and search.left <= source.least:
        digits = _digits_limit(source, answers)
        return search.because(Diagnosis("margin-within-noise", digits, plain.remedies), Outcome.TOO_NOISY)
    facts = source.oracle.facts
    at_zero = facts.outputs == 1 and not facts.saturates and own_threshold(threshold, facts) == 0
    return search.because(replace(plain, remedies=(*plain.remedies, OWN_THRESHOLD)) if at_zero else plain)


def without_link_reason(oracle: Oracle) -> Diagnosis | None:
    """The reason where one answer is at its end, exactly, so that its link has nothing to read; None elsewhere."""
    facts = oracle.facts
    if not facts.saturates or facts.reference or facts.outputs != 1:
        return None
    remedy = WITHOUT_LINK if facts.link == "tanh" else WITHOUT_LINK_AT_HALF
    return Diagnosis("certain-answer-unreadable", {"link": facts.link}, (remedy,))


def _unread(answers: FloatArray, facts: Facts, threshold: float | None) -> tuple[Remedy, ...]:
    """How to read probabilities that passed for values; nothing where they are none."""
    if facts.saturates or own_threshold(threshold, facts):
        return ()
    if answers.shape[1] == 1:
        return (HALF, READ_SIGMOID) if in_unit(answers) else ()
    return (READ_SOFTMAX,) if answer_kind(answers) is Kind.PROBABILITIES else ()


def _digits_limit(source: QueriedTarget, answers: FloatArray) -> dict[str, Any]:
    """What limits the digits of the answers."""
    behind = source.behind
    if behind is not None and behind.noise:
        limit = "number-format" if behind.decimals is None else "decimals"
        written = {"decimals": behind.decimals, "number_format": behind.number_format}
        return {"link": behind.link, "limit": limit, **written}
    decimals = find_decimals(answers)
    if decimals is not None:
        return {"link": None, "limit": "decimals", "decimals": decimals}
    if source.sd <= 2 * format_noise(answers) * float(np.abs(answers).max()):
        return {"link": None, "limit": "number-format", "number_format": narrowest_format(answers)}
    return {"link": None, "limit": "noise", "noise": source.sd}


ELSEWHERE_ROWS = 64  # random inputs asked to tell a flat place from a constant target, and from one that answers labels
# Of one step at one input, besides one for each direction of the gradient; with a network it takes fewer.
MOST_FLIP_ROWS = PROBE_ROWS + GRADIENT_ROWS + RAY_ROWS + ASKED_AGAIN + ELSEWHERE_ROWS
ANSWERED_ROWS = 12  # of one step with gradients that the target answers
MOST_FLIP_ROWS_EXPLAINED = MOST_FLIP_ROWS + ANSWERED_ROWS + MOST_KIND_ROWS  # where these lead to no flip


def flip_sign(
    target: Target,
    x: ArrayLike,
    *,
    span: HasBasis | None = None,
    network: ReLUNetwork | None = None,
    steps: int = 1,
    threshold: float | None = None,
    rng: Rng = 0,
    **opening: Unpack[InputsKeywords],
) -> Flip:
    """Find a small change of x that flips the sign of a target, or its winning class, by one gradient step.

    Arguments:
        target: an oracle, or anything that `open_oracle` takes. A network costs no query.
        x: the input (d,).
        span: a subspace outside which the target does not change. A gradient then costs its rank.
        network: a recovered or trained network. The step is found on it, and the target only confirms. The network
            gives what the target answers, or the values before the link that it notes. For labels it has one output
            each.
        steps: most gradient steps. The first one is that of Theorem 1.1. Each further one starts at the last boundary
            point, and looks for a nearer one.
        threshold: where one output changes side. By default one half for a known probability, otherwise 0.
        rng: seed of all random choices.
        opening: keywords of `open_oracle`, for this call. With any of them a network is queried like other targets.

    Cost: 12 rows for one step with gradients that the target answers; 8 to 53 more where they lead to no flip.
    From values d + 42 rows, rank + 42 with a span: 7 more if the flip is far, 18 more if answers are noisy or have few
    digits, 64 more at a flat place. With a network 2 or 11 rows: 3 or 12 if it is not exact, 39 if answers are noisy.
    For labels 3, 4 or 12, and at most 48 if they are noisy. One more if 0 and 1 may be rounded values. None for a
    network alone.
    """
    checked_steps(steps)
    if isinstance(target, ReLUNetwork) and not opening:
        if span is not None or network is not None:
            got = "span" if span is not None else "network"
            raise InvalidInput.about(got, got="one", expected="none where the target is a network itself")
        checked_threshold(threshold, target.outputs)
        start = checked_input(x, target.dim, Domain())
        source = KnownNetwork.at(target, start, Domain())
        values = source.ask(start[None])[0]
        margins = Margins.at(values, threshold=0.0 if threshold is None else threshold)
        return follow_gradients(source, start, steps, values, margins).flip(margins.threshold)
    with opened_target(target, opening) as opened:
        scaled, units = in_units(opened)
        if units is None or units.are_plain:
            return _on_target(opened, x, span, network, steps, threshold, rng)
        start, basis = checked_input(x, opened.dim, opened.facts.domain), checked_basis(span, opened.dim)
        reduced = None if basis is None else Basis(units.reduced_directions(basis))
        copy = None if network is None else units.reduced_network(network)
        return _on_target(scaled, units.reduced(start), reduced, copy, steps, threshold, rng).in_inputs_of(units, start)


def _on_target(
    opened: Counting,
    x: ArrayLike,
    span: HasBasis | None,
    network: ReLUNetwork | None,
    steps: int,
    threshold: float | None,
    rng: Rng,
) -> Flip:
    start, basis = checked_input(x, opened.dim, opened.facts.domain), checked_basis(span, opened.dim)
    checked_threshold(threshold, opened.outputs, linked=opened.facts.saturates)
    copy = None if network is None else NetworkCopy.of(network, opened, threshold)
    never = Outcome.NON_FINITE  # also where probabilities saturate: the reason says what to do
    run = Run[None].begin(opened, "flip", rng, None, non_finite=never, saturated=never)

    def work() -> Flip:
        if copy is None:
            return _by_questions(opened, start, basis, steps, threshold, as_generator(rng))
        source = KnownNetwork.at(copy.network, start, opened.facts.domain)
        values = source.ask(start[None])[0]
        search = on_target(opened, copy, follow_gradients(source, start, steps, values, copy.margins(values)), steps)
        return search.flip(crossed_threshold(search.margins, opened))

    def cut_short(outcome: Outcome) -> Flip:
        reason = without_link_reason(opened) if outcome is Outcome.NON_FINITE else None
        return Flip(outcome, start, evidence=run.evidence, reason=reason)

    found = unless_far(run.finish(work, cut_short))
    return replace(found, rows=run.spent(), stage=run.stage)


FARTHEST_FLIP = 1e3  # times the input, or a typical one: that far away is another input


def unless_far(found: Flip) -> Flip:
    """The flip, or none if its step is far larger than any input."""
    size = max(float(np.linalg.norm(found.start)), float(np.sqrt(len(found.start))))
    if not found.ok or found.size <= FARTHEST_FLIP * size:
        return found
    reason = Diagnosis("flipped-far-out", {"times": found.size / size}, Outcome.NOT_FLIPPED.diagnosis.remedies)
    evidence = {**found.evidence, "far flip": found.size}
    return Flip(Outcome.NOT_FLIPPED, found.start, evidence=evidence, reason=reason)


def _by_questions(
    oracle: Counting,
    start: FloatArray,
    basis: FloatArray | None,
    steps: int,
    threshold: float | None,
    rng: np.random.Generator,
) -> Flip:
    answered = _by_answered_gradients(oracle, start, steps, threshold)
    if answered is not None:
        return answered
    found = _by_values(oracle, start, basis, steps, threshold, rng)
    ended_in = oracle.ledger.last_stage
    try:
        reading = trusted(oracle, rng.spawn(1)[0])[1]
    except (BudgetExhausted, TargetError):  # a note is not worth the flip
        return found
    finally:
        oracle.ledger.last_stage = ended_in
    if reading is None or reading.diagnosis is None:
        return found
    return replace(found, evidence={**found.evidence, "gradients are": reading.diagnosis})


def _by_values(
    oracle: Counting,
    start: FloatArray,
    basis: FloatArray | None,
    steps: int,
    threshold: float | None,
    rng: np.random.Generator,
) -> Flip:
    facts = oracle.facts
    source = QueriedTarget.at(oracle, start, basis, rng, far=True)
    answers, still = source.probe.answers, source.probe.still
    if source.probe.flat:
        answers = np.concatenate([answers, _elsewhere(oracle, rng)])
    labels = threshold is None and look_like_labels(answers, facts.kind, still=still)
    if labels or not np.ptp(answers, axis=0).any():
        if np.ptp(answers, axis=0).any():
            return Flip(Outcome.PIECEWISE_CONSTANT, start, reason=labels_reason(answers))
        whole = answers.shape[1] == 1 and float(answers[0, 0]).is_integer()
        return Flip(Outcome.CONSTANT, start, reason=CONSTANT_REASON if whole else None)
    margins = Margins.at(source.values, facts.reference, own_threshold(threshold, facts))
    search = asked_again(source, follow_gradients(source, start, steps, source.values, margins))
    if search.outcome is Outcome.FLAT and not (source.probe.coarse or source.probe.flat):
        answers = np.concatenate([answers, _elsewhere(oracle, rng)])  # which may show how they are rounded
    found = explain_unflipped(search, source, answers, steps, threshold).flip(crossed_threshold(margins, oracle))
    long = found.ok and found.size > float(np.linalg.norm(start))  # next to certainty slopes of probabilities vanish
    look = oracle.unread and (long or found.outcome is Outcome.NOT_FLIPPED)
    unread = _unread(answers, facts, threshold) if look else ()
    link = next((remedy.options["link"] for remedy in unread if "link" in remedy.options), None)
    if link is None:
        return found
    read = oracle.around(Linked(oracle.inner, link))
    try:
        behind = _by_questions(read, found.start, basis, steps, None, rng)
    except TargetError:
        return found
    better = behind.ok and (not found.ok or behind.size < found.size)
    return replace(behind, evidence={**behind.evidence, "found link": link}) if better else found


def _by_answered_gradients(oracle: Counting, start: FloatArray, steps: int, threshold: float | None) -> Flip | None:
    """A flip by gradients that the target answers; None where it answers none, or they do not lead to one.

    Cost: up to 12 rows for one step. False gradients flip nothing, or flip all the same: the answers confirm it.
    """
    if oracle.explained is None:
        return None
    try:
        return _followed_gradients(AnsweredTarget.at(oracle, start), start, steps, threshold)
    except (NonFiniteGradient, InvalidGradient):
        return None


def _followed_gradients(source: AnsweredTarget, start: FloatArray, steps: int, threshold: float | None) -> Flip | None:
    oracle = source.oracle
    values = source.ask(start[None])[0]
    margins = Margins.at(values, oracle.facts.reference, own_threshold(threshold, oracle.facts))
    found = follow_gradients(source, start, steps, values, margins, source.search)
    if found.best is None or not source.confirmed(found.best, margins):
        return None
    return found.flip(crossed_threshold(margins, oracle))


def _elsewhere(oracle: Counting, rng: np.random.Generator) -> FloatArray:
    with oracle.stage("probe"):
        return oracle.query(oracle.facts.domain.sample(rng, ELSEWHERE_ROWS, oracle.dim))

"""The span from values: the choice of search, refinement, verification, and whether the rank is clear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reluctant.interface import Interface
from reluctant.interface.kinds import Shape
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting, Kind
from reluctant.results import Outcome
from reluctant.span.directions import search_directions
from reluctant.span.first_look import RULE_OF_THREE, UNCLEAR_ANGLE, UNCLEAR_MARGIN, FirstLook, Inputs, first_look
from reluctant.span.long_steps import (
    LONG_STEPS,
    LONG_STEPS_IN_BOUNDS,
    FoundSpan,
    leak_slopes,
    long_steps,
    loud_places,
    refine_basis,
    slopes_along,
    slopes_inside,
    span_tilt,
)
from reluctant.span.singular_values import oversampled_span

ATTEMPTS = 3  # times that fresh inputs may show more
LEAST_WEAK = 1e-9  # part of a gradient outside a fine span that may be a direction


@dataclass(frozen=True)
class FromValues:
    """How it ended, what was found, and the numbers behind it."""

    outcome: Outcome
    found: FoundSpan | None
    evidence: dict[str, object]
    typical: float = 0.0  # norm of an input


def from_values(
    oracle: Counting,
    inputs: Inputs,
    rng: np.random.Generator,
    keep: Callable[[FloatArray], None],
    *,
    fine: bool,
    reach: float,
) -> FromValues:
    """Recover the span of a ReLU network of any depth from its values."""
    few_digits = 1e-11  # noise over spread of the answers: above, directions are not taken one by one
    seen = first_look(oracle, inputs, rng, reach)
    evidence: dict[str, object] = {"health": seen.health, "live share": seen.live_share}
    refusal = _refusal(seen)
    if refusal is not None:
        return FromValues(refusal, None, evidence)
    way = _few_digits if _noise_share(seen.health) > few_digits else _many_digits
    outcome, found = way(oracle, seen, rng, keep, fine)
    evidence |= {"gradients": found.gradients, "leak": found.leak, "limit": found.limit}
    evidence["limits"] = _limits(seen, found)
    return FromValues(outcome, found, evidence, seen.ground.typical)


def _limits(seen: FirstLook, found: FoundSpan) -> str:
    """What could have been missed: a direction that no long step met (rule of three), or that is too weak to show."""
    looked_at = LONG_STEPS if seen.ground.domain.is_space else LONG_STEPS_IN_BOUNDS
    share = RULE_OF_THREE / (looked_at * max(seen.live_share, 1 / looked_at))
    ground = seen.ground
    return (
        f"Asked: {ground.inputs.describe(ground.drawn)}, and steps of {ground.reach:g} times their norm. Could have "
        f"been missed: a direction that matters on less than about {min(share, 1.0):.0%} of them, or one weaker than "
        f"{found.limit:.0e} of a gradient."
    )


def _refusal(seen: FirstLook) -> Outcome | None:
    if seen.is_constant:
        return Outcome.CONSTANT
    return values_refusal(seen.health)


def values_refusal(health: Interface) -> Outcome | None:
    """Why values give no span, or None.

    Curves that digits hide are no reason: gradients of a sigmoid are in the span too, and verification tells whether
    digits were enough. Nor are digits that are too few to read values exactly through a link.
    """
    too_few_digits = 1e-3
    if health.shape is Shape.CONSTANT:
        return Outcome.PIECEWISE_CONSTANT
    hidden = health.curves_hidden and health.answers is Kind.VALUES
    coarse = health.raw is not None and health.raw.too_coarse and np.isfinite(health.spread)
    refusal = None if hidden or coarse else health.refusal
    return Outcome.TOO_NOISY if refusal is None and _noise_share(health) > too_few_digits else refusal


def _noise_share(health: Interface) -> float:
    return health.noise.at(health.spread) / health.spread if health.spread > 0 else 0.0


def _many_digits(
    oracle: Counting, seen: FirstLook, rng: np.random.Generator, keep: Callable[[FloatArray], None], fine: bool
) -> tuple[Outcome, FoundSpan]:
    """Directions one by one, then one long-step stage; on with it as long as fresh inputs show others.

    Weak ones are looked for if the long-step stage still shows something.
    """
    start: FoundSpan | None = None
    for _ in range(ATTEMPTS):
        with oracle.stage("search"):
            seen = seen if start is None else _where_loud(seen, start, rng)
            start = found = search_directions(seen, rng, keep, start=start)
        finer = _finer(oracle, seen, found, rng) if fine else found
        keep(finer.basis)
        outcome, checked = _verified(oracle, seen, finer, rng)
        if outcome is not Outcome.SPAN_PARTIAL or not np.isfinite(checked.margin) or not found.rank:
            break
    unclear = (outcome is Outcome.SPAN_RECOVERED and checked.leak > LEAST_WEAK) or outcome is Outcome.RANK_UNCLEAR
    if not fine or not unclear or not 0 < found.rank < oracle.dim:
        return outcome, checked
    weak = _weak(oracle, seen, found, rng, keep)
    if weak.rank == found.rank:  # none: those found are the clearer for it
        finer = replace(finer, margin=weak.margin, limit=weak.limit)
    else:
        finer = _finer(oracle, seen, weak, rng)
    keep(finer.basis)
    return _verified(oracle, seen, finer, rng)


def _few_digits(
    oracle: Counting, seen: FirstLook, rng: np.random.Generator, keep: Callable[[FloatArray], None], fine: bool
) -> tuple[Outcome, FoundSpan]:
    """All directions together; as long as verification still sees others, finely and by twice as many gradients.

    The first of them where long steps change the answers: a rare direction in one gradient alone looks like a crease.
    """
    gradients = 0
    for _ in range(ATTEMPTS):
        with oracle.stage("gradients"):
            found = oversampled_span(seen, rng, keep, fine=fine, least=2 * gradients)
        keep(found.basis)
        outcome, found = _verified(oracle, seen, found, rng)
        if outcome is not Outcome.SPAN_PARTIAL:
            break
        if not fine:  # what is left may be the error of coarse directions: fine ones cost less than twice as many
            fine = True
            continue
        gradients = max(found.gradients, 1)
        with oracle.stage("gradients"):
            seen = _where_loud(seen, found, rng)
    return outcome, found


def _where_loud(seen: FirstLook, found: FoundSpan, rng: np.random.Generator) -> FirstLook:
    """The same look with places first where long steps outside the span change the answers."""
    active = found.points, found.values
    heard = loud_places(seen.ground, found.basis, *active, found.size, found.limit, rng)
    if not len(heard.points):
        return seen
    points, values = np.concatenate([heard.points, seen.points]), np.concatenate([heard.values, seen.values])
    return replace(seen, points=points, values=values, live=np.append(np.ones(len(heard.points), bool), seen.live))


def _weak(
    oracle: Counting, seen: FirstLook, found: FoundSpan, rng: np.random.Generator, keep: Callable[[FloatArray], None]
) -> FoundSpan:
    """Directions that are weak but stronger than what the error of those found looks like.

    From the search, not from the long-step stage: that one takes what a weak direction does for an error of the others.
    """
    beyond_tilt = 30.0  # times the error of directions, from which another one can be told from it
    with oracle.stage("weak directions"):
        least = max(LEAST_WEAK, beyond_tilt * span_tilt(seen.ground, found, rng))
        return search_directions(seen, rng, keep, start=found, least=least) if least < found.limit else found


def _finer(oracle: Counting, seen: FirstLook, found: FoundSpan, rng: np.random.Generator) -> FoundSpan:
    """One long-step stage; what was found before, if it made things worse (a target may clip far inputs)."""
    if not 0 < found.rank < oracle.dim:
        return found
    with oracle.stage("refinement", expected=len(found.points) * (oracle.dim + 2)):
        inside, steps = slopes_inside(seen.ground, found.basis, found.points, found.steps, rng)
        better = refine_basis(seen.ground, found.basis, inside, long_steps(seen.ground, steps, found.leak), rng)
        leak = float(leak_slopes(seen.ground, better, inside.points, inside.value, rng)[0].max()) / found.size
    return replace(found, basis=better, leak=leak) if leak <= found.leak else found


def _all_matter(oracle: Counting, seen: FirstLook, found: FoundSpan) -> bool:
    """Whether a long step along every direction of the basis changes the answers."""
    second_looks = 40  # points from which a direction is followed before it is taken for none
    open_ = np.arange(found.rank)
    with oracle.stage("verification"):
        for start in range(min(second_looks, len(found.points))):  # a direction does not matter everywhere
            which = (open_ + start) % len(found.points)
            sides = (-1.0) ** start * found.basis[open_]
            shown = slopes_along(seen.ground, sides, found.points[which], found.values[which])
            open_ = open_[shown <= found.limit * found.size]
            if not len(open_):
                return True
    return False


def _verified(
    oracle: Counting, seen: FirstLook, found: FoundSpan, rng: np.random.Generator
) -> tuple[Outcome, FoundSpan]:
    """Long steps from fresh points must change nothing, long steps along every direction must change something."""
    noise = 30.0  # deviations that a long step may show without a leak
    silent = found.rank > 0
    if found.rank < oracle.dim:
        slope, sd = _outside(oracle, seen, found, rng)
        allowed = np.maximum(found.limit * found.size, noise * sd)
        leak = max(found.leak, float(slope.max()) / found.size) if found.size else np.inf
        strength = float(np.median(allowed)) / found.size if found.size else np.inf  # bounds cut some steps short
        found = replace(found, leak=leak, limit=strength, margin=max(found.margin, strength / found.kept))
        silent = silent and bool((slope <= allowed).all())
    if found.margin > UNCLEAR_MARGIN and np.isfinite(found.margin):
        return Outcome.RANK_UNCLEAR, found
    if silent and found.rank < oracle.dim and found.angle > UNCLEAR_ANGLE:
        return Outcome.RANK_UNCLEAR, found
    if not (silent and np.isfinite(found.margin) and _all_matter(oracle, seen, found)):
        return Outcome.SPAN_PARTIAL, found
    return (Outcome.FULL_RANK if found.rank == oracle.dim else Outcome.SPAN_RECOVERED), found


def _outside(
    oracle: Counting, seen: FirstLook, found: FoundSpan, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """What long steps outside the span change from fresh inputs, as slopes, and the noise of those."""
    fresh = LONG_STEPS if seen.ground.domain.is_space else LONG_STEPS_IN_BOUNDS
    with oracle.stage("verification", expected=2 * fresh):
        starts = seen.ground.sample(fresh, rng)
        slope, _, sd = leak_slopes(seen.ground, found.basis, starts, oracle.query(starts), rng)
    return slope, sd

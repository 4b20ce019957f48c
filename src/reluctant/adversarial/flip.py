"""`flip_sign`: one gradient step that changes the sign of a network, or the class it chooses.

Theorem 1.1 of the paper on random ReLU networks: around an input such a network is so nearly linear that a single
step along its gradient flips its sign, of a size about 1/√d of the input's. A linear function flips at
|f| / ‖∇f‖; the ray is searched around that length for the first flip there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from reluctant.adversarial.line import RayFlip, first_flip
from reluctant.adversarial.margins import Margins
from reluctant.adversarial.result import Flip
from reluctant.adversarial.sources import Known, Queried, Source
from reluctant.domains import Domain
from reluctant.errors import BudgetExhausted, InvalidInput, InvalidRows, NonFiniteAnswer, OutsideDomain, TargetError
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Counting, Oracle, Rows
from reluctant.oracles.opening import as_opened
from reluctant.results import Outcome

__all__ = ["HasBasis", "checked_input", "flip_sign"]

DECIDED = 8.0  # times the noise: smaller margins say nothing about a side
LEAST_SLOPE = 4.0  # times the noise of a gradient: less is taken for none
ELSEWHERE = 8  # random inputs asked to tell a flat place from a constant target


class HasBasis(Protocol):
    """A subspace: anything with an orthonormal `basis` (k, d)."""

    @property
    def basis(self) -> FloatArray:
        """Orthonormal rows."""


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
            point of the boundary from where the last one met it.
        rng: seed of all random choices.

    Cost: d + 45 rows for one step by values, rank + 45 with a span, 2 with a network, none for a network.
    """
    if steps < 1:
        raise InvalidInput.about("steps", got=steps, expected="at least 1")
    if isinstance(target, ReLUNetwork):
        start = checked_input(x, target.dim, Domain())
        return _follow(Known.at(target, start, Domain()), start, steps)
    opened = as_opened(target)
    start, basis = checked_input(x, opened.dim, opened.facts.domain), _basis(span, opened.dim)
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
    after = opened.ledger.stages
    return replace(flip, rows={stage: rows - before.get(stage, Rows()) for stage, rows in after.items()})


def checked_input(x: ArrayLike, dim: int, domain: Domain) -> FloatArray:
    """One input (d,) inside the domain, or an error."""
    start = np.asarray(x, dtype=np.float64)
    if start.shape == (1, dim):
        start = start[0]
    if start.shape != (dim,) or not np.isfinite(start).all():
        raise InvalidRows.about("x", got=f"shape {start.shape}", expected=f"({dim},), finite")
    if not domain.contains(start[None]):
        raise OutsideDomain.about("x", got="an input outside", expected=f"one in the domain, {domain.describe()}")
    return start


def _basis(span: HasBasis | None, dim: int) -> FloatArray | None:
    if span is None:
        return None
    basis = np.asarray(span.basis, dtype=np.float64)
    if basis.ndim != 2 or basis.shape[1] != dim or not len(basis):
        raise InvalidInput.about("span", got=f"a basis of shape {basis.shape}", expected=f"(rank, {dim}), rank above 0")
    return basis


def _by_questions(
    oracle: Counting, start: FloatArray, basis: FloatArray | None, steps: int, rng: np.random.Generator
) -> Flip:
    source = Queried.at(oracle, start, basis, rng)
    if source.flat and _constant(oracle, source.values, rng):
        return Flip(Outcome.CONSTANT, start)
    return _follow(source, start, steps, source.values)


def _constant(oracle: Counting, values: FloatArray, rng: np.random.Generator) -> bool:
    with oracle.stage("probe"):
        return bool((oracle.query(oracle.facts.domain.sample(rng, ELSEWHERE, oracle.dim)) == values).all())


def _by_network(oracle: Counting, start: FloatArray, network: ReLUNetwork, steps: int) -> Flip:
    """The step as the network has it; the target is asked before and after it."""
    flip = _follow(Known.at(network, start, oracle.facts.domain), start, steps)
    if flip.x is None:
        return flip
    with oracle.stage("confirm"):
        before, after = oracle.query(np.array([start, flip.x]))
    margins = Margins.at(before)
    confirmed = _flipped(margins, start, before, RayFlip(flip.size, flip.x, after), flip.evidence)
    return confirmed if margins.smallest(after[None])[0] < 0 else replace(confirmed, outcome=Outcome.NOT_FLIPPED)


def _follow(source: Source, start: FloatArray, steps: int, values: FloatArray | None = None) -> Flip:
    """Gradient, ray, and again from where the boundary was met, as often as allowed; the nearest flip is kept."""
    values = source.ask(start[None])[0] if values is None else values
    margins, least = Margins.at(values), DECIDED * source.sd
    evidence: dict[str, Any] = {"noise": source.sd, "margin": float(margins.smallest(values[None])[0])}
    if evidence["margin"] <= least:
        return Flip(Outcome.ON_BOUNDARY, start, evidence=evidence)
    best, here = None, RayFlip(np.inf, start, values)
    for _ in range(steps):
        slopes = source.gradient(here.x)
        toward = margins.toward_boundary(here.values, slopes, start - here.x, LEAST_SLOPE * source.slope_noise)
        if toward is None:
            break
        evidence.setdefault("linear size", float(np.linalg.norm(toward.change)))
        found = first_flip(source.ask, margins, start, values, toward.change, source.domain, least)
        if found is None or found.length >= here.length:
            break
        best = here = found
    if best is not None:
        return _flipped(margins, start, values, best, evidence)
    return Flip(Outcome.NOT_FLIPPED if "linear size" in evidence else Outcome.FLAT, start, evidence=evidence)


def _flipped(
    margins: Margins, start: FloatArray, values: FloatArray, found: RayFlip, evidence: Mapping[str, Any]
) -> Flip:
    before, after = margins.smallest(np.array([values, found.values]))
    classes = margins.winner, int(np.argmax(found.values))
    return Flip(Outcome.FLIPPED, start, found.x, classes, (float(before), float(after)), evidence=evidence)

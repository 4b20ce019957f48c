"""A flip counts only where the target itself has changed side; and why nothing flipped, where answers tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reluctant.adversarial.line import RayPoint, walk
from reluctant.adversarial.margins import Margins
from reluctant.adversarial.probe import answer_noise
from reluctant.adversarial.search import DECIDED, Search
from reluctant.adversarial.sources import Queried
from reluctant.health.answers import answer_kind, in_unit
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Counting
from reluctant.oracles.base import Kind
from reluctant.results import Outcome

__all__ = ["asked_again", "explained", "on_target"]

AGAIN = 4  # rows at the flipped input
CLEAR = 3.0  # standard errors of their mean, beyond the boundary
FLAT = "The target does not change around this input, as probabilities do not that are rounded, or certain."
ON_A_COPY = "The step can be found on a network that was trained on them (rl.train_student, flip --network)."
COARSE = 4  # decimals: probabilities with no more are rounded, or certain
BEYOND = 10.0 ** np.arange(-7.0, 0.0)  # of the step: how much further the target's own digits may ask to go


def asked_again(source: Queried, search: Search) -> Search:
    """Ask the flipped input again: with fresh noise, the first answer beyond a limit may be a lucky one."""
    if search.best is None:
        return search
    margins = search.margins.smallest(source.ask(np.repeat(search.best.x[None], AGAIN, axis=0)))
    if margins.mean() + CLEAR * margins.std(ddof=1) / np.sqrt(AGAIN) < 0:
        return search
    return _failed(search, "Asked again, the flipped input was not clearly beyond: the answers are too noisy.")


def on_target(oracle: Counting, search: Search) -> Search:
    """Try a network's flip on the target, a little further along where its digits ask for it. Cost: 2 or 9 rows."""
    if search.best is None:
        return search
    start, found = search.start, search.best.x
    with oracle.stage("confirm"):
        before, after = oracle.query(np.array([start, found]))
        margins, least = Margins.at(before, oracle.facts.reference), DECIDED * answer_noise(np.array([before, after]))
        if margins.smallest(before[None])[0] <= least:
            return replace(search, outcome=Outcome.ON_BOUNDARY, best=None)
        points, answers = found[None], after[None]
        if not margins.smallest(answers)[0] < -least:
            points = walk(start, found - start, 1 + BEYOND, oracle.facts.domain)
            answers = oracle.query(points)
    flipped = np.flatnonzero(margins.smallest(answers) < -least)
    if not len(flipped):
        return _failed(search, "The network flips here and the target does not: they are not the same function.")
    first = int(flipped[0])
    return replace(search, values=before, margins=margins, best=RayPoint(points[first], answers[first], True))


def explained(search: Search, answers: FloatArray) -> Search:
    """Say what the answers look like, where that is why nothing flipped."""
    if search.outcome not in {Outcome.FLAT, Outcome.NOT_FLIPPED}:
        return search
    kind, single = answer_kind(answers), answers.shape[1] == 1
    if search.outcome is Outcome.FLAT and single and np.array_equal(answers, np.round(answers)):
        return replace(search, outcome=Outcome.PIECEWISE_CONSTANT)
    chances = single and in_unit(answers)
    if not chances and kind is not Kind.PROBABILITIES:
        return search
    if search.outcome is Outcome.FLAT:
        coarse = np.allclose(answers, np.round(answers, COARSE), rtol=0, atol=unit_roundoff(np.float32))
        return _because(search, f"{FLAT} {ON_A_COPY}") if coarse else search
    link = "sigmoid" if chances else "softmax"
    look = "lie between 0 and 1: if they are probabilities," if chances else "look like probabilities:"
    return _because(search, f"The answers {look} read them through their link, link='{link}' (--link {link}).")


def _because(search: Search, reason: str) -> Search:
    happened = f"{search.outcome.happened} {reason}" if search.outcome is Outcome.NOT_FLIPPED else reason
    return replace(search, evidence={**search.evidence, "reason": happened})


def _failed(search: Search, error: str) -> Search:
    outcome = Outcome.NOT_FLIPPED if search.best is not None else search.outcome
    return replace(search, outcome=outcome, best=None, evidence={**search.evidence, "error": error})

"""A flip counts only where the target itself has changed side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reluctant.adversarial.line import RayPoint, walk
from reluctant.adversarial.margins import SameLabel, Sides
from reluctant.adversarial.probe import answer_noise
from reluctant.adversarial.search import Search, in_words
from reluctant.adversarial.sources import DECIDED, Queried
from reluctant.adversarial.units import Copy
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.results import Outcome
from reluctant.verification.tolerances import EXACT_TOLERANCE

__all__ = ["asked_again", "on_target"]

AGAIN = 4  # rows at the flipped input
CLEAR = 3.0  # standard errors of their mean, beyond the boundary
SURELY = 5.0  # the same for the first of several inputs
BEYOND = np.append(10.0 ** np.arange(-7.0, 0.0), [0.3, 1.0])  # of the step: how much further the target may ask to go
TOO_NOISY = "Asked again, the flipped input was not clearly beyond: the answers are too noisy."
ON_THE_NETWORK = "The step was found on the network, and does not flip the target."
ANOTHER = "The network flips here and the target does not: they are not the same function."
OPPOSED = "At this input the network is on another side than the target: they are not the same function."


def asked_again(source: Queried, search: Search) -> Search:
    """Ask the flipped input again: with fresh noise, the first answer beyond a limit may be a lucky one."""
    if search.best is None:
        return search
    margins = search.margins.smallest(source.ask(np.repeat(search.best.x[None], AGAIN, axis=0)))
    fresh = margins.std(ddof=1)
    sd = max(fresh, source.sd) if fresh > 0 else 0.0  # so few answers may agree by chance
    if margins.mean() + CLEAR * sd / np.sqrt(AGAIN) < 0:
        return search
    return search.because(TOO_NOISY, Outcome.TOO_NOISY)


def on_target(oracle: Counting, copy: Copy, search: Search, steps: int) -> Search:
    """Try a network's flip on the target, further along where the target asks for it.

    Cost: 2 or 11 rows; where the network does not explain the first answer, one more, which tells noise: then 43.
    """
    if search.best is None:
        return _of_the_network(copy, search, steps)
    start, found = search.start, search.best.x
    with oracle.stage("confirm"):
        before, after = oracle.query(np.array([start, found]))
        sides = copy.sides(before, after)
        labels = isinstance(sides, SameLabel)  # whole numbers, however few bits hold them
        least = 0.0 if labels else DECIDED * answer_noise(np.array([before, after]))
        if sides.smallest(before[None])[0] <= least:
            return replace(search, outcome=Outcome.ON_BOUNDARY, best=None)
        points, answers = found[None], after[None]
        farther = np.concatenate([points, walk(start, found - start, 1 + BEYOND, oracle.facts.domain)])
        if not _explains(search.values, before) and np.abs(after - oracle.query(found[None])[0]).max() > least:
            return _among_noise(oracle, search, sides, farther, before)
        if not sides.smallest(answers)[0] < -least:
            points, answers = farther, np.concatenate([answers, oracle.query(farther[1:])])
    flipped = np.flatnonzero(sides.smallest(answers) < -least)
    if not len(flipped):
        return _unconfirmed(copy, search, sides, answers)
    first = int(flipped[0])
    return replace(search, values=before, margins=sides, best=RayPoint(points[first], answers[first], True))


def _explains(values: FloatArray, answer: FloatArray) -> bool:
    """True if a network gives half the digits of an answer, or more: no noise that matters is on it."""
    return values.shape == answer.shape and bool(
        np.abs(values - answer).max() <= EXACT_TOLERANCE * np.abs(answer).max()
    )


def _among_noise(oracle: Counting, search: Search, sides: Sides, points: FloatArray, before: FloatArray) -> Search:
    """The first of these inputs that is beyond by more than its noise, as several answers to each tell it."""
    answers = np.array([oracle.query(points) for _ in range(AGAIN)])
    margins = np.array([sides.smallest(each) for each in answers])
    sd = float(np.sqrt(margins.var(axis=0, ddof=1).mean()))
    beyond = np.flatnonzero(margins.mean(axis=0) < -SURELY * sd / np.sqrt(AGAIN))
    if not len(beyond):
        return search.because(TOO_NOISY, Outcome.TOO_NOISY)
    first = int(beyond[0])
    flipped = RayPoint(points[first], answers[:, first].mean(axis=0), True)
    return replace(search, values=before, margins=sides, best=flipped)


def _of_the_network(copy: Copy, search: Search, steps: int) -> Search:
    """What `follow` says of a source is said of the network here."""
    happened, advice = in_words(search.outcome, steps)
    hint = copy.own_hint(search.values[None])
    return search.because(f"{happened.replace('target', 'network')} The target was not asked. {hint or advice}")


def _unconfirmed(copy: Copy, search: Search, sides: Sides, answers: FloatArray) -> Search:
    hint = copy.own_hint(search.values[None]) if copy.facts.saturates else copy.hint(answers)
    error = ANOTHER if copy.agrees(search.margins, sides) else OPPOSED
    failed = replace(search, evidence={**search.evidence, "error": error})
    return failed.because(f"{ON_THE_NETWORK} {hint}".strip(), Outcome.NOT_FLIPPED)

"""A flip counts only where the target itself has changed side, by more than rounding and noise make."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reluctant.adversarial.asked import Asked
from reluctant.adversarial.probe import AGAIN
from reluctant.adversarial.search import Search, in_words
from reluctant.adversarial.sources import Queried
from reluctant.adversarial.units import Copy
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.results import Outcome
from reluctant.verification.tolerances import EXACT_TOLERANCE

__all__ = ["asked_again", "on_target"]

CLEAR = 3.0  # standard errors of the mean of several answers, beyond the boundary
SURELY = 5.0  # the same for the first of several inputs
TOO_NOISY = "Asked again, the flipped input was not clearly beyond: the answers are too noisy."
ON_THE_NETWORK = "The step was found on the network, and does not flip the target."
ANOTHER = "The network flips here and the target does not: they are not the same function."
OPPOSED = "At this input the network is on another side than the target: they are not the same function."


def asked_again(source: Queried, search: Search) -> Search:
    """Ask the flipped input again, alone and several times together.

    With fresh noise the first answer beyond a limit may be a lucky one; rounding may be another in another batch.
    """
    if search.best is None:
        return search
    rows = np.repeat(search.best.x[None], AGAIN, axis=0)
    margins = search.margins.smallest(np.concatenate([source.ask(rows[:1]), source.ask(rows[1:])]))
    fresh = margins.std(ddof=1)
    sd = max(fresh, source.sd) if fresh > 0 else 0.0  # so few answers may agree by chance
    if margins.mean() + CLEAR * sd / np.sqrt(AGAIN) < 0:
        return search
    return search.because(TOO_NOISY, Outcome.TOO_NOISY)


def on_target(oracle: Counting, copy: Copy, search: Search, steps: int) -> Search:
    """Try a network's flip on the target, further along where the target asks for it.

    Cost: 2 or 11 rows; where the network does not explain the first answer one more, which tells noise: then 39. Of
    labels 3, 4 or 12, and 48 at most if they are noisy. One more where 0 and 1 may be rounded values.
    """
    if search.best is None:
        return _of_the_network(copy, search, steps)
    with oracle.stage("confirm"):
        asked = Asked.at(oracle, copy, search, search.best.x)
        if not asked.decided(search.start):
            return replace(search, outcome=Outcome.ON_BOUNDARY, best=None)
        if asked.labels:
            return _of_labels(asked, copy, search)
        if not _explains(search.values, asked.before) and not asked.stays(0):
            return _among_noise(asked, search)
        asked = asked if asked.flipped[0] else asked.farther()
    return _first_of(asked, copy, search)


def _of_labels(asked: Asked, copy: Copy, search: Search) -> Search:
    """A label tells nothing of how near the boundary is: it has to stay beyond the rounding, and where asked alone."""
    asked = asked.farther(1)
    first, second = asked.flipped
    if second and (first or asked.stays(1)):
        return asked.confirmed(search, asked.points[1], asked.answers[1])
    if not (first or second):
        asked = asked.farther()
        if asked.flipped.any() and asked.stays(int(asked.flipped.argmax())):
            return _first_of(asked, copy, search)
    return _among_noise(asked, search) if asked.flipped.any() else _unconfirmed(copy, search, asked)


def _first_of(asked: Asked, copy: Copy, search: Search) -> Search:
    if not asked.flipped.any():
        return _unconfirmed(copy, search, asked)
    first = int(asked.flipped.argmax())
    return asked.confirmed(search, asked.points[first], asked.answers[first])


def _explains(values: FloatArray, answer: FloatArray) -> bool:
    """True if a network gives half the digits of an answer, or more: no noise that matters is on it."""
    return values.shape == answer.shape and bool(
        np.abs(values - answer).max() <= EXACT_TOLERANCE * np.abs(answer).max()
    )


def _among_noise(asked: Asked, search: Search) -> Search:
    """The first input that is beyond by more than its noise, as several answers tell it, together and one by one."""
    points, ask = asked.beyond_found, asked.oracle.query
    answers = np.array([*(ask(points) for _ in range(AGAIN - 1)), np.concatenate([ask(x[None]) for x in points])])
    margins = np.array([asked.sides.smallest(each) for each in answers])
    sd = float(np.sqrt(margins.var(axis=0, ddof=1).mean()))
    limits = asked.limit.at(points, answers.mean(axis=0))
    clear = np.flatnonzero(margins.mean(axis=0) < -np.maximum(SURELY * sd / np.sqrt(AGAIN), limits))
    if not len(clear):
        return search.because(TOO_NOISY, Outcome.TOO_NOISY)
    first = int(clear[0])
    of_it = answers[:, first]
    return asked.confirmed(search, points[first], of_it[-1] if asked.labels else of_it.mean(axis=0))


def _of_the_network(copy: Copy, search: Search, steps: int) -> Search:
    """What `follow` says of a source is said of the network here."""
    happened, advice = in_words(search.outcome, steps, "network")
    hint = copy.own_hint(search.values[None])
    return search.because(f"{happened} The target was not asked. {hint or advice}")


def _unconfirmed(copy: Copy, search: Search, asked: Asked) -> Search:
    hint = copy.own_hint(search.values[None]) if copy.facts.saturates else copy.hint(asked.answers)
    error = ANOTHER if copy.agrees(search.margins, asked.sides) else OPPOSED
    failed = replace(search, evidence={**search.evidence, "error": error})
    return failed.because(f"{ON_THE_NETWORK} {hint}".strip(), Outcome.NOT_FLIPPED)

"""`learn`: any one-hidden-layer network, to a given accuracy; general position is not assumed.

Random points are asked first, then the exact method gets one attempt. Where its network is not verified or does not
explain the points, lines are laid through what is not explained, the hyperplanes of their creases are followed, and
the output weights are fitted anew.
"""

from __future__ import annotations

import numpy as np

from reluctant.errors import BudgetExhausted, InvalidInput, TargetError
from reluctant.learning.limit import EnoughAsked
from reluctant.learning.running import Run
from reluctant.learning.unseen import points_to_see
from reluctant.numerics import Rng, as_generator
from reluctant.oracles import Oracle
from reluctant.oracles.opening import as_opened
from reluctant.results import Outcome, Result

__all__ = ["EPS", "NARROWEST", "learn"]

EPS, NARROWEST = 1e-6, 0.01
MOST_NUMBERS = 2**27  # of all random points together: a gigabyte


def learn(oracle: Oracle, *, eps: float = EPS, rng: Rng = 0, narrowest: float = NARROWEST) -> Result:
    """Learn a one-hidden-layer network, whatever its neurons, to relative square error `eps` under the Gaussian.

    Arguments:
        oracle: the target, in all of space.
        eps: mean square error allowed for standard Gaussian inputs, over the variance of each output.
        rng: seed of all random choices.
        narrowest: width of a bump, up to distance 1 from the origin, that must not be missed; one at distance 3 must
            be 55 times as wide. Cost grows like 1/narrowest.

    The outcome is `recovered` if the network also passes verification, `learned` if its error is at most eps, and
    `not-accurate-enough`, with the best network, if it is not. Evidence holds the accuracy with a confidence interval
    and the remaining risk.

    Cost: exact extraction and 29 / narrowest rows; where that is not enough, as many again or more and 20 d to 90 d
    rows a neuron, of answers with four decimals up to 250 d. By lines no more is asked than `limit.most_rows` says.
    """
    if not 0 < eps < 1:
        raise InvalidInput.about("eps", got=eps, expected="a number between 0 and 1")
    if not 0 < narrowest <= 1:
        raise InvalidInput.about("narrowest", got=narrowest, expected="a width above 0, at most 1")
    opened = as_opened(oracle)
    if not opened.facts.domain.is_space:
        raise InvalidInput.about(
            "domain", got=opened.facts.domain.describe(), expected="all of space, where Gaussian inputs are",
            fix="Inside a domain use extract (reluctant extract TARGET --domain LOW,HIGH); leave the domain out if the "
            "target answers everywhere.",
        )  # fmt: skip
    opened.begin("learn", rng)
    points = points_to_see(narrowest)
    if points * opened.dim > MOST_NUMBERS:
        raise InvalidInput.about(
            "narrowest", got=narrowest, expected=f"a width whose {points} points of {opened.dim} inputs fit in memory",
            fix=f"Give a width of at least {narrowest * points * opened.dim / MOST_NUMBERS:.1g}.",
        )  # fmt: skip
    run = Run(opened, eps, points, as_generator(rng))
    try:
        return run.result(run.go())
    except EnoughAsked as error:
        return run.result(Outcome.NOT_ACCURATE, limits=str(error))
    except BudgetExhausted as error:
        return run.result(Outcome.OUT_OF_BUDGET, error=str(error))
    except TargetError as error:
        return run.ended_by(error)
    except np.linalg.LinAlgError as error:  # numbers no factorisation copes with
        return run.result(Outcome.NOT_ACCURATE, error=str(error))

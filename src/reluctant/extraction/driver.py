"""`extract`: check the target, run the method, verify what it found; hard luck gets another attempt."""

from __future__ import annotations

from reluctant.errors import BudgetExhausted, InvalidInput, TargetError
from reluctant.extraction.attempts import NEEDS_SPACE, Run
from reluctant.extraction.candidate import Method
from reluctant.numerics import Rng, as_generator
from reluctant.oracles import Counting, Oracle
from reluctant.oracles.opening import as_opened
from reluctant.results import Outcome, Result, ended_by

__all__ = ["Method", "extract"]

ATTEMPTS = 4


def extract(oracle: Oracle, method: Method | None = None, *, rng: Rng = 0, attempts: int = ATTEMPTS) -> Result:
    """Recover the network behind an oracle exactly, or say by which outcome it was not recovered.

    Arguments:
        oracle: the target.
        method: how to look for it; None takes the cheapest that verifies: two layers, three, any number.
        rng: seed of all random choices.
        attempts: how often it may be tried, with other random choices or the next method.

    Cost: about as many answers as the network has parameters, verification included; a row brings one answer for
    each output.
    """
    _check_call(method, attempts)
    opened = as_opened(oracle)
    _check_domain(opened, method)
    opened.begin("extract", rng)
    run = Run(opened, method, as_generator(rng))
    try:
        return run.result(*run.go(attempts))
    except BudgetExhausted as error:
        return run.result(Outcome.OUT_OF_BUDGET, run.partial, error=str(error))
    except TargetError as error:
        return run.result(ended_by(error, opened), run.partial, error=str(error))


def _check_call(method: Method | None, attempts: int) -> None:
    if attempts < 1:
        raise InvalidInput.about("attempts", got=attempts, expected="at least 1")
    if method is not None and (isinstance(method, type) or not hasattr(method, "run")):
        raise InvalidInput.about("method", got=repr(method), expected="a method object", fix="Pass rl.DepthTwo().")


def _check_domain(oracle: Counting, method: Method | None) -> None:
    if isinstance(method, NEEDS_SPACE) and not oracle.facts.domain.is_space:
        raise InvalidInput.about(
            "domain", got=oracle.facts.domain.describe(), expected=f"all of space for {type(method).__name__}",
            fix="Use rl.DepthTwo(), which stays inside, or leave the domain out if the target answers everywhere.",
        )  # fmt: skip

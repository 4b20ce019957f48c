"""A network that was recovered inside a box, looked at beyond it: at typical inputs, and inside wider boxes.

A wider box shows more creases, and probabilities next to its corners have fewer digits: it is taken only where the
network of the first one does not hold at typical inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import InvalidRows, NonFiniteAnswer, OutsideDomain
from reluctant.extraction.depth_two import DepthTwo
from reluctant.extraction.failures import StageFailed
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting
from reluctant.oracles.guard import Guard, guarded
from reluctant.results import Outcome
from reluctant.verification.at_use import look_at_use

if TYPE_CHECKING:
    from reluctant.extraction.attempts import Run

__all__ = ["beyond_the_box"]

WIDER = (2.0, 4.0)  # times the box whose network does not hold at typical inputs
AS_MUCH = 2.0  # times what was asked before: few digits next to the corners can make a search endless


def beyond_the_box(run: Run, space: Counting, box: Domain, network: ReLUNetwork) -> tuple[Outcome, ReLUNetwork]:
    """Recovered if it holds at typical inputs, or one from a wider box does; else the first one, unverified.

    One that is in doubt inside its box stays so, and is held against typical inputs as well.
    """
    doubted = run.doubt() is not None
    holds = _holds(run, space, box, network)
    if doubted or holds:
        return (Outcome.UNVERIFIED if doubted else Outcome.RECOVERED), network
    failures = [*run.evidence["failures"], f"verification: {run.evidence['verification']}"]
    first, run.found, better = run.evidence | {"failures": failures}, network, None
    try:
        better = _from_wider_boxes(run, space, box)
    finally:
        run.evidence = first if better is None else run.evidence  # also where the budget ends inside a wider box
    return (Outcome.UNVERIFIED, network) if better is None else (Outcome.RECOVERED, better)


def _from_wider_boxes(run: Run, space: Counting, box: Domain) -> ReLUNetwork | None:
    """One attempt inside each; None if none gives a network that holds at typical inputs."""
    within = guarded(space, _at_most(AS_MUCH * space.ledger.total.asked))
    for times in WIDER:
        wider = Domain(times * np.asarray(box.low), times * np.asarray(box.high))
        try:
            run.enter(within, wider)
            found = run.attempt(run.method or DepthTwo(), run.evidence["health"], run.rng)
            if run.doubt() is None and _holds(run, within, wider, found):
                return found
        except OutsideDomain:
            raise
        except (StageFailed, NonFiniteAnswer, InvalidRows, np.linalg.LinAlgError):
            return None
    return None


def _holds(run: Run, space: Counting, box: Domain, network: ReLUNetwork) -> bool:
    """True if it was verified inside its box, and typical inputs do not speak against it.

    One that was not is held against them too: by what it was seen to err by inside.
    """
    checked = run.evidence["verification"]
    tol = checked.tol if checked.ok else checked.bound
    run.evidence["verification"] = checked.beside(look_at_use(space, network, box, tol, run.rng))
    return bool(run.evidence["verification"].ok)


def _at_most(limit: float) -> Guard:
    """Refuse rows beyond so many."""

    @contextmanager
    def guard(passed: int, asked: int) -> Iterator[None]:
        if passed + asked > limit:
            raise StageFailed("wider box", "many more rows than all before", number=passed + asked, limit=limit)
        yield

    return guard

"""Extraction inside a box, behind a link that saturates: where probabilities keep their digits.

The box shrinks until no probability in it saturates, and grows where it shows too little. A network found inside is
compared at typical inputs outside too; where it fails, one from a wider box may hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import (
    InvalidRows,
    InvalidWeights,
    NonFiniteAnswer,
    OutsideDomain,
)
from reluctant.extraction.any_depth import DeepInBox
from reluctant.extraction.attempts import Ending, Place, Search
from reluctant.extraction.candidate_check import CheckedNetwork
from reluctant.extraction.depth_two import DepthTwo
from reluctant.extraction.method import (
    Method,
    Shows,
    StageFailed,
)
from reluctant.extraction.rounded_probabilities import RoundedProbabilities
from reluctant.interface.health import examine as examine_health
from reluctant.interface.noise import refuse_labels
from reluctant.interface.reach import (
    is_rounded_inside,
    larger,
    readable_box,
    smaller,
    unsaturated_box,
)
from reluctant.messages import Diagnosis
from reluctant.messages.catalogue import SPAN_FROM_LABELS_WITHOUT_LINK, TRAIN_WITHOUT_LINK
from reluctant.oracles import Counting
from reluctant.oracles.ledger import Limit
from reluctant.results import Outcome

POINTS_ELSEWHERE = 1024  # behind a link, of a network that another one made way for: rare errors show there
# To probabilities in float32, after lines of their values: a wider layer seldom ends in a wrong place.
SINGLE_FIT = RoundedProbabilities(widths=(12, 40), starts=2, steps=150, patience=4, farthest=1.0, most_parameters=1400)
WIDER_BOX_ROWS = 2.0  # times what was asked before: few digits next to the corners can make a search endless
IN_STEPS = Diagnosis("link-in-steps", remedies=(TRAIN_WITHOUT_LINK, SPAN_FROM_LABELS_WITHOUT_LINK))


def search_boxes(search: Search, space: Place, attempts: int) -> Ending:
    """Inside a box that the target's answers choose; where no line of values is read there, a fit to probabilities."""
    out_of_reach = space.health.exact_refusal is Outcome.OUT_OF_REACH
    box = (unsaturated_box if out_of_reach else readable_box)(space.oracle, search.rng)
    if search.method is not None or not space.may_be_fitted:
        return _go_inside(search, space, box, attempts)
    ending = _go_inside(search, space, box, 1)  # lines of values once: a fit to probabilities takes fewer rows
    if ending[0] is not Outcome.LOW_PRECISION:
        return ending
    if search.shows is not Shows.BENT_CREASES:  # there a fit of one hidden layer would be vain
        fitted, attempts = _fitted(search, space), attempts - 1
        if fitted is not None or attempts == 0:
            return fitted or ending
    with _earlier_failures(search):
        return _go_inside(search, space, box, attempts)


@contextmanager
def _earlier_failures(search: Search) -> Iterator[None]:
    """Failures of before stay in the findings."""
    before = search.found.failures or []
    try:
        yield
    finally:
        search.found.failures = [*before, *(search.found.failures or [])]


def _fitted(search: Search, space: Place) -> Ending | None:
    """A network fitted to probabilities in float32, where no line of values was read; None if none verifies."""
    search.method = SINGLE_FIT
    try:
        with _earlier_failures(search):
            outcome, network = search.try_methods(space, 1, few_digits=True)
    finally:
        search.method = None
    if outcome is not Outcome.RECOVERED:
        return None
    search.found.inside = None
    return outcome, network


def _go_inside(search: Search, space: Place, box: Domain | None, attempts: int) -> Ending:
    """Inside a box in which no probability saturates; a smaller one where some do, a larger one that shows more."""
    most_boxes = 3  # each smaller than the one before, until no probability saturates
    health = space.health
    for boxes_left in reversed(range(most_boxes)):
        if box is None:
            break
        place = _inside(search, space.oracle, box)
        search.found.enter(place.health, place.own_box)
        health = place.health
        try:
            outcome, network = _look_inside(search, place, attempts)
        except NonFiniteAnswer:
            if not boxes_left:
                raise
            box = smaller(box)
            continue
        if health.shows_too_little(outcome) and not search.found.failures:
            search.found.reason = None
            box = larger(box)
            continue
        checked = search.found.network
        if network is None or checked is None or outcome not in (Outcome.RECOVERED, Outcome.UNVERIFIED):
            return outcome, network
        return _beyond_the_box(search, space.oracle, box, checked)
    refuse_labels(space.oracle)
    unreadable = health.in_few_bits and unsaturated_box(space.oracle, search.rng) is not None
    return (Outcome.LOW_PRECISION if unreadable else Outcome.OUT_OF_REACH), None


def _look_inside(search: Search, place: Place, attempts: int) -> Ending:
    """Refuse, or try what the digits allow; those of values behind a link may be fewer than lines show."""
    if not is_rounded_inside(place.oracle, search.rng):
        return search.go_on(place, attempts)
    search.found.reason = search.found.reason if place.health.in_few_bits else IN_STEPS
    return Outcome.LOW_PRECISION, None


def _inside(search: Search, space: Counting, box: Domain) -> Place:
    """The target asked inside a box alone."""
    oracle = Counting(space.inner, space.ledger, box)
    return Place(oracle, examine_health(oracle, search.rng), box)


def _beyond_the_box(search: Search, space: Counting, box: Domain, found: CheckedNetwork) -> Ending:
    """Recovered if it holds at typical inputs, or one from a wider box does; else the first one, unverified.

    One that is in doubt inside its box stays so, and is held against typical inputs as well.
    """
    doubted, failures = found.doubt is not None, search.found.failures
    found = search.found.network = search.at_use(space, box, found)
    if doubted or found.verification.ok:
        return (Outcome.UNVERIFIED if doubted else Outcome.RECOVERED), found.network
    search.found.fail(f"verification: {found.verification}")
    if found.precision is not None and found.network.depth > 2:  # exact methods of several layers lack the digits
        return Outcome.UNVERIFIED, found.network
    better = _from_wider_boxes(search, space, box, DepthTwo() if found.network.depth == 2 else DeepInBox())
    if better is None:
        return Outcome.UNVERIFIED, found.network
    place, found = better
    search.found.enter(place.health, place.own_box)
    search.found.failures, search.found.network = failures, found
    return Outcome.RECOVERED, found.network


def _from_wider_boxes(
    search: Search, space: Counting, box: Domain, method: Method
) -> tuple[Place, CheckedNetwork] | None:
    """Attempts inside each, with this method; None if none gives a network that holds at typical inputs."""
    several = isinstance(method, DeepInBox)  # layers, whose search is oftener stuck
    wider_boxes = (2.0, 2.0, 4.0) if several else (2.0, 4.0)  # times the box whose network fails at typical inputs

    def refusal(wanted: int, most: float) -> StageFailed:
        return StageFailed("wider box", "many more rows than all before", number=wanted, limit=most)

    within = Limit(WIDER_BOX_ROWS * space.ledger.total.asked, refusal=refusal).of(space)
    for times in wider_boxes:
        wider = Domain(times * np.asarray(box.low), times * np.asarray(box.high))
        try:
            place = _inside(search, within, wider)
            found = search.attempt(place, search.method or method, search.rng)
            if found.doubt is not None:
                continue
            found = search.at_use(within, wider, found, POINTS_ELSEWHERE)
        except OutsideDomain:
            raise
        except StageFailed:
            continue
        except (NonFiniteAnswer, InvalidRows, InvalidWeights):
            return None
        if found.verification.ok:
            return place, found
    return None

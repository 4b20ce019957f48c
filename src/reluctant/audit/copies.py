"""Criteria for a copy: its error, how close is close enough, and which run settles the question.

One rule serves the verdict and the rows of the defense sweep.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from reluctant.audit.facts import CLOSE, Bounds, Closeness, CopyError, CopyMethod, ErrorKind, finite, is_close
from reluctant.evidence import Measured
from reluctant.interface.diagnoses import NOISIEST_READ
from reluctant.learning.student import DIFFERING
from reluctant.learning.student_losses import HeldOutError, labels_allowed
from reluctant.results import Ended, Outcome, Result

TELLING = 0.5  # of what a constant gets wrong: the labels other than the commonest, or the deviation of values


def copy_error(run: Result) -> CopyError:
    """How far off a run's network is, and what that is known by.

    Errors are those of its verification, which have the noise of the answers in them.
    """
    measured = Measured.of(run)
    labels = measured.label_check
    if labels is not None and labels.ok:
        return CopyError(ErrorKind.BOUNDARY, finite(labels.boundary_error), None, labels.points)
    verification, precision = measured.value_check, measured.precision
    largest, rms = (None, None) if verification is None else (verification.max_error, verification.rms_error)
    found = CopyError(
        ErrorKind.UNVERIFIED, finite(largest), finite(rms), None if verification is None else verification.points,
        None if precision is None else finite(precision.error), inside=Bounds.of_box(measured.inside),
    )  # fmt: skip
    if precision is not None and run.ok:
        return replace(found, kind=ErrorKind.EVERY_DIGIT)
    if run.outcome is Outcome.RECOVERED and largest is not None:
        digits = int(-np.log10(max(largest, np.finfo(np.float64).eps)))
        return replace(found, kind=ErrorKind.DIGITS, digits=digits)
    if measured.held_out is not None:
        held = measured.held_out
        typical = None if held.of_copy is None else finite(np.sqrt(held.of_copy))
        labelled = held.of_copy is None or held.tells_labels
        return replace(
            found, kind=ErrorKind.HELD_OUT, typical=typical, inputs=held.points, is_bound=held.is_bound,
            agreement=held.agreement if labelled else None, commonest=held.commonest if labelled else None,
        )  # fmt: skip
    if measured.accuracy is not None:
        return replace(found, kind=ErrorKind.RMS, typical=finite(np.sqrt(measured.accuracy.error)))
    return found


def method_of(run: Result) -> CopyMethod:
    """How a network was found."""
    measured = Measured.of(run)
    if measured.training is not None:
        return CopyMethod.TRAINING
    if measured.to_accuracy:
        return CopyMethod.LEARNING
    if measured.label_check is not None:
        return CopyMethod.LABELS
    return CopyMethod.FEW_DIGITS if measured.precision is not None else CopyMethod.EXACT


def is_trained(run: Ended) -> bool:
    """True of a network that was trained on the answers: its parameters are its own, and none of the target's."""
    return Measured.of(run).training is not None


def best_copy(runs: Iterable[Result | None]) -> Result | None:
    """The run that gave the best copy: verified, as accurate as asked for, or measured to be close."""
    copies = [run for run in runs if run is not None and run.network is not None and is_copy(run)]

    def badness(run: Result) -> tuple[bool, bool, float]:
        typical = copy_error(run).typical
        return not run.ok, run.outcome is not Outcome.RECOVERED, np.inf if typical is None else typical

    return min(copies, key=badness, default=None)


def is_copy(run: Result) -> bool:
    """True if its network is as good as a copy; a trained one by the upper end of its error, which its outcome has."""
    measured = Measured.of(run)
    checked = measured.value_check
    holds_at_use = checked is None or checked.at_use is None or bool(checked.at_use.ok)
    return run.ok or (holds_at_use and measured.held_out is None and is_close(copy_error(run).typical))


def closeness(measured: HeldOutError) -> Closeness | None:
    """The limit for a trained network: on its own error where answers have a size, else on its labels."""
    error, high = (measured.error, measured.high) if measured.own is None else (measured.own.error, measured.own.high)
    if error is not None and high is not None:
        seen, most, alone = math.sqrt(error), math.sqrt(high), None
        allowed, labels = CLOSE, False
    else:
        seen, most, labels = 1 - measured.agreement, measured.differing, True
        allowed = labels_allowed(measured.commonest, DIFFERING)
        alone = measured.commonest if allowed < DIFFERING else None
    return Closeness(seen, most, allowed, labels, seen <= allowed < most, alone)


def is_near(run: Ended) -> bool:
    """True if only chance keeps a trained network from being called a copy: another run may settle it."""
    measured = Measured.of(run).held_out
    found = None if measured is None or run.outcome is not Outcome.NOT_ACCURATE else closeness(measured)
    return found is not None and found.open


def gives_labels(measured: HeldOutError) -> bool:
    """True if a network surely gives many more labels than one label alone. One number has no label."""
    alone = measured.commonest
    return bool(measured.labelled and alone < 1 and 1 - measured.differing - alone >= TELLING * (1 - alone))


def falls_short(run: Ended) -> bool:
    """True if a trained network is no copy but gives most of what there is to give.

    That is at least half of the labels that one label alone gets wrong, or errors of at most half the deviation of
    values. A larger network or more answers may then make a copy: nobody can say that the target is safe from it.
    """
    measured = Measured.of(run).held_out
    if measured is None or run.outcome is not Outcome.NOT_ACCURATE:
        return False
    judged = measured.judged
    return gives_labels(measured) or (judged is not None and math.sqrt(judged) <= TELLING)


def settles(run: Ended) -> bool:
    """True if it came to its end here: it found what it looks for, or the answers give it nothing to find that in.

    False where it was cut short, went part of the way, or could not see: more rows, time or digits may find more. Nor
    does one settle anything that chance may have kept from its end, where another seed may reach it. A trained network
    that falls short of a copy has gone part of the way.
    """
    # Noise hides all inside the box that a link leaves: there far less of it is refused, with any seed.
    far_too_noisy = run.outcome is Outcome.TOO_NOISY and Measured.of(run).inside is not None
    by_chance = is_unlucky(run) or is_narrow(run)
    return (run.outcome.settles or far_too_noisy) and not (by_chance or is_near(run) or falls_short(run))


def is_narrow(run: Ended) -> bool:
    """True if noise inside a box was little more than lines are read with: another box, or seed, may have less."""
    narrowly = 10.0  # times the noise that lines are read with
    measured = Measured.of(run)
    health = measured.health
    if run.outcome is not Outcome.LOW_PRECISION or measured.inside is None or health is None or not health.spread > 0:
        return False
    return health.noise.at(health.spread) <= narrowly * NOISIEST_READ * health.spread


def is_unlucky(run: Ended) -> bool:
    """True if the method for few digits was tried and did not succeed: with another seed it may."""
    return run.outcome is Outcome.LOW_PRECISION and bool(Measured.of(run).failures)

"""What was recovered: shape, error in words and numbers, what it cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from reluctant.audit.closeness import is_close
from reluctant.audit.copy_facts import CopyMethod
from reluctant.estimation.cost import PER_PRICE
from reluctant.learning.student.student_error import HeldOutError
from reluctant.networks import ReLUNetwork
from reluctant.networks.network import Link
from reluctant.percentages import percentage
from reluctant.results import Outcome, Result

__all__ = ["Price", "accuracy_of", "best_copy", "cost", "is_trained", "method_of", "recovered", "shape_of"]

Price = dict[str, Any]  # "per thousand" queries, and the "currency"


def accuracy_of(run: Result) -> dict[str, Any]:
    """Errors of a run's network relative to the output's deviation: the largest seen, at how many inputs, the typical
    one (rms), in words. They are those of its verification, which have the noise of the answers in them; own: what is
    the network's own is at most that, where it is told apart. inside: where that deviation was taken, if not at inputs
    of size 1.
    """
    verification, precision = run.evidence.get("verification"), run.evidence.get("precision")
    accuracy = run.evidence.get("accuracy")
    largest, rms = (None, None) if verification is None else (verification.max_error, verification.rms_error)
    found = {"largest": largest, "typical": rms, "inputs": None if verification is None else verification.points}
    found |= {"own": None if precision is None else precision.error, "inside": run.evidence.get("inside")}
    if precision is not None and run.ok:
        return found | {"words": f"in every digit that its answers give{_seen(found)}"}
    if run.outcome is Outcome.RECOVERED and largest is not None:
        return found | {"words": f"to {_digits(largest)} digits{_seen(found)}"}
    if isinstance(accuracy, HeldOutError):
        return found | _of_a_student(accuracy)
    if accuracy is not None:
        typical = float(np.sqrt(accuracy.error))
        words = f"to an error of {typical:.1e} of the output's deviation, root mean square"
        return found | {"typical": typical, "words": words}
    return found | {"words": f"by a network that was not verified{_seen(found)}"}


def _of_a_student(measured: HeldOutError) -> dict[str, Any]:
    """Of a network trained on the answers: its error where they have a size, and how often its label is theirs."""
    inputs = f"{measured.points:,} inputs that it was not trained on"
    alone = f"(the commonest label alone: {percentage(measured.commonest)})"
    same = f"the same label for {percentage(measured.agreement)} of {inputs} {alone}"
    if measured.of_copy is None:
        return {"typical": None, "inputs": measured.points, "words": f"with {same}"}
    typical = float(np.sqrt(measured.of_copy))
    below = "below " if measured.is_bound else ""
    told = f"and {same}" if measured.tells_labels else f"at {inputs}"
    words = f"to an error of {below}{typical:.1e} of the answers' deviation, root mean square, {told}"
    return {"typical": typical, "inputs": measured.points, "words": words}


def _seen(found: dict[str, Any]) -> str:
    """The one figure for how far off a copy is: no bound, but what was met."""
    if found["largest"] is None:
        return ""
    inside = f" in {found['inside']}" if found["inside"] else ""
    seen = f"largest error seen {found['largest']:.1e} of the output's deviation{inside}"
    return f" ({seen}, at {found['inputs']:,} inputs)"


def _digits(error: float) -> int:
    return int(-np.log10(max(error, np.finfo(np.float64).eps)))


def best_copy(runs: Iterable[Result | None]) -> Result | None:
    """The run that gave the best copy: verified, as accurate as asked for, or measured to be close."""
    copies = [run for run in runs if run is not None and run.network is not None and is_copy(run)]
    return min(copies, key=_badness, default=None)


def is_copy(run: Result) -> bool:
    """True if its network is as good as a copy; a student says so itself, by the upper end of its error."""
    student = isinstance(run.evidence.get("accuracy"), HeldOutError)
    if not run.ok and not _holds_at_use(run):
        return False
    return run.ok or (not student and is_close(accuracy_of(run)["typical"]))


def _holds_at_use(run: Result) -> bool:
    """False of a network that holds in a box, and not at typical inputs."""
    checked = run.evidence.get("verification")
    return checked is None or checked.at_use is None or bool(checked.at_use.ok)


def is_trained(run: Result) -> bool:
    """True of a network that was trained on the answers: its parameters are its own, and none of the target's."""
    return "training" in run.evidence


def _badness(run: Result) -> tuple[bool, bool, float]:
    """An exact one before any other, then by error."""
    typical = accuracy_of(run)["typical"]
    return not run.ok, run.outcome is not Outcome.RECOVERED, np.inf if typical is None else typical


def shape_of(network: ReLUNetwork) -> str:
    """Layers in words: 6-8-3 with a softmax; a part that goes past the neurons is named, for it has weights too."""
    link = network.link
    more = [
        *(["a direct linear part"] if network.skip is not None else []),
        *([f"a {link}"] if link != "identity" else []),
    ]
    return "-".join(map(str, network.widths)) + (f" with {' and '.join(more)}" if more else "")


def recovered(
    run: Result | None, outputs: int, price: Price | None, link: Link = "identity", rate: float | None = None
) -> dict[str, Any] | None:
    """The copy as data, with the link it is written with: a classifier has its classes back. None without one.

    A trained network has a size that it was given: queries for each of its parameters say nothing of the target.
    """
    if run is None or run.network is None:
        return None
    network, trained = run.as_written(link), is_trained(run)
    return {
        "method": METHODS[method_of(run)],
        "verified": run.outcome is Outcome.RECOVERED,
        "link": network.link,
        "widths": list(network.widths),
        "linear part": network.skip is not None,
        "parameters": network.parameters,
        "error": accuracy_of(run),
        "queries": run.queries,
        "queries per parameter": None if trained else run.queries / network.parameters,
        "answers per parameter": None if trained else run.queries * outputs / network.parameters,
        "cost": cost(run.queries, price),
        "seconds": None if rate is None else run.queries / rate,
    }


def cost(queries: int, price: Price | None) -> float | None:
    """What so many queries cost, None without a price."""
    return None if price is None else queries / PER_PRICE * float(price["per thousand"])


METHODS = {
    CopyMethod.TRAINING: "training on the answers", CopyMethod.LEARNING: "learning",
    CopyMethod.FEW_DIGITS: "extraction from few digits", CopyMethod.EXACT: "exact extraction",
}  # fmt: skip


def method_of(run: Result) -> CopyMethod:
    """How a network was found."""
    if is_trained(run):
        return CopyMethod.TRAINING
    if "eps" in run.evidence:
        return CopyMethod.LEARNING
    return CopyMethod.FEW_DIGITS if run.evidence.get("precision") is not None else CopyMethod.EXACT

"""The verification of a candidate: a network held against the target, at points that its rows are worth.

A method returns a `Candidate`. `hold_against` puts its network the right way round and compares it with the target, on
and beside its creases and at several scales. How many points that takes grows with the rows that were spent. A deep
network that errs at few inputs may lack a neuron that they switch; one that errs by little, a weak one. These are
then looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.extraction.crease_depth import CreaseKinds
from reluctant.extraction.method import Candidate, ComparedCandidate, StageFailed
from reluctant.extraction.orientation import orient
from reluctant.extraction.overlooked_neurons import with_rare_neuron, with_weak_neuron
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.numerics import Noise
from reluctant.oracles import Counting, Rows
from reluctant.verification.agreement import HeldOutRows, Verification, examine, examine_by_gradients
from reluctant.verification.comparison import MOST_TOLERANCE, AcceptedError, AtUse
from reluctant.verification.label_check import LabelVerification
from reluctant.verification.points import LINE_POINTS, PointCounts
from reluctant.verification.precision import PrecisionCheck, examine_precision

FEW_NEURONS, FAR_POINTS = 32, 48  # parts of a few deeper neurons may look like one layer where random points are
POINTS_FOR_DEEP = 160  # deeper neurons are active in parts of space that few points meet
TWO_HIDDEN, COVERING_ROWS = 3, 64  # layers of weights; rows a layer above, where units that it may lack would be on
ALONE_SHARE = 0.02  # of the rows spent, at most: points where one unit of the first layer is on alone
MOST_AT_USE = 300  # points at the scale of use, of one hidden layer
FEW_PARAMETERS, MOST_OF_FEW = 900, 900  # a network with so few is worth as many: 0.33 % of inputs hide nothing
RARE_NEURONS = 3  # that may be missing
FEW_ROWS = 5000  # below, verification takes more than its share
FEW_DIGITS_TOLERANCE = 0.1  # of the output's deviation: held-out answers have already been compared with the noise


@dataclass(frozen=True)
class CheckedNetwork:
    """A whole network with its checks: the candidate of a method, put the right way round."""

    network: ReLUNetwork
    candidate: Candidate
    verification: Verification | LabelVerification
    precision: PrecisionCheck | None = None

    @property
    def doubt(self) -> Verification | LabelVerification | PrecisionCheck | None:
        """The first check that did not pass."""
        checks = (self.verification, self.precision)
        return next((check for check in checks if check is not None and not check.ok), None)

    @property
    def is_close(self) -> bool:
        """True if a network of several hidden layers is in doubt, but off by little: a neuron that hardly matters."""
        little = 1e-2  # of the output's deviation
        checked = self.value_check
        if checked is None or self.candidate.compared_lines or self.network.depth <= 2:
            return False
        return not checked.ok and not checked.undecided and checked.max_error < little

    @property
    def value_check(self) -> Verification | None:
        """The comparison with values; None where labels were compared, which happens in all of space."""
        return self.verification if isinstance(self.verification, Verification) else None

    @property
    def counterexamples(self) -> HeldOutRows | None:
        """Rows that speak against a network of several hidden layers, by more than noise; None if there are none."""
        checked = self.value_check
        if checked is None or self.candidate.compared_lines or self.network.depth <= 2:
            return None
        return None if checked.undecided else checked.counterexamples

    @property
    def most_tolerance(self) -> float:
        """The largest tolerance that decides: methods for few digits have compared lines with the noise before."""
        return FEW_DIGITS_TOLERANCE if self.candidate.compared_lines else MOST_TOLERANCE

    @property
    def at_use_tolerance(self) -> float | None:
        """What a comparison at typical inputs is held against; None where there was one, or labels were compared.

        A network that erred inside its box is held against that error.
        """
        checked = self.value_check
        if checked is None or checked.at_use is not None:
            return None
        return checked.tol if checked.ok else checked.bound

    def beside(self, at_use: AtUse | None) -> CheckedNetwork:
        """With a comparison at typical inputs, where there is one."""
        checked = self.value_check
        return self if checked is None else replace(self, verification=checked.beside(at_use))

    def doubted_by(self, check: Verification | AtUse) -> CheckedNetwork:
        """With a later comparison that spoke against it."""
        return self.beside(check) if isinstance(check, AtUse) else replace(self, verification=check)

    def evidence(self) -> dict[str, Any]:
        """What speaks for the network, and against it."""
        found: dict[str, Any] = {"limits": self.candidate.limits} if self.candidate.limits else {}
        found |= {} if self.precision is None else {"precision": self.precision}
        if isinstance(self.verification, LabelVerification):
            found["boundary error"] = self.verification.boundary_error
        return found | {"verification": self.verification, "certificate": self.candidate.certificate}


def refuse_misfit(candidate: object, oracle: Counting) -> None:
    """Refuse what a user's own method cannot mean, by name."""
    if not isinstance(candidate, Candidate):
        raise InvalidInput.about(
            "method.run", got=type(candidate).__name__, expected="a Candidate", fix="Return rl.Candidate(network)."
        )
    widths = candidate.network.widths
    if not isinstance(candidate, ComparedCandidate) and (widths[0], widths[-1]) != (oracle.dim, oracle.outputs):
        raise InvalidInput.about(
            "method.run", got=f"a network of {widths[0]} inputs and {widths[-1]} outputs",
            expected=f"{oracle.dim} and {oracle.outputs}, as the oracle has",
        )  # fmt: skip


def without_own_checks(candidate: Candidate) -> Candidate:
    """What a user's own method says of its network, without what would stand in for a question of the driver."""
    held_out = candidate.held_out_rows
    beside = None if held_out is None else replace(held_out, instead=False)
    return Candidate(candidate.network, beside, candidate.certificate, candidate.limits, candidate.precision)


def hold_against(
    oracle: Counting,
    candidate: Candidate,
    noise: Noise,
    by_distance: DistanceNoise,
    rows: Callable[[], Rows],
    rng: np.random.Generator,
    counterexamples: Sequence[HeldOutRows] = (),
    seen: CreaseKinds | None = None,
    believed: bool = True,
) -> CheckedNetwork:
    """A candidate with its checks; raises StageFailed where creases that were seen speak against it.

    Arguments:
        noise, by_distance: the target's, as its health check has measured it.
        rows: those spent so far.
        counterexamples: rows that spoke against earlier networks.
        seen: creases of a line. Each that goes straight on is a neuron of the first layer.
        believed: the method is one of this library, whose own comparison counts.
    """
    candidate = candidate if believed or not isinstance(candidate, Candidate) else without_own_checks(candidate)
    refuse_misfit(candidate, oracle)
    if isinstance(candidate, ComparedCandidate):
        return CheckedNetwork(candidate.network, candidate, candidate.verification)
    network = orient(candidate.network, arrays=oracle.arrays)
    if seen is not None and network.depth == 2 and network.widths[1] < seen.straight:
        reason = "fewer neurons than straight creases on a line"
        raise StageFailed("creases", reason, number=network.widths[1], limit=seen.straight, partial=network)
    found = check_candidate(oracle, network, candidate, noise, rows(), rng, counterexamples)
    last, against = found, list[HeldOutRows]()
    for _ in range(RARE_NEURONS):
        if last.counterexamples is None:
            break
        against.append(last.counterexamples)
        places = np.concatenate([each.rows for each in against])
        wider = with_rare_neuron(oracle, network, places, noise, rng)  # again where the last one was not all of it
        if wider is None and last is not found:
            wider = with_rare_neuron(oracle, last.network, against[-1].rows, noise, rng)
        if wider is None:
            break
        again = replace(candidate, network=wider, held_out=None)
        last = check_candidate(oracle, wider, again, noise, rows(), rng, [*counterexamples, *against])
        if last.doubt is None:
            return last
    if not found.is_close or not oracle.facts.domain.is_space:
        return found
    wider = with_weak_neuron(oracle, network, by_distance, rng)
    if wider is None:
        return found
    again = replace(candidate, network=wider, held_out=None)
    better = check_candidate(oracle, wider, again, noise, rows(), rng, counterexamples)
    return better if better.doubt is None else found


def check_candidate(
    oracle: Counting,
    network: ReLUNetwork,
    candidate: Candidate,
    noise: Noise,
    spent: Rows,
    rng: np.random.Generator,
    counterexamples: Sequence[HeldOutRows] = (),
) -> CheckedNetwork:
    """Target against network, after so many rows; also at rows that spoke against earlier networks.

    `network` is the candidate's, put the right way round; `noise` the target's, as its health check has measured it.
    """
    most, precision = MOST_TOLERANCE, None
    worth = spent.asked
    if oracle.explained is not None:  # few rows say much; what so few can miss are narrow ridges of small networks
        wide = sum(network.widths[1:-1]) > FEW_NEURONS
        worth = max(worth, FEW_ROWS) if wide else max(worth, FEW_ROWS - 1)
    if candidate.precision is not None:
        precision = examine_precision(oracle, network, candidate.precision, rng, spent.queries)
        near = float(candidate.precision.near.max())  # as the method for few digits has measured it
        near = near if oracle.facts.domain.is_space else max(near, noise.absolute)
        noise, most = Noise(near, noise.relative, candidate.precision.rounding), FEW_DIGITS_TOLERANCE
    elif candidate.asked is not None:
        most = FEW_DIGITS_TOLERANCE  # its lines have been compared with the noise
    noise = replace(noise, rounding=max(noise.rounding, candidate.rounding))
    if oracle.explained is not None and not candidate.compared_lines and network.depth > 2:
        by_gradients = examine_by_gradients(
            oracle, network, rng, noise=noise, held_out=candidate.held_out_rows, counterexamples=counterexamples
        )
        return CheckedNetwork(network, candidate, by_gradients)
    # Rows asked, not sent: a retry must not change the rows.
    exact = oracle.explained is None and candidate.precision is None and not candidate.compared_lines
    parameters = network.parameters if exact else None  # few digits cost more rows, many of them random ones
    counts = shallow_counts(worth, parameters) if network.depth <= 2 else deep_counts(network.depth, worth)
    if network.depth == 2:
        far = FAR_POINTS if network.widths[1] <= FEW_NEURONS else 0
        counts = replace(counts, far=far, on_rays=0 if candidate.compared_lines else points_on_rays(spent.asked))
    verification = examine(
        oracle, network, rng, counts, AcceptedError(noise=noise, most=most),
        held_out=candidate.held_out_rows, asked=candidate.asked, counterexamples=counterexamples,
    )  # fmt: skip
    return CheckedNetwork(network, candidate, verification, precision)


def shallow_counts(spent: int, parameters: int | None = None) -> PointCounts:
    """Points that verify a network of at most one hidden layer, after so many rows; on rays and far out are more.

    At the scale of use a narrow bump shows at a share of the points, and nowhere else. A network of few parameters is
    asked more of them there, up to twice what its search took.
    """
    if spent < FEW_ROWS:  # a small network can afford more than its share, a tiny one no more than its search took
        few = parameters is not None and parameters <= FEW_PARAMETERS and spent > MOST_AT_USE
        at_use = min(2 * spent, MOST_OF_FEW) if few else min(max(36, spent), MOST_AT_USE)
        return PointCounts(points=36, per_neuron=0, at_use=at_use)
    return PointCounts(
        points=int(np.clip(5e-4 * spent, 20, 64)),
        per_neuron=0,
        at_use=int(np.clip(2e-2 * spent, 100, MOST_AT_USE)),
        on_lines=int(np.clip(5e-3 * spent, 16, LINE_POINTS)),
        most_on_lines=int(1e-2 * spent),
    )


def deep_counts(depth: int, spent: int) -> PointCounts:
    """The same of several hidden layers, whose units may switch on few inputs: more, where these are a small share."""
    return PointCounts(
        points=POINTS_FOR_DEEP,
        per_neuron=1,
        at_use=int(np.clip(2e-2 * spent, POINTS_FOR_DEEP, 800)),
        on_lines=LINE_POINTS if spent < FEW_ROWS else int(min(1e-2 * spent, 400)),
        most_on_lines=0 if spent < FEW_ROWS else int(2e-2 * spent),
        alone=int(ALONE_SHARE * spent),
        covering=COVERING_ROWS if depth > TWO_HIDDEN else 0,
    )


def points_on_rays(spent: int) -> int:
    """Points on rays, which cross narrow ridges; where few rows were spent, the search itself has read a whole line."""
    most_points, share = 1000, 2e-2  # of the rows spent
    return 0 if spent < FEW_ROWS else int(min(share * spent, most_points))

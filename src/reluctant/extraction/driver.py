"""`extract`: check the target, run the method, verify what it found; hard luck gets another attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Protocol

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import BudgetExhausted, InvalidInput, NonFiniteAnswer, TargetError
from reluctant.extraction.any_depth import AnyDepth
from reluctant.extraction.candidate import Candidate
from reluctant.extraction.certificate import Certificate
from reluctant.extraction.depth_three import DepthThree
from reluctant.extraction.depth_two import DepthTwo
from reluctant.extraction.depth_two.line import CROWD
from reluctant.extraction.depth_two.main_pass import MAIN_PASS
from reluctant.extraction.failures import StageFailed
from reluctant.extraction.few_digits import FewDigits
from reluctant.extraction.layers import look_for_layers
from reluctant.extraction.orientation import orient
from reluctant.geometry import DistanceNoise
from reluctant.health import Health
from reluctant.health.behind import Behind, refuse_labels
from reluctant.health.check import examine as examine_health
from reluctant.health.saturation import readable_box, smaller, told_in_steps, unsaturated_box
from reluctant.health.summary import FAR_ENOUGH, TOO_COARSE
from reluctant.networks import ReLUNetwork
from reluctant.numerics import Noise, Rng, as_generator
from reluctant.oracles import Counting, Oracle, Rows
from reluctant.oracles.opening import as_opened
from reluctant.results import Outcome, Result, ended_by
from reluctant.verification.check import MOST_TOLERANCE, NOISE_FACTOR, Verification
from reluctant.verification.check import examine as examine_network
from reluctant.verification.precision import Precision, examine_precision

__all__ = [
    "FAR_POINTS",
    "FEW_NEURONS",
    "HEALTH_LINES",
    "POINTS_FOR_DEEP",
    "Method",
    "behind_a_link",
    "exact_refusal",
    "extract",
    "points_worth",
    "what_extraction_would_do",
]

HEALTH_LINES = 4
VERIFICATION_SHARE = 5e-4  # random points at each scale, of the rows spent; creases are looked at besides
FEWEST_POINTS, MOST_POINTS = 20, 64
FEW_ROWS, POINTS_FOR_FEW_ROWS = 5000, 36  # a small network can afford more than its share
FEW_NEURONS, FAR_POINTS = 32, 48  # parts of a few deeper neurons may look like one layer where random points are
POINTS_FOR_DEEP = 160  # deeper neurons are active in parts of space that few points meet
EXACT = 1e-6  # of the output's deviation: an exact network must be verifiable to this
NOTICED = 1e-8  # of the output's deviation: from here on the method for few digits has the first attempt
NOISIEST_INSIDE = 1e-6  # of the output's deviation: inside a box more noise hides what lines have to tell
FEW_DIGITS_TOLERANCE = 0.1  # of the output's deviation: held-out answers have already been compared with the noise
ATTEMPTS = 4
MORE_DIRECTIONS = (3, 6, 12)  # of the attempts inside a box: more lines meet more creases
NEEDS_SPACE = (DepthThree, AnyDepth)  # methods that look far from the origin


class Method(Protocol):
    """Mathematics of one attempt; the driver owns attempts, limits and verification."""

    def run(
        self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]
    ) -> Candidate:
        """A candidate network, or StageFailed; `keep` is told what is known on the way."""


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
    if attempts < 1:
        raise InvalidInput.about("attempts", got=attempts, expected="at least 1")
    if method is not None and (isinstance(method, type) or not hasattr(method, "run")):
        raise InvalidInput.about("method", got=repr(method), expected="a method object", fix="Pass rl.DepthTwo().")
    opened = as_opened(oracle)
    if isinstance(method, NEEDS_SPACE) and not opened.facts.domain.is_space:
        raise InvalidInput.about(
            "domain", got=opened.facts.domain.describe(), expected=f"all of space for {type(method).__name__}",
            fix="Use rl.DepthTwo(), which stays inside, or leave the domain out if the target answers everywhere.",
        )  # fmt: skip
    opened.begin("extract", rng)
    run = _Run(opened, method, as_generator(rng))
    try:
        return run.result(*run.go(attempts))
    except BudgetExhausted as error:
        return run.result(Outcome.OUT_OF_BUDGET, run.partial, error=str(error))
    except TargetError as error:
        return run.result(ended_by(error, opened), run.partial, error=str(error))


@dataclass
class _Run:
    """One call of `extract`: what it has spent, what it has found so far."""

    oracle: Counting
    method: Method | None
    rng: np.random.Generator
    before: dict[str, Rows] = field(init=False)
    part: ReLUNetwork | None = None  # of the attempt under way, or of the last one that had any
    found: ReLUNetwork | None = None  # a whole network that was verified, and did not pass
    evidence: dict[str, Any] = field(default_factory=dict)
    few_digits: bool = False  # exact methods would refuse the target

    def __post_init__(self) -> None:
        self.before = dict(self.oracle.ledger.stages)

    def go(self, attempts: int) -> tuple[Outcome, ReLUNetwork | None]:
        health = examine_health(self.oracle, self.rng, HEALTH_LINES)
        self.evidence["health"] = health
        refusal = exact_refusal(health)
        if health.behind is not None and health.behind.too_coarse:
            self.evidence["reason"] = behind_a_link(health.behind)
            return Outcome.LOW_PRECISION, None
        if saturates(health, self.oracle) and not isinstance(self.method, NEEDS_SPACE):
            return self.go_inside(attempts, unsaturated_box if refusal is Outcome.OUT_OF_REACH else readable_box)
        return self.go_on(health, attempts)

    def go_on(self, health: Health, attempts: int) -> tuple[Outcome, ReLUNetwork | None]:
        """Refuse, or try what the digits allow."""
        refusal = exact_refusal(health)
        self.few_digits = refusal is Outcome.LOW_PRECISION and self.may_use_few_digits(health)
        if refusal is not None and not self.few_digits:
            return refusal, None
        return self.try_methods(health, attempts)

    def go_inside(
        self, attempts: int, find_box: Callable[[Counting, np.random.Generator], Domain | None]
    ) -> tuple[Outcome, ReLUNetwork | None]:
        """Inside a box in which no probability saturates; inside a smaller one where that was not so."""
        space = self.oracle
        box = find_box(space, self.rng)
        for last in (False, False, True):
            if box is None:
                break
            self.oracle = Counting(space.inner, space.ledger, box)
            self.evidence["inside"] = box.describe()
            self.evidence["reach"] = f"Far out probabilities saturate: asked inside {box.describe()}."
            health = self.evidence["health"] = examine_health(self.oracle, self.rng, HEALTH_LINES)
            if told_in_steps(self.oracle, self.rng):
                return Outcome.LOW_PRECISION, None
            try:
                return self.go_on(health, attempts)
            except NonFiniteAnswer:
                if last:
                    raise
                box = smaller(box)
        refuse_labels(space)
        return Outcome.OUT_OF_REACH, None

    def try_methods(self, health: Health, attempts: int) -> tuple[Outcome, ReLUNetwork | None]:
        """The methods in turn, until a network verifies."""
        failures = self.evidence["failures"] = []
        noise = DistanceNoise.of(health, self.oracle.dim)
        for generator, method in zip(self.rng.spawn(attempts), self.methods(noise), strict=False):
            try:
                network, verification, certificate = self.attempt(method, health, generator)
            except StageFailed as failure:
                failures.append(str(failure))
                self.part = failure.partial or self.part
                continue
            except np.linalg.LinAlgError as failure:  # numbers no factorisation copes with: hard luck as well
                failures.append(f"linear algebra: {failure}")
                continue
            self.evidence |= {"verification": verification, "certificate": certificate}
            precision = self.evidence.get("precision")
            if verification.ok and (precision is None or precision.ok):
                return Outcome.RECOVERED, network
            self.found = network
            failures.append(f"verification: {precision if verification.ok else verification}")
        if self.few_digits:
            return Outcome.LOW_PRECISION, self.partial
        return (Outcome.PARTIAL if self.found is None else Outcome.UNVERIFIED), self.partial

    def may_use_few_digits(self, health: Health) -> bool:
        """Few digits are no refusal where the method for them can look, and no other was asked for."""
        return few_digits_are_enough(health, self.oracle) and (
            self.method is None or isinstance(self.method, FewDigits)
        )

    def methods(self, noise: DistanceNoise) -> Iterator[Method]:
        """The method that was asked for, again and again; else a ladder, by what the creases look like."""
        if self.method is not None:
            yield from repeat(self.method)
        if noticeable(self.evidence["health"]) and self.may_use_few_digits(self.evidence["health"]):
            yield FewDigits()
        if self.few_digits:
            yield from repeat(FewDigits()) if self.oracle.facts.domain.is_space else map(FewDigits, MORE_DIRECTIONS)
            return
        yield DepthTwo()
        if self.part is not None and self.part.depth == 2 and self.part.widths[1] >= CROWD:
            yield DepthTwo()  # of other lines one may do, and what follows costs far more in a crowd
            if MAIN_PASS in self.spent():
                return  # one hidden layer explains what lines show; what is missing is digits
        if not self.oracle.facts.domain.is_space or self.oracle.dim == 1:
            yield from repeat(DepthTwo())
        kinds = self.evidence["layers"] = look_for_layers(self.oracle, noise, self.rng)
        if kinds.hopeless:
            return
        if not kinds.one_layer:
            yield DepthThree()
        yield from repeat(DepthTwo() if kinds.mostly_straight else AnyDepth())

    def attempt(
        self, method: Method, health: Health, rng: np.random.Generator
    ) -> tuple[ReLUNetwork, Verification, Certificate | None]:
        candidate = method.run(self.oracle, DistanceNoise.of(health, self.oracle.dim), rng, self.keep)
        network = orient(candidate.network, arrays=self.oracle.arrays)
        for stale in ("limits", "precision"):
            self.evidence.pop(stale, None)
        if candidate.limits:
            self.evidence["limits"] = candidate.limits
        points = self.verification_points() if network.depth <= 2 else POINTS_FOR_DEEP
        far = FAR_POINTS if network.depth == 2 and network.widths[1] <= FEW_NEURONS else 0
        noise, most = health.noise, MOST_TOLERANCE
        if candidate.precision is not None:
            noise, most = self.check_precision(network, candidate.precision, noise, rng), FEW_DIGITS_TOLERANCE
        verification = examine_network(
            self.oracle, network, rng,
            noise=noise, points=points, per_neuron=0, held_out=candidate.held_out, far=far,
            most_tolerance=most,
        )  # fmt: skip
        return network, verification, candidate.certificate

    def check_precision(
        self, network: ReLUNetwork, precision: Precision, noise: Noise, rng: np.random.Generator
    ) -> Noise:
        """Enter what held-out answers leave; gives the noise as the method has measured it."""
        spent = sum(self.spent().values(), Rows()).queries
        self.evidence["precision"] = examine_precision(self.oracle, network, precision, rng, spent)
        near = float(precision.near.max())
        return Noise(near if self.oracle.facts.domain.is_space else max(near, noise.absolute), noise.relative)

    def keep(self, part: ReLUNetwork) -> None:
        """Remember what is known so far, should the run end here."""
        self.part = part

    @property
    def partial(self) -> ReLUNetwork | None:
        """The best there is without a verified network: a whole one before a part, the one the evidence is of."""
        return self.part if self.found is None else self.found

    def verification_points(self) -> int:
        spent = sum(self.spent().values(), Rows()).asked  # not sent: a retry must not change what is asked
        return points_worth(spent)

    def spent(self) -> dict[str, Rows]:
        """Rows of this run, by stage."""
        return self.oracle.ledger.since(self.before)

    def result(self, outcome: Outcome, network: ReLUNetwork | None, **evidence: Any) -> Result:
        views = {f"{stage} search": view for stage, view in self.oracle.ledger.views.items()}
        return Result(outcome, network, self.spent(), self.oracle.ledger.last_stage, self.evidence | views | evidence)


def points_worth(spent: int) -> int:
    """Random points at each scale that a network is verified at, after so many rows."""
    if spent < FEW_ROWS:
        return POINTS_FOR_FEW_ROWS
    return int(np.clip(VERIFICATION_SHARE * spent, FEWEST_POINTS, MOST_POINTS))


def answered_far_out(health: Health) -> bool:
    """True if the target gave finite answers far from the origin."""
    return health.largest_scale is not None and health.largest_scale >= FAR_ENOUGH


def saturates(health: Health, oracle: Oracle) -> bool:
    """True if probabilities are what keeps a method from looking far out, and it could do with less."""
    refusal, facts = exact_refusal(health), oracle.facts
    near = refusal in (Outcome.OUT_OF_REACH, Outcome.NON_FINITE)
    may = near or (refusal is Outcome.LOW_PRECISION and not answered_far_out(health))
    return may and facts.saturates and facts.domain.is_space


def few_digits_are_enough(health: Health, oracle: Oracle) -> bool:
    """True if the method for few digits can look: far out, or inside a box where enough of them are left."""
    if health.number_format == "float16":
        return False
    if oracle.facts.domain.is_space:
        return answered_far_out(health)
    return oracle.facts.domain.is_box and health.noise.at(health.spread) <= NOISIEST_INSIDE * health.spread


def what_extraction_would_do(health: Health, oracle: Oracle) -> str:
    """A sentence where it would not look for exact weights: refuse the target, or do with few digits; else empty."""
    refusal = exact_refusal(health)
    if health.behind is not None and health.behind.too_coarse:
        return f"Exact extraction would refuse this target. {behind_a_link(health.behind)}"
    if saturates(health, oracle):
        return "" if health.behind is not None and health.behind.certain else IN_A_BOX
    if refusal is None or health.refusal is not None:
        return ""
    if refusal is Outcome.LOW_PRECISION and few_digits_are_enough(health, oracle):
        return IF_VALUES + WITH_FEW_DIGITS if health.may_be_sigmoids else WITH_FEW_DIGITS
    return f"Exact extraction would refuse this target. {refusal}"


def behind_a_link(behind: Behind) -> str:
    """Why probabilities with few digits are refused."""
    return f"The probabilities behind the link are rounded to {behind.decimals} decimals. {TOO_COARSE}"


IN_A_BOX = "Far out its probabilities saturate: extract looks by itself inside a box in which they do not."
IF_VALUES = "If the answers are values and no probabilities: "
WITH_FEW_DIGITS = (
    "Too few digits for exact extraction: extract takes its method for few digits by itself, which recovers one hidden "
    "layer as exactly as the answers are. A local model may have more: --precision float64."
)


def noticeable(health: Health) -> bool:
    """True if there is noise that exact methods would be told of, but are not made for."""
    return exact_refusal(health) is None and NOISE_FACTOR * health.noise.at(health.spread) > NOTICED * health.spread


def exact_refusal(health: Health) -> Outcome | None:
    """The outcome that exact extraction would end with at once, or None."""
    if health.refusal is not None:
        return health.refusal
    verifiable = NOISE_FACTOR * health.noise.at(health.spread) <= EXACT * health.spread
    if health.number_format != "float64" or not verifiable:
        return Outcome.LOW_PRECISION
    if health.largest_scale is not None and health.largest_scale < FAR_ENOUGH:
        return Outcome.OUT_OF_REACH
    return None

"""`extract`: check the target, run methods in turn, verify what they find; hard luck gets another attempt.

`ExtractionRun` is one call: it reads the target's health, chooses where to look and which methods to try, and holds
each candidate network against the target before it counts as recovered. Probabilities that saturate far out are
looked at inside a box. A network that was recovered there is compared at typical inputs too; if it fails, wider
boxes are tried, for a share of the rows spent so far. Budget, target errors and failed stages become outcomes with
the partial network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Unpack

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import BudgetExhausted, InvalidInput, InvalidRows, NonFiniteAnswer, OutsideDomain, TargetError
from reluctant.extraction.any_depth import AnyDepth
from reluctant.extraction.depth_three import DepthThree
from reluctant.extraction.depth_two import DepthTwo
from reluctant.extraction.depth_two.line import CROWD
from reluctant.extraction.depth_two.main_pass import MAIN_PASS, WITNESS_CHECK
from reluctant.extraction.few_digits import FewDigits
from reluctant.extraction.method import Candidate, Method, PartialNetwork, StageFailed, lifted
from reluctant.extraction.orientation import orient
from reluctant.extraction.prospects import (
    IN_STEPS,
    enough_inside_bounds,
    evidence_of_clipping,
    exact_refusal,
    few_digits_are_enough,
    has_noticeable_noise,
    in_few_bits,
    saturates,
    shows_too_little,
    too_few_digits,
)
from reluctant.extraction.straight_creases import look_for_layers
from reluctant.geometry import DistanceNoise
from reluctant.interface import Interface
from reluctant.interface.digits import refuse_labels
from reluctant.interface.health_check import examine as examine_health
from reluctant.interface.reach import larger, readable_box, smaller, told_in_steps, unsaturated_box
from reluctant.networks import ReLUNetwork
from reluctant.numerics import Noise, Rng, as_generator
from reluctant.oracles import Counting, Rows
from reluctant.oracles.keywords import OpeningKeywords
from reluctant.oracles.limits import Limit
from reluctant.oracles.open import Target, opened_target
from reluctant.results import Outcome, Result, ended_by
from reluctant.verification.agreement import Verification, examine
from reluctant.verification.comparison import MOST_TOLERANCE, look_at_use
from reluctant.verification.precision import Precision, PrecisionCheck, examine_precision

__all__ = [
    "FAR_POINTS",
    "FEW_DIGITS_TOLERANCE",
    "FEW_NEURONS",
    "HEALTH_LINES",
    "NEEDS_SPACE",
    "POINTS_FOR_DEEP",
    "ExtractionRun",
    "Method",
    "beyond_the_box",
    "examine_candidate",
    "extract",
    "points_worth",
]

ATTEMPTS = 4


def extract(
    oracle: Target,
    method: Method | None = None,
    *,
    rng: Rng = 0,
    attempts: int = ATTEMPTS,
    **opening: Unpack[OpeningKeywords],
) -> Result:
    """Recover the network behind an oracle exactly, or say by which outcome it was not recovered.

    Arguments:
        oracle: the target: an oracle, or anything that `open_oracle` takes.
        method: how to look for it; None takes the cheapest that verifies: two layers, three, any number.
        rng: seed of all random choices.
        attempts: how often it may be tried, with other random choices or the next method.
        opening: keywords of `open_oracle`, for this call: dim, budget, link, ...

    Cost: about as many answers as the network has parameters, verification included; a row brings one answer for
    each output.
    """
    _check_call(method, attempts)
    with opened_target(oracle, opening) as opened:
        return _extract(opened, method, rng, attempts).with_classes(opened)


def _extract(opened: Counting, method: Method | None, rng: Rng, attempts: int) -> Result:
    _check_domain(opened, method)
    opened.begin("extract", rng)
    run = ExtractionRun(opened, method, as_generator(rng))
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


HEALTH_LINES = 4
MOST_BOXES = 3  # each smaller than the one before, until no probability saturates
MORE_DIRECTIONS = (3, 6, 12)  # of the attempts inside a box: more lines meet more creases
NEEDS_SPACE = (DepthThree, AnyDepth)  # methods that look far from the origin


@dataclass
class ExtractionRun:
    """One call of `extract`: what it has spent, what it has found so far."""

    oracle: Counting
    method: Method | None
    rng: np.random.Generator
    before: dict[str, Rows] = field(init=False)
    known: PartialNetwork | None = None  # of the attempt under way, or of the last one that had any
    stuck: str = ""  # stage that the last attempt failed in
    found: ReLUNetwork | None = None  # a whole network that was verified, and did not pass
    evidence: dict[str, Any] = field(default_factory=dict)
    few_digits: bool = False  # exact methods would refuse the target

    def __post_init__(self) -> None:
        self.before = dict(self.oracle.ledger.stages)

    def go(self, attempts: int) -> tuple[Outcome, ReLUNetwork | None]:
        """Look at the target's health, then extract where and as far as it allows."""
        health = examine_health(self.oracle, self.rng, HEALTH_LINES)
        self.evidence["health"] = health
        refusal = exact_refusal(health)
        if health.behind is not None and health.behind.too_coarse:
            return Outcome.LOW_PRECISION, None
        if saturates(health, self.oracle) and not isinstance(self.method, NEEDS_SPACE):
            return self.go_inside(attempts, unsaturated_box if refusal is Outcome.OUT_OF_REACH else readable_box)
        return self.go_on(health, attempts)

    def go_on(self, health: Interface, attempts: int) -> tuple[Outcome, ReLUNetwork | None]:
        """Refuse, or try what the digits allow."""
        refusal = exact_refusal(health)
        self.few_digits = refusal is Outcome.LOW_PRECISION and self.may_use_few_digits(health)
        if refusal is not None and not self.few_digits:
            return refusal, None
        outcome, network = self.try_methods(health, attempts)
        astray = outcome in (Outcome.PARTIAL, Outcome.UNVERIFIED)  # a range that inputs are clipped to hides no digits
        if astray or (outcome is Outcome.LOW_PRECISION and enough_inside_bounds(health)):
            self.evidence |= evidence_of_clipping(self.oracle, health, outcome, self.rng)
        return outcome, network

    def go_inside(
        self, attempts: int, find_box: Callable[[Counting, np.random.Generator], Domain | None]
    ) -> tuple[Outcome, ReLUNetwork | None]:
        """Inside a box in which no probability saturates; a smaller one where some do, a larger one that shows more."""
        space = self.oracle
        box = find_box(space, self.rng)
        for boxes_left in reversed(range(MOST_BOXES)):
            if box is None:
                break
            self.enter(space, box)
            health = self.evidence["health"]
            try:
                outcome, network = self.look_inside(health, attempts)
            except NonFiniteAnswer:
                if not boxes_left:
                    raise
                box = smaller(box)
                continue
            if shows_too_little(outcome, health) and not self.evidence.get("failures"):
                self.evidence.pop("reason", None)
                box = larger(box)
                continue
            if network is None or outcome not in (Outcome.RECOVERED, Outcome.UNVERIFIED):
                return outcome, network
            return beyond_the_box(self, space, box, network)
        refuse_labels(space)
        unreadable = in_few_bits(self.evidence["health"]) and unsaturated_box(space, self.rng) is not None
        return (Outcome.LOW_PRECISION if unreadable else Outcome.OUT_OF_REACH), None

    def look_inside(self, health: Interface, attempts: int) -> tuple[Outcome, ReLUNetwork | None]:
        """Refuse, or try what the digits allow; those of values behind a link may be fewer than lines show."""
        if not told_in_steps(self.oracle, self.rng):
            return self.go_on(health, attempts)
        self.evidence |= {} if in_few_bits(health) else {"reason": IN_STEPS}
        return Outcome.LOW_PRECISION, None

    def enter(self, space: Counting, box: Domain) -> None:
        """From now on ask inside a box alone."""
        self.oracle = Counting(space.inner, space.ledger, box)
        self.evidence["inside"] = box.describe()
        self.evidence["reach"] = f"Far out answers saturate: asked inside {box.describe()}."
        self.evidence["health"] = examine_health(self.oracle, self.rng, HEALTH_LINES)

    def try_methods(self, health: Interface, attempts: int) -> tuple[Outcome, ReLUNetwork | None]:
        """The methods in turn, until a network verifies."""
        failures = self.evidence["failures"] = []
        noise = DistanceNoise.of(health, self.oracle.dim)
        for generator, method in zip(self.rng.spawn(attempts), self.methods(noise), strict=False):
            try:
                network = self.attempt(method, health, generator)
            except StageFailed as failure:
                failures.append(str(failure))
                self.known, self.stuck = failure.partial or self.known, failure.stage
                continue
            except np.linalg.LinAlgError as failure:  # numbers no factorisation copes with: hard luck as well
                failures.append(f"linear algebra: {failure}")
                continue
            except OutsideDomain:
                raise
            except InvalidRows as failure:  # rows of NaN, from creases that are none: the method's own, and not sent
                failures.append(f"rows: {failure}")
                continue
            doubt = self.doubt()
            if doubt is None:
                return Outcome.RECOVERED, network
            self.found = network
            failures.append(f"verification: {doubt}")
        if self.few_digits:
            return Outcome.LOW_PRECISION, self.partial
        return (Outcome.PARTIAL if self.found is None else Outcome.UNVERIFIED), self.partial

    def may_use_few_digits(self, health: Interface) -> bool:
        """Few digits are no refusal where the method for them can look, and no other was asked for."""
        return few_digits_are_enough(health, self.oracle) and (
            self.method is None or isinstance(self.method, FewDigits)
        )

    def methods(self, noise: DistanceNoise) -> Iterator[Method]:
        """The method that was asked for, again and again; else a ladder, by what the creases look like."""
        if self.method is not None:
            yield from repeat(self.method)
        if has_noticeable_noise(self.evidence["health"]) and self.may_use_few_digits(self.evidence["health"]):
            yield FewDigits()
        if self.few_digits:
            yield from repeat(FewDigits()) if self.oracle.facts.domain.is_space else map(FewDigits, MORE_DIRECTIONS)
            return
        yield DepthTwo()
        part = self.part
        if part is not None and part.depth == 2 and part.widths[1] >= CROWD:
            yield DepthTwo()  # of other lines one may do, and what follows costs far more in a crowd
            if MAIN_PASS in self.spent() and self.stuck != WITNESS_CHECK:
                return  # one hidden layer explains what lines show; what is missing is digits
        if not self.oracle.facts.domain.is_space or self.oracle.dim == 1:
            yield from repeat(DepthTwo())
        kinds = self.evidence["layers"] = look_for_layers(self.oracle, noise, self.rng)
        if kinds.hopeless:
            return
        if not kinds.one_layer:
            yield DepthThree()
        yield from repeat(DepthTwo() if kinds.mostly_straight else AnyDepth())

    def attempt(self, method: Method, health: Interface, rng: np.random.Generator) -> ReLUNetwork:
        """The network of one run of a method; what speaks for it, and against, is in the evidence."""
        candidate = method.run(self.oracle, DistanceNoise.of(health, self.oracle.dim), rng, self.keep)
        network = orient(candidate.network, arrays=self.oracle.arrays)
        spent = sum(self.spent().values(), Rows())
        for stale in ("limits", "precision"):
            self.evidence.pop(stale, None)
        if candidate.limits:
            self.evidence["limits"] = candidate.limits
        if candidate.precision is not None:
            left = examine_precision(self.oracle, network, candidate.precision, rng, spent.queries)
            self.evidence["precision"] = left
        # Rows asked, not sent: a retry must not change what is asked.
        verification = examine_candidate(self.oracle, network, candidate, health.noise, spent.asked, rng)
        self.evidence |= {"verification": verification, "certificate": candidate.certificate}
        return network

    def doubt(self) -> Verification | PrecisionCheck | None:
        """What did not pass, of the evidence for the last network."""
        checks = [self.evidence[name] for name in ("verification", "precision") if name in self.evidence]
        return next((check for check in checks if not check.ok), None)

    def keep(self, known: PartialNetwork) -> None:
        """Remember what is known so far, should the run end here."""
        self.known = known

    @property
    def part(self) -> ReLUNetwork | None:
        """What is known so far, as a function of the input itself."""
        return None if self.known is None else lifted(self.known)

    @property
    def partial(self) -> ReLUNetwork | None:
        """The best there is without a verified network: a whole one before a part, the one the evidence is of."""
        return self.part if self.found is None else self.found

    def spent(self) -> dict[str, Rows]:
        """Rows of this run, by stage."""
        return self.oracle.ledger.since(self.before)

    def result(self, outcome: Outcome, network: ReLUNetwork | None, **evidence: Any) -> Result:
        """How it ended, with all that is known."""
        if outcome is Outcome.LOW_PRECISION:
            why = too_few_digits(self.evidence["health"], tried=bool(self.evidence.get("failures")))
            self.evidence.setdefault("reason", why)
        views = {f"{stage} search": view for stage, view in self.oracle.ledger.views.items()}
        return Result(outcome, network, self.spent(), self.oracle.ledger.last_stage, self.evidence | views | evidence)


WIDER_BOXES = (2.0, 4.0)  # times the box whose network does not hold at typical inputs
WIDER_BOX_ROWS = 2.0  # times what was asked before: few digits next to the corners can make a search endless


def beyond_the_box(
    run: ExtractionRun, space: Counting, box: Domain, network: ReLUNetwork
) -> tuple[Outcome, ReLUNetwork]:
    """Recovered if it holds at typical inputs, or one from a wider box does; else the first one, unverified.

    One that is in doubt inside its box stays so, and is held against typical inputs as well.
    """
    doubted = run.doubt() is not None
    holds = _holds_at_use(run, space, box, network)
    if doubted or holds:
        return (Outcome.UNVERIFIED if doubted else Outcome.RECOVERED), network
    failures = [*run.evidence["failures"], f"verification: {run.evidence['verification']}"]
    first, run.found, better = run.evidence | {"failures": failures}, network, None
    try:
        better = _from_wider_boxes(run, space, box)
    finally:
        run.evidence = first if better is None else run.evidence  # also where the budget ends inside a wider box
    return (Outcome.UNVERIFIED, network) if better is None else (Outcome.RECOVERED, better)


def _from_wider_boxes(run: ExtractionRun, space: Counting, box: Domain) -> ReLUNetwork | None:
    """One attempt inside each; None if none gives a network that holds at typical inputs."""
    within = Limit(WIDER_BOX_ROWS * space.ledger.total.asked, refusal=_too_many_rows).of(space)
    for times in WIDER_BOXES:
        wider = Domain(times * np.asarray(box.low), times * np.asarray(box.high))
        try:
            run.enter(within, wider)
            found = run.attempt(run.method or DepthTwo(), run.evidence["health"], run.rng)
            if run.doubt() is None and _holds_at_use(run, within, wider, found):
                return found
        except OutsideDomain:
            raise
        except (StageFailed, NonFiniteAnswer, InvalidRows, np.linalg.LinAlgError):
            return None
    return None


def _holds_at_use(run: ExtractionRun, space: Counting, box: Domain, network: ReLUNetwork) -> bool:
    """True if it was verified inside its box, and typical inputs do not speak against it.

    One that was not is held against them too: by what it was seen to err by inside.
    """
    checked = run.evidence["verification"]
    tol = checked.tol if checked.ok else checked.bound
    run.evidence["verification"] = checked.beside(look_at_use(space, network, box, tol, run.rng))
    return bool(run.evidence["verification"].ok)


def _too_many_rows(wanted: int, most: float) -> StageFailed:
    return StageFailed("wider box", "many more rows than all before", number=wanted, limit=most)


VERIFICATION_SHARE = 5e-4  # random points at each scale, of the rows spent; creases are looked at besides
FEWEST_POINTS, MOST_POINTS = 20, 64
FEW_ROWS, POINTS_FOR_FEW_ROWS = 5000, 36  # a small network can afford more than its share
FEW_NEURONS, FAR_POINTS = 32, 48  # parts of a few deeper neurons may look like one layer where random points are
POINTS_FOR_DEEP = 160  # deeper neurons are active in parts of space that few points meet
FEW_DIGITS_TOLERANCE = 0.1  # of the output's deviation: held-out answers have already been compared with the noise


def examine_candidate(
    oracle: Counting, network: ReLUNetwork, candidate: Candidate, noise: Noise, spent: int, rng: np.random.Generator
) -> Verification:
    """Target against network, after so many rows: where errors of a candidate of its kind would show.

    `network` is the candidate's, put the right way round; `noise` the target's, as its health check has measured it.
    """
    one_layer = network.depth == 2
    most = MOST_TOLERANCE
    if candidate.precision is not None:
        noise, most = _measured_noise(candidate.precision, noise, oracle), FEW_DIGITS_TOLERANCE
    return examine(
        oracle, network, rng,
        noise=noise,
        points=points_worth(spent) if network.depth <= 2 else POINTS_FOR_DEEP,
        per_neuron=0,
        held_out=candidate.held_out,
        far=FAR_POINTS if one_layer and network.widths[1] <= FEW_NEURONS else 0,
        most_tolerance=most,
    )  # fmt: skip


def _measured_noise(precision: Precision, noise: Noise, oracle: Counting) -> Noise:
    """The noise as the method for few digits has measured it."""
    near = float(precision.near.max())
    return Noise(near if oracle.facts.domain.is_space else max(near, noise.absolute), noise.relative)


def points_worth(spent: int) -> int:
    """Random points at each scale that a network is verified at, after so many rows."""
    if spent < FEW_ROWS:
        return POINTS_FOR_FEW_ROWS
    return int(np.clip(VERIFICATION_SHARE * spent, FEWEST_POINTS, MOST_POINTS))

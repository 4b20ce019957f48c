"""One call of `extract`: where to look, which methods to try in turn, and whether what they find verifies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import InvalidRows, NonFiniteAnswer, OutsideDomain
from reluctant.extraction.any_depth import AnyDepth
from reluctant.extraction.candidate import Method
from reluctant.extraction.clipped import evidence_of_clipping
from reluctant.extraction.depth_three import DepthThree
from reluctant.extraction.depth_two import DepthTwo
from reluctant.extraction.depth_two.line import CROWD
from reluctant.extraction.depth_two.main_pass import MAIN_PASS, UNEXPLAINED
from reluctant.extraction.examining import examine_candidate
from reluctant.extraction.failures import StageFailed
from reluctant.extraction.few_digits import FewDigits
from reluctant.extraction.layers import look_for_layers
from reluctant.extraction.orientation import orient
from reluctant.extraction.prospects import (
    IN_STEPS,
    enough_inside_bounds,
    exact_refusal,
    few_digits_are_enough,
    in_few_bits,
    noticeable,
    saturates,
    shows_too_little,
    too_few_digits,
)
from reluctant.extraction.so_far import Known, lifted
from reluctant.extraction.wider import beyond_the_box
from reluctant.geometry import DistanceNoise
from reluctant.health import Health
from reluctant.health.behind import refuse_labels
from reluctant.health.check import examine as examine_health
from reluctant.health.saturation import larger, readable_box, smaller, told_in_steps, unsaturated_box
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting, Rows
from reluctant.results import Outcome, Result
from reluctant.verification.findings import Verification
from reluctant.verification.precision import PrecisionCheck, examine_precision

__all__ = ["HEALTH_LINES", "NEEDS_SPACE", "Run"]

HEALTH_LINES = 4
MOST_BOXES = 3  # each smaller than the one before, until no probability saturates
MORE_DIRECTIONS = (3, 6, 12)  # of the attempts inside a box: more lines meet more creases
NEEDS_SPACE = (DepthThree, AnyDepth)  # methods that look far from the origin


@dataclass
class Run:
    """One call of `extract`: what it has spent, what it has found so far."""

    oracle: Counting
    method: Method | None
    rng: np.random.Generator
    before: dict[str, Rows] = field(init=False)
    known: Known | None = None  # of the attempt under way, or of the last one that had any
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

    def go_on(self, health: Health, attempts: int) -> tuple[Outcome, ReLUNetwork | None]:
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

    def look_inside(self, health: Health, attempts: int) -> tuple[Outcome, ReLUNetwork | None]:
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

    def try_methods(self, health: Health, attempts: int) -> tuple[Outcome, ReLUNetwork | None]:
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
        part = self.part
        if part is not None and part.depth == 2 and part.widths[1] >= CROWD:
            yield DepthTwo()  # of other lines one may do, and what follows costs far more in a crowd
            if MAIN_PASS in self.spent() and self.stuck != UNEXPLAINED:
                return  # one hidden layer explains what lines show; what is missing is digits
        if not self.oracle.facts.domain.is_space or self.oracle.dim == 1:
            yield from repeat(DepthTwo())
        kinds = self.evidence["layers"] = look_for_layers(self.oracle, noise, self.rng)
        if kinds.hopeless:
            return
        if not kinds.one_layer:
            yield DepthThree()
        yield from repeat(DepthTwo() if kinds.mostly_straight else AnyDepth())

    def attempt(self, method: Method, health: Health, rng: np.random.Generator) -> ReLUNetwork:
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

    def keep(self, known: Known) -> None:
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

"""Attempts: one method after another in one place, until a network verifies.

`ladder` says which method comes next, and `candidate_check` holds its network against the target: it counts as
recovered only after verification on and beside its creases. What one call of `extract` has tried and found is a
`Search`.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import (
    BudgetExhausted,
    InvalidRows,
    InvalidWeights,
    LinkMismatch,
    NonFiniteAnswer,
    OutsideDomain,
    ReluctantError,
    TimeExhausted,
)
from reluctant.extraction.affine import Affine
from reluctant.extraction.candidate_check import CheckedNetwork, hold_against
from reluctant.extraction.crease_depth import CreaseKinds, look_for_layers
from reluctant.extraction.ladder import LADDER, Attempts, Need, SearchFindings, Standing, again_and_again, walk
from reluctant.extraction.method import (
    Method,
    OrientedHyperplanes,
    PartialNetwork,
    Shows,
    StageFailed,
    fitted_top,
    lifted,
)
from reluctant.geometry import DistanceNoise
from reluctant.geometry.jumps import SearchedLine
from reluctant.interface import Interface
from reluctant.interface.diagnoses import too_few_digits
from reluctant.interface.kinds import Shape
from reluctant.interface.reach import clipped_inputs
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting
from reluctant.oracles.input_units import Box
from reluctant.results import Outcome, Result, Run
from reluctant.verification.agreement import HeldOutRows
from reluctant.verification.comparison import (
    USE_POINTS,
    compare_at_use,
)

ARITHMETIC = "arithmetic"  # stage of an attempt whose own numbers ended it
OF_SCALES = (Outcome.PARTIAL, Outcome.UNVERIFIED)
ENOUGH_LEFT = 0.2  # of the budget, for another attempt after one that the budget has refused rows
FEWEST_LEFT = 10_000  # rows: with fewer, what the first attempt has found says more
# Of the rows before: typical inputs that a network of several layers is compared at, also outside its box. Inside, a
# unit that few of them turn off looks like one that is always on.
USE_SHARE = 0.12

Ending: TypeAlias = tuple[Outcome, ReLUNetwork | None]


@dataclass(frozen=True)
class Place:
    """Where the target is asked, in all of its domain or inside a box of it, and what its answers are like there."""

    oracle: Counting
    health: Interface
    box: Domain | None = None

    @property
    def own_box(self) -> Box | None:
        """The box in units of the target's own inputs."""
        return None if self.box is None else Box.of(self.oracle, self.box)

    @property
    def is_rounded(self) -> bool:
        """True if probabilities have so few decimals that no line can be read."""
        return self.health.raw is not None and self.health.raw.too_coarse

    @property
    def may_be_fitted(self) -> bool:
        """True if a network may be fitted to such probabilities."""
        return self.health.raw is not None and self.health.raw.may_be_fitted(self.oracle.outputs)

    @property
    def noise(self) -> DistanceNoise:
        """Noise of an answer by distance from the origin; none is read where rounding leaves answers certain."""
        return DistanceNoise.of(self.health, self.oracle.dim) if self.health.readings else DistanceNoise(0.0, 0.0)


@dataclass
class Search:
    """What one call of `extract` has tried and found. `run.partial` is a part of the network, of the last attempt.

    shows, lines, first: of the last attempt that failed in a stage: what it shows of the target, the lines that it
    searched, and the first layer, if it showed more than two. counterexamples: rows that spoke against earlier
    networks. refused: of the first attempt that the budget ended.
    """

    run: Run[PartialNetwork | None]
    method: Method | None
    rng: np.random.Generator
    found: SearchFindings = field(default_factory=SearchFindings)
    tried: Attempts = field(default_factory=Attempts)
    shows: Shows = Shows.NOTHING
    lines: tuple[SearchedLine, ...] = ()
    first: OrientedHyperplanes | None = None
    counterexamples: list[HeldOutRows] = field(default_factory=list)
    refused: BudgetExhausted | None = None

    def anew(self, found: SearchFindings | None = None) -> Search:
        """A search with nothing tried yet, by the same method and with further random choices."""
        return Search(self.run, self.method, self.rng, found or SearchFindings(), refused=self.refused)

    def try_methods(self, place: Place, attempts: int, few_digits: bool) -> Ending:
        """The methods in turn, until a network verifies; few_digits: exact methods would refuse the target."""
        self.found.failures = []
        for generator, method in zip(self.generators(place, attempts), self.methods(place, few_digits), strict=False):
            try:
                with self.tried.entry(method, self.run):
                    found = self.attempt(place, method, generator)
            except BudgetExhausted as error:  # rows that were not sent may do for another start
                if not self.may_start_again(error):
                    raise self.refused or error from None
                self.found.fail(f"budget: {error}")
                self.refused = self.refused or error
                continue
            except StageFailed as failure:
                self.found.fail(str(failure))
                left = failure.handover
                self.shows, self.lines, self.first = failure.shows, left.lines, left.first
                self.counterexamples += [] if left.against is None else [left.against]
                self.run.keep(failure.partial or self.run.partial)
                if failure.outcome is not None:
                    self.found.reason = failure.diagnosis or self.found.reason
                    return failure.outcome, self.partial
                continue
            except OutsideDomain:
                raise
            except (InvalidRows, InvalidWeights) as failure:  # of NaN, from creases that are none: the method's own
                if not str(type(method).__module__).startswith("reluctant."):  # a user's method, which a user can mend
                    raise
                self.found.fail(f"{failure.slug}: {failure}")
                continue
            self.found.network = found
            if found.doubt is None:
                return Outcome.RECOVERED, found.network
            self.found.fail(f"verification: {found.doubt}")
        if self.refused is not None:
            raise self.refused
        if few_digits:
            return Outcome.LOW_PRECISION, self.partial
        return (Outcome.PARTIAL if self.found.network is None else Outcome.UNVERIFIED), self.partial

    def generators(self, place: Place, attempts: int) -> Iterator[np.random.Generator]:
        """One for each attempt; more for the last method of the ladder while its own attempts are few and cheap.

        Inside a box those before it hardly cost anything: it has all of its own.
        """
        yield from self.rng.spawn(attempts)
        while self.tried.last_was_cheap(attempts, however=place.box is not None):
            yield from self.rng.spawn(1)

    def may_start_again(self, error: BudgetExhausted) -> bool:
        """True if the budget refused many rows at once, and much of it is left for an attempt with other choices."""
        out_of_time = isinstance(error, TimeExhausted)
        return not out_of_time and error.budget - error.spent >= max(ENOUGH_LEFT * error.budget, FEWEST_LEFT)

    def methods(self, place: Place, few_digits: bool) -> Iterator[Method]:
        """The method that was asked for, again and again; else those of the ladder."""
        rungs = LADDER if self.method is None else again_and_again(self.method)
        return walk(rungs, self.offers(place, few_digits), lambda: self.standing(place))

    def offers(self, place: Place, few_digits: bool) -> frozenset[Need]:
        """What the target offers a method, here."""
        found = {
            Need.FEW_DIGITS if few_digits else Need.DIGITS,
            Need.VALUES if place.oracle.explained is None else Need.GRADIENTS,
            Need.SPACE if place.oracle.facts.domain.is_space else Need.BOUNDS,
            Need.ONE_INPUT if place.oracle.dim == 1 else Need.MORE_INPUTS,
        }
        noisy = place.health.has_noticeable_noise and self.may_use_few_digits(place)
        also = {Need.NOISE: noisy, Need.ROUNDED: place.is_rounded, Need.OWN_BOX: place.box is not None}
        return frozenset(found | {need for need, there in also.items() if there})

    def standing(self, place: Place) -> Standing:
        """What the attempts so far leave to the next one."""

        def layers() -> CreaseKinds:
            if self.found.layers is None:
                self.found.layers = look_for_layers(place.oracle, place.noise, self.rng)
            return self.found.layers

        against = [row for found in self.counterexamples for row in found.rows]
        whole, stages = self.found.network is not None, self.run.spent()
        domain = place.oracle.facts.domain
        return Standing(domain, self.shows, self.lines, self.first, self.part, whole, against, stages, layers)

    def may_use_few_digits(self, place: Place) -> bool:
        """Few digits are no refusal where a method for them can look, and no other was asked for."""
        method, explained = self.method, place.oracle.explained is not None
        allowed = method is None or method.few_digits or (explained and method.reads_gradients)
        return place.health.few_digits_are_enough and allowed

    def go_on(self, place: Place, attempts: int) -> Ending:
        """Refuse, or try what the digits allow."""
        affine = self.verified_map(place) if place.box is not None else None
        if affine is not None:
            return Outcome.RECOVERED, affine
        refusal = place.health.exact_refusal
        few_digits = refusal is Outcome.LOW_PRECISION and self.may_use_few_digits(place)
        if refusal is not None and not few_digits:
            return refusal, None
        outcome, network = self.try_methods(place, attempts, few_digits)
        astray = outcome in OF_SCALES  # a range that inputs are clipped to hides no digits
        if astray or (outcome is Outcome.LOW_PRECISION and place.health.few_digits_are_enough_inside):
            clipped = clipped_inputs(place.oracle, place.health, outcome, self.rng)
            if clipped is not None:
                self.found.clipped, self.found.reason = clipped, clipped.reason
        return outcome, network

    def may_be_affine(self, place: Place) -> bool:
        """True if all short lines were straight, and no other method was asked for.

        Within bounds that a user has set, all digits find a bend in any corner of them: `DepthTwo` looks for those.
        """
        straight = place.health.shape is Shape.AFFINE and place.health.refusal is None
        facts = place.oracle.facts
        anywhere = facts.domain.is_space or facts.saturates or place.health.exact_refusal is not None
        return straight and anywhere and self.method is None

    def verified_map(self, place: Place) -> ReLUNetwork | None:
        """The target as an affine map, None if it is none; other methods keep their random choices."""
        if not self.may_be_affine(place):
            return None
        try:
            found = self.attempt(place, Affine(), deepcopy(self.rng))
        except (StageFailed, NonFiniteAnswer, LinkMismatch):
            return None
        if found.doubt is None and place.box is not None:
            found = self.at_use(self.run.oracle, place.box, found)  # most boxes are small enough to hold no crease
        if found.doubt is not None or not self.holds_far_out(found.network):
            return None
        self.found.network, self.found.failures = found, []
        return found.network

    def holds_far_out(self, network: ReLUNetwork) -> bool:
        """True if a map behind a link agrees with what the first look asked far out, where values can be read."""
        least_certain, close = 8.0, 0.1
        link = self.found.link
        if link is None or link.health.far_out is None or not link.health.deterministic:
            return True
        raw, (rows, values) = link.health.raw, link.health.far_out
        if raw is None or raw.decimals is not None:
            return True
        off = np.clip(network(rows), -least_certain, least_certain) - np.clip(values, -least_certain, least_certain)
        return not bool((np.abs(off) > close).any())  # NaN is not

    def at_use(self, space: Counting, box: Domain, found: CheckedNetwork, points: int = USE_POINTS) -> CheckedNetwork:
        """The same, compared at so many typical inputs too; at more for several hidden layers."""
        tol, several = found.at_use_tolerance, found.network.depth > 2
        if tol is None:
            return found
        count = max(points, int(USE_SHARE * space.ledger.total.asked)) if several else points
        return found.beside(compare_at_use(space, found.network, box, tol, self.rng, count))

    def attempt(self, place: Place, method: Method, rng: np.random.Generator) -> CheckedNetwork:
        """The network of one run of a method, with its checks; numbers that its arithmetic cannot cope with end it."""
        try:
            candidate = method.run(place.oracle, place.noise, rng, self.run.keep)
            known = [] if place.box is not None else self.counterexamples  # another box may not hold them
            found = hold_against(
                place.oracle, candidate, place.health.noise, place.noise, lambda: self.run.rows, rng, known,
                self.found.layers, believed=str(type(method).run.__module__).startswith("reluctant."),
            )  # fmt: skip
        except ReluctantError:
            raise
        except (ArithmeticError, IndexError, ValueError) as error:  # LinAlgError is a ValueError
            if place.oracle.ledger.raised is error:  # an oracle of the user's own class is not our arithmetic
                raise
            reason = f"{type(error).__name__} in stage {self.run.stage or 'start'}: {error}"
            raise StageFailed(ARITHMETIC, reason, number=1, limit=0, raised=type(error).__name__) from error
        if found.value_check is not None and found.value_check.counterexamples is not None:
            self.counterexamples.append(found.value_check.counterexamples)
        return found

    @property
    def reads_labels(self) -> bool:
        """True if a method for labels was asked for, or chosen."""
        return self.method is not None and self.method.reads_labels

    @property
    def may_read_rounded(self) -> bool:
        """True if no method was asked for that lines of rounded probabilities say nothing to."""
        return self.method is None or self.method.reads_rounded

    @property
    def part(self) -> ReLUNetwork | None:
        """The part that is known so far, as a function of the input itself."""
        return None if self.run.partial is None else lifted(self.run.partial)

    @property
    def partial(self) -> ReLUNetwork | None:
        """The best there is without a verified network: a whole one before a part, the one the findings are of."""
        checked = self.found.network
        return self.part if checked is None or checked.doubt is None else checked.network

    def result(self, outcome: Outcome, network: ReLUNetwork | None) -> Result:
        """How it ended, with the findings and what stages show of their work."""
        found, top = self.found, fitted_top(self.run.partial)
        if outcome is Outcome.LOW_PRECISION and found.reason is None:
            found.reason = too_few_digits(found.interface, tried=bool(found.failures))
        evidence = found.evidence() | self.run.evidence
        if self.tried.entries:
            evidence["attempts"] = self.tried
        if top is not None and network is self.part:
            evidence["fitted top"] = top
        views = {f"{stage} search": view for stage, view in self.run.oracle.ledger.views.items()}
        return self.run.result(outcome, network, evidence | views)

"""`extract`: attempts by one method after another, each in its domain, until a network verifies.

The interface decides: exact weights, few digits, inside a box, or a refusal. `ladder` says which method comes next, and
`candidate_check` holds its network against the target: it counts as recovered only after verification on and beside
its creases. Behind a link that saturates, everything happens inside a box. Prospects cost no query; only the search for
a range that inputs are clipped to does, after a run in all of space that did not recover the network: up to 1002 rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TypeAlias, Unpack

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import (
    BudgetExhausted,
    InvalidInput,
    InvalidRows,
    InvalidWeights,
    LinkMismatch,
    NonFiniteAnswer,
    NonFiniteGradient,
    OutsideDomain,
    ReluctantError,
    TargetError,
    TimeExhausted,
)
from reluctant.extraction.affine import Affine
from reluctant.extraction.any_depth import DeepInBox
from reluctant.extraction.candidate_check import CheckedNetwork, hold_against
from reluctant.extraction.depth_two import DepthTwo
from reluctant.extraction.from_labels import FromLabels
from reluctant.extraction.ladder import LADDER, Attempts, Findings, Need, Standing, again_and_again, walk
from reluctant.extraction.method import (
    Method,
    OrientedHyperplanes,
    PartialNetwork,
    Shows,
    StageFailed,
    fitted_top,
    lifted,
)
from reluctant.extraction.rounded_probabilities import RoundedProbabilities
from reluctant.extraction.straight_creases import CreaseKinds, look_for_layers
from reluctant.geometry import DistanceNoise
from reluctant.geometry.boundary import are_whole_numbers
from reluctant.geometry.jumps import SearchedLine
from reluctant.interface import Interface
from reluctant.interface.gradient_kinds import trusted, undefined_at
from reluctant.interface.health import examine as examine_health
from reluctant.interface.kinds import IntegerKind, Shape, classify_integers
from reluctant.interface.noise import refuse_labels
from reluctant.interface.reach import (
    answers_labels,
    clipped_inputs,
    enough_inside_bounds,
    exact_refusal,
    few_digits_are_enough,
    find_link,
    has_noticeable_noise,
    in_few_bits,
    is_rounded_inside,
    larger,
    readable_box,
    saturates,
    shows_too_little,
    smaller,
    too_few_digits,
    unsaturated_box,
)
from reluctant.messages import Diagnosis
from reluctant.messages.catalogue import GIVE_DOMAIN, ROWS_OF_USE, SPAN_FROM_LABELS, TRAIN_WITHOUT_LINK
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Noise, Rng, as_generator, unit_roundoff
from reluctant.oracles import Counting, Kind
from reluctant.oracles.explanations import Unexplained
from reluctant.oracles.input_units import (
    Box,
    InputUnits,
    changing_units,
    constant_columns,
    found_units,
    scaled_by,
    slope_ratio,
)
from reluctant.oracles.keywords import InputsKeywords
from reluctant.oracles.ledger import Limit
from reluctant.oracles.open import Target, in_units, opened_target
from reluctant.results import Outcome, Result, Run
from reluctant.verification.agreement import HeldOutRows, examine
from reluctant.verification.comparison import (
    EXACT_TOLERANCE,
    USE_POINTS,
    AcceptedError,
    compare_at_use,
    compare_where_readable,
)
from reluctant.verification.own_scales import compare_at_own_scales, units_around_middle
from reluctant.verification.points import PointCounts

ATTEMPTS = 4
# Of the rows before: typical inputs that a network of several layers is compared at, also outside its box. Inside, a
# unit that few of them turn off looks like one that is always on.
USE_SHARE = 0.12
POINTS_ELSEWHERE = 1024  # behind a link, of a network that another one made way for: rare errors show there
FITS = 2  # of rounded probabilities: a fit that fails twice rarely succeeds
# To probabilities in float32, after lines of their values: a wider layer seldom ends in a wrong place.
SINGLE_FIT = RoundedProbabilities(widths=(12, 40), starts=2, steps=150, patience=4, farthest=1.0, most_parameters=1400)
ARITHMETIC = "arithmetic"  # stage of an attempt whose own numbers ended it
OF_SCALES = (Outcome.PARTIAL, Outcome.UNVERIFIED)
OF_BLIND_QUESTIONS = (*OF_SCALES, Outcome.LOW_PRECISION, Outcome.OUT_OF_REACH)
OF_CONSTANTS = (Outcome.CONSTANT, Outcome.PIECEWISE_CONSTANT)
ENOUGH_LEFT = 0.2  # of the budget, for another attempt after one that the budget has refused rows
FEWEST_LEFT = 10_000  # rows: with fewer, what the first attempt has found says more
WIDER_BOX_ROWS = 2.0  # times what was asked before: few digits next to the corners can make a search endless
INSIDE = "Use rl.DepthTwo(), which stays inside, or leave the domain out if the target answers everywhere."
IN_STEPS = Diagnosis("link-in-steps", remedies=(TRAIN_WITHOUT_LINK, SPAN_FROM_LABELS))

Ending: TypeAlias = tuple[Outcome, ReLUNetwork | None]


def extract(
    oracle: Target,
    method: Method | None = None,
    *,
    labels: bool = False,
    rng: Rng = 0,
    attempts: int = ATTEMPTS,
    seconds: float | None = None,
    **opening: Unpack[InputsKeywords],
) -> Result:
    """Recover the network behind a target exactly, verify it, or say why not.

    Arguments:
        oracle: the target: an oracle, or anything that `open_oracle` takes.
        method: the method. By default `extract` tries the cheapest one first, and goes on until a network verifies.
        labels: use labels alone: the largest of several outputs, or one output at the threshold 0.5.
        rng: seed of all random choices.
        attempts: most attempts, each with other random choices or the next method. Cheap attempts of the last method
            do not count.
        seconds: most processor time. The result has what was found until then. No limit by default.
        opening: keywords of `open_oracle`, for this call: dim, budget, link, ...

    Cost: about as many answers as the network has parameters, verification included. A row brings one answer for
    each output. Without a budget there is no limit.
    """
    if attempts < 1:
        raise InvalidInput.about("attempts", got=attempts, expected="at least 1")
    if method is not None and not isinstance(method, Method):
        raise InvalidInput.about(
            "method", got=repr(method), expected="a method object",
            fix="Pass rl.DepthTwo(), or an object of your own subclass of rl.Method.",
        )  # fmt: skip
    if labels and not (method is None or method.reads_labels):
        raise InvalidInput.about(
            "labels", got=f"True with {type(method).__name__}", expected="it alone, or with rl.FromLabels()"
        )
    method = FromLabels() if labels and method is None else method
    with opened_target(oracle, opening, seconds) as opened:
        domain = opened.facts.domain
        if method is not None and method.needs_space and not domain.is_space:
            raise InvalidInput.about(
                "domain", got=domain.describe(), expected=f"all of space for {type(method).__name__}",
                fix=INSIDE,
            )  # fmt: skip
        target, units = in_units(opened)
        run = Run[PartialNetwork | None].begin(target, "extract", rng, None)
        constant = constant_columns(opened.facts.samples)
        run.evidence |= {"constant columns": constant} if constant else {}
        search = Extraction(run, method, as_generator(rng))
        ending = run.finish(lambda: search.go(attempts), lambda outcome: (outcome, search.partial))
        return search.result(*ending).with_classes(run.oracle).in_inputs_of(units or search.units)


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
class Extraction:
    """The search of one call of `extract`. `run.partial` is a part of the network, of the last attempt that had any."""

    run: Run[PartialNetwork | None]
    method: Method | None
    rng: np.random.Generator
    found: Findings = field(default_factory=Findings)
    tried: Attempts = field(default_factory=Attempts)
    shows: Shows = Shows.NOTHING  # of the last attempt that failed in a stage
    lines: tuple[SearchedLine, ...] = ()  # searched by it
    first: OrientedHyperplanes | None = None  # the first layer, of one that showed more than two
    counterexamples: list[HeldOutRows] = field(default_factory=list)  # rows that spoke against earlier networks
    refused: BudgetExhausted | None = None  # of the first attempt that the budget ended
    units: InputUnits | None = None  # of the inputs, where questions have found them
    apart: FloatArray | None = None  # a row (1, d) in these units that has another answer than most

    def go(self, attempts: int) -> Ending:
        """As the target is; where that fails, in units of the inputs that its hyperplanes or questions show.

        Its columns may be of different sizes, or far from the origin, or it may change at few inputs alone.
        """
        oracle = self.run.oracle
        outcome, network = self.go_and_compare(attempts)
        units = self.other_units(oracle, outcome)
        if units is None:
            self.found.elsewhere = self.inputs_elsewhere(outcome)
            return outcome, network
        before = self.found, self.run.partial, self.run.oracle, self.tried
        self.found, self.run.partial, self.shows, self.first = Findings(), None, Shows.NOTHING, None
        self.run.oracle, self.tried, self.counterexamples = scaled_by(oracle, units), Attempts(), []
        self.apart = np.zeros((1, oracle.dim)) if outcome in OF_CONSTANTS else None  # `changing_units` are around it
        self.units, stay, whole, noise = units, False, before[0].network is not None, before[0].interface.noise
        try:
            again = self.go_and_compare(attempts)
            found = again[1] if again[0] is Outcome.RECOVERED else None
            stay = self.found.interface.trees  # which are no network anywhere
            stay = stay or (found is not None and self.holds_as_asked(before[2], units.network(found), noise))
        except BudgetExhausted:
            stay = not whole  # a network in these units says more than a part
            raise
        finally:
            if not stay:
                self.found, self.run.partial, self.run.oracle, self.tried = before
                self.units = None
        if not stay:
            self.found.elsewhere = self.inputs_elsewhere(outcome)
            return outcome, network
        if not self.found.interface.trees:
            self.found.unit_ratio = float(units.scale.max() / units.scale.min())
        return again

    def other_units(self, oracle: Counting, outcome: Outcome) -> InputUnits | None:
        """Units in which another search may find more, after one that ended so."""
        if self.found.interface.trees:
            return None
        if outcome in OF_CONSTANTS and self.knows_no_inputs(oracle, refused=True) and self.method is None:
            return changing_units(oracle, self.rng.spawn(1)[0])
        searched = outcome in OF_SCALES and self.method is None and oracle.explained is None
        if not (searched and asks_blindly(oracle)):
            return None
        known = self.partial
        middle = None if known is None else units_around_middle(known, self.rng.spawn(1)[0])
        if middle is not None or not self.knows_no_inputs(oracle):
            return middle
        return found_units(oracle, self.rng.spawn(1)[0], uneven=self.found.own_scales is not None)

    def inputs_elsewhere(self, outcome: Outcome) -> Diagnosis | None:
        """What shows that inputs are not where questions were asked, after a search that ended so; None if nothing."""
        oracle, own, raw = self.run.oracle, self.found.own_scales, self.found.interface.raw
        if self.found.reason is not None or not asks_blindly(oracle):
            return None
        if own is not None and not own.ok:
            found = Diagnosis("agrees-near-origin", {"middle": own.is_around_middle, "ratio": own.ratio})
        elif outcome in OF_BLIND_QUESTIONS and (
            self.reads_link_blindly(oracle) or (outcome in OF_SCALES and self.knows_no_inputs(oracle))
        ):
            ended_in = oracle.ledger.last_stage
            ratio = slope_ratio(oracle, self.found.interface.noise)
            oracle.ledger.last_stage = ended_in
            if ratio is not None:
                found = Diagnosis("columns-unlike", {"ratio": ratio, "outcome": outcome.slug})
            elif (
                outcome is Outcome.OUT_OF_REACH and raw is not None and raw.certain and self.reads_link_blindly(oracle)
            ):
                found = Diagnosis("certain-near-origin")
            else:
                return None
        else:
            return None
        self.found.reason = replace(found, remedies=(ROWS_OF_USE, GIVE_DOMAIN))
        return self.found.reason

    def holds_as_asked(self, oracle: Counting, network: ReLUNetwork, noise: Noise) -> bool:
        """True if a network found in other units agrees in the inputs' own ones too. Cost: 188 rows, 1024 of a link."""
        counts = PointCounts(points=20, per_neuron=0, at_use=128, on_lines=0)
        if oracle.facts.saturates:
            return compare_where_readable(
                oracle, network, Domain().sample(self.rng, POINTS_ELSEWHERE, oracle.dim), EXACT_TOLERANCE
            ).ok
        return examine(oracle, network, self.rng, counts, AcceptedError(noise=noise)).ok

    def go_and_compare(self, attempts: int) -> Ending:
        """As asked; also compared at rows of the columns' own sizes and around the middle of the hyperplanes.

        Where columns are unlike, or hyperplanes far, and no rows of the inputs are known.
        """
        outcome, network = self.go_as_asked(attempts)
        checked, oracle = self.found.network, self.run.oracle
        if outcome is not Outcome.RECOVERED or network is None or checked is None:
            return outcome, network
        tol, raw = checked.value_check, self.found.interface.raw
        if tol is None or not (self.knows_no_inputs(oracle) or self.reads_link_blindly(oracle)):
            return outcome, network
        try:
            noise = self.found.interface.noise.relative if raw is None else unit_roundoff(raw.number_format)
            found = compare_at_own_scales(oracle, network, deepcopy(self.rng), checked.most_tolerance, noise, tol.bound)
        except BudgetExhausted:
            self.run.keep(network)
            raise
        except (NonFiniteAnswer, TargetError):  # it does not answer at such rows: there is nothing to be wrong
            return outcome, network
        self.found.own_scales = found
        if found is None or found.ok:
            return outcome, network
        self.found.fail(f"verification: {found}")
        self.found.network = checked.doubted_by(found.check)
        return Outcome.UNVERIFIED, network

    def knows_no_inputs(self, oracle: Counting, *, refused: bool = False) -> bool:
        """True if nothing is known of the inputs of a target that answers values. refused: by its health, or not."""
        health = self.found.interface
        values = health.answers is Kind.VALUES and health.raw is None
        return asks_blindly(oracle) and values and (health.refusal is not None) == refused

    def reads_link_blindly(self, oracle: Counting) -> bool:
        """True if nothing is known of the inputs of a target whose values are read, not rounded, behind a link."""
        raw = self.found.interface.raw
        return asks_blindly(oracle) and raw is not None and not raw.too_coarse and raw.decimals is None

    def go_as_asked(self, attempts: int) -> Ending:
        """Extract where and as far as the target allows; from values alone where some gradient is no number."""
        oracle = self.run.oracle
        try:
            return self.go_where_it_allows(attempts)
        except NonFiniteGradient as error:
            reason = undefined_at(error)
        self.run.oracle, self.tried = oracle.around(Unexplained(oracle.inner)), Attempts()
        self.found, self.shows, self.counterexamples = Findings(gradients=reason), Shows.NOTHING, []
        return self.go_where_it_allows(attempts)

    def go_where_it_allows(self, attempts: int) -> Ending:
        """Look at the target's health, then extract where and as far as it allows."""
        place = Place(self.run.oracle, examine_health(self.run.oracle, self.rng, apart=self.apart))
        self.found.enter(place.health, place.own_box)
        if not self.reads_labels:
            place = self.with_trusted_gradients(self.behind_link(place))
        affine = self.verified_map(place)
        if affine is not None:
            return Outcome.RECOVERED, affine
        if self.method is None and (answers_labels(place.health) or labels_apart(place, self.rng)):
            self.method = FromLabels()
        if self.reads_labels:
            return self.try_methods(place, attempts, few_digits=False)
        refusal = exact_refusal(place.health)
        if place.is_rounded:
            may = self.may_read_rounded and place.may_be_fitted
            return self.try_methods(place, min(attempts, FITS), True) if may else (Outcome.LOW_PRECISION, None)
        if saturates(place.health, place.oracle.facts) and not (self.method is not None and self.method.needs_space):
            find_box = unsaturated_box if refusal is Outcome.OUT_OF_REACH else readable_box
            box = find_box(place.oracle, self.rng)
            if self.method is not None or not place.may_be_fitted:
                return self.go_inside(place, box, attempts)
            ending = self.go_inside(place, box, 1)  # lines of values once: a fit to probabilities takes fewer rows
            if ending[0] is not Outcome.LOW_PRECISION:
                return ending
            if self.shows is Shows.BENT_CREASES:  # a fit of one hidden layer would be vain
                return self.go_inside_again(place, box, attempts)
            return self.fitted(place) or (self.go_inside_again(place, box, attempts - 1) if attempts > 1 else ending)
        return self.go_on(place, attempts)

    @property
    def reads_labels(self) -> bool:
        """True if a method for labels was asked for, or chosen."""
        return self.method is not None and self.method.reads_labels

    @property
    def may_read_rounded(self) -> bool:
        """True if no method was asked for that lines of rounded probabilities say nothing to."""
        return self.method is None or self.method.reads_rounded

    def with_trusted_gradients(self, place: Place) -> Place:
        """The same, without gradients that are none; the findings say what they are."""
        if place.health.refusal is not None or place.oracle.explained is None:
            return place
        oracle, reading = trusted(place.oracle, self.rng.spawn(1)[0])
        if reading is not None and reading.diagnosis is not None:
            self.found.gradients = reading.diagnosis
        return replace(place, oracle=oracle)

    def behind_link(self, place: Place) -> Place:
        """The same, or the values behind the link that its answers show."""
        read = find_link(place.oracle, place.health, self.rng, coarse=self.may_read_rounded)
        if read is None:
            return place
        self.run.oracle, self.found.link = read.oracle, read
        place = Place(read.oracle, read.health)
        self.found.enter(place.health, place.own_box)
        return place

    def go_on(self, place: Place, attempts: int) -> Ending:
        """Refuse, or try what the digits allow."""
        affine = self.verified_map(place) if place.box is not None else None
        if affine is not None:
            return Outcome.RECOVERED, affine
        refusal = exact_refusal(place.health)
        few_digits = refusal is Outcome.LOW_PRECISION and self.may_use_few_digits(place)
        if refusal is not None and not few_digits:
            return refusal, None
        outcome, network = self.try_methods(place, attempts, few_digits)
        astray = outcome in OF_SCALES  # a range that inputs are clipped to hides no digits
        if astray or (outcome is Outcome.LOW_PRECISION and enough_inside_bounds(place.health)):
            clipped = clipped_inputs(place.oracle, place.health, outcome, self.rng)
            if clipped is not None:
                self.found.clipped, self.found.reason = clipped, clipped.reason
        return outcome, network

    # ---- inside a box

    def go_inside(self, space: Place, box: Domain | None, attempts: int) -> Ending:
        """Inside a box in which no probability saturates; a smaller one where some do, a larger one that shows more."""
        most_boxes = 3  # each smaller than the one before, until no probability saturates
        health = space.health
        for boxes_left in reversed(range(most_boxes)):
            if box is None:
                break
            place = self.inside(space.oracle, box)
            self.found.enter(place.health, place.own_box)
            health = place.health
            try:
                outcome, network = self.look_inside(place, attempts)
            except NonFiniteAnswer:
                if not boxes_left:
                    raise
                box = smaller(box)
                continue
            if shows_too_little(outcome, health) and not self.found.failures:
                self.found.reason = None
                box = larger(box)
                continue
            checked = self.found.network
            if network is None or checked is None or outcome not in (Outcome.RECOVERED, Outcome.UNVERIFIED):
                return outcome, network
            return self.beyond_the_box(space.oracle, box, checked)
        refuse_labels(space.oracle)
        unreadable = in_few_bits(health) and unsaturated_box(space.oracle, self.rng) is not None
        return (Outcome.LOW_PRECISION if unreadable else Outcome.OUT_OF_REACH), None

    def fitted(self, space: Place) -> Ending | None:
        """A network fitted to probabilities in float32, where no line of values was read; None if none verifies."""
        before = self.found.failures or []
        self.method = SINGLE_FIT
        try:
            outcome, network = self.try_methods(space, 1, few_digits=True)
        finally:
            self.method, self.found.failures = None, [*before, *(self.found.failures or [])]
        if outcome is not Outcome.RECOVERED:
            return None
        self.found.inside = None
        return outcome, network

    def go_inside_again(self, space: Place, box: Domain | None, attempts: int) -> Ending:
        """The same once more; earlier failures stay in the findings."""
        before = self.found.failures or []
        try:
            return self.go_inside(space, box, attempts)
        finally:
            self.found.failures = [*before, *(self.found.failures or [])]

    def look_inside(self, place: Place, attempts: int) -> Ending:
        """Refuse, or try what the digits allow; those of values behind a link may be fewer than lines show."""
        if not is_rounded_inside(place.oracle, self.rng):
            return self.go_on(place, attempts)
        self.found.reason = self.found.reason if in_few_bits(place.health) else IN_STEPS
        return Outcome.LOW_PRECISION, None

    def inside(self, space: Counting, box: Domain) -> Place:
        """The target asked inside a box alone."""
        oracle = Counting(space.inner, space.ledger, box)
        return Place(oracle, examine_health(oracle, self.rng), box)

    def beyond_the_box(self, space: Counting, box: Domain, found: CheckedNetwork) -> Ending:
        """Recovered if it holds at typical inputs, or one from a wider box does; else the first one, unverified.

        One that is in doubt inside its box stays so, and is held against typical inputs as well.
        """
        doubted, failures = found.doubt is not None, self.found.failures
        found = self.found.network = self.at_use(space, box, found)
        if doubted or found.verification.ok:
            return (Outcome.UNVERIFIED if doubted else Outcome.RECOVERED), found.network
        self.found.fail(f"verification: {found.verification}")
        if found.precision is not None and found.network.depth > 2:  # exact methods of several layers lack the digits
            return Outcome.UNVERIFIED, found.network
        better = self.from_wider_boxes(space, box, DepthTwo() if found.network.depth == 2 else DeepInBox())
        if better is None:
            return Outcome.UNVERIFIED, found.network
        place, found = better
        self.found.enter(place.health, place.own_box)
        self.found.failures, self.found.network = failures, found
        return Outcome.RECOVERED, found.network

    def from_wider_boxes(self, space: Counting, box: Domain, method: Method) -> tuple[Place, CheckedNetwork] | None:
        """One attempt inside each, with this method; None if none gives a network that holds at typical inputs."""
        wider_boxes = (2.0, 4.0)  # times the box whose network does not hold at typical inputs

        def refusal(wanted: int, most: float) -> StageFailed:
            return StageFailed("wider box", "many more rows than all before", number=wanted, limit=most)

        within = Limit(WIDER_BOX_ROWS * space.ledger.total.asked, refusal=refusal).of(space)
        for times in wider_boxes:
            wider = Domain(times * np.asarray(box.low), times * np.asarray(box.high))
            try:
                place = self.inside(within, wider)
                found = self.attempt(place, self.method or method, self.rng)
                if found.doubt is not None:
                    continue
                found = self.at_use(within, wider, found, POINTS_ELSEWHERE)
            except OutsideDomain:
                raise
            except (StageFailed, NonFiniteAnswer, InvalidRows, InvalidWeights):
                return None
            if found.verification.ok:
                return place, found
        return None

    def at_use(self, space: Counting, box: Domain, found: CheckedNetwork, points: int = USE_POINTS) -> CheckedNetwork:
        """The same, compared at so many typical inputs too; at more for several hidden layers."""
        tol, several = found.at_use_tolerance, found.network.depth > 2
        if tol is None:
            return found
        count = max(points, int(USE_SHARE * space.ledger.total.asked)) if several else points
        return found.beside(compare_at_use(space, found.network, box, tol, self.rng, count))

    # ---- attempts

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
                self.shows, self.lines, self.first = failure.shows, failure.lines, failure.first
                self.counterexamples += [] if failure.against is None else [failure.against]
                self.run.keep(failure.partial or self.run.partial)
                if failure.outcome is not None:
                    self.found.reason = failure.diagnosis or self.found.reason
                    return failure.outcome, self.partial
                continue
            except OutsideDomain:
                raise
            except (InvalidRows, InvalidWeights) as failure:  # of NaN, from creases that are none: the method's own
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
        noisy = has_noticeable_noise(place.health) and self.may_use_few_digits(place)
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
        return few_digits_are_enough(place.health, place.oracle.facts) and allowed

    def may_be_affine(self, place: Place) -> bool:
        """True if all short lines were straight, and no other method was asked for.

        Within bounds that a user has set, all digits find a bend in any corner of them: `DepthTwo` looks for those.
        """
        straight = place.health.shape is Shape.AFFINE and place.health.refusal is None
        facts = place.oracle.facts
        anywhere = facts.domain.is_space or facts.saturates or exact_refusal(place.health) is not None
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

    def attempt(self, place: Place, method: Method, rng: np.random.Generator) -> CheckedNetwork:
        """The network of one run of a method, with its checks; numbers that its arithmetic cannot cope with end it."""
        try:
            candidate = method.run(place.oracle, place.noise, rng, self.run.keep)
            known = [] if place.box is not None else self.counterexamples  # another box may not hold them
            found = hold_against(
                place.oracle, candidate, place.health.noise, place.noise, lambda: self.run.rows, rng, known,
                self.found.layers,
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

    # ---- the end

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
        if outcome is Outcome.OUT_OF_REACH and found.health is not None and self.reads_link_blindly(self.run.oracle):
            # Columns of another size saturate near the origin: what helps most are rows.
            remedies = (ROWS_OF_USE, GIVE_DOMAIN, TRAIN_WITHOUT_LINK, SPAN_FROM_LABELS)
            found.reason = found.reason or replace(outcome.diagnosis, remedies=remedies)
        evidence = found.evidence() | self.run.evidence
        if self.tried.entries:
            evidence["attempts"] = self.tried
        if top is not None and network is self.part:
            evidence["fitted top"] = top
        views = {f"{stage} search": view for stage, view in self.run.oracle.ledger.views.items()}
        return self.run.result(outcome, network, evidence | views)


def asks_blindly(oracle: Counting) -> bool:
    """True if nothing is known of the inputs of a target: no rows, and no bounds."""
    return oracle.facts.samples is None and oracle.facts.domain.is_space and oracle.dim > 1


def labels_apart(place: Place, rng: np.random.Generator) -> bool:
    """True if whole numbers are labels where the first look left it open.

    They did not change along a few lines, and are a few labels at other inputs; or the first paths between them did not
    tell labels from rounded values. Cost: 64 rows, and 240 for each time that paths are searched again.
    """
    inputs, most_labels, tries, health, oracle = 64, 16, 3, place.health, place.oracle
    open_ = health.shape is Shape.PIECEWISE_CONSTANT and health.integers is IntegerKind.UNDECIDED
    if not (open_ or health.shape is Shape.CONSTANT) or oracle.outputs > 1:
        return False
    with oracle.stage("look"):
        rows = oracle.facts.domain.sample(rng, inputs, oracle.dim)
        answers = oracle.query(rows)
        if not (1 < len(np.unique(answers)) <= most_labels and are_whole_numbers(answers)):
            return False
        kinds = (classify_integers(oracle.query, rows, answers, rng) for _ in range(tries))
        return not open_ or any(kind in (None, IntegerKind.LABELS) for kind in kinds)

"""`extract`: the order of attempts, the domain of each, and the verification of its network.

The interface decides: exact weights, few digits, inside a box, or a refusal. The cheapest method that its digits and
its range allow runs first. A network counts as recovered only after verification on and beside its creases; otherwise
the next attempt has other random choices or the next method. Behind a link that saturates, everything happens inside
a box. Prospects cost no query; only the search for a range that inputs are clipped to does, after a run in all of
space that did not recover the network: up to 1002 rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from itertools import repeat
from traceback import walk_tb
from typing import Any, TypeAlias, Unpack

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import (
    BudgetExhausted,
    InvalidInput,
    InvalidRows,
    InvalidWeights,
    LinkMismatch,
    NonFiniteAnswer,
    OutsideDomain,
    ReluctantError,
    TargetError,
    TimeExhausted,
)
from reluctant.extraction.affine import Affine
from reluctant.extraction.any_depth import AnyDepth, DeepInBox, LayerLimits
from reluctant.extraction.any_position import AnyPosition
from reluctant.extraction.bounded.method import STRAIGHT
from reluctant.extraction.deep_few_digits import FewDigitsDeep
from reluctant.extraction.deep_few_digits.first_hyperplanes import WIDTH
from reluctant.extraction.deep_gradients import GradientLayers
from reluctant.extraction.depth_three import DepthThree
from reluctant.extraction.depth_two import DeeperLayers, DepthTwo, JumpLines
from reluctant.extraction.depth_two.main_pass import MAIN_PASS, WITNESS_CHECK
from reluctant.extraction.depth_two.method import BIASES
from reluctant.extraction.depth_two.scaffold import CROWD, PROBE
from reluctant.extraction.few_digits import FewDigits
from reluctant.extraction.few_digits.growth import LAYERS
from reluctant.extraction.from_labels import FromLabels
from reluctant.extraction.method import Candidate, Hybrid, Method, PartialNetwork, StageFailed, lifted
from reluctant.extraction.orientation import orient
from reluctant.extraction.rounded_probabilities import RoundedProbabilities
from reluctant.extraction.straight_creases import DeeperCreases, OrientedHyperplanes, look_for_layers
from reluctant.extraction.weak_neuron import with_weak_neuron
from reluctant.geometry import DistanceNoise
from reluctant.geometry.boundary import are_whole_numbers
from reluctant.geometry.jumps import SearchedLine
from reluctant.interface import Interface
from reluctant.interface.column_scales import changing_units, found_units
from reluctant.interface.gradient_kinds import trusted
from reluctant.interface.health import examine as examine_health
from reluctant.interface.kinds import IntegerKind, Shape, classify_integers
from reluctant.interface.noise import refuse_labels
from reluctant.interface.prospects import (
    answers_labels,
    enough_inside_bounds,
    exact_refusal,
    few_digits_are_enough,
    has_noticeable_noise,
    in_few_bits,
    saturates,
    shows_too_little,
    too_few_digits,
)
from reluctant.interface.reach import (
    clipped_range,
    find_link,
    is_rounded_inside,
    larger,
    readable_box,
    smaller,
    unsaturated_box,
)
from reluctant.messages import Diagnosis, Remedy
from reluctant.messages.catalogue import SPAN_FROM_LABELS, TRAIN_WITHOUT_LINK
from reluctant.networks import ReLUNetwork
from reluctant.numerics import Noise, Rng, as_generator
from reluctant.oracles import Counting, Kind, Oracle, Rows
from reluctant.oracles.input_units import Box, InputUnits, in_own_units, in_units, scaled_by
from reluctant.oracles.keywords import InputsKeywords
from reluctant.oracles.ledger import Limit
from reluctant.oracles.open import Target, opened_target
from reluctant.results import Outcome, Result, Run
from reluctant.verification.agreement import LINE_POINTS, HeldOutRows, Verification, examine, examine_by_gradients
from reluctant.verification.comparison import MOST_TOLERANCE, AtUse, compare_at_use
from reluctant.verification.label_check import LabelVerification
from reluctant.verification.own_scales import compare_at_own_scales
from reluctant.verification.precision import PrecisionCheck, examine_precision

ATTEMPTS = 4
FITS = 2  # of rounded probabilities: a fit that fails twice rarely succeeds
ARITHMETIC = "arithmetic"  # stage of an attempt whose own numbers ended it
OF_SCALES = (Outcome.PARTIAL, Outcome.UNVERIFIED)
OF_CONSTANTS = (Outcome.CONSTANT, Outcome.PIECEWISE_CONSTANT)
ENOUGH_LEFT = 0.2  # of the budget, for another attempt after one that the budget has refused rows
FEWEST_LEFT = 10_000  # rows: with fewer, what the first attempt has found says more


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
    """Recover the network behind an oracle exactly, or say by which outcome it was not recovered.

    Arguments:
        oracle: the target: an oracle, or anything that `open_oracle` takes.
        method: how to look for it; None takes the cheapest that verifies: two layers, three, any number. Where the
            target answers labels it is `FromLabels`.
        labels: use nothing but labels, as `FromLabels()` does: the largest of several outputs, or one at 0.5.
        rng: seed of all random choices.
        attempts: how often it may be tried, with other random choices or the next method; cheap attempts of the last
            method do not count.
        seconds: processor time; what was found until then is kept. No limit without it, nor on rows without a budget.
        opening: keywords of `open_oracle`, for this call: dim, budget, link, ...

    Cost: about as many answers as the network has parameters, verification included; a row brings one answer for
    each output.
    """
    if attempts < 1:
        raise InvalidInput.about("attempts", got=attempts, expected="at least 1")
    if method is not None and not isinstance(method, Method):
        raise InvalidInput.about(
            "method", got=repr(method), expected="a method object",
            fix="Pass rl.DepthTwo(), or an object of your own subclass of rl.Method.",
        )  # fmt: skip
    if labels and not (method is None or isinstance(method, FromLabels)):
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
        search = Extraction(run, method, as_generator(rng))
        ending = run.finish(lambda: search.go(attempts), lambda outcome: (outcome, search.partial))
        return search.result(*ending).with_classes(run.oracle).in_inputs_of(units or search.units)


INSIDE = "Use rl.DepthTwo(), which stays inside, or leave the domain out if the target answers everywhere."
HEALTH_LINES = 4
HIDDEN_SHARE = 0.7  # of a neuron's crossings of lines, where units that are off hide the others
WIDER_BOX_ROWS = 2.0  # times what was asked before: few digits next to the corners can make a search endless

Ending: TypeAlias = tuple[Outcome, ReLUNetwork | None]


@dataclass(frozen=True)
class Place:
    """Where the target is asked, in all of its domain or inside a box of it, and what its answers are like there."""

    oracle: Counting
    health: Interface
    box: Domain | None = None

    @property
    def noise(self) -> DistanceNoise:
        """Noise of an answer by distance from the origin; none is read where rounding leaves answers certain."""
        return DistanceNoise.of(self.health, self.oracle.dim) if self.health.readings else DistanceNoise(0.0, 0.0)

    def evidence(self) -> dict[str, Any]:
        """For the result."""
        if self.box is None:
            return {"health": self.health}
        return {"health": self.health, "inside": Box.of(self.oracle, self.box)}


@dataclass(frozen=True)
class Attempt:
    """One run of a method: its name, the rows it asked for, the stage it ended in, and the number that ended it.

    raised: type of the exception, where its arithmetic failed.
    """

    method: str
    rows: int
    stage: str
    number: float | None = None
    limit: float | None = None
    raised: str = ""

    def __str__(self) -> str:
        why = "" if self.number is None or self.limit is None else f" ({self.number:.2g}, limit {self.limit:.2g})"
        return f"{self.method}: {self.rows} rows, ended in stage {self.stage or 'start'}{why}"


@dataclass
class Attempts:
    """What was tried, in order."""

    entries: list[Attempt] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(map(str, self.entries))

    @contextmanager
    def entry(self, method: Method, run: Run[Any]) -> Iterator[None]:
        """Enter one attempt, however it ends."""
        before, number, limit, stage, raised = run.rows.asked, None, None, "", ""
        try:
            yield
        except StageFailed as failure:
            number, limit, stage, raised = failure.number, failure.limit, failure.stage, failure.raised
            raise
        finally:
            rows = run.rows.asked - before
            self.entries.append(Attempt(type(method).__name__, rows, stage or run.stage, number, limit, raised))

    def last_was_cheap(self, attempts: int) -> bool:
        """True if the last method has had fewer attempts, with less than half of the rows of all methods."""
        same = [entry.rows for entry in self.entries if entry.method == self.entries[-1].method]
        return len(same) < attempts and 2 * sum(same) <= sum(entry.rows for entry in self.entries)

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain data for JSON."""
        return [asdict(entry) for entry in self.entries]


@dataclass
class Extraction:
    """The search of one call of `extract`. `run.partial` is a part of the network, of the last attempt that had any."""

    run: Run[PartialNetwork | None]
    method: Method | None
    rng: np.random.Generator
    stuck: str = ""  # stage that the last attempt failed in
    last: CheckedNetwork | None = None  # the last whole network that was held against the target
    tried: Attempts = field(default_factory=lambda: Attempts())
    counterexamples: list[HeldOutRows] = field(default_factory=list)  # rows that spoke against earlier networks
    refused: BudgetExhausted | None = None  # of the first attempt that the budget ended
    units: InputUnits | None = None  # of the inputs, where questions have found them
    searched: tuple[SearchedLine, ...] = ()  # lines of the last attempt, which showed deeper layers
    first: OrientedHyperplanes | None = None  # the first layer, of a last attempt that showed deeper ones

    def go(self, attempts: int) -> Ending:
        """As the target is; where that fails, in units of the inputs that are found by questions.

        Its columns may be of different sizes, or it may change at few inputs alone.
        """
        oracle = self.run.oracle
        outcome, network = self.go_and_compare(attempts)
        units = self.other_units(oracle, outcome)
        if units is None:
            return outcome, network
        before = self.run.evidence, self.run.partial, self.run.oracle, self.last, self.tried
        self.run.evidence, self.run.partial, self.last, self.stuck = {}, None, None, ""
        self.run.oracle, self.tried, self.counterexamples = scaled_by(oracle, units), Attempts(), []
        self.units, stay, whole = units, False, before[3] is not None
        try:
            again = self.go_and_compare(attempts)
            found = again[1] if again[0] is Outcome.RECOVERED else None
            stay = found is not None and self.holds_as_asked(oracle, units.network(found), before[0]["health"].noise)
        except BudgetExhausted:
            stay = not whole  # a network in these units says more than a part
            raise
        finally:
            if not stay:
                self.run.evidence, self.run.partial, self.run.oracle, self.last, self.tried = before
                self.units = None
        if not stay:
            return outcome, network
        self.run.evidence["found units"] = float(units.scale.max() / units.scale.min())
        return again

    def other_units(self, oracle: Counting, outcome: Outcome) -> InputUnits | None:
        """Units in which another search may find more, after one that ended so."""
        if outcome in OF_CONSTANTS and self.knows_no_inputs(oracle, refused=True) and self.method is None:
            return changing_units(oracle, self.rng.spawn(1)[0])
        if outcome not in OF_SCALES or not self.may_look_for_units(oracle):
            return None
        return found_units(oracle, self.rng.spawn(1)[0], uneven="own scales" in self.run.evidence)

    def holds_as_asked(self, oracle: Counting, network: ReLUNetwork, noise: Noise) -> bool:
        """True if a network found in other units agrees in the inputs' own ones too. Cost: 188 rows, one a neuron."""
        at_scales, at_use = 20, 128
        return examine(
            oracle, network, self.rng, noise=noise, points=at_scales, at_use=at_use, on_lines=0, per_neuron=0,
        ).ok  # fmt: skip

    def go_and_compare(self, attempts: int) -> Ending:
        """As asked; a network of unlike columns is also compared at rows of their own sizes, if no others are known."""
        outcome, network = self.go_as_asked(attempts)
        if outcome is not Outcome.RECOVERED or network is None or self.last is None:
            return outcome, network
        oracle = self.run.oracle
        if not self.knows_no_inputs(oracle) or not isinstance(self.last.verification, Verification):
            return outcome, network
        try:
            noise = self.run.evidence["health"].noise.relative
            found = compare_at_own_scales(oracle, network, deepcopy(self.rng), self.last.most_tolerance, noise)
        except BudgetExhausted:
            self.run.keep(network)
            raise
        except (NonFiniteAnswer, TargetError):  # it does not answer at such rows: there is nothing to be wrong
            return outcome, network
        if found is None:
            return outcome, network
        self.run.evidence["own scales"] = found
        if found.ok:
            return outcome, network
        self.run.evidence["failures"].append(f"verification: {found}")
        self.take(replace(self.last, verification=found))
        return Outcome.UNVERIFIED, network

    def knows_no_inputs(self, oracle: Counting, *, refused: bool = False) -> bool:
        """True if nothing is known of the inputs of a target that answers values. refused: by its health, or not."""
        facts, health = oracle.facts, self.run.evidence["health"]
        unknown = facts.samples is None and facts.domain.is_space and facts.dim > 1
        return (
            unknown and health.answers is Kind.VALUES and health.raw is None and (health.refusal is not None) == refused
        )

    def may_look_for_units(self, oracle: Counting) -> bool:
        """True if nothing is known of the inputs, no method was asked for, and there are no gradients."""
        return self.knows_no_inputs(oracle) and self.method is None and oracle.explained is None

    def go_as_asked(self, attempts: int) -> Ending:
        """Look at the target's health, then extract where and as far as it allows."""
        place = Place(self.run.oracle, examine_health(self.run.oracle, self.rng, HEALTH_LINES))
        self.run.evidence |= place.evidence()
        if not isinstance(self.method, FromLabels):
            place = self.with_trusted_gradients(self.behind_link(place))
        affine = self.verified_map(place)
        if affine is not None:
            return Outcome.RECOVERED, affine
        if self.method is None and (answers_labels(place.health) or labels_apart(place, self.rng)):
            self.method = FromLabels()
        if isinstance(self.method, FromLabels):
            return self.try_methods(place, attempts, few_digits=False)
        refusal = exact_refusal(place.health)
        if place.health.raw is not None and place.health.raw.too_coarse:
            may = self.may_read_coarse and place.health.raw.may_be_fitted(place.oracle.outputs)
            return self.try_methods(place, min(attempts, FITS), True) if may else (Outcome.LOW_PRECISION, None)
        if saturates(place.health, place.oracle.facts) and not (self.method is not None and self.method.needs_space):
            find_box = unsaturated_box if refusal is Outcome.OUT_OF_REACH else readable_box
            return self.go_inside(place, find_box(place.oracle, self.rng), attempts)
        return self.go_on(place, attempts)

    def with_trusted_gradients(self, place: Place) -> Place:
        """The same, without gradients that are none; the evidence says what they are."""
        if place.health.refusal is not None or place.oracle.explained is None:
            return place
        oracle, reading = trusted(place.oracle, self.rng.spawn(1)[0])
        if reading is not None and reading.diagnosis is not None:
            self.run.evidence["gradients"] = reading.diagnosis
        return replace(place, oracle=oracle)

    @property
    def may_read_coarse(self) -> bool:
        """True if no method was asked for that lines of rounded probabilities say nothing to."""
        return self.method is None or isinstance(self.method, RoundedProbabilities)

    def behind_link(self, place: Place) -> Place:
        """The same, or the values behind the link that its answers show."""
        read = find_link(place.oracle, place.health, self.rng, HEALTH_LINES, coarse=self.may_read_coarse)
        if read is None:
            return place
        self.run.oracle = read.oracle
        self.run.evidence |= read.evidence()
        return Place(read.oracle, read.health)

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
        astray = outcome in (Outcome.PARTIAL, Outcome.UNVERIFIED)  # a range that inputs are clipped to hides no digits
        if astray or (outcome is Outcome.LOW_PRECISION and enough_inside_bounds(place.health)):
            self.run.evidence |= evidence_of_clipping(place.oracle, place.health, outcome, self.rng)
        return outcome, network

    def go_inside(self, space: Place, box: Domain | None, attempts: int) -> Ending:
        """Inside a box in which no probability saturates; a smaller one where some do, a larger one that shows more."""
        most_boxes = 3  # each smaller than the one before, until no probability saturates
        health, evidence = space.health, self.run.evidence
        for boxes_left in reversed(range(most_boxes)):
            if box is None:
                break
            place = self.inside(space.oracle, box)
            evidence |= place.evidence()
            health = place.health
            try:
                outcome, network = self.look_inside(place, attempts)
            except NonFiniteAnswer:
                if not boxes_left:
                    raise
                box = smaller(box)
                continue
            if shows_too_little(outcome, health) and not evidence.get("failures"):
                evidence.pop("reason", None)
                box = larger(box)
                continue
            if network is None or self.last is None or outcome not in (Outcome.RECOVERED, Outcome.UNVERIFIED):
                return outcome, network
            return self.beyond_the_box(space.oracle, box, self.last)
        refuse_labels(space.oracle)
        unreadable = in_few_bits(health) and unsaturated_box(space.oracle, self.rng) is not None
        return (Outcome.LOW_PRECISION if unreadable else Outcome.OUT_OF_REACH), None

    def look_inside(self, place: Place, attempts: int) -> Ending:
        """Refuse, or try what the digits allow; those of values behind a link may be fewer than lines show."""
        if not is_rounded_inside(place.oracle, self.rng):
            return self.go_on(place, attempts)
        self.run.evidence |= {} if in_few_bits(place.health) else {"reason": IN_STEPS}
        return Outcome.LOW_PRECISION, None

    def inside(self, space: Counting, box: Domain) -> Place:
        """The target asked inside a box alone."""
        oracle = Counting(space.inner, space.ledger, box)
        return Place(oracle, examine_health(oracle, self.rng, HEALTH_LINES), box)

    def try_methods(self, place: Place, attempts: int, few_digits: bool) -> Ending:
        """The methods in turn, until a network verifies; few_digits: exact methods would refuse the target."""
        failures = self.run.evidence["failures"] = []
        for generator, method in zip(self.generators(attempts), self.methods(place, few_digits), strict=False):
            try:
                with self.tried.entry(method, self.run):
                    found = self.attempt(place, method, generator)
            except BudgetExhausted as error:  # rows that were not sent may do for another start
                if not self.may_start_again(error):
                    raise self.refused or error from None
                failures.append(f"budget: {error}")
                self.refused = self.refused or error
                continue
            except StageFailed as failure:
                failures.append(str(failure))
                self.searched = failure.lines if isinstance(failure, DeeperLayers) else ()
                self.first = failure.first if isinstance(failure, DeeperCreases) else None
                self.run.keep(failure.partial or self.run.partial)
                self.stuck = failure.stage
                if failure.outcome is not None:
                    self.run.evidence |= {} if failure.diagnosis is None else {"reason": failure.diagnosis}
                    return failure.outcome, self.partial
                continue
            except OutsideDomain:
                raise
            except (InvalidRows, InvalidWeights) as failure:  # of NaN, from creases that are none: the method's own
                failures.append(f"{failure.slug}: {failure}")
                continue
            self.take(found)
            if found.doubt is None:
                return Outcome.RECOVERED, found.network
            failures.append(f"verification: {found.doubt}")
        if self.refused is not None:
            raise self.refused
        if few_digits:
            return Outcome.LOW_PRECISION, self.partial
        return (Outcome.PARTIAL if self.last is None else Outcome.UNVERIFIED), self.partial

    def generators(self, attempts: int) -> Iterator[np.random.Generator]:
        """One for each attempt; more for the last method of the ladder while its own attempts are few and cheap."""
        yield from self.rng.spawn(attempts)
        while self.tried.last_was_cheap(attempts):
            yield from self.rng.spawn(1)

    def may_start_again(self, error: BudgetExhausted) -> bool:
        """True if the budget refused many rows at once, and much of it is left for an attempt with other choices."""
        out_of_time = isinstance(error, TimeExhausted)
        return not out_of_time and error.budget - error.spent >= max(ENOUGH_LEFT * error.budget, FEWEST_LEFT)

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
        if found.doubt is not None:
            return None
        self.take(found)
        self.run.evidence["failures"] = []
        return found.network

    def may_use_few_digits(self, place: Place) -> bool:
        """Few digits are no refusal where a method for them can look, and no other was asked for."""
        method, explained = self.method, place.oracle.explained is not None
        allowed = method is None or method.few_digits or (explained and method.reads_gradients)
        return few_digits_are_enough(place.health, place.oracle.facts) and allowed

    def methods(self, place: Place, few_digits: bool) -> Iterator[Method]:
        """The method that was asked for, again and again; else a ladder, by what the creases look like."""
        more_directions = (3, 6, 12)  # of the attempts inside a box: more lines meet more creases
        in_space = place.oracle.facts.domain.is_space
        if self.method is not None:
            yield from repeat(self.method)
        explained = place.oracle.explained is not None
        if place.health.raw is not None and place.health.raw.too_coarse:
            yield RoundedProbabilities()
            yield from repeat(RoundedProbabilities(answers_each=8.0, fewest_rows=2400))
        if explained:
            yield from self.methods_for_gradients(place)
            if in_space and not few_digits and place.oracle.dim > 1:
                yield GradientLayers(begun=self.searched)
                if self.last is not None:  # lines through inputs that spoke against its network
                    yield GradientLayers(
                        through=np.array([row for found in self.counterexamples for row in found.rows])
                    )
        if has_noticeable_noise(place.health) and self.may_use_few_digits(place):
            yield FewDigits()
        if few_digits:
            yield from self.methods_for_few_digits() if in_space else map(FewDigits, more_directions)
            return
        if not explained:
            yield DepthTwo()
        part = self.part
        if part is not None and part.depth == 2 and part.widths[1] >= CROWD:
            yield DepthTwo()  # of other lines one may do, and what follows costs far more in a crowd
            if MAIN_PASS in self.run.spent() and self.stuck != WITNESS_CHECK:
                return  # one hidden layer explains the lines; only digits are missing
        if place.box is not None:
            yield from self.methods_in_own_box()
        if not in_space or place.oracle.dim == 1:
            yield from repeat(DepthTwo())
        kinds = self.run.evidence["layers"] = look_for_layers(place.oracle, place.noise, self.rng)
        if kinds.hopeless:
            return
        if not kinds.one_layer:
            yield DepthThree()
        if kinds.mostly_straight:
            if kinds.one_layer:
                yield DepthTwo()
            yield AnyPosition(fewest_neurons=kinds.creases)  # a few lines do not show all neurons apart
        if self.first is not None:
            yield AnyDepth(first=self.first)
        yield AnyDepth()  # a line may show no crease that bends, of layers that do
        yield from repeat(AnyDepth(search=LayerLimits(seen_share=HIDDEN_SHARE)))

    def methods_in_own_box(self) -> Iterator[Method]:
        """One hidden layer again, unless creases bend; then several. A box of the user's own allows one alone."""
        if self.stuck != STRAIGHT:
            yield DepthTwo()
        yield from repeat(DeepInBox())

    def methods_for_gradients(self, place: Place) -> Iterator[Method]:
        """One hidden layer; again, through inputs that spoke against the network before, if there are any."""
        again = 1 if place.oracle.facts.domain.is_space else 3  # a bound keeps lines from neurons of a corner
        yield DepthTwo()
        for _ in range(again):
            rows = [row for found in self.counterexamples for row in found.rows]
            rows = [row for row in rows if place.oracle.facts.domain.contains(row[None])]
            if rows:
                yield DepthTwo(by_gradients=JumpLines(through=np.array(rows)))

    def methods_for_few_digits(self) -> Iterator[Method]:
        """One hidden layer, until creases turn out to bend or do not explain inputs off their line; then two."""
        probes, most_probes = 0, 2  # one line may miss a neuron; two rarely do
        while self.stuck not in (LAYERS, BIASES) and probes < most_probes:
            yield FewDigits()
            probes += self.stuck == PROBE
        while self.stuck != WIDTH:
            yield FewDigitsDeep()

    def attempt(self, place: Place, method: Method, rng: np.random.Generator) -> CheckedNetwork:
        """The network of one run of a method, with its checks; numbers that its arithmetic cannot cope with end it."""
        try:
            return self.checked_network(place, method, rng)
        except ReluctantError:
            raise
        except (ArithmeticError, IndexError, ValueError) as error:  # LinAlgError is a ValueError
            if raised_by_oracle(error):
                raise
            reason = f"{type(error).__name__} in stage {self.run.stage or 'start'}: {error}"
            raise StageFailed(ARITHMETIC, reason, number=1, limit=0, raised=type(error).__name__) from error

    def checked_network(self, place: Place, method: Method, rng: np.random.Generator) -> CheckedNetwork:
        """The candidate of one run of a method, the right way round, held against the target."""
        candidate = method.run(place.oracle, place.noise, rng, self.run.keep)
        _check_given(candidate, place.oracle)
        if candidate.verification is not None:
            return CheckedNetwork(candidate.network, candidate, candidate.verification)
        network = orient(candidate.network, arrays=place.oracle.arrays)
        self.check_creases(network)
        known = [] if place.box is not None else self.counterexamples  # another box may not hold them
        found = check_candidate(place.oracle, network, candidate, place.health.noise, self.run.rows, rng, known)
        wider = None
        if found.is_close and place.oracle.facts.domain.is_space:
            wider = with_weak_neuron(place.oracle, network, place.noise, rng)
        if wider is not None:
            again = replace(candidate, network=wider, held_out=None)
            better = check_candidate(place.oracle, wider, again, place.health.noise, self.run.rows, rng, known)
            found = better if better.doubt is None else found
        if isinstance(found.verification, Verification) and found.verification.counterexamples is not None:
            self.counterexamples.append(found.verification.counterexamples)
        return found

    def check_creases(self, network: ReLUNetwork) -> None:
        """Refuse one hidden layer with fewer neurons than a line has creases that go straight on: each is one's."""
        seen = self.run.evidence.get("layers")
        if seen is not None and network.depth == 2 and network.widths[1] < seen.straight:
            reason = "fewer neurons than straight creases on a line"
            raise StageFailed("creases", reason, number=network.widths[1], limit=seen.straight, partial=network)

    def take(self, found: CheckedNetwork) -> None:
        """Remember a whole network; the evidence is of the last one."""
        self.last = found
        for stale in ("limits", "precision"):
            self.run.evidence.pop(stale, None)
        self.run.evidence |= found.evidence()

    def beyond_the_box(self, space: Counting, box: Domain, found: CheckedNetwork) -> Ending:
        """Recovered if it holds at typical inputs, or one from a wider box does; else the first one, unverified.

        One that is in doubt inside its box stays so, and is held against typical inputs as well.
        """
        doubted, failures = found.doubt is not None, self.run.evidence["failures"]
        found = self.at_use(space, box, found)
        self.take(found)
        if doubted or found.verification.ok:
            return (Outcome.UNVERIFIED if doubted else Outcome.RECOVERED), found.network
        self.run.evidence["failures"] = [*failures, f"verification: {found.verification}"]
        better = self.from_wider_boxes(space, box)
        if better is None:
            return Outcome.UNVERIFIED, found.network
        place, found = better
        self.run.evidence |= place.evidence() | {"failures": failures}
        self.take(found)
        return Outcome.RECOVERED, found.network

    def from_wider_boxes(self, space: Counting, box: Domain) -> tuple[Place, CheckedNetwork] | None:
        """One attempt inside each; None if none gives a network that holds at typical inputs."""
        wider_boxes = (2.0, 4.0)  # times the box whose network does not hold at typical inputs

        def refusal(wanted: int, most: float) -> StageFailed:
            return StageFailed("wider box", "many more rows than all before", number=wanted, limit=most)

        within = Limit(WIDER_BOX_ROWS * space.ledger.total.asked, refusal=refusal).of(space)
        for times in wider_boxes:
            wider = Domain(times * np.asarray(box.low), times * np.asarray(box.high))
            try:
                place = self.inside(within, wider)
                found = self.attempt(place, self.method or DepthTwo(), self.rng)
                if found.doubt is not None:
                    continue
                found = self.at_use(within, wider, found)
            except OutsideDomain:
                raise
            except (StageFailed, NonFiniteAnswer, InvalidRows, InvalidWeights):
                return None
            if found.verification.ok:
                return place, found
        return None

    def at_use(self, space: Counting, box: Domain, found: CheckedNetwork) -> CheckedNetwork:
        """The same, compared at typical inputs too. One that erred inside its box is held against that error."""
        checked = found.verification
        assert isinstance(checked, Verification)
        if checked.at_use is not None:
            return found
        tol = checked.tol if checked.ok else checked.bound
        return found.beside(compare_at_use(space, found.network, box, tol, self.rng))

    @property
    def part(self) -> ReLUNetwork | None:
        """The part that is known so far, as a function of the input itself."""
        return None if self.run.partial is None else lifted(self.run.partial)

    @property
    def partial(self) -> ReLUNetwork | None:
        """The best there is without a verified network: a whole one before a part, the one the evidence is of."""
        return self.part if self.last is None or self.last.doubt is None else self.last.network

    def result(self, outcome: Outcome, network: ReLUNetwork | None) -> Result:
        """How it ended, with the evidence and what stages show of their work."""
        evidence = self.run.evidence
        if self.tried.entries:
            evidence["attempts"] = self.tried
        if isinstance(self.run.partial, Hybrid) and network is self.run.partial.network:
            evidence["fitted top"] = self.run.partial.top
        if outcome is Outcome.LOW_PRECISION:
            why = too_few_digits(evidence["health"], tried=bool(evidence.get("failures")))
            evidence.setdefault("reason", why)
        views = {f"{stage} search": view for stage, view in self.run.oracle.ledger.views.items()}
        return self.run.result(outcome, network, views)


def _check_given(candidate: object, oracle: Counting) -> None:
    """Refuse what a user's own method cannot mean, by name."""
    if not isinstance(candidate, Candidate):
        raise InvalidInput.about(
            "method.run", got=type(candidate).__name__, expected="a Candidate", fix="Return rl.Candidate(network)."
        )
    widths = candidate.network.widths
    if candidate.verification is None and (widths[0], widths[-1]) != (oracle.dim, oracle.outputs):
        raise InvalidInput.about(
            "method.run", got=f"a network of {widths[0]} inputs and {widths[-1]} outputs",
            expected=f"{oracle.dim} and {oracle.outputs}, as the oracle has",
        )  # fmt: skip


FEW_NEURONS, FAR_POINTS = 32, 48  # parts of a few deeper neurons may look like one layer where random points are
POINTS_FOR_DEEP = 160  # deeper neurons are active in parts of space that few points meet
FEW_DIGITS_TOLERANCE = 0.1  # of the output's deviation: held-out answers have already been compared with the noise


def raised_by_oracle(error: BaseException) -> bool:
    """True if an exception came out of a question: an oracle of the user's own class is not our arithmetic."""
    return any(isinstance(frame.f_locals.get("self"), Oracle) for frame, _ in walk_tb(error.__traceback__))


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
        checked, exact = self.verification, self.candidate.precision is None and self.candidate.asked is None
        if not isinstance(checked, Verification) or not exact or self.network.depth <= 2:
            return False
        return not checked.ok and not checked.undecided and checked.max_error < little

    @property
    def most_tolerance(self) -> float:
        """The largest tolerance that decides: methods for few digits have compared lines with the noise before."""
        few = self.candidate.precision is not None or self.candidate.asked is not None
        return FEW_DIGITS_TOLERANCE if few else MOST_TOLERANCE

    def beside(self, at_use: AtUse | None) -> CheckedNetwork:
        """With a comparison at typical inputs, where there is one."""
        assert isinstance(self.verification, Verification)  # labels are compared in all of space
        return replace(self, verification=self.verification.beside(at_use))

    def evidence(self) -> dict[str, Any]:
        """What speaks for the network, and against it."""
        found: dict[str, Any] = {"limits": self.candidate.limits} if self.candidate.limits else {}
        found |= {} if self.precision is None else {"precision": self.precision}
        if isinstance(self.verification, LabelVerification):
            found["boundary error"] = self.verification.boundary_error
        return found | {"verification": self.verification, "certificate": self.candidate.certificate}


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
    one_layer, most, precision = network.depth == 2, MOST_TOLERANCE, None
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
    explained = oracle.explained is not None and candidate.precision is None and candidate.asked is None
    if explained and network.depth > 2:
        by_gradients = examine_by_gradients(
            oracle, network, rng, noise=noise, held_out=candidate.held_out, counterexamples=counterexamples
        )
        return CheckedNetwork(network, candidate, by_gradients)
    verification = examine(
        oracle, network, rng,
        noise=noise,
        # Rows asked, not sent: a retry must not change the rows.
        points=points_worth(worth) if network.depth <= 2 else POINTS_FOR_DEEP,
        at_use=points_at_use(worth) if network.depth <= 2 else deep_points_at_use(worth),
        on_lines=points_on_lines(worth) if network.depth <= 2 else deep_points_on_lines(worth),
        per_neuron=0 if network.depth <= 2 else 1,
        held_out=candidate.held_out,
        asked=candidate.asked,
        counterexamples=counterexamples,
        alone=0 if network.depth <= 2 else int(ALONE_SHARE * worth),
        far=FAR_POINTS if one_layer and network.widths[1] <= FEW_NEURONS else 0,
        most_tolerance=most,
    )  # fmt: skip
    return CheckedNetwork(network, candidate, verification, precision)


ALONE_SHARE = 0.02  # of the rows spent, at most: points where one unit of the first layer is on alone
FEW_ROWS = 5000  # below, verification takes more than its share


def points_worth(spent: int) -> int:
    """Random points at each scale that a network is verified at, after so many rows."""
    points_for_few_rows = 36  # a small network can afford more than its share
    fewest_points, most_points = 20, 64
    verification_share = 5e-4  # random points at each scale, of the rows spent; creases are compared besides
    if spent < FEW_ROWS:
        return points_for_few_rows
    return int(np.clip(verification_share * spent, fewest_points, most_points))


def points_at_use(spent: int) -> int:
    """Random points at the scale of use, where a narrow bump shows at a share of the points and nowhere else."""
    fewest_points, most_points = 100, 300  # a small network can afford more than its share
    share = 2e-2  # of the rows spent
    if spent < FEW_ROWS:
        return min(most_points, max(points_worth(spent), spent))  # of a tiny one no more than the search itself took
    return int(np.clip(share * spent, fewest_points, most_points))


def deep_points_at_use(spent: int) -> int:
    """The same of several hidden layers, whose units may switch on few inputs: more, where these are a small share."""
    most_points, share = 800, 2e-2  # of the rows spent
    return int(np.clip(share * spent, POINTS_FOR_DEEP, most_points))


def deep_points_on_lines(spent: int) -> int:
    """Points on lines, where neurons are rarely on, and at extremes, of several hidden layers."""
    most_points, share = 400, 1e-2  # of the rows spent
    return max(points_on_lines(spent), int(min(share * spent, most_points)))


def points_on_lines(spent: int) -> int:
    """Points on lines through the scale of use, and where neurons are rarely on."""
    fewest_points, share = 16, 5e-3  # of the rows spent
    return LINE_POINTS if spent < FEW_ROWS else int(np.clip(share * spent, fewest_points, LINE_POINTS))


IN_STEPS = Diagnosis("link-in-steps", remedies=(TRAIN_WITHOUT_LINK, SPAN_FROM_LABELS))


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


def evidence_of_clipping(
    oracle: Counting, health: Interface, outcome: Outcome, rng: np.random.Generator
) -> dict[str, Any]:
    """Of a run that ended so: the range that inputs seem to be clipped to, and the reason; nothing if there is none.

    Cost: nothing where answers change far out, or are those of a link that saturates; else up to 1002 rows. The stage
    that a run ended in stays what it was.
    """
    if health.constant_beyond is None or health.saturated or not oracle.facts.domain.is_space or in_own_units(oracle):
        return {}
    ended_in = oracle.ledger.last_stage
    try:
        box = clipped_range(oracle, health, rng)
    except (BudgetExhausted, TargetError):
        return {}  # it is only a word more
    finally:
        oracle.ledger.last_stage = ended_in
    if box is None:
        return {}
    low, high = float(box.low), float(box.high)
    inside = Remedy("inside-range", "extract", {"domain": (low, high)})  # inside their bounds there is more to find
    reason = Diagnosis("clipped-inputs", {"low": low, "high": high, "outcome": outcome.slug}, (inside,))
    return {"clipped": (low, high), "reason": reason}

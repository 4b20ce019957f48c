"""`extract`: the network behind a target, wherever and as far as its interface allows, verified.

The interface decides: exact weights, few digits, inside a box, or a refusal. `attempts` tries one method after another
in one place; behind a link that saturates, `boxes` chooses the place. Where that fails, inputs may be of other sizes,
or elsewhere.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import (
    BudgetExhausted,
    InvalidInput,
    NonFiniteAnswer,
    NonFiniteGradient,
    TargetError,
)
from reluctant.extraction.attempts import OF_SCALES, Ending, Place, Search
from reluctant.extraction.boxes import POINTS_ELSEWHERE, search_boxes
from reluctant.extraction.from_labels import FromLabels
from reluctant.extraction.ladder import SearchFindings
from reluctant.extraction.method import (
    Method,
    PartialNetwork,
)
from reluctant.geometry.boundary import are_whole_numbers, refuse_link
from reluctant.interface.gradient_kinds import trusted, undefined_at
from reluctant.interface.health import examine as examine_health
from reluctant.interface.kinds import IntegerKind, Shape, classify_integers
from reluctant.interface.reach import find_link
from reluctant.messages import Diagnosis
from reluctant.messages.catalogue import GIVE_DOMAIN, ROWS_OF_USE, SPAN_FROM_LABELS_WITHOUT_LINK, TRAIN_WITHOUT_LINK
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Noise, Rng, as_generator, unit_roundoff
from reluctant.oracles import Counting, Kind
from reluctant.oracles.explanations import Unexplained
from reluctant.oracles.input_units import (
    InputUnits,
    changing_units,
    found_units,
    scaled_by,
    slope_ratio,
)
from reluctant.oracles.keywords import InputsKeywords
from reluctant.oracles.open import Target, in_units, opened_target
from reluctant.results import Outcome, Result, Run
from reluctant.verification.agreement import examine
from reluctant.verification.comparison import (
    EXACT_TOLERANCE,
    AcceptedError,
    compare_where_readable,
)
from reluctant.verification.own_scales import compare_at_own_scales, units_around_middle
from reluctant.verification.points import PointCounts

ATTEMPTS = 4
CURVE_LINES = 12  # of a second look: on four lines, one sigmoid of float32 in twenty shows no curve
FITS = 2  # of rounded probabilities: a fit that fails twice rarely succeeds
OF_BLIND_QUESTIONS = (*OF_SCALES, Outcome.LOW_PRECISION, Outcome.OUT_OF_REACH)
OF_CONSTANTS = (Outcome.CONSTANT, Outcome.PIECEWISE_CONSTANT)
INSIDE = "Use rl.DepthTwo(), which stays inside, or leave the domain out if the target answers everywhere."


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

    Cost: for large networks of one hidden layer about as many answers as the network has parameters, verification
    included. A small one costs a few times as many, two hidden layers more. A row brings one answer for each output.
    Without a budget there is no limit.
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
        if method is not None and method.reads_labels:
            refuse_link(opened)
        if method is not None and method.needs_space and not domain.is_space:
            raise InvalidInput.about(
                "domain", got=domain.describe(), expected=f"all of space for {type(method).__name__}",
                fix=INSIDE,
            )  # fmt: skip
        target, units = in_units(opened)
        run = Run[PartialNetwork | None].begin(target, "extract", rng, None)
        if constant := opened.facts.constant_columns:
            run.evidence["constant columns"] = constant
        recovery = Recovery(Search(run, method, as_generator(rng)))
        ending = run.finish(lambda: recovery.go(attempts), lambda outcome: (outcome, recovery.search.partial))
        return recovery.result(*ending).with_classes(run.oracle).in_inputs_of(units or recovery.units)


@dataclass
class Recovery:
    """One call of `extract`: where the target is asked, and how its answers are read.

    units: of the inputs, where questions have found them. apart: a row (1, d) in these units that has another answer
    than most.
    """

    search: Search
    units: InputUnits | None = None
    apart: FloatArray | None = None

    def go(self, attempts: int) -> Ending:
        """As the target is; where that fails, in units of the inputs that its hyperplanes or questions show.

        Its columns may be of different sizes, or far from the origin, or it may change at few inputs alone.
        """
        oracle = self.search.run.oracle
        outcome, network = self.go_and_compare(attempts)
        units = self.other_units(oracle, outcome)
        if units is None:
            self.search.found.elsewhere = self.inputs_elsewhere(outcome)
            return outcome, network
        before, run, stay = self.search, self.search.run, False
        known, asked, whole = run.partial, run.oracle, before.found.network is not None
        self.search, self.units, run.partial, run.oracle = before.anew(), units, None, scaled_by(oracle, units)
        self.apart = np.zeros((1, oracle.dim)) if outcome in OF_CONSTANTS else None  # `changing_units` are around it
        try:
            again = self.go_and_compare(attempts)
            found = again[1] if again[0] is Outcome.RECOVERED else None
            # Trees are no network anywhere, and a target that changes in these units is not constant.
            stay = self.search.found.interface.trees or (outcome in OF_CONSTANTS and again[0] in OF_SCALES)
            stay = stay or (
                found is not None and self.holds_as_asked(asked, units.network(found), before.found.interface.noise)
            )
        except BudgetExhausted:
            stay = not whole  # a network in these units says more than a part
            raise
        finally:
            if not stay:
                self.search, self.units, run.partial, run.oracle = before, None, known, asked
        if not stay:
            self.search.found.elsewhere = self.inputs_elsewhere(outcome)
            return outcome, network
        if not (self.search.found.interface.trees or outcome in OF_CONSTANTS):
            self.search.found.unit_ratio = float(units.scale.max() / units.scale.min())
        return again

    def other_units(self, oracle: Counting, outcome: Outcome) -> InputUnits | None:
        """Units in which another search may find more, after one that ended so."""
        search = self.search
        if search.found.interface.trees:
            return None
        if outcome in OF_CONSTANTS and self.knows_no_inputs(oracle, refused=True) and search.method is None:
            return changing_units(oracle, search.rng.spawn(1)[0])
        searched = outcome in OF_SCALES and search.method is None and oracle.explained is None
        if not (searched and asks_blindly(oracle)):
            return None
        known = search.partial
        middle = None if known is None else units_around_middle(known, search.rng.spawn(1)[0])
        if middle is not None or not self.knows_no_inputs(oracle):
            return middle
        return found_units(oracle, search.rng.spawn(1)[0], uneven=search.found.own_scales is not None)

    def inputs_elsewhere(self, outcome: Outcome) -> Diagnosis | None:
        """What shows that inputs are not where questions were asked, after a search that ended so; None if nothing."""
        search = self.search
        oracle, own = search.run.oracle, search.found.own_scales
        if search.found.reason is not None or not asks_blindly(oracle):
            return None
        if own is None or own.ok:
            found = self.unlike_columns(oracle, outcome)
        else:
            found = Diagnosis("agrees-near-origin", {"middle": own.is_around_middle, "ratio": own.ratio})
        search.found.reason = None if found is None else replace(found, remedies=(ROWS_OF_USE, GIVE_DOMAIN))
        return search.found.reason

    def unlike_columns(self, oracle: Counting, outcome: Outcome) -> Diagnosis | None:
        """What the slopes of the columns at the origin explain of a search that ended so. Cost: at most d + 1 rows."""
        behind_link, raw = self.reads_link_blindly(oracle), self.search.found.interface.raw
        by_scales = outcome in OF_SCALES and self.knows_no_inputs(oracle)
        if outcome not in OF_BLIND_QUESTIONS or not (behind_link or by_scales):
            return None
        ended_in = oracle.ledger.last_stage
        ratio = slope_ratio(oracle, self.search.found.interface.noise)
        oracle.ledger.last_stage = ended_in
        if ratio is not None:
            return Diagnosis("columns-unlike", {"ratio": ratio, "outcome": outcome.slug})
        certain = behind_link and raw is not None and raw.certain and outcome is Outcome.OUT_OF_REACH
        return Diagnosis("certain-near-origin") if certain else None

    def result(self, outcome: Outcome, network: ReLUNetwork | None) -> Result:
        """How it ended. Columns of another size saturate a link near the origin: then rows of use help most."""
        found = self.search.found
        blind = found.health is not None and self.reads_link_blindly(self.search.run.oracle)
        if outcome is Outcome.OUT_OF_REACH and blind:
            remedies = (ROWS_OF_USE, GIVE_DOMAIN, TRAIN_WITHOUT_LINK, SPAN_FROM_LABELS_WITHOUT_LINK)
            found.reason = found.reason or replace(outcome.diagnosis, remedies=remedies)
        return self.search.result(outcome, network)

    def holds_as_asked(self, oracle: Counting, network: ReLUNetwork, noise: Noise) -> bool:
        """True if a network found in other units agrees in the inputs' own ones too. Cost: 188 rows, 1024 of a link."""
        counts = PointCounts(points=20, per_neuron=0, at_use=128, on_lines=0)
        if oracle.facts.saturates:
            return compare_where_readable(
                oracle, network, Domain().sample(self.search.rng, POINTS_ELSEWHERE, oracle.dim), EXACT_TOLERANCE
            ).ok
        return examine(oracle, network, self.search.rng, counts, AcceptedError(noise=noise)).ok

    def go_and_compare(self, attempts: int) -> Ending:
        """As asked; also compared at rows of the columns' own sizes and around the middle of the hyperplanes.

        Where columns are unlike, or hyperplanes far, and no rows of the inputs are known.
        """
        outcome, network = self.go_as_asked(attempts)
        search = self.search
        checked, oracle = search.found.network, search.run.oracle
        if outcome is not Outcome.RECOVERED or network is None or checked is None:
            return outcome, network
        tol, raw = checked.value_check, search.found.interface.raw
        if tol is None or not (self.knows_no_inputs(oracle) or self.reads_link_blindly(oracle)):
            return outcome, network
        try:
            noise = search.found.interface.noise.relative if raw is None else unit_roundoff(raw.number_format)
            found = compare_at_own_scales(
                oracle, network, deepcopy(search.rng), checked.most_tolerance, noise, tol.bound
            )
        except BudgetExhausted:
            search.run.keep(network)
            raise
        except (NonFiniteAnswer, TargetError):  # it does not answer at such rows: there is nothing to be wrong
            return outcome, network
        search.found.own_scales = found
        if found is None or found.ok:
            return outcome, network
        search.found.fail(f"verification: {found}")
        search.found.network = checked.doubted_by(found.check)
        return Outcome.UNVERIFIED, network

    def knows_no_inputs(self, oracle: Counting, *, refused: bool = False) -> bool:
        """True if nothing is known of the inputs of a target that answers values. refused: by its health, or not."""
        health = self.search.found.interface
        values = health.answers is Kind.VALUES and health.raw is None
        return asks_blindly(oracle) and values and (health.refusal is not None) == refused

    def reads_link_blindly(self, oracle: Counting) -> bool:
        """True if nothing is known of the inputs of a target whose values are read, not rounded, behind a link."""
        raw = self.search.found.interface.raw
        return asks_blindly(oracle) and raw is not None and not raw.too_coarse and raw.decimals is None

    def go_as_asked(self, attempts: int) -> Ending:
        """Extract where and as far as the target allows; from values alone where some gradient is no number."""
        run = self.search.run
        oracle = run.oracle
        try:
            return self.go_where_it_allows(attempts)
        except NonFiniteGradient as error:
            reason = undefined_at(error)
        run.oracle = oracle.around(Unexplained(oracle.inner))
        self.search = self.search.anew(SearchFindings(gradients=reason))
        return self.go_where_it_allows(attempts)

    def go_where_it_allows(self, attempts: int) -> Ending:
        """Look at the target's health, then extract where and as far as it allows."""
        search = self.search
        place = Place(search.run.oracle, examine_health(search.run.oracle, search.rng, apart=self.apart))
        search.found.enter(place.health, place.own_box)
        if not search.reads_labels:
            place = self.with_trusted_gradients(self.behind_link(place))
        affine = search.verified_map(place)
        if affine is not None:
            return Outcome.RECOVERED, affine
        if search.method is None and (place.health.answers_labels or labels_apart(place, search.rng)):
            search.method = FromLabels()
        if search.reads_labels:
            return search.try_methods(place, attempts, few_digits=False)
        if place.is_rounded:
            may = search.may_read_rounded and place.may_be_fitted
            return search.try_methods(place, min(attempts, FITS), True) if may else (Outcome.LOW_PRECISION, None)
        needs_space = search.method is not None and search.method.needs_space
        if place.health.needs_box and not needs_space:
            return search_boxes(search, place, attempts)
        return search.go_on(place, attempts)

    def with_trusted_gradients(self, place: Place) -> Place:
        """The same, without gradients that are none; the findings say what they are."""
        if place.health.refusal is not None or place.oracle.explained is None:
            return place
        oracle, reading = trusted(place.oracle, self.search.rng.spawn(1)[0])
        if reading is not None and reading.diagnosis is not None:
            self.search.found.gradients = reading.diagnosis
        return replace(place, oracle=oracle)

    def behind_link(self, place: Place) -> Place:
        """The same, or the values behind the link that its answers show."""
        search, health = self.search, place.health
        if health.refusal is None and health.like_sigmoids and health.saturated and place.oracle.unread:
            health = examine_health(place.oracle, search.rng, CURVE_LINES)
        if health.refusal is None:  # nothing that a link would explain
            return place
        read = find_link(place.oracle, health, search.rng, coarse=search.may_read_rounded)
        if read is None:
            return place
        search.run.oracle, search.found.link = read.oracle, read
        place = Place(read.oracle, read.health)
        search.found.enter(place.health, place.own_box)
        return place


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

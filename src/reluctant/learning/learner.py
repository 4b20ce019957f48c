"""`learn`: a one-hidden-layer network to a given accuracy, without general position.

Random points are asked first, then the exact method gets one attempt: it is the cheapest where it works. Where its
network is not verified or does not explain the points, lines are laid through points that are not explained, the
hyperplanes of their creases are followed, and the output weights are fitted anew. `Learner` is one such run and
keeps the best network so far. By lines it asks no more than a network with the neurons found takes: a target that
has no such network has creases without end.

Noise is measured on more lines than a health check takes, and never below the number format: a target that is flat
nearly everywhere rounds to exact zeros there, and inside a bump it may be otherwise. A target that looks flat is not
refused: it may have a bump.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.extraction.any_position.accuracy import (
    DrawnPoints,
    Model,
    check_network,
    closely_checked,
    draw_points,
    fitted_model,
    model_of,
    oriented_model,
    oriented_network,
    output_units,
    points_to_see,
    remaining_risk,
)
from reluctant.extraction.any_position.crease_planes import CreasePlanes
from reluctant.extraction.any_position.line_search import improve_by_lines
from reluctant.extraction.candidate_check import FEW_DIGITS_TOLERANCE
from reluctant.extraction.depth_two import DepthTwo
from reluctant.extraction.few_digits import FewDigits
from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise
from reluctant.interface import Interface
from reluctant.interface.diagnoses import too_few_digits, unreadable_values
from reluctant.interface.health import examine as examine_health
from reluctant.interface.noise import measure_noise, narrowest_format
from reluctant.interface.reach import clipped_inputs, find_link
from reluctant.messages import Diagnosis, Remedy
from reluctant.messages.diagnosis import Notes
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray, Rng, as_generator, unit_roundoff
from reluctant.oracles import Counting
from reluctant.oracles.base import Kind
from reluctant.oracles.keywords import InputsKeywords
from reluctant.oracles.ledger import Limit
from reluctant.oracles.open import Target, in_units, opened_target
from reluctant.results import Outcome, Result, Run
from reluctant.verification.agreement import Verification, examine
from reluctant.verification.comparison import EXACT_TOLERANCE, MOST_TOLERANCE, AcceptedError
from reluctant.verification.points import PointCounts

SATURATED = Diagnosis("saturates-in-space", remedies=(Remedy("use-extract", "extract"),))
FLAT_OUTCOMES = {Outcome.CONSTANT, Outcome.PIECEWISE_CONSTANT, Outcome.TOO_NOISY}  # as a bump looks from outside


def refusal_of(health: Interface) -> Outcome | None:
    """Why a target cannot be learned, or None; what looks flat may have a bump."""
    labels = health.answers is Kind.LABELS and health.refusal is not Outcome.CONSTANT
    if health.refusal is not None and (health.refusal not in FLAT_OUTCOMES or labels):
        return health.refusal
    return Outcome.OUT_OF_REACH if health.exact_refusal is Outcome.OUT_OF_REACH else None


def unread_behind_link(health: Interface) -> tuple[Outcome, Diagnosis] | None:
    """Why values that a link reads cannot be learned in all of space, or None."""
    if health.raw is not None and health.raw.too_coarse:
        return Outcome.LOW_PRECISION, unreadable_values(health)
    certain = health.refusal is Outcome.NON_FINITE and health.raw is not None and not health.raw.certain
    if not certain and (health.raw is None or health.refusal is not None or health.answered_far_out):
        return None
    return unreadable(health)


def unreadable(health: Interface) -> tuple[Outcome, Diagnosis]:
    """Why a link cannot read values everywhere: noise, or probabilities that saturate."""
    if health.deterministic:
        return Outcome.OUT_OF_REACH, SATURATED
    return Outcome.LOW_PRECISION, too_few_digits(health, tried=False)


NOISE_LINES = 12
FORMAT_ROUNDINGS = 2.0  # of the largest answer in its number format


def working_noise(oracle: Counting, health: Interface, answers: FloatArray, rng: np.random.Generator) -> DistanceNoise:
    """Noise by distance from the origin, of a target that gave these answers to random points. Cost: 60 rows."""
    known = DistanceNoise.of(health, oracle.dim)
    with oracle.stage("noise"):
        reading = measure_noise(oracle, rng, lines=NOISE_LINES)
    rounding = FORMAT_ROUNDINGS * unit_roundoff(narrowest_format(answers)) * float(np.abs(answers).max())
    near = max(known.near, DOUBLE.safety * reading.sd if reading else 0.0, rounding)
    # Far out all of a few lines may meet neurons that are off: roundings of sums grow like the inputs do.
    return DistanceNoise(near, max(known.growth, near / float(np.sqrt(oracle.dim))))


VERIFICATION_POINTS = 36  # at each scale
COMPARED_ROWS = 256  # rows at which a network is compared to itself without its skip term
MOST_OF_FEW = 8000  # with few digits, where a line takes 50 to 100 a neuron: a curved target takes many more
FEW_LINES = 2  # that the method for few digits may try
MOST_ON_LINE = 12_000  # rows: a line of two thousand neurons takes no more


MOST_SEARCHES = 20  # times the points of one search
MOST_ROWS_A_NEURON = 100  # times d + 5: the hardest targets that are learned take half of it
FEWEST_NEURONS = 100


def _endless_line(wanted: int, most: float) -> StageFailed:
    """The first line is not getting anywhere: noise larger than measured looks like creases."""
    return StageFailed("line", "creases without end", number=wanted, limit=most)


class EnoughAsked(Exception):
    """The limit of a run is reached: `most` rows; `wanted` would be more."""

    def __init__(self, wanted: int, most: float) -> None:
        super().__init__(wanted, most)
        self.wanted, self.most = wanted, most


def most_rows(points: int, dim: int, neurons: int) -> int:
    """Rows for a search with so many points and so many neurons found, at least a hundred."""
    return MOST_SEARCHES * points + MOST_ROWS_A_NEURON * (dim + 5) * max(neurons, FEWEST_NEURONS)


NEAR_FLOOR = 100.0  # times the noise: an error that has reached this leaves nothing to find
FAR_FROM_MOST = 1e4  # times as far from the middle as most answers is one inside a bump


def learning_limits(model: Model, floor: float, eps: float, points: int, *, few_digits: bool) -> Notes:
    """What noise allows, and what eps allows to be missing; floor: the error that noise alone looks like."""
    checked, found = model.checked, list[Diagnosis]()
    if few_digits or max(checked.accuracy.error, eps) < NEAR_FLOOR * floor:
        found.append(Diagnosis("error-of-noise", {"floor": floor}))
    if checked.narrow and checked.largest > EXACT_TOLERANCE:
        found.append(Diagnosis("narrow-missing", {"narrow": checked.narrow, "points": points}))
    if not model.good_for(eps) and not few_digits:
        found.append(Diagnosis("maybe-several-layers"))
    return Notes(tuple(found))


def steepest(model: Model, drawn: DrawnPoints) -> float | None:
    """How steep the steepest neuron is, in deviations of the output; None if there is no neuron."""
    units = output_units(drawn.answers, np.ones(len(drawn.rows)))
    return float(np.abs(model.planes.jump / np.sqrt(units)).max()) if len(model.planes) else None


def stands_out(drawn: DrawnPoints) -> bool:
    """True if a few points are far from where all the others are."""
    off = np.abs(drawn.answers - np.median(drawn.answers, axis=0)).max(axis=1)
    return bool(off.max() > FAR_FROM_MOST * np.median(off))


# Tolerances are wide because noise differs from place to place; where that hides too much, less counts as noise.
CAUTION, ALL_CAUTION = (1.0, 0.3, 0.1, 0.1, 0.1), (1.0, 1.0, 1.0)
AIM = 0.3  # of eps: an error that is chosen for being small is larger at new points
PATIENCE, FEW_DIGITS_PATIENCE = 6, 12  # lines in a row that make nothing better
NEAR_NOISE = 4.0  # times the noise, where the network is verified: two deviations
VERIFIED = "verified"


@dataclass
class Learner:
    """One call of `learn`: rows spent, the best network so far and the evidence for it."""

    run: Run[Model | None]  # partial: the best so far
    eps: float
    points: int  # random ones, to see narrow parts
    rng: np.random.Generator
    oracle: Counting = field(init=False)  # with a limit of its own, once lines are searched
    health: Interface | None = None
    exact: ReLUNetwork | None = None  # what the exact method gave
    verified: bool = True  # that passed; also of a constant, which is all there is of it
    verification: Verification | None = None
    constant_only: ReLUNetwork | None = None  # of a target that never changed
    neurons: int = 0  # that were found

    def __post_init__(self) -> None:
        self.oracle = self.run.oracle

    @property
    def evidence(self) -> dict[str, Any]:
        """The evidence of the run."""
        return self.run.evidence

    def go(self) -> Outcome:
        """All of it, to a named end."""
        self.evidence["eps"] = self.eps
        try:
            return self.search()
        except EnoughAsked as error:
            self.evidence["limits"] = Notes((Diagnosis("more-rows-than-neurons", {"rows": error.most}),))
        except np.linalg.LinAlgError as error:  # numbers no factorisation copes with
            self.evidence["error"] = str(error)
        return Outcome.NOT_ACCURATE

    def search(self) -> Outcome:
        """Points, the exact method, lines."""
        health = self.health = self.evidence["health"] = examine_health(self.oracle, self.rng)
        read = find_link(self.oracle, health, self.rng)
        if read is not None:
            self.oracle = self.run.oracle = read.oracle
            self.evidence.update(read.evidence())
            health = self.health = read.health
        unread, refusal = unread_behind_link(health), refusal_of(health)
        if unread is not None:
            return self.refused(unread)
        if refusal is not None:
            return refusal
        drawn = draw_points(self.oracle, self.points, self.rng)
        if health.refusal is not None and not stands_out(drawn):
            if health.refusal is Outcome.CONSTANT:  # a network too, from which something narrow may be missing
                self.constant_only = self.constant(drawn)
                self.evidence["risk"] = remaining_risk(len(drawn.rows))
            return health.refusal
        noise = working_noise(self.oracle, health, drawn.answers, self.rng)
        model = self.exactly(health, drawn, noise)
        if model is None or not (self.at_noise(model, noise) or (self.verified and model.good_for(self.eps))):
            model, drawn = self.by_lines(model, drawn, noise)
        return self.outcome(model, drawn, health, noise)

    def refused(self, why: tuple[Outcome, Diagnosis]) -> Outcome:
        """The outcome, with its reason in the evidence."""
        outcome, self.evidence["reason"] = why
        return outcome

    def cut_short(self, outcome: Outcome) -> Outcome:
        """The outcome of a run that its target ended; where a link cannot read answers, the health check says why."""
        if outcome is not Outcome.OUT_OF_REACH or self.health is None:
            return outcome
        del self.evidence["error"]
        return self.refused(unreadable(self.health))

    def constant(self, drawn: DrawnPoints) -> ReLUNetwork:
        """The answer that most points have."""
        return ReLUNetwork([np.zeros((self.oracle.outputs, self.oracle.dim))], [np.median(drawn.answers, axis=0)])

    def exactly(self, health: Interface, drawn: DrawnPoints, noise: DistanceNoise) -> Model | None:
        """The network of one attempt of `DepthTwo` or `FewDigits`, if it gives one; of a flat target, the constant.

        Cost: about one row a parameter, and 110 and one a neuron; of few digits as `FewDigits` takes.
        """
        if health.refusal is not None:
            return self.keep(model_of(self.oracle, self.constant(drawn), drawn, noise, self.rng))
        refused = health.exact_refusal is not None
        # Noise that stays the same is cheap to leave behind; in float32 the attempt may take longer than lines do.
        cheap = health.number_format == "float64" and health.few_digits_are_enough
        if refused and not (self.few_digits and cheap):
            return None
        method = FewDigits(lines=FEW_LINES) if refused else DepthTwo()
        limit = Limit(MOST_OF_FEW if refused else MOST_ON_LINE, stage="line", refusal=_endless_line)
        try:
            candidate = method.run(limit.of(self.oracle), noise, self.rng, lambda part: None)
        except (StageFailed, np.linalg.LinAlgError) as failure:
            self.evidence.update({"exact": str(failure), "verification": None})
            self.verified = False
            return None
        compared = self.rng.standard_normal((COMPARED_ROWS, self.oracle.dim))
        network = self.exact = oriented_network(candidate.network, compared, noise.near)
        checked = self.verification = examine(
            self.oracle, network, self.rng, PointCounts(points=VERIFICATION_POINTS, per_neuron=0),
            AcceptedError(noise=health.noise, most=FEW_DIGITS_TOLERANCE if refused else MOST_TOLERANCE),
            held_out=candidate.held_out_rows,
        )  # fmt: skip
        self.verified = checked.ok
        self.evidence.update({"exact": VERIFIED if checked.ok else str(checked), "verification": checked})
        return self.keep(self.settled(model_of(self.oracle, network, drawn, noise, self.rng), drawn, noise))

    def by_lines(self, exact: Model | None, drawn: DrawnPoints, noise: DistanceNoise) -> tuple[Model, DrawnPoints]:
        """Learn from lines until the error is small enough at random points that led no line."""
        allowed = Limit(lambda: most_rows(self.points, self.oracle.dim, self.neurons), refusal=EnoughAsked)
        self.oracle = allowed.of(self.oracle)
        model = exact if exact is not None and self.verified else self.from_scratch(drawn, noise)
        for k, caution in enumerate(CAUTION if self.few_digits else ALL_CAUTION):
            improved = improve_by_lines(
                self.oracle, model, drawn, noise.times(caution), self.rng,
                eps=AIM * self.eps, patience=FEW_DIGITS_PATIENCE if self.few_digits else PATIENCE, keep=self.keep,
            )  # fmt: skip
            if improved is not model or k == 0:
                drawn = draw_points(self.oracle, self.points, self.rng)
                model = self.keep(self.checked_again(improved, drawn, noise))
            elif caution == 1:
                break
            if model.good_for(self.eps) or model.checked.accuracy.error < NEAR_FLOOR * self.floor(model, noise):
                break
        return self.best_of(model, exact, drawn, noise), drawn

    def best_of(self, model: Model, exact: Model | None, drawn: DrawnPoints, noise: DistanceNoise) -> Model:
        """If the model is not good enough: the exact method's, or the mean, if that is better."""
        if model.good_for(self.eps):
            return model
        mean = ReLUNetwork([np.zeros((self.oracle.outputs, self.oracle.dim))], [drawn.answers.mean(axis=0)])
        others = [mean] if exact is None else [exact.network, mean]
        for network in others:
            other = self.settled(model_of(self.oracle, network, drawn, noise, self.rng), drawn, noise)
            model = other if other.better_than(model) else model
        return model

    def checked_again(self, model: Model, drawn: DrawnPoints, noise: DistanceNoise) -> Model:
        """Measured at new points as it would be given back: without a skip term, if that costs no accuracy."""
        if model.good_for(self.eps):
            turned = self.settled(oriented_model(self.oracle, model, drawn, noise, self.rng), drawn, noise)
            if turned.good_for(self.eps) or turned.network is model.network:
                return turned
        again = replace(model, checked=check_network(self.oracle, model.network, drawn, noise, self.rng))
        return self.settled(again, drawn, noise)

    def settled(self, model: Model, drawn: DrawnPoints, noise: DistanceNoise) -> Model:
        """Measured more closely, if it seems to be good enough."""
        if not model.good_for(self.eps):
            return model
        return closely_checked(self.oracle, model, drawn, noise, self.rng, self.eps)

    @property
    def few_digits(self) -> bool:
        """True if noise is what makes the target hard."""
        return self.health is not None and self.health.exact_refusal is Outcome.LOW_PRECISION

    def at_noise(self, model: Model, noise: DistanceNoise) -> bool:
        """True if few digits are all that is left to gain, and the method for them has explained the answers."""
        near = model.checked.accuracy.error < NEAR_NOISE * self.floor(model, noise)
        return self.few_digits and self.verified and near

    def floor(self, model: Model, noise: DistanceNoise) -> float:
        """Relative square error that the noise of the answers looks like by itself."""
        return float((noise.near / DOUBLE.safety) ** 2 / model.checked.accuracy.variance)

    def from_scratch(self, drawn: DrawnPoints, noise: DistanceNoise) -> Model:
        """No hyperplane: a constant if that is nearly all there is to see, else an affine map."""
        flat = model_of(self.oracle, self.constant(drawn), drawn, noise, self.rng)
        if flat.checked.mostly_right:
            return flat
        nothing = CreasePlanes.none(self.oracle.dim, self.oracle.outputs)
        return fitted_model(self.oracle, nothing, drawn, noise, self.rng)

    def keep(self, model: Model) -> Model:
        """Remember the best network, should the run end here."""
        self.neurons = max(self.neurons, len(model.planes))
        if model.better_than(self.run.partial):
            self.run.keep(model)
        return model

    def outcome(self, model: Model, drawn: DrawnPoints, health: Interface, noise: DistanceNoise) -> Outcome:
        """State the accuracy of the network."""
        self.run.keep(model)
        if not model.good_for(self.eps):
            clipped = clipped_inputs(self.oracle, health, Outcome.NOT_ACCURATE, self.rng)
            self.evidence.update({} if clipped is None else clipped.evidence())
            self.evidence.update(self.limits(model, noise))
            return Outcome.NOT_ACCURATE
        self.evidence.update(self.limits(model, noise))
        self.evidence["risk"] = remaining_risk(len(drawn.rows), steepest(model, drawn))
        if model.network is not self.exact:
            self.verification = self.evidence["verification"] = examine(
                self.oracle, model.network, self.rng,
                PointCounts(points=VERIFICATION_POINTS), AcceptedError(noise=health.noise),
            )  # fmt: skip
        verification = self.verification
        assert verification is not None
        if verification.ok and model.checked.largest <= verification.tol and health.exact_refusal is None:
            return Outcome.RECOVERED
        return Outcome.LEARNED

    def limits(self, model: Model, noise: DistanceNoise) -> dict[str, Notes]:
        """The limits of a model, if there are any."""
        floor = self.floor(model, noise)
        found = learning_limits(model, floor, self.eps, self.points, few_digits=self.few_digits)
        return {"limits": found} if found else {}

    def result(self, outcome: Outcome) -> Result:
        """How it ended, with the best network."""
        best = self.run.partial
        if best is None:
            return self.run.result(outcome, self.constant_only)
        return self.run.result(outcome, best.network, {"accuracy": best.checked.accuracy})


EPS, NARROWEST = 1e-6, 0.01
MOST_NUMBERS = 2**27  # of all random points together: a gigabyte


def learn(
    oracle: Target,
    *,
    eps: float = EPS,
    rng: Rng = 0,
    narrowest: float = NARROWEST,
    seconds: float | None = None,
    **opening: Unpack[InputsKeywords],
) -> Result:
    """Learn any network of one hidden layer, to relative square error `eps` under the Gaussian.

    Arguments:
        oracle: the target, in all of space: an oracle, or anything that `open_oracle` takes.
        eps: mean square error to reach on standard Gaussian inputs, over the variance of each output.
        rng: seed of all random choices.
        narrowest: width of the narrowest bump that must not be missed, up to distance 1 from the origin. At distance 3
            a bump must be 55 times as wide. Cost grows like 1/narrowest.
        seconds: most processor time. The result has what was found until then. No limit by default.
        opening: keywords of `open_oracle`, for this call: dim, budget, link, ...

    The outcome is `recovered` if the network also passes verification, `learned` if its error is at most eps, and
    otherwise `not-accurate-enough`, with the best network. Evidence has the accuracy with a confidence interval, and
    the remaining risk.

    Cost: exact extraction and 29 / narrowest rows. If that is not enough, at least as many again and 20 d to 90 d rows
    a neuron, up to 250 d for answers with four decimals. `most_rows` limits the rows on lines.
    """
    if not 0 < eps < 1:
        raise InvalidInput.about("eps", got=eps, expected="a number between 0 and 1")
    if not 0 < narrowest <= 1:
        raise InvalidInput.about("narrowest", got=narrowest, expected="a width above 0, at most 1")
    with opened_target(oracle, opening, seconds) as opened:
        target, units = in_units(opened)
        return _learn(target, eps, rng, narrowest).in_inputs_of(units)


def _learn(opened: Counting, eps: float, rng: Rng, narrowest: float) -> Result:
    if not opened.facts.domain.is_space:
        raise InvalidInput.about(
            "domain", got=opened.facts.domain.describe(), expected="all of space, where Gaussian inputs are",
            fix="Inside a domain use extract. Leave the domain out if the target answers everywhere.",
        )  # fmt: skip
    run = Run[Model | None].begin(opened, "learn", rng, None)
    points = points_to_see(narrowest)
    if points * opened.dim > MOST_NUMBERS:
        raise InvalidInput.about(
            "narrowest", got=narrowest, expected=f"a width whose {points} points of {opened.dim} inputs fit in memory",
            fix=f"Give a width of at least {narrowest * points * opened.dim / MOST_NUMBERS:.1g}.",
        )  # fmt: skip
    learner = Learner(run, eps, points, as_generator(rng))
    return learner.result(run.finish(learner.go, learner.cut_short)).with_classes(run.oracle)

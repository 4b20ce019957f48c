"""One run of `learn`: the exact method, then lines, and what speaks for the best network so far."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from reluctant.errors import TargetError
from reluctant.extraction.clipped import evidence_of_clipping
from reluctant.extraction.prospects import exact_refusal, few_digits_are_enough
from reluctant.geometry import DistanceNoise
from reluctant.geometry.noise import SAFETY
from reluctant.health import Health
from reluctant.health.check import examine as examine_health
from reluctant.learning.asked import Asked, asked_by_theorem
from reluctant.learning.checks import Drawn, check_network, draw_points
from reluctant.learning.exact import VERIFICATION_POINTS, try_exact
from reluctant.learning.hyperplanes import Hyperplanes
from reluctant.learning.limit import limited, most_rows
from reluctant.learning.lines import improve_by_lines
from reluctant.learning.models import Model, closely_checked, fitted_model, model_of, oriented_model
from reluctant.learning.noise import working_noise
from reluctant.learning.refusals import refusal_of, unread_behind_link, unreadable
from reluctant.learning.told import NEAR_FLOOR, limits_told, stands_out, steepest
from reluctant.learning.unseen import remaining_risk
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting, Rows
from reluctant.results import Outcome, Result, ended_by
from reluctant.verification.check import examine as examine_network

__all__ = ["Run"]

HEALTH_LINES = 4
# Tolerances are wide, for noise differs from place to place; where that hides too much, less is taken for noise.
CAUTION, ALL_CAUTION = (1.0, 0.3, 0.1, 0.1, 0.1), (1.0, 1.0, 1.0)
AIM = 0.3  # of eps: an error that is chosen for being small is larger at new points
PATIENCE, FEW_DIGITS_PATIENCE = 6, 12  # lines in a row that make nothing better
NEAR_NOISE = 4.0  # times the noise, where the network is verified: two deviations
VERIFIED = "verified"


@dataclass
class Run:
    """One call of `learn`: what it has spent, the best network so far and what speaks for it."""

    oracle: Counting
    eps: float
    points: int  # random ones, to see what is narrow
    rng: np.random.Generator
    before: dict[str, Rows] = field(init=False)
    exact: ReLUNetwork | None = None  # what the exact method gave
    kept: Model | None = None  # the best so far
    constant_only: ReLUNetwork | None = None  # of a target that never changed
    neurons: int = 0  # that were found
    evidence: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.before = dict(self.oracle.ledger.stages)

    def go(self) -> Outcome:
        """All of it, to a named end."""
        self.evidence["eps"] = self.eps
        health = self.evidence["health"] = examine_health(self.oracle, self.rng, HEALTH_LINES)
        unread, refusal = unread_behind_link(health), refusal_of(health)
        if unread is not None:
            return self.refused(unread)
        if refusal is not None:
            return refusal
        drawn = draw_points(self.oracle, self.points, self.rng)
        if health.refusal is not None and not stands_out(drawn):
            return self.nothing_there(health.refusal, drawn)
        noise = working_noise(self.oracle, health, drawn.answers, self.rng)
        model = self.exactly(health, drawn, noise)
        if model is None or not (self.at_noise(model, noise) or (self.verified and model.good_for(self.eps))):
            model, drawn = self.by_lines(model, drawn, noise)
        return self.outcome(model, drawn, health, noise)

    def refused(self, why: tuple[Outcome, str]) -> Outcome:
        """The outcome; its reason is told."""
        outcome, self.evidence["reason"] = why
        return outcome

    def ended_by(self, error: TargetError) -> Result:
        """The result of a run that an error of the target ended."""
        outcome, health = ended_by(error, self.oracle), self.evidence.get("health")
        if outcome is Outcome.OUT_OF_REACH and health is not None:
            return self.result(self.refused(unreadable(health)))
        return self.result(outcome, error=str(error))

    def nothing_there(self, refusal: Outcome, drawn: Drawn) -> Outcome:
        """A constant is a network too, but something narrow may be missing from it."""
        if refusal is Outcome.CONSTANT:
            self.constant_only = self.constant(drawn)
            self.evidence["risk"] = remaining_risk(len(drawn.rows))
        return refusal

    def constant(self, drawn: Drawn) -> ReLUNetwork:
        """The answer that most points have."""
        return ReLUNetwork([np.zeros((self.oracle.outputs, self.oracle.dim))], [np.median(drawn.answers, axis=0)])

    def exactly(self, health: Health, drawn: Drawn, noise: DistanceNoise) -> Model | None:
        """The network of the exact method, if it gives one; of a target that is flat, the constant."""
        if health.refusal is not None:
            return self.keep(model_of(self.oracle, self.constant(drawn), drawn, noise, self.rng))
        refused = exact_refusal(health) is not None
        # Noise that stays the same is cheap to leave behind; in float32 the attempt may take longer than lines do.
        cheap = health.number_format == "float64" and few_digits_are_enough(health, self.oracle)
        if refused and not (self.few_digits and cheap):
            return None
        tried = try_exact(self.oracle, health, noise, self.rng, few_digits=refused)
        self.evidence |= {"exact": tried.failure or VERIFIED, "verification": tried.verification}
        self.exact = tried.network
        if tried.network is None:
            return None
        return self.keep(self.settled(model_of(self.oracle, tried.network, drawn, noise, self.rng), drawn, noise))

    def by_lines(self, exact: Model | None, drawn: Drawn, noise: DistanceNoise) -> tuple[Model, Drawn]:
        """Learn from lines until the error is small enough at random points that led no line."""
        self.oracle = limited(self.oracle, self.most_rows)
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

    def best_of(self, model: Model, exact: Model | None, drawn: Drawn, noise: DistanceNoise) -> Model:
        """If the model is not good enough: the exact method's, or the mean, if that is better."""
        if model.good_for(self.eps):
            return model
        mean = ReLUNetwork([np.zeros((self.oracle.outputs, self.oracle.dim))], [drawn.answers.mean(axis=0)])
        others = [mean] if exact is None else [exact.network, mean]
        for network in others:
            other = self.settled(model_of(self.oracle, network, drawn, noise, self.rng), drawn, noise)
            model = other if other.better_than(model) else model
        return model

    def checked_again(self, model: Model, drawn: Drawn, noise: DistanceNoise) -> Model:
        """Measured at new points as it would be given back: without a skip term, if that costs no accuracy."""
        if model.good_for(self.eps):
            turned = self.settled(oriented_model(self.oracle, model, drawn, noise, self.rng), drawn, noise)
            if turned.good_for(self.eps) or turned.network is model.network:
                return turned
        again = replace(model, checked=check_network(self.oracle, model.network, drawn, noise, self.rng))
        return self.settled(again, drawn, noise)

    def settled(self, model: Model, drawn: Drawn, noise: DistanceNoise) -> Model:
        """Measured more closely, if it seems to be good enough."""
        if not model.good_for(self.eps):
            return model
        return closely_checked(self.oracle, model, drawn, noise, self.rng, self.eps)

    def most_rows(self) -> int:
        """That may be asked by lines, by what was found so far."""
        return most_rows(self.points, self.oracle.dim, self.neurons)

    @property
    def few_digits(self) -> bool:
        """True if noise is what makes the target hard."""
        return exact_refusal(self.evidence["health"]) is Outcome.LOW_PRECISION

    def at_noise(self, model: Model, noise: DistanceNoise) -> bool:
        """True if few digits are all that is left to gain, and the method for them has explained the answers."""
        near = model.checked.accuracy.error < NEAR_NOISE * self.floor(model, noise)
        return self.few_digits and self.verified and near

    def floor(self, model: Model, noise: DistanceNoise) -> float:
        """Relative square error that the noise of the answers looks like by itself."""
        return float((noise.near / SAFETY) ** 2 / model.checked.accuracy.variance)

    def from_scratch(self, drawn: Drawn, noise: DistanceNoise) -> Model:
        """No hyperplane: a constant if that is nearly all there is to see, else an affine map."""
        flat = model_of(self.oracle, self.constant(drawn), drawn, noise, self.rng)
        if flat.checked.mostly_right:
            return flat
        nothing = Hyperplanes.none(self.oracle.dim, self.oracle.outputs)
        return fitted_model(self.oracle, nothing, drawn, noise, self.rng)

    @property
    def verified(self) -> bool:
        """True if what the exact method gave passed; also for a constant, which is all there is of it."""
        return self.evidence.get("exact", VERIFIED) == VERIFIED

    def keep(self, model: Model) -> Model:
        """Remember the best network, should the run end here."""
        self.neurons = max(self.neurons, len(model.planes))
        if model.better_than(self.kept):
            self.kept = model
        return model

    def outcome(self, model: Model, drawn: Drawn, health: Health, noise: DistanceNoise) -> Outcome:
        """Say what the network is good for."""
        self.kept = model
        if not model.good_for(self.eps):
            self.evidence |= evidence_of_clipping(self.oracle, health, Outcome.NOT_ACCURATE, self.rng)
            self.evidence |= self.limits(model, noise)
            return Outcome.NOT_ACCURATE
        self.evidence |= self.limits(model, noise)
        self.evidence["risk"] = remaining_risk(len(drawn.rows), steepest(model, drawn))
        if model.network is not self.exact:
            self.evidence["verification"] = examine_network(
                self.oracle, model.network, self.rng, noise=health.noise, points=VERIFICATION_POINTS
            )
        verification = self.evidence["verification"]
        self.evidence["theorem"] = self.theorem(model)
        if verification.ok and model.checked.largest <= verification.tol and exact_refusal(health) is None:
            return Outcome.RECOVERED
        return Outcome.LEARNED

    def limits(self, model: Model, noise: DistanceNoise) -> dict[str, str]:
        """In words, where there is something to say."""
        said = limits_told(model, self.floor(model, noise), self.eps, self.points, few_digits=self.few_digits)
        return {"limits": said} if said else {}

    def theorem(self, model: Model) -> Asked | None:
        """The theorem's parameters for the network found, beside what was spent."""
        spent = self.spent()
        used = {
            "queries": float(sum(spent.values(), Rows()).queries),
            "samples": float(spent.get("outputs", Rows()).queries),
            "features": float(len(model.planes)),
        }
        return asked_by_theorem(model.network, self.eps * model.checked.accuracy.variance, used)

    def result(self, outcome: Outcome, **evidence: Any) -> Result:
        """How it ended, with the best network."""
        network = self.constant_only if self.kept is None else self.kept.network
        if self.kept is not None:
            self.evidence["accuracy"] = self.kept.checked.accuracy
        return Result(outcome, network, self.spent(), self.oracle.ledger.last_stage, self.evidence | evidence)

    def spent(self) -> dict[str, Rows]:
        """Rows of this run, by stage."""
        return self.oracle.ledger.since(self.before)

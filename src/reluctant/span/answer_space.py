"""`output_space`: the affine space that the answers of a target lie in, and `OutputSpace`, its result.

A last layer maps h hidden values to m outputs, so answers lie in an affine space of at most h dimensions. With m > h
its rank is the width of the last hidden layer, and its basis is the last matrix up to a square factor (Carlini et al.,
2024, for language models). Probabilities and log-probabilities are read as log-ratios first.

How many rows must bring no direction depends on the layers. Far out, f(x) - f(-x) of one hidden layer is linear in x,
and each neuron is on at x or at -x: 16 rows are enough. Of several layers, neurons of the last one may be on at few
inputs, and only more rows show them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Unpack

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.geometry.lines import IntArray
from reluctant.interface.noise import UNIFORM_SD, answer_kind, are_log_probabilities, narrowest_format, rounding_noise
from reluctant.messages import Diagnosis
from reluctant.numerics import DOUBLE, FloatArray, Rng, as_generator, unit_roundoff
from reluctant.oracles import Counting, Kind, Rows
from reluctant.oracles.keywords import InputsKeywords
from reluctant.oracles.links import UNDO_LINK, AnswerLink, Linked, lost_digits, raw_answers
from reluctant.oracles.open import Target, opened_target
from reluctant.results import Ended, Outcome, Run
from reluctant.span.first_look import RULE_OF_THREE, UNCLEAR_MARGIN

FIRST_ROWS, MORE_ROWS, MORE_AT_ONCE = 8, 2, 16  # asked at first, then, and where many must bring nothing
QUIET_ROWS = 16  # of one hidden layer: as many that bring nothing end the search
MISSED_SHARE = 0.005  # of inputs that a direction shows at: of several layers, rarer ones may be missed
FAR_OUT, NEAR = 32.0, 2.0  # scales of inputs: far out, hidden neurons are on or off whatever their biases
FARTHEST = 2.0**20  # scale at which biases do not matter at all
ODD = 1e-3  # of the answers: what f(x) - f(-x) of one hidden layer may miss being linear by
NEARER = 8.0  # times, where probabilities saturate
MOST_UNREADABLE = 64  # rows in all that saturate
ROUNDINGS_INSIDE = 16.0  # of an answer: sums inside a network round too
GRAM_DIGITS = 1e-7  # of the largest singular value: the search tells no weaker direction, the last look does
PROBABILITY_LINKS = ("softmax", "sigmoid", "top-k")
NOTHING = np.empty(0)
GOOD_OUTCOMES = (Outcome.OUTPUT_SPACE, Outcome.OUTPUTS_FULL)


@dataclass(frozen=True, eq=False)
class OutputSpace(Ended):
    """Outcome of `output_space`.

    basis: orthonormal rows (rank, m); answers are offset (m,) plus a combination of them. margin: the strongest
    direction left out over the weakest one kept: the rank is clear if it is far below 1. singular:
    all singular values, largest first. link: the link that was undone, None for values.
    """

    outcome: Outcome
    basis: FloatArray
    offset: FloatArray
    margin: float
    rows: Mapping[str, Rows]
    singular: FloatArray = field(default_factory=lambda: np.empty(0))
    link: AnswerLink | None = None
    stage: str = ""
    evidence: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    reason: Diagnosis | None = None

    @property
    def ok(self) -> bool:
        """True only if fresh rows brought nothing more, and the rank is clear."""
        return self.outcome in GOOD_OUTCOMES

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.basis)

    @property
    def missed_share(self) -> float:
        """A direction that shows at a smaller share of inputs may have been missed, with 95 % confidence."""
        return min(1.0, RULE_OF_THREE / max(self.queries, 1))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the basis itself is left out."""
        return {
            **self.ending(),
            "rank": self.rank,
            "outputs": self.basis.shape[1],
            "margin": self.margin,
            "missed share": self.missed_share,
            "link": self.link,
            "singular values": self.singular.tolist(),
        }

    def shown_facts(self) -> dict[str, object]:
        """The rank, and how clear it is."""
        return {"rank": f"{self.rank} of {self.basis.shape[1]} outputs", "margin": self.margin}

    def __repr__(self) -> str:
        return f"OutputSpace({self.outcome.slug}, rank {self.rank} of {self.basis.shape[1]}, queries={self.queries})"


def output_space(
    oracle: Target,
    *,
    rng: Rng = 0,
    quiet: int | None = None,
    seconds: float | None = None,
    **opening: Unpack[InputsKeywords],
) -> OutputSpace:
    """Find the affine space that a target's answers lie in: its rank, a basis and an offset.

    Arguments:
        oracle: the target: an oracle, or anything that `open_oracle` takes.
        rng: seed of all random choices.
        quiet: the search ends after so many rows without a new direction. By default 16 for one hidden layer in
            all of space, otherwise 600, which shows directions that matter at 0.5 % of inputs.
        seconds: most processor time. The result has what was found until then. No limit by default.
        opening: keywords of `open_oracle`, for this call: dim, budget, link, ...

    Cost: rank + quiet + 4 rows; more if hidden neurons are rarely on, or probabilities saturate.
    """
    if quiet is not None and (not isinstance(quiet, int | np.integer) or isinstance(quiet, bool) or quiet < 1):
        raise InvalidInput.about("quiet", got=repr(quiet), expected="a whole number of rows, at least 1, or None")
    with opened_target(oracle, opening, seconds) as opened:
        run = Run[FloatArray].begin(opened, "output space", rng, np.empty((0, opened.outputs)))
        search = _AnswerSpace(opened, as_generator(rng), None if quiet is None else int(quiet))

        return run.finish(lambda: search.result(search.go(), run), lambda outcome: search.result(outcome, run))


class _AnswerSpace:
    """The answers so far, and how well each row is known."""

    def __init__(self, oracle: Counting, rng: np.random.Generator, quiet: int | None) -> None:
        self.oracle, self.rng, self.wanted = oracle, rng, quiet
        self.one_layer = False
        self.link: AnswerLink | None = None
        self.scale, self.unreadable = FAR_OUT, 0
        self.values, self.sd = np.empty((0, oracle.outputs)), np.empty(0)
        self.products = np.empty((0, 0))  # of answers with each other
        self.space: FloatArray | None = None  # directions of all answers, while rows bring nothing
        self.fresh = 0.0  # noise between two answers to one row

    def go(self) -> Outcome:
        """Ask until rows bring nothing."""
        with self.oracle.stage("answers"):
            self.begin()
            rank, since = self.rank(), len(self.values)
            while rank < self.outputs and len(self.values) - since < self.quiet:
                if self.unreadable > MOST_UNREADABLE:
                    return Outcome.OUT_OF_REACH
                count = MORE_AT_ONCE if self.quiet > QUIET_ROWS and len(self.values) > 2 * rank else MORE_ROWS
                before = len(self.values)
                self.ask(self.drawn(count))
                now = rank if before - since >= QUIET_ROWS and not self.brings_more(before) else self.rank()
                rank, since = (now, len(self.values)) if now > rank else (rank, since)
        return Outcome.OUTPUT_SPACE

    @property
    def quiet(self) -> int:
        """How many rows that bring nothing end the search."""
        if self.wanted is not None:
            return self.wanted
        return QUIET_ROWS if self.one_layer else int(np.ceil(RULE_OF_THREE / MISSED_SHARE))

    @property
    def outputs(self) -> int:
        """Number of outputs, of log-ratios where they are read so."""
        return self.oracle.outputs

    def begin(self) -> None:
        """Ask the first rows, one of them twice; read probabilities that add up to one as log-ratios from then on."""
        facts = self.oracle.facts
        rows = self.drawn(MORE_ROWS)
        with raw_answers(self.oracle) as raw:
            values = self.oracle.answer(np.concatenate([rows, rows[:1]]))
        given = raw[0] if raw else values
        link: AnswerLink | None = None
        if self.oracle.unread and self.outputs > 1:
            softmax = answer_kind(values) is Kind.PROBABILITIES
            link = "softmax" if softmax else "log-softmax" if are_log_probabilities(values) else None
        if link is not None:
            self.oracle = self.oracle.around(Linked(self.oracle.inner, link))
            with np.errstate(divide="ignore", invalid="ignore"):
                values = UNDO_LINK[link](values)
            self.link, self.values = link, np.empty((0, values.shape[1]))
        with np.errstate(invalid="ignore"):
            self.fresh = float(np.nan_to_num(np.abs(values[-1] - values[0])).max())
        self.take(values[:-1], given[:-1])
        if facts.domain.is_space and facts.samples is None and self.oracle.facts.link not in PROBABILITY_LINKS:
            self.one_layer = self.is_odd(self.ask(self.opposite()))
        else:
            self.ask(self.drawn(FIRST_ROWS - MORE_ROWS))

    def opposite(self) -> FloatArray:
        """Two inputs very far out and their sum (3, d), and the opposite of all three."""
        one, two = FARTHEST * self.rng.standard_normal((2, self.oracle.dim))
        return np.array([one, two, one + two, -one, -two, -one - two])

    @staticmethod
    def is_odd(values: FloatArray) -> bool:
        """True if f(x) - f(-x) is linear in x, by answers (6, m) to `opposite`."""
        with np.errstate(invalid="ignore"):
            change = values[:3] - values[3:]
            off = np.abs(change[0] + change[1] - change[2]).max()
        return bool(np.isfinite(change).all() and off <= ODD * np.abs(change).max())

    def drawn(self, count: int) -> FloatArray:
        """Random inputs, or like those the target is for."""
        facts = self.oracle.facts
        if facts.samples is not None:
            return facts.samples[self.rng.integers(len(facts.samples), size=count)]
        half = facts.domain.sample(self.rng, count // 2, facts.dim, self.scale)
        if count > MORE_ROWS and not self.one_layer:  # some neurons are rarely on far out, but not nearer
            half[1::2] *= NEAR / FAR_OUT
        if facts.domain.is_space:  # a neuron that is off at one of them is more often on at the other
            return np.concatenate([half, -half])
        return np.concatenate([half, facts.domain.sample(self.rng, count // 2, facts.dim, self.scale)])

    def ask(self, rows: FloatArray) -> FloatArray:
        """Query rows and keep their answers."""
        with raw_answers(self.oracle) as raw:
            values = self.oracle.answer(rows)
        self.take(values, raw[0] if raw else values)
        return values

    def take(self, values: FloatArray, given: FloatArray) -> None:
        """Keep the rows that can be read, and their noise."""
        finite = np.isfinite(values).all(axis=1)
        self.unreadable += int((~finite).sum())
        if finite.mean() <= 1 / 2:
            self.scale /= NEARER
        values, given = values[finite], given[finite]
        if not len(values):
            return
        number_format, rounded = narrowest_format(given), rounding_noise(given)
        size = np.maximum(np.abs(given).max(axis=1), np.abs(values).max(axis=1))
        lost = lost_digits(values, self.oracle, number_format).max(axis=1)
        if self.oracle.facts.link in PROBABILITY_LINKS:  # a relative error of p is an absolute one of its logarithm
            size, rounded = np.maximum(size, 1.0), rounded / given.min(axis=1)
        written = ROUNDINGS_INSIDE * UNIFORM_SD * (unit_roundoff(number_format) * size + lost)
        sd = np.hypot(written, np.maximum(rounded, self.fresh))
        self.values, self.sd = np.concatenate([self.values, values]), np.concatenate([self.sd, sd])
        self.products = np.block([[self.products, self.values[: -len(values)] @ values.T], [values @ self.values.T]])

    def brings_more(self, before: int) -> bool:
        """False if all answers but the first so many surely lie in the space of those."""
        first, rest, weights, noise, common = self.weighted()
        old = rest < before
        if first >= before:
            return True
        rows = weights[:, None] * (self.values[rest] - self.values[first])
        if self.space is None:
            _, sizes, right = np.linalg.svd(rows[old], full_matrices=False)
            self.space = right[sizes > self.limit(rows[old].shape, noise, common, sizes)]
        left = rows[~old] - (rows[~old] @ self.space.T) @ self.space
        more = bool(np.linalg.norm(left, axis=1).max(initial=0.0) > self.limit((1, self.outputs), noise))
        self.space = None if more else self.space
        return more

    def weighted(self) -> tuple[int, IntArray, FloatArray, float, float]:
        """The smallest answer, all others, one over the size of each, and the noise of an entry then.

        And the size of the noise that all rows have in common: that of the smallest answer, which is subtracted.
        """
        size = np.sqrt(np.diag(self.products))
        first = int(np.argmin(size))
        rest = np.delete(np.arange(len(size)), first)
        weights = 1 / np.where(size[rest] > 0, size[rest], 1.0)
        noise = float((np.hypot(self.sd[rest], self.sd[first]) * weights).max(initial=0.0))
        common = float(self.sd[first] * np.linalg.norm(weights) * np.sqrt(self.outputs))
        return first, rest, weights, noise, common

    def decomposed(self) -> tuple[FloatArray, FloatArray, float]:
        """Singular values and directions of the answers less the smallest one, each by its size; what noise has."""
        first, rest, weights, noise, common = self.weighted()
        _, sizes, right = np.linalg.svd(
            weights[:, None] * (self.values[rest] - self.values[first]), full_matrices=False
        )
        return sizes, right, self.limit((len(rest), self.outputs), noise, common, sizes)

    def rank(self) -> int:
        """Number of directions so far, by the products of all answers: half the digits, at little cost."""
        if len(self.values) < 2:
            return 0
        first, rest, weights, noise, common = self.weighted()
        products = self.products[np.ix_(rest, rest)] - self.products[rest, first] - self.products[rest, first][:, None]
        gram = np.outer(weights, weights) * (products + self.products[first, first])
        sizes = np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0.0))
        least = max(self.limit((len(rest), self.outputs), noise, common, sizes), GRAM_DIGITS * float(sizes.max()))
        return min(int((sizes > least).sum()), self.outputs)

    @staticmethod
    def limit(shape: tuple[int, int], noise: float, common: float = 0.0, sizes: FloatArray = NOTHING) -> float:
        """The largest singular value that noise of this size has: σ (√n + √m), with some safety.

        common: of a noise that all rows share, of rank one. The decomposition of these sizes rounds, too.
        """
        rounding = DOUBLE.rounding * max(shape) * float(sizes.max(initial=0.0))
        return DOUBLE.safety * (noise * float(np.sqrt(shape[0]) + np.sqrt(shape[1])) + common) + rounding

    def result(self, outcome: Outcome, run: Run[FloatArray]) -> OutputSpace:
        """The space so far; how a search ended that was not cut short depends on the rank."""
        basis, offset, margin = np.empty((0, self.outputs)), np.zeros(self.outputs), np.inf
        singular = np.empty(0)
        if len(self.values) >= 2:
            singular, right, limit = self.decomposed()
            basis = right[singular > limit]
            offset = self.values[self.weighted()[0]]
            offset = offset - (basis @ offset) @ basis
            rank = len(basis)
            nothing = max(float(singular[rank]) if rank < len(singular) else 0.0, limit / DOUBLE.safety)
            margin = nothing / float(singular[rank - 1]) if rank else 0.0
        if outcome is Outcome.OUTPUT_SPACE and len(basis) == self.outputs:
            outcome = Outcome.OUTPUTS_FULL
        if outcome in GOOD_OUTCOMES and not (len(basis) and margin <= UNCLEAR_MARGIN):
            outcome = Outcome.RANK_UNCLEAR if len(basis) else Outcome.CONSTANT
        return OutputSpace(
            outcome, basis, offset, margin, run.spent(), singular, self.link, run.stage, MappingProxyType(run.evidence)
        )  # fmt: skip

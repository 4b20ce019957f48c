"""`check_health`, and the `Interface` it returns to every verb.

Short lines at the scale of use show noise, rounding and shape; the same centres asked again show whether answers are
deterministic; a look far out shows where they end. The kind of answers, their digits and their link follow from these.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from reluctant._notebook import html_table
from reluctant.errors import InvalidInput, TargetError, TargetUnavailable
from reluctant.interface.diagnoses import (
    FAR_ENOUGH,
    NOISIEST_READ,
    extraction_prospects,
    findings,
    hidden_structure,
    refusal_diagnosis,
)
from reluctant.interface.kinds import (
    NOISE_FACTOR,
    STEPS,
    IntegerKind,
    Likeness,
    Shape,
    StepKind,
    TopK,
    all_integers,
    are_integers,
    class_columns,
    classify_integers,
    classify_shape,
    find_steps,
    grow,
    is_curved_all_along,
    is_in_noise,
    saturated,
)
from reluctant.interface.noise import (
    FINER_STEPS,
    SECOND_DIFFERENCE_GAIN,
    UNIFORM_SD,
    NoiseReading,
    RawDigits,
    ShortLines,
    answer_kind,
    are_labels,
    ask,
    digits_noise,
    find_decimals,
    finite_ends,
    integer_format,
    narrowest_format,
    noise_model,
    read_noise,
)
from reluctant.messages import Diagnosis
from reluctant.numerics import DOUBLE, FloatArray, Noise, Rng, as_generator
from reluctant.oracles.base import Facts, Kind, layers
from reluctant.oracles.keywords import InputsKeywords
from reluctant.oracles.ledger import Counting
from reluctant.oracles.links import PERCENT, noun_behind, raw_answers
from reluctant.oracles.open import Target, in_units, opened_target
from reluctant.oracles.retry import Retrying
from reluctant.results import Outcome

REFUSALS = {
    Shape.CONSTANT: Outcome.CONSTANT,
    Shape.SMOOTH: Outcome.NOT_PIECEWISE_LINEAR,
    Shape.PIECEWISE_CONSTANT: Outcome.PIECEWISE_CONSTANT,
}
VERIFIABLE = 1e-6  # of the output's deviation: an exact network must be verifiable to this
NOTICED_NOISE = 1e-8  # of the output's deviation: from here on the method for few digits has the first attempt


@dataclass(frozen=True)
class Interface:
    """Findings of `check_health`.

    shape: what the answers look like along short lines at the scale of use.
    deterministic: the same rows gave the same answers twice.
    fresh_noise: standard deviation between two answers to the same row.
    noise: model of all deviations from a piecewise linear function, rounding included.
    readings: the noise measured at each scale.
    spread: standard deviation of the answers at the scale of use, largest output.
    decimals: digits after the point that the answers are rounded to, None if not rounded.
    number_format: the narrowest of float16, float32, float64 that holds every answer.
    answers: what the answers look like: values, probabilities or labels (as numbers, or one 1 among 0s).
    nonfinite: rows answered with NaN or inf.
    largest_scale: largest input scale answered with finite numbers, None where only a domain was asked.
    constant_beyond: scale from which answers no longer change (inputs are clipped, or it saturates).
    queries: rows spent.
    facts: the target's own facts: its domain, its link.
    raw: digits of the target's own answers, before its link is undone; None without a link.
    unit: every answer at the scale of use lies between 0 and 1.
    sigmoids: the answers are probabilities of sigmoids, by how lines bend.
    like_sigmoids: they may be, by being 0 or 1 far out, and digits do not show more.
    curved_odds: lines bend as log-odds too, where no crease explains it: the answers are not those of sigmoids.
    saturated: nearly all answers are 0 or 1 far out.
    recast: a local model, which would answer with more digits if it were opened with precision='float64'.
    top_k: how many of the class probabilities each answer gives, the largest; None where it gives all or none.
    percent: the answers look like percentages; the other fields describe their hundredths.
    tanh: the answers are those of a tanh, by how lines bend.
    integers: labels, rounded scores or undecided; None for two integers, which are labels, and for other answers.
    step_function: the answers are levels that no rounding explains: those of trees, or of quantised numbers.
    trees: and each step depends on one input alone, and far out there are none, as with the splits of trees.
    class_columns: outputs that hold class numbers (or counts) beside others that do not.
    varies_far_out: all answers are the same at the scale of use, and not far out.
    far_out: rows far out that were asked, and their answers; None inside a domain.
    """

    shape: Shape
    deterministic: bool
    fresh_noise: float
    noise: Noise
    readings: tuple[NoiseReading, ...]
    spread: float
    decimals: int | None
    number_format: str
    answers: Kind
    nonfinite: int
    largest_scale: float | None
    constant_beyond: float | None
    queries: int
    facts: Facts = field(repr=False, compare=False)
    raw: RawDigits | None = None
    unit: bool = False
    sigmoids: bool = False
    like_sigmoids: bool = False
    curved_odds: bool = False
    saturated: bool = False
    recast: bool = False
    top_k: TopK | None = None
    percent: bool = False
    tanh: bool = False
    integers: IntegerKind | None = None
    step_function: bool = False
    trees: bool = False
    class_columns: tuple[int, ...] = ()
    varies_far_out: bool = False
    far_out: tuple[FloatArray, FloatArray] | None = field(default=None, repr=False, compare=False)

    @property
    def refusal(self) -> Outcome | None:
        """Why an exact method cannot work on this target, or None."""
        if self.shape is Shape.UNCLEAR:
            return Outcome.NON_FINITE if self.nonfinite else Outcome.TOO_NOISY
        if self.are_of_a_link and self.shape in (Shape.PIECEWISE_LINEAR, Shape.AFFINE):
            return Outcome.NOT_PIECEWISE_LINEAR  # curvature below the noise, but there is a link all the same
        return REFUSALS.get(self.shape)

    @property
    def diagnosis(self) -> Diagnosis | None:
        """Why an exact method cannot work on this target, and what to try; None if it can."""
        return refusal_diagnosis(self)

    @property
    def more_digits(self) -> bool:
        """True if it would answer with more digits in float64: it can be re-cast, and nothing else limits them."""
        rounded = self.decimals is not None or (self.raw is not None and self.raw.decimals is not None)
        number_format = self.number_format if self.raw is None else self.raw.number_format
        return self.recast and self.deterministic and not rounded and number_format != "float64"

    def why(self, outcome: Outcome) -> Diagnosis | None:
        """The diagnosis of a run that ended so; None if the interface was not the reason."""
        if outcome is Outcome.TOO_NOISY and self.refusal is None:  # too noisy for one method, and not for others
            return hidden_structure(self)
        return self.diagnosis if outcome is self.refusal else None

    def findings(self) -> list[Diagnosis]:
        """All that was measured, most important first."""
        return findings(self)

    @property
    def prospects(self) -> tuple[Diagnosis, ...]:
        """What `extract` would do; nothing where `diagnosis` says why it refuses the target."""
        return extraction_prospects(self)

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.findings(), *self.prospects)))

    @property
    def curves_hidden(self) -> bool:
        """True if answers of a link look straight: a statement about their looks would be wrong."""
        return self.refusal is Outcome.NOT_PIECEWISE_LINEAR and self.shape is not Shape.SMOOTH

    @property
    def are_probabilities(self) -> bool:
        """True of the answers of a softmax, which add up to one, and of those that only sigmoids explain."""
        return self.answers is Kind.PROBABILITIES or (self.sigmoids and self.answers is Kind.VALUES)

    @property
    def are_of_a_link(self) -> bool:
        """True of probabilities, and of the answers of a tanh."""
        return self.are_probabilities or (self.tanh and self.answers is Kind.VALUES)

    @property
    def noun(self) -> str:
        """What answers of a link are, in a word."""
        return noun_behind("tanh" if self.tanh else None)

    @property
    def may_be_sigmoids(self) -> bool:
        """True if answers are those of sigmoids, or stay between 0 and 1 and look like them as far as digits show."""
        curved = self.unit and self.squashed
        return self.answers is Kind.VALUES and (self.sigmoids or self.like_sigmoids or curved)

    @property
    def squashed(self) -> bool:
        """True if answers are curved, and end far out: something follows the values, if there are any."""
        return self.shape is Shape.SMOOTH and self.constant_beyond is not None

    @property
    def may_be_squashed(self) -> bool:
        """True if answers are squashed, or curved inside a domain: how they end is unknown there."""
        return self.squashed or (self.shape is Shape.SMOOTH and self.largest_scale is None)

    # ---- what methods can do with it

    @property
    def answers_labels(self) -> bool:
        """True if the target answers labels, as numbers or as one 1 among 0s, wherever it is asked."""
        clear = self.answers is Kind.LABELS and self.integers in (None, IntegerKind.LABELS)
        return clear and self.shape is Shape.PIECEWISE_CONSTANT

    @property
    def exact_refusal(self) -> Outcome | None:
        """The outcome that exact extraction would end with at once, or None."""
        if self.refusal is not None:
            return self.refusal
        verifiable = DOUBLE.deviations * self.noise.at(self.spread) <= VERIFIABLE * self.spread
        if self.number_format != "float64" or not verifiable:
            return Outcome.LOW_PRECISION
        if self.largest_scale is not None and self.largest_scale < FAR_ENOUGH:
            return Outcome.OUT_OF_REACH
        return None

    @property
    def has_noticeable_noise(self) -> bool:
        """True if there is noise that exact methods can work with, but are not made for."""
        noise = DOUBLE.deviations * self.noise.at(self.spread)
        return self.exact_refusal is None and noise > NOTICED_NOISE * self.spread

    @property
    def answered_far_out(self) -> bool:
        """True if the target gave finite answers far from the origin."""
        return self.largest_scale is not None and self.largest_scale >= FAR_ENOUGH

    @property
    def needs_box(self) -> bool:
        """True if probabilities that saturate keep a method from looking far out: a box around the origin may do."""
        refusal = self.exact_refusal
        near = refusal in (Outcome.OUT_OF_REACH, Outcome.NON_FINITE)
        may = near or (refusal is Outcome.LOW_PRECISION and not self.answered_far_out)
        return may and self.facts.saturates and self.facts.domain.is_space

    @property
    def few_digits_are_enough(self) -> bool:
        """True if the method for few digits can look: far out, or inside a box where enough of them are left."""
        if self.number_format == "float16":
            return False
        if self.facts.domain.is_space:
            return self.answered_far_out
        return self.facts.domain.is_box and self.few_digits_are_enough_inside

    @property
    def few_digits_are_enough_inside(self) -> bool:
        """True if the method for few digits could read lines inside bounds."""
        return self.noise.at(self.spread) <= NOISIEST_READ * self.spread

    @property
    def in_few_bits(self) -> bool:
        """True if probabilities behind a link have no more digits than a number format below float64 holds."""
        return self.raw is not None and self.raw.number_format != "float64"

    def shows_too_little(self, outcome: Outcome) -> bool:
        """True if a box shows nothing for its place: next to certainty probabilities with all digits lose them."""
        if self.raw is None or self.raw.decimals is not None or not self.deterministic:
            return False
        nothing = outcome in (Outcome.CONSTANT, Outcome.PIECEWISE_CONSTANT, Outcome.LOW_PRECISION)
        return nothing and not self.in_few_bits

    def _repr_html_(self) -> str:
        facts = {
            "answers": self.answers,
            "shape": self.shape,
            "number format": self.number_format,
            "decimals": self.decimals,
            "same answer twice": self.deterministic,
            "noise": f"{self.noise.absolute:.2g} + {self.noise.relative:.2g} × size",
            "spread": self.spread,
            "refusal": None if self.refusal is None else self.refusal.slug,
            "queries": self.queries,
        }
        return html_table(type(self).__name__, facts)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: every field, the outcome of a refusal, and its diagnosis."""
        refusal, diagnosis = self.refusal, self.diagnosis
        measured = {each.name: getattr(self, each.name) for each in fields(self) if each.repr}
        return measured | {
            "noise": asdict(self.noise),
            "readings": tuple(asdict(each) for each in self.readings),
            "raw": None if self.raw is None else asdict(self.raw),
            "shape": str(self.shape),
            "answers": str(self.answers),
            "integers": None if self.integers is None else str(self.integers),
            "top_k": None if self.top_k is None else self.top_k._asdict(),
            "refusal": None if refusal is None else refusal.slug,
            "diagnosis": None if diagnosis is None else diagnosis.to_dict(),
        }


FAR_SCALES = (1e2, 1e4, 1e6)
NOISE_SCALE = 1e4  # far enough that relative noise is seen apart from absolute noise
UNCHANGED = 1e-9  # relative; a piecewise linear function grows a hundredfold between far scales
ROWS_PER_LINE = 17
VERB_LINES = 4  # of the check inside another verb
ALL_DIGITS = 1e-10  # noise of the spread: with less, short steps show every curve


def check_health(oracle: Target, *, rng: Rng = 0, lines: int = 6, **opening: Unpack[InputsKeywords]) -> Interface:
    """Measure the interface of a target: kind of answers, noise, rounding, shape, faults.

    Arguments:
        oracle: the target: an oracle, or anything that `open_oracle` takes.
        rng: seed of all random choices.
        lines: number of short lines, at least 2.
        opening: keywords of `open_oracle`, for this call: dim, budget, link, ...

    Cost: 10 rows a line and, if inputs are unbounded, 7 more a line far out: 102 rows by default. A target that is
    smooth, or has creases very close to each other, costs 2 to 12 more rows a line. One that is flat around all lines
    costs at most 120 more, to distinguish steps from ramps, and 4·(log₂ d + 2), to recognise trees. Whole numbers cost
    at most 240 more for each output and 100, to distinguish labels from rounded values.
    """
    if lines < 2:
        raise InvalidInput.about("lines", got=lines, expected="at least 2")
    with opened_target(oracle, opening) as opened:
        generator = as_generator(rng)
        opened.begin("health", rng)
        return examine(in_units(opened)[0], generator, lines)


def examine(
    oracle: Counting, rng: np.random.Generator, lines: int = VERB_LINES, *, centres: FloatArray | None = None,
    apart: FloatArray | None = None,
) -> Interface:  # fmt: skip
    """The check as a stage of a larger run, around these centres (lines, d) if they are given.

    apart: a row (1, d) that has another answer than most, where one is known.
    """
    before, domain = oracle.queries, oracle.facts.domain
    with oracle.stage("health", expected=ROWS_PER_LINE * lines):
        centres = domain.interior(rng, lines, oracle.dim) if centres is None else centres
        ask_near = _Look.at if oracle.facts.link is None else _Look.behind_link
        look = ask_near(oracle, rng, centres)
        look = replace(look, far=look.ask_far(oracle, rng)) if domain.is_space else look
        integers, steps = look.integers(oracle, rng), look.steps(oracle, apart)
        curved = steps is None and look.is_curved(oracle)
    found = look.interface(oracle.facts, integers, steps, curved, oracle.queries - before)
    if found.answers is Kind.LABELS or look.raw is not None:
        return found
    with oracle.stage("health"):
        columns = class_columns(oracle, look.nearby, look.lines, rng, total=_total(found))
    return replace(found, class_columns=columns, queries=oracle.queries - before)


@dataclass(frozen=True)
class _Look:
    """What the check asked, with the answers.

    near: short lines at the scale of use. repeated (lines, m): answers to their centres, asked again. raw: the digits
    behind a link; None without one. lost (steps, sound lines): noise of second differences for digits that
    probabilities have lost; None without a link. far: lines through the same centres farther out, by scale.
    """

    near: ShortLines
    repeated: FloatArray
    raw: RawDigits | None = None
    lost: FloatArray | None = None
    far: dict[float, ShortLines] = field(default_factory=dict)

    @classmethod
    def at(cls, oracle: Counting, rng: np.random.Generator, centres: FloatArray) -> _Look:
        """Ask around these centres (lines, d)."""
        near = ShortLines.ask(oracle, rng, centres, STEPS, FINER_STEPS)
        # The same batch again: a deterministic target may still round differently in one of another size.
        return cls(near, ask(oracle, centres))

    @classmethod
    def behind_link(cls, oracle: Counting, rng: np.random.Generator, centres: FloatArray) -> _Look:
        """The same of values that a link reads, with the digits of the answers behind it."""
        with raw_answers(oracle) as given:
            look = cls.at(oracle, rng, centres)
        if not given:  # the link is undone elsewhere, as on a worker
            return look
        raw = RawDigits.behind(oracle, given)
        return replace(look, raw=raw, lost=look.near.second_difference_noise(raw.lost(look.near.answers, oracle)))

    def ask_far(self, oracle: Counting, rng: np.random.Generator) -> dict[float, ShortLines]:
        """Lines through the same centres, each scale farther out, as far as they are answered.

        Where lines behind a link are straight, as far as values can be read. Where a call fails that nothing retries,
        because of a fault that may pass, the same rows are asked once more: if they are answered then, no range ends
        here, and the target has failed.
        """
        retried = any(isinstance(layer, Retrying) for layer in layers(oracle))
        found, near, while_readable = dict[float, ShortLines](), self.near, self.is_straight_behind_link
        for scale in FAR_SCALES:
            steps = near.steps[-2:] if scale == NOISE_SCALE else ()  # as fine as was needed near the origin
            finer = tuple(step for step in FINER_STEPS if steps and step < steps[-1])
            lines = partial(ShortLines.ask, oracle, centres=scale * near.centres, steps=steps, finer=finer)
            same = deepcopy(rng)
            try:
                if while_readable and steps and not np.isfinite(ask(oracle, scale * near.centres)).all():
                    break
                found[scale] = lines(rng=rng)
            except TargetError as error:
                may_pass = isinstance(error, TargetUnavailable) and isinstance(error.__cause__, OSError | None)
                if may_pass and not retried and _is_answered(partial(lines, rng=same)):
                    raise
                break
            if while_readable and not found[scale].sound.all():
                break
        return found

    @property
    def is_straight_behind_link(self) -> bool:
        """True if no line bends by more than noise and the digits that probabilities have lost explain."""
        if self.lost is None or self.raw is None or self.raw.too_coarse:
            return False
        noise = self.noise()
        return noise is not None and is_in_noise(
            self.near.second_differences, noise.sd * SECOND_DIFFERENCE_GAIN, self.lost
        )

    # ---- lines and answers

    @property
    def lines(self) -> list[ShortLines]:
        """All lines, those near the origin first."""
        return [self.near, *self.far.values()]

    @property
    def nearby(self) -> list[ShortLines]:
        """Lines between which integers are classified: near, and not too far out to be halved."""
        beyond = self.far.get(FAR_SCALES[0])
        return [self.near] if beyond is None else [self.near, beyond]

    @property
    def answers(self) -> FloatArray:
        """All answers (n, m) of all lines."""
        return np.concatenate([each.answers for each in self.lines])

    @property
    def far_out(self) -> tuple[FloatArray, FloatArray] | None:
        """Rows (n, d) far out and their answers (n, m); None where none were asked."""
        if not self.far:
            return None
        far = self.far.values()
        return np.concatenate([each.centres for each in far]), np.concatenate([each.at_centres for each in far])

    @property
    def largest_answered(self) -> float:
        """The largest scale at which all answers are finite."""
        return max([1.0, *(scale for scale, lines in self.far.items() if np.isfinite(lines.answers).all())])

    @property
    def mostly_ends(self) -> bool:
        """True if answers at most rays are the same at the two farthest scales.

        Those of a tree end far out too, but for rays on which an input is so small that it has not passed its last
        split.
        """
        most = 0.5
        if not self.far:
            return False
        *_, inner, outer = [self.near, *(self.far[scale] for scale in sorted(self.far))]
        return bool((inner.at_centres == outer.at_centres).all(axis=1).mean() >= most)

    def constant_beyond(self, noise: float) -> float | None:
        """Smallest scale from which answers at the same rays stay the same but for noise, all the way out."""
        by_scale = {1.0: self.near.at_centres} | {scale: lines.at_centres for scale, lines in self.far.items()}
        scales = sorted(by_scale)
        start = None
        for inner, outer in zip(reversed(scales[:-1]), reversed(scales[1:]), strict=True):
            size = np.abs(by_scale[outer]).max()
            with np.errstate(invalid="ignore"):  # inf - inf is NaN, which is a change
                unchanged = np.abs(by_scale[outer] - by_scale[inner]) <= max(UNCHANGED * size, noise)
            if not unchanged.all():
                break
            start = inner
        return start

    # ---- noise and digits

    def noise(self, *, scores: bool = False) -> NoiseReading | None:
        """Noise near the origin, at least that of the digits; None without a sound line. scores: they are integers."""
        if not self.near.sound.any():
            return None
        reading, raw = read_noise(self.near, 1.0), self.raw
        rounding = max(
            digits_noise(self.near.answers), 0.0 if raw is None else raw.noise, UNIFORM_SD if scores else 0.0
        )
        return replace(reading, sd=max(reading.sd, rounding))

    @property
    def far_noise(self) -> NoiseReading | None:
        """Noise far out; None where lines there are not sound."""
        lines = self.far.get(NOISE_SCALE)
        return read_noise(lines, NOISE_SCALE) if lines is not None and lines.sound.all() else None

    @property
    def fresh_noise(self) -> float:
        """Standard deviation between two answers to the same row; NaN without a sound line."""
        difference = self.repeated[self.near.sound] - self.near.at_centres[self.near.sound]
        return float(np.sqrt(np.mean(difference**2) / 2)) if difference.size else float("nan")

    def number_format(self, decimals: int | None) -> str:
        """The narrowest; for integers by all answers, since small ones fit any format."""
        return narrowest_format(self.near.answers) if decimals != 0 else integer_format(self.answers)

    # ---- kinds

    def integers(self, oracle: Counting, rng: np.random.Generator) -> IntegerKind | None:
        """The kind of integer answers; None for others and for two integers; undecided if they are not repeated."""
        near, far = self.near, self.far
        if not are_integers(near.answers) or not all(all_integers(lines.answers) for lines in far.values()):
            return None
        if NOISE_SCALE in far and max(far) > NOISE_SCALE:
            inner, outer = far[NOISE_SCALE].at_centres, far[max(far)].at_centres
            if are_integers(outer) and grow(inner, outer, max(far) / NOISE_SCALE):
                return IntegerKind.SCORES
        if answer_kind(near.answers) is not Kind.LABELS:
            return None
        rows, answers = finite_ends(self.nearby)
        same = np.array_equal(self.repeated, near.at_centres)
        return classify_integers(partial(ask, oracle), rows, answers, rng) if same else IntegerKind.UNDECIDED

    def steps(self, oracle: Counting, apart: FloatArray | None) -> StepKind | None:
        """The steps in which answers change; None where they do not, or too few digits are left to tell."""
        if self.raw is not None and (self.raw.too_coarse or self.raw.next_to_one):
            return None
        ends = self.mostly_ends
        likely = not self.far or (ends and not saturated(self.far, 0.0))
        return find_steps(partial(ask, oracle), self.near, ends=ends, likely=likely, apart=apart)

    def is_curved(self, oracle: Counting) -> bool:
        """True of answers with few digits that lie on curves: with all digits short steps show these by themselves."""
        noise = None if self.raw is not None else self.noise()
        if noise is None or self.shape(noise, stepped=False, bent=False) is not Shape.PIECEWISE_LINEAR:
            return False
        few_digits = noise.sd > ALL_DIGITS * _spread(self.near.finite_answers)
        return few_digits and is_curved_all_along(partial(ask, oracle), self.near, noise.sd)

    def shape(self, noise: NoiseReading | None, *, stepped: bool, bent: bool) -> Shape:
        """The shape along short lines; stepped, bent: what farther questions have shown."""
        near, sound, raw = self.near, self.near.sound, self.raw
        if noise is None or 2 * sound.sum() < len(sound) or (raw is not None and raw.too_coarse):
            return Shape.UNCLEAR
        if stepped:
            return Shape.PIECEWISE_CONSTANT
        change = np.abs(near.ahead[1][sound] - near.at_centres[sound]).max(axis=1)
        sd = noise.sd * SECOND_DIFFERENCE_GAIN
        shape = classify_shape(near.second_differences, change, sd, near.finite_answers, self.lost)
        return Shape.SMOOTH if bent and shape is Shape.PIECEWISE_LINEAR else shape

    # ---- all together

    def interface(
        self, facts: Facts, integers: IntegerKind | None, steps: StepKind | None, curved: bool, queries: int
    ) -> Interface:
        """What it shows of an interface."""
        near, scores = self.near, integers is IntegerKind.SCORES
        noise, far_noise = self.noise(scores=scores), self.far_noise
        shape = self.shape(noise, stepped=steps is not None, bent=curved)
        sd = None if noise is None else noise.sd
        # Noise that hides everything else would explain everything.
        off = 0.0 if sd is None or shape is Shape.UNCLEAR else NOISE_FACTOR * sd
        like = Likeness.of(
            near, self.far, sd, off, linked=self.raw is not None, curved=shape is Shape.SMOOTH, scores=scores
        )
        shape, every = _read_shape(shape, like.answers, scores), self.answers
        decimals = 0 if scores else None if steps is not None else find_decimals(near.answers)
        stepped = shape is Shape.PIECEWISE_CONSTANT and steps is not None
        varies_far_out = shape is Shape.CONSTANT and _differ(every)
        if shape is Shape.CONSTANT and not scores and are_labels(every) and np.ptp(every, axis=0).max() > 0:
            shape, off, varies_far_out = Shape.PIECEWISE_CONSTANT, 0.0, False  # labels, which are others far out
        return Interface(
            shape=shape,
            deterministic=np.array_equal(self.repeated, near.at_centres, equal_nan=True),
            fresh_noise=self.fresh_noise,
            noise=Noise(float("nan"), float("nan")) if noise is None else noise_model(noise, far_noise),
            readings=tuple(reading for reading in (noise, far_noise) if reading),
            spread=_spread(near.finite_answers),
            decimals=decimals,
            number_format=self.number_format(decimals),
            nonfinite=_nonfinite_rows(every) + _nonfinite_rows(self.repeated),
            largest_scale=self.largest_answered if facts.domain.is_space else None,
            constant_beyond=None if shape is Shape.CONSTANT else self.constant_beyond(off),
            queries=queries,
            facts=facts,
            raw=self.raw,
            recast=facts.recast,
            integers=integers,
            step_function=stepped,
            trees=stepped and steps is StepKind.SPLITS,
            varies_far_out=varies_far_out,
            far_out=self.far_out,
            **vars(like),
        )


def _read_shape(shape: Shape, kind: Kind, scores: bool) -> Shape:
    """The shape of answers by what they are: labels have steps, and scores have values that their rounding hides."""
    if kind is Kind.LABELS and shape is not Shape.CONSTANT:
        return Shape.PIECEWISE_CONSTANT
    return Shape.UNCLEAR if scores and shape is Shape.PIECEWISE_CONSTANT else shape


def _differ(answers: FloatArray) -> bool:
    """True of finite answers that are not all the same."""
    finite = answers[np.isfinite(answers).all(axis=1)]
    return bool(len(finite) and np.ptp(finite, axis=0).max() > UNCHANGED * np.abs(finite).max())


def _total(health: Interface) -> float | None:
    """What all outputs add up to; None of values."""
    if health.answers is not Kind.PROBABILITIES:
        return None
    return PERCENT if health.percent else 1.0


def _nonfinite_rows(answers: FloatArray) -> int:
    return int((~np.isfinite(answers).all(axis=1)).sum())


def _spread(finite: FloatArray) -> float:
    """Deviation of the answers, NaN without one; infinite if they are close to the largest number."""
    with np.errstate(over="ignore"):
        return float(finite.std(axis=0).max()) if len(finite) else float("nan")


def _is_answered(ask_again: Callable[[], ShortLines]) -> bool:
    try:
        ask_again()
    except TargetError:
        return False
    return True

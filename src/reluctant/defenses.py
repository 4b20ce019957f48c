"""Defenses: oracles around a model that give less away, by name, each with its cost to honest users.

A defense is a wrapper with a title; one that always answers the same has an identity as well. Less of the answer:
probabilities instead of values, the largest few of them, or the label alone. Fewer digits: rounding to decimals, to
significant digits, or to a narrower number format. Noise is Gaussian or Laplace. Fresh noise is averaged away by
asking again; fixed noise is a function of the row and a secret seed, so that asking again shows nothing new. Less
to ask: a limit on the rows that are answered, and inputs clipped to a range.

A new defense is one more class and one more entry in `DEFENSES`; its name on a page is in `report/text.py`.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import takewhile
from math import isfinite
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from reluctant.errors import InvalidAnswer, InvalidInput, TargetRefused
from reluctant.messages import Diagnosis
from reluctant.numerics import FloatArray
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Explained, Facts, Kind, Oracle, Wrapper
from reluctant.oracles.explanations import Rewritten
from reluctant.oracles.links import LINK_FUNCTIONS, ROUNDED_PROBABILITY_SLACK

__all__ = [
    "DEFENSES",
    "ClippedInputs",
    "Decimals",
    "Defense",
    "Digits",
    "GaussianNoise",
    "GradientDecimals",
    "GradientNoise",
    "GradientNone",
    "GradientSign",
    "GradientSize",
    "GradientTop",
    "HonestCost",
    "LabelsOnly",
    "LaplaceNoise",
    "NumberFormat",
    "Probabilities",
    "QueryLimit",
    "TopProbabilities",
    "defend",
    "honest_cost",
]


class Defense(Wrapper):
    """A wrapper around an oracle that gives less away.

    `title` is its name with its parameters, such as "decimals=3". A `repeatable` defense gives a row the same answer
    every time, so a transcript recognises the defended target.
    """

    title: str = ""
    repeatable: ClassVar[bool] = True

    def __init__(self, inner: Oracle) -> None:
        super().__init__(inner)
        self.title = self.title or type(self).__name__

    @property
    def facts(self) -> Facts:
        """Facts of the remaining answers."""
        inner = self.inner.facts
        known = bool(inner.identity) and self.repeatable
        identity = f"{inner.identity} behind {self.title}" if known else ""
        return replace(inner, identity=identity, **self.changes(inner))

    def changes(self, facts: Facts) -> dict[str, Any]:
        """What the defense changes in the facts of the target."""
        return {}

    def __repr__(self) -> str:
        return f"{self.title}({self.inner!r})"


class Probabilities(Defense):
    """Probabilities (softmax, sigmoid) or log-probabilities (log-softmax) instead of values."""

    def __init__(self, inner: Oracle, link: str) -> None:
        super().__init__(inner)
        self.link = link

    def changes(self, facts: Facts) -> dict[str, Any]:
        """Answers are probabilities."""
        return {} if self.link == "log-softmax" else {"kind": Kind.PROBABILITIES}

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then squash."""
        return LINK_FUNCTIONS[self.link](self.inner.answer(rows))


class TopProbabilities(Defense):
    """The k largest probabilities of each answer; the others are 0 and so hidden."""

    def __init__(self, inner: Oracle, k: int = 1) -> None:
        super().__init__(inner)
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= max(inner.outputs, 1):
            raise InvalidInput.about("top", got=repr(k), expected=f"a number of classes from 1 to {inner.outputs}")
        self.k = k

    def changes(self, facts: Facts) -> dict[str, Any]:
        """Answers are probabilities."""
        return {"kind": Kind.PROBABILITIES}

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then keep the largest; of equal ones the first."""
        p = self.inner.answer(rows)
        if not _are_class_probabilities(p):
            raise InvalidAnswer(
                "defense top: got answers that are no probabilities of classes, expected some. "
                "Put 'softmax' before it if the target answers values."
            )
        order = np.argsort(-p, axis=1, kind="stable")
        kept = np.zeros_like(p)
        np.put_along_axis(kept, order[:, : self.k], np.take_along_axis(p, order[:, : self.k], axis=1), axis=1)
        return kept


def _are_class_probabilities(p: FloatArray) -> bool:
    """True of probabilities that add up to one, or to less where some are hidden."""
    slack, left, full = ROUNDED_PROBABILITY_SLACK * p.shape[1], 1 - p.sum(axis=1), (p != 0).all(axis=1)
    return bool((p >= 0).all() and (left >= -slack).all() and (left[full] <= slack).all())


class LabelsOnly(Defense):
    """The number of the largest output; of one output, whether it is positive (a probability: above one half)."""

    def changes(self, facts: Facts) -> dict[str, Any]:
        """One label a row."""
        return {"kind": Kind.LABELS, "outputs": 1 if facts.outputs != UNKNOWN_OUTPUTS else UNKNOWN_OUTPUTS}

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then choose."""
        return labels_of(self.inner.answer(rows), self.inner.facts.kind)[:, None].astype(np.float64)


def labels_of(answers: FloatArray, kind: Kind) -> Any:
    """The label (n,) behind each answer (n, m)."""
    if kind is Kind.LABELS:
        return answers[:, 0].astype(int)
    if answers.shape[1] > 1:
        return answers.argmax(axis=1)
    return (answers[:, 0] > (0.5 if kind is Kind.PROBABILITIES else 0.0)).astype(int)


MOST_DIGITS = 17  # more are no rounding in float64


class Decimals(Defense):
    """Answers rounded to so many digits after the point."""

    def __init__(self, inner: Oracle, decimals: int) -> None:
        super().__init__(inner)
        self.decimals = _checked_count("decimals", decimals, 0)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then round."""
        return np.round(self.inner.answer(rows), self.decimals)


class Digits(Defense):
    """Answers rounded to so many significant digits, each by its own size."""

    def __init__(self, inner: Oracle, digits: int) -> None:
        super().__init__(inner)
        self.digits = _checked_count("digits", digits, 1)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then round."""
        answers = self.inner.answer(rows)
        sizes = np.abs(answers)
        sound = (sizes > 0) & np.isfinite(sizes)
        places = self.digits - 1 - np.floor(np.log10(sizes, where=sound, out=np.zeros_like(sizes)))
        units = 10.0 ** np.clip(-places, -300, 300)  # beyond, the unit itself would leave float64
        return np.where(sound, np.round(answers / units) * units, answers)


class NumberFormat(Defense):
    """Answers rounded to float32 or float16; a number too large for the format becomes infinite, as it would there."""

    def __init__(self, inner: Oracle, dtype: type[np.floating[Any]]) -> None:
        super().__init__(inner)
        self.dtype = np.dtype(dtype)

    def changes(self, facts: Facts) -> dict[str, Any]:
        """The number format, which more digits of the model do not change."""
        return {"dtype": min(self.dtype, facts.dtype, key=lambda dtype: dtype.itemsize), "recast": False}

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then round."""
        with np.errstate(over="ignore"):
            return self.inner.answer(rows).astype(self.dtype).astype(np.float64)


def _checked_count(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST_DIGITS:
        raise InvalidInput.about(name, got=repr(value), expected=f"a whole number from {least} to {MOST_DIGITS}")
    return value


DIGEST_BYTES_A_NUMBER = 8
MANTISSA_BITS = 53


class _AddedNoise(Defense):
    """Answers with independent noise of a standard deviation added to each."""

    repeatable = False

    def __init__(self, inner: Oracle, sd: float, *, fixed: bool = False, seed: int = 0) -> None:
        super().__init__(inner)
        if not (isinstance(sd, int | float) and sd > 0 and isfinite(sd)):
            raise InvalidInput.about("noise", got=repr(sd), expected="a standard deviation above 0")
        self.sd, self.fixed, self.seed = float(sd), fixed, seed
        self.draws = not fixed
        self._rng = np.random.default_rng(seed)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then add noise."""
        answers = self.inner.answer(rows)
        uniform = self._fixed_to(rows, answers.shape[1]) if self.fixed else self._rng.uniform(size=answers.shape)
        inside = np.clip(uniform, 2.0**-MANTISSA_BITS, 1 - 2.0**-MANTISSA_BITS)
        return answers + self.sd * self.shape(inside)

    def shape(self, uniform: FloatArray) -> FloatArray:
        """Noise of unit deviation from uniform numbers."""
        raise NotImplementedError

    def _fixed_to(self, rows: FloatArray, outputs: int) -> FloatArray:
        """Uniform numbers that only the row and the seed determine."""
        key, size = str(self.seed).encode() + b":", DIGEST_BYTES_A_NUMBER * outputs
        digests = b"".join(hashlib.shake_128(key + row.tobytes()).digest(size) for row in rows + 0.0)
        whole = np.frombuffer(digests, dtype=np.uint64).reshape(len(rows), outputs)
        return np.asarray((whole >> np.uint64(64 - MANTISSA_BITS)) * 2.0**-MANTISSA_BITS, dtype=np.float64)


class GaussianNoise(_AddedNoise):
    """Gaussian noise of this standard deviation."""

    def shape(self, uniform: FloatArray) -> FloatArray:
        """Normal numbers."""
        return np.asarray(ndtri(uniform))


class LaplaceNoise(_AddedNoise):
    """Laplace noise of this standard deviation, as differential privacy uses it."""

    def shape(self, uniform: FloatArray) -> FloatArray:
        """Laplace numbers of unit deviation."""
        centred = uniform - 0.5
        return np.asarray(-np.sign(centred) * np.log1p(-2 * np.abs(centred)) / np.sqrt(2))


class QueryLimit(Defense):
    """Answers so many rows and no more; a batch that would pass the limit is refused whole."""

    def __init__(self, inner: Oracle, rows: int) -> None:
        super().__init__(inner)
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise InvalidInput.about("limit", got=repr(rows), expected="a whole number of rows, at least 1")
        self.rows, self.answered = rows, 0
        self._lock = threading.Lock()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """A copy counts for itself, from where this one is."""
        again = type(self)(deepcopy(self.inner, memo), self.rows)
        again.title, again.answered = self.title, self.answered
        return again

    def answer(self, rows: FloatArray) -> FloatArray:
        """Refuse, or count and pass on."""
        with self._lock:
            if self.answered + len(rows) > self.rows:
                raise TargetRefused(
                    f"target: refused {len(rows)} rows after {self.answered}: its limit is {self.rows} rows. "
                    "Ask with fewer, or wait until the owner raises it."
                )
            self.answered += len(rows)
        return self.inner.answer(rows)


class ClippedInputs(Defense):
    """Every coordinate is moved into [low, high] before the target sees it."""

    def __init__(self, inner: Oracle, low: float, high: float) -> None:
        super().__init__(inner)
        if not low < high:
            raise InvalidInput.about("clip", got=f"{low}:{high}", expected="bounds low:high with low below high")
        self.low, self.high = low, high

    def answer(self, rows: FloatArray) -> FloatArray:
        """Clip, then pass on."""
        return self.inner.answer(np.clip(rows, self.low, self.high))


# ---- explanations


class _LessExplained(Defense):
    """Values as they are, and less of their gradients."""

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on."""
        return self.inner.answer(rows)

    def explaining(self, inner: Oracle) -> Oracle | None:
        """Rewrite the gradients (n, m, d) alone."""
        return Rewritten(self, inner, lambda found: Explained(found.values, self.rewritten(found.gradients)))

    def rewritten(self, slopes: FloatArray) -> FloatArray:
        """The gradients that are answered."""
        raise NotImplementedError


class GradientDecimals(_LessExplained):
    """Gradients rounded to so many digits after the point."""

    def __init__(self, inner: Oracle, decimals: int) -> None:
        super().__init__(inner)
        self.decimals = _checked_count("gradient-decimals", decimals, 0)

    def rewritten(self, slopes: FloatArray) -> FloatArray:
        """Round."""
        return np.round(slopes, self.decimals)


class GradientNoise(_LessExplained):
    """Gradients with fresh Gaussian noise of this standard deviation."""

    repeatable = False
    draws = True

    def __init__(self, inner: Oracle, sd: float, *, seed: int = 0) -> None:
        super().__init__(inner)
        if not (isinstance(sd, int | float) and sd > 0 and isfinite(sd)):
            raise InvalidInput.about("gradient-noise", got=repr(sd), expected="a standard deviation above 0")
        self.sd, self._rng = float(sd), np.random.default_rng(seed)

    def rewritten(self, slopes: FloatArray) -> FloatArray:
        """Add noise."""
        return slopes + self.sd * self._rng.standard_normal(slopes.shape)


class GradientTop(_LessExplained):
    """The k entries of each gradient that are largest in size; the others are 0."""

    def __init__(self, inner: Oracle, k: int) -> None:
        super().__init__(inner)
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise InvalidInput.about("gradient-top", got=repr(k), expected="a number of entries, at least 1")
        self.k = k

    def rewritten(self, slopes: FloatArray) -> FloatArray:
        """Keep the largest; of equal ones the first."""
        order = np.argsort(-np.abs(slopes), axis=2, kind="stable")[..., : self.k]
        kept = np.zeros_like(slopes)
        np.put_along_axis(kept, order, np.take_along_axis(slopes, order, axis=2), axis=2)
        return kept


class GradientSign(_LessExplained):
    """The sign of each entry."""

    def rewritten(self, slopes: FloatArray) -> FloatArray:
        """Keep signs."""
        return np.sign(slopes)


class GradientSize(_LessExplained):
    """The absolute value of each entry."""

    def rewritten(self, slopes: FloatArray) -> FloatArray:
        """Keep sizes."""
        return np.abs(slopes)


class GradientNone(_LessExplained):
    """No gradients at all."""

    def explaining(self, inner: Oracle) -> Oracle | None:
        """There are none."""
        return None


# ---- the cost to honest users


@dataclass(frozen=True)
class HonestCost:
    """Defended answers beside plain ones, on honest inputs.

    Errors are relative to the standard deviation of the plain answers, over all outputs; NaN where the defended ones
    are of another kind (labels or probabilities instead of values) or shape. `agreement` is the share of inputs that
    keep their label, `rows` how many inputs were compared.
    """

    rms_error: float
    max_error: float
    agreement: float
    rows: int

    def __str__(self) -> str:
        return str(Diagnosis("honest-cost" if np.isfinite(self.rms_error) else "other-answers", asdict(self)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def honest_cost(plain: Oracle, defended: Oracle, inputs: ArrayLike) -> HonestCost:
    """Ask both the same honest inputs (n, d) and compare.

    Errors compare answers of one kind: where a defense makes probabilities of values, pass the oracle of
    probabilities as `plain` to compare those. Cost: n rows each.
    """
    before, after = plain.query(inputs), defended.query(inputs)
    if plain.facts.kind is Kind.LABELS:
        raise InvalidInput.about("plain", got="labels", expected="the answers before the defense")
    same_label = labels_of(before, plain.facts.kind) == labels_of(after, defended.facts.kind)
    same_kind = plain.facts.kind is defended.facts.kind and before.shape == after.shape
    rms, largest = _relative_errors(before, after) if same_kind else (float("nan"), float("nan"))
    return HonestCost(rms, largest, float(same_label.mean()), len(before))


def _relative_errors(before: FloatArray, after: FloatArray) -> tuple[float, float]:
    unit = float(before.std()) or 1.0
    difference = np.abs(after - before)
    return float(np.sqrt(np.mean(difference**2))) / unit, float(difference.max()) / unit


# ---- defenses by name

Maker = Callable[..., Defense]
NOISE_SETTINGS: Mapping[str, Callable[[str], Any]] = {"fixed": lambda text: text != "no", "seed": int}


@dataclass(frozen=True)
class DefenseEntry:
    """A defense in the list: its name with parameters, its effect, and its maker from the text after the name."""

    usage: str
    what: str
    make: Maker
    read: Callable[[str], tuple[Any, ...]]
    settings: Mapping[str, Callable[[str], Any]]

    @property
    def of_gradients(self) -> bool:
        """True if it leaves values as they are, and less of gradients."""
        return isinstance(self.make, type) and issubclass(self.make, _LessExplained)


def _no_value(text: str) -> tuple[Any, ...]:
    if text:
        raise ValueError("takes no value")
    return ()


def _low_and_high(text: str) -> tuple[Any, ...]:
    low, high = text.split(":")
    return float(low), float(high)


def _entry(usage: str, what: str, make: Maker, read: Callable[[str], Any] = _no_value, **settings: Any) -> DefenseEntry:
    values = read if read in (_no_value, _low_and_high) else lambda text: (read(text),)
    return DefenseEntry(usage, what, make, values, settings)


DEFENSES: dict[str, DefenseEntry] = {
    "decimals": _entry("decimals=3", "answers rounded to decimals", Decimals, int),
    "digits": _entry("digits=4", "answers rounded to significant digits", Digits, int),
    "float32": _entry("float32", "answers rounded to float32", partial(NumberFormat, dtype=np.float32)),
    "float16": _entry("float16", "answers rounded to float16", partial(NumberFormat, dtype=np.float16)),
    "gaussian": _entry("gaussian=1e-3[,fixed][,seed=7]", "Gaussian noise, fresh or fixed to the input",
                       GaussianNoise, float, **NOISE_SETTINGS),
    "laplace": _entry("laplace=1e-3[,fixed][,seed=7]", "Laplace noise, fresh or fixed to the input",
                      LaplaceNoise, float, **NOISE_SETTINGS),
    "softmax": _entry("softmax", "probabilities of classes instead of values", partial(Probabilities, link="softmax")),
    "log-softmax": _entry("log-softmax", "log-probabilities instead of values",
                          partial(Probabilities, link="log-softmax")),
    "sigmoid": _entry("sigmoid", "a probability for each value", partial(Probabilities, link="sigmoid")),
    "top": _entry("top=1", "the largest probabilities, the others 0", TopProbabilities, int),
    "labels": _entry("labels", "the label alone", LabelsOnly),
    "limit": _entry("limit=10000", "a limit on the rows answered", QueryLimit, int),
    "clip": _entry("clip=0:1", "inputs moved into a range", ClippedInputs, _low_and_high),
    "gradient-decimals": _entry("gradient-decimals=3", "gradients rounded to decimals", GradientDecimals, int),
    "gradient-noise": _entry("gradient-noise=1e-3[,seed=7]", "gradients with Gaussian noise",
                             GradientNoise, float, seed=int),
    "gradient-top": _entry("gradient-top=10", "the largest entries of a gradient, the others 0", GradientTop, int),
    "gradient-sign": _entry("gradient-sign", "signs of gradients", GradientSign),
    "gradient-absolute": _entry("gradient-absolute", "absolute values of gradients", GradientSize),
    "gradient-none": _entry("gradient-none", "no gradients", GradientNone),
}  # fmt: skip

NUMBER_FORMATS = frozenset({"float32", "float16"})  # how answers are written, after all else is done to them
OF_GRADIENTS = frozenset(kind for kind, entry in DEFENSES.items() if entry.of_gradients)
FEWER_DIGITS = frozenset({"decimals", "digits"}) | NUMBER_FORMATS  # these leave fewer digits of the same answers


@dataclass(frozen=True)
class DefenseSpec:
    """A defense by its name, such as "gaussian=1e-3,fixed": its kind, its value and its settings as text."""

    kind: str
    value: str
    settings: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> DefenseSpec:
        """From its text; the kind need not be one of `DEFENSES`."""
        head, *settings = (part.strip() for part in text.split(","))
        kind, _, value = head.partition("=")
        return cls(kind.strip(), value, tuple(settings))

    @property
    def of_gradients(self) -> bool:
        """True if it leaves values as they are, and less of gradients."""
        return self.kind in OF_GRADIENTS


def defense_kind(defense: str) -> str:
    """Its name without its settings."""
    return DefenseSpec.read(defense).kind


def kinds_of(defenses: str) -> tuple[str, ...]:
    """Kinds of the defenses in one name, such as "softmax, decimals=3"."""
    return tuple(defense_kind(name) for name in defenses.split(", "))


def split_last_defenses(defenses: Sequence[str], kinds: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The defenses in two parts: the longest end of the list that has these kinds alone, and what comes before it."""
    last = list(takewhile(lambda name: defense_kind(name) in kinds, reversed(defenses)))
    return tuple(defenses[: len(defenses) - len(last)]), tuple(reversed(last))


def defend(oracle: Oracle, *defenses: str | Maker) -> Oracle:
    """Put defenses around an oracle, the first one next to the target.

    Arguments:
        oracle: the target to defend; `open_oracle` gives one.
        defenses: each a name from `DEFENSES` with its parameters, such as "decimals=3" or "gaussian=1e-3,fixed", or a
            function that wraps an oracle.
    """
    if not isinstance(oracle, Oracle):
        raise InvalidInput.about(
            "oracle",
            got=type(oracle).__name__,
            expected="an oracle",
            fix="Open the target first: rl.open_oracle(f).",
        )
    for defense in defenses:
        oracle = _defend_by_name(oracle, defense) if isinstance(defense, str) else defense(oracle)
    return oracle


def _defend_by_name(oracle: Oracle, text: str) -> Defense:
    spec = DefenseSpec.read(text)
    entry = DEFENSES.get(spec.kind)
    if entry is None:
        usages = ", ".join(each.usage for each in DEFENSES.values())
        raise InvalidInput.about("defense", got=repr(text), expected=f"one of {usages}")
    try:
        pairs = (part.partition("=") for part in spec.settings)
        settings = {key: entry.settings[key](setting) for key, _, setting in pairs}
        arguments = entry.read(spec.value)
    except (KeyError, ValueError) as error:
        got = f"{text!r} ({error})"
        raise InvalidInput.about("defense", got=got, expected=f"something like {entry.usage}") from None
    made = entry.make(oracle, *arguments, **settings)
    made.title = text
    return made

"""The parameters and query counts that the learning theorem asks for (Chen, Klivans and Meka, 2021).

The paper is "Efficiently Learning Any One Hidden Layer ReLU Network From Queries"; its parameters are k, R, B, ε, δ and
d.

Every number is the paper's own formula; each row of the table names its lemma. A theorem may ask for 10^600
queries and floats end at 10^308, so a `Magnitude` keeps the logarithm. What the paper leaves open:

- absolute constants behind O, Ω and Θ are set to one (in M it is √2, which is known);
- the polynomial 𝔓 of Theorem 4.8 is what its proof arrives at (`polynomial`).

So the numbers tell the size of what the theorem asks for, not its last digit.

Where statement and proof of the paper differ:

- ε is the square error of Theorem 1.1. Theorem 4.8 states its bound for the norm, its proof shows it for the
  square of the norm, and Step 3 of GETNEURONS then gives a square error of ε.
- ‖w_i‖ in (13) is ε/k: neurons of less weight are replaced by constants (proof of Theorem 4.8).
- (13) and the statement of Lemma 4.3 lack the factor B that the first line of the lemma's proof has.
- (20) and (21) write τ/r for the number of features #𝒮; Theorem 4.8 makes it m(m - 1), used here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.numerics import unit_roundoff

PLAIN_POWERS = (-4.0, 9.0)  # log10 of numbers written out; all others are powers of ten
LARGEST_POWER = math.log10(2) * 1023
SMALLEST_POWER = -LARGEST_POWER
LOG_ROUNDING = 1e-12  # relative, of a number that comes back from its logarithm
EXACT_POWER = 15.0  # log10 up to which a float still tells a number from the next integer


@dataclass(frozen=True, order=True)
class Magnitude:
    """A number x ≥ 0 as log10(x); sums, products and powers of such numbers and of plain ones."""

    log10: float

    @classmethod
    def of(cls, x: float | Magnitude) -> Magnitude:
        """From a plain number that is not negative."""
        if isinstance(x, Magnitude):
            return x
        return cls(math.log10(x) if x else -math.inf)

    def __mul__(self, other: float | Magnitude) -> Magnitude:
        return Magnitude(self.log10 + Magnitude.of(other).log10)

    __rmul__ = __mul__

    def __truediv__(self, other: float | Magnitude) -> Magnitude:
        return Magnitude(self.log10 - Magnitude.of(other).log10)

    def __rtruediv__(self, other: float) -> Magnitude:
        return Magnitude.of(other) / self

    def __pow__(self, power: float) -> Magnitude:
        return Magnitude(self.log10 * power)

    def __add__(self, other: float | Magnitude) -> Magnitude:
        small, large = sorted((self.log10, Magnitude.of(other).log10))
        if small == -math.inf:
            return Magnitude(large)
        return Magnitude(large + math.log1p(10 ** (small - large)) / math.log(10))

    __radd__ = __add__

    def ceil(self) -> Magnitude:
        """The next integer; the number itself where a float no longer tells integers apart."""
        if self.log10 > EXACT_POWER:
            return self
        x = float(self)
        nearest = round(x)
        # The logarithm keeps about 15 digits: an integer that comes back a rounding too large is that integer.
        return Magnitude.of(nearest if math.isclose(x, nearest, rel_tol=LOG_ROUNDING) else math.ceil(x))

    def __float__(self) -> float:
        """The plain number; never 0 or inf in place of one that a float cannot hold."""
        if self.log10 == -math.inf:
            return 0.0
        if not SMALLEST_POWER <= self.log10 <= LARGEST_POWER:
            raise OverflowError(f"10^{self.log10:.1f} does not fit a float; use log10")
        return float(10.0**self.log10)

    def __str__(self) -> str:
        if self.log10 == -math.inf:
            return "0"
        if not PLAIN_POWERS[0] <= self.log10 <= PLAIN_POWERS[1]:
            return f"10^{self.log10:.1f}"
        x = float(self)
        return f"{x:,.0f}" if x >= 1000 else f"{x:.3g}"


BIAS_ROWS = 3  # GETBIAS: the midpoint and both ends of an interval
POLARIZED = math.sqrt(2) / 2  # kΔ stays below this: Lemma 3.9


@dataclass(frozen=True)
class Constants:
    """F(x) = Σ s_i max(⟨w_i, x⟩ - b_i, 0) with k neurons, ‖w_i‖ ≤ R, |b_i| ≤ B, s_i = ±1, in d dimensions (11).

    The square error is to be at most ε with probability at least 1 - δ (Theorem 1.1).
    """

    k: int
    R: float
    B: float
    eps: float
    delta: float
    d: int

    def __post_init__(self) -> None:
        for name, value in (("k", self.k), ("d", self.d)):
            if value < 1:
                raise InvalidInput.about(name, got=value, expected="at least 1")
        for name, size in (("R", self.R), ("eps", self.eps)):
            if not 0 < size < math.inf:
                raise InvalidInput.about(name, got=size, expected="a positive number")
        if not 0 <= self.B < math.inf:
            raise InvalidInput.about("B", got=self.B, expected="a number of at least 0")
        if not 0 < self.delta < 1:
            raise InvalidInput.about("delta", got=self.delta, expected="a number between 0 and 1")

    @classmethod
    def of(cls, network: ReLUNetwork, eps: float, delta: float) -> Constants:
        """Constants of a known network with one hidden layer and one output; output weights move into the neurons."""
        if network.depth != 2 or network.outputs != 1:
            raise InvalidInput.about("network", got=f"{network!r}", expected="one hidden layer and one output")
        size = np.abs(network.weights[1][0])
        weights, thresholds = size * np.linalg.norm(network.weights[0], axis=1), size * np.abs(network.biases[0])
        return cls(len(size), float(weights.max(initial=0)), float(thresholds.max(initial=0)), eps, delta, network.dim)

    @property
    def spread(self) -> float:
        """√log(k/δ): how far the largest of k Gaussian numbers goes (Fact 2.6)."""
        return math.sqrt(math.log(self.k / self.delta))

    @property
    def size(self) -> float:
        """√d + √log(k/δ)."""
        return math.sqrt(self.d) + self.spread


@dataclass(frozen=True)
class TheoremParameters:
    """The theorem's numbers, in the order in which they follow from each other; `beside` gives their meanings."""

    polynomial: Magnitude
    separation: Magnitude
    closeness: Magnitude
    interval: Magnitude
    reach: Magnitude
    step: Magnitude
    intervals: Magnitude
    search_queries: Magnitude
    features: Magnitude
    weight_bound: Magnitude
    threshold_bound: Magnitude
    radius: Magnitude
    norm_bound: Magnitude
    samples: Magnitude
    queries: Magnitude

    @property
    def fits_float64(self) -> bool:
        """False if neighbouring points of the grid are the same float64 number."""
        return self.interval >= 2 * unit_roundoff(np.float64) * self.reach


_MEANINGS = {
    "polynomial": ("𝔓", "what k, R, B and log(1/δ) put in front of Δ^(2/9) (Theorem 4.8)"),
    "separation": ("Δ", "sine below which two neurons may share a kink (Step 3 of GETNEURONS)"),
    "closeness": ("α′", "offset below which they may (Lemma 4.4 with kΔ)"),
    "interval": ("r", "length of an interval of the line (12)"),
    "reach": ("τ", "the line is searched from -τ to τ (13)"),
    "step": ("α", "step of a finite difference (Lemma 4.10)"),
    "intervals": ("m", "intervals of the line"),
    "search_queries": ("m(d+4)", "queries of GETNEURONS"),
    "features": ("#𝒮", "neurons handed to the regression (Theorem 4.8)"),
    "weight_bound": ("kR", "largest ‖w‖ of such a neuron (14)"),
    "threshold_bound": ("kB + …", "largest size of its b (14)"),
    "radius": ("M", "largest ‖x‖ of a sample (Definition 4.12)"),
    "norm_bound": ("W", "largest norm of the regression's solution (19), (21)"),
    "samples": ("n", "samples of the regression (Theorems 4.13, 4.14, 4.16)"),
    "queries": ("m(d+4)+n", "queries of LEARNFROMQUERIES"),
}


def theorem(constants: Constants) -> TheoremParameters:
    """All parameters that Theorem 4.8, GETNEURONS and Theorem 4.16 need, for these constants."""
    c, poly = constants, polynomial(constants)
    separation = min((c.eps / poly) ** (9 / 2), Magnitude.of(POLARIZED / c.k))
    interval = separation * c.delta**2 / (c.k**4 * c.size)
    size = math.sqrt(c.d) + math.sqrt(math.log(1 / c.delta))
    reach = c.k * interval + Magnitude.of(c.k * size / c.delta) * (c.k * Magnitude.of(c.B) / c.eps + c.spread)
    intervals = (2 * reach / interval).ceil()
    features = intervals * intervals  # m(m - 1): no digit of difference for any m that a theorem gives
    threshold_bound = separation * (c.k**2 * c.R * c.spread) + c.k * c.B
    bounds = Magnitude.of(c.k * c.R), threshold_bound
    largest = norm_bound(c, features)
    m = radius(c)
    lipschitz = Magnitude.of(m * c.k * c.R + c.k * c.B)
    x = m * (features * (bounds[0] ** 2 + bounds[1] ** 2)) ** 0.5
    tail = 2 * lipschitz**2 * math.sqrt(math.log(1 / c.delta) / 2)
    samples = (((4 * lipschitz * x * largest + tail) / c.eps) ** 2).ceil()
    search = intervals * rows_per_interval(c.d)
    return TheoremParameters(
        poly, separation, separation * (c.k * c.spread), interval, reach, gradient_step(c, interval),
        intervals, search, features, *bounds, Magnitude.of(radius(c)), largest, samples, search + samples,
    )  # fmt: skip


def polynomial(c: Constants) -> Magnitude:
    """𝔓 of Theorem 4.8. Every term of Lemma 3.21 has a power of Δ of at least 2/9: its value at Δ = 1.

    The lemma is applied to neurons that are (kΔ, kΔ√log(k/δ))-close. At most k clusters are joined by the
    triangle inequality: k² times the square error of one.
    """
    one = Magnitude.of(1)
    separation, alpha = one * c.k, one * (c.k * c.spread)
    return c.k**2 * max(affine_error(c, separation, alpha), merged_error(c, separation, alpha))


def affine_error(c: Constants, separation: Magnitude, alpha: Magnitude) -> Magnitude:
    """Lemma 3.19: square error of an affine function for k close neurons that cancel, from the end of its proof."""
    cancelled = (separation * c.R) ** (2 / 9)  # ω² / (ΔR)^(2/9), as ω ≤ (ΔR)^(2/9)
    disagree = c.k * alpha**0.5 + c.k * cancelled
    lipschitz = c.k**2 * c.B**2 + c.k**4 * c.R**2
    return disagree * lipschitz + (alpha * c.R) ** 2 + cancelled * c.B**2 + cancelled**2 + cancelled * c.k**2


def merged_error(c: Constants, separation: Magnitude, alpha: Magnitude) -> Magnitude:
    """Lemma 3.21, 2.: square error of the two neurons that stand for k close ones, from its proof."""
    turned = (separation * c.k) ** (2 / 5)
    moved = (alpha * c.k) ** 2 * separation ** (-4 / 9) * c.R ** (14 / 9)
    return c.k**4 * c.R**2 * (turned + moved)


def gradient_step(c: Constants, interval: float | Magnitude) -> Magnitude:
    """Lemma 4.10: the step α for intervals of this length."""
    return c.delta * Magnitude.of(interval) / (4 * c.k * math.sqrt(c.d) + c.k * c.spread)


def rows_per_interval(d: int) -> int:
    """Three of GETBIAS and d + 1 of GETGRADIENT (Lemma 4.9 counts d, without F(x))."""
    return BIAS_ROWS + d + 1


def radius(c: Constants) -> float:
    """M of Definition 4.12: a Gaussian sample is longer with probability at most δ."""
    return math.sqrt(c.d) + math.sqrt(2 * math.log(1 / c.delta))


def norm_bound(c: Constants, features: float | Magnitude) -> Magnitude:
    """W of (21): coefficients ±1 for the features, an affine function of k neurons."""
    return Magnitude.of(features) ** 0.5 + c.k * (c.R + c.B)


@dataclass(frozen=True)
class ParameterRow:
    """One parameter: its symbol, what it means, the theorem's value, and the value that was really used if any."""

    name: str
    symbol: str
    meaning: str
    theorem: Magnitude
    used: float | None


def beside(asked: TheoremParameters, used: Mapping[str, float]) -> list[ParameterRow]:
    """The theorem's parameters beside the ones that were really used, named by the fields of `TheoremParameters`."""
    names = [field.name for field in fields(asked)]
    unknown = sorted(set(used) - set(names))
    if unknown:
        raise InvalidInput.about("used", got=", ".join(unknown), expected=f"names among {', '.join(names)}")
    return [ParameterRow(name, *_MEANINGS[name], getattr(asked, name), used.get(name)) for name in names]


def table(rows: list[ParameterRow]) -> str:
    """The rows as a Markdown table."""
    lines = ["| | meaning | the theorem asks | really used |", "|---|---|---:|---:|"]
    for row in rows:
        used = "" if row.used is None else str(Magnitude.of(row.used))
        lines.append(f"| {row.symbol} | {row.meaning} | {row.theorem} | {used} |")
    return "\n".join(lines)

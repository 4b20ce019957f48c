"""What the theorem asks for: a value by hand, which way it grows, no overflow, the table beside practice."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.papers import learning_theory as theory
from reluctant.papers.learning_theory import Constants, Magnitude

E = math.e
BY_HAND = Constants(k=1, R=1.0, B=1.0, eps=0.5, delta=1 / E, d=1)  # log(k/δ) = log(1/δ) = 1
CONSTANTS = st.builds(
    Constants,
    k=st.integers(1, 10_000),
    R=st.floats(1e-2, 1e4),
    B=st.floats(1e-2, 1e4),
    eps=st.floats(1e-12, 0.1),
    delta=st.floats(1e-9, 0.5),
    d=st.integers(1, 10_000),
)
HARDER = {
    "k": lambda c: 2 * c.k,
    "R": lambda c: 2 * c.R,
    "B": lambda c: 2 * c.B,
    "eps": lambda c: c.eps / 2,
    "delta": lambda c: c.delta / 2,
    "d": lambda c: 2 * c.d,
}


def test_every_parameter_by_hand() -> None:
    """Lemma 3.19: (1 + 1)(1 + 1) + 1 + 1 + 1 + 1 = 8; Lemma 3.21: 1 + 1 = 2; Δ = (0.5 / 8)^(9/2) = 2^-18."""
    asked = theory.theorem(BY_HAND)
    r = 2**-18 * E**-2 / 2
    tau = r + (2 / (1 / E)) * (1 / 0.5 + 1)
    m = math.ceil(2 * tau / r)
    big_m = 1 + math.sqrt(2)
    x, w = big_m * m * math.sqrt(1 + (1 + 2**-18) ** 2), m + 2
    n = ((4 * (big_m + 1) * x * w + 2 * (big_m + 1) ** 2 * math.sqrt(0.5)) / 0.5) ** 2
    expected = {
        "polynomial": 8, "separation": 2**-18, "closeness": 2**-18, "interval": r, "reach": tau, "step": r / E / 5,
        "intervals": m, "search_queries": 5 * m, "features": m**2, "weight_bound": 1, "threshold_bound": 1 + 2**-18,
        "radius": big_m, "norm_bound": w, "samples": n, "queries": n + 5 * m,
    }  # fmt: skip
    assert m == 126_367_274
    assert {field.name: float(getattr(asked, field.name)) for field in fields(asked)} == pytest.approx(expected)


@given(CONSTANTS)
def test_separation_is_what_epsilon_asks(constants: Constants) -> None:
    """𝔓 Δ^(2/9) = ε, and both cases of Lemma 3.21 stay below it for k clusters."""
    asked = theory.theorem(constants)
    assert (asked.polynomial * asked.separation ** (2 / 9)).log10 == pytest.approx(math.log10(constants.eps))
    close = constants.k * asked.separation, asked.closeness
    limit = math.log10(constants.eps) + 1e-9
    assert (constants.k**2 * theory.affine_error(constants, *close)).log10 <= limit
    assert (constants.k**2 * theory.merged_error(constants, *close)).log10 <= limit


@pytest.mark.parametrize("name", HARDER)
@given(constants=CONSTANTS)
def test_harder_problems_need_more_queries(name: str, constants: Constants) -> None:
    easy, hard = theory.theorem(constants), theory.theorem(replace(constants, **{name: HARDER[name](constants)}))
    assert hard.queries > easy.queries
    assert hard.samples > easy.samples
    assert hard.intervals > easy.intervals
    assert hard.step <= easy.step
    assert hard.interval <= easy.interval
    assert hard.separation <= easy.separation


@given(CONSTANTS)
def test_numbers_are_finite_however_large(constants: Constants) -> None:
    asked = theory.theorem(constants)
    assert all(math.isfinite(getattr(asked, field.name).log10) for field in fields(asked))


def test_intervals_grow_like_epsilon_to_the_eleven_halves() -> None:
    """τ grows like 1/ε, 1/r like ε^(-9/2)."""
    one, other = (theory.theorem(Constants(5, 1.0, 1.0, eps, 0.1, 4)).intervals.log10 for eps in (1e-8, 1e-9))
    assert other - one == pytest.approx(5.5, abs=1e-3)


def test_the_theorem_is_beyond_float64_but_for_toys() -> None:
    assert theory.theorem(BY_HAND).fits_float64
    assert not theory.theorem(Constants(3, 1.0, 1.0, 1e-2, 0.1, 3)).fits_float64


def test_without_thresholds_kinks_are_near() -> None:
    asked = theory.theorem(replace(BY_HAND, B=0.0))
    assert float(asked.reach) == pytest.approx(2 * E, rel=1e-5)


def test_a_coarse_epsilon_keeps_clusters_polarized() -> None:
    """Lemma 3.9: kΔ < √2/2."""
    assert float(theory.theorem(replace(BY_HAND, eps=1e9)).separation) == pytest.approx(math.sqrt(2) / 2)


def test_constants_of_a_network_move_outputs_into_neurons() -> None:
    network = ReLUNetwork([[[3.0, 4.0], [1.0, 0.0]], [[-2.0, 5.0]]], [[-1.0, 0.5], [0.0]])
    assert Constants.of(network, 0.1, 0.2) == Constants(k=2, R=10.0, B=2.5, eps=0.1, delta=0.2, d=2)
    with pytest.raises(InvalidInput, match="one hidden layer and one output"):
        Constants.of(ReLUNetwork([[[1.0]]], [[0.0]]), 0.1, 0.2)
    with pytest.raises(InvalidInput, match="k: got 0"):
        Constants.of(ReLUNetwork([np.zeros((0, 2)), np.zeros((1, 0))], [[], [0.0]]), 0.1, 0.2)


@pytest.mark.parametrize(
    ("name", "value"),
    [("k", 0), ("d", 0), ("R", 0), ("B", -1), ("eps", 0), ("delta", 1), ("R", math.inf), ("B", math.nan)],
)
def test_constants_that_make_no_sense_are_refused(name: str, value: float) -> None:
    with pytest.raises(InvalidInput, match=name):
        replace(BY_HAND, **{name: value})


# ---- theory beside practice


def test_rows_put_theory_beside_practice() -> None:
    rows = theory.beside(theory.theorem(BY_HAND), {"interval": 0.02, "queries": 18_000})
    assert [row.name for row in rows] == [field.name for field in fields(theory.TheoremParameters)]
    by_name = {row.name: row for row in rows}
    assert by_name["interval"].used == 0.02
    assert by_name["reach"].used is None
    text = theory.table(rows).splitlines()
    assert len(text) == 2 + len(rows)
    assert text[5] == "| r | length of an interval of the line (12) | 10^-6.6 | 0.02 |"
    assert text[-1].endswith("| 10^36.3 | 18,000 |")
    assert all(line.count("|") == 5 for line in text)


def test_a_name_the_theorem_does_not_know_is_refused() -> None:
    with pytest.raises(InvalidInput, match="width"):
        theory.beside(theory.theorem(BY_HAND), {"width": 1.0})


# ---- numbers of any size

PLAIN = st.floats(1e-30, 1e30)


@given(PLAIN, PLAIN, st.floats(-3, 3))
def test_magnitudes_are_numbers(x: float, y: float, power: float) -> None:
    one, other = Magnitude.of(x), Magnitude.of(y)
    assert float(one * other) == pytest.approx(x * y)
    assert float(one / y) == pytest.approx(x / y)
    assert float(x / other) == pytest.approx(x / y)
    assert float(one + y) == pytest.approx(x + y)
    assert float(one**power) == pytest.approx(x**power)
    assert (one < other) == (one.log10 < other.log10)


def test_a_magnitude_beyond_floats_is_never_zero_or_infinite() -> None:
    for log10 in (400.0, -400.0):
        with pytest.raises(OverflowError, match=f"{log10:.0f}"):
            float(Magnitude(log10))
    assert float(Magnitude.of(0)) == 0
    assert Magnitude.of(0) + 2 == Magnitude.of(2)


@pytest.mark.parametrize(
    ("x", "text"), [(Magnitude(600.04), "10^600.0"), (Magnitude.of(18_000), "18,000"), (Magnitude.of(0.0213), "0.0213"),
                    (Magnitude.of(1e-7), "10^-7.0"), (Magnitude.of(0), "0")]
)  # fmt: skip
def test_a_magnitude_is_written_as_one_reads_it(x: Magnitude, text: str) -> None:
    assert str(x) == text


@given(st.integers(1, 10**12))
def test_the_next_integer_of_an_integer_is_itself(n: int) -> None:
    assert float(Magnitude.of(n).ceil()) == pytest.approx(n, rel=1e-14)
    assert float((Magnitude.of(n) + 0.25).ceil()) == pytest.approx(n + 1, rel=1e-11)

"""Every defense keeps the contract, does what its name says, can be put around another, and has a price."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

import numpy as np
import pytest

import reluctant as rl
from reluctant.defenses import DEFENSES, FEWER_DIGITS, split_last_defenses
from reluctant.errors import InvalidAnswer, InvalidInput, TargetRefused
from reluctant.numerics import FloatArray
from reluctant.oracles import Kind, NetworkOracle, Oracle
from reluctant.report.text import defense_words
from reluctant.testing import planted
from reluctant.testing.contract import OracleContract

NETWORK = planted((5, 7, 3), 1)
ROWS = np.random.default_rng(4).standard_normal((400, 5))
PLAIN = NETWORK(ROWS)

SPECS = {
    "decimals": ["decimals=3"],
    "digits": ["digits=4"],
    "float32": ["float32"],
    "float16": ["float16"],
    "gaussian": ["gaussian=1e-3"],
    "gaussian, fixed": ["gaussian=1e-3,fixed"],
    "laplace": ["laplace=1e-3,seed=4"],
    "laplace, fixed": ["laplace=1e-3,fixed,seed=4"],
    "softmax": ["softmax"],
    "log-softmax": ["log-softmax"],
    "sigmoid": ["sigmoid"],
    "top": ["softmax", "top=2"],
    "labels": ["labels"],
    "limit": ["limit=100"],
    "clip": ["clip=-1:1"],
    "gradients": [
        "gradient-decimals=3",
        "gradient-noise=1e-3",
        "gradient-top=2",
        "gradient-sign",
        "gradient-absolute",
        "gradient-none",
    ],
    "several": ["clip=-2:2", "softmax", "gaussian=1e-4,fixed", "decimals=5", "limit=1000"],
}
FRESH = {"gaussian", "laplace"}
FRESH_TOLERANCE = 0.02  # twenty deviations of the noise


def defended(name: str) -> Oracle:
    return rl.defend(NetworkOracle(NETWORK), *SPECS[name])


@pytest.mark.parametrize("name", SPECS)
class TestEveryDefense(OracleContract):
    @pytest.fixture
    def oracle(self, name: str) -> Iterator[Oracle]:
        with defended(name) as oracle:
            yield oracle

    def tolerance(self, oracle: Oracle, answers: FloatArray) -> float:
        noisy = "gaussian=1e-3" in repr(oracle) or "laplace" in repr(oracle)
        return FRESH_TOLERANCE if noisy and "fixed" not in repr(oracle) else super().tolerance(oracle, answers)


def test_every_defense_is_tried() -> None:
    tried = {spec.partition("=")[0].partition(",")[0] for specs in SPECS.values() for spec in specs}
    assert tried == set(DEFENSES)


# ---- what they do


def test_decimals() -> None:
    np.testing.assert_array_equal(defended("decimals").query(ROWS), np.round(PLAIN, 3))


def test_digits_are_significant_ones() -> None:
    oracle = rl.defend(rl.open_oracle(lambda x: x, dim=5), "digits=3")
    values = [[123456.0, -0.00123456, 0.0, 9.999e-300, 7.0]]
    np.testing.assert_allclose(oracle.query(values), [[123000.0, -0.00123, 0.0, 1e-299, 7.0]], rtol=1e-14, atol=0)


@pytest.mark.parametrize("name", ["float32", "float16"])
def test_number_formats(name: str) -> None:
    oracle = defended(name)
    np.testing.assert_array_equal(oracle.query(ROWS), PLAIN.astype(name).astype(float))
    assert oracle.facts.dtype == np.dtype(name)


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_noise_has_the_deviation_that_was_asked_for(name: str) -> None:
    zero = rl.open_oracle(lambda x: np.zeros((len(x), 3)), dim=5)
    for fixed in ("", ",fixed"):
        noise = rl.defend(zero, f"{name}=0.5{fixed}").query(np.random.default_rng(0).standard_normal((20_000, 5)))
        assert noise.std() == pytest.approx(0.5, rel=0.02)
        assert abs(noise.mean()) < 0.01
        kurtosis = np.mean(noise**4) / 0.5**4
        assert kurtosis == pytest.approx(3 if name == "gaussian" else 6, rel=0.15)
        assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.03


def test_fresh_noise_is_new_each_time_and_fixed_noise_is_not() -> None:
    fresh, fixed = defended("gaussian"), defended("gaussian, fixed")
    assert not np.array_equal(fresh.query(ROWS), fresh.query(ROWS))
    np.testing.assert_array_equal(fixed.query(ROWS), fixed.query(ROWS))
    np.testing.assert_allclose(fixed.query(ROWS[:1]), fixed.query(ROWS)[:1], rtol=0, atol=1e-14)
    other_seed = rl.defend(NetworkOracle(NETWORK), "gaussian=1e-3,fixed,seed=1")
    assert not np.array_equal(fixed.query(ROWS), other_seed.query(ROWS))


def test_fixed_noise_does_not_tell_zero_from_minus_zero() -> None:
    fixed = defended("gaussian, fixed")
    np.testing.assert_array_equal(fixed.query(np.zeros((1, 5))), fixed.query(-np.zeros((1, 5))))


def test_top_keeps_the_largest_probabilities() -> None:
    p = rl.defend(NetworkOracle(NETWORK), "softmax").query(ROWS)
    kept = defended("top").query(ROWS)
    assert ((kept > 0).sum(axis=1) == 2).all()
    np.testing.assert_array_equal(kept[kept > 0], p[kept > 0])
    assert (kept.max(axis=1) == p.max(axis=1)).all()


def test_top_of_the_largest_few_keeps_fewer() -> None:
    few = rl.defend(NetworkOracle(NETWORK), "softmax", "top=2", "top=1").query(ROWS)
    np.testing.assert_array_equal(few, rl.defend(NetworkOracle(NETWORK), "softmax", "top=1").query(ROWS))


def test_top_of_values_is_refused() -> None:
    with pytest.raises(InvalidAnswer, match=r"^defense top: .*Put 'softmax' before it"):
        rl.defend(NetworkOracle(NETWORK), "top=1").query(ROWS)


def test_labels() -> None:
    oracle = defended("labels")
    np.testing.assert_array_equal(oracle.query(ROWS)[:, 0], PLAIN.argmax(axis=1))
    assert (oracle.outputs, oracle.facts.kind) == (1, Kind.LABELS)


@pytest.mark.parametrize("squash", [[], ["sigmoid"]])
def test_labels_of_one_output_are_its_sign(squash: list[str]) -> None:
    one = rl.open_oracle(NETWORK, output=0)
    np.testing.assert_array_equal(rl.defend(one, *squash, "labels").query(ROWS)[:, 0], PLAIN[:, 0] > 0)


def test_a_copy_of_a_limit_counts_for_itself() -> None:
    oracle = defended("limit")
    oracle.answer(np.zeros((60, oracle.dim)))
    again = deepcopy(oracle)
    again.answer(np.zeros((40, oracle.dim)))
    with pytest.raises(TargetRefused, match="refused 1 rows after 100"):
        again.answer(np.zeros((1, oracle.dim)))
    oracle.answer(np.zeros((40, oracle.dim)))
    assert repr(again) == repr(oracle)


def test_the_limit_refuses_before_it_answers() -> None:
    oracle = defended("limit")
    oracle.query(ROWS[:60])
    with pytest.raises(TargetRefused, match="refused 60 rows after 60: its limit is 100"):
        oracle.query(ROWS[:60])
    oracle.query(ROWS[:40])


def test_inputs_are_clipped() -> None:
    np.testing.assert_array_equal(defended("clip").query(3 * ROWS), NETWORK(np.clip(3 * ROWS, -1, 1)))


def test_the_first_defense_is_next_to_the_target() -> None:
    rounded_last = rl.defend(NetworkOracle(NETWORK), "softmax", "decimals=2").query(ROWS)
    rounded_first = rl.defend(NetworkOracle(NETWORK), "decimals=2", "softmax").query(ROWS)
    assert np.array_equal(rounded_last, np.round(rounded_last, 2))
    assert not np.array_equal(rounded_first, np.round(rounded_first, 2))


def test_a_function_that_wraps_is_a_defense_too() -> None:
    from reluctant.oracles import Selected

    assert rl.defend(NetworkOracle(NETWORK), lambda oracle: Selected(oracle, 1), "decimals=1").outputs == 1


# ---- names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("armour", r"expected one of decimals=3, digits=4"),
        ("decimals", r"'decimals' \(.*\), expected something like decimals=3"),
        ("decimals=many", r"something like decimals=3"),
        ("decimals=-1", r"^decimals: got -1"),
        ("digits=0", r"^digits: got 0"),
        ("float16=3", r"takes no value"),
        ("gaussian=0", r"^noise: got 0\.0"),
        ("gaussian=1,fresh", r"'fresh'"),
        ("top=4", r"^top: got 4, expected a number of classes from 1 to 3"),
        ("limit=0", r"^limit: got 0"),
        ("clip=1", r"something like clip=0:1"),
        ("clip=1:0", r"^clip: got 1\.0:0\.0"),
    ],
)
def test_bad_names_are_explained(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        rl.defend(NetworkOracle(NETWORK), text)


def test_what_is_no_oracle_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^oracle: got ReLUNetwork, expected an oracle"):
        rl.defend(NETWORK, "decimals=3")  # type: ignore[arg-type]


def test_a_transcript_knows_the_defended_target(tmp_path) -> None:
    with rl.open_oracle(defended("decimals"), transcript=tmp_path) as oracle:
        oracle.query(ROWS)
        assert oracle.queries == len(ROWS)
    with pytest.raises(rl.ReluctantError, match="was made for"):
        rl.open_oracle(rl.defend(NetworkOracle(NETWORK), "decimals=2"), transcript=tmp_path)
    assert defended("gaussian").facts.identity == ""


# ---- what they cost honest users


def test_no_defense_costs_nothing() -> None:
    cost = rl.honest_cost(NetworkOracle(NETWORK), NetworkOracle(NETWORK), ROWS)
    assert (cost.rms_error, cost.max_error, cost.agreement, cost.rows) == (0, 0, 1, len(ROWS))


def test_noise_costs_its_deviation() -> None:
    plain = NetworkOracle(NETWORK)
    cost = rl.honest_cost(plain, rl.defend(plain, "gaussian=0.1"), ROWS)
    assert cost.rms_error == pytest.approx(0.1 / PLAIN.std(), rel=0.1)
    assert cost.max_error > 2 * cost.rms_error
    assert 0.8 < cost.agreement < 1


def test_probabilities_instead_of_values_are_other_answers_too():
    cost = rl.honest_cost(NetworkOracle(NETWORK), defended("softmax"), ROWS)
    assert np.isnan(cost.rms_error)
    assert cost.agreement == 1
    kept = rl.honest_cost(defended("softmax"), rl.defend(defended("softmax"), "decimals=3"), ROWS)
    assert 0 < kept.rms_error < 1e-2


def test_labels_cost_the_values_and_no_label() -> None:
    cost = rl.honest_cost(NetworkOracle(NETWORK), defended("labels"), ROWS)
    assert np.isnan(cost.rms_error)
    assert cost.agreement == 1
    assert "other answers; 100.0% of 400 labels are kept" in str(cost)


def test_coarse_rounding_costs_labels() -> None:
    plain = NetworkOracle(NETWORK)
    agreement = [rl.honest_cost(plain, rl.defend(plain, f"decimals={k}"), ROWS).agreement for k in (0, 1, 3)]
    assert agreement == sorted(agreement)
    assert agreement[0] < 0.95 < agreement[-1]


def test_labels_cannot_be_compared_with_less() -> None:
    with pytest.raises(InvalidInput, match=r"^plain: got labels"):
        rl.honest_cost(defended("labels"), defended("labels"), ROWS)


# ---- names


def test_the_last_of_a_row_of_defenses() -> None:
    row = ("softmax", "decimals=3", "noise=0.1,fixed", "decimals=2", "float32")
    assert split_last_defenses(row, FEWER_DIGITS) == (row[:3], row[3:])
    assert split_last_defenses(row, {"softmax"}) == (row, ())
    assert split_last_defenses((), FEWER_DIGITS) == ((), ())


def test_every_defense_has_words_of_its_own() -> None:
    names = [", ".join(specs) for specs in SPECS.values()]
    words = [defense_words(name) for name in names]
    assert len(set(words)) == len(names)


def test_words_for_several_and_for_what_is_not_known() -> None:
    assert defense_words("something=3") == "something=3"
    assert len({defense_words(name) for name in ("decimals=1", "decimals=2", "float32, decimals=2")}) == 3
    assert defense_words("softmax, top=1") == defense_words("top=1")

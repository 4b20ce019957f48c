"""What stands for the model in a sweep: its digits are cut last, and what they stop is told with them."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant import open_oracle
from reluctant.audit import try_defense
from reluctant.audit.defense_sweep import _copy, default_defenses, digits_given, digits_served, noise_served
from reluctant.audit.findings import AuditedTarget, Findings, Settings, Skip
from reluctant.defenses import FEWER_DIGITS, defend, split_last_defenses
from reluctant.domains import Domain
from reluctant.errors import InvalidRows
from reluctant.interface import check_health
from reluctant.oracles import Facts, NetworkOracle
from reluctant.report.text import defense_words
from reluctant.results import Outcome, Result
from reluctant.testing import in_float32, planted
from reluctant.testing.faults import noisy, rounded

NETWORK = planted((6, 5, 3))
INPUTS = np.random.default_rng(3).standard_normal((200, 6))


@pytest.mark.parametrize("served", ["float32", "decimals", "noise"])
def test_the_copy_answers_in_the_digits_of_its_model(served):
    targets = {
        "float32": in_float32(NETWORK),
        "decimals": lambda x: np.round(NETWORK(x), 3),
        "noise": noisy(NETWORK, 1e-3),
    }
    health = check_health(open_oracle(targets[served], dim=6))
    copy = defend(NetworkOracle(NETWORK), *noise_served(health), *digits_served(health))
    again = check_health(open_oracle(copy))
    assert (again.decimals, again.number_format) == (health.decimals, health.number_format)
    assert again.deterministic == health.deterministic
    assert again.fresh_noise == pytest.approx(health.fresh_noise, rel=0.5)


def test_copies_are_compared_with_all_digits():
    """A model that rounds is one all the same: a copy that is better than its answers is recognised."""
    plain, settings = NetworkOracle(NETWORK), {"inputs": INPUTS, "methods": ["extract"]}
    rounded_ = defend(plain, "decimals=3")
    true = try_defense(rounded_, (), yardstick=plain, **settings).extracted
    beside = try_defense(rounded_, (), **settings).extracted
    assert true.error < beside.error


def test_a_copy_is_asked_inside_the_targets_domain(tmp_path):
    """The network and the file alike stand for the target where it may be asked."""
    network = planted((4, 3, 1))
    network.save(tmp_path / "model.npz")
    given = Settings(np.zeros((1, 4)), file=tmp_path / "model.npz")
    recovered = Findings(given, extraction=Result(Outcome.RECOVERED, network, {}))
    for known in (recovered, Findings(given)):
        copy, yardstick, _, _ = _copy(known, Domain(-1.0, 1.0))
        assert copy.facts.domain == yardstick.facts.domain == Domain(-1.0, 1.0)
        with pytest.raises(InvalidRows):
            copy.query(np.full((1, 4), 2.0))


def test_a_file_stands_behind_the_defenses_of_its_target(tmp_path):
    NETWORK.save(tmp_path / "model.npz")
    given = Settings(INPUTS, file=tmp_path / "model.npz", defense=("decimals=2",), output=1)
    copy, yardstick, last, _ = _copy(Findings(given), Domain())
    np.testing.assert_allclose(defend(copy, *last).query(INPUTS), np.round(NETWORK(INPUTS)[:, 1:2], 2))
    np.testing.assert_allclose(yardstick.query(INPUTS), NETWORK(INPUTS)[:, 1:2])


@pytest.mark.parametrize(("target", "last"), [(rounded(NETWORK, 3), "decimals=3"), (in_float32(NETWORK), "float32")])
def test_a_recovered_network_has_its_digits_cut_last(target, last):
    health = check_health(open_oracle(target, dim=6))
    known = Findings(Settings(INPUTS), AuditedTarget(served=health), extraction=Result(Outcome.RECOVERED, NETWORK, {}))
    copy, yardstick, names, _ = _copy(known, Domain())
    assert names == (last,)
    np.testing.assert_array_equal(copy.query(INPUTS), NETWORK(INPUTS))
    np.testing.assert_array_equal(yardstick.query(INPUTS), NETWORK(INPUTS))


@pytest.mark.parametrize(
    ("defense", "before", "last"),
    [
        (("decimals=2",), (), ("decimals=2",)),
        (("softmax", "float32", "digits=3"), ("softmax",), ("float32", "digits=3")),
        (("decimals=2", "softmax"), ("decimals=2", "softmax"), ()),  # values are rounded before, and stay so
        (("decimals=3", "gaussian=0.1,fixed"), ("decimals=3", "gaussian=0.1,fixed"), ()),
    ],
)
def test_what_a_target_does_to_its_digits_last_stays_last(defense, before, last):
    assert split_last_defenses(defense, FEWER_DIGITS) == (before, last)


@pytest.mark.parametrize("digits", [2, 4])
def test_probabilities_are_made_of_values_with_all_their_digits(digits):
    """An owner who serves them rounds them, and not the values before: what is refused is told with its digits."""
    settings = {"inputs": INPUTS, "methods": ["extract"], "last": (f"decimals={digits}",)}
    row = try_defense(NetworkOracle(NETWORK), "softmax", **settings)
    assert row.defense == f"softmax, decimals={digits}"
    assert defense_words(row.defense) == f"probabilities of {digits} decimals"
    assert row.extracted.result.evidence["health"].raw.decimals == digits


def test_a_number_format_is_how_rounded_answers_are_written():
    """Rounded after that they would be no numbers of the format, and its range would be met as a fault."""
    settings = {"inputs": INPUTS, "methods": ["extract"], "last": ("decimals=2",)}
    row = try_defense(NetworkOracle(NETWORK), "float16", **settings)
    assert row.extracted.result.evidence["health"].number_format == "float16"
    assert (row.defense, row.stopped) == ("float16", True)


def test_digits_are_told_of_other_numbers_alone():
    """Of the answers as they are an owner knows them, and labels have none."""
    settings = {"inputs": INPUTS, "methods": [], "last": ("float32",)}
    names = [("softmax", "top=1"), ("labels",), ("gaussian=0.1",), ()]
    called = [try_defense(NetworkOracle(NETWORK), name, **settings).defense for name in names]
    assert called == ["softmax, top=1, float32", "labels", "gaussian=0.1", "none"]


@pytest.mark.parametrize(
    ("last", "tried"),
    [
        ((), ["decimals=6", "decimals=3", "decimals=2", "float16"]),
        (("decimals=4",), ["decimals=3", "decimals=2", "float16"]),
        (("decimals=3",), ["decimals=2", "float16"]),
        (("decimals=2",), ["decimals=1", "float16"]),
        (("decimals=0",), ["float16"]),
        (("float16",), ["decimals=6", "decimals=3", "decimals=2"]),
    ],
)
def test_defenses_that_change_nothing_are_not_tried(last, tried):
    digits = {"decimals", "float16"}
    names = [name for name, *_ in default_defenses(Facts(4, 3), 1.0, last)[1:] if name.partition("=")[0] in digits]
    assert names == tried


def test_noise_that_users_have_already_is_no_cost_of_a_defense():
    noisy_copy, settings = defend(NetworkOracle(NETWORK), "gaussian=0.5"), {"inputs": INPUTS, "methods": []}
    row = try_defense(noisy_copy, "decimals=6", yardstick=NetworkOracle(NETWORK), **settings)
    assert row.honest.rms_error < 1e-6
    assert row.honest.agreement == 1.0


def test_one_output_behind_a_link_is_not_swept(tmp_path):
    NETWORK.save(tmp_path / "model.npz")
    with pytest.raises(Skip, match="output-behind-link"):
        _copy(Findings(Settings(INPUTS, file=tmp_path / "model.npz", output=1), AuditedTarget("softmax")), Domain())


@pytest.mark.parametrize(
    ("target", "digits"),
    [(NETWORK, 16.0), (in_float32(NETWORK), 7.2), (rounded(NETWORK, 3), 3.5), (noisy(NETWORK, 1e-2), 2.0)],
)
def test_digits_given_are_those_of_the_answers(target, digits):
    health = check_health(open_oracle(target, dim=6))
    assert digits_given(health) == pytest.approx(digits, abs=0.6)

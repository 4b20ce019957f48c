"""Settings of `open_oracle` in groups: the same as one by one, and never twice."""

from __future__ import annotations

import numpy as np
import pytest
from oracle_models import gaussian_rows, softmax

import reluctant as rl
from reluctant.errors import InvalidInput
from reluctant.oracles.keywords import InputsKeywords, ServedKeywords, merged
from reluctant.testing import planted

NETWORK = planted((4, 6, 3), 1)
ROWS = gaussian_rows(10, 4)


def in_percent(x: np.ndarray) -> np.ndarray:
    return 100 * softmax(NETWORK(x))


def test_a_reading_reads_like_its_settings():
    flat = rl.open_oracle(in_percent, dim=4, link="softmax", percent=True, output=1)
    group = rl.open_oracle(in_percent, dim=4, reading=rl.Reading("softmax", percent=True, output=1))
    np.testing.assert_array_equal(group(ROWS), flat(ROWS))
    assert group.facts == flat.facts


def test_a_group_and_other_settings_of_its_kind_add_up():
    flat = rl.open_oracle(in_percent, dim=4, link="softmax", percent=True, output=[1, 0])
    mixed = rl.open_oracle(in_percent, dim=4, reading=rl.Reading("softmax", output=[1, 0]), percent=True)
    np.testing.assert_array_equal(mixed(ROWS), flat(ROWS))


def test_a_recording_keeps_a_transcript(tmp_path):
    with rl.open_oracle(NETWORK, recording=rl.Recording(tmp_path / "kept", keep_rows=True)) as oracle:
        answers = oracle(ROWS)
    with rl.open_oracle(NETWORK, transcript=tmp_path / "kept", keep_rows=True) as again:
        np.testing.assert_array_equal(again(ROWS), answers)
        assert again.ledger.total.replayed == len(ROWS)


TWICE = [
    ("link", "reading", {"link": "softmax", "reading": rl.Reading(link="softmax")}),
    ("percent", "reading", {"percent": True, "reading": rl.Reading(percent=True)}),
    ("output", "reading", {"output": 0, "reading": rl.Reading(output=[0])}),
    ("transcript", "recording", {"transcript": "a", "recording": rl.Recording("b")}),
    ("keep_rows", "recording", {"keep_rows": True, "recording": rl.Recording("b", keep_rows=True)}),
]


@pytest.mark.parametrize(("name", "group", "keywords"), TWICE)
def test_a_setting_given_twice_is_named(name, group, keywords):
    with pytest.raises(InvalidInput, match=rf"{name}: got it twice, as {name}= and in {group}="):
        rl.open_oracle(in_percent, dim=4, **keywords)


@pytest.mark.parametrize("keywords", [{"rate": 5.0}, {"connections": 2}, {"batch": 7}, {"watch": None}])
def test_a_setting_of_a_server_given_twice_is_named(keywords):
    (name,) = keywords
    with pytest.raises(InvalidInput, match=f"{name}: got it twice, as {name}= and in serving="):
        rl.open_oracle("http://localhost:1/v2/models/x", serving=rl.Serving(**keywords), **keywords)


def test_serving_is_for_a_served_model_alone():
    with pytest.raises(InvalidInput, match="serving"):
        rl.open_oracle(NETWORK, serving=rl.Serving(rate=5.0))


def test_a_group_of_another_kind_is_refused():
    with pytest.raises(InvalidInput, match=r"reading: got Recording, expected rl\.Reading"):
        rl.open_oracle(NETWORK, reading=rl.Recording("kept"))


@pytest.mark.parametrize(
    ("group", "bad"),
    [(rl.Serving, {"connections": 0}), (rl.Serving, {"rate": -1.0}), (rl.Serving, {"encoding": "xml"})],
)
def test_a_group_refuses_what_makes_no_sense(group, bad):
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        group(**bad)


def test_a_link_in_a_group_is_checked():
    with pytest.raises(InvalidInput, match="link"):
        rl.open_oracle(NETWORK, reading=rl.Reading(link="relu"))


def test_groups_are_values():
    assert rl.Reading("softmax") == rl.Reading(link="softmax")
    assert hash(rl.Recording("kept")) == hash(rl.Recording("kept"))
    with pytest.raises(AttributeError):
        rl.Reading().link = "softmax"


def test_settings_of_a_group_win_over_what_was_not_said():
    assert merged("serving", rl.Serving(rate=5.0), rl.Serving(connections=2)) == rl.Serving(rate=5.0, connections=2)


def test_every_keyword_of_open_oracle_is_one_of_every_verb():
    import inspect

    flat = set(inspect.signature(rl.open_oracle).parameters) - {"target", "served"}
    assert set(InputsKeywords.__annotations__) == flat | set(ServedKeywords.__annotations__)

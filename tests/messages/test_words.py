"""Messages in parts: arguments and keywords are data, which each edge writes in its own way."""

from __future__ import annotations

import pickle

import pytest

import reluctant as rl
from reluctant.cli.advice import as_command, typed_words
from reluctant.errors import HIGH, LOW, InvalidInput, N, Option, TargetUnavailable, Words, words
from reluctant.messages import Diagnosis, Remedy


def test_a_message_is_written_for_python_and_for_the_command_line():
    error = InvalidInput.about("dim", got=None, expected="a number", fix=words("Give it: {dim}.", dim=N))
    assert str(error) == "dim: got None, expected a number. Give it: dim=N."
    assert typed_words(error.words) == "--dim: got None, expected a number. Give it: --dim N."


@pytest.mark.parametrize(
    ("option", "python", "flag"),
    [
        (Option("retries", 3), "retries=3", "--retries 3"),
        (Option("domain", (LOW, HIGH)), "domain=(low, high)", "--domain LOW,HIGH"),
        (Option("percent", True), "percent=True", "--percent"),
        (Option("link", "sigmoid"), "link='sigmoid'", "--link sigmoid"),
        (Option("rng", 0), "rng=0", "--seed 0"),
        (Option("rate"), "rate=", "--rate"),
        (Option("nothing", 1), "nothing=1", "nothing=1"),
    ],
)
def test_a_keyword_is_a_flag_where_there_is_one(option, python, flag):
    assert (str(Words(option)), typed_words(Words(option))) == (python, flag)


def test_text_that_looks_like_a_keyword_stays():
    error = TargetUnavailable("target: raised ValueError: retries=3 is wrong.").advised(words("Raise {retries}."))
    assert typed_words(error.words) == "target: raised ValueError: retries=3 is wrong. Raise --retries."


def test_a_diagnosis_inside_a_message_gives_its_remedies_to_each_edge():
    inside = Remedy("answered-range", "open", {"domain": (-1.0, 1.0)})
    found = Diagnosis("answered-range", {"failed": 2.0, "largest": 1.0}, (inside,))
    error = TargetUnavailable("target: dropped.").advised(found)
    assert found in error.words.parts
    assert str(found) in str(error)
    assert as_command(inside) in typed_words(error.words)


def test_words_survive_pickling_and_scrubbing():
    error = InvalidInput.about("dim", got="a secret", expected="none", fix=words("Give {dim}.", dim=N))
    again = pickle.loads(pickle.dumps(error))
    assert again.words.parts == error.words.parts
    scrubbed = error.words.with_text(lambda text: text.replace("secret", "***"))
    assert typed_words(scrubbed) == "--dim: got a ***, expected none. Give --dim N."


def test_what_ended_a_run_keeps_its_parts():
    result = rl.extract(lambda x: x.sum(axis=1) * 5, dim=3, link="sigmoid")
    assert result.outcome is rl.Outcome.WRONG_LINK
    assert Option("link", "sigmoid") in result.error.parts
    assert isinstance(result.to_dict()["evidence"]["error"], str)

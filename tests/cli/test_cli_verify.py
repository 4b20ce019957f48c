"""`verify` compares a file with a target in the form that both have, and says which that is."""

from __future__ import annotations

import json

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput, LinkMismatch
from reluctant.networks import ReLUNetwork
from reluctant.verification.written_link import _Written

SERVED = """
import numpy as np

rng = np.random.default_rng(3)
w, b, a, c = rng.normal(size=(4, 6)), rng.normal(size=6), rng.normal(size=(6, 3)) / 3, rng.normal(size=3) / 3

def values(x):
    return np.maximum(x @ w + b, 0) @ a + c

def shifted(x):
    return values(x) + np.abs(x).sum(axis=1, keepdims=True)

def other(x):
    return values(x) * np.array([1.0, 1.0, 1.01])

def softmax(x):
    e = np.exp(values(x) - values(x).max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

def rounded(x):
    return np.round(softmax(x), 3)

def chances(x):
    return (1 + np.tanh(values(x) / 2)) / 2

def of_a_tanh(x):
    return np.tanh(values(x))

def chances32(x):
    return chances(x).astype(np.float32)

def about_a_half(x):
    return 0.5 + (np.maximum(x @ w + b, 0) @ a[:, :1]) / 20

def of_one(x):
    return chances(x)[:, :1]

def one_decimal(x):
    return np.round(chances(x), 1)

def two_decimals(x):
    return np.round(softmax(x), 2)

def zeros(x):
    e = softmax(x) * np.array([1, 1, 1e-3])
    return np.round(e / e.sum(axis=1, keepdims=True), 1)

noise = np.random.default_rng(0)

def noisy(x):
    return softmax(x) + 1e-3 * noise.standard_normal((len(x), 3))

def noisy_tanh(x):
    return of_a_tanh(4 * x) + 1e-3 * noise.standard_normal((len(x), 3))

def noisy_chances(x):
    return chances(x) + 1e-3 * noise.standard_normal((len(x), 3))

def noisy_chance(x):
    return noisy_chances(x)[:, :1]

def within(x):
    return values(x) / 20

def one_hot(x):
    return np.eye(3)[values(x).argmax(axis=1)]


def signs(x):
    return (values(x) > 0).astype(float)
"""


@pytest.fixture
def served(module):
    return module(SERVED)


@pytest.fixture
def files(served, folder):
    """The true network as values, behind a softmax as log-ratios, behind a sigmoid, a tanh; by the name of its link."""
    network = rl.extract(rl.open_oracle(f"{served}:values", dim=4)).network
    network.save(folder / "identity.npz")
    network.log_ratios().before_link("softmax").save(folder / "softmax.npz")
    network.before_link("sigmoid").save(folder / "sigmoid.npz")
    network.before_link("tanh").save(folder / "tanh.npz")
    return folder


AGREE = [
    ("values", "identity", ""),
    ("values", "softmax", "holds log-ratios to the first class"),
    ("shifted", "softmax", "Their differences to the first were compared"),
    ("values", "sigmoid", "Compared before its sigmoid"),
    ("softmax", "softmax", "probabilities were read through it"),
    ("chances", "sigmoid", "inside [-"),
    ("chances32", "sigmoid", "inside [-"),
    ("of_a_tanh", "tanh", "The network was written with a tanh: the target's answers were read through it."),
    ("values", "tanh", "Compared before its tanh"),
]


@pytest.mark.parametrize(("target", "link", "said"), AGREE)
def test_what_was_compared_is_said(target, link, said, served, files, command):
    ended = command("verify", f"{served}:{target}", files / f"{link}.npz", "--dim", 4)
    assert ended.status == 0, ended
    assert said in ended.out


@pytest.mark.parametrize("link", ["identity", "softmax", "sigmoid", "tanh"])
def test_another_network_does_not_agree(link, served, files, command):
    ended = command("verify", f"{served}:other", files / f"{link}.npz", "--dim", 4, "--json", "-")
    assert ended.status == 1
    found = json.loads(ended.out)["verification"]
    assert found["max_error"] > found["tol"]


def test_the_form_is_in_the_record(served, files, command):
    ended = command("verify", f"{served}:values", files / "sigmoid.npz", "--dim", 4, "--json", "-")
    assert json.loads(ended.out)["compared"].startswith("Compared before its sigmoid")


def test_rounded_probabilities_decide_nothing(served, files, command):
    ended = command("verify", f"{served}:rounded", files / "softmax.npz", "--dim", 4)
    assert ended.status == 1
    assert "noise of the target is too large to compare" in ended.out


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_labels_are_named(link, served, files, command):
    ended = command("verify", f"{served}:one_hot", files / f"{link}.npz", "--dim", 4)
    assert ended.status == 2
    assert "got labels, nothing but 0 and 1" in ended.err


@pytest.mark.parametrize("link", ["identity", "softmax"])
def test_labels_alone_are_compared_where_that_is_asked_for(link, served, files, command):
    ended = command("verify", f"{served}:one_hot", files / f"{link}.npz", "--dim", 4, "--labels", "--json", "-")
    assert ended.status == 0, ended
    assert json.loads(ended.out)["verification"]["boundary_error"] <= 1e-9
    ended = command("verify", f"{served}:other", files / f"{link}.npz", "--dim", 4, "--labels")
    assert ended.status == 1
    assert "does NOT agree with the target's labels" in ended.out


def test_options_of_labels_are_passed_on_or_refused(served, files, command):
    whole = ReLUNetwork.load(files / "identity.npz")
    skip = whole.skip if whole.skip is None else whole.skip[:1]
    ReLUNetwork([whole.weights[0], whole.weights[1][:1]], [whole.biases[0], whole.biases[1][:1]], skip).save(
        files / "one.npz"
    )
    one = ("verify", f"{served}:values", files / "one.npz", "--dim", 4, "--output", 0)
    assert command(*one, "--labels").status == 1  # cut at 0.5
    asked = []
    for more in ((), ("--points", 400)):
        ended = command(*one, "--labels", "--threshold", 0, *more, "--json", "-")
        assert ended.status == 0, ended
        asked.append(json.loads(ended.out)["verification"]["points"])
    assert asked[1] > 2 * asked[0]
    assert "none without --labels" in command(*one, "--threshold", 0).err
    refused = command("verify", f"{served}:values", files / "identity.npz", "--dim", 4, "--labels", "--threshold", 0)
    assert refused.status == 2
    assert "the largest is the label" in refused.err


def test_what_the_link_said_of_labels_is_not_lost():
    read, error = rl.open_oracle(lambda x: np.eye(3)[[0] * len(x)], dim=4, link="softmax"), LinkMismatch("no ratios")
    read.answer(np.zeros((3, 4)))
    network = ReLUNetwork([np.zeros((3, 4))], [np.zeros(3)], link="softmax")
    with pytest.raises(InvalidInput, match="labels") as refused:
        _Written(read, network, 0).refuse(read, error)
    assert refused.value.__cause__ is error


@pytest.mark.parametrize(
    ("target", "said"),
    [("softmax", "give --link softmax"), ("one_hot", "The target answers labels"), ("signs", "give --labels")],
)
def test_values_beside_other_answers_are_told_apart(target, said, served, files, command):
    ended = command("verify", f"{served}:{target}", files / "identity.npz", "--dim", 4)
    assert ended.status == 1
    assert said in ended.out


def test_a_network_of_values_is_compared_behind_a_link_that_is_given(served, files, command):
    for target, link in (("softmax", "softmax"), ("chances", "sigmoid")):
        ended = command("verify", f"{served}:{target}", files / "identity.npz", "--dim", 4, "--link", link)
        assert ended.status == 0


def test_a_sigmoid_read_as_a_softmax_is_told_which_link_it_may_be(served, files, command):
    ended = command("verify", f"{served}:chances", files / "softmax.npz", "--dim", 4, "--link", "softmax")
    assert "Use --link sigmoid" in ended.err


def test_values_that_lie_between_0_and_1_at_first_are_no_labels(served, folder, command):
    network = rl.extract(rl.open_oracle(f"{served}:about_a_half", dim=4)).network
    network.before_link("sigmoid").save(folder / "half.npz")
    for seed in range(3):
        ended = command("verify", f"{served}:about_a_half", folder / "half.npz", "--dim", 4, "--seed", seed)
        assert ended.status == 0, ended
        assert "Compared before its sigmoid" in ended.out


def test_a_verdict_is_not_lost_to_a_budget_that_is_spent(served, files, command):
    against = ("verify", f"{served}:other", files / "identity.npz", "--dim", 4)
    asked = int(command(*against).out.split(" queries.")[0].split()[-1]) - 3
    ended = command(*against, "--budget", asked, "--json", "-")
    assert ended.status == 1
    assert json.loads(ended.out)["verification"]["ok"] is False


@pytest.mark.parametrize(("name", "link"), [("one_decimal", "sigmoid"), ("two_decimals", "softmax")])
def test_rounding_is_not_taken_for_another_network(name, link, files, served, command):
    """Inside a small box rounded probabilities have few different values: all that was told shows the decimals."""
    ended = command("verify", f"{served}:{name}", files / f"{link}.npz", "--dim", "4")
    assert ended.status == 1
    assert "too large to compare" in ended.out
    assert "does NOT agree" not in ended.out


@pytest.mark.parametrize(("name", "said"), [("zeros", "rounded to 1 decimal"), ("noisy", "noise has moved")])
def test_probabilities_that_no_link_reads_are_refused(name, said, files, served, command):
    ended = command("verify", f"{served}:{name}", files / "softmax.npz", "--dim", "4")
    assert ended.status == 2
    assert said in ended.err


def test_a_softmax_is_not_taken_for_sigmoids_with_noise(files, served, command):
    ended = command("verify", f"{served}:softmax", files / "sigmoid.npz", "--dim", "4")
    assert ended.status == 2
    assert "probabilities that sum to one, as a softmax gives them" in ended.err
    assert "noise" not in ended.err


@pytest.mark.parametrize(("name", "output"), [("noisy_chances", None), ("noisy_chance", 0)])
def test_sigmoids_that_noise_has_moved_are_refused(name, output, served, folder, command):
    network = rl.extract(rl.open_oracle(f"{served}:values", dim=4, output=output)).network
    network.before_link("sigmoid").save(folder / "chances.npz")
    for seed in range(3):
        ended = command("verify", f"{served}:{name}", folder / "chances.npz", "--dim", "4", "--seed", seed)
        assert ended.status == 2, ended
        assert "noise has moved" in ended.err


def test_a_tanh_that_noise_has_moved_is_refused(served, files, command):
    ended = command("verify", f"{served}:noisy_tanh", files / "tanh.npz", "--dim", "4")
    assert ended.status == 2, ended
    assert "answers that noise has moved" in ended.err


@pytest.mark.parametrize("domain", [(), ("--domain=-0.1,0.1",)])
def test_values_near_0_are_no_sigmoids_that_noise_has_moved(domain, served, folder, command):
    network = rl.extract(rl.open_oracle(f"{served}:within", dim=4)).network
    network.before_link("sigmoid").save(folder / "within.npz")
    ended = command("verify", f"{served}:within", folder / "within.npz", "--dim", "4", *domain)
    assert ended.status == 0, ended
    assert "Compared before its sigmoid" in ended.out


def test_numbers_between_0_and_1_get_a_hint(served, folder, command):
    rl.extract(rl.open_oracle(f"{served}:values", dim=4, output=0)).network.save(folder / "one.npz")
    ended = command("verify", f"{served}:of_one", folder / "one.npz", "--dim", "4")
    assert "give --link sigmoid" in ended.out
    assert command("verify", f"{served}:of_one", folder / "one.npz", "--dim", "4", "--link", "sigmoid").status == 0


def test_more_points_are_compared_where_they_are_asked_for(served, files, command):
    few, many = (
        json.loads(command("verify", f"{served}:values", files / "identity.npz", "--dim", 4, *more, "--json", "-").out)
        for more in ((), ("--points", 200))
    )
    assert many["verification"]["points"] - few["verification"]["points"] == 4 * (200 - 64)

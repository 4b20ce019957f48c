"""Links give back the values before a softmax or sigmoid, and refuse what is no probability."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from oracle_models import gaussian_rows, sigmoid, softmax

from reluctant.errors import InvalidAnswer, InvalidInput, LinkMismatch, NonFiniteAnswer
from reluctant.networks import ReLUNetwork
from reluctant.oracles import CallableOracle, Kind, Linked, NetworkOracle, open_oracle
from reluctant.testing import planted
from reluctant.testing.strategies import networks

NETWORK = planted((4, 6, 3), 1)
ROWS = gaussian_rows(40, 4)
LINKS = {"softmax": softmax, "sigmoid": sigmoid, "log-softmax": lambda z: np.log(softmax(z)), "tanh": np.tanh}


def constant(p: list[float]) -> CallableOracle:
    """A target of two inputs that answers every row with these probabilities."""
    oracle = CallableOracle(lambda x: np.tile(p, (len(x), 1)), 2, kind=Kind.PROBABILITIES)
    oracle.answer(np.zeros((1, 2)))
    return oracle


def through(network: ReLUNetwork, link: str) -> Linked:
    oracle = CallableOracle(lambda x: LINKS[link](network(x)), network.dim)
    oracle.query(np.zeros((1, network.dim)))
    return Linked(oracle, link)


# ---- values come back


def test_softmax_gives_differences_of_logits() -> None:
    z = NETWORK(ROWS)
    np.testing.assert_allclose(through(NETWORK, "softmax").query(ROWS), z[:, 1:] - z[:, :1], rtol=0, atol=1e-12)


def test_softmax_gives_the_network_of_log_ratios() -> None:
    expected = NETWORK.log_ratios()(ROWS)
    np.testing.assert_allclose(through(NETWORK, "softmax").query(ROWS), expected, rtol=0, atol=1e-12)


def test_sigmoid_gives_logits() -> None:
    np.testing.assert_allclose(through(NETWORK, "sigmoid").query(ROWS), NETWORK(ROWS), rtol=0, atol=1e-10)


@given(networks(max_depth=3))
def test_sigmoid_gives_logits_of_any_network(network: ReLUNetwork) -> None:
    rows = gaussian_rows(5, network.dim)
    z = network(rows)
    assume(np.abs(z).max() < 30)
    magnified = np.exp(np.abs(z)) * np.finfo(float).eps  # rounding of p, divided by p (1 - p)
    assert (np.abs(through(network, "sigmoid").query(rows) - z) <= 8 * magnified).all()


def test_rounded_probabilities_are_accepted() -> None:
    p = np.round(softmax(NETWORK(ROWS)), 3).clip(1e-3)
    oracle = Linked(constant(p[0].tolist()), "softmax")
    np.testing.assert_array_equal(oracle.query([[0, 0]]), [np.log(p[0, 1:]) - np.log(p[0, 0])])


@pytest.mark.parametrize(("link", "outputs"), [("softmax", 2), ("sigmoid", 3)])
def test_facts_are_those_of_values(link: str, outputs: int) -> None:
    facts = Linked(constant([0.2, 0.3, 0.5]), link).facts
    assert (facts.outputs, facts.kind) == (outputs, Kind.VALUES)


def test_two_classes_give_the_logit_of_the_second() -> None:
    answer = Linked(constant([0.25, 0.75]), "softmax").query([[0, 0]])
    np.testing.assert_allclose(answer, [[np.log(3)]], rtol=1e-15)


# ---- values that are no probabilities


@pytest.mark.parametrize("p", [[0.5, 0.7], [0.1, 0.2], [-0.1, 1.1], [-2.0, 3.0], [100.0, -99.0], [1.2, -0.2]])
def test_softmax_of_no_probabilities_is_refused(p: list[float]) -> None:
    with pytest.raises(InvalidAnswer, match=r"^link: got \[.*\] in row 0, expected probabilities for link='softmax'"):
        Linked(constant(p), "softmax").query([[0, 0]])


@pytest.mark.parametrize("p", [[-0.1], [1.1], [7.0], [0.5, -3.0]])
def test_sigmoid_of_no_probability_is_refused(p: list[float]) -> None:
    with pytest.raises(InvalidAnswer, match=r"^link: got \[.*\] in row 0, expected probabilities for link='sigmoid'"):
        Linked(constant(p), "sigmoid").query([[0, 0]])


def test_first_bad_row_is_named() -> None:
    oracle = CallableOracle(lambda x: np.where(x[:, :1] > 2, 5.0, 0.5), 1)
    with pytest.raises(InvalidAnswer, match="in row 3,"):
        Linked(oracle, "sigmoid").query(np.arange(6.0)[:, None])


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_values_of_a_network_are_refused(link: str) -> None:
    with pytest.raises(InvalidAnswer, match=r"Leave the link out \(link='identity'\)"):
        Linked(NetworkOracle(NETWORK), link).query(10 * ROWS)


def test_a_sigmoid_is_not_taken_for_a_softmax() -> None:
    oracle = CallableOracle(lambda x: softmax(NETWORK(x)), 4)
    oracle.query(ROWS[:1])
    with pytest.raises(LinkMismatch, match=r"^link: got 3 probabilities that sum to one.*link='softmax'"):
        Linked(oracle, "sigmoid").query(ROWS)


def test_independent_probabilities_that_are_certain_may_sum_to_one() -> None:
    """Far out one output says yes for sure and the others no."""
    p = np.array([[1.0, 1e-9, 1e-9], [1e-9, 1 - 1e-9, 1e-9]]).repeat(20, axis=0)
    oracle = CallableOracle(lambda x: p[: len(x)], 4)
    oracle.query(ROWS[:1])
    assert Linked(oracle, "sigmoid").answer(ROWS).shape == (40, 3)


def test_two_classes_may_be_read_as_two_sigmoids() -> None:
    values = Linked(constant([0.25, 0.75]), "sigmoid").query(np.zeros((9, 2)))
    np.testing.assert_allclose(values[0], [-np.log(3), np.log(3)], rtol=1e-12)


# ---- zero and one


@pytest.mark.parametrize(
    ("link", "p", "value"),
    [
        ("softmax", [1.0, 0.0], -np.inf),
        ("softmax", [0.0, 1.0], np.inf),
        ("sigmoid", [0.0], -np.inf),
        ("sigmoid", [1.0], np.inf),
    ],
)
def test_certainty_is_infinite(link: str, p: list[float], value: float) -> None:
    oracle = Linked(constant(p), link)
    assert oracle.answer(np.zeros((1, 2))).tolist() == [[value]]
    with pytest.raises(NonFiniteAnswer) as caught:
        oracle.query([[0, 0]])
    assert caught.value.answers.tolist() == [[value]]


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_nan_probability_stays_nan(link: str) -> None:
    assert np.isnan(Linked(constant([np.nan, 0.5]), link).answer(np.zeros((1, 2)))[0, 0])


# ---- opening


def test_softmax_needs_two_classes() -> None:
    with pytest.raises(InvalidInput, match=r"^link: got 'softmax' for 1 output, expected two classes or more"):
        Linked(constant([0.5]), "softmax")


@pytest.mark.parametrize("link", ["identity", "softsign", ""])
def test_other_links_are_refused(link: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^link: got '{link}', expected 'softmax' or 'sigmoid' or"):
        Linked(constant([0.5]), link)  # type: ignore[arg-type]


def test_all_outputs_are_asked_for_once() -> None:
    oracle = open_oracle(lambda x: softmax(NETWORK(x)), dim=4, link="softmax")
    oracle.query(ROWS)
    assert oracle.ledger.total.sent == 1 + len(ROWS)


# ---- log-probabilities


def test_log_probabilities_give_differences_of_logits() -> None:
    z = NETWORK(ROWS)
    np.testing.assert_allclose(through(NETWORK, "log-softmax").query(ROWS), z[:, 1:] - z[:, :1], rtol=0, atol=1e-12)


def test_log_probabilities_reach_where_probabilities_underflow() -> None:
    far = 1e4 * ROWS
    network = ReLUNetwork(NETWORK.weights, NETWORK.biases, link="log-softmax")
    z = NETWORK(far)
    got = open_oracle(network, link="log-softmax").query(far)
    np.testing.assert_allclose(got, z[:, 1:] - z[:, :1], rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("answers", [[0.2, 0.8], [-1.0, -1.0], [1.0, -3.0]])
def test_what_is_no_log_probability_is_refused(answers: list[float]) -> None:
    with pytest.raises(InvalidAnswer, match=r"expected log-probabilities for link='log-softmax'"):
        Linked(constant(answers), "log-softmax").query([[0, 0]])


# ---- a tanh, whose answers are no probabilities


def test_tanh_gives_the_values_before_it() -> None:
    linked = through(NETWORK, "tanh")
    np.testing.assert_allclose(linked.query(ROWS), NETWORK(ROWS), rtol=0, atol=1e-9)
    assert linked.outputs == 3
    assert linked.facts.kind is Kind.VALUES


def test_a_network_with_a_tanh_answers_behind_it() -> None:
    oracle = NetworkOracle(NETWORK.before_link("tanh"))
    assert oracle.facts.kind is Kind.VALUES
    np.testing.assert_array_equal(oracle.answer(ROWS), np.tanh(NETWORK(ROWS)))


@pytest.mark.parametrize(
    ("answers", "said"),
    [([0.5, 1.01], "No link reads answers that noise has moved"), ([-1.5, 0.0], "Leave"), ([300.0, 0.1], "Leave")],
)
def test_what_is_no_tanh_is_refused(answers: list[float], said: str) -> None:
    with pytest.raises(LinkMismatch, match=rf"expected numbers between -1 and 1 for link='tanh'. {said}"):
        Linked(constant(answers), "tanh").query([[0, 0]])


def test_a_tanh_at_its_end_has_no_value() -> None:
    with pytest.raises(NonFiniteAnswer) as caught:
        open_oracle(lambda x: np.sign(x), dim=2, link="tanh").query([[1.0, -1.0]])
    assert "An answer there is exactly -1 or 1" in str(caught.value)
    assert "probabilit" not in str(caught.value)


def test_a_sigmoid_that_meets_a_tanh_names_it() -> None:
    with pytest.raises(LinkMismatch, match=r"Use link='tanh'"):
        Linked(constant([-0.5, 0.9]), "sigmoid").query([[0, 0]])


# ---- the largest probabilities only


@pytest.mark.parametrize("untold", [0.0, np.nan])
def test_one_missing_probability_follows_from_the_others(untold: float) -> None:
    p = softmax(NETWORK(ROWS))
    told = np.where(p == p.min(axis=1, keepdims=True), untold, p)
    got = Linked(answering(told), "top-k").answer(ROWS)
    np.testing.assert_allclose(got, np.log(p[:, 1:] / p[:, :1]), rtol=0, atol=1e-6)


def test_two_missing_probabilities_are_not_made_up() -> None:
    p = softmax(NETWORK(ROWS))
    told = np.where(p == p.max(axis=1, keepdims=True), p, 0.0)
    oracle = Linked(answering(told), "top-k")
    assert np.isnan(oracle.answer(ROWS)).any(axis=1).all()
    with pytest.raises(NonFiniteAnswer, match="exactly 0 or 1 or hidden"):
        oracle.query(ROWS)


def test_a_missing_probability_that_has_lost_its_digits_is_not_made_up() -> None:
    assert np.isnan(Linked(constant([1 - 1e-15, 0.0]), "top-k").answer(np.zeros((1, 2)))).all()


def answering(answers: np.ndarray) -> CallableOracle:
    """A target that answers the rows it is asked with these, in order."""
    oracle = CallableOracle(lambda x: answers[: len(x)], ROWS.shape[1])
    oracle.answer(ROWS[:1])
    return oracle


# ---- saturation


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_saturation_is_named(link: str) -> None:
    with pytest.raises(NonFiniteAnswer, match=rf"exactly 0 or 1, so that nothing is left for link='{link}'"):
        open_oracle(lambda x: np.tile([1.0, 0.0], (len(x), 1)), dim=2, link=link).query([[0, 0]])
    facts = open_oracle(lambda x: np.tile([0.5, 0.5], (len(x), 1)), dim=2, link=link, output=0).facts
    assert (facts.link, facts.saturates) == (link, True)  # also of one output


def test_without_a_link_nothing_saturates() -> None:
    facts = open_oracle(lambda x: np.tile([0.5, 0.5], (len(x), 1)), dim=2).facts
    assert (facts.link, facts.saturates) == (None, False)


def test_the_network_before_the_link_answers_the_probabilities() -> None:
    for link in ("softmax", "log-softmax"):
        again = NETWORK.log_ratios().before_link(link)
        assert (again.link, again.outputs) == (link, NETWORK.outputs)
        np.testing.assert_allclose(NetworkOracle(again).query(ROWS), LINKS[link](NETWORK(ROWS)), rtol=1e-12)
    assert NETWORK.before_link("sigmoid").link == "sigmoid"


def test_independent_probabilities_that_nearly_sum_to_one_are_left_alone() -> None:
    """At rows close together sums are close too, whatever they are."""
    thirds = np.log(0.5)  # three probabilities of a third at the origin
    oracle = open_oracle(lambda x: sigmoid(x + thirds), dim=3, link="sigmoid")
    np.testing.assert_allclose(oracle.query(1e-3 * np.eye(3)), 1e-3 * np.eye(3) + thirds, atol=1e-12)

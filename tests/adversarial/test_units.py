"""A flip found on a network counts on the target in the target's own units: probabilities, labels, log-ratios."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

import reluctant as rl
from reluctant.testing import planted

ONE, THREE = planted((8, 12, 1), 3), planted((8, 12, 3), 2)
EXPLAINED, UNEXPLAINED, LABELS = 2, 3, 3  # rows that confirm a flip, by what the network gives of the first answer


def chance(rows):
    return 1 / (1 + np.exp(-ONE(rows)))


def chances(rows):
    p = np.exp(THREE(rows) - THREE(rows).max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def at(network, seed):
    """An input that one step on the weights flips, clearly on one side."""
    return next(several(network, seed))


def several(network, seed):
    rows = np.random.default_rng(seed).standard_normal((60, 8))
    return (x for x in rows if np.abs(network(x[None])).min() > 0.3 and rl.flip_sign(network, x).ok)


def flip(answer, x, network, **options):
    opening = {name: options.pop(name) for name in ("link", "kind") if name in options}
    return rl.flip_sign(rl.open_oracle(answer, dim=8, **opening), x, network=network, **options)


@pytest.mark.parametrize(
    ("network", "options", "rows"),
    [
        (ONE.before_link("sigmoid"), {}, UNEXPLAINED),
        (ONE.before_link("sigmoid"), {"link": "sigmoid"}, EXPLAINED),
        (ONE, {"link": "sigmoid"}, EXPLAINED),
        (ONE.before_link("sigmoid"), {"kind": "probabilities"}, UNEXPLAINED),
        (ONE.before_link("sigmoid"), {"threshold": 0.5}, UNEXPLAINED),
    ],
)
def test_a_probability_crosses_one_half(network, options, rows, seed):
    x = at(ONE, seed)
    found = flip(chance, x, network, **options)
    assert found.ok
    assert found.queries == rows
    assert (chance(found.x[None]) - 0.5) * (chance(x[None]) - 0.5) < 0
    assert "0.5" in str(found)


def test_a_threshold_is_one_of_the_target(seed):
    x = at(ONE, seed)
    target = 0.5 + 0.8 * (chance(x[None])[0, 0] - 0.5)
    found = flip(chance, x, ONE.before_link("sigmoid"), threshold=target)
    assert found.ok
    assert chance(found.x[None])[0, 0] == pytest.approx(target, abs=1e-3)


@pytest.mark.parametrize("threshold", [0.5, 50.0])
def test_a_threshold_by_questions(threshold, seed):
    x = at(ONE, seed)
    found = flip(lambda rows: 2 * threshold * chance(rows), x, None, threshold=threshold)
    assert found.ok
    assert (chance(found.x[None]) - 0.5) * (chance(x[None]) - 0.5) < 0
    assert f"{threshold:g}" in str(found)


def test_what_is_known_to_be_a_probability_needs_no_threshold(seed):
    x = at(ONE, seed)
    by_questions = rl.flip_sign(rl.open_oracle(ONE.before_link("sigmoid")), x)
    assert by_questions.ok
    assert (chance(by_questions.x[None]) - 0.5) * (chance(x[None]) - 0.5) < 0


def test_values_beside_probabilities_are_told_apart(seed):
    """The network changes sign at 0, and the target has no sign."""
    found = flip(chance, at(ONE, seed), ONE)
    assert found.outcome is rl.Outcome.NOT_FLIPPED
    assert [remedy.options for remedy in found.diagnosis.remedies] == [{"link": "sigmoid"}, {"threshold": 0.5}]


def test_a_network_of_probabilities_has_no_sign_either(seed):
    upper = rl.ReLUNetwork([np.eye(8), np.full((1, 8), 0.01)], [np.zeros(8), np.full(1, 0.6)])
    found = flip(chance, np.ones(8), upper)
    assert found.outcome is rl.Outcome.NOT_FLIPPED
    assert found.queries == 0
    assert (found.diagnosis.slug, found.diagnosis.fields["outcome"]) == ("copy-not-flipped", "not-flipped")
    assert [remedy.options["threshold"] for remedy in found.diagnosis.remedies] == [0.5]


@pytest.mark.parametrize("codes", [(0, 1, 2), (7, 1, 5)])
@pytest.mark.parametrize("kind", ["values", "labels"])
def test_a_label_becomes_another(codes, kind, seed):
    def labels(rows):
        return np.array(codes)[THREE(rows).argmax(axis=1)]

    x = at(THREE, seed)
    found = flip(labels, x, THREE, kind=kind)
    assert found.ok
    assert found.queries == LABELS
    assert found.classes == (labels(x[None])[0], labels(found.x[None])[0])
    assert found.classes[0] != found.classes[1]


def test_labels_of_a_sign_flip_by_a_network_with_one_output(seed):
    x = at(ONE, seed)
    found = flip(lambda rows: (ONE(rows) > 0).astype(float), x, ONE)
    assert found.ok
    assert sorted(found.classes) == [0, 1]


@pytest.mark.parametrize("digits", [1, 2])
def test_one_and_nought_may_be_rounded_values(digits, seed):
    """At the input the answer is 1 and where the network flips it is 0, as labels are; beyond that it is below."""
    flipped = []
    for x in islice(several(ONE, seed), 3):
        (w, a), (b, c), (value,) = ONE.weights, ONE.biases, ONE(x[None])[0]
        scaled = rl.ReLUNetwork([w, a / value], [b, c / value])
        found = flip(lambda rows, scaled=scaled: np.round(scaled(rows), digits), x, scaled)
        assert found.classes is None
        flipped += [scaled(found.x[None])[0, 0]] if found.ok else []
    assert flipped  # rounding may hide what lies behind one of them
    assert max(flipped) <= -(10.0**-digits) / 2


@pytest.mark.parametrize(("answer", "options"), [(ONE, {}), (chance, {"link": "sigmoid"})])
def test_classes_beside_one_value_are_refused(answer, options, seed):
    with pytest.raises(ValueError, match="3 outputs, expected 8 and 1"):
        flip(answer, at(THREE, seed), THREE, **options)


def test_too_many_classes_behind_a_softmax_are_refused():
    with pytest.raises(ValueError, match="4 outputs, expected 8 and 2, as the target has with its link, or 3"):
        flip(chances, np.ones(8), planted((8, 5, 4), 0), link="softmax")


@pytest.mark.parametrize("network", [THREE, THREE.log_ratios().before_link("softmax"), THREE.log_ratios()])
def test_behind_a_softmax_a_network_may_have_all_classes_or_their_ratios(network, seed):
    x = at(THREE, seed)
    found = flip(chances, x, network, link="softmax")
    assert found.ok
    assert found.queries == EXPLAINED
    assert found.classes == (THREE(x[None])[0].argmax(), THREE(found.x[None])[0].argmax())


def test_a_network_on_another_side_is_named(seed):
    x = at(ONE, seed)
    found = flip(lambda rows: ONE(rows) - 100 * np.sign(ONE(x[None])), x, ONE)
    assert found.outcome is rl.Outcome.NOT_FLIPPED
    assert (found.diagnosis.slug, found.diagnosis.remedies) == ("copy-opposed", ())


@pytest.mark.parametrize(
    ("threshold", "options", "text"),
    [
        (float("nan"), {}, "finite"),
        (True, {}, "finite"),
        (0.5, {"link": "sigmoid"}, "with a link"),
    ],
)
def test_bad_thresholds_are_refused(threshold, options, text):
    with pytest.raises(ValueError, match=text):
        flip(chance, np.ones(8), None, threshold=threshold, **options)


def test_a_threshold_for_several_outputs_is_refused():
    with pytest.raises(ValueError, match="one output"):
        flip(chances, np.ones(8), None, threshold=0.5)
    with pytest.raises(ValueError, match="one output"):
        rl.flip_sign(THREE, np.ones(8), threshold=0.5)


def test_a_threshold_between_labels_changes_nothing_about_them(seed):
    def labels(rows):
        return (ONE(rows) > 0).astype(float)

    two, x = (
        rl.ReLUNetwork(
            [*ONE.weights[:-1], np.concatenate([-ONE.weights[-1], ONE.weights[-1]])],
            [*ONE.biases[:-1], np.concatenate([-ONE.biases[-1], ONE.biases[-1]])],
        ),
        at(ONE, seed),
    )
    assert flip(labels, x, None, threshold=0.5).outcome is rl.Outcome.PIECEWISE_CONSTANT
    assert flip(labels, x, two, threshold=0.5).ok


@pytest.mark.parametrize(("link", "ends"), [("sigmoid", "between 0 and 1"), ("tanh", "between -1 and 1")])
def test_a_threshold_that_no_answer_reaches_is_refused(link, ends):
    with pytest.raises(ValueError, match=ends):
        flip(chance, np.ones(8), ONE.before_link(link), threshold=2.0)


@pytest.mark.parametrize(
    ("network", "options"), [(ONE.before_link("tanh"), {}), (ONE, {"link": "tanh"}), (None, {"link": "tanh"})]
)
def test_a_tanh_changes_side_at_0(network, options, seed):
    x = at(ONE, seed)
    found = flip(lambda rows: np.tanh(ONE(rows) / 4), x, network, **options)
    assert found.ok
    assert ONE(found.x[None]) * ONE(x[None]) < 0
    assert "0.5" not in str(found)


def test_a_threshold_of_a_tanh_is_one_of_the_target(seed):
    def answers(rows):
        return np.tanh(ONE(rows))

    x = at(ONE, seed)
    target = 0.8 * answers(x[None])[0, 0]
    found = flip(answers, x, ONE.before_link("tanh"), threshold=target)
    assert found.ok
    assert answers(found.x[None])[0, 0] == pytest.approx(target, abs=1e-3)


def test_one_answer_at_the_end_of_a_tanh_cannot_be_read():
    found = flip(lambda rows: np.sign(ONE(rows)), np.ones(8), None, link="tanh")
    assert found.outcome is rl.Outcome.NON_FINITE
    assert (found.diagnosis.slug, found.diagnosis.fields["link"]) == ("certain-answer-unreadable", "tanh")


def test_a_saturated_probability_is_told_to_leave_its_link(seed):
    rows = 40 * np.random.default_rng(seed).standard_normal((60, 8))
    certain = rows[np.isin(chance(rows).round(2)[:, 0], (0.0, 1.0))]
    found = flip(lambda rows: chance(rows).round(2), certain[0], None, link="sigmoid")
    assert found.outcome is rl.Outcome.NON_FINITE
    assert [remedy.options["threshold"] for remedy in found.diagnosis.remedies] == [0.5]

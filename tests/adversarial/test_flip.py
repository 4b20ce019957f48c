"""`flip_sign`: what it finds, what it costs, what it says when there is nothing to find."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reluctant as rl
from reluctant.adversarial.flip_search import BEYOND_THE_STEP
from reluctant.testing import planted, trained_digits

NEAR, FAR = 42, 49  # rows beyond one for each direction of a gradient, by how far the flip is


def random_case(d, depth, seed):
    return rl.random_network((*[d] * depth, 1), seed), np.random.default_rng(seed + 1000).standard_normal(d)


@pytest.mark.parametrize("depth", [2, 4])
def test_one_step_flips_a_random_network(depth, seed):
    network, x = random_case(300, depth, seed)
    flip = rl.flip_sign(rl.open_oracle(network), x)
    assert flip.ok
    assert network(flip.x[None])[0, 0] * network(x[None])[0, 0] < 0
    assert 0 < flip.scaled_size < 6
    assert flip.relative_size == pytest.approx(np.linalg.norm(flip.x - x) / np.linalg.norm(x))


def test_questions_and_weights_find_the_same_flip(seed):
    network, x = random_case(200, 3, seed)
    asked, known = rl.flip_sign(rl.open_oracle(network), x), rl.flip_sign(network, x)
    assert known.queries == 0
    assert asked.size == pytest.approx(known.size, rel=1e-5)


def test_the_flip_lies_just_beyond_the_boundary(seed):
    network, x = random_case(200, 3, seed)
    flip = rl.flip_sign(rl.open_oracle(network), x)
    just_before = x + (1 - 1e-3) * (flip.x - x)
    assert network(just_before[None])[0, 0] * network(x[None])[0, 0] > 0


@pytest.mark.parametrize("d", [150, 400])
def test_a_flip_costs_one_row_an_input_and_a_few(d, seed):
    network, x = random_case(d, 2, seed)
    oracle = rl.open_oracle(network)
    assert rl.flip_sign(oracle, x).queries == oracle.queries
    assert oracle.queries in {d + NEAR, d + FAR}


def test_a_linear_target_flips_at_the_distance_of_its_boundary(seed):
    rng = np.random.default_rng(seed)
    w, x = rng.standard_normal(40), rng.standard_normal(40)
    flip = rl.flip_sign(rl.open_oracle(lambda rows: rows @ w + 3.0, dim=40), x)
    assert flip.size == pytest.approx(abs(w @ x + 3.0) / np.linalg.norm(w), rel=1e-4)
    assert flip.evidence["linear size"] == pytest.approx(flip.size, rel=1e-4)


def test_a_span_makes_the_gradient_cheaper(seed):
    network = rl.random_network((120, 10, 1), seed)
    x = np.random.default_rng(seed + 1000).standard_normal(120)
    span = SimpleNamespace(basis=np.linalg.qr(network.weights[0].T)[0].T)
    plain = rl.flip_sign(rl.open_oracle(network), x)
    cheap = rl.flip_sign(rl.open_oracle(network), x, span=span)
    assert cheap.rows["gradient"].asked == 10 + 2
    assert cheap.queries == plain.queries - 110
    assert cheap.outcome is plain.outcome
    assert cheap.size == pytest.approx(plain.size, rel=1e-4, nan_ok=not plain.ok)


def test_a_recovered_network_needs_two_rows_to_confirm(seed):
    network, x = random_case(150, 2, seed)
    oracle = rl.open_oracle(network)
    flip = rl.flip_sign(oracle, x, network=network)
    assert flip.ok
    assert flip.queries == oracle.queries == 2


def test_a_network_that_is_not_the_targets_is_found_out(seed):
    network, x = random_case(150, 2, seed)
    stranger = rl.random_network((150, 150, 1), seed + 7)
    flip = rl.flip_sign(rl.open_oracle(network), x, network=stranger)
    assert flip.ok == (flip.x is not None)
    if flip.ok:
        assert network(flip.x[None])[0, 0] * network(x[None])[0, 0] < 0
    else:
        assert flip.diagnosis.slug in ("copy-unconfirmed", "copy-opposed")


def test_classes_flip_to_the_nearest_rival(seed):
    network = trained_digits()
    x = np.random.default_rng(seed).uniform(0, 1, 64)
    flip = rl.flip_sign(rl.open_oracle(network), x)
    before, after = flip.classes
    assert flip.ok
    assert before == network(x[None])[0].argmax()
    assert after == network(flip.x[None])[0].argmax() != before


def test_more_steps_never_flip_farther(seed):
    network = trained_digits()
    for x in np.random.default_rng(seed).uniform(0, 1, (5, 64)):
        one, three = (rl.flip_sign(rl.open_oracle(network), x, steps=steps) for steps in (1, 3))
        assert three.size <= one.size * (1 + 1e-9)
        assert three.queries <= 5 * 64


def test_more_steps_never_flip_farther_in_a_box(seed):
    network = trained_digits()
    for x in np.random.default_rng(seed).uniform(0, 1, (5, 64)):
        one, three = (rl.flip_sign(rl.open_oracle(network, domain=(0, 1)), x, steps=steps) for steps in (1, 3))
        assert three.size <= one.size * (1 + 1e-9)


def test_nothing_outside_a_box_is_asked(seed):
    network, asked = trained_digits(), []

    def target(rows):
        asked.append(rows)
        return network(rows)

    x = np.round(np.random.default_rng(seed).uniform(0, 1, 64))  # every pixel on a bound
    flip = rl.flip_sign(rl.open_oracle(target, dim=64, domain=(0, 1)), x)
    every = np.concatenate(asked)
    assert flip.ok
    assert every.min() >= 0
    assert every.max() <= 1


@pytest.mark.parametrize("round_to", [np.float32, 5])
def test_coarse_answers_flip_too(round_to, seed):
    network, x = random_case(200, 3, seed)

    def coarse(rows):
        values = network(rows)
        return values.astype(round_to) if round_to is np.float32 else np.round(values, round_to)

    flip = rl.flip_sign(rl.open_oracle(coarse, dim=200), x)
    assert flip.ok
    assert flip.size == pytest.approx(rl.flip_sign(network, x).size, rel=0.2)


@given(factor=st.floats(1e-6, 1e6), seed=st.integers(0, 20))
def test_the_scale_of_the_output_does_not_matter(factor, seed):
    network, x = random_case(30, 2, seed)
    scaled = rl.ReLUNetwork([network.weights[0], factor * network.weights[1]], network.biases)
    assert rl.flip_sign(scaled, x).size == pytest.approx(rl.flip_sign(network, x).size, rel=1e-6, nan_ok=True)


def softmax(values):
    p = np.exp(values - values.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def test_classes_behind_a_softmax_are_the_targets(seed):
    rng = np.random.default_rng(seed)
    weights, winners = rng.standard_normal((3, 8)), set()
    for x in rng.standard_normal((12, 8)):
        oracle = rl.open_oracle(lambda rows: softmax(rows @ weights.T), dim=8, link="softmax")
        flip = rl.flip_sign(oracle, x)
        assert flip.ok
        assert flip.classes == (np.argmax(weights @ x), np.argmax(weights @ flip.x))
        winners.add(flip.classes[0])
    assert 0 in winners  # the class that log-ratios leave out


def test_fresh_noise_hardly_ever_gives_a_wrong_flip(seed):
    rng, wrong = np.random.default_rng(seed), 0
    for _ in range(60):
        w, x, noise = rng.standard_normal(20), rng.standard_normal(20), 10 ** rng.uniform(-4, -1)
        target = rl.open_oracle(lambda rows, w=w, s=noise: rows @ w + s * rng.standard_normal(len(rows)), dim=20)
        flip = rl.flip_sign(target, x, rng=rng)
        wrong += flip.ok and (w @ x) * (w @ flip.x) > 0
    assert wrong <= 1


def test_answers_that_end_far_out_do_not_hide_a_near_flip():
    def target(rows):
        return np.where(np.linalg.norm(rows, axis=1) > 4, np.nan, rows.sum(axis=1))

    assert rl.flip_sign(rl.open_oracle(target, dim=4), np.ones(4)).ok


def test_a_second_step_goes_on_where_the_first_one_led():
    corner = rl.open_oracle(lambda rows: np.maximum(rows[:, 0], 0.5 + rows[:, 1]), dim=2)
    one, two = (rl.flip_sign(corner, np.array([2.0, 0.0]), steps=steps) for steps in (1, 2))
    assert one.outcome is rl.Outcome.NOT_FLIPPED
    assert two.ok


# ---- nothing to find, bad input


def test_a_zero_that_the_network_does_not_have_is_on_the_boundary():
    network = rl.ReLUNetwork([np.ones((1, 3))], [np.ones(1)])
    target = rl.open_oracle(lambda rows: rows.sum(axis=1) - 3, dim=3)
    assert rl.flip_sign(target, np.ones(3), network=network).outcome is rl.Outcome.ON_BOUNDARY


def test_a_narrow_box_is_no_noise():
    target = rl.open_oracle(lambda rows: rows.sum(axis=1) - 400.0015, dim=4, domain=(100, 100.001))
    assert rl.flip_sign(target, np.full(4, 100.0)).ok


@pytest.mark.parametrize("outputs", [1, 3])
def test_probabilities_without_a_link_get_the_advice(outputs):
    def target(rows):
        values = np.clip(rows.sum(axis=1, keepdims=True), -2, 2) * np.linspace(0.5, 1, outputs) + 3 * np.arange(outputs)
        return 1 / (1 + np.exp(-values)) if outputs == 1 else softmax(values)

    flip = rl.flip_sign(rl.open_oracle(target, dim=4, link="none"), np.full(4, 0.3))
    assert flip.outcome is rl.Outcome.NOT_FLIPPED
    advised = [remedy.options for remedy in flip.diagnosis.remedies]
    assert advised == ([{"threshold": 0.5}, {"link": "sigmoid"}] if outputs == 1 else [{"link": "softmax"}])


def test_certain_probabilities_are_not_said_to_need_a_link():
    target = rl.open_oracle(lambda rows: np.round(softmax(60 * rows @ np.linspace(-1, 2, 12).reshape(4, 3)), 2), dim=4)
    flip = rl.flip_sign(target, np.full(4, 0.3))
    assert flip.outcome is rl.Outcome.FLAT
    assert flip.diagnosis.slug == "certain-answers"
    assert not any("link" in remedy.options for remedy in flip.diagnosis.remedies)


@pytest.mark.parametrize("label", [0, 1])
def test_labels_are_named(label):
    """0 is no margin within noise, and ones alone nearby are no constant target."""
    target = rl.open_oracle(lambda rows: (rows.sum(axis=1) > 1) * 1.0, dim=4)
    flip = rl.flip_sign(target, np.full(4, 2.0 * label - 1))
    assert flip.outcome is rl.Outcome.PIECEWISE_CONSTANT
    assert flip.diagnosis.slug == "labels-without-gradient"
    assert flip.diagnosis.remedies[0].purpose == "on-a-copy"


def test_more_steps_are_no_advice_to_who_took_some():
    hill = rl.open_oracle(lambda x: np.abs(x).sum(axis=1) + 1, dim=6)
    flip = rl.flip_sign(hill, np.ones(6), steps=3)
    assert flip.diagnosis.slug == "not-flipped-in-steps"
    assert flip.diagnosis.fields == {"steps": 3, "what": "target"}
    assert not any("steps" in remedy.options for remedy in flip.diagnosis.remedies)


def test_from_the_origin_the_size_is_absolute():
    flip = rl.flip_sign(rl.open_oracle(lambda rows: rows.sum(axis=1) + 1, dim=4), np.zeros(4))
    assert flip.ok
    assert "a step of 0.5" in str(flip)


def test_next_to_the_origin_the_size_is_absolute_too():
    flip = rl.flip_sign(rl.open_oracle(lambda rows: rows.sum(axis=1) + 1, dim=4), np.full(4, 1e-12))
    assert flip.ok
    assert "a step of 0.5" in str(flip)
    assert "%" not in str(flip)


def test_an_input_on_the_boundary():
    flip = rl.flip_sign(rl.open_oracle(lambda x: x[:, :1], dim=4), np.array([0.0, 1.0, 2.0, 3.0]))
    assert flip.outcome is rl.Outcome.ON_BOUNDARY
    assert flip.x is None


def test_a_place_without_a_gradient():
    target = rl.open_oracle(lambda x: np.maximum(x[:, 0], 0) + 1.5, dim=4)
    assert rl.flip_sign(target, -5 * np.ones(4)).outcome is rl.Outcome.FLAT


def test_a_constant_target():
    flip = rl.flip_sign(rl.open_oracle(lambda x: np.ones(len(x)), dim=4), np.ones(4))
    assert flip.outcome is rl.Outcome.CONSTANT


def test_a_target_that_never_changes_sign():
    flip = rl.flip_sign(rl.open_oracle(lambda x: np.abs(x).sum(axis=1) + 1, dim=6), np.ones(6))
    assert flip.outcome is rl.Outcome.NOT_FLIPPED
    with pytest.raises(rl.ReluctantError, match="did not flip"):
        flip.raise_for_status()


def test_a_budget_is_kept(seed):
    network, x = random_case(150, 2, seed)
    oracle = rl.open_oracle(network, budget=40)
    assert rl.flip_sign(oracle, x).outcome is rl.Outcome.OUT_OF_BUDGET
    assert oracle.queries <= 40


def test_answers_that_are_no_numbers():
    flip = rl.flip_sign(rl.open_oracle(lambda x: np.full(len(x), np.nan), dim=3, kind="values"), np.ones(3))
    assert flip.outcome is rl.Outcome.NON_FINITE


@pytest.mark.parametrize(
    ("x", "options", "text"),
    [
        (np.ones(3), {}, "shape"),
        (np.full(4, np.nan), {}, "finite"),
        (2 * np.ones(4), {}, "domain"),
        (np.ones(4), {"steps": 0}, "steps"),
        (np.ones(4), {"steps": 1.5}, "steps"),
        (np.ones(4), {"span": SimpleNamespace(basis=np.ones((2, 3)))}, "span"),
        (np.ones(4), {"span": np.ones((2, 4))}, "span"),
        (np.ones(4), {"network": planted((5, 3, 1), 0)}, "network"),
    ],
)
def test_bad_input_is_refused_before_anything_is_asked(x, options, text):
    oracle = rl.open_oracle(planted((4, 5, 1), 0), domain=(-1, 1))
    before = oracle.queries
    with pytest.raises(ValueError, match=text):
        rl.flip_sign(oracle, x, **options)
    assert oracle.queries == before


def test_a_flip_as_plain_data(seed):
    network, x = random_case(150, 2, seed)
    data = rl.flip_sign(rl.open_oracle(network), x).to_dict()
    assert data["outcome"] == "flipped"
    assert data["queries"] in {150 + NEAR, 150 + FAR}
    assert data["relative size"] > 0


def test_a_step_goes_on_to_where_rounded_answers_have_changed_side(seed):
    """The step ends just beyond the boundary, and there two decimals are 0.00: the first place counts that shows it.

    An answer that fits half precision may have no more digits than that, and has to go further: there is none here.
    """
    network = planted((8, 10, 1), seed, zero_output_bias=True)
    rows = np.random.default_rng(seed).standard_normal((20, 8))
    values = np.round(network(rows)[:, 0], 2)
    flips = [rl.flip_sign(network, x) for x in rows[(np.abs(values) > 0.1) & (values != values.astype(np.float16))]]
    assert any(flip.ok for flip in flips)
    for exact in flips:
        target = rl.open_oracle(lambda z: np.round(network(z), 2), dim=8)
        rounded = rl.flip_sign(target, exact.start, network=network)
        steps = [1.0, *(1 + BEYOND_THE_STEP)] if exact.ok else []
        shown = [t for t in steps if changed_side(network, exact.start, exact.start + t * (exact.x - exact.start))]
        assert rounded.ok == bool(shown)
        assert not shown or rounded.size == pytest.approx(shown[0] * exact.size, rel=1e-12)


def changed_side(network, start, x):
    """Whether two decimals show it."""
    before, after = np.round(network(np.array([start, x]))[:, 0], 2)
    return before * after < 0


def test_a_step_far_larger_than_the_input_is_no_flip():
    def nearly_always_positive(rows):
        return 1e7 + rows[:, 0]

    found = rl.flip_sign(nearly_always_positive, np.ones(4), dim=4)
    assert found.outcome is rl.Outcome.NOT_FLIPPED
    assert found.diagnosis.slug == "flipped-far-out"
    assert found.diagnosis.fields["times"] > 1e6
    assert found.x is None


def test_next_to_certainty_the_step_of_the_values_is_taken():
    """Slopes of a probability vanish there, and its own step would be thousands of times the input."""
    network, x = planted((6, 8, 2), 3), np.full(6, 2.0)
    scale = 12.0 / float(np.ptp(network(x[None])))

    def target(rows: np.ndarray) -> np.ndarray:
        values = scale * network(rows)
        powers = np.exp(values - values.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    found, behind = rl.flip_sign(target, x, dim=6), rl.flip_sign(target, x, dim=6, link="softmax")
    assert found.ok
    assert found.relative_size == pytest.approx(behind.relative_size)
    assert found.evidence["found link"] == "softmax"

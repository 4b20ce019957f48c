"""Flips that rounding cannot take back: asked alone, and in batches of any size, the target has changed side."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.adversarial.decision import DECIDED, SideLimit
from reluctant.adversarial.flip import MOST_FLIP_ROWS
from reluctant.adversarial.flip_search import BEYOND_THE_STEP
from reluctant.adversarial.gradient_source import PROBE_ROWS
from reluctant.numerics import unit_roundoff
from reluctant.testing import planted, trained_digits
from reluctant.verification.comparison import EXACT_TOLERANCE

SHAPE, BATCHES = (20, 30, 3), (1, 2, 3, 5, 8, 17)
ROUNDINGS = 10  # of the terms that are added up: what a batch of another size makes of them at most


def softmax(values):
    p = np.exp(values - values.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def log_softmax(values):
    return np.log(softmax(values))


def labels(values):
    return values.argmax(axis=1, keepdims=True).astype(float)


def one_hot(values):
    return np.eye(values.shape[1])[values.argmax(axis=1)]


def in_float32(network):
    """The network as most models are served: every sum in float32."""
    both = zip(network.weights, network.biases, strict=True)
    layers = [(w.T.astype(np.float32), b.astype(np.float32)) for w, b in both]

    def values(rows):
        hidden = np.asarray(rows, dtype=np.float32)
        for w, b in layers[:-1]:
            hidden = np.maximum(hidden @ w + b, 0)
        return hidden @ layers[-1][0] + layers[-1][1]

    return values


def inputs(seed):
    return np.random.default_rng(seed).standard_normal((6, SHAPE[0]))


def keeps_its_class(values, x):
    """True if an input has the same class in batches of all sizes."""
    return len({int(each) for n in BATCHES for each in values(np.repeat(x[None], n, axis=0)).argmax(axis=1)}) == 1


@pytest.mark.parametrize(
    ("shown", "link"),
    [
        (lambda values: values, "identity"),
        (softmax, "softmax"),
        (log_softmax, "log-softmax"),
        (labels, "identity"),
        (one_hot, "identity"),
    ],
    ids=["values", "softmax", "log-softmax", "labels", "one-hot"],
)
def test_a_float32_model_keeps_the_flip_of_its_exact_copy(shown, link, seed):
    """The copy ends its step so near the boundary that float32 has no side there."""
    network = planted(SHAPE, seed)
    values = in_float32(network)
    for x in inputs(seed):
        found = rl.flip_sign(network, x)
        flip = rl.flip_sign(rl.open_oracle(lambda z: shown(values(z)), dim=SHAPE[0], link=link), x, network=network)
        assert flip.ok == found.ok
        if flip.ok:
            assert keeps_its_class(values, flip.x)
            assert values(flip.x[None]).argmax() != values(x[None]).argmax()


@pytest.mark.parametrize(
    ("shown", "link"), [(lambda values: values, "identity"), (softmax, "softmax"), (log_softmax, "log-softmax")]
)
def test_a_float32_model_is_asked_once_how_far_beyond_its_rounding_is(shown, link, seed):
    """Where the copy's step ends nearer to the boundary than float32 tells; at a crease it may end farther away."""
    network = planted(SHAPE, seed)
    values = in_float32(network)
    copy = network if link == "identity" else network.log_ratios()
    for x in inputs(seed):
        oracle = rl.open_oracle(lambda z: shown(values(z)), dim=SHAPE[0], link=link)
        found, flip = rl.flip_sign(network, x), rl.flip_sign(oracle, x, network=network)
        if found.ok and abs(found.margins[1]) < EXACT_TOLERANCE:
            assert flip.queries == 2 + len(BEYOND_THE_STEP) + (
                not explains(copy, oracle.query(np.array([x, found.x])), x)
            )


def explains(network, answers, x):
    """True if a network gives half the digits of the first answer: float32 has fewer, but for some by chance."""
    return np.abs(network(x[None])[0] - answers[0]).max() <= EXACT_TOLERANCE * np.abs(answers[0]).max()


def test_a_recovered_network_flips_the_float32_model_it_was_recovered_from(seed):
    network = trained_digits()

    def served(rows):
        return network(rows).astype(np.float32)

    for x in np.random.default_rng(seed).uniform(0, 1, (10, 64)):
        flip, found = rl.flip_sign(rl.open_oracle(served, dim=64), x, network=network), rl.flip_sign(network, x)
        assert flip.ok
        assert flip.queries == 2 + len(BEYOND_THE_STEP) + (not explains(network, served(np.array([x, found.x])), x))
        assert served(flip.x[None]).argmax() != served(x[None]).argmax()


@pytest.mark.parametrize("shown", [labels, one_hot])
def test_a_label_beyond_the_rounding_is_asked_once_more_where_it_is_not_yet_there_at_the_boundary(shown, seed):
    network = planted(SHAPE, seed)
    values = in_float32(network)
    for x in inputs(seed):
        found = rl.flip_sign(network, x)
        flip = rl.flip_sign(rl.open_oracle(lambda z: shown(values(z)), dim=SHAPE[0]), x, network=network)
        if found.ok:
            before, after = values(np.array([x, found.x])).argmax(axis=1)
            assert flip.queries == (4 if before == after else 3)


def leaning(w, precision):
    """A linear target with sums that are off by some roundings: in the second row of a batch down, in all others up.

    The second of three rows is the one that is expected at the boundary itself.
    """

    def values(rows):
        off = ROUNDINGS * unit_roundoff(precision) * np.linalg.norm(w) * np.linalg.norm(rows, axis=1)
        return (rows @ w + 3.0 + np.where(np.arange(len(rows)) == 1, -off, off)).astype(precision)

    return values


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shown", "options", "threshold"),
    [(lambda values: values, {}, None), (sigmoid, {"link": "sigmoid"}, None), (sigmoid, {}, 0.5)],
    ids=["values", "link", "threshold"],
)
def test_by_questions_the_step_goes_beyond_the_rounding_of_large_terms(shown, options, threshold, precision, seed):
    rng = np.random.default_rng(seed)
    w, x = rng.standard_normal(40), rng.standard_normal(40)
    x += (1 - w @ x - 3.0) / (w @ w) * w  # the answer is 1, and its terms are forty times as large
    values = leaning(w, precision)
    flip = rl.flip_sign(rl.open_oracle(lambda z: shown(values(z)), dim=40, **options), x, threshold=threshold)
    assert flip.ok
    assert flip.rows["gradient"].asked + flip.rows["line"].asked == 40 + 2 + 23 + 4
    assert w @ flip.x + 3.0 < 0
    assert max(values(np.repeat(flip.x[None], n, axis=0)).max() for n in BATCHES) < 0
    assert flip.size == pytest.approx(1 / np.linalg.norm(w), rel=0.1)


def test_a_flip_that_is_none_where_it_is_asked_alone():
    w = np.ones(6)
    target = rl.open_oracle(lambda rows: rows @ w + (len(rows) == 1), dim=6)
    assert rl.flip_sign(target, w).outcome is rl.Outcome.TOO_NOISY


def test_an_input_that_rounding_puts_on_a_side_is_undecided(seed):
    rng = np.random.default_rng(seed)
    w, x = rng.standard_normal(40), rng.standard_normal(40)
    x += (1e-14 - w @ x - 3.0) / (w @ w) * w
    assert rl.flip_sign(rl.open_oracle(lambda rows: rows @ w + 3.0, dim=40), x).outcome is rl.Outcome.ON_BOUNDARY


def test_a_limit_grows_with_the_input_and_with_the_answers():
    slopes = np.array([[3.0, 4.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    limit, u = SideLimit.of("float64", slopes, 0.0), unit_roundoff("float64")
    x = np.array([[2.0, 0.0, 0.0, 0.0]])
    assert limit.at(x, np.zeros((1, 2))) == pytest.approx(DECIDED * 2 * u * 2 * 5 * 2)
    assert limit.at(x, np.array([[-100.0, 1.0]])) == pytest.approx(DECIDED * 2 * u * 100)
    assert SideLimit.of("float64", slopes, 1.0).at(x, np.zeros((1, 2))) == 1.0


def test_half_precision_is_added_up_in_float32():
    x, slopes = np.ones((1, 4)), np.ones((1, 4))
    half, single = (SideLimit.of(each, slopes, 0.0).at(x, np.zeros((1, 1))) for each in ("float16", "float32"))
    assert half == single


def test_the_most_rows_that_a_flip_takes(seed):
    """All that is ever asked: the target wakes up after the probe, and is far from the boundary."""
    x, asked = np.random.default_rng(seed).standard_normal(6), []

    def target(rows):
        asked.extend(rows)
        down = (rows - x).sum(axis=1)
        return np.where(len(asked) <= PROBE_ROWS, 1.5, np.maximum(1.5 - down, 0.45 - 0.15 * down))

    oracle = rl.open_oracle(target, dim=6)
    asked.clear()  # one row that tells how many outputs there are
    flip = rl.flip_sign(oracle, x)
    assert flip.ok
    assert flip.queries == 6 + MOST_FLIP_ROWS

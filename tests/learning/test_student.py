"""Students: networks trained on answers of every kind, told by what they do on answers they were not trained on."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from sweeps import sweep

from reluctant import Outcome, ReLUNetwork, defend, open_oracle, train_student
from reluctant.domains import Domain
from reluctant.errors import InvalidInput, InvalidRows
from reluctant.learning.student import DIFFERING, EPS, FEWEST, ask_training_data, draw_rows, rows_like
from reluctant.oracles import NetworkOracle
from reluctant.testing import planted

DRAWN = planted((6, 5, 3))
MIDDLE = np.median(DRAWN(np.random.default_rng(0).standard_normal((2000, 6))), axis=0)
TEACHER = ReLUNetwork(DRAWN.weights, [DRAWN.biases[0], DRAWN.biases[1] - MIDDLE])  # every label is common
FRESH = np.random.default_rng(9).standard_normal((4000, 6))
SMALL = {"rows": 8000, "hidden": (32,)}
HALF = 4000  # steps: of those by default, enough where a student need not be as close as can be


def behind(*defenses, **settings):
    return train_student(defend(NetworkOracle(TEACHER), *defenses), **(SMALL | settings))


def same_labels(found):
    return float((found.network(FRESH).argmax(axis=1) == TEACHER(FRESH).argmax(axis=1)).mean())


@pytest.fixture(scope="module")
def of_values():
    return behind("float16")


def test_a_student_of_values_is_as_close_as_it_says(of_values):
    accuracy, true = of_values.evidence["accuracy"], TEACHER(FRESH)
    error = np.mean(((of_values.network(FRESH) - true) / true.std(axis=0)) ** 2)
    assert of_values.outcome is Outcome.LEARNED
    assert accuracy.high <= EPS
    assert error <= 10 * accuracy.error  # rare inputs that err most may be among either
    assert accuracy.points == 798  # a tenth of all but 20, which are asked twice
    assert same_labels(of_values) >= 0.99
    assert accuracy.agreement >= 0.99


@pytest.mark.parametrize(
    ("defenses", "link"),
    [(("float16",), "identity"), (("softmax",), "softmax"), (("sigmoid",), "sigmoid"), (("labels",), "identity")],
)
def test_the_network_notes_the_link_of_probabilities(defenses, link):
    assert behind(*defenses, rows=400, steps=10).network.link == link


def test_every_row_is_counted(of_values):
    assert of_values.queries == 8000
    assert {stage: rows.asked for stage, rows in of_values.rows.items()} == {"training": 8000}
    assert of_values.evidence["training"].rows == 7182


@pytest.mark.parametrize(
    ("defenses", "least"),
    [
        (("softmax",), 0.99),
        pytest.param(("softmax", "decimals=6"), 0.99, marks=pytest.mark.slow),
        pytest.param(("softmax", "top=1"), 0.98, marks=pytest.mark.slow),
        (("labels",), 0.95),
    ],
)
def test_a_student_of_less_than_values(defenses, least):
    found = behind(*defenses, steps=6000 if "top=1" in defenses else HALF)
    assert same_labels(found) >= least
    assert found.evidence["accuracy"].agreement == pytest.approx(same_labels(found), abs=0.02)
    if "labels" in defenses:
        assert found.evidence["accuracy"].error is None
        assert found.evidence["labels"] == [0.0, 1.0, 2.0]
        assert found.ok == (found.evidence["accuracy"].differing <= DIFFERING)
    elif "top=1" not in defenses:  # a class that is never the largest has no known size
        ratios, true = found.network.log_ratios()(FRESH), TEACHER.log_ratios()(FRESH)
        assert np.sqrt(np.mean(((ratios - true) / true.std(axis=0)) ** 2)) < 0.1


def test_a_chance_for_every_output():
    found = behind("sigmoid", steps=HALF)
    true = TEACHER(FRESH)
    assert np.sqrt(np.mean(((found.network(FRESH) - true) / true.std(axis=0)) ** 2)) < 0.1


def test_what_cannot_be_learned_is_told():
    def noise(x):
        return np.floor(1e5 * x[:, 0]) % 3

    labels = defend(open_oracle(lambda x: np.eye(3)[noise(x).astype(int)], dim=6), "labels")
    found = train_student(labels, rows=4000, hidden=(16,), steps=1000)
    assert not found.ok
    assert found.outcome is Outcome.NOT_ACCURATE
    assert 0.2 < found.evidence["accuracy"].agreement < 0.5
    values = train_student(
        open_oracle(lambda x: noise(x)[:, None] + 0.1 * x[:, :1], dim=6), rows=4000, hidden=(16,), steps=1000
    )
    assert values.outcome is Outcome.NOT_ACCURATE
    assert values.evidence["accuracy"].error > 0.5


@pytest.mark.parametrize("settings", [{}, {"batch": 300}])
def test_what_the_budget_paid_for_is_used(settings):
    oracle = open_oracle(TEACHER, dim=6, budget=2500, **settings)
    found = train_student(oracle, hidden=(8,), rows=40_000, seconds=0.1)
    assert found.queries == 2500  # less than a tenth of the rows wanted
    assert found.evidence["training"].rows == 2232
    assert found.evidence["accuracy"].points == 248
    assert "budget" in found.evidence["training"].short
    assert found.outcome in (Outcome.LEARNED, Outcome.OUT_OF_BUDGET)


def test_too_few_rows_are_not_paid_for():
    nothing = train_student(open_oracle(TEACHER, dim=6, budget=FEWEST - 1))
    assert (nothing.outcome, nothing.network, nothing.queries) == (Outcome.OUT_OF_BUDGET, None, 0)


def test_time_makes_fewer_steps_and_is_kept(ticking):
    found = behind(seconds=0.2, hidden=None)
    assert ticking.seconds < 0.5
    assert found.evidence["training"].hurried
    assert found.evidence["training"].steps < 8000
    assert found.network is not None


def test_the_seed_decides_everything():
    first, again = (behind(rows=500, hidden=(4,), rng=3, steps=300).network for _ in range(2))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(first.weights, again.weights, strict=True))
    other = behind(rows=500, hidden=(4,), rng=4, steps=300).network
    assert not np.allclose(first.weights[0], other.weights[0])


def test_a_box_is_not_left():
    oracle = open_oracle(TEACHER, dim=6, domain=(0.0, 1.0))  # refuses rows outside
    found = train_student(oracle, **SMALL)
    inside = np.random.default_rng(2).uniform(0, 1, (500, 6))
    true = TEACHER(inside)
    assert found.ok
    assert np.sqrt(np.mean(((found.network(inside) - true) / true.std(axis=0)) ** 2)) < 1e-2


def test_inside_a_span_nothing_else_is_looked_at():
    wide = planted((60, 3, 2))
    span = np.linalg.svd(wide.weights[0], full_matrices=False)[2]
    found = train_student(NetworkOracle(wide), rows=3000, hidden=(16,), steps=4000, span=span)
    assert found.ok
    assert np.allclose(found.network.weights[0] @ span.T @ span, found.network.weights[0])


def test_two_hidden_layers_are_found_by_themselves():
    deep = planted((4, 8, 8, 3))
    found = train_student(NetworkOracle(deep), rows=8000, steps=100)
    assert len(found.evidence["training"].hidden) == 2


def test_rows_given_are_the_rows_asked():
    asked = []

    def target(x):
        asked.append(x.copy())
        return TEACHER(x)

    rows = 5 + np.random.default_rng(0).standard_normal((300, 6))
    oracle = open_oracle(target, dim=6)
    asked.clear()
    found = train_student(oracle, inputs=rows, hidden=(4,), seconds=0.2)
    assert found.queries == 315  # one of twenty is asked twice
    assert set(map(bytes, np.concatenate(asked))) == set(map(bytes, rows))


def test_equal_rows_are_asked_once():
    """Where nothing can be learned, rows that were trained on would look like a copy."""

    def digest(x):
        return np.array([[zlib.crc32(row.tobytes()) / 2**32] for row in x])

    base = np.random.default_rng(0).standard_normal((60, 3))
    inputs = np.repeat(base, 60, axis=0)
    found = train_student(open_oracle(digest, dim=3), inputs=inputs, hidden=(64,), steps=500)
    assert found.queries == len(base) + 3
    assert found.outcome is Outcome.NOT_ACCURATE
    with pytest.raises(InvalidRows):
        train_student(open_oracle(digest, dim=3), inputs=inputs[: 60 * (FEWEST - 1)])


@pytest.mark.parametrize(
    ("target", "kind", "outcome"),
    [(lambda x: np.ones((len(x), 2)), None, Outcome.CONSTANT), (lambda x: x[:, :1] < 9, "labels", Outcome.ONE_LABEL)],
)
def test_nothing_to_learn(target, kind, outcome):
    oracle = open_oracle(lambda x: np.asarray(target(x), dtype=float), dim=3)
    oracle = defend(oracle, "labels") if kind else oracle
    assert train_student(oracle, rows=200).outcome is outcome


def test_rows_like_examples_of_another_size():
    rng = np.random.default_rng(0)
    pixels = rng.uniform(0, 255, (50, 4))
    rows = rows_like(pixels, Domain(), 1000, rng)
    assert rows.shape == (1000, 4)
    assert (np.abs(rows).max(axis=1) > 20).mean() == pytest.approx(0.5, abs=0.05)
    assert rows_like(pixels / 255, Domain(), 1000, rng) is None
    assert rows_like(pixels, Domain(0, 255), 1000, rng) is None  # a box is used as a whole


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"rows": 3}, InvalidInput),
        ({"hidden": ()}, InvalidInput),
        ({"hidden": (4, 0)}, InvalidInput),
        ({"eps": 0.0}, InvalidInput),
        ({"steps": 0}, InvalidInput),
        ({"seconds": -1.0}, InvalidInput),
        ({"inputs": np.zeros((50, 5))}, InvalidRows),
        ({"span": np.zeros((2, 5))}, InvalidInput),
    ],
)
def test_bad_settings_are_refused(settings, error):
    with pytest.raises(error):
        train_student(NetworkOracle(ReLUNetwork([np.eye(6)], [np.zeros(6)])), **settings)


def test_one_label_nearly_everywhere_is_no_copy():
    """Equal labels say nothing where the commonest one alone is right as often."""
    rare = defend(open_oracle(lambda x: np.column_stack([x[:, 0] - 2.65, 0 * x[:, 0]]), dim=4), "labels")
    found = train_student(rare, rows=4000, hidden=(4,), steps=100)
    assert found.evidence["accuracy"].agreement > 0.99
    assert not found.ok


NOISE = 0.1


@pytest.fixture(scope="module")
def of_noise():
    return behind(f"gaussian={NOISE}", rows=20_000, steps=HALF)


def own_error(found):
    true = TEACHER(FRESH)
    return np.mean(((found.network(FRESH) - true) / true.std(axis=0)) ** 2)


def test_noise_is_not_taken_for_the_students_error(of_noise):
    accuracy, true = of_noise.evidence["accuracy"], own_error(of_noise)
    noise = np.mean((NOISE / TEACHER(FRESH).std(axis=0)) ** 2)
    assert accuracy.own.noise == pytest.approx(noise, rel=0.2)
    assert accuracy.error == pytest.approx(noise, rel=0.3)  # nearly all of it
    assert true <= accuracy.own.high <= noise / 5
    assert accuracy.judged == accuracy.own.high
    assert (accuracy.to_dict()["of copy"], accuracy.to_dict()["is bound"]) == (accuracy.of_copy, accuracy.is_bound)


def test_answers_that_differ_are_asked_twice_within_the_rows(of_noise):
    training, accuracy = of_noise.evidence["training"], of_noise.evidence["accuracy"]
    assert of_noise.queries == 20_000
    assert training.rows + 2 * accuracy.points == pytest.approx(20_000, abs=120)
    labels = TEACHER(FRESH).argmax(axis=1)
    rng = np.random.default_rng(0)
    noisy = [(TEACHER(FRESH) + NOISE * rng.standard_normal((len(FRESH), 3))).argmax(axis=1) for _ in range(2)]
    assert accuracy.repeated == pytest.approx((noisy[0] == noisy[1]).mean(), abs=0.02)
    assert accuracy.agreement < (of_noise.network(FRESH).argmax(axis=1) == labels).mean()


@pytest.mark.parametrize("decimals", sweep([1, 2], fast=[1]))
def test_rounding_is_not_taken_for_the_students_error(decimals):
    found = behind(f"decimals={decimals}", steps=HALF)
    accuracy = found.evidence["accuracy"]
    step = 10.0**-decimals / TEACHER(FRESH).std(axis=0)
    assert accuracy.own.noise == pytest.approx(np.mean(step**2) / 12, rel=0.1)
    assert own_error(found) <= accuracy.own.high
    assert accuracy.of_copy < accuracy.error


@pytest.mark.parametrize("seed", sweep([0, 6, 8], fast=[6]))
def test_rounding_that_a_student_has_learned_is_its_own(seed):
    """Where a target is flat, its rounding is the same everywhere, and a student of it is off by as much."""
    drawn, many = planted((6, 5, 3), seed), np.random.default_rng(9).standard_normal((40_000, 6))
    teacher = ReLUNetwork(drawn.weights, [drawn.biases[0], drawn.biases[1] - np.median(drawn(many[:2000]), axis=0)])
    found = train_student(defend(NetworkOracle(teacher), "decimals=2"), **SMALL, rng=100 + seed)
    true = teacher(many)
    own = np.mean(((found.network(many) - true) / true.std(axis=0)) ** 2)
    assert own <= found.evidence["accuracy"].own.high


@pytest.mark.parametrize("limit", [40, 100, 500, 3000])
def test_a_limit_of_the_targets_own_leaves_all_that_it_answers(limit):
    found = train_student(defend(NetworkOracle(TEACHER), f"limit={limit}"), hidden=(8,), steps=200)
    assert found.queries == limit
    assert found.outcome is Outcome.TARGET_FAILED
    assert found.network is not None
    training = found.evidence["training"]
    assert training.rows + found.evidence["accuracy"].points == limit - 20  # asked twice
    assert str(limit) in training.short


def test_a_target_that_breaks_down_leaves_what_it_answered():
    left = [3000]

    def target(x):
        left[0] -= len(x)
        if left[0] < 0:
            raise ConnectionError("gone")
        return TEACHER(x)

    found = train_student(open_oracle(target, dim=6), hidden=(8,), steps=200)
    assert found.outcome is Outcome.TARGET_FAILED
    assert found.network is not None
    assert "gone" in found.evidence["training"].short


@pytest.mark.parametrize("budget", [21, 33, 39, 41])
def test_a_budget_that_ends_among_the_rows_asked_twice_pairs_the_right_ones(budget):
    found = train_student(open_oracle(TEACHER, dim=6, budget=budget), hidden=(8,), steps=20)
    assert found.evidence["accuracy"].repeated is None  # a target that repeats itself


def test_a_limit_below_the_fewest_rows_gives_nothing():
    found = train_student(defend(NetworkOracle(TEACHER), f"limit={FEWEST - 1}"))
    assert (found.outcome, found.network) == (Outcome.TARGET_FAILED, None)


def test_a_student_of_noise_alone_is_not_good():
    rng = np.random.default_rng(0)
    found = train_student(
        open_oracle(lambda x: rng.standard_normal((len(x), 1)), dim=3), rows=4000, hidden=(8,), steps=2000
    )
    assert found.outcome is Outcome.NOT_ACCURATE
    assert found.evidence["accuracy"].own is None
    assert found.evidence["accuracy"].of_copy == found.evidence["accuracy"].error


def test_labels_that_change_are_told():
    rng = np.random.default_rng(0)
    oracle = defend(open_oracle(lambda x: x[:, :1] + 0.3 * rng.standard_normal((len(x), 1)), dim=3), "labels")
    found = train_student(oracle, rows=4000, hidden=(8,), steps=500)
    assert 0.7 < found.evidence["accuracy"].repeated < 0.95


@pytest.mark.parametrize("settings", [{"rows": 90}, {"rows": 300}, {"rows": 5000}, {"inputs": FRESH[:330]}])
def test_every_row_that_is_held_out_is_asked_twice(settings):
    """By a target that tells how often it was asked: both answers are of the same row, and of no other."""
    seen: dict[bytes, int] = {}

    def target(x):
        answers = np.empty((len(x), 2))
        for answer, row in zip(answers, x, strict=True):
            seen[row.tobytes()] = seen.get(row.tobytes(), 0) + 1
            answer[:] = row[0], seen[row.tobytes()]
        return answers

    rows = draw_rows(
        open_oracle(target, dim=6), settings.get("rows", 0), settings.get("inputs"), np.random.default_rng(1)
    )
    seen.clear()
    most = settings.get("rows", 40_000)
    asked = ask_training_data(open_oracle(target, dim=6), rows if len(rows) else settings["inputs"], most, None)
    assert sum(seen.values()) <= most + 1  # and one to see how many outputs there are
    assert len(asked.again) >= 0.8 * len(asked.held_rows)
    np.testing.assert_array_equal(asked.again[:, 0], asked.held_answers[: len(asked.again), 0])
    assert (asked.held_answers[:, 1] == 1).all()
    assert (asked.again[:, 1] == 2).all()
    np.testing.assert_array_equal(asked.answers[:, 0], asked.rows[:, 0])

"""A network from labels alone: sign labels of one hidden layer, verification by labels, named refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import reluctant as rl
from reluctant.extraction.attempts import Place
from reluctant.extraction.from_labels.bent_model import BentModel
from reluctant.extraction.from_labels.joint_polish import LocatedPoints
from reluctant.extraction.from_labels.method import FirstLabels, NewLabel
from reluctant.extraction.from_labels.missed_creases import Peeling
from reluctant.extraction.from_labels.new_facets import Brackets
from reluctant.extraction.recovery import labels_apart
from reluctant.geometry.boundary import only_labels
from reluctant.interface.kinds import IntegerKind, Shape
from reluctant.networks import ReLUNetwork
from reluctant.verification.label_check import check_labels, largest_share


def balanced(n: int, k: int, seed: int, first: float = 1.0) -> ReLUNetwork:
    """A random network with one hidden layer, above 0 at half of Gaussian inputs; its first neuron so much weaker."""
    rng = np.random.default_rng(seed)
    weights, biases, out = rng.standard_normal((k, n)) / np.sqrt(n), rng.standard_normal(k) / 2, rng.standard_normal(k)
    out[0] *= first
    values = np.maximum(rng.standard_normal((2000, n)) @ weights.T + biases, 0) @ out
    return ReLUNetwork([weights, out[None]], [biases, np.array([-np.median(values)])])


def sign_of(network: ReLUNetwork, low: float = 0.0, high: float = 1.0):
    return lambda x: np.where(network(x)[:, 0] > 0, high, low)


def direction_errors(found: ReLUNetwork, true: ReLUNetwork) -> np.ndarray:
    """Distance of each true neuron's unit weights from the nearest that was found, whichever way round."""
    ours, theirs = (w / np.linalg.norm(w, axis=1, keepdims=True) for w in (found.weights[0], true.weights[0]))
    apart = [np.minimum(np.linalg.norm(ours - w, axis=1), np.linalg.norm(ours + w, axis=1)).min() for w in theirs]
    return np.array(apart)


def test_a_network_from_its_sign_alone():
    true = balanced(20, 10, seed=6)
    result = rl.extract(sign_of(true), rl.FromLabels(), dim=20, rng=6)
    assert result.ok
    assert result.network.widths == (20, 10, 1)
    assert result.network.skip is None
    assert np.median(direction_errors(result.network, true)) < 1e-12
    assert result.evidence["boundary error"] <= 1e-9
    assert result.queries < 21_000


@pytest.mark.parametrize("rng", [0, 3])
def test_a_neuron_that_hardly_bends_the_boundary_costs_no_second_search(rng):
    """Short steps say little of its crease: long steps keep away from it as far as that needs.

    Where they can then see one side of two neurons alone, these look like one, and shorter steps tell them apart.
    """
    true = balanced(40, 6, seed=0, first=3e-3)
    result = rl.extract(sign_of(true), rl.FromLabels(), dim=40, rng=rng)
    assert result.ok
    assert result.network.widths == (40, 6, 1)
    assert direction_errors(result.network, true).max() < 1e-9
    assert result.queries < 30_000


def test_the_network_predicts_the_labels_and_has_the_stated_scale():
    true = balanced(12, 6, seed=0)
    result = rl.extract(sign_of(true, -1.0, 1.0), rl.FromLabels(), dim=12, rng=0)
    network, x = result.raise_for_status().network, np.random.default_rng(1).standard_normal((5000, 12))
    assert np.array_equal(network(x)[:, 0] > 0, true(x)[:, 0] > 0)
    assert np.allclose(np.linalg.norm(network.weights[0], axis=1), 1)
    assert np.isclose(np.linalg.norm(network.weights[1]), 1)


def test_labels_are_recognised_and_values_can_be_hidden():
    true = balanced(12, 4, seed=3)
    by_itself = rl.extract(sign_of(true), dim=12, rng=0)
    hidden = rl.extract(lambda x: true(x) + 0.5, dim=12, rng=0, labels=True)
    assert by_itself.ok
    assert hidden.ok
    assert hidden.evidence["boundary error"] <= 1e-9
    assert hidden.queries == pytest.approx(by_itself.queries, rel=0.5)
    assert by_itself.network.widths == hidden.network.widths == (12, 4, 1)


def test_one_label_is_an_outcome():
    result = rl.extract(lambda x: np.zeros(len(x)), rl.FromLabels(), dim=6, rng=0)
    assert result.outcome is rl.Outcome.ONE_LABEL
    assert result.queries < 3000


def test_labels_that_change_are_an_outcome():
    rng = np.random.default_rng(0)
    result = rl.extract(lambda x: x[:, 0] + rng.standard_normal(len(x)) > 0, rl.FromLabels(), dim=6, rng=0)
    assert result.outcome is rl.Outcome.TOO_NOISY
    assert result.queries < 3000


def test_more_labels_than_were_said():
    with pytest.raises(rl.ReluctantError, match="3 different labels"):
        rl.extract(lambda x: x[:, :3].argmax(axis=1), rl.FromLabels(classes=2), dim=6, rng=0)


def test_other_methods_do_not_read_labels():
    with pytest.raises(rl.ReluctantError, match="DepthTwo"):
        rl.extract(lambda x: x[:, 0], rl.DepthTwo(), dim=6, rng=0, labels=True)


@pytest.mark.parametrize(
    "value",
    [lambda x: np.tanh(2 * x).sum(axis=1), lambda x: (x**2).sum(axis=1) - 6.0],
    ids=["tanh", "sphere"],
)
def test_a_curved_boundary_is_an_outcome(value):
    result = rl.extract(lambda x: value(x) > 0.1, dim=6, rng=0)
    assert result.outcome is rl.Outcome.NOT_PIECEWISE_LINEAR
    assert result.diagnosis.slug == "curved-boundary"
    assert result.queries < 20_000


def float32_labels(true: ReLUNetwork):
    """The sign of a network whose numbers are all in float32."""
    weights, biases = ([part.astype(np.float32) for part in parts] for parts in (true.weights, true.biases))

    def label(x: np.ndarray) -> np.ndarray:
        hidden = np.maximum(x.astype(np.float32) @ weights[0].T + biases[0], 0)
        return (hidden @ weights[1].T + biases[1])[:, 0] > 0

    return label


def test_labels_of_float32_give_its_own_resolution():
    true = balanced(12, 4, seed=3)
    result = rl.extract(float32_labels(true), rl.FromLabels(), dim=12, rng=0)
    assert result.ok
    assert result.network.widths == (12, 4, 1)
    assert 1e-8 < result.evidence["boundary error"] < 3e-6  # its own resolution
    assert np.median(direction_errors(result.network, true)) < 3e-6
    x = np.random.default_rng(1).standard_normal((5000, 12))
    assert np.array_equal(result.network(x)[:, 0] > 0, true(x)[:, 0] > 0)


def test_another_flat_shows_a_network_in_float32_that_two_do_not():
    true = balanced(16, 8, seed=1)
    result = rl.extract(float32_labels(true), rl.FromLabels(), dim=16, rng=0)
    assert result.ok
    assert result.network.widths == (16, 8, 1)
    assert result.evidence["boundary error"] < 3e-6


@pytest.mark.parametrize("levels", [4, 64, 1024])
def test_inputs_that_the_target_rounds_are_refused_with_their_resolution(levels):
    true = balanced(12, 4, seed=3)
    result = rl.extract(lambda x: true(np.round(levels * x) / levels)[:, 0] > 0, rl.FromLabels(), dim=12, rng=0)
    assert result.outcome is rl.Outcome.LOW_PRECISION
    assert 0.01 < result.diagnosis.fields["resolution"] * levels * np.sqrt(12) < 3
    assert "recover_span" in str(result.diagnosis)
    assert result.queries < 5000


def of_classes(n: int, k: int, m: int, seed: int) -> ReLUNetwork:
    """A random network with an output for each of m classes, whose medians at Gaussian inputs are equal."""
    rng = np.random.default_rng(seed)
    weights, biases, out = (
        rng.standard_normal((k, n)) / np.sqrt(n),
        rng.standard_normal(k) / 2,
        rng.standard_normal((m, k)),
    )
    values = np.maximum(rng.standard_normal((2000, n)) @ weights.T + biases, 0) @ out.T
    return ReLUNetwork([weights, out], [biases, -np.median(values, axis=0)])


def test_a_network_of_several_classes_from_the_largest_alone():
    true, names = of_classes(6, 5, 3, seed=0), np.array([2.0, 7.0, 9.0])
    result = rl.extract(lambda x: names[true(x).argmax(axis=1)], dim=6, rng=0)
    assert result.ok
    assert result.network.widths == (6, 5, 3)
    assert np.median(direction_errors(result.network, true)) < 1e-11
    assert result.evidence["boundary error"] <= 1e-9
    assert result.evidence["verification"].pairs == 3
    assert np.allclose(result.network.weights[1].sum(axis=0), 0)  # a function added to all classes is open
    assert result.queries < 25_000
    x = np.random.default_rng(1).standard_normal((5000, 6))
    assert np.array_equal(result.network(x).argmax(axis=1), true(x).argmax(axis=1))


def test_several_classes_in_float32_give_their_own_resolution():
    true = of_classes(8, 6, 3, seed=2)
    first, second, *biases = (part.astype(np.float32) for part in (*true.weights, *true.biases))

    def label(x):
        return (np.maximum(x.astype(np.float32) @ first.T + biases[0], 0) @ second.T + biases[1]).argmax(axis=1)

    result = rl.extract(label, dim=8, rng=2)
    assert result.ok
    assert result.network.widths == (8, 6, 3)
    assert np.median(direction_errors(result.network, true)) < 1e-5
    assert result.evidence["boundary error"] <= 1e-4
    x = np.random.default_rng(1).standard_normal((20_000, 8))
    assert (result.network(x).argmax(axis=1) == true(x).argmax(axis=1)).mean() > 0.9999


def test_classes_of_an_affine_map():
    result = rl.extract(lambda x: x[:, :3].argmax(axis=1), rl.FromLabels(), dim=6, rng=0)
    assert result.ok
    assert result.network.widths == (6, 3)


def test_verification_asks_every_pair_of_classes_that_meet():
    """The third class is narrow: few random points lie on its boundaries."""
    true = ReLUNetwork([np.eye(6)[:3] * [[1], [1], [0.05]]], [np.array([0.0, 0.0, 0.3])])
    wrong = ReLUNetwork(true.weights, [np.array([0.0, 0.0, 0.31])])
    oracle, rng = only_labels(rl.open_oracle(lambda x: true(x).argmax(axis=1), dim=6)), np.random.default_rng(0)
    checks = [
        check_labels(
            oracle, network, lambda n: rng.standard_normal((n, 6)), np.sqrt(6), lambda a: a[:, 0].astype(int), tol=1e-6
        )
        for network in (true, wrong)
    ]
    assert [check.ok for check in checks] == [True, False]
    assert checks[0].pairs == 3
    assert checks[0].share < checks[1].share
    assert checks[0].input_share < 0.04


def test_an_output_that_few_inputs_show():
    """Where the fifth neuron is off, a false weight there changes the label of few inputs of three times the scale.

    It is refused. The search finds such a weight from labels, where no boundary of the class shows it.
    """
    true, normal = of_classes(6, 5, 3, seed=831001), np.random.default_rng(1).standard_normal
    claim = np.array([[0.4], [0.0], [0.0]])
    extra = ReLUNetwork(
        [np.vstack([true.weights[0], -true.weights[0][4]]), np.hstack([true.weights[1], claim])],
        [np.append(true.biases[0], -true.biases[0][4]), true.biases[1]],
    )
    oracle = rl.open_oracle(lambda x: true(x).argmax(axis=1), dim=6)
    checks = [
        check_labels(
            only_labels(oracle), network, lambda n: normal((n, 6)), np.sqrt(6), lambda a: a[:, 0].astype(int), tol=1e-6
        )
        for network in (true, extra)
    ]
    assert [check.ok for check in checks] == [True, False]
    result, x = rl.extract(oracle, rng=831001), 3 * normal((100_000, 6))
    assert result.ok
    assert np.array_equal(result.network(x).argmax(axis=1), true(x).argmax(axis=1))


def test_a_neuron_that_fits_is_kept_and_the_next_one_looked_at():
    """Both brackets cross a known crease. Without the first neuron no located point fits, without the second all do."""
    model = BentModel(np.eye(3)[:2], np.zeros(2), np.array([0.3, 0.3]), np.array([0.1, 0.1, 1.0]), 0.0)
    points = np.random.default_rng(0).uniform(0.5, 2, (8, 3)) * [-1, 1, 1]
    located = LocatedPoints(model.projected(points, 1e-12)[0], np.full(8, 1e-12))
    before, behind = np.array([[0.1, 1, 0], [1, 0.1, 0]]), np.array([[-0.1, 1, 0], [1, -0.1, 0]])
    brackets, search = Brackets(before, behind), Peeling(None, located, located.points)
    less = search.without_one(model, brackets, brackets.crossed(model))
    assert np.array_equal(less.directions, np.eye(3)[:1])
    kept = search.without_one(model, brackets[:1], brackets[:1].crossed(model))
    assert kept is model


def test_shares_grow_with_what_was_seen():
    assert [round(1000 * largest_share(events, 1000), 2) for events in (0, 1, 3)] == [3.0, 4.74, 7.75]
    assert largest_share(5, 2) == 1.0


def test_a_network_inside_a_box():
    true = balanced(12, 4, seed=3)
    asked = []

    def label(x):
        asked.append(np.abs(x).max())
        return true(x)[:, 0] > 0

    result = rl.extract(label, dim=12, rng=0, domain=(-2, 2))
    assert result.ok
    assert result.evidence["boundary error"] <= 1e-7
    assert max(asked) <= 2
    x = np.random.default_rng(1).uniform(-2, 2, (5000, 12))
    assert np.array_equal(result.network(x)[:, 0] > 0, true(x)[:, 0] > 0)


@pytest.mark.parametrize(("neurons", "widths"), [(0, (12, 1)), (1, (12, 1, 1))])
def test_a_halfspace_and_a_crease_alone(neurons, widths):
    w = np.random.default_rng(0).standard_normal((2, 12)) / 3
    result = rl.extract(lambda x: x @ w[0] + neurons / 2 * np.abs(x @ w[1] - 0.2) > 0.3, rl.FromLabels(), dim=12, rng=0)
    assert result.ok
    assert result.network.widths == widths


def test_verification_refuses_a_network_that_misses_a_neuron():
    true = balanced(12, 4, seed=3)
    oracle = only_labels(rl.open_oracle(sign_of(true), dim=12))
    part = ReLUNetwork([true.weights[0][:3], true.weights[1][:, :3]], [true.biases[0][:3], true.biases[1]])
    rng = np.random.default_rng(0)
    checks = [
        check_labels(
            oracle,
            network,
            lambda n: rng.standard_normal((n, 12)),
            np.sqrt(12),
            lambda a: a[:, 0].astype(int),
            tol=1e-6,
        )
        for network in (true, part)
    ]
    assert [check.ok for check in checks] == [True, False]
    assert checks[0].boundary_error <= 1e-9
    assert oracle.queries < 2500


def test_a_slightly_wrong_network_is_only_as_good_as_its_boundary():
    true = balanced(12, 4, seed=3)
    oracle = only_labels(rl.open_oracle(sign_of(true), dim=12))
    turned = true.weights[0] + 1e-6 * np.random.default_rng(1).standard_normal((4, 12))
    near, rng = ReLUNetwork([turned, true.weights[1]], true.biases), np.random.default_rng(0)
    check = check_labels(
        oracle, near, lambda n: rng.standard_normal((n, 12)), np.sqrt(12), lambda a: a[:, 0].astype(int), tol=1e-9
    )
    assert not check.ok
    assert 1e-7 <= check.boundary_error <= 1e-3


def test_points_too_close_to_another_boundary_speak_for_nothing():
    """Both boundaries of a narrow strip are predicted, and inside it no step is long enough to be sure of a label."""
    size, step = np.sqrt(12), 1e-3
    strip = ReLUNetwork([np.eye(12)[[0, 0]] * [[1], [-1]], [[1, 1]]], [np.zeros(2), [-0.3 * step * size]])
    oracle, rng = rl.open_oracle(lambda x: np.ones(len(x)), dim=12), np.random.default_rng(0)

    def every_other_inside(count):
        rows = rng.standard_normal((count, 12))
        rows[::2, 0] = 0
        return rng.permutation(rows)

    check = check_labels(
        only_labels(oracle), strip, every_other_inside, size, lambda a: a[:, 0].astype(int), tol=1e-2, finest=step
    )
    assert not check.ok
    assert check.undecided > check.points == 0
    assert "too close" in str(check)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(20, 10), (50, 20), (10, 30)])
@pytest.mark.parametrize("seed", range(3))
def test_many_networks(shape, seed):
    true = balanced(*shape, seed=seed + 50)
    result = rl.extract(sign_of(true), dim=shape[0], rng=seed)
    assert result.ok
    assert np.median(direction_errors(result.network, true)) < 1e-11


def test_a_label_that_the_first_inputs_did_not_show_ends_the_search_in_its_flat():
    inputs = np.eye(4)[:3]
    seen = FirstLabels(inputs, np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0]), 1.0, 0.0)
    oracle = rl.open_oracle(lambda x: np.where(x[:, 3] > 0, 7.0, 1.0), dim=4)
    space = seen.space(oracle, 1e-12, np.random.default_rng(0))
    assert space.ask(inputs).tolist() == [[1.0]] * 3
    with pytest.raises(NewLabel) as new:
        space.ask(np.eye(4))
    again = seen.with_inputs(new.value.rows, new.value.labels, None)
    assert again.names.tolist() == [0.0, 1.0, 2.0, 7.0]
    with pytest.raises(rl.ReluctantError, match="4 different labels"):
        seen.with_inputs(new.value.rows, new.value.labels, 3)


def test_a_class_of_one_input_in_a_thousand():
    weights, biases = np.eye(6)[[0, 1, 2, 0]] * [[1], [1], [1], [3]], np.array([0, 0, 0, -6.2])
    result = rl.extract(lambda x: (x @ weights.T + biases).argmax(axis=1), rl.FromLabels(), dim=6, rng=0)
    assert result.ok
    assert result.network.widths == (6, 4)
    assert result.queries < 20_000


@pytest.mark.parametrize(("label", "expected"), [(lambda x: 4.0 * x[:, :4].argmax(axis=1), True), (np.round, False)])
def test_whole_numbers_that_the_first_look_left_open(label, expected):
    oracle = rl.open_oracle(lambda x: label(x) if expected else np.round(2 * x[:, 0]), dim=6)
    health = replace(rl.check_health(oracle, rng=0), shape=Shape.PIECEWISE_CONSTANT, integers=IntegerKind.UNDECIDED)
    assert labels_apart(Place(oracle, health), np.random.default_rng(0)) is expected

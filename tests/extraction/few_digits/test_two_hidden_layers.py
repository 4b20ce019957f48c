"""FewDigitsDeep: two hidden layers from float32, right to the target's own error, or refused by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sweeps import sweep
from targets import error, in_float32, own_error

import reluctant as rl
from reluctant.extraction.deep_few_digits import layers_fit as fits
from reluctant.extraction.deep_few_digits.first_hyperplanes import WIDTH, FirstLayer
from reluctant.extraction.deep_few_digits.frame_fit import CarriedNoise, FittedFrame
from reluctant.extraction.deep_few_digits.layers_fit import Layers, Weighed, fit_layers, without_past_term
from reluctant.extraction.deep_few_digits.missing_neurons import last_from_left
from reluctant.extraction.deep_few_digits.named_kinks import find_wide_layers
from reluctant.extraction.deep_few_digits.orthant import Orthant, SecondRow, Segment
from reluctant.extraction.deep_few_digits.other_directions import extend_to_all
from reluctant.extraction.deep_few_digits.residual_moments import neuron_from_moments
from reluctant.extraction.few_digits.answer_store import Asked
from reluctant.extraction.few_digits.growth import LAYERS
from reluctant.extraction.few_digits.incomplete_lines import bent_share, read_incomplete_line
from reluctant.extraction.few_digits.scaled_view import look_from
from reluctant.extraction.few_digits.shared_hyperplanes import SmallFrame
from reluctant.geometry import Frame
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.testing import planted
from reluctant.testing.planted import train_digits
from reluctant.verification.precision import rounding_sizes

SHAPES = [(8, 5, 4, 1), (20, 10, 10, 1), (12, 8, 6, 2), (64, 32, 16, 1)]


@pytest.mark.parametrize("widths", sweep(SHAPES, fast=[(8, 5, 4, 1)]))
def test_two_hidden_layers_are_recovered_to_their_own_error(widths: tuple[int, ...], seed: int) -> None:
    target, true = in_float32(planted(widths, 40 + seed, bias=0.5))
    result = rl.extract(rl.open_oracle(target, dim=widths[0]), rng=seed)
    assert result.ok
    assert result.network is not None
    assert result.network.widths == widths
    assert error(result.network, true) <= own_error(target, true)
    assert result.evidence["precision"].ok
    assert result.evidence["failures"][0].startswith(LAYERS)
    assert {"first layer", "second layer", "frame", "last fit"} <= set(result.rows)


def test_one_hidden_layer_is_no_second_one() -> None:
    target, _ = in_float32(planted((12, 6, 1), 3, bias=0.5))
    result = rl.extract(rl.open_oracle(target, dim=12), rl.FewDigitsDeep(), rng=0, attempts=1)
    assert not result.ok
    assert result.evidence["failures"][0].startswith("second layer")
    assert result.network is not None
    assert result.network.widths == (12, 6, 1)


@pytest.mark.parametrize(("widths", "bent"), [((20, 10, 1), False), ((20, 10, 10, 1), True)])
def test_creases_of_a_second_layer_bend(widths: tuple[int, ...], bent: bool) -> None:
    target, _ = in_float32(planted(widths, 5, bias=0.5))
    rng = np.random.default_rng(0)
    view = look_from(rl.open_oracle(target, dim=widths[0]), 1.0, rng)
    direction, across = np.linalg.qr(rng.standard_normal((widths[0], 2)))[0].T
    assert (bent_share(view, rng.standard_normal(widths[0]), direction, across) > 0.22) is bent


def test_kinks_of_a_noisy_line() -> None:
    rng, places, noise = np.random.default_rng(0), np.array([-1.3, -0.2, 0.4, 2.0]), 1e-6

    def ask(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        f = np.maximum(t[:, None] - places, 0) @ np.array([1.0, -0.7, 1.5, -2.0])
        return (f + noise * rng.standard_normal(len(t)))[:, None], np.full(len(t), noise)

    reading = read_incomplete_line(ask, np.tan(np.linspace(-1.5, 1.5, 80)))
    np.testing.assert_allclose(reading.positions, places, atol=1e-5)
    assert len(reading.samples) < 150


def two_layers(rng: np.random.Generator, *, past: bool = False) -> Layers:
    shapes = [(4, 6), (4,), (3, 4), (3,), (2, 3), (2,)]
    parts = [rng.standard_normal(shape) for shape in shapes]
    return replace(Layers(*parts), s=rng.standard_normal((2, 4)) if past else None)


@pytest.mark.parametrize("most_dense", [fits.MOST_DENSE, 10])
@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("layers", [2, 3])
def test_the_fit_comes_from_a_percent_to_the_noise(
    layers: int, past: bool, most_dense: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fits, "MOST_DENSE", most_dense)
    rng = np.random.default_rng(1)
    true, y, noise = two_layers(rng, past=past), rng.standard_normal((400, 6)), 1e-7
    if layers == 3:
        true = replace(true, between=((rng.standard_normal((4, 4)), rng.standard_normal(4)),))
    start = true.moved(1e-2 * rng.standard_normal(true.parameters))
    answers = Weighed(y, true(y) + noise * rng.standard_normal((400, 2)), np.full((400, 2), noise))
    found = fit_layers(start, answers, rng, huber=1e3, steps=30, damping=1e-3)
    assert np.sqrt(np.mean(answers.left_by(found) ** 2)) < 1.2
    np.testing.assert_allclose(found.network()(y), true(y), atol=1e-5)


def test_a_neuron_the_wrong_way_round_is_turned() -> None:
    rng = np.random.default_rng(2)
    true, y = two_layers(rng), rng.standard_normal((50, 6))
    sides = np.array([1.0, -1.0, -1.0])
    past = true.a[:, 1:] @ true.v[1:]
    turned = Layers(
        true.w, true.b, true.v * sides[:, None], true.c * sides, true.a, true.e + true.a[:, 1:] @ true.c[1:], past
    )
    np.testing.assert_allclose(turned(y), true(y), atol=1e-12)
    found, left = without_past_term(turned)
    assert left < 1e-12
    np.testing.assert_allclose(Layers(*found.parts[:-1])(y), true(y), atol=1e-12)


def test_roundings_carried_through_a_network_are_those_of_float32() -> None:
    target, true = in_float32(planted((30, 20, 10, 2), 4, bias=0.5))
    rng = np.random.default_rng(3)
    ratios = []
    for scale in (0.1, 1.0, 100.0):
        rows = (scale * rng.standard_normal((2000, 30))).astype(np.float32).astype(np.float64)
        ratios.append(np.sqrt(np.mean(((target(rows) - true(rows)) / rounding_sizes(true, rows)) ** 2)))
    assert max(ratios) < 1.6 * min(ratios)
    assert max(ratios) < np.finfo(np.float32).eps


def test_roundings_turn_a_neuron_on_at_its_crease() -> None:
    """A neuron of large output that is off by less than roundings: answers there have all of its noise."""
    (w, v, a), biases = (network := planted((30, 20, 10, 1), 4, bias=0.5)).weights, network.biases
    target, true = in_float32(ReLUNetwork([w, v, a * np.where(np.arange(10) == 3, 1e4, 1.0)], biases))
    (w, v, _), (b, c, _) = true.weights, true.biases
    x = np.random.default_rng(5).standard_normal((600, 30))
    for _ in range(8):
        z = x @ w.T + b
        normal = (v[3] * (z > 0)) @ w
        x = x - ((np.maximum(z, 0) @ v[3] + c[3]) / (normal**2).sum(axis=1))[:, None] * normal
    rows = x.astype(np.float32).astype(np.float64)
    left = (target(rows) - true(rows)) / rounding_sizes(true, rows)
    assert np.abs(left).max() < 15 * np.finfo(np.float32).eps


def test_unexplained_answers_agree_on_the_neuron_that_is_missing() -> None:
    rng, noise = np.random.default_rng(6), 1e-7
    true, y = two_layers(rng), rng.standard_normal((2000, 6))
    answers = Weighed(y, true(y) + noise * rng.standard_normal((2000, 2)), np.full((2000, 2), noise))
    known = Layers(true.w, true.b, true.v[:2], true.c[:2], true.a[:, :2], true.e)
    found = last_from_left(known, answers, rng)
    assert found is not None
    row, wanted = (np.append(part.v[-1], part.c[-1]) for part in (found, true))
    np.testing.assert_allclose(row / np.linalg.norm(row), wanted / np.linalg.norm(wanted), atol=1e-2)
    assert last_from_left(true, answers, rng) is None


def in_a_frame(widths: tuple[int, ...], size: int, wide: float = 1.0) -> tuple[Asked, Frame, Layers, ReLUNetwork]:
    """A float32 target, a frame of its inputs, and the target in there; weights outside the frame are `wide`."""
    rng = np.random.default_rng(7)
    frame = Frame(np.zeros(widths[0]), np.linalg.qr(rng.standard_normal((widths[0], size)))[0].T)
    network = planted(widths, 8, bias=0.5)
    w = network.weights[0]
    inside = w @ frame.basis.T @ frame.basis
    network = ReLUNetwork([inside + wide * (w - inside), *network.weights[1:]], network.biases)
    target, true = in_float32(network)
    view = look_from(rl.open_oracle(target, dim=widths[0]), 1.0, rng)
    asked = Asked(view, rng)
    (w, v, a), (b, c, e) = true.weights, true.biases
    unit = asked.unit * view.units
    return asked, frame, Layers(w @ frame.basis.T, b, v, c, a / unit[:, None], e / unit), true


def test_noise_where_the_first_layer_is_on_is_measured_there() -> None:
    """In many dimensions these inputs are short, and their answers large: noise by the input's length is too little."""
    asked, frame, network, _ = in_a_frame((784, 12, 8, 1), 19)
    orthant = Orthant(asked, FirstLayer(frame, network.w, network.b, 0.0, 0.0))
    rows = orthant.search(quiet=12, most=24)
    squares = np.concatenate([np.ravel(s.reading.mean_squares()) for s in orthant.segments if s.reading.mean_squares()])
    assert np.median(squares) < 2
    assert len(rows) >= 6
    assert len(asked) < 24 * 120


def test_directions_of_large_weights_are_measured_with_shorter_steps() -> None:
    asked, frame, network, true = in_a_frame((14, 6, 5, 1), 10, wide=8.0)
    found = extend_to_all(asked, FittedFrame(frame, network, CarriedNoise(1e-7)))
    w = true.weights[0]
    np.testing.assert_allclose(found.network.w @ found.frame.basis, w, atol=1e-3 * np.abs(w).max())


def test_two_lines_that_do_not_explain_points_beside_them_lead_to_two_layers() -> None:
    true = planted((64, 32, 16, 1), 20)
    unit = float(true(np.random.default_rng(0).standard_normal((1000, 64))).std())
    target = rl.open_oracle(lambda x: np.round(true(x) / unit, 4), dim=64, budget=4000)
    tried = rl.extract(target, rng=20).evidence["attempts"].entries
    assert [(attempt.method, attempt.stage) for attempt in tried[:2]] == [("FewDigits", "probe")] * 2
    assert tried[2].method == "FewDigitsDeep"


def planted_parts(widths: tuple[int, ...], seed: int) -> Layers:
    (w, v, a), (b, c, e) = (network := planted(widths, seed, bias=0.3)).weights, network.biases
    return Layers(*(part.copy() for part in (w, b, v, c, a, e)))


@pytest.mark.parametrize("layer", [0, 1])
def test_second_moments_show_a_weak_neuron(layer: int) -> None:
    """A hundredth as strong as the others; the fit without it leaves little else, and with it comes to the noise."""
    rng, noise = np.random.default_rng(9), 1e-6
    true = planted_parts((12, 8, 6, 3), 10)
    if layer == 0:
        true.v[:, 3] *= 0.01
        known = Layers(
            np.delete(true.w, 3, axis=0), np.delete(true.b, 3), np.delete(true.v, 3, axis=1), *true.parts[3:]
        )
    else:
        true.a[:, 3] *= 0.01
        known = Layers(
            true.w, true.b, np.delete(true.v, 3, axis=0), np.delete(true.c, 3), np.delete(true.a, 3, axis=1), true.e
        )
    y = rng.standard_normal((3000, 12))
    answers = Weighed(y, true(y) + noise * rng.standard_normal((3000, 3)), np.full((3000, 3), noise))

    def fitted(network: Layers) -> tuple[Layers, float]:
        fit = fit_layers(network, answers, rng, huber=1e3, steps=40, damping=1e-3, gain=0.01)
        return fit, float(np.median(np.abs(answers.left_by(fit))))

    known, before = fitted(known)
    found = neuron_from_moments(known, answers)
    assert found is not None
    assert before > 100
    assert fitted(found)[1] < 0.05 * before
    assert neuron_from_moments(true, answers) is None


def test_second_moments_ask_no_weight_of_neurons_that_are_never_on_beside() -> None:
    rng, noise = np.random.default_rng(4), 1e-6
    true, dead = planted_parts((6, 5, 12, 1), 4), [0, 2, 4]
    true.v[:, 1] *= 0.01
    true.c[dead] = -1e9
    known = Layers(np.delete(true.w, 1, axis=0), np.delete(true.b, 1), np.delete(true.v, 1, axis=1), *true.parts[3:])
    y = rng.standard_normal((1500, 6))
    answers = Weighed(y, true(y) + noise * rng.standard_normal((1500, 1)), np.full((1500, 1), noise))
    found = neuron_from_moments(known, answers)
    assert found is not None
    assert found.w.shape == (5, 6)
    assert np.abs(found.v[dead, -1]).max() < 1


def test_answers_of_very_different_weight_are_fitted_in_a_few_steps() -> None:
    """Far points tell much more of some weights than others do: equations of a few rows would miss them."""
    rng, noise = np.random.default_rng(11), 1e-6
    true = planted_parts((9, 7, 5, 4), 12)
    y = rng.standard_normal((3000, 9)) * np.exp(2 * rng.standard_normal((3000, 1)))
    sd = noise * (1 + np.abs(true(y)))
    answers = Weighed(y, true(y) + sd * rng.standard_normal(sd.shape), sd)
    start = Layers(*(part + 1e-4 * rng.standard_normal(part.shape) for part in true.parts))
    found = fit_layers(start, answers, rng, huber=1e3, steps=5, damping=1e-3)
    assert np.sqrt(np.mean(answers.left_by(found) ** 2)) < 1.1


def test_a_row_that_is_badly_known_explains_no_other_kink() -> None:
    asked, frame, network, _ = in_a_frame((20, 6, 5, 1), 12)
    orthant = Orthant(asked, FirstLayer(frame, network.w, network.b, 0.0, 0.0))
    v = network.v[0] / np.linalg.norm(network.v[0])
    reading = read_incomplete_line(lambda t: (np.abs(t - 0.4)[:, None], np.full(len(t), 1e-6)), np.linspace(0, 1, 25))
    segment = Segment(np.ones(6), np.ones(6) + v, reading)
    (kink,) = reading.kinks
    c = -float(v @ segment.at(np.array([0.4]))[0])
    for off, size, known in ((0.0, 1e-4, True), (0.01, 1e-4, False), (0.01, 0.03, False)):
        orthant.rows = [SecondRow(v, c + off, size, np.full(6, size))]
        assert orthant._is_known(segment, kink) is known


@pytest.mark.slow
def test_a_first_layer_wider_than_the_input_is_named_after_one_attempt() -> None:
    target, _ = in_float32(planted((5, 16, 4, 1), 13, bias=0.5))
    result = rl.extract(rl.open_oracle(target, dim=5), rng=0)
    assert result.outcome.slug == "low-precision"
    wide = [failure for failure in result.evidence["failures"] if failure.startswith(WIDTH)]
    assert len(wide) == 1
    assert result.evidence["failures"][-1] is wide[0]


@pytest.mark.slow
def test_trained_digits_with_two_hidden_layers() -> None:
    target, true = in_float32(train_digits((32, 16), 0))
    result = rl.extract(rl.open_oracle(target, dim=64), rng=0)
    assert result.ok
    assert result.network is not None
    assert error(result.network, true) <= own_error(target, true)


def test_equations_of_a_span_save_products(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, d, k, h = np.random.default_rng(0), 40, 4, 6
    true = Layers(
        rng.standard_normal((h, d)) / np.sqrt(d), rng.standard_normal(h), rng.standard_normal((4, h)),
        rng.standard_normal(4), rng.standard_normal((1, 4)), np.zeros(1),
    )  # fmt: skip
    span = np.linalg.qr(rng.standard_normal((d, k)))[0].T
    inside = rng.standard_normal((4000, k)) @ span * np.sqrt(d / k)
    y = np.concatenate([inside, rng.standard_normal((1500, d))])
    answers = Weighed(y, true(y) + 1e-6 * rng.standard_normal((len(y), 1)), np.full((len(y), 1), 1e-6))
    start, products, back = replace(true, w=true.w + 1e-4 * rng.standard_normal((h, d))), [0], fits._Jacobian.back

    def counted(jacobian: fits._Jacobian, residual: FloatArray) -> FloatArray:
        products[0] += 1
        return back(jacobian, residual)

    monkeypatch.setattr(fits, "MOST_DENSE", 0)
    monkeypatch.setattr(fits._Jacobian, "back", counted)
    counts = []
    for known in (span, None):
        products[0] = 0
        found = fit_layers(start, answers, np.random.default_rng(1), huber=1e6, steps=4, damping=1e-7, span=known)
        counts.append(products[0])
        assert known is None or np.sqrt(np.mean(answers.left_by(found) ** 2)) < 1.1
    assert counts[0] < 0.7 * counts[1], counts


def test_a_first_layer_wider_than_the_input_is_recovered_from_several_outputs() -> None:
    widths = (10, 16, 6, 3)
    target, true = in_float32(planted(widths, 0, bias=0.5))
    # Not rng=0: there rounding, which differs between versions of numpy, decides whether two attempts are enough.
    result = rl.extract(rl.open_oracle(target, dim=10), rl.FewDigitsDeep(), rng=1, attempts=2)
    assert result.ok
    assert result.network is not None
    assert result.network.widths == widths
    assert error(result.network, true) <= own_error(target, true)
    assert result.queries < 200 * true.parameters


def test_outputs_name_the_kinks_of_every_neuron_of_a_second_layer() -> None:
    target, true = in_float32(planted((10, 16, 6, 3), 1, bias=0.5))
    asked = Asked(look_from(rl.open_oracle(target, dim=10), 1.0, rng := np.random.default_rng(1)), rng)
    small = SmallFrame(asked)
    layer, rows = find_wide_layers(asked, small, small.find())
    normals = true.weights[0] @ layer.frame.basis.T
    sizes = np.linalg.norm(normals, axis=1)
    cosines = layer.w @ (normals / sizes[:, None]).T
    which = np.abs(cosines).argmax(axis=1)
    assert sorted(which) == list(range(16))
    assert (cosines[np.arange(16), which] > 0.99).all()  # on the side where it is on
    weights = (true.weights[1] * sizes)[:, which]
    weights /= np.linalg.norm(weights, axis=1)[:, None]
    assert len(rows) == 6  # one of them is rarely on: few lines meet it
    near = [min(np.linalg.norm(sign * row.v - v) for v in weights for sign in (1, -1)) for row in rows]
    assert max(near) < 0.05

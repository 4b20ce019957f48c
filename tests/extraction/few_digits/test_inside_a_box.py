"""Few digits inside a box: float32 probabilities, whose digits are lost far out, and targets with a domain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from targets import in_float32, in_float32_probabilities

import reluctant as rl
from reluctant.domains import Domain
from reluctant.extraction.few_digits.growth import read_star
from reluctant.extraction.few_digits.scaled_view import look_inside
from reluctant.extraction.method import StageFailed
from reluctant.interface.reach import is_rounded_inside, readable_box
from reluctant.networks import ReLUNetwork
from reluctant.networks.onnx import write_onnx
from reluctant.testing import planted

DIM, NEURONS, CLASSES = 16, 8, 4


def small_biases(outputs: int, seed: int) -> ReLUNetwork:
    """Creases near the middle, as those of a classifier that was trained on inputs from 0 to 1."""
    return planted((DIM, NEURONS, outputs), seed, bias=0.1)


class Recorded(rl.Wrapper):
    """Keeps how far out was asked."""

    def __init__(self, inner):
        super().__init__(inner)
        self.farthest = 0.0

    def answer(self, rows):
        self.farthest = max(self.farthest, float(np.abs(rows).max()))
        return self.inner.answer(rows)


def test_float32_probabilities_give_the_classifier(seed: int) -> None:
    answer, network = in_float32_probabilities(small_biases(CLASSES, seed))
    oracle = rl.open_oracle(answer, dim=DIM, link="softmax")
    result = rl.extract(oracle, rng=seed)
    assert result.ok, result.evidence
    assert result.queries == oracle.queries - 1  # one row at opening
    assert result.queries < 15_000
    assert result.evidence["inside"].domain.is_box
    rows = np.random.default_rng(seed).uniform(0, 1, (500, DIM))
    expected = rl.open_oracle(network).query(rows)
    got = rl.open_oracle(result.network.before_link("softmax")).query(rows)
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-5)


def test_a_float32_target_with_a_domain_is_asked_inside_alone(seed: int) -> None:
    target, network = in_float32(small_biases(2, seed + 1))  # at 0, versions of numpy decide
    recorded = Recorded(rl.open_oracle(target, dim=DIM))
    result = rl.extract(rl.open_oracle(recorded, domain=(-0.7, 0.7)), rng=seed + 1)
    assert result.ok, result.evidence
    assert recorded.farthest <= 0.7
    rows = np.random.default_rng(seed).uniform(-0.7, 0.7, (500, DIM))
    true = network(rows)
    assert np.abs(result.network(rows) - true).max() < 2e-5 * true.std()


def test_a_domain_that_is_no_box_is_refused_by_name() -> None:
    oracle = rl.open_oracle(in_float32(small_biases(2, 0))[0], dim=DIM, domain=(0, np.inf))
    result = rl.extract(oracle, rng=0)
    assert result.outcome is rl.Outcome.LOW_PRECISION
    assert result.queries < 100


def test_lines_through_one_point_show_each_neuron_once(seed: int) -> None:
    oracle = rl.open_oracle(in_float32(small_biases(2, seed))[0], dim=DIM, domain=(-1, 1))
    rng = np.random.default_rng(seed)
    star = read_star(look_inside(oracle, rng), 6, rng)
    assert star.network.widths == (6, NEURONS, 2)
    on_lines = star.network(star.points.y)
    seen = np.abs(on_lines - star.points.f).max(axis=1)
    assert np.median(seen) < 1e-4 * star.points.f.std()


def test_digits_lost_towards_the_walls_are_no_noise_to_work_with() -> None:
    def fading(x):
        unit = 1e-7 * 10.0 ** (4 * np.abs(x).max(axis=1, keepdims=True))
        return np.round(x[:, :1] / unit) * unit

    oracle = rl.open_oracle(fading, dim=4, domain=(-1, 1))
    with pytest.raises(StageFailed, match=r"^noise: "):
        look_inside(oracle, np.random.default_rng(0))


def test_steps_are_told_from_digits(seed: int) -> None:
    rng, network = np.random.default_rng(seed), small_biases(CLASSES, seed)
    plain = rl.open_oracle(network)
    for names, steps in ((("softmax",), False), (("softmax", "decimals=4"), True)):
        oracle = rl.open_oracle(rl.defend(plain, *names), link="softmax", domain=(-0.1, 0.1))
        assert is_rounded_inside(oracle, rng) is steps
        assert oracle.queries == 24


@pytest.mark.parametrize("bias", [5.0, 6.0, 7.0])
def test_float32_next_to_1_is_a_number_format_and_no_rounding(bias: float, seed: int, tmp_path: Path) -> None:
    network = planted((4, 5, 1), seed)
    near_one = ReLUNetwork([network.weights[0], network.weights[1] / 2], [network.biases[0], np.array([bias])])
    write_onnx(near_one.before_link("sigmoid"), tmp_path / "near_one.onnx", "float32")
    result = rl.extract(rl.open_oracle(tmp_path / "near_one.onnx", link="sigmoid"), rng=seed)
    assert result.outcome is rl.Outcome.LOW_PRECISION
    assert result.diagnosis.fields["number_format"] == "float32"
    assert [remedy.options for remedy in result.diagnosis.remedies] == [{"precision": "float64"}]
    assert rl.extract(rl.open_oracle(tmp_path / "near_one.onnx", link="sigmoid", precision="float64"), rng=seed).ok


@pytest.mark.parametrize("kept", [1, 2])
def test_probabilities_that_are_not_told_are_out_of_reach_in_any_format(kept: int) -> None:
    answer, _ = in_float32_probabilities(small_biases(CLASSES, 0))
    result = rl.extract(rl.open_oracle(rl.defend(rl.open_oracle(answer, dim=DIM), f"top={kept}"), link="top-k"))
    assert result.outcome is rl.Outcome.OUT_OF_REACH


def test_a_readable_box_holds_no_faded_probability(seed: int) -> None:
    answer, _ = in_float32_probabilities(small_biases(CLASSES, seed))
    oracle = rl.open_oracle(answer, dim=DIM, link="softmax")
    before = oracle.queries
    box = readable_box(oracle, np.random.default_rng(seed))
    assert oracle.queries - before == 228
    assert box is not None
    corners = np.sign(np.random.default_rng(seed + 1).standard_normal((1000, DIM))) * box.high
    assert answer(corners).min() > np.finfo(np.float32).tiny
    assert answer(64 * corners).min() < np.finfo(np.float32).tiny


def test_rounding_to_float32_stays_inside() -> None:
    domain = Domain(-0.1, 0.3)  # both are between two numbers of float32
    rows = domain.in_single(np.array([[-0.1, 0.3, 0.2]]))
    assert domain.contains(rows)
    np.testing.assert_array_equal(rows, rows.astype(np.float32))
    np.testing.assert_allclose(rows, [[-0.1, 0.3, 0.2]], rtol=2e-7)


def test_rounding_that_exact_methods_could_verify_goes_to_few_digits_first(seed: int) -> None:
    network = planted((DIM, NEURONS, 2), seed)
    wide = ReLUNetwork([network.weights[0], 50 * network.weights[1]], [network.biases[0], 50 * network.biases[1]])
    result = rl.extract(rl.open_oracle(rl.defend(rl.open_oracle(wide), "decimals=6")), rng=seed)
    assert result.ok
    assert result.evidence["failures"] == []
    assert "precision" in result.evidence


def test_float16_is_refused_at_once(seed: int) -> None:
    result = rl.extract(rl.open_oracle(rl.defend(rl.open_oracle(planted((DIM, 4, 1), seed)), "float16")), rng=seed)
    assert result.outcome is rl.Outcome.LOW_PRECISION
    assert result.queries < 100


@pytest.mark.parametrize("names", [("softmax", "top=1"), ("labels",)])
def test_what_is_not_told_ends_soon_and_says_what_is_left(names: tuple[str, ...], seed: int) -> None:
    defended = rl.defend(rl.open_oracle(small_biases(CLASSES, seed)), *names)
    link = "top-k" if "softmax" in names else "identity"
    methods = [rl.learn] if "labels" in names else [rl.learn, rl.extract]  # `extract` has a method for labels
    for method in methods:
        result = method(rl.open_oracle(defended, link=link), rng=seed)
        assert not result.ok
        assert result.network is None
        assert result.queries < 400
    if "labels" in names:
        result = rl.extract(rl.open_oracle(defended, budget=5000), rng=seed)
        assert not result.ok
        assert result.network is None
    advised = method(rl.open_oracle(defended, link=link), rng=seed).diagnosis.remedies
    wanted = {"labels": True} if link == "identity" else {"labels": True, "link": "identity"}
    assert wanted in [remedy.options for remedy in advised]

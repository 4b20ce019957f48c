"""FewDigitsDeep inside a box: float32 probabilities of two hidden layers, and targets with a domain."""

from __future__ import annotations

import numpy as np
import pytest
from targets import in_float32, in_float32_probabilities

import reluctant as rl
from reluctant.extraction.deep_few_digits.first_hyperplanes import find_first_layer
from reluctant.extraction.deep_few_digits.kink_rows import rows_of_kinks
from reluctant.extraction.deep_few_digits.orthant import Orthant
from reluctant.extraction.few_digits.answer_store import Asked, steps_both_ways
from reluctant.extraction.few_digits.growth import LAYERS, MOST_NEURONS, read_star
from reluctant.extraction.few_digits.scaled_view import CUBE, look_from, look_inside
from reluctant.extraction.few_digits.shared_hyperplanes import SmallFrame
from reluctant.testing import planted

WIDTHS = (12, 6, 5, 3)


def test_float32_probabilities_of_two_hidden_layers(seed: int) -> None:
    answer, true = in_float32_probabilities(planted(WIDTHS, seed, bias=0.5))
    result = rl.extract(rl.open_oracle(answer, dim=WIDTHS[0], link="softmax"), rng=seed, attempts=6)
    assert result.ok, result.evidence
    assert result.network is not None
    assert result.network.depth == len(WIDTHS) - 1
    assert result.evidence["failures"][0].startswith(LAYERS)
    assert result.evidence["inside"].domain.is_box
    rows = np.random.default_rng(seed).standard_normal((2000, WIDTHS[0])).astype(np.float32).astype(np.float64)
    right = rl.open_oracle(true).query(rows)
    own = np.abs(np.asarray(answer(rows)) - right).max()
    found = rl.open_oracle(result.network.before_link("softmax")).query(rows)
    assert np.abs(found - right).max() <= 2 * own


def test_two_hidden_layers_with_a_domain_are_asked_inside_alone() -> None:
    target, _ = in_float32(planted(WIDTHS, 3, bias=0.5))
    farthest = 0.0

    def answer(rows):
        nonlocal farthest
        farthest = max(farthest, float(np.abs(rows).max()))
        return target(rows)

    result = rl.extract(rl.open_oracle(answer, dim=WIDTHS[0], domain=(-4.0, 4.0)), rl.FewDigitsDeep(), rng=0)
    assert result.ok, result.evidence
    assert farthest <= 4.0


@pytest.mark.parametrize(("widths", "shared"), [((20, 10, 3), True), ((20, 10, 10, 3), False)])
def test_lines_of_a_star_share_the_bends_of_one_hidden_layer(widths: tuple[int, ...], shared: bool) -> None:
    answer, _ = in_float32_probabilities(planted(widths, 1, bias=0.5))
    oracle = rl.open_oracle(answer, dim=widths[0], link="softmax", domain=(-4.0, 4.0))
    rng = np.random.default_rng(0)
    star = read_star(look_inside(oracle, rng), 6, rng)
    assert star.shows_deeper is not shared


def test_lines_that_miss_most_creases_of_one_hidden_layer_show_no_second() -> None:
    answer, _ = in_float32_probabilities(planted((20, 24, 3), 1, bias=1.0))
    oracle = rl.open_oracle(answer, dim=20, link="softmax", domain=(-0.5, 0.5))
    rng = np.random.default_rng(0)
    star = read_star(look_inside(oracle, rng), 6, rng)
    assert star.neurons_a_kink > MOST_NEURONS
    assert not star.shows_deeper


def test_kinks_of_lines_tell_a_row_that_the_orthant_lacks() -> None:
    target, _ = in_float32(planted((20, 10, 6, 2), 4, bias=0.5))
    rng = np.random.default_rng(0)
    asked = Asked(look_from(rl.open_oracle(target, dim=20), 1.0, rng), rng)
    small = SmallFrame(asked)
    layer, gradients = find_first_layer(asked, small, small.find())
    rows = Orthant(asked, layer).search(12, most=100)
    assert len(rows) == 6
    lacking = rows[2]
    found = rows_of_kinks(asked, small, [(layer.w, layer.b)], gradients, [row for row in rows if row is not lacking])
    best = max(found, key=lambda row: abs(row.v @ lacking.v))
    np.testing.assert_allclose(best.v * np.sign(best.v @ lacking.v), lacking.v, atol=0.01)


def test_steps_end_before_the_walls_of_a_box() -> None:
    answer, _ = in_float32(planted((4, 8, 2), 1, bias=0.5))
    view = look_inside(rl.open_oracle(answer, dim=4, domain=(-1.0, 1.0)), np.random.default_rng(0))
    points, ways = np.array([[0.9, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]), np.eye(4)
    steps = steps_both_ways(view, points, ways, np.full((2, 1), 0.5))
    assert steps[0, 0] < 0.1
    assert (steps[1] == 0.5).all()
    assert CUBE.contains(points[:, None] + steps[:, :, None] * ways)

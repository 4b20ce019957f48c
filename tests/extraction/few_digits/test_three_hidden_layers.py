"""FewDigitsDeep: three hidden layers from float32, right to the target's own error, or refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from targets import error, in_float32, own_error

import reluctant as rl
from reluctant.extraction.deep_few_digits.first_hyperplanes import FirstLayer
from reluctant.extraction.deep_few_digits.frame_fit import ShortLines
from reluctant.extraction.deep_few_digits.layers_fit import Layers
from reluctant.extraction.deep_few_digits.orthant import Orthant
from reluctant.extraction.deep_few_digits.third_layer import upper_layers
from reluctant.extraction.few_digits.answer_store import Asked
from reluctant.extraction.few_digits.incomplete_lines import read_incomplete_line
from reluctant.extraction.few_digits.scaled_view import look_from
from reluctant.geometry.lines import whole_space
from reluctant.numerics import FloatArray
from reluctant.testing import planted

WIDTHS = (20, 15, 10, 5, 1)


@pytest.mark.parametrize(("widths", "seed", "most"), [(WIDTHS, 60006, 60), ((9, 8, 7, 5, 3), 805, 100)])
def test_three_hidden_layers_are_recovered_to_their_own_error(widths: tuple[int, ...], seed: int, most: int) -> None:
    target, true = in_float32(planted(widths, seed, bias=0.5))
    result = rl.extract(rl.open_oracle(target, dim=widths[0]), rl.FewDigitsDeep(), rng=seed % 100)
    assert result.ok
    assert result.network is not None
    assert result.network.widths == widths
    assert error(result.network, true) <= own_error(target, true)
    assert result.evidence["precision"].ok
    assert result.queries < most * true.parameters


def test_a_neuron_that_is_off_at_few_inputs_is_not_taken_for_one_that_is_always_on() -> None:
    """Off at 0.3 % of inputs, it has no crease where creases are looked for, if a search comes so far."""
    target, _ = in_float32(planted((12, 9, 6, 3, 1), 702, bias=0.5))
    runs = [rl.extract(rl.open_oracle(target, dim=12), rl.FewDigitsDeep(), rng=rng, attempts=1) for rng in (2, 4)]
    assert not any(run.ok for run in runs)
    assert any("a neuron has no crease" in run.evidence["failures"][-1] for run in runs)


def test_kinks_where_the_first_layer_is_on_tell_the_layers_above() -> None:
    target, true = in_float32(planted(WIDTHS, 60006, bias=0.5))
    asked = Asked(look_from(rl.open_oracle(target, dim=20), 1.0, rng := np.random.default_rng(6)), rng)
    orthant = Orthant(asked, FirstLayer(whole_space(20), true.weights[0], true.biases[0], 0.0, 0.0))
    rows = orthant.search(quiet=12, most=130)
    assert orthant.bends(rows)
    (v, c), neurons = upper_layers(orthant)
    sizes = np.linalg.norm(true.weights[1], axis=1)
    cosines = v @ (true.weights[1] / sizes[:, None]).T
    which = cosines.argmax(axis=1)
    assert sorted(which) == list(range(10))
    assert cosines[np.arange(10), which].min() > 0.9999  # on the side where it is on
    np.testing.assert_allclose(c, (true.biases[1] / sizes)[which], atol=1e-2)
    third = (true.weights[2] * sizes)[:, which]
    third /= np.linalg.norm(third, axis=1)[:, None]
    found = {int(np.abs(third @ row.v).argmax()) for row in neurons.rows() if np.abs(third @ row.v).max() > 0.999}
    assert len(found) >= 4


def test_two_hidden_layers_do_not_bend_where_the_first_is_on() -> None:
    target, true = in_float32(planted((20, 10, 10, 1), 5, bias=0.5))
    asked = Asked(look_from(rl.open_oracle(target, dim=20), 1.0, rng := np.random.default_rng(0)), rng)
    orthant = Orthant(asked, FirstLayer(whole_space(20), true.weights[0], true.biases[0], 0.0, 0.0))
    assert not orthant.bends(orthant.search(quiet=12, most=120))


def test_a_line_says_nothing_of_creases_where_answers_are_constant() -> None:
    def ask(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.maximum(t - 1.0, 0)[:, None], np.full(len(t), 1e-6)

    reading = read_incomplete_line(ask, np.linspace(-4, 4, 60))
    assert [reading.shows(t, 1e-3) for t in (-2.0, 1.0, 2.5)] == [None, True, False]


def test_lines_on_which_answers_are_constant_show_no_noise() -> None:
    network = Layers.of_network(planted((4, 3, 2, 2, 1), 1, bias=0.5))
    centres, sd = np.random.default_rng(0).standard_normal((9, 4)), np.full((9, 1), 1e-7)
    sd[:6] = 0
    factor = ShortLines(centres, sd).noise(network).factor
    assert factor is not None
    assert factor > 0
    assert ShortLines(centres, 0 * sd).noise(network).factor is None

"""The first layer of three: weights to the last digits, numbers of rows, and refusals with a number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from three_layers import errors, opened

from reluctant.extraction.crease_depth import LineInPlane, look_along
from reluctant.extraction.depth_three import hyperplanes
from reluctant.extraction.depth_three.first_layer import FirstLayer, find_first_layer
from reluctant.extraction.depth_three.hyperplanes import LARGEST_MARGIN, find_hyperplanes, orient_hyperplanes
from reluctant.extraction.method import StageFailed
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted

# widths, most rows of the two stages that ask
SHAPES = [
    ((10, 10, 10, 1), 900, 600),
    ((20, 10, 20, 1), 1300, 750),
    ((20, 10, 35, 1), 1500, 800),
    ((10, 5, 20, 1), 800, 350),
    ((30, 20, 8, 1), 2100, 1500),
    ((80, 40, 20, 1), 6000, 5000),
    ((784, 32, 16, 1), 4500, 29500),
    ((64, 32, 16, 10), 4800, 3300),
]


@pytest.mark.parametrize(("widths", "hyperplane_rows", "refine_rows"), SHAPES)
def test_first_layer_is_recovered(widths: tuple[int, ...], hyperplane_rows: int, refine_rows: int, seed: int) -> None:
    true = planted(widths, 500 + seed, bias=0.3)
    oracle, noise, rng = opened(true, seed)
    found = find_first_layer(oracle, noise, rng)
    weight_error, bias_error = errors(found, true)
    assert weight_error <= 1e-12
    assert bias_error <= 2e-11
    assert found.sign_margins.max() < LARGEST_MARGIN / 10
    assert found.row_errors.max() < 1e-9
    assert found.condition == pytest.approx(np.linalg.cond(found.weights))
    rows = {stage: spent.asked for stage, spent in oracle.ledger.stages.items()}
    assert rows["hyperplanes"] <= hyperplane_rows
    assert rows["refine"] <= refine_rows
    assert sum(rows.values()) == oracle.queries


@pytest.mark.parametrize("bias", [0.0, 1.0, 10.0, 100.0])
def test_biases_of_any_size(bias: float, seed: int) -> None:
    true = planted((20, 10, 20, 1), 600 + seed, bias=bias)
    weight_error, bias_error = errors(find_first_layer(*opened(true, seed)), true)
    assert weight_error <= 5e-12
    assert bias_error <= 1e-10


def test_few_neurons_above_hide_some_below(seed: int) -> None:
    true = planted((20, 10, 3, 1), 100 + seed, bias=0.3)
    weight_error, _ = errors(find_first_layer(*opened(true, seed)), true)
    assert weight_error <= 1e-10


def test_several_outputs_see_every_neuron_better(seed: int) -> None:
    true = planted((20, 10, 6, 4), 40 + seed, bias=0.3)
    weight_error, bias_error = errors(find_first_layer(*opened(true, seed)), true)
    assert weight_error <= 1e-13
    assert bias_error <= 1e-12


def test_several_outputs_save_rows(seed: int) -> None:
    """Groups of neurons are measured together where there are outputs to tell them apart."""
    widths, rows = (300, 12, 14, 6), {}
    network = planted(widths, 80 + seed, bias=0.3)
    first = ReLUNetwork([*network.weights[:2], network.weights[2][:1]], [*network.biases[:2], network.biases[2][:1]])
    for true in (network, first):
        oracle, noise, rng = opened(true, seed)
        weight_error, bias_error = errors(find_first_layer(oracle, noise, rng), true)
        assert weight_error <= 1e-12
        assert bias_error <= 2e-11
        rows[true.outputs] = oracle.ledger.stages["refine"].asked
    assert rows[6] < 0.6 * rows[1]


def test_inputs_that_nothing_looks_at(seed: int) -> None:
    true = planted((12, 6, 10, 1), seed, bias=0.3)
    blind = ReLUNetwork([np.hstack([true.weights[0], np.zeros((6, 8))]), *true.weights[1:]], true.biases)
    weight_error, _ = errors(find_first_layer(*opened(blind, seed)), blind)
    assert weight_error <= 1e-12


@pytest.mark.parametrize("widths", [(5, 8, 10, 1), (10, 11, 10, 1), (10, 15, 15, 1), (20, 40, 20, 1)])
def test_more_neurons_than_inputs_are_refused(widths: tuple[int, ...], seed: int) -> None:
    with pytest.raises(StageFailed) as failure:
        find_first_layer(*opened(planted(widths, 10 + seed, bias=0.3), seed))
    assert failure.value.stage in ("hyperplanes", "signs")
    assert failure.value.number > failure.value.limit


def test_dependent_weights_are_refused() -> None:
    true = planted((10, 6, 12, 1), 0, bias=0.3)
    w = true.weights[0].copy()
    w[5] = w[3] + w[4]
    with pytest.raises(StageFailed) as failure:
        find_first_layer(*opened(ReLUNetwork([w, *true.weights[1:]], true.biases), 0))
    assert failure.value.stage in ("hyperplanes", "signs")


def test_a_hyperplane_that_is_never_found_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps orthogonal to the others still change the answers, so the stage says how many it has and needs."""
    true = planted((20, 10, 12, 1), 0, bias=0.3)
    w, b = true.weights[0][0], true.biases[0][0]

    def blind(*args: Any, **most: int) -> LineInPlane:
        line = look_along(*args, **most)
        values = line.plane.points(np.column_stack([line.t, np.zeros(len(line.t))])) @ w + b
        other = np.abs(values) > 1e-6
        slope = np.where(np.append(other, True)[:, None, None], line.slope, np.nan)
        votes = {name: getattr(line, name) & other for name in ("sure", "likely", "possible")}
        return replace(line, slope=slope, **votes)

    monkeypatch.setattr(hyperplanes, "look_along", blind)
    with pytest.raises(StageFailed) as failure:
        find_first_layer(*opened(true, 0))
    assert (failure.value.stage, failure.value.number, failure.value.limit) == ("hyperplanes", 9, 10)


def test_affine_target_has_no_first_layer() -> None:
    with pytest.raises(StageFailed) as failure:
        find_first_layer(*opened(planted((6, 2), 0), 0))
    assert (failure.value.stage, failure.value.number) == ("hyperplanes", 0)


def test_false_hyperplanes_are_refused_by_their_margin() -> None:
    """In a basis that is not the neurons' weights gradients have parts on both sides of a hyperplane."""
    oracle, noise, rng = opened(planted((12, 6, 12, 1), 3, bias=0.3), 3)
    planes = find_hyperplanes(oracle, noise, rng)
    tilted = planes.normals + 0.3 * np.roll(planes.normals, 1, axis=0)
    tilted /= np.linalg.norm(tilted, axis=1, keepdims=True)
    with pytest.raises(StageFailed) as failure:
        orient_hyperplanes(replace(planes, normals=tilted))
    assert failure.value.number > failure.value.limit == LARGEST_MARGIN


def test_first_layer_counts_its_neurons() -> None:
    assert len(FirstLayer(np.eye(3), np.zeros(3), 1.0, np.zeros(3), np.zeros(3))) == 3

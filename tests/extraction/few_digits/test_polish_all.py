"""The last fit: the same network with the answers of the extension and without them, products that belong together."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from sweeps import sweep
from targets import error, in_float32, own_error

import reluctant as rl
from reluctant.extraction.few_digits.arrow_equations import Layout
from reluctant.extraction.few_digits.joint_fit import (
    JointFit,
    Linearised,
    ask_anywhere,
    polish_all,
    turned_fit,
)
from reluctant.extraction.few_digits.noisy_extension import extend
from reluctant.extraction.few_digits.scaled_view import look_from
from reluctant.testing import planted

WIDTHS = (24, 10)


@cache
def start(outputs: int, seed: int) -> tuple[JointFit, rl.ReLUNetwork, float]:
    target, true = in_float32(planted((*WIDTHS, outputs), 100 + seed, bias=0.5))
    rng = np.random.default_rng(seed)
    view = look_from(rl.open_oracle(target, dim=true.dim), 1.0, rng)
    view, known = rl.FewDigits()._subspace(view, rng)
    extension = extend(view, known.framed, rng)
    random = ask_anywhere(view, known.framed.frame, extension.directions, np.ones(4 * true.parameters), rng)
    fit = JointFit(known.framed.network, extension, known.points, random)
    rescaled = rl.ReLUNetwork(
        [true.weights[0], true.weights[1] / view.units[:, None]], [true.biases[0], true.biases[1] / view.units]
    )
    return fit, rescaled, own_error(lambda x: target(x) / view.units, rescaled)


@pytest.mark.parametrize("outputs", sweep([1, 3], fast=[3]))
def test_random_inputs_alone_reach_the_targets_own_error(outputs: int, seed: int) -> None:
    fit, true, own = start(outputs, seed)
    fit = turned_fit(fit)
    alone, errors = polish_all(replace(fit, extension=fit.extension.without_answers()))
    assert alone.chi < 0.8 * fit.chi
    assert errors.shape == (WIDTHS[1],)
    assert error(alone.network, true) <= 1.5 * own
    together, _ = polish_all(fit)
    assert error(together.network, true) <= 1.5 * own


@pytest.mark.parametrize(
    ("outputs", "affine"), sweep(product([1, 3], [False, True]), fast=[(3, False), (3, True)], arguments=2)
)
def test_products_with_the_jacobian_are_those_of_small_steps(outputs: int, affine: bool, seed: int) -> None:
    fit, *_ = start(outputs, seed)
    fit = fit if affine else turned_fit(fit)
    rng, layout = np.random.default_rng(seed), Layout.of(fit.core)
    jacobian = Linearised(fit.anywhere, fit.core, fit.extension)
    residual = rng.standard_normal(fit.anywhere.f.shape)
    gradient = jacobian.back(residual)
    step = tuple(rng.standard_normal(part.shape) for part in gradient)
    forward = jacobian.forward((step[0], step[1]))
    both_ways = float(gradient[0] @ step[0] + np.vdot(gradient[1], step[1]))
    assert float(np.vdot(residual, forward)) == pytest.approx(both_ways, rel=1e-4)
    small = 1e-7
    core = layout.moved(fit.core, small * step[0])
    own = small * step[1]
    skip = fit.extension.skip + own[:, layout.h :] if layout.affine else fit.extension.skip
    moved = replace(fit.extension, weights=fit.extension.weights + own[:, : layout.h], skip=skip)
    change = fit.anywhere.residual(fit.core, fit.extension) - fit.anywhere.residual(core, moved)
    assert np.median(np.abs(change / small - forward)) < 1e-3 * np.abs(forward).max()


def test_many_parameters_are_polished_without_the_answers_of_steps() -> None:
    target, true = in_float32(planted((20, 8, 1), 7, bias=0.5))
    result = rl.extract(rl.open_oracle(target, dim=20), rl.FewDigits(many_parameters=100), rng=3)
    assert result.ok
    assert result.network is not None
    assert error(result.network, true) <= 2 * own_error(target, true)


def test_far_inputs_weigh_no_more_than_roundings_there_allow() -> None:
    fit, *_ = start(3, 0)
    network, answers = turned_fit(fit).network, fit.anywhere
    far = np.arange(len(answers.rows)) % 2 == 0
    rows = np.where(far[:, None], 100 * answers.rows, answers.rows)  # as noisy as typical ones, by their weights
    carried = replace(answers, rows=rows).carried(network, far)
    np.testing.assert_array_equal(carried.weight[~far], answers.weight[~far])
    assert np.median(carried.weight[far] / answers.weight[far]) < 0.05

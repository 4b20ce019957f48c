"""Every way in which depth three is known to fail, provoked: the stage, its number, and never a wrong network.

A hyperplane that is missing and one that is false by itself are provoked in test_first_layer.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sweeps import sweep
from three_layers import opened

import reluctant as rl
from reluctant.extraction.bounded import method
from reluctant.extraction.bounded.anchor import AnchorModel
from reluctant.extraction.depth_three import first_layer, hyperplanes
from reluctant.extraction.depth_three import method as depth_three
from reluctant.extraction.depth_three.first_layer import WORST_ROW, FirstLayer, find_first_layer
from reluctant.extraction.depth_three.hyperplanes import (
    DEPENDENT,
    LARGEST_MARGIN,
    FramedHyperplanes,
    find_hyperplanes,
    sign_margins,
)
from reluctant.extraction.method import StageFailed
from reluctant.geometry import scan_lines
from reluctant.networks import ReLUNetwork
from reluctant.testing import largest_true_error, planted
from reluctant.testing.assortment import specimen

SHAPE = (20, 10, 12, 1)
REFUSALS = {rl.Outcome.PARTIAL, rl.Outcome.UNVERIFIED, rl.Outcome.LOW_PRECISION, rl.Outcome.TOO_NOISY}
TRIES = 3  # of a stage before it gives up


def target(seed: int, widths: tuple[int, ...] = SHAPE) -> ReLUNetwork:
    return planted(widths, 700 + seed, bias=0.3)


def failing(true: ReLUNetwork, seed: int = 0) -> rl.Result:
    """One attempt that must not succeed."""
    result = rl.extract(rl.open_oracle(true), rl.DepthThree(), rng=seed, attempts=1)
    assert not result.ok
    assert result.queries > 0
    return result


def test_more_neurons_than_inputs(seed: int) -> None:
    result = failing(target(seed, (10, 15, 15, 1)), seed)
    assert result.outcome is rl.Outcome.PARTIAL
    assert result.evidence["failures"][0].split(":")[0] in ("hyperplanes", "signs")
    assert "limit" in result.evidence["failures"][0]


def test_false_hyperplane_is_dropped_by_the_margin_of_the_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One hyperplane in the place of another: the signs' margin is large, it goes, and the true one is found."""
    margins, true_margins = list[float](), sign_margins
    once = [True]

    def spoiled(planes: FramedHyperplanes) -> np.ndarray:
        if once and len(planes) == 10:
            once.clear()
            normals = planes.normals.copy()
            normals[0] = normals[0] + 0.5 * normals[1]
            normals[0] /= np.linalg.norm(normals[0])
            planes = replace(planes, normals=normals)
        margins.append(float(true_margins(planes).max()))
        return true_margins(planes)

    monkeypatch.setattr(hyperplanes, "sign_margins", spoiled)
    oracle, noise, rng = opened(target(0), 0)
    found = find_hyperplanes(oracle, noise, rng)
    assert len(found) == 10
    assert margins[0] > 0.01 > LARGEST_MARGIN > margins[-1]


def test_phantom_dimension_is_seen_by_the_gap_of_singular_values() -> None:
    """A combination of two hyperplanes adds no dimension; it is nowhere to be seen far away, and is dropped."""
    oracle, noise, rng = opened(target(1), 1)
    found = find_hyperplanes(oracle, noise, rng)
    phantom = found.normals[0] + found.normals[1]
    phantom /= np.linalg.norm(phantom)
    one = found.chosen(np.arange(len(found)) == 0)
    more = found.and_also(replace(one, normals=phantom[None], offsets=-(phantom * one.on).sum(axis=1)))
    assert found.condition < 1e3 < 1 / DEPENDENT < more.condition
    kept, _ = hyperplanes._HyperplaneSearch(oracle, noise, rng).checked(more)
    np.testing.assert_array_equal(kept.normals, found.normals)


def test_dependent_rows_have_no_gap() -> None:
    """Three true rows in a plane: every one is seen everywhere, and the singular value says so."""
    true = target(2)
    w = true.weights[0].copy()
    w[5] = w[3] + w[4]
    with pytest.raises(StageFailed) as failure:
        find_first_layer(*opened(ReLUNetwork([w, *true.weights[1:]], true.biases), 0))
    assert failure.value.stage == "hyperplanes"
    assert failure.value.number < failure.value.limit == DEPENDENT


def test_row_that_is_hardly_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    true_rows = first_layer.measure_rows

    def blurred(*args: Any, **kwargs: Any) -> tuple[np.ndarray, np.ndarray]:
        rows, errors = true_rows(*args, **kwargs)
        return rows, errors + 1e-6

    monkeypatch.setattr(first_layer, "measure_rows", blurred)
    with pytest.raises(StageFailed, match="hardly seen") as failure:
        find_first_layer(*opened(target(3), 0))
    assert failure.value.stage == "refine"
    assert failure.value.number > failure.value.limit == WORST_ROW


def test_merged_creases_on_the_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stretch of the line that its creases do not explain stays open; after some tries the stage says how many."""
    tried = list[int]()

    def merged(*args: Any, **kwargs: Any) -> Any:
        scan = scan_lines(*args, **kwargs)
        tried.append(len(scan.creases.t))
        return replace(scan, open=np.ones_like(scan.open))

    monkeypatch.setattr(method, "scan_lines", merged)
    result = failing(target(4))
    assert len(tried) == rl.DepthThree().starts * TRIES  # above each of the first layers that were found
    assert result.outcome is rl.Outcome.PARTIAL
    (end,) = result.evidence["attempts"].entries
    assert (end.stage, end.number, end.limit) == ("first line", 1, 0)
    assert result.network is not None
    assert result.network.widths[1] == 10  # the first layer is there


@pytest.mark.parametrize("apart", sweep([1e-5, 1e-7, 1e-9], fast=[1e-7]))
def test_second_layer_neurons_close_to_each_other_are_right_or_refused(apart: float, seed: int) -> None:
    true = target(seed)
    v, c = true.weights[1].copy(), true.biases[1].copy()
    v[1], c[1] = v[0] * (1 + apart), c[0] + apart
    near = ReLUNetwork([true.weights[0], v, true.weights[2]], [true.biases[0], c, true.biases[2]])
    result = rl.extract(rl.open_oracle(near), rl.DepthThree(), rng=seed, attempts=2)
    if result.ok:
        assert result.network is not None
        assert largest_true_error(result.network, near) < 1e-6


def test_incomplete_top(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neurons that no ray shows leave differences: the number of points that have one."""

    def nothing_new(inside: Any, known: AnchorModel, ray: Any, gate: float) -> AnchorModel:
        return known

    monkeypatch.setattr(method, "neurons_on_a_ray", nothing_new)
    result = failing(target(5))
    assert result.outcome is rl.Outcome.PARTIAL
    end = result.evidence["attempts"].entries[0]
    assert (end.stage, end.limit) == ("exploration", 0)
    assert end.number > 0


def test_wrong_first_layer_makes_the_top_bend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hidden values that are not the target's: the layers above are no longer one layer."""
    true_layer = depth_three.find_first_layer

    def tilted(*args: Any) -> FirstLayer:
        layer = true_layer(*args)
        weights = layer.weights + 0.2 * np.roll(layer.weights, 1, axis=0)
        return replace(layer, weights=weights / np.linalg.norm(weights, axis=1, keepdims=True))

    monkeypatch.setattr(depth_three, "find_first_layer", tilted)
    result = failing(target(6))
    assert result.evidence["attempts"].entries[0].stage in ("straight", "exploration")


def test_anything_else_is_seen_in_input_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that is a little off passes every stage, and not the verification."""
    true_fit, off = depth_three.fit_above, 1e-5

    def spoiled(*args: Any) -> ReLUNetwork:
        network = true_fit(*args)
        v = network.weights[1].copy()
        v[0] *= 1 + off
        return ReLUNetwork([network.weights[0], v, network.weights[2]], network.biases)

    monkeypatch.setattr(depth_three, "fit_above", spoiled)
    result = failing(target(7))
    verification = result.evidence["verification"]
    assert result.outcome is rl.Outcome.UNVERIFIED
    assert verification.max_error > verification.tol
    assert result.evidence["failures"][0].startswith("verification: ")
    assert result.network is not None
    assert result.network.widths == SHAPE


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_low_precision_is_named_before_anything_is_spent(dtype: str) -> None:
    true = target(8)
    oracle = rl.open_oracle(lambda rows: true(rows).astype(dtype), dim=20)
    result = rl.extract(oracle, rl.DepthThree(), rng=0)
    assert result.outcome is rl.Outcome.LOW_PRECISION
    assert set(result.rows) == {"health"}


@pytest.mark.parametrize("sd", sweep([1e-4, 1e-8, 1e-10, 1e-12], fast=[1e-4, 1e-10]))
def test_noise_is_refused_or_survived(sd: float) -> None:
    true, rng = target(9), np.random.default_rng(0)
    oracle = rl.open_oracle(lambda rows: true(rows) + sd * rng.standard_normal((len(rows), 1)), dim=20)
    result = rl.extract(oracle, rl.DepthThree(), rng=0, attempts=1)
    if result.ok:
        assert result.network is not None
        assert largest_true_error(result.network, true) < 1e-6
    else:
        assert result.outcome in REFUSALS
        assert result.outcome is not rl.Outcome.PARTIAL or "limit" in result.evidence["failures"][0]


def test_a_stage_that_had_hard_luck_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    true_stage, tries = depth_three.find_first_layer, list[int]()

    def unlucky(*args: Any) -> FirstLayer:
        tries.append(1)
        if len(tries) < TRIES:
            raise StageFailed("hyperplanes", "hard luck", number=1, limit=0)
        return true_stage(*args)

    monkeypatch.setattr(depth_three, "find_first_layer", unlucky)
    assert rl.extract(rl.open_oracle(target(0)), rl.DepthThree(), rng=0, attempts=1).ok
    assert len(tries) == TRIES


def test_first_layer_wider_than_the_inputs_is_given_up_before_long() -> None:
    drawn = specimen(7_400_665)  # 15 inputs, 21 neurons: no line shows that there are too many
    result = rl.extract(rl.open_oracle(drawn.target(), dim=15), rl.DepthThree(), rng=665, attempts=1)
    assert result.outcome is rl.Outcome.PARTIAL
    assert result.queries < 40_000

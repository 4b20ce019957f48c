"""Lines that cross a small frame: the neurons they share, those that few of them show, two layers refused."""

from __future__ import annotations

import numpy as np
import pytest
from targets import in_float32

import reluctant as rl
from reluctant.extraction.few_digits import method
from reluctant.extraction.few_digits.answer_store import Asked
from reluctant.extraction.few_digits.noisy_line import OnLine, read_line
from reluctant.extraction.few_digits.scaled_view import look_from
from reluctant.extraction.few_digits.shared_hyperplanes import SmallFrame, cross_subspace
from reluctant.extraction.method import StageFailed
from reluctant.testing import planted


def a_line(widths: tuple[int, ...], seed: int) -> tuple[OnLine, rl.ReLUNetwork, np.random.Generator]:
    target, true = in_float32(planted(widths, 300 + seed, bias=0.5))
    rng = np.random.default_rng(seed)
    return read_line(look_from(rl.open_oracle(target, dim=widths[0]), 1.0, rng), rng), true, rng


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_network_in_the_frame_is_that_of_the_target(outputs: int, seed: int) -> None:
    line, true, rng = a_line((30, 24, outputs), seed)
    known = cross_subspace(line, rng)
    assert known.framed.neurons == 24
    y = rng.standard_normal((500, 4))
    right = true(known.framed.frame.points(y))
    units = line.view.units
    assert np.abs(known.framed.network(y) * units - right).max() < 1e-5 * right.std()


def test_the_frame_passes_through_the_origin_so_that_random_inputs_have_no_mean_off_it() -> None:
    line, _, rng = a_line((30, 8, 1), 0)
    assert not cross_subspace(line, rng).framed.frame.origin.any()


def test_two_hidden_layers_are_refused_after_few_lines() -> None:
    line, _, rng = a_line((20, 12, 12, 1), 1)
    before = line.view.oracle.queries
    with pytest.raises(StageFailed, match=r"do not share|not explained"):
        cross_subspace(line, rng)
    assert line.view.oracle.queries - before < 300 * 24


def test_every_line_of_a_crowded_frame_begins_with_more_samples() -> None:
    line, *_ = a_line((30, 8, 1), 0)
    rng = np.random.default_rng(0)
    assert SmallFrame(Asked(line.view, rng), 128).samples > SmallFrame(Asked(line.view, rng)).samples


def test_a_line_that_gets_stuck_is_followed_by_lines_that_cross(monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck(*_: object) -> None:
        raise StageFailed("growth", "points off the line are not explained", number=2, limit=1)

    monkeypatch.setattr(method, "grow_subspace", stuck)
    target, true = in_float32(planted((16, 8, 1), 5, bias=0.5))
    result = rl.extract(rl.open_oracle(target, dim=16), rl.FewDigits(), rng=1)
    assert result.ok
    assert result.network is not None
    assert result.network.widths == true.widths

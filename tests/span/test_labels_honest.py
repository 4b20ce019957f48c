"""The span from labels is never wrong with `ok`: thin float32 networks, labels that flip, rare classes, boxes."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.testing import in_float32, planted


def outside(span: rl.Span, rows: np.ndarray) -> float:
    """Largest sine of a found direction to the true span."""
    return float(np.linalg.norm(rl.Subspace.spanned_by(rows).reject(span.basis), 2)) if span.rank else 0.0


@pytest.mark.parametrize("case", [16, 28, 45, 110])
def test_flicker_of_float32_makes_up_no_direction(case):
    network = planted((20, 5, 2, 2), case, bias=[0, 0.3][case % 2])
    span = rl.recover_span(rl.open_oracle(in_float32(network), dim=20), labels=True, rng=case)
    assert span.rank <= 5
    assert not span.ok or outside(span, network.weights[0]) < 1e-2


def test_the_resolution_does_not_depend_on_the_seed():
    network = planted((23, 7, 2, 2), 71, bias=0.3)
    oracles = [rl.open_oracle(in_float32(network), dim=23) for _ in range(4)]
    spans = [rl.recover_span(oracle, labels=True, rng=seed) for seed, oracle in enumerate(oracles)]
    found = [span.evidence["resolution"] for span in spans]
    assert max(found) < 100 * min(found)


@pytest.mark.parametrize("share", [0.1, 0.02, 0.01, 1e-3])
@pytest.mark.parametrize(("widths", "case"), [((20, 5, 6, 2), 1), ((3, 2, 6, 2), 5)])
def test_flipped_labels_are_named(share, widths, case, seed):
    network, rng = planted(widths, case), np.random.default_rng(seed)

    def flipped(x):
        label = network(x).argmax(axis=1)
        return np.where(rng.random(len(x)) < share, 1 - label, label)

    span = rl.recover_span(rl.open_oracle(flipped, dim=widths[0]), labels=True, rng=seed)
    if span.ok:
        assert share < 0.01
        assert span.rank == widths[1]
        assert outside(span, network.weights[0]) < 1e-6
    else:
        assert span.outcome is rl.Outcome.TOO_NOISY or share < 0.01
        assert span.outcome is rl.Outcome.SPAN_PARTIAL or span.evidence["changed labels"] > 0


@pytest.mark.parametrize("sd", [0.003, 0.03])
def test_labels_that_flicker_are_named(sd, seed):
    network, rng = planted((30, 6, 8, 1), 5), np.random.default_rng(seed)
    level = float(np.median(network(rng.standard_normal((500, 30)))))

    def flickering(x):
        return network(x) + sd * rng.standard_normal((len(x), 1)) >= level

    span = rl.recover_span(rl.open_oracle(flickering, dim=30), labels=True, rng=seed)
    assert span.outcome is rl.Outcome.TOO_NOISY


def test_full_rank_has_a_measured_margin(seed):
    network = planted((4, 12, 8, 3), 1 + seed)
    span = rl.recover_span(rl.open_oracle(network), labels=True, rng=seed)
    assert span.outcome is rl.Outcome.FULL_RANK
    assert 0 < span.margin < 0.5
    assert span.rows["verification"].asked > 0


FRAME = np.linalg.qr(np.random.default_rng(0).standard_normal((20, 20)))[0]


@pytest.mark.parametrize("case", range(4))
def test_a_rare_class_is_looked_for(case):
    """A class of 2 % of the inputs, which 64 inputs may miss, brings the second direction."""

    def classes(x):
        u = x @ FRAME[:2].T
        return np.stack([-u[:, 0], u[:, 0], u[:, 1] - 1.5], axis=1)

    span = rl.recover_span(rl.open_oracle(classes, dim=20), labels=True, rng=case)
    assert span.ok
    assert span.rank == 2
    assert 0 < span.evidence["limits"].entries[1].fields["region"] < 0.01


@pytest.mark.parametrize("case", range(3))
def test_normals_orthogonal_to_the_span_so_far_are_measured(case):
    """The largest of five coordinates: every piece of the boundary is orthogonal to every other."""
    target = rl.open_oracle(lambda x: (x @ FRAME[:5].T).max(axis=1) - 1.5, dim=20)
    span = rl.recover_span(target, labels=True, threshold=0.0, rng=case)
    assert (span.ok, span.rank) == (True, 5)
    assert outside(span, FRAME[:5]) < 1e-12


@pytest.mark.parametrize("case", [2, 4])
def test_a_box_of_pixels(case):
    """12-4-5-3 in (0, 255): some directions matter on a part of the boundary that few inputs lead to."""
    network = planted((12, 4, 5, 3), 100 + case)
    span = rl.recover_span(rl.open_oracle(network, domain=(0, 255)), labels=True, rng=case)
    assert span.outcome is rl.Outcome.SPAN_RECOVERED
    assert span.rank == 4
    assert outside(span, network.weights[0]) < 1e-9
    assert "missed-label-direction" in span.evidence["limits"]

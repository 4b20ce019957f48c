"""Flips by answers that are rounded or noisy: longer steps where digits permit, true words where they do not."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import reluctant as rl
from reluctant.testing import planted

NEAR, FAR, LONGER = 42, 7, 18  # rows beyond one for each input: at least, of a far flip, and of longer steps
HALF, SOME = 0.5, 0.3  # of the inputs
TRUE = planted((8, 12, 1), 3)
THREE = planted((8, 12, 3), 2)


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def inputs(network, seed, count=20):
    """Some that one step on the weights flips, clearly on one side."""
    rows = np.random.default_rng(seed).standard_normal((60, 8))
    values = np.sort(network(rows), axis=1)
    margins = np.abs(values[:, -1] - values[:, -2]) if network.outputs > 1 else np.abs(values[:, 0])
    return [x for x, margin in zip(rows, margins, strict=True) if margin > 0.3 and rl.flip_sign(network, x).ok][:count]


def flips(answer, rows, **options):
    link = options.pop("link", "identity")
    return [rl.flip_sign(rl.open_oracle(answer, dim=8, link=link), x, **options) for x in rows]


@pytest.mark.parametrize(
    ("answer", "options", "share"),
    [
        (lambda rows: TRUE(rows).round(2), {}, HALF),
        (lambda rows: sigmoid(TRUE(rows)).round(2), {"link": "sigmoid"}, SOME),
        (lambda rows: sigmoid(TRUE(rows)).round(2), {"threshold": 0.5}, HALF),
        (lambda rows: (100 * sigmoid(TRUE(rows))).round(0), {"threshold": 50}, HALF),
    ],
    ids=["values", "link", "threshold", "percent"],
)
def test_two_decimals_flip(answer, options, share, seed):
    """Not every input: a gradient over long steps is not that of the point, and may miss a narrow place."""
    rows = inputs(TRUE, seed)
    found = flips(answer, rows, **options)
    flipped = [(x, flip) for x, flip in zip(rows, found, strict=True) if flip.ok]
    assert len(flipped) >= share * len(rows)
    assert all(TRUE(flip.x[None]) * TRUE(x[None]) < 0 for x, flip in flipped)
    assert {flip.queries - 8 - NEAR for _, flip in flipped} <= {LONGER, LONGER + FAR}


def test_one_decimal_of_classes_flips(seed):
    rows = inputs(THREE, seed)
    found = flips(lambda rows: THREE(rows).round(1), rows)
    assert sum(flip.ok for flip in found) >= HALF * len(rows)
    flipped = [(x, flip.x) for x, flip in zip(rows, found, strict=True) if flip.ok]
    assert all(THREE(x[None]).argmax() != THREE(other[None]).argmax() for x, other in flipped)


def test_noise_flips_by_longer_steps(seed):
    rng = np.random.default_rng(seed)
    rows = inputs(TRUE, seed)
    found = flips(lambda rows: TRUE(rows) + 1e-2 * rng.standard_normal((len(rows), 1)), rows)
    assert sum(flip.ok for flip in found) >= SOME * len(rows)


def test_four_decimals_need_no_longer_steps(seed):
    found = flips(lambda rows: TRUE(rows).round(4), inputs(TRUE, seed))
    assert sum(flip.queries - 8 - NEAR in {0, FAR} for flip in found) >= HALF * len(found)


def test_few_digits_in_a_box_ask_nothing_outside(seed):
    asked = []

    def answer(rows):
        asked.append(rows)
        return TRUE(rows).round(2)

    box = rl.open_oracle(answer, dim=8, domain=(-1, 1))
    for x in np.random.default_rng(seed).uniform(-1, 1, (5, 8)):
        rl.flip_sign(box, x)
    assert np.abs(np.concatenate(asked)).max() <= 1


@pytest.mark.parametrize("domain", [None, (-4, 4)])
def test_few_digits_flip_with_a_span_too(domain, seed):
    network = rl.random_network((60, 10, 1), seed)
    span = SimpleNamespace(basis=np.linalg.qr(network.weights[0].T)[0].T)
    found = []
    for x in np.random.default_rng(seed).standard_normal((12, 60)).clip(-4, 4):
        target = rl.open_oracle(lambda rows: network(rows).round(2), dim=60, domain=domain)
        if rl.flip_sign(rl.open_oracle(network, domain=domain), x, span=span).ok:
            found.append(rl.flip_sign(target, x, span=span))
    assert sum(flip.ok for flip in found) >= HALF * len(found)


def test_too_coarse_is_told_with_its_decimals(seed):
    """Four thousand inputs, each of which changes the answer by less than its rounding."""
    w = np.random.default_rng(seed).standard_normal(4000) / np.sqrt(4000)
    flip = rl.flip_sign(rl.open_oracle(lambda rows: (rows @ w + 3).round(1), dim=4000), np.ones(4000))
    assert flip.outcome is rl.Outcome.TOO_NOISY
    assert (flip.diagnosis.slug, flip.diagnosis.fields["decimals"]) == ("gradient-hidden", 1)
    assert [remedy.purpose for remedy in flip.diagnosis.remedies] == ["on-a-copy"]


def test_digits_are_told_by_inputs_elsewhere_where_none_nearby_differs(seed):
    x = 1e-3 * np.random.default_rng(seed).standard_normal(8)
    flip = rl.flip_sign(rl.open_oracle(lambda rows: (TRUE(rows) + 3).round(2), dim=8), x)
    assert flip.outcome is rl.Outcome.TOO_NOISY
    assert flip.diagnosis.fields["decimals"] == 2


def test_an_output_without_a_sign_is_told_of_thresholds():
    flip = rl.flip_sign(rl.open_oracle(lambda rows: 100 * sigmoid(TRUE(rows)), dim=8), np.ones(8), steps=3)
    assert flip.outcome is rl.Outcome.NOT_FLIPPED
    assert [remedy.purpose for remedy in flip.diagnosis.remedies] == ["own-threshold"]


def test_noise_that_decides_is_not_settled(seed):
    rng = np.random.default_rng(seed)
    target = rl.open_oracle(lambda rows: rows.sum(axis=1) + 3 * rng.standard_normal(len(rows)), dim=8)
    found = [rl.flip_sign(target, x) for x in rng.standard_normal((20, 8))]
    unsure = [flip for flip in found if not flip.ok]
    assert unsure
    assert not any(flip.outcome.settles for flip in unsure)


def test_a_flat_place_of_exact_answers_stays_flat():
    """Longer steps leave it, but what they show is no gradient there."""
    target = rl.open_oracle(lambda rows: np.maximum(rows, 0).sum(axis=1) + 1.5, dim=4)
    assert rl.flip_sign(target, -5 * np.ones(4)).outcome is rl.Outcome.FLAT

"""The adversarial steps of an audit: what noise decides is not settled, and only a missing gradient is called one."""

from __future__ import annotations

import numpy as np
import pytest
from audit_kit import fields, step, why

from reluctant.audit.steps import probe_steps
from reluctant.errors import InvalidInput

LOOKS = ("health", "flip", "linearity")


def noisy(seed):
    """Clearly positive, and too noisy for a gradient."""
    rng = np.random.default_rng(seed)
    return lambda x: 10 + 1e-4 * x.sum(axis=1) + 0.1 * rng.standard_normal(len(x))


def test_flips_that_noise_decides_are_not_settled(record, seed):
    found = record(noisy(seed), 6, steps=LOOKS)
    assert {one.outcome for one in found.flip.tries} <= {"too-noisy"}
    assert "flippable" in found.verdict.unsettled


def test_flips_by_exact_answers_are_settled(record):
    found = record(lambda x: np.where(x[:, 0] > 0, 1, -1) * (10 + np.abs(x[:, 1:]).sum(axis=1)), 6, steps=LOOKS)
    assert {one.outcome for one in found.flip.tries} == {"not-flipped"}  # on both sides of 0
    assert "flippable" not in found.verdict.unsettled


def test_a_place_without_a_gradient_is_told(record, seed):
    found = record(noisy(seed), 6, steps=LOOKS)
    assert step(found, "linearity").state == "skipped"
    assert why(found, "linearity") == "flat-target"


def test_another_error_is_not_taken_for_a_flat_place(record, monkeypatch):
    def broken(*_, **__):
        raise InvalidInput.about("x", got="something else", expected="what it was not")

    monkeypatch.setattr(probe_steps, "local_linearity", broken)
    found = record(lambda x: x.sum(axis=1), 6, steps=LOOKS)
    assert (why(found, "linearity"), fields(found, "linearity")["error"]) == ("step-failed", "invalid-input")


@pytest.mark.parametrize("others", [0, 3])
def test_the_origin_is_no_flat_place(record, others, seed):
    """Distances are told in units of an input's norm: another input is taken."""
    inputs = np.concatenate([np.zeros((1, 6)), np.random.default_rng(seed).standard_normal((others, 6))])
    found = record(lambda x: x.sum(axis=1) + 1, 6, steps=LOOKS, inputs=inputs)
    assert (found.linearity is not None) == (others > 0)
    assert why(found, "linearity") == (None if others else "only-the-origin")

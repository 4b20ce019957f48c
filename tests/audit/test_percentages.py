"""Shares in words: what is nearly all is not told as all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reluctant.learning.student_losses import HeldOutError
from reluctant.messages.diagnosis import percentage


@pytest.mark.parametrize(("part", "said"), [(0.0, "0.0%"), (0.55, "55.0%"), (0.9996, "99.9%"), (1.0, "100.0%")])
def test_nearly_all_is_not_all(part: float, said: str) -> None:
    assert percentage(part) == said


def test_a_student_tells_its_labels_in_the_same_words() -> None:
    measured = HeldOutError(1e-5, 1e-4, 0.9997, 0.002, 0.5, 4000)
    assert "99.9% of 4,000" in str(measured)
    assert "label" not in str(replace(measured, commonest=1.0))
    assert "label" not in str(replace(measured, labelled=False))
    assert "99.9%" in str(replace(measured, error=None, commonest=1.0))  # nothing else is known

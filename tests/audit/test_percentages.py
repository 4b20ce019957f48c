"""Shares in words: what is nearly all is not told as all."""

from __future__ import annotations

import pytest

from reluctant.audit.percentages import percentage


@pytest.mark.parametrize(("part", "said"), [(0.0, "0.0%"), (0.55, "55.0%"), (0.9996, "99.9%"), (1.0, "100.0%")])
def test_nearly_all_is_not_all(part: float, said: str) -> None:
    assert percentage(part) == said

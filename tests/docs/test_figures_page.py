"""The tables of docs/figures.md are those of the kept results."""

from __future__ import annotations

from collections.abc import Callable


def test_the_tables_are_what_the_results_say(script: Callable[..., object]) -> None:
    assert script("figures_page.py", "--check") == 0

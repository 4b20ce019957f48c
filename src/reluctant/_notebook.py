"""HTML tables that notebooks show for results, made without any library.

A class that wants one gives `_repr_html_`, which notebooks look for, and makes it with `html_table`. Everything is
escaped: names and errors come from targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

LONGEST = 600  # characters of a cell


def html_table(title: str, facts: Mapping[str, object]) -> str:
    """A table with one row for each fact that is neither None nor empty."""
    shown = {name: _text(value) for name, value in facts.items() if value is not None}
    rows = "".join(
        f'<tr><th style="text-align: left">{escape(name)}</th><td style="text-align: left">{escape(text)}</td></tr>'
        for name, text in shown.items()
        if text
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_text(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"

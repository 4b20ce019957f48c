"""What tests of pages share: the words of a page, as a reader sees them."""

from __future__ import annotations

import html
import re

__all__ = ["words"]


def words(page: str) -> str:
    """The text of a page, in one line."""
    shown = re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(" ".join(re.sub("<[^>]*>", " ", shown).split()))

"""Templates of this folder into pages: autoescape always on, style and script inside the page.

A page extends `base.html` (blocks: title, kind, lead, contents, body, end) and draws tables and figures with the macros
of `parts.html`. What a template prints is text unless it is `Markup`, which pictures made here are.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

from reluctant._optional import require
from reluctant.report import words

__all__ = ["render"]

FILTERS = ("count", "size", "percent", "duration", "money")  # of `words`
UNBROKEN = re.compile(r"\b\d+(?:-\d+)+\b|\[-?[\d.]+, -?[\d.]+\]")  # 64-32-10, [-2, 2]


def render(template: str, **values: Any) -> str:
    """Fill a template of this folder.

    Arguments:
        template: its file name.
        values: what it needs; strings are escaped.
    """
    return str(_environment().get_template(template).render(**values))


@cache
def _environment() -> Any:
    jinja2 = require("jinja2", extra="report", purpose="A report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("reluctant.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update({name: getattr(words, name) for name in FILTERS})
    environment.filters["prose"] = _prose
    environment.globals["asset"] = _asset
    return environment


def _asset(name: str) -> Any:
    """A style or script of this folder, to stand inside the page as it is."""
    markupsafe = require("markupsafe", extra="report", purpose="A report")
    return markupsafe.Markup(resources.files("reluctant.report").joinpath(name).read_text("utf-8"))


def _prose(text: str) -> Any:
    """A sentence as it is read: 2.0e-13 becomes a power of ten, 64-32-10 and [-2, 2] are not broken into two lines."""
    markupsafe = require("markupsafe", extra="report", purpose="A report")
    escaped = str(markupsafe.escape(words.powers(text)))
    return markupsafe.Markup(UNBROKEN.sub(r'<span class="nowrap">\g<0></span>', escaped))

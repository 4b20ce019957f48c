"""Every error and every diagnosis has its heading on the page of messages, which is made from the catalogue."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path

from reluctant import Outcome, errors
from reluctant.messages import error_pages
from reluctant.messages.catalogue import OUTCOMES, TEXTS

PAGE = Path(__file__).parents[2] / "docs" / "messages.md"

ERRORS = {getattr(errors, name).slug: getattr(errors, name) for name in errors.__all__}
SLUGS = [*ERRORS, *TEXTS]


def test_slugs_are_unique():
    assert len(ERRORS) == len(errors.__all__)
    assert len(set(SLUGS)) == len(SLUGS)


def test_every_slug_has_a_heading_and_no_heading_is_left_over():
    headings = [line.removeprefix("## ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("## ")]
    assert set(headings) == set(SLUGS)


def test_every_outcome_and_every_error_has_its_text():
    assert [outcome.slug for outcome in Outcome] == list(OUTCOMES)
    assert set(error_pages.ERRORS) == set(ERRORS)


def test_the_page_is_made_from_the_catalogue():
    script = PAGE.parents[1] / "scripts" / "messages_page.py"
    made = runpy.run_path(str(script))["page"]()
    assert made == PAGE.read_text("utf-8"), "run scripts/messages_page.py"


def test_every_error_is_in_the_list_and_in_the_tree():
    classes = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == errors.__name__
    }
    assert classes == set(errors.__all__)
    assert all(name in errors.__doc__ for name in classes)
    assert all(issubclass(getattr(errors, name), errors.ReluctantError) for name in classes)

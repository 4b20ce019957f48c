"""Pictures of a page take most of its time: the same one is drawn once, and none where pictures are not the point."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reluctant.report import page

__all__ = ["DRAWN", "drawn_once", "undrawn"]

DRAWN: dict[tuple[str, bytes], Any] = {}  # by what is drawn of which data


@contextmanager
def drawn_once() -> Iterator[None]:
    """Pages take a picture that was drawn of the same data before."""
    with pytest.MonkeyPatch.context() as patch:
        for name, draw in _drawing_functions().items():
            patch.setattr(page, name, _kept(name, draw))
        yield


@contextmanager
def undrawn() -> Iterator[None]:
    """Pages without pictures, as of a record that has none."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _drawing_functions():
            patch.setattr(page, name, lambda *data: None)
        yield


def _drawing_functions() -> dict[str, Callable[..., Any]]:
    found = {name: value for name, value in vars(page).items() if name.startswith("draw_")}
    assert len(found) >= 9, "pages are drawn elsewhere now"
    return found


def _kept(name: str, draw: Callable[..., Any]) -> Callable[..., Any]:
    def drawn(*data: Any) -> Any:
        key = (name, pickle.dumps(data))
        if key not in DRAWN:
            DRAWN[key] = draw(*data)
        return DRAWN[key]

    return drawn

"""Students of few steps: for audits in which a network is trained, and its quality is not the point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from reluctant.audit.steps import recovery_steps
from reluctant.learning import student

__all__ = ["short_training"]


@contextmanager
def short_training(hidden: tuple[int, ...] = (16,), steps: int = 400) -> Iterator[None]:
    """Students of this one shape and of so many steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(student, "STUDENT_SHAPES", (hidden,))
        patch.setattr(recovery_steps, "STEPS", steps // recovery_steps.LONGER)
        yield

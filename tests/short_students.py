"""Students of few steps: for audits and sweeps in which a network is trained, and how good it is is not the point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from reluctant.audit import defense_trial
from reluctant.audit.steps import network_steps
from reluctant.learning import student

__all__ = ["short_training"]


@contextmanager
def short_training(hidden: tuple[int, ...] = (16,), steps: int = 400, *, swept: int = 400) -> Iterator[None]:
    """Students of this one shape: of so many steps in the audit, and of `swept` ones behind each defense of a sweep."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(student, "STUDENT_SHAPES", (hidden,))
        patch.setattr(network_steps, "STEPS", steps // network_steps.LONGER)
        patch.setattr(defense_trial, "train_student", partial(student.train_student, steps=swept))
        yield

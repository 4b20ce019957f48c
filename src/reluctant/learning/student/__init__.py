"""Students: networks trained on a target's answers, and measured on answers that they were not trained on."""

from reluctant.learning.student.driver import train_student

__all__ = ["train_student"]

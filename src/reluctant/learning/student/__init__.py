"""Students: networks trained on a target's answers, and measured on answers that they were not trained on."""

from reluctant.learning.student.driver import ROWS, STEPS, train_student
from reluctant.learning.student.questions import FEWEST, rows_like

__all__ = ["FEWEST", "ROWS", "STEPS", "rows_like", "train_student"]

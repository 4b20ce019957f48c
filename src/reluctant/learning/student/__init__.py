"""Students: networks trained on a target's answers, and their error on held-out answers."""

from reluctant.learning.student.questions import FEWEST, rows_like
from reluctant.learning.student.student_error import commonest_share
from reluctant.learning.student.trainer import ROWS, STEPS, train_student

__all__ = ["FEWEST", "ROWS", "STEPS", "commonest_share", "rows_like", "train_student"]

"""Any position: one hidden layer of neurons parallel or close together, from lines through unexplained points."""

from reluctant.extraction.any_position.method import AnyPosition

__all__ = ["AnyPosition"]

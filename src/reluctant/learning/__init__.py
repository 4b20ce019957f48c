"""Learning: any network with one hidden layer to a given accuracy, without general position; students of any target."""

from reluctant.learning.learner import learn
from reluctant.learning.student import train_student

__all__ = ["learn", "train_student"]

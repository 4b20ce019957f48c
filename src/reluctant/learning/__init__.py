"""Learning: any network with one hidden layer to a given accuracy, and students trained on answers."""

from reluctant.learning.learner import learn
from reluctant.learning.student import train_student

__all__ = ["learn", "train_student"]

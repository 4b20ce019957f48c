"""Learning: any network with one hidden layer to a given accuracy, without general position."""

from reluctant.learning.driver import learn

__all__ = ["learn"]

"""Learning: any one-hidden-layer network to a given accuracy, whatever its neurons."""

from reluctant.learning.driver import learn

__all__ = ["learn"]

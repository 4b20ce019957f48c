"""Span: the directions of input space that a target looks at, and what is invisible to it."""

from reluctant.span.driver import recover_span
from reluctant.span.result import Span
from reluctant.span.subspace import Subspace

__all__ = ["Span", "Subspace", "recover_span"]

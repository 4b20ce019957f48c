"""Span: the directions of input space that a target depends on, those invisible to it, and the space of its answers."""

from reluctant.span.answer_space import OutputSpace, output_space
from reluctant.span.cheap_gradients import SpanGradients
from reluctant.span.obfuscation import Obfuscation, check_obfuscation, obfuscate
from reluctant.span.recover import Span, recover_span
from reluctant.span.subspace import Subspace

__all__ = [
    "Obfuscation",
    "OutputSpace",
    "Span",
    "SpanGradients",
    "Subspace",
    "check_obfuscation",
    "obfuscate",
    "output_space",
    "recover_span",
]

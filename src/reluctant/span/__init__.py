"""Span: the directions of input space that a target depends on, and those invisible to it."""

from reluctant.span.cheap_gradients import SpanGradients
from reluctant.span.obfuscation import Obfuscation, check_obfuscation, obfuscate
from reluctant.span.recover import Span, recover_span
from reluctant.span.subspace import Subspace

__all__ = ["Obfuscation", "Span", "SpanGradients", "Subspace", "check_obfuscation", "obfuscate", "recover_span"]

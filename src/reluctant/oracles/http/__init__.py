"""Served models over HTTP: the Open Inference Protocol v2 and plain JSON endpoints (extra `http`)."""

from reluctant.oracles.http.security import shown_command_target, shown_request, shown_target
from reluctant.oracles.keywords import ServedKeywords, Serving, is_url

__all__ = ["ServedKeywords", "Serving", "is_url", "shown_command_target", "shown_request", "shown_target"]

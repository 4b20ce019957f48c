"""Served models: the Open Inference Protocol v2 and plain JSON endpoints, over HTTP (extra `http`)."""

from reluctant.oracles.http.options import ServedKeywords, ServedOptions, is_url
from reluctant.oracles.http.shown import shown_command_target, shown_request, shown_target

__all__ = ["ServedKeywords", "ServedOptions", "is_url", "shown_command_target", "shown_request", "shown_target"]

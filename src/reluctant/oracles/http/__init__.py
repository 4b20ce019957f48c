"""Served models: the Open Inference Protocol v2 and plain JSON endpoints, over HTTP (extra `http`)."""

from reluctant.oracles.http.options import ServedKeywords, ServedOptions, is_url

__all__ = ["ServedKeywords", "ServedOptions", "is_url"]

"""Extraction from labels alone."""

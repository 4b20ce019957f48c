"""Audit: what can be taken from a model through its answers, step by step within a budget, as one record."""

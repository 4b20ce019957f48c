"""Benchmarks: every figure of the documentation is printed by `python -m benchmarks` (`make bench`)."""

"""Runs: what was done, on which target, with which seed, at what cost: as data."""

from reluctant.runs.record import ANSWERED, SCHEMA_VERSION, Record, jsonable

__all__ = ["ANSWERED", "SCHEMA_VERSION", "Record", "jsonable"]

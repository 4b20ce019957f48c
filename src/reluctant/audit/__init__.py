"""Audit: what can be taken from a model through its answers, step by step within a budget, as one record."""

from reluctant._verb import callable_as
from reluctant.audit.audit_value import LEAKS, Audit, schema
from reluctant.audit.driver import STEPS, audit, not_opened
from reluctant.audit.leak import Leak
from reluctant.audit.leaking import leak
from reluctant.audit.sweep import Sweep
from reluctant.audit.sweeping import StandIn, sweep

__all__ = ["LEAKS", "STEPS", "Audit", "Leak", "StandIn", "Sweep", "audit", "leak", "not_opened", "schema", "sweep"]

callable_as(__name__, audit)

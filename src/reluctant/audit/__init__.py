"""Audit: everything that a model's answers leak, measured step by step within a budget, as one record."""

from reluctant._verb import callable_as
from reluctant.audit.auditor import STEPS, Audit, audit, not_opened
from reluctant.audit.changes import AuditChanges, compare_audits
from reluctant.audit.defense_sweep import StandIn, Sweep, sweep
from reluctant.audit.defense_trial import DefenseResult, try_defense
from reluctant.audit.record import LEAKS, AuditRecord, schema

__all__ = [
    "LEAKS",
    "STEPS",
    "Audit",
    "AuditChanges",
    "AuditRecord",
    "DefenseResult",
    "StandIn",
    "Sweep",
    "audit",
    "compare_audits",
    "not_opened",
    "schema",
    "sweep",
    "try_defense",
]

callable_as(__name__, audit)

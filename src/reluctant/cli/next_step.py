"""What to run next, whole: the command that a message speaks of, with the target and the options it was given."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from reluctant.cli.repeat import command_line
from reluctant.cli.targets import TargetOptions
from reluctant.results import Outcome
from reluctant.run_record import ANSWERED, Record

__all__ = ["to_try"]

NAMED = re.compile(r"reluctant extract((?: --[a-z]+(?:[ =](?!--)[^\s;)]+)?)+)")  # a command in a message, its options
OPTION = re.compile(r"--([a-z]+)(?:[ =]((?!--)[^\s;)]+))?")
TRAINED = "rl.train_student, audit"  # how messages say that a network can be trained: audit does, from the command line
FROM_LABELS = "span --labels"
UNLINKED = "without the link"
LINKED_TOO = "; span has"
ANY_RANGE = "LOW,HIGH"


def to_try(said: str, outcome: Outcome | None, record: Record, target: str, options: TargetOptions) -> str | None:
    """The command to run after one that ended so, for the reason said; None where that names no other one."""
    step = _step(said, outcome, record)
    if step is None:
        return None
    command, more = step
    labels = command == "span" and FROM_LABELS in said
    return command_line(command, target, replace(options, json=None, **more)) + (" --labels" if labels else "")


def _step(said: str, outcome: Outcome | None, record: Record) -> tuple[str, dict[str, Any]] | None:
    """The command, and the options it has besides those that were given."""
    inside = "span" if record.command == "span" else "extract"
    if ANSWERED in record.findings:
        return inside, _options(record.findings[ANSWERED])
    if inside == "span" and FROM_LABELS in said:
        return inside, {}
    if TRAINED in said:
        if outcome is Outcome.NOT_PIECEWISE_LINEAR:  # a link that was given is not its own: audit looks for another
            return "audit", {"link": "identity", "percent": False}
        return "audit", {"link": "identity"} if UNLINKED in said else {}
    named = NAMED.search(said)
    if named is not None:
        return inside if LINKED_TOO in said else "extract", _options(named[1])
    if outcome is Outcome.NON_FINITE and record.command == "learn":  # which asks everywhere
        return "extract", {"domain": ANY_RANGE}
    return None


def _options(text: str) -> dict[str, Any]:
    """Options as fields; one that is named without its value was given before."""
    named = dict(OPTION.findall(text))
    given = {name: named[name] for name in ("link", "precision", "domain") if named.get(name)}
    return given | ({"percent": True} if "percent" in named else {})

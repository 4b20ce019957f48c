"""What commands end with: the outcome, what was spent, and the command to run next, whole."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from reluctant.cli.options import TargetOptions, command_line
from reluctant.interface import Interface
from reluctant.interface.diagnoses import TRAIN
from reluctant.messages import Diagnosis, Remedy
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.results import Ended, Outcome, Result
from reluctant.run_record import ANSWERED, Record

__all__ = ["advise", "advise_next", "answered_range", "as_command", "ending", "next_command", "shown_network", "spent"]

KEPT_WITH_A_TRANSCRIPT = {Outcome.OUT_OF_BUDGET, Outcome.TARGET_FAILED}


def ending(found: Ended, record: Record) -> list[str]:
    """The outcome, as exactly as its reason is known, the stage and error it ended with, and the range to give."""
    error, where = found.evidence.get("error"), f"Stage {found.stage}: " if found.stage else ""
    ended = [_reason(found), *([f"{where}{error}"] if error else [])]
    return [*ended, *(line for line in answered_range(record) if line not in str(error))]


def _reason(found: Ended) -> str:
    return _more_exact(found) or found.diagnosis.text(as_command)


def _more_exact(found: Ended) -> str:
    health = found.evidence.get("health")
    of_health = health.why(found.outcome) if isinstance(health, Interface) else ""
    of_health = "" if of_health == str(found.outcome) else of_health
    return str(of_health or found.evidence.get("reason") or _of_labels(found) or "")


def answered_range(record: Record) -> list[str]:
    """The range to give, where the target failed on larger inputs than it answers."""
    return [str(record.findings[ANSWERED])] if ANSWERED in record.findings else []


def _of_labels(found: Ended) -> str:
    """Why no boundary between labels could be followed; empty where that was not asked."""
    changed = found.evidence.get("changed labels")
    if found.outcome is not Outcome.TOO_NOISY or changed is None:
        return ""
    how = (
        f"{changed} labels changed when they were asked for again" if changed else "Labels flicker near their boundary"
    )
    return f"{how}: it cannot be followed through their noise. {TRAIN}"


def shown_network(found: Result, link: str) -> list[str]:
    """The network as it is written, and what its values are where they could be taken for others; nothing of none."""
    if found.network is None:
        return []
    written = found.as_written(link)
    ratios = "Its values are log-ratios to the first class, whose own is 0: the link makes them the target's answers."
    return [repr(written), *([ratios] if written.link not in ELEMENTWISE_LINKS else [])]


def spent(record: Record, written: Path | None) -> str:
    """How many queries, how many of them were not paid again, and the file that came of it."""
    sent = sum(rows.sent for rows in record.rows.values())
    replayed = f" {record.queries - sent} of them from the transcript." if sent < record.queries else ""
    return f"{record.queries} queries.{replayed}" + (f" Written: {written}" if written else "")


def advise_next(said: str, outcome: Outcome | None, record: Record, target: str, options: TargetOptions) -> None:
    """Say the command to run next, whole, where the reason that was told names one."""
    command = _to_try(said, outcome, record, target, options)
    if command is not None:
        options.say(f"To try next: {command}")


def advise(found: Ended, record: Record, target: str, options: TargetOptions) -> None:
    """Say what to run next, and that a run which stopped half-way could have been kept."""
    if not found.ok and not _more_exact(found) and ANSWERED not in record.findings:
        command = next_command(found.diagnosis, record.command, target, options)
        options.say(f"To try next: {command}") if command is not None else None
    elif not found.ok:
        advise_next(_reason(found), found.outcome, record, target, options)
    if not found.ok and options.transcript is None and found.outcome in KEPT_WITH_A_TRANSCRIPT:
        options.say("No transcript was kept; next time give --transcript DIR, so that nothing is paid twice.")


# ---- remedies as command lines

COMMANDS = {"train": "audit"}  # `audit` trains a network, and no command of its own does
NAMES = {"rng": "seed"}
PLACEHOLDERS = {"domain": "LOW,HIGH", "inputs": "FILE", "network": "FILE", "output": "INDEX", "link": "NAME"}


def as_command(remedy: Remedy) -> str:
    """A remedy in a sentence: the command and its flags, or flags alone for the same command."""
    flags = [_flag(name, value) for name, value in remedy.options.items() if value is not False]
    command = [] if remedy.verb == "open" else [f"reluctant {COMMANDS.get(remedy.verb, remedy.verb)}"]
    return " ".join([*command, *flags])


def next_command(diagnosis: Diagnosis, command: str, target: str, options: TargetOptions) -> str | None:
    """The whole command that tries the first remedy, with the options given so far; None without a remedy.

    After `span`, a remedy for `span` comes before the others.
    """
    own = [remedy for remedy in diagnosis.remedies if remedy.verb == command == "span"]
    for remedy in (*own, *diagnosis.remedies):
        verb = ("span" if command == "span" else "extract") if remedy.verb == "open" else remedy.verb
        shared = {each.name for each in fields(TargetOptions)}
        chosen = {NAMES.get(name, name): _typed(name, value) for name, value in remedy.options.items()}
        changed = replace(options, json=None, **{name: value for name, value in chosen.items() if name in shared})
        flags = [_flag(name, value) for name, value in remedy.options.items() if NAMES.get(name, name) not in shared]
        return " ".join([command_line(COMMANDS.get(verb, verb), target, changed), *flags])
    return None


def _flag(name: str, value: Any) -> str:
    flag = f"--{NAMES.get(name, name).replace('_', '-')}"
    return flag if value is True else f"{flag} {_typed(name, value)}"


def _typed(name: str, value: Any) -> Any:
    """A value as one types it; one that only the user knows by a word in capitals."""
    if value is None:
        return PLACEHOLDERS.get(name, NAMES.get(name, name).upper())
    return ",".join(f"{bound:.10g}" for bound in value) if isinstance(value, tuple) else value


NAMED = re.compile(r"reluctant extract((?: --[a-z]+(?:[ =](?!--)[^\s;)]+)?)+)")  # a command in a message, its options
OPTION = re.compile(r"--([a-z]+)(?:[ =]((?!--)[^\s;)]+))?")
TRAINED = "rl.train_student, audit"  # how messages say that a network can be trained: audit does, from the command line
FROM_LABELS = "span --labels"
UNLINKED = "without the link"
LINKED_TOO = "; span has"
ANY_RANGE = "LOW,HIGH"


def _to_try(said: str, outcome: Outcome | None, record: Record, target: str, options: TargetOptions) -> str | None:
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

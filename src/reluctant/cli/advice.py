"""The last lines of a command: outcome, rows spent, and the command to run next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reluctant.cli.console import shortened
from reluctant.cli.options import NAMES, TargetOptions, command_line, flag_of
from reluctant.errors import Argument, Option, Placeholder, Words
from reluctant.messages import Diagnosis, Remedy
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.results import Ended, Outcome, Result
from reluctant.run_record import Record

if TYPE_CHECKING:
    from reluctant.evidence import Measured

NO_FLAGS: Mapping[str, Any] = MappingProxyType({})
SHARED = {"seconds": ("extract", "learn", "span"), "labels": ("extract", "span")}  # flags of several commands
KEPT_WITH_A_TRANSCRIPT = {Outcome.OUT_OF_BUDGET, Outcome.TARGET_FAILED}


def ending(found: Ended, record: Record) -> list[str]:
    """Why it ended so, the stage and error it ended with, and the range to give."""
    error, where = typed_words(found.error), f"Stage {found.stage}: " if found.stage else ""
    answered = [] if record.answered in found.error.parts else answered_range(record)  # the error may name it
    lines = [found.diagnosis.text(as_command), *([f"{where}{shortened(error)}"] if error else []), *answered]
    said = (found.link_found, found.units_found, found.columns_constant)
    return [*lines, *(each.text(as_command) for each in said if each is not None)]


def measured(found: Ended) -> Measured:
    """What a run measured; the methods are imported when they have run."""
    from reluctant.evidence import Measured

    return Measured.of(found)


def answered_range(record: Record) -> list[str]:
    """The range to give, where the target failed on larger inputs than it answers."""
    found = record.answered
    return [] if found is None else [found.text(as_command)]


def shown_network(found: Result, link: str) -> list[str]:
    """The network as it is written, and what its values are where readers could mistake them; nothing of none."""
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


def advise_next(
    diagnosis: Diagnosis | None, record: Record, target: str, options: TargetOptions, out: Path | None = None,
    given: Mapping[str, Any] = NO_FLAGS,
) -> None:  # fmt: skip
    """Say the command to run next, whole: an answered range comes before the diagnosis."""
    diagnosis = record.answered or diagnosis
    command = None if diagnosis is None else next_command(diagnosis, record.command, target, options, out, given)
    if command is not None:
        options.say(f"To try next: {command}")


def advise(
    found: Ended, record: Record, target: str, options: TargetOptions, out: Path | None = None,
    given: Mapping[str, Any] = NO_FLAGS,
) -> None:  # fmt: skip
    """Say what to run next, and that a transcript keeps a run that stops half-way."""
    if found.ok:
        return
    advise_next(found.diagnosis, record, target, options, out, given)
    if options.transcript is None and found.outcome in KEPT_WITH_A_TRANSCRIPT:
        options.say("No transcript was kept; next time give --transcript DIR, so that nothing is paid twice.")


# ---- remedies as command lines

NETWORK_COMMANDS = {"extract", "learn"}  # both write a network
COMMANDS = {"train": "audit"}  # `audit` trains a network, and no command of its own does
PLACEHOLDERS = {"domain": "LOW,HIGH", "inputs": "FILE", "network": "FILE", "output": "INDEX", "link": "NAME"}


def as_command(remedy: Remedy) -> str:
    """A remedy in a sentence: the command and its flags, or flags alone for the same command."""
    flags = [_flag(name, value) for name, value in _options(remedy).items() if value is not False]
    command = [] if remedy.verb == "open" else [f"reluctant {COMMANDS.get(remedy.verb, remedy.verb)}"]
    return " ".join([*command, *flags])


def typed_words(words: Words) -> str:
    """A message of the library with its arguments as flags: `retries=3` becomes `--retries 3`."""
    return words.written(_typed_part)


def _typed_part(part: Argument | Option | Diagnosis) -> str:
    if isinstance(part, Diagnosis):
        return part.text(as_command)
    flag = flag_of(part.name)
    if flag is None:
        return str(part)
    value = part.value if isinstance(part, Option) else None
    return flag if value is None or value is True else f"{flag} {_typed_value(value)}"


def _typed_value(value: Any) -> str:
    """A value in a message as one types it; one that only the user knows in capitals."""
    if isinstance(value, tuple):
        return ",".join(map(_typed_value, value))
    return value.upper() if isinstance(value, Placeholder) else shlex.quote(str(value))


def next_command(
    diagnosis: Diagnosis, command: str, target: str, options: TargetOptions, out: Path | None = None,
    given: Mapping[str, Any] = NO_FLAGS,
) -> str | None:  # fmt: skip
    """The whole command that tries the first remedy, with the options given so far; None without a remedy.

    given: flags of the command itself that were given; another command keeps those that it has.
    After `span`, a remedy for `span` comes before the others. A `flip` is not written: its input is not among these.
    """
    own = [remedy for remedy in diagnosis.remedies if remedy.verb == command]
    remedies = [*(own if command == "span" else ()), *diagnosis.remedies]
    if not remedies or "flip" in (command, remedies[0].verb):
        return None
    remedy, shared = remedies[0], {each.name for each in fields(TargetOptions)}
    verb = _opening_verb(command, remedy) if remedy.verb == "open" else remedy.verb
    wanted = _options(remedy)
    chosen = {NAMES.get(name, name): _typed(name, value) for name, value in wanted.items()}
    without: dict[str, Any] = {"link": None} if "link" in remedy.options and "link" not in wanted else {}
    changed = replace(
        options, json=None, **without, **{name: value for name, value in chosen.items() if name in shared}
    )
    flags = [_flag(name, value) for name, value in wanted.items() if NAMES.get(name, name) not in shared]
    kept = [
        _flag(name, f"{value:.10g}" if isinstance(value, float) else value) for name, value in given.items()
        if value not in (None, False) and name not in wanted and verb in {command, *SHARED.get(name, ())}
    ]  # fmt: skip
    same_file = verb == command or {verb, command} <= NETWORK_COMMANDS
    written = [] if out is None or not same_file else ["-o", shlex.quote(str(out))]
    return " ".join([command_line(COMMANDS.get(verb, verb), target, changed), *flags, *kept, *written])


def _options(remedy: Remedy) -> dict[str, Any]:
    """Options as they are typed: an audit reads answers as they are without a word, other commands with "none"."""
    link = {} if remedy.verb == "train" else {"link": "none"}
    if remedy.options.get("link") != "identity":
        return dict(remedy.options)
    return {name: value for name, value in remedy.options.items() if name != "link"} | link


def _opening_verb(command: str, remedy: Remedy) -> str:
    """The command that opens its target in another way: `learn` takes no domain, and behind a link seldom succeeds."""
    again = command == "span" or (command == "learn" and not remedy.options.keys() & {"domain", "link"})
    return command if again else "extract"


def _flag(name: str, value: Any) -> str:
    flag = f"--{NAMES.get(name, name).replace('_', '-')}"
    return flag if value is True else f"{flag} {_typed(name, value)}"


def _typed(name: str, value: Any) -> Any:
    """A value as one types it; one that only the user knows by a word in capitals."""
    if value is None:
        return PLACEHOLDERS.get(name, NAMES.get(name, name).upper())
    return ",".join(f"{bound:.10g}" for bound in value) if isinstance(value, tuple) else value

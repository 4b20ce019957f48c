"""Remedies as command lines: each option by its flag, and the whole command of the line "To try next"."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from reluctant.cli.repeat import command_line
from reluctant.cli.targets import TargetOptions
from reluctant.messages import Diagnosis, Remedy

__all__ = ["as_command", "next_command"]

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

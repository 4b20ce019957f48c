"""A command as one would type it: its target, and every option that is not at its default."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from reluctant.cli.targets import TargetOptions
from reluctant.oracles.http.security import shown_command_target, shown_request

__all__ = ["command_line"]

NOT_REPEATED = {"quiet", "verbose"}  # options that do not change what is found


def command_line(
    command: str, target: str, options: TargetOptions, *others: Any, defaults: Mapping[str, Any] | None = None
) -> str:
    """The command with every option that is not at its default, and without what may be a key."""
    shown = None if options.request is None else shown_request(options.request)
    words = ["reluctant", command, shown_command_target(target)]
    for group in (replace(options, request=shown), *others):
        for field in fields(group):
            value, default = getattr(group, field.name), (defaults or {}).get(field.name, field.default)
            if field.name not in NOT_REPEATED and value not in (default, None):
                words += _words(f"--{field.name.replace('_', '-')}", value)
    return shlex.join(words)


def _words(option: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [option]
    return [word for each in (value if isinstance(value, list) else [value]) for word in (option, _as_typed(each))]


def _as_typed(value: Any) -> str:
    """A whole number as one types it: 100, and not 100.0."""
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)

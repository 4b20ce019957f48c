"""Defaults from a file: `reluctant.toml`, or `[tool.reluctant]` in `pyproject.toml`, of the working folder.

Keys are the long options without their dashes. Those at the top are for every command with a TARGET, a table named like
a command is for that command, and `[targets.NAME]` describes a target and its options. The command line comes first,
then the target, then the command, then the top.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer
import typer.core

from reluctant.errors import InvalidInput

OWN_FILE, PROJECT_FILE, TABLE = "reluctant.toml", "pyproject.toml", ("tool", "reluctant")
TARGETS, TARGET = "targets", "target"
PLAIN_NAME = re.compile(r"[\w-]+")
HELP = {"-h", "--help"}
ON_THE_COMMAND_LINE = {"trust_code"}  # a folder must not decide that its own files may run code


@dataclass(frozen=True)
class Config:
    """What a file says. place: its name and table, for messages."""

    place: str
    shared: Mapping[str, Any]
    commands: Mapping[str, Mapping[str, Any]]
    targets: Mapping[str, Mapping[str, Any]]

    def location(self, name: str) -> str | None:
        """The target behind a name; None if it is no name of this file."""
        return None if name not in self.targets else str(self.targets[name][TARGET])


def read_config(folder: Path, commands: Iterable[str]) -> Config | None:
    """The file of a folder, None without one. commands: names that a table may have."""
    own = folder / OWN_FILE
    if own.is_file():
        return _config(OWN_FILE, _parsed(own), commands)
    project = folder / PROJECT_FILE
    data = _parsed(project) if project.is_file() else {}
    for name in TABLE:
        data = data.get(name, {})
    return _config(f"{PROJECT_FILE} [{'.'.join(TABLE)}]", data, commands) if data else None


def _parsed(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput.about(path.name, got=f"a file that cannot be read ({error})", expected="TOML") from error


def _config(place: str, data: Mapping[str, Any], commands: Iterable[str]) -> Config:
    tables = {key: value for key, value in data.items() if isinstance(value, Mapping)}
    known = [*commands, TARGETS]
    for name in tables:
        if name not in known:
            raise _unknown(place, f"table [{name}]", name, known, "a command, or targets")
    targets = tables.pop(TARGETS, {})
    for name, table in targets.items():
        if not PLAIN_NAME.fullmatch(name):  # a path or an address on the command line is what it says
            raise InvalidInput.about(
                place, got=f"[{TARGETS}.{name}]", expected="a name of letters, digits, - and _, no path or address"
            )
        if not isinstance(table, Mapping) or not isinstance(table.get(TARGET), str):
            raise InvalidInput.about(
                place, got=f"[{TARGETS}.{name}] without a target", expected=f'{TARGET} = "model.onnx", or an address'
            )
    shared = {key: value for key, value in data.items() if not isinstance(value, Mapping)}
    return Config(place, shared, tables, targets)


def _unknown(place: str, got: str, name: str, known: Sequence[str], expected: str) -> InvalidInput:
    near = get_close_matches(name, known, n=1)
    return InvalidInput.about(place, got=got, expected=expected, fix=f"Did you mean {near[0]}?" if near else "")


# ---- options of one command


@dataclass(frozen=True)
class Choices:
    """The options of one command that a file may set: their flags, which are switches, which may be repeated."""

    command: str
    flags: Mapping[str, str]
    switches: frozenset[str]
    repeated: frozenset[str]

    def words(self, place: str, key: str, value: Any) -> list[str]:
        """One key of a file as words of the command line."""
        name = _name(key)
        flag = self.flags[name]
        if name in self.switches:
            if not isinstance(value, bool):
                raise InvalidInput.about(f"{place} {key}", got=repr(value), expected="true or false")
            return [flag] * value
        if isinstance(value, bool | Mapping):
            raise InvalidInput.about(f"{place} {key}", got=repr(value), expected="a number, a text, or a list of them")
        values = value if isinstance(value, list) else [value]
        joined = values if name in self.repeated else [",".join(map(str, values))]
        return [f"{flag}={each}" for each in joined]


def _name(key: str) -> str:
    return key.replace("-", "_")


def configured_words(
    config: Config, choices: Choices, given: Mapping[str, Any], all_flags: Callable[[], Iterable[str]]
) -> list[str]:
    """Options that the file sets and the command line does not, as words.

    given: what the command line gives, by name. all_flags: names of the options of every command with a target.
    """
    shared = config.shared if TARGET in given else {}
    of_target = {key: value for key, value in config.targets.get(str(given.get(TARGET)), {}).items() if key != TARGET}
    of_command = config.commands.get(choices.command, {})
    found: dict[str, list[str]] = {}
    for key, value in [*shared.items(), *of_command.items(), *of_target.items()]:
        name = _name(key)
        if name in ON_THE_COMMAND_LINE:
            raise InvalidInput.about(config.place, got=f"key '{key}'", expected=f"--{key} on the command line alone")
        if name not in choices.flags:
            own = key in of_command  # a key of the top, or of a target, may be for other commands
            known = list(choices.flags) if own else list(all_flags())
            if _name(key) not in known:
                shown = [name.replace("_", "-") for name in known]
                raise _unknown(config.place, f"key '{key}'", key, shown, f"an option of reluctant {choices.command}")
        elif given.get(name) in (None, (), []):
            found[name] = choices.words(config.place, key, value)
    return [word for words in found.values() for word in words]


class ConfiguredCommand(typer.core.TyperCommand):
    """A command whose options have defaults in a file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line, then the file for what it leaves out."""
        config = None if ctx.resilient_parsing or HELP & set(args) else read_config(Path.cwd(), known_commands())
        if config is None:
            return super().parse_args(ctx, args)
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        words = configured_words(config, self.choices(), given, names_of_all_options)
        try:
            rest = super().parse_args(ctx, [*words, *args])
        except typer.BadParameter as error:
            name = getattr(error.param, "name", None)
            flag = self.choices().flags.get(name or "")
            if name is None or given.get(name) is not None or flag not in {word.split("=")[0] for word in words}:
                raise
            key = name.replace("_", "-")
            raise InvalidInput.about(
                f"{config.place} {key}", got=error.message.rstrip("."), expected=f"a value that --{key} takes"
            ) from error
        location = config.location(str(given.get(TARGET)))
        if location is not None:
            ctx.params[TARGET] = location
        return rest

    def choices(self) -> Choices:
        """Its options."""
        options = {
            str(each.name): each for each in self.params if each.param_type_name == "option" and each.name != "help"
        }
        return Choices(
            str(self.name),
            {name: max(each.opts, key=len) for name, each in options.items()},
            frozenset(name for name, each in options.items() if getattr(each, "is_flag", False)),
            frozenset(name for name, each in options.items() if each.multiple),
        )


def known_commands() -> Iterable[str]:
    """Names of the commands."""
    from reluctant.cli.app import COMMANDS

    return COMMANDS


def names_of_all_options() -> list[str]:
    """Names of the options of every command with a target: each command is imported for it."""
    from reluctant.cli.app import COMMANDS, load

    commands = [load(name) for name in COMMANDS]
    with_target = [each for each in commands if TARGET in {parameter.name for parameter in each.params}]
    return list(dict.fromkeys(name for each in with_target for name in each.choices().flags))


def one_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Completion of a shell for an option with few values."""
    return lambda incomplete: [str(name) for name in names if name.startswith(incomplete)]


def target_names(incomplete: str) -> list[str]:
    """Names of targets for the completion of a shell; none where the file cannot be read."""
    try:
        config = read_config(Path.cwd(), known_commands())
    except InvalidInput:
        return []
    return [] if config is None else [name for name in config.targets if name.startswith(incomplete)]

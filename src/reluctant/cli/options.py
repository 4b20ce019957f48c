"""Flags that every command with a TARGET shares, and the oracle that they open."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from reluctant.cli.config import target_names
from reluctant.cli.console import note, progress, show_waits, stoppable
from reluctant.cli.files import read_array
from reluctant.errors import InvalidInput, UnknownTarget

if TYPE_CHECKING:
    from reluctant.numerics import FloatArray
    from reluctant.oracles import Counting
    from reluctant.oracles.keywords import ServedKeywords

TargetArgument = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="A .onnx, .npz, .joblib or .pt file, module:attribute of an importable callable or model, or the address "
        "of a served model (http://host:port/v2/models/NAME). Or a name from reluctant.toml or pyproject.toml.",
        autocompletion=target_names,
        show_default=False,
    ),
]

Seconds = Annotated[
    float | None,
    typer.Option(help="Most processor time, in seconds; results until then are kept. No limit by default."),
]

JsonOut = Annotated[str | None, typer.Option(metavar="FILE", help="Write the record as JSON; - for standard output.")]

OWN_GRADIENTS = "own"
GRADIENTS = "own, module:attribute of an importable function, or a name that a served model knows"
BOUNDS = "a pair of numbers like 0,1, or a .npy file (2, d)"


@dataclass(frozen=True)
class TargetOptions:
    """Options of one command that asks a target."""

    dim: Annotated[int | None, typer.Option(help="Number of inputs; needed for a callable.")] = None
    budget: Annotated[int | None, typer.Option(help="Most rows that may reach the target.")] = None
    transcript: Annotated[
        Path | None, typer.Option(help="Folder that keeps every answer; run again with it to resume.")
    ] = None
    seed: Annotated[int, typer.Option(help="Seed of all random choices.")] = 0
    output: Annotated[int | None, typer.Option(help="Index of the one output to use; all if not given.")] = None
    link: Annotated[
        str | None,
        typer.Option(
            help="Function after the last layer: softmax, sigmoid, log-softmax, top-k, tanh, or none. Found "
            "automatically if not given."
        ),
    ] = None
    percent: Annotated[
        bool, typer.Option("--percent", help="The answers are probabilities in percent: divide them by 100.")
    ] = False
    domain: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,HIGH",
            help="Range of the inputs: no query leaves it. A .npy file (2, d) gives a range for each input.",
        ),
    ] = None
    inputs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Typical inputs, a .npy file (n, d): queries stay near them, in the units of their columns.",
        ),
    ] = None
    gradients: Annotated[
        str | None,
        typer.Option(
            metavar="own|MODULE:NAME|TENSOR",
            help="The target also answers gradients: own (torch module, .npz network), a function as "
            "module:attribute, or the tensor or JSON path of a served model.",
        ),
    ] = None
    explanation: Annotated[str, typer.Option(help="What --gradients answers: gradient, or input-times-gradient.")] = (
        "gradient"
    )
    precision: Annotated[
        str, typer.Option(help="as-served, or float64 to re-cast a local ONNX, torch or scikit-learn model.")
    ] = "as-served"
    timeout: Annotated[float | None, typer.Option(help="Seconds to wait for each call.")] = None
    retries: Annotated[
        int | None, typer.Option(help="Repeats of a failed call; by default 0, and 8 for a served model.")
    ] = None
    batch: Annotated[
        int | None,
        typer.Option(help="Most rows in one call or request; for a served model found automatically."),
    ] = None
    trust_code: Annotated[
        bool, typer.Option("--trust-code", help="Load model files that can run code (pickle, joblib, torch).")
    ] = False
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="dask://HOST:PORT",
            help="Run the target on the workers of a dask cluster; each holds a copy.",
        ),
    ] = None
    defense: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Put a defense before the target, such as decimals=3; may be repeated."),
    ] = None
    connections: Annotated[int | None, typer.Option(help="Served model: requests in flight at once (4).")] = None
    rate: Annotated[
        float | None,
        typer.Option(help="Served model: most rows a second. Audit of a file: only to compute the time of an attack."),
    ] = None
    auth_env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Served model: environment variable with the credential; never written."),
    ] = None
    auth_header: Annotated[
        str | None, typer.Option(metavar="HEADER", help="Served model: header that carries it (Authorization).")
    ] = None
    encoding: Annotated[str | None, typer.Option(help="Served model: auto, json or binary tensors.")] = None
    datatype: Annotated[str | None, typer.Option(help="Served model: FP32 or FP64, if its metadata do not say.")] = None
    tensor: Annotated[str | None, typer.Option(help="Served model: name of the output to ask for.")] = None
    request: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="""Plain JSON endpoint: what to send, such as '{"instances": "$rows"}'."""),
    ] = None
    reply: Annotated[
        str | None, typer.Option(metavar="PATH", help="Plain JSON endpoint: path of the answers, such as predictions.")
    ] = None
    ca: Annotated[Path | None, typer.Option(help="Served model: file of certificates of a private authority.")] = None
    json: JsonOut = None
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Results alone: no progress, nothing on standard error.")
    ] = False
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print queries by stage.")] = False

    def open(self, target: str) -> Counting:
        """Open the target with these options; defenses stand between it and what asks."""
        from reluctant.defenses import defend
        from reluctant.oracles import open_oracle

        reaching: dict[str, Any] = {
            "dim": self.dim,
            "precision": self.precision,
            "timeout": self.timeout,
            "retries": self.retries,
            "batch": self.batch,
            "trust_code": self.trust_code,
            "engine": self.engine,
            "percent": self.percent,
            "gradients": self.given_gradients(target),
            "explanation": self.explanation,
            **self.served(),
        }
        asking: dict[str, Any] = {
            "budget": self.budget,
            "transcript": self.transcript,
            "output": self.output,
            "link": self.link,
            "domain": _bounds(self.domain),
            "inputs": self.given_inputs(),
        }
        if self.defense:
            return open_oracle(defend(open_oracle(target, **reaching), *self.defense), **asking)
        return open_oracle(target, **reaching, **asking)

    def given_inputs(self) -> FloatArray | None:
        """The rows of --inputs."""
        return None if self.inputs is None else read_array("--inputs", self.inputs)

    def given_gradients(self, target: str) -> Any:
        """What --gradients means for this target: its own, a function, or a name that its server knows."""
        from reluctant.oracles.adapters.dispatch import import_target
        from reluctant.oracles.keywords import is_url

        if self.gradients is None or is_url(target):
            return self.gradients
        if self.gradients == OWN_GRADIENTS:
            return True
        if ":" not in self.gradients:
            raise InvalidInput.about("--gradients", got=f"'{self.gradients}'", expected=GRADIENTS)
        try:
            return import_target(self.gradients)
        except UnknownTarget as error:
            raise InvalidInput.about("--gradients", got=f"'{self.gradients}'", expected=GRADIENTS) from error

    def served(self) -> ServedKeywords:
        """The options for served models that were given."""
        from reluctant.oracles.keywords import ServedKeywords

        given = {name: getattr(self, name) for name in ServedKeywords.__annotations__ if hasattr(self, name)}
        return cast("ServedKeywords", {name: value for name, value in given.items() if value is not None})

    @property
    def given_link(self) -> str:
        """The link that was given, "identity" where none was."""
        return "identity" if self.link in (None, "none") else str(self.link)

    @property
    def written_link(self) -> str:
        """The link in the file of a recovered network: the link, unless it needs outputs that were left out."""
        from reluctant.networks.network import ELEMENTWISE_LINKS

        link = self.given_link
        return link if self.output is None or link in ELEMENTWISE_LINKS else "identity"

    def say(self, text: str) -> None:
        """A word for the person, unless quiet."""
        if not self.quiet:
            note(text)


NAMES = {"rng": "seed"}  # arguments of the library that have another name here
OWN_OPTIONS = {"x": "--input", "eps": "--eps", "tol": "--tol", "narrowest": "--narrowest", "attempts": "--attempts"}


def flag_of(argument: str) -> str | None:
    """The flag of an argument of the library; None where no option sets it."""
    if argument in OWN_OPTIONS:
        return OWN_OPTIONS[argument]
    name = NAMES.get(argument, argument)
    return f"--{name.replace('_', '-')}" if name in {each.name for each in fields(TargetOptions)} else None


def with_target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command every field of its dataclasses of options as an option; it is called with the dataclasses.

    What else it takes comes first, then the fields of its dataclasses, in the order of its signature.
    """
    parameters = inspect.signature(command, eval_str=True).parameters.values()
    groups: dict[str, Any] = {each.name: each.annotation for each in parameters if is_dataclass(each.annotation)}
    own = [each for each in parameters if each.name not in groups]
    names = {group: _options_of(kind) for group, kind in groups.items()}

    @wraps(command)
    def with_options(**arguments: Any) -> Any:
        made = {
            group: groups[group](**{each.name: arguments.pop(each.name) for each in options})
            for group, options in names.items()
        }
        return command(**arguments, **made)

    shown = [*own, *(each for options in names.values() for each in options)]
    with_options.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    with_options.__annotations__ = {each.name: each.annotation for each in shown}
    return with_options


def _options_of(kind: Any) -> list[inspect.Parameter]:
    """The fields of a dataclass as options of a command."""
    hints = inspect.get_annotations(kind, eval_str=True)
    fields = inspect.signature(kind).parameters.values()
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[each.name]) for each in fields]


@contextmanager
def opened_target(options: TargetOptions, target: str) -> Iterator[Counting]:
    """Open a target, show progress, and on Ctrl-C or SIGTERM say what was kept and how to go on."""
    with stoppable() as stop, show_waits(options.quiet), options.open(target) as oracle:
        try:
            with progress(oracle, options.quiet):
                yield oracle
        except KeyboardInterrupt:
            note(_how_to_resume(options, oracle))
            raise typer.Exit(stop.status) from None
        if options.verbose and not options.quiet:
            for stage, rows in oracle.ledger.stages.items():
                note(f"{stage}: {rows.asked} rows asked, {rows.sent} sent, {rows.replayed} replayed")


def _how_to_resume(options: TargetOptions, oracle: Counting) -> str:
    spent = f"Stopped after {oracle.queries} queries."
    if options.transcript is None:
        return f"{spent} They are not kept; next time give --transcript DIR."
    return f"{spent} Those that were answered are kept in {options.transcript}; run the same command again to go on."


def _bounds(text: str | None) -> tuple[Any, Any] | None:
    if text is None:
        return None
    if text.endswith(".npy"):
        bounds = read_array("--domain", Path(text))
        if bounds.ndim != 2 or len(bounds) != 2:
            raise InvalidInput.about("--domain", got=f"shape {bounds.shape}", expected="(2, d): low and high bounds")
        return bounds[0], bounds[1]
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError as error:
        raise InvalidInput.about("--domain", got=f"'{text}'", expected=BOUNDS) from error
    return low, high


NOT_REPEATED = {"quiet", "verbose"}  # options that change no result


def command_line(
    command: str, target: str, options: TargetOptions, *others: Any, defaults: Mapping[str, Any] | None = None
) -> str:
    """The command as one would type it: every option that is not at its default, and nothing that may be a key."""
    from reluctant.oracles.http.security import shown_command_target, shown_request

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

"""Commands about a network: `extract` recovers it, `learn` learns it, `verify` holds one in a file against a target."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import reluctant as rl
from reluctant.cli.advice import advise, ending, shown_network, spent
from reluctant.cli.files import NetworkOut, check_network_path, check_record_path, print_result, write_network
from reluctant.cli.options import TargetArgument, TargetOptions, opened_target, with_target_options
from reluctant.errors import BudgetExhausted, InvalidInput, LinkMismatch
from reluctant.interface.classification import largest_told
from reluctant.interface.digits import Behind, answer_kind, in_unit, is_one_hot
from reluctant.networks import ReLUNetwork
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.numerics import FloatArray, as_generator
from reluctant.oracles import Counting, Kind, Linked
from reluctant.oracles.links import NOISY_SLACK, ToFirst, answer_ends, in_percent, last_raw_answers, noun_behind
from reluctant.results import Result
from reluctant.run_record import Record
from reluctant.verification import Verification

__all__ = ["extract", "learn", "verify"]


@with_target_options
def extract(
    target: TargetArgument,
    options: TargetOptions,
    out: NetworkOut = None,
    attempts: Annotated[int, typer.Option(help="How often to start again on another line.")] = 4,
) -> int:
    """Recover the network behind a target exactly, and verify it.

    Any number of layers and outputs, answers in float64. It finds out by itself how many layers there are. A large
    network with one hidden layer costs about as many answers as it has parameters, verification included (a query
    brings one answer for each output), a small one some times as many; two layers cost 1.3 queries per parameter with
    many inputs, 15 and more with few. With --domain nothing outside is asked, and only one hidden layer can be
    recovered. Exit status 1 if it was not recovered: the outcome is printed, and what was found is
    written beside the name given, as NAME.partial.onnx.

    Example: reluctant extract model.onnx -o copy.onnx --precision float64 --transcript answers

    Example: reluctant extract images.onnx --precision float64 --domain 0,1 --budget 200000
    """
    check_network_path(out)
    check_record_path(options.json)
    with opened_target(options, target) as oracle:
        found = rl.extract(oracle, rng=options.seed, attempts=attempts)
        record = Record.of(oracle, "extract", options.seed, found.ok, extraction=found)
    written = write_network(found, out, options.written_link)
    print_result(record, options.json, _extracted_lines(found, record, options.written_link, written))
    for failure in found.evidence.get("failures", []):
        options.say(f"{'tried first' if found.ok else 'attempt failed'}: {failure}")
    advise(found, record, target, options)
    return 0 if found.ok else 1


def _layers(network: ReLUNetwork) -> str:
    hidden = [str(width) for width in network.widths[1:-1]]
    layers = {0: "No hidden layer", 1: "One hidden layer"}.get(len(hidden), f"{len(hidden)} hidden layers")
    neurons = "neuron" if hidden == ["1"] else "neurons"
    return f"{layers}: {', '.join(hidden)} {neurons}." if hidden else f"{layers}."


def _extracted_lines(found: Result, record: Record, link: str, written: Path | None) -> list[str]:
    lines = ending(found, record)
    if found.network is not None:
        lines += [*shown_network(found, link), _layers(found.network)]
    parts = ("reach", "layers", "verification", "certificate", "limits")
    lines += [str(found.evidence[part]) for part in parts if found.evidence.get(part)]
    return [*lines, spent(record, written)]


# ---- learn


@with_target_options
def learn(
    target: TargetArgument,
    options: TargetOptions,
    out: NetworkOut = None,
    eps: Annotated[
        float, typer.Option(help="Square error allowed for Gaussian inputs, relative to the target's variance.")
    ] = 1e-6,
    narrowest: Annotated[
        float,
        typer.Option(
            help="Width of a bump that must not be missed, up to distance 1 from the origin (at distance 3 it is seen "
            "if 55 times as wide); the cost grows like 1/width."
        ),
    ] = 0.01,
) -> int:
    """Learn a network with one hidden layer to a given accuracy.

    Its neurons may lie anywhere: this is for what extract does not promise, bumps that no line meets, clusters of
    neurons that cancel, answers in float32 or rounded. It asks 29 / NARROWEST random points and tries exact extraction.
    Where that is not verified or does not explain the points, it follows the creases it finds there and fits the rest.
    The error it prints was measured also where random points never are, close to creases. A bump narrower than the
    width it prints, or farther out, could have been missed. Exit status 1 if the error is larger than EPS: the best
    network is then written as NAME.partial.onnx.

    Example: reluctant learn model.onnx --eps 1e-8 -o copy.onnx

    Example: reluctant learn package.module:predict --dim 12 --narrowest 0.001 --transcript answers
    """
    check_network_path(out)
    check_record_path(options.json)
    with opened_target(options, target) as oracle:
        found = rl.learn(oracle, eps=eps, rng=options.seed, narrowest=narrowest)
        record = Record.of(oracle, "learn", options.seed, found.ok, learning=found)
    written = write_network(found, out, options.written_link)
    print_result(record, options.json, _learned_lines(found, record, options.written_link, written))
    advise(found, record, target, options)
    return 0 if found.ok else 1


def _learned_lines(found: Result, record: Record, link: str, written: Path | None) -> list[str]:
    """What happened, how accurate the network is, and what could have been missed."""
    lines = ending(found, record)
    lines += shown_network(found, link)
    lines += [
        str(found.evidence[part]) for part in ("accuracy", "limits", "risk", "theorem") if found.evidence.get(part)
    ]
    return [*lines, spent(record, written)]


# ---- verify

LINK_ROWS = 3  # asked to see what the target answers
TOLD_ROWS = 12  # asked to see how many of its probabilities it tells
FAR = 100.0  # scale at which values are hardly between 0 and 1 by chance
MOSTLY = 0.9  # of the rows
LARGEST_FEW = "The network was written with a softmax: the target's largest probabilities were read through it."


@with_target_options
def verify(
    target: TargetArgument,
    network: Annotated[Path, typer.Argument(metavar="NETWORK", help="The network to compare it with: .onnx or .npz.")],
    options: TargetOptions,
    tol: Annotated[
        float | None, typer.Option(help="Largest error accepted, relative to the output's deviation.")
    ] = None,
) -> int:
    """Ask a target where a network could be wrong, and compare.

    Looks at three scales, on the network's creases and beside them. A network that was written with a softmax,
    sigmoid or tanh is compared behind it: answers of the target are read as --link would read them, without the option,
    and where they saturate far out inside a box in which they do not. If the target answers values instead, it is
    compared before its link, and that is said. Exit status 1 if they disagree.

    Example: reluctant verify model.onnx recovered.onnx --precision float64
    """
    check_record_path(options.json)
    if tol is not None and not tol > 0:
        raise InvalidInput.about("--tol", got=tol, expected="a number above 0")
    candidate = ReLUNetwork.load(network)
    with opened_target(options, target) as oracle:
        found, compared = _verified(oracle, candidate, options, tol)
        hint = "" if found.ok else _why_not(oracle, candidate, options)
        record = Record.of(oracle, "verify", options.seed, found.ok, verification=found, compared=compared)
    print_result(record, options.json, _compared_lines(found, compared, hint, record))
    return 0 if found.ok else 1


def _verified(
    oracle: Counting, candidate: ReLUNetwork, options: TargetOptions, tol: float | None
) -> tuple[Verification, str]:
    """The comparison, and a sentence about its form: where the target answers nothing that a link reads, before it."""
    read, compared = _as_the_file_says(oracle, candidate, options)
    try:
        return rl.verify(read, candidate, rng=options.seed, tol=tol), compared
    except LinkMismatch as error:
        if read is oracle:
            raise
        _refuse_unreadable(oracle, read, candidate, options, error)
    read, compared = _before_its_link(oracle, candidate)
    return rl.verify(read, candidate, rng=options.seed, tol=tol), compared


def _refuse_unreadable(
    oracle: Counting, read: Counting, candidate: ReLUNetwork, options: TargetOptions, error: LinkMismatch
) -> None:
    """Raise of labels, percentages and noisy probabilities: what the link refused is no answer of values."""
    told, p = Behind.last_of(read), last_raw_answers(read)
    if p is not None and in_percent(p):
        raise error
    if told is not None and told.certain:
        fix = "How many labels are the same, train_student and audit measure."
        raise _refused(f"labels, nothing but {told.ends('and')}", fix) from error
    if candidate.link == "sigmoid" and p is not None and answer_kind(p) is Kind.PROBABILITIES:
        raise InvalidInput.about(
            "TARGET", got="probabilities that sum to one, as a softmax gives them",
            expected="independent ones, as of the sigmoid that the network was written with",
            fix="Hold it against a network that was written with a softmax.",
        ) from error  # fmt: skip
    if _add_up(p) or (candidate.link in ELEMENTWISE_LINKS and _stay_between(oracle, candidate, options)):
        fix = "How close a network comes to them, train_student and audit measure."
        moved = f"{noun_behind(candidate.link)} that noise has moved, which no link reads"
        raise _refused(moved, fix) from error


def _add_up(p: FloatArray | None) -> bool:
    """True of probabilities of classes, but for noise."""
    return (
        p is not None and bool(np.mean(np.abs(p.sum(axis=1) - 1) < NOISY_SLACK) >= MOSTLY) and in_unit(p, NOISY_SLACK)
    )


def _stay_between(oracle: Counting, candidate: ReLUNetwork, options: TargetOptions) -> bool:
    """True if far out answers are those of its link, but for noise, and the network's values are not. Cost: 3 rows."""
    rows, (low, high) = _some_rows(oracle, options, FAR), answer_ends(candidate.link)
    told, values = ((each - low) / (high - low) for each in (oracle.answer(rows), candidate(rows)))
    return in_unit(told, NOISY_SLACK) and not in_unit(values, NOISY_SLACK)


def _refused(got: str, fix: str) -> InvalidInput:
    return InvalidInput.about("TARGET", got=got, expected="values or probabilities to hold a network against", fix=fix)


def _compared_lines(found: Verification, compared: str, hint: str, record: Record) -> list[str]:
    return [line for line in (str(found), compared, hint, f"{record.queries} queries.") if line]


def _as_the_file_says(oracle: Counting, candidate: ReLUNetwork, options: TargetOptions) -> tuple[Counting, str]:
    """The target in the form that the network was written for, and a sentence about it. Cost: 3 rows with a link."""
    link = candidate.link
    if options.link != "identity" or link == "identity" or candidate.outputs != oracle.outputs:
        return oracle, ""
    read, refused = Counting(Linked(oracle.inner, link), oracle.ledger, oracle.facts.domain), None
    try:
        read.answer(_some_rows(oracle, options))
    except LinkMismatch as error:
        refused = error
    if link == "softmax" and _tells_largest_few(oracle, last_raw_answers(read), options):
        return Counting(Linked(oracle.inner, "top-k"), oracle.ledger, oracle.facts.domain), LARGEST_FEW
    if refused is not None:
        _refuse_unreadable(oracle, read, candidate, options, refused)
        return _before_its_link(oracle, candidate)
    return read, f"The network was written with a {link}: the target's {noun_behind(link)} were read through it."


def _tells_largest_few(oracle: Counting, few: FloatArray | None, options: TargetOptions) -> bool:
    """True if the target tells its largest probabilities alone. Cost: 12 rows where each of these few misses some."""
    if few is None or not ((few == 0) | np.isnan(few)).any(axis=1).all():
        return False
    return largest_told(oracle.answer(_some_rows(oracle, options, rows=TOLD_ROWS)), no_values=True) is not None


def _before_its_link(oracle: Counting, candidate: ReLUNetwork) -> tuple[Counting, str]:
    """A target that answers values, beside a network that is written with a link."""
    if candidate.link in ELEMENTWISE_LINKS or not _holds_log_ratios(candidate):
        return oracle, f"Compared before its {candidate.link}: the target's answers are not those of one."
    return Counting(ToFirst(oracle.inner), oracle.ledger, oracle.facts.domain), (
        f"The network was written with a {candidate.link} and holds log-ratios to the first class, whose own is 0; the "
        "target's answers are not those of one. Their differences to the first were compared: the file has no more."
    )


def _holds_log_ratios(network: ReLUNetwork) -> bool:
    """True if the first of several outputs is 0 everywhere."""
    parts = [network.weights[-1][0], network.biases[-1][0], 0.0 if network.skip is None else network.skip[0]]
    return not any(np.any(part) for part in parts)


def _why_not(oracle: Counting, candidate: ReLUNetwork, options: TargetOptions) -> str:
    """What the target answers, where no network without a link can agree with it. Cost: 3 rows."""
    if options.link != "identity" or candidate.link != "identity":
        return ""
    try:
        answers = oracle.answer(_some_rows(oracle, options))
    except BudgetExhausted:
        return ""
    if is_one_hot(answers):
        return "The target answers labels, which the values of a network cannot be held against."
    if answer_kind(answers) is Kind.PROBABILITIES:
        return "The target answers probabilities, and the network was written without a link: give --link softmax."
    if in_unit(answers):
        return "The target answers numbers between 0 and 1: if they are those of a sigmoid, give --link sigmoid."
    return ""


def _some_rows(oracle: Counting, options: TargetOptions, scale: float = 1.0, rows: int | None = None) -> FloatArray:
    return oracle.facts.domain.sample(as_generator(options.seed), rows or LINK_ROWS, oracle.dim, scale)

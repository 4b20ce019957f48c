"""`reluctant extract`, `learn` and `verify`: the commands about a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import reluctant as rl
from reluctant.cli.advice import advise, ending, measured, shown_network, spent
from reluctant.cli.files import (
    NetworkOut,
    check_network_path,
    check_record_path,
    print_and_write,
    print_result,
    write_network,
)
from reluctant.cli.options import Seconds, TargetArgument, TargetOptions, opened_target, with_target_options
from reluctant.errors import BudgetExhausted, InvalidInput
from reluctant.extraction import FromLabels
from reluctant.geometry.boundary import are_whole_numbers
from reluctant.interface.noise import answer_kind, in_unit, is_one_hot
from reluctant.messages import Diagnosis
from reluctant.networks import ReLUNetwork
from reluctant.numerics import as_generator
from reluctant.oracles import Counting, Kind
from reluctant.oracles.links import noun_behind
from reluctant.results import Result
from reluctant.run_record import Record
from reluctant.verification.written_link import ComparedForm, verify_as_written


@with_target_options
def extract(
    target: TargetArgument,
    options: TargetOptions,
    out: NetworkOut = None,
    labels: Annotated[
        bool,
        typer.Option(
            "--labels",
            help="Use labels alone: whole numbers, else the index of the largest output, or one output at 0.5.",
        ),
    ] = False,
    attempts: Annotated[int, typer.Option(help="How often to start again on another line.")] = 4,
    seconds: Seconds = None,
) -> int:
    """Recover the network behind a target exactly, and verify it.

    Works for any number of layers and outputs from answers in float64, and for one or two hidden layers from fewer
    digits. It finds the number of layers itself. A large network with one hidden layer costs about one answer per
    parameter, verification included; a query brings one answer for each output. A small network costs a few times as
    many. Two hidden layers cost 1.3 queries per parameter with many inputs, 15 and more with few. With --domain it asks
    nothing outside, and recovers one hidden layer, or two from float32 answers. From labels alone it recovers one
    hidden layer, and from two labels sometimes two, for 50 labels a parameter or more. Exit status 1 if the network was
    not recovered: the outcome is printed, and a partial network is written as NAME.partial.onnx.

    Example: reluctant extract model.onnx -o copy.onnx --precision float64 --transcript answers

    Example: reluctant extract images.onnx --precision float64 --domain 0,1 --budget 200000
    """
    check_network_path(out)
    check_record_path(options.json)
    with opened_target(options, target) as oracle:
        found = rl.extract(oracle, labels=labels, rng=options.seed, attempts=attempts, seconds=seconds)
        record = Record.of(oracle, "extract", options.seed, found.ok, extraction=found)
    link = options.written_link
    print_and_write(
        record, options.json, lambda: write_network(found, out, link),
        lambda written: _extracted_lines(found, record, link, written),
    )  # fmt: skip
    facts = measured(found)
    failures, named = facts.failures, [f"{each.method}, {each.rows} rows" for each in facts.attempts]
    for tried in [": ".join(each) for each in zip(named, failures, strict=False)] + list(failures[len(named) :]):
        options.say(f"{'tried first' if found.ok else 'attempt failed'}: {tried}")
    advise(found, record, target, options, out, {"labels": labels, "seconds": seconds})
    return 0 if found.ok else 1


def _layers(network: ReLUNetwork) -> str:
    hidden = [str(width) for width in network.widths[1:-1]]
    layers = {0: "No hidden layer", 1: "One hidden layer"}.get(len(hidden), f"{len(hidden)} hidden layers")
    neurons = "neuron" if hidden == ["1"] else "neurons"
    return f"{layers}: {', '.join(hidden)} {neurons}." if hidden else f"{layers}."


def _extracted_lines(found: Result, record: Record, link: str, written: Path | None) -> list[str]:
    lines = ending(found, record)
    if found.network is not None:
        unverified = "It is not verified: the target may have other layers and neurons."
        lines += [*shown_network(found, link), _layers(found.network) if found.ok else unverified]
    facts = measured(found)
    if facts.inside is not None:
        lines.append(str(Diagnosis("asked-inside", {"box": str(facts.inside)})))
    certificate = facts.certificate if found.ok else None  # what was missed at most, of a network that agrees
    lines += map(str, filter(None, (facts.gradients, facts.layers, facts.verification, certificate, facts.limits)))
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
    seconds: Seconds = None,
) -> int:
    """Learn a network with one hidden layer to a given accuracy.

    Use it where extract makes no promise: bumps that no line meets, clusters of neurons that cancel, answers in float32
    or rounded. It asks 29 / NARROWEST random points and tries exact extraction. If that fails or does not explain the
    points, it follows the creases near them and fits the rest. The error it prints is also measured close to creases,
    where random points never are. It may miss a bump that is narrower than the printed width, or farther out. Exit
    status 1 if the error exceeds EPS: the best network is then written as NAME.partial.onnx.

    Example: reluctant learn model.onnx --eps 1e-8 -o copy.onnx

    Example: reluctant learn package.module:predict --dim 12 --narrowest 0.001 --transcript answers
    """
    check_network_path(out)
    check_record_path(options.json)
    with opened_target(options, target) as oracle:
        found = rl.learn(oracle, eps=eps, rng=options.seed, narrowest=narrowest, seconds=seconds)
        record = Record.of(oracle, "learn", options.seed, found.ok, learning=found)
    lines = ending(found, record)
    lines += shown_network(found, options.written_link)
    facts = measured(found)
    lines += map(str, filter(None, (facts.accuracy, facts.limits, facts.risk)))
    print_and_write(
        record, options.json, lambda: write_network(found, out, options.written_link),
        lambda written: [*lines, spent(record, written)],
    )  # fmt: skip
    advise(found, record, target, options, out, {"seconds": seconds})
    return 0 if found.ok else 1


# ---- verify

POINTS, LABEL_POINTS = 64, 128  # of each scale, if not said: of values, and of the boundary
KIND_ROWS = 3  # asked to see what the target answers


@with_target_options
def verify(
    target: TargetArgument,
    network: Annotated[Path, typer.Argument(metavar="NETWORK", help="The network to compare it with: .onnx or .npz.")],
    options: TargetOptions,
    tol: Annotated[
        float | None,
        typer.Option(
            help="Largest error accepted, relative to the output's deviation; with --labels, error of the boundary, in "
            "typical inputs (1e-6), or more where labels flicker."
        ),
    ] = None,
    points: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Random inputs of each of the four scales (64); with --inputs, as many rows of it; with --labels, "
            "points of the boundary at each of two scales (128).",
        ),
    ] = None,
    labels: Annotated[
        bool, typer.Option("--labels", help="Compare labels alone, on both sides of the network's decision boundary.")
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="For --labels and one output that is no whole number: its label is the side of this number (0.5)."
        ),
    ] = None,
) -> int:
    """Ask a target where a network could be wrong, and compare.

    Compares at four scales, on the network's creases and beside them. A network written with a softmax, sigmoid or
    tanh is compared behind it, as --link would, without the option. Where the target's answers saturate far out, it
    stays inside a box in which they do not. If the target answers values instead, both are compared before the link,
    and the output says so. With --labels, labels alone are compared, at points of the decision boundary and random
    inputs. Exit status 1 if they disagree.

    Example: reluctant verify model.onnx recovered.onnx --precision float64

    Example: reluctant verify package.module:predict recovered.onnx --dim 30 --labels
    """
    check_record_path(options.json)
    if tol is not None and not tol > 0:
        raise InvalidInput.about("--tol", got=tol, expected="a number above 0")
    candidate = ReLUNetwork.load(network)
    if labels:
        return _verify_labels(target, candidate, options, tol, points, threshold)
    if threshold is not None:
        raise InvalidInput.about("--threshold", got=threshold, expected="none without --labels", fix="Give --labels.")
    points = POINTS if points is None else points
    with opened_target(options, target) as oracle:
        if options.given_link == "identity":
            found, form = verify_as_written(oracle, candidate, rng=options.seed, tol=tol, points=points)
        else:
            found, form = (
                rl.verify(oracle, candidate, rng=options.seed, tol=tol, points=points),
                ComparedForm.AS_GIVEN,
            )
        compared = _compared(form, candidate.link)
        hint = "" if found.ok else _why_not(oracle, candidate, options)
        record = Record.of(oracle, "verify", options.seed, found.ok, verification=found, compared=compared)
    lines = (str(found), compared, hint, f"{record.queries} queries.")
    print_result(record, options.json, [line for line in lines if line])
    return 0 if found.ok else 1


def _verify_labels(
    target: str, candidate: ReLUNetwork, options: TargetOptions,
    tol: float | None, points: int | None, threshold: float | None,
) -> int:  # fmt: skip
    with opened_target(options, target) as oracle:
        found = rl.verify_labels(
            oracle, candidate, rng=options.seed, tol=FromLabels.boundary_error if tol is None else tol,
            points=LABEL_POINTS if points is None else points, threshold=threshold,
        )  # fmt: skip
        record = Record.of(oracle, "verify", options.seed, found.ok, verification=found)
    print_result(record, options.json, [str(found), f"{record.queries} queries."])
    return 0 if found.ok else 1


def _compared(form: ComparedForm, link: str) -> str:
    """A sentence about the form of the comparison; empty where there is no other."""
    if form is ComparedForm.AS_GIVEN:
        return ""
    if form is ComparedForm.THROUGH_LINK:
        return f"The network was written with a {link}: the target's {noun_behind(link)} were read through it."
    if form is ComparedForm.LARGEST_FEW:
        return f"The network was written with a {link}: the target's largest probabilities were read through it."
    if form is ComparedForm.BEFORE_LINK:
        return f"Compared before its {link}: the target's answers are not those of one."
    return (
        f"The network was written with a {link} and holds log-ratios to the first class, whose own is 0; the target's "
        "answers are not those of one. Their differences to the first were compared: the file has no more."
    )


def _why_not(oracle: Counting, candidate: ReLUNetwork, options: TargetOptions) -> str:
    """The kind of the answers, where no network without a link can agree with them. Cost: 3 rows."""
    if options.given_link != "identity" or candidate.link != "identity":
        return ""
    try:
        answers = oracle.answer(oracle.facts.domain.sample(as_generator(options.seed), KIND_ROWS, oracle.dim))
    except BudgetExhausted:
        return ""
    if is_one_hot(answers):
        return "The target answers labels, which the values of a network cannot be held against: give --labels."
    if are_whole_numbers(answers):
        return (
            "The target answers whole numbers. If they are labels, values cannot be compared with them: give --labels."
        )
    if answer_kind(answers) is Kind.PROBABILITIES:
        return "The target answers probabilities, and the network was written without a link: give --link softmax."
    if in_unit(answers):
        return "The target answers numbers between 0 and 1: if they are those of a sigmoid, give --link sigmoid."
    return ""

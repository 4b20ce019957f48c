"""Steps that recover: the interface, the span, the network by extraction, learning or training, and its comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from reluctant.audit.budget import TRAINING, needed_rows, rows_needed
from reluctant.audit.facts import Truth, finite
from reluctant.audit.findings import AuditedTarget, Findings, Skip, skip_where
from reluctant.errors import BudgetExhausted, ReluctantError, TargetError
from reluctant.evidence import COPY_DIRECTIONS, OWN_LINK, Measured
from reluctant.extraction import extract
from reluctant.interface import Interface, check_health
from reluctant.interface.diagnoses import FAR_ENOUGH
from reluctant.interface.kinds import IntegerKind, Shape
from reluctant.interface.noise import FITTED_DECIMALS, are_labels, ask
from reluctant.interface.reach import FEW_ROWS, answered_box, likely_link, probability_format
from reluctant.learning import learn
from reluctant.learning.student import ROWS, STEPS, rows_like, train_student
from reluctant.networks import ReLUNetwork
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.numerics import FloatArray, as_generator
from reluctant.oracles import Counting, Kind, Linked
from reluctant.oracles.ledger import Limit
from reluctant.oracles.links import AnswerLink
from reluctant.results import Outcome, Result
from reluctant.span import Span, Subspace, output_space, recover_span
from reluctant.span.answer_space import QUIET_ROWS
from reluctant.span.recover import values_refusal
from reluctant.verification.alignment import compare
from reluctant.verification.comparison import confirm_creases

SURELY = 5.0  # deviations of noise that hardly any of so few answers goes beyond


def check_interface(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """Check the interface as it answers, then as it is read: behind a link, or one output. Cost: 102 or 204 rows.

    Where it does not answer far out, a range is looked for in which it does, and checked again: from then on nothing is
    asked outside. Cost: at most 240 rows more, and the check. Where all answers are the same, honest inputs are asked.
    """
    target = _looked(oracle, known, seed)
    given = known.given if target.reach is None else known.given.inside(target.reach, seed)
    known = replace(known, given=given, target=_with_rare_labels(oracle, target, given.inputs, seed))
    rest = AuditedTarget(without=known.target.without).seen(oracle)
    return {"given": given, "target": known.target, "rows_needed": rows_needed(rest, known)}


def _looked(oracle: Counting, known: Findings, seed: int) -> AuditedTarget:
    try:
        found = _check(oracle, known, seed)
    except TargetError:
        inside = _check_inside(oracle, known, seed)
        if inside is None:
            raise
        return inside
    served = found.served
    near = served is not None and served.largest_scale is not None and served.largest_scale < FAR_ENOUGH
    nowhere = served is not None and served.refusal is Outcome.NON_FINITE
    limited = oracle.facts.domain.is_space and (near or nowhere)
    return (_check_inside(oracle, known, seed) if limited else None) or found


def _check_inside(oracle: Counting, known: Findings, seed: int) -> AuditedTarget | None:
    """The check inside the range that is answered; None where there is none."""
    links: tuple[AnswerLink, ...] = ("identity", "softmax") if known.target.link == "identity" else (known.target.link,)
    found: AuditedTarget | None = None
    for link in links if oracle.facts.domain.is_space else ():
        written = None if found is None else found.written
        read = AuditedTarget(link, written=written).seen(oracle, known.given.output)
        box = answered_box(read, as_generator(seed))
        if box is None:
            break
        found = replace(_check(AuditedTarget(reach=box).seen(oracle), known, seed), reach=box)
        if found.served is not None and found.served.answers is not Kind.PROBABILITIES:
            break  # else once more: where a class is certain to the last digit there is no value behind it
    return found


def _check(oracle: Counting, known: Findings, seed: int) -> AuditedTarget:
    """The answers as they are; percentages, and probabilities among NaN, as plain ones. Cost: a second check of these.

    What may be percentages and may be values is divided only where a link was given. Numbers of classes are left out
    where values stand beside them: the larger of the two is no label.
    """
    served = check_health(oracle, rng=seed)
    if served.class_columns and known.given.output is None and not known.target.linked:
        without = served.class_columns
        kept = [k for k in range(oracle.outputs) if k not in without]
        found = _check(AuditedTarget(without=without).seen(oracle), known, seed)
        return replace(found, without=tuple(sorted([*without, *(kept[k] for k in found.without)])))
    written = probability_format(served)
    if written is None or not (served.are_probabilities or known.target.linked):
        return _read(oracle, known, served, seed)
    plain = AuditedTarget(written=written).seen(oracle)
    return replace(_read(plain, known, check_health(plain, rng=seed), seed), written=written)


def _read(oracle: Counting, known: Findings, served: Interface, seed: int) -> AuditedTarget:
    """The audit finds a softmax, sigmoid or tanh by itself, and reads answers through it."""
    output = known.given.output
    noisy = _are_noisy_probabilities(oracle, known, served, seed)
    if known.target.linked or output is not None:
        health = check_health(AuditedTarget(known.target.link, noisy=noisy).seen(oracle, output), rng=seed)
        return replace(known.target, served=served, health=health, noisy=noisy)
    link = likely_link(oracle, served, as_generator(seed))
    try:
        behind = None if link is None else check_health(AuditedTarget(link, noisy=noisy).seen(oracle), rng=seed)
    except ReluctantError:
        behind = None  # these values cannot be read
    certain = behind is not None and behind.refusal is Outcome.NON_FINITE and served.are_probabilities
    certain = certain and served.deterministic and served.decimals is None  # extraction finds a box where it is not
    if link is None or behind is None or (behind.refusal is not None and not certain):
        return replace(known.target, served=served, health=served, looked_behind=behind is not None)
    return replace(known.target, served=served, health=behind, link=link, noisy=noisy, certain=certain)


def _are_noisy_probabilities(oracle: Counting, known: Findings, served: Interface, seed: int) -> bool:
    """True if answers are probabilities but for fresh noise: below 0 by no more than it, adding up to 1 in the mean.

    Cost: none where there is no noise, or it is too small to take one for anything else.
    """
    if served.deterministic or served.answers is Kind.PROBABILITIES or known.target.link != "softmax":
        return not served.deterministic and served.answers is Kind.PROBABILITIES
    answers = ask(oracle, oracle.facts.domain.sample(as_generator(seed), FEW_ROWS, oracle.dim))
    slack = SURELY * served.fresh_noise
    off = abs(float(answers.sum(axis=1).mean()) - 1) / np.sqrt(oracle.outputs / FEW_ROWS)
    return bool(np.all((answers >= -slack) & (answers <= 1 + slack)) and off <= slack)


def _with_rare_labels(oracle: Counting, target: AuditedTarget, inputs: FloatArray, seed: int) -> AuditedTarget:
    """The target; with other labels among honest inputs (n, d) it does not count as constant.

    Cost: none where it is not; else a row for each honest input, given or drawn, and a few.
    """
    served = target.served
    if served is None or served is not target.health or served.refusal is not Outcome.CONSTANT:
        return target
    inside = replace(target, link="identity").seen(oracle)
    few = inside.facts.domain.sample(as_generator(seed), FEW_ROWS, inside.dim)
    try:
        answers = ask(inside, np.concatenate([few, inputs]))
    except (BudgetExhausted, TargetError):
        return target
    if not are_labels(answers) or np.ptp(answers, axis=0).max() == 0:
        return target
    rare = replace(served, shape=Shape.PIECEWISE_CONSTANT)
    return replace(target, served=rare, health=rare)


# ---- span

WIDE_ANSWERS = 32  # outputs: last hidden layers of fewer neurons than that are rare
TREE_ROWS = 10_000  # a few splits of a few inputs take fewer; those of a forest never end
FROM_LABELS = (Outcome.PIECEWISE_CONSTANT, Outcome.NOT_PIECEWISE_LINEAR, Outcome.OUT_OF_REACH)


def span_from_labels(known: Findings, outputs: int) -> bool:
    """True if values do not give the span, and labels of so many outputs may, of the answers as they are.

    Values are no pieces of linear functions, or rounding leaves nothing of them, or none can be read through a link.
    """
    served, health = known.target.served, known.target.health
    if served is None or health is None:
        return False
    refusal = values_refusal(health)
    coarse = refusal is Outcome.TOO_NOISY and served.deterministic and (outputs > 1 or health.raw is None)
    unread = known.target.linked and refusal is Outcome.NON_FINITE
    readable = served.refusal not in (Outcome.CONSTANT, Outcome.NON_FINITE)
    return refusal in FROM_LABELS or ((coarse or unread) and readable)


def find_span(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """From values; from labels where these do not give it. Trees have too many splits for more than a few rows.

    Many outputs may lie in a space of few dimensions, the width of the last hidden layer. Cost: that and 20 rows.
    """
    if known.target.health is not None and known.target.health.trees:
        open_ = Skip("splits-of-trees", settles=False, rows=TREE_ROWS)  # which inputs they split is open
        oracle = Limit(TREE_ROWS, refusal=lambda wanted, most: open_).of(oracle)
    labels = span_from_labels(known, oracle.outputs)
    if not labels and (known.target.health is None or values_refusal(known.target.health) is not None):
        skip_where(known, Outcome.CONSTANT, Outcome.NON_FINITE, missing="directions")
    # Coarse directions of few digits do not pass verification, and finding them anew costs more.
    few = known.target.health is not None and known.target.health.number_format != "float64"
    threshold = _middle(oracle, known, seed) if labels else None
    span = recover_span(oracle, labels=labels, threshold=threshold, fine=few, rng=seed)
    wide = not labels and oracle.outputs >= WIDE_ANSWERS
    return {"span": span, "answer_space": output_space(oracle, rng=seed, quiet=QUIET_ROWS) if wide else None}


def _middle(oracle: Counting, known: Findings, seed: int) -> float | None:
    """An answer of one output that others are on both sides of, which is a label too; None where it answers labels."""
    if oracle.outputs > 1 or known.target.health is None or known.target.health.answers is Kind.LABELS:
        return None
    return float(np.median(ask(oracle, oracle.facts.domain.sample(as_generator(seed), FEW_ROWS, oracle.dim))))


# ---- network

LONGER = 2  # times the steps that `train_student` takes by itself
CLEARLY = 0.1  # of a weight vector: so much of it lies outside a span by no error of either
NARROW = 0.25  # of the inputs: training in so few directions of a span pays for finding them
FOUND = 1e-3  # of a unit weight vector: a neuron this close to the true one counts as it


def extract_network(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """Exact extraction with its own verification, from labels where the target answers nothing else."""
    refused = (Outcome.NOT_PIECEWISE_LINEAR, Outcome.PIECEWISE_CONSTANT, Outcome.CONSTANT)
    fitted = _fitted_to_decimals(oracle, known, seed)
    if fitted is not None:
        return {"extraction": fitted}
    if not known.target.of_labels:
        skip_where(known, *refused, missing="creases")
    found = extract(oracle, rng=seed).with_log_ratios()  # as other steps read the target
    if known.target.of_labels:  # its values are no answers of the target
        found = replace(found, evidence={**found.evidence, OWN_LINK: "identity"})
    ran_out = found.outcome is Outcome.OUT_OF_BUDGET
    wider = with_directions_of(found.network, known.span) if found.ok and found.network is not None else None
    short = ran_out and not known.target.may_be_clipped
    return {
        "extraction": found,
        **({} if wider is None else {"span": wider}),
        "needed_rows": needed_rows(oracle, known) if short else None,
        "clipped": Measured.of(found).clipped,
    }


def _fitted_to_decimals(oracle: Counting, known: Findings, seed: int) -> Result | None:
    """The network behind rounded probabilities that no other step can read; None where there is none, or it failed."""
    served, plain = (
        known.target.served,
        known.target.link == "identity" and known.given.output is None and not known.target.noisy,
    )
    if served is None or served.answers is not Kind.PROBABILITIES or served.decimals is None or not plain:
        return None
    if served.decimals < FITTED_DECIMALS or not served.deterministic:
        return None
    read = oracle.around(Linked(oracle.inner, "softmax"))
    found = extract(read, rng=seed)
    return replace(found, evidence={**found.evidence, OWN_LINK: "softmax"}) if found.ok else None


def with_directions_of(network: ReLUNetwork, span: Span | None) -> Span | None:
    """The span with the directions that a verified copy looks at besides; None where there are none.

    Random inputs may miss a direction that matters on few of them, where the search for creases met its neuron. One
    from labels that has more than the network can look at is unclear: stairs of rounded answers make up directions.
    """
    if span is None or not span.ok or network.depth < 2:
        return None
    skips = [w for (source, _), w in network.skips.items() if source == 0]
    most = int(np.linalg.matrix_rank(np.concatenate([network.weights[0], *skips])))
    if Measured.of(span).from_labels and span.rank > most:
        return replace(span, outcome=Outcome.RANK_UNCLEAR)
    rows = network.weights[0]
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    units = rows[sizes[:, 0] > 0] / sizes[sizes[:, 0] > 0]
    outside = units - units @ span.basis.T @ span.basis
    outside = outside[np.linalg.norm(outside, axis=1) > CLEARLY]
    if not len(outside):
        return None
    more = Subspace.spanned_by(outside, tol=CLEARLY)
    both = Subspace.spanned_by(np.concatenate([span.basis, more.basis]))
    outcome = Outcome.FULL_RANK if both.rank == both.dim else span.outcome
    angle = 0.0 if outcome is Outcome.FULL_RANK else float("nan")  # of the others' accuracy the copy says nothing
    evidence = {**span.evidence, COPY_DIRECTIONS: more.rank}
    return replace(span, outcome=outcome, subspace=both, angle=angle, evidence=evidence)


def learn_network(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """Learning, where exact extraction gave nothing and one hidden layer is still possible."""
    if known.extraction is not None and known.extraction.ok:
        raise Skip("recovered-exactly")
    if known.target.health is None:
        raise Skip("interface-unknown", settles=False)
    if known.target.refusal is not None:
        skip_where(known, known.target.refusal, missing="creases")
    if not oracle.facts.domain.is_space:
        raise Skip("bounded-domain", domain=oracle.facts.domain.describe())
    if known.target.reach is not None:
        raise Skip("bounded-reach", domain=known.target.reach.describe())
    if known.clipped is not None:
        raise Skip("clipped-inputs", settles=False)
    layers = None if known.extraction is None else Measured.of(known.extraction).layers
    if layers is not None and not layers.mostly_straight:
        raise Skip("several-layers", **layers.to_dict())
    found = learn(oracle, rng=seed).with_log_ratios()
    clipped = Measured.of(found).clipped  # what bends there is no neuron of a part either
    return {"learning": found} | ({} if clipped is None else {"clipped": clipped, "part": None})


def confirm_part(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """Confirm a part: the first-layer neurons of a network found in part whose creases the target shows."""
    if known.copy is not None:
        raise Skip("copy-exists")
    if known.clipped is not None:
        raise Skip("clipped-inputs")
    if known.target.may_be_clipped:
        raise Skip("may-be-clipped")
    network = None if known.extraction is None else known.extraction.network
    if network is None or known.target.health is None or network.depth < 2 or known.target.of_labels:
        raise Skip("no-part")
    own = as_generator(seed).spawn(1)[0]
    return {
        "part": confirm_creases(
            oracle, network, own, noise=known.target.health.noise, spread=known.target.health.spread
        )
    }


def train_network(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """A student on the answers as they are, where there is no copy."""
    if known.copy is not None:
        raise Skip("copy-exists")
    if known.target.health is None:
        raise Skip("interface-unknown", settles=False)
    skip_where(known.as_answered, Outcome.CONSTANT, Outcome.NON_FINITE)
    rows = rows_like(known.given.inputs, oracle.facts.domain, ROWS, as_generator(seed).spawn(1)[0])
    seconds = TRAINING * known.given.seconds
    span = known.span
    narrow = span is not None and span.ok and 0 < span.rank <= NARROW * span.subspace.dim
    basis = span.basis if span is not None and narrow else None
    result = train_student(
        oracle, inputs=rows, span=basis, steps=LONGER * STEPS, seconds=seconds,
        whole=_whole(known.as_answered.target.health), rng=seed,
    )  # fmt: skip
    found = {"training": _student_as_seen(result, known)}
    training = Measured.of(result).training
    hurried = training is not None and training.hurried and not result.ok
    return found | ({"timed_out": (*known.timed_out, "training")} if hurried else {})


def _whole(answered: Interface | None) -> IntegerKind | None:
    """The kind of whole numbers; what few answers showed to be values are values among many too."""
    if answered is None:
        return None
    return IntegerKind.SCORES if answered.answers is Kind.VALUES and answered.decimals == 0 else answered.integers


def _student_as_seen(result: Result, known: Findings) -> Result:
    """The student as other steps see the target: log-ratios behind a softmax; apart where they see no values."""
    measured = Measured.of(result)
    reads = measured.answers
    as_they_are = known.target.link == "identity" or known.given.output is not None
    if result.network is None or (reads is Kind.VALUES and as_they_are):
        return result
    softmax = measured.link not in ELEMENTWISE_LINKS
    if reads is Kind.PROBABILITIES and known.target.link not in ELEMENTWISE_LINKS and softmax:
        return replace(result, network=result.network.log_ratios())
    if reads is Kind.PROBABILITIES and known.target.link == "sigmoid":
        return result
    own = measured.link if reads is Kind.PROBABILITIES else "identity"
    return replace(result, evidence={**result.evidence, OWN_LINK: own})


def compare_with_truth(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """The recovered network beside the weights in the file. No queries."""
    parts = [run.network for run in (known.extraction, known.learning) if run is not None]
    found = next((network for network in (known.network, *parts) if network is not None), None)
    units, output = known.given.units, known.given.output
    if known.given.file is None:
        raise Skip("not-a-file")
    if found is None:
        raise Skip("no-network")
    try:
        whole = ReLUNetwork.load(known.given.file)
        true = whole if units is None else units.reduced_network(whole)  # as the interface shows it
        true = true.log_ratios() if oracle.facts.reference and true.outputs == oracle.outputs + 1 else true
        true = true if output is None else true.with_outputs(lambda rows: rows[[output]])
    except ReluctantError as error:
        raise Skip("unreadable-file", error=error.slug, message=str(error)) from error
    if (true.dim, true.outputs) != (found.dim, found.outputs):
        raise Skip("file-differs")
    aligned = (
        None if known.target.of_labels else compare(found, true, rng=seed)
    )  # values of labels have a scale of their own
    layers = () if aligned is None else aligned.neuron_errors
    if layers:
        near, neurons = sum(int((errors <= FOUND).sum()) for errors in layers), sum(map(len, layers))
    else:
        near, neurons = _first_layer_found(found, true), true.widths[1] if true.depth > 1 else 0
    largest = None if aligned is None or known.copy is None else finite(aligned.output_error)  # a part gives no answers
    weight_error = None if aligned is None else finite(aligned.parameter_error)
    name, widths, parameters = known.given.file.name, tuple(whole.widths), whole.parameters
    return {"truth": Truth(name, widths, parameters, near, neurons, bool(layers), largest, weight_error)}


def _first_layer_found(found: ReLUNetwork, true: ReLUNetwork) -> int:
    """How many true first-layer creases the network has too, on whichever side its neurons are active."""
    if found.depth < 2 or true.depth < 2:
        return 0
    from scipy.spatial.distance import cdist

    def unit_rows(network: ReLUNetwork) -> FloatArray:
        normals, offsets = network.hyperplanes()
        live = np.isfinite(normals).all(axis=1)
        return np.column_stack([normals[live], np.arctan(offsets[live])])  # an angle: far creases must not drown others

    mine, theirs = unit_rows(found), unit_rows(true)
    if not len(mine) or not len(theirs):
        return 0
    distance = np.minimum(cdist(mine, theirs), cdist(-mine, theirs))
    return int((distance.min(axis=0) <= FOUND).sum())

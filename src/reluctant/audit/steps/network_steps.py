"""Steps for the network: extraction, confirmation of a part, learning, training, comparison with the true one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from reluctant.audit.budget import TRAINING, needed_rows
from reluctant.audit.facts import Truth, finite
from reluctant.audit.findings import Findings, Skip, skip_where
from reluctant.errors import ReluctantError
from reluctant.evidence import COPY_DIRECTIONS, OWN_LINK, Measured
from reluctant.extraction import extract
from reluctant.interface import Interface
from reluctant.interface.kinds import IntegerKind
from reluctant.interface.noise import FITTED_DECIMALS
from reluctant.learning import learn
from reluctant.learning.student import ROWS, STEPS, rows_like, train_student
from reluctant.networks import ReLUNetwork
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.numerics import FloatArray, as_generator
from reluctant.oracles import Counting, Kind, Linked
from reluctant.results import Outcome, Result
from reluctant.span import Span, Subspace
from reluctant.verification.alignment import compare
from reluctant.verification.comparison import confirm_creases

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
    if not known.of_labels:
        skip_where(known, *refused, missing="creases")
    found = extract(oracle, rng=seed).with_log_ratios()  # as other steps read the target
    if known.of_labels:  # its values are no answers of the target
        found = replace(found, evidence={**found.evidence, OWN_LINK: "identity"})
    ran_out = found.outcome is Outcome.OUT_OF_BUDGET
    wider = with_directions_of(found.network, known.span) if found.ok and found.network is not None else None
    short = ran_out and not known.may_be_clipped
    return {
        "extraction": found,
        **({} if wider is None else {"span": wider}),
        "needed_rows": needed_rows(oracle, known) if short else None,
        "clipped": Measured.of(found).clipped,
    }


def _fitted_to_decimals(oracle: Counting, known: Findings, seed: int) -> Result | None:
    """The network behind rounded probabilities that no other step can read; None where there is none, or it failed."""
    served, plain = known.served, known.link == "identity" and known.given.output is None and not known.noisy
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
    if known.health is None:
        raise Skip("interface-unknown", settles=False)
    if known.refusal is not None:
        skip_where(known, known.refusal, missing="creases")
    if not oracle.facts.domain.is_space:
        raise Skip("bounded-domain", domain=oracle.facts.domain.describe())
    if known.reach is not None:
        raise Skip("bounded-reach", domain=known.reach.describe())
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
    if known.may_be_clipped:
        raise Skip("may-be-clipped")
    network = None if known.extraction is None else known.extraction.network
    if network is None or known.health is None or network.depth < 2 or known.of_labels:
        raise Skip("no-part")
    own = as_generator(seed).spawn(1)[0]
    return {"part": confirm_creases(oracle, network, own, noise=known.health.noise, spread=known.health.spread)}


def train_network(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """A student on the answers as they are, where there is no copy."""
    if known.copy is not None:
        raise Skip("copy-exists")
    if known.health is None:
        raise Skip("interface-unknown", settles=False)
    skip_where(known.as_answered, Outcome.CONSTANT, Outcome.NON_FINITE)
    rows = rows_like(known.given.inputs, oracle.facts.domain, ROWS, as_generator(seed).spawn(1)[0])
    seconds = TRAINING * known.given.seconds
    span = known.span
    narrow = span is not None and span.ok and 0 < span.rank <= NARROW * span.subspace.dim
    basis = span.basis if span is not None and narrow else None
    result = train_student(
        oracle, inputs=rows, span=basis, steps=LONGER * STEPS, seconds=seconds,
        whole=_whole(known.as_answered.health), rng=seed,
    )  # fmt: skip
    found = {"training": _student_as_seen(result, known)}
    training = Measured.of(result).training
    hurried = training is not None and training.hurried and not result.ok
    return found | ({"timed_out": (*known.timed_out, "training")} if hurried else {})


def _whole(answered: Interface | None) -> IntegerKind | None:
    """What whole numbers are; those that were seen to be values, among few answers, are so among many."""
    if answered is None:
        return None
    return IntegerKind.SCORES if answered.answers is Kind.VALUES and answered.decimals == 0 else answered.integers


def _student_as_seen(result: Result, known: Findings) -> Result:
    """The student as other steps see the target: log-ratios behind a softmax; apart where they see no values."""
    measured = Measured.of(result)
    reads = measured.answers
    as_they_are = known.link == "identity" or known.given.output is not None
    if result.network is None or (reads is Kind.VALUES and as_they_are):
        return result
    softmax = measured.link not in ELEMENTWISE_LINKS
    if reads is Kind.PROBABILITIES and known.link not in ELEMENTWISE_LINKS and softmax:
        return replace(result, network=result.network.log_ratios())
    if reads is Kind.PROBABILITIES and known.link == "sigmoid":
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
    aligned = None if known.of_labels else compare(found, true, rng=seed)  # values of labels have a scale of their own
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

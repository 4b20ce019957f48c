"""The middle steps: the network exactly, or to an accuracy; and both beside the truth where a file holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reluctant.audit.clipping import clipped_to
from reluctant.audit.directions import with_those_of
from reluctant.audit.known import Known, Skip, skip_where
from reluctant.audit.needed import needed_rows, needed_words
from reluctant.errors import ReluctantError
from reluctant.extraction import extract
from reluctant.learning import learn
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, as_generator
from reluctant.oracles import Counting
from reluctant.results import Outcome
from reluctant.verification.alignment import compare
from reluctant.verification.points import look_for_bends

__all__ = ["ALL_NEURONS", "compare_with_truth", "confirm_part", "extract_network", "learn_network"]

ALL_NEURONS = "all hidden neurons"
FOUND = 1e-3  # of a unit weight vector: a neuron this close to the true one is taken for it


def extract_network(oracle: Counting, known: Known, seed: int) -> Mapping[str, Any]:
    """Exact extraction with its own verification."""
    refused = (Outcome.NOT_PIECEWISE_LINEAR, Outcome.PIECEWISE_CONSTANT, Outcome.CONSTANT)
    skip_where(known, *refused, missing="no creases to find")
    found = extract(oracle, rng=seed).with_log_ratios()  # as other steps read the target
    ran_out = found.outcome is Outcome.OUT_OF_BUDGET
    wider = with_those_of(found.network, known.span) if found.ok and found.network is not None else None
    short = ran_out and not known.may_be_clipped
    return {
        "extraction": found,
        **({} if wider is None else {"span": wider}),
        "needed": needed_words(oracle, known) if short else "",
        "needed_rows": needed_rows(oracle, known) if short else None,
        "clipped": clipped_to(found),
    }


def learn_network(oracle: Counting, known: Known, seed: int) -> Mapping[str, Any]:
    """Learning, where exact extraction gave nothing and one hidden layer is still possible."""
    if known.extraction is not None and known.extraction.ok:
        raise Skip("recovered-exactly", "The network was recovered exactly.")
    if known.health is None:
        raise Skip("interface-unknown", "Nothing is known of the interface.", settles=False)
    if known.refusal is not None:
        skip_where(known, known.refusal, missing="no creases to find")
    if not oracle.facts.domain.is_space:
        place = oracle.facts.domain.describe()
        raise Skip("bounded-domain", f"Learning asks Gaussian inputs, and the domain is {place}.", domain=place)
    if known.reach is not None:
        place = known.reach.describe()
        why = f"Learning asks Gaussian inputs, and the target answers only in {place}."
        raise Skip("bounded-reach", why, domain=place)
    if known.clipped is not None:
        why = "Learning asks Gaussian inputs, and those of this target are clipped."
        raise Skip("clipped-inputs", why, settles=False)
    layers = None if known.extraction is None else known.extraction.evidence.get("layers")
    if layers is not None and not layers.mostly_straight:
        raise Skip("several-layers", f"Learning is for one hidden layer. {layers}", **layers.to_dict())
    found = learn(oracle, rng=seed).with_log_ratios()
    clipped = clipped_to(found)  # what bends there is no neuron of a part either
    return {"learning": found} | ({} if clipped is None else {"clipped": clipped, "part": None})


def confirm_part(oracle: Counting, known: Known, seed: int) -> Mapping[str, Any]:
    """Of a network that extraction found in part: the neurons of its first layer whose creases the target shows."""
    if known.copy is not None:
        raise Skip("copy-exists", "There is a copy of the whole network.")
    if known.clipped is not None:
        raise Skip("clipped-inputs", "What bends where inputs are clipped is no neuron.")
    if known.may_be_clipped:
        why = "Answers no longer change far out: what bends where inputs are clipped would be no neuron."
        raise Skip("may-be-clipped", why)
    network = None if known.extraction is None else known.extraction.network
    if network is None or known.health is None or network.depth < 2:
        raise Skip("no-part", "No part of a network was found.")
    own = as_generator(seed).spawn(1)[0]
    return {"part": look_for_bends(oracle, network, own, noise=known.health.noise, spread=known.health.spread)}


def compare_with_truth(oracle: Counting, known: Known, seed: int) -> Mapping[str, Any]:
    """The recovered network beside the weights in the file. No queries."""
    found = _best_network(known)
    if known.given.file is None:
        raise Skip("not-a-file", "The target is not a file: its weights are not known here.")
    if found is None:
        raise Skip("no-network", "There is no network to compare.")
    try:
        whole = ReLUNetwork.load(known.given.file)
        true = _as_seen(whole, known, oracle)
    except ReluctantError as error:
        raise Skip("unreadable-file", f"The weights in the file cannot be read. {error}", error=error.slug) from error
    if (true.dim, true.outputs) != (found.dim, found.outputs):
        raise Skip("file-differs", "The file and the target differ in inputs or outputs.")
    shape = {"widths": list(whole.widths), "parameters": whole.parameters}
    return {
        "truth": {"file": known.given.file.name, **shape, **_beside(found, true, seed, whole=known.copy is not None)}
    }


def _best_network(known: Known) -> ReLUNetwork | None:
    """The copy, or the part that there is."""
    parts = [run.network for run in (known.extraction, known.learning) if run is not None]
    return next((network for network in (known.network, *parts) if network is not None), None)


def _as_seen(true: ReLUNetwork, known: Known, oracle: Counting) -> ReLUNetwork:
    """The true network as the interface shows it: log-ratios behind a softmax, one output of many."""
    if oracle.facts.reference and true.outputs == oracle.outputs + 1:
        true = true.log_ratios()
    k = known.given.output
    if k is None:
        return true
    skip = None if true.skip is None else true.skip[[k]]
    return ReLUNetwork([*true.weights[:-1], true.weights[-1][[k]]], [*true.biases[:-1], true.biases[-1][[k]]], skip)


def _beside(found: ReLUNetwork, true: ReLUNetwork, seed: int, *, whole: bool) -> dict[str, Any]:
    """Neurons and weights compared; a part gives no answers to compare."""
    aligned = compare(found, true, rng=seed)
    if aligned.neuron_errors:
        near = sum(int((errors <= FOUND).sum()) for errors in aligned.neuron_errors)
        of, which = sum(len(errors) for errors in aligned.neuron_errors), ALL_NEURONS
    else:
        near, of, which = _first_layer_found(found, true), true.widths[1] if true.depth > 1 else 0, "first hidden layer"
    return {
        "largest error": aligned.output_error if whole else None,
        "neurons found": near,
        "neurons": of,
        "neurons of": which,
        "largest weight error": aligned.parameter_error,
    }


def _first_layer_found(found: ReLUNetwork, true: ReLUNetwork) -> int:
    """How many true first-layer creases the network has too, on whichever side its neurons are active."""
    if found.depth < 2 or true.depth < 2:
        return 0
    mine, theirs = (_unit_rows(network) for network in (found, true))
    if not len(mine) or not len(theirs):
        return 0
    distance = np.minimum(_distances(mine, theirs), _distances(-mine, theirs))
    return int((distance.min(axis=0) <= FOUND).sum())


def _unit_rows(network: ReLUNetwork) -> FloatArray:
    normals, offsets = network.hyperplanes()
    live = np.isfinite(normals).all(axis=1)
    return np.column_stack([normals[live], np.arctan(offsets[live])])  # an angle: a far crease must not drown the rest


def _distances(a: FloatArray, b: FloatArray) -> FloatArray:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(a, b))

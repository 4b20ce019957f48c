"""Neurons of a layer: what makes a crease one, how often it has to be seen, and the layer they are together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.accept import is_there
from reluctant.extraction.any_depth.asker import Asker
from reluctant.extraction.any_depth.crease import Crease, Incoming, solve
from reluctant.extraction.any_depth.kink_store import Store
from reluctant.extraction.any_depth.known import Known, Layer
from reluctant.extraction.any_depth.score import score
from reluctant.extraction.any_depth.unseen import settle
from reluctant.numerics import FloatArray

__all__ = ["SEEN", "Neuron", "accepted", "as_layer", "confirmed"]

HITS = 4  # crossings seen on stored lines that make further questions needless
FEWEST_HITS = 2  # the one it was found by, and another
HITS_FIRST = 3  # a hyperplane is met by every line
SEEN = 0.7  # share of a neuron's crossings that must be kinks
RESIDUAL = 1e-7  # of a neuron's linear system


@dataclass(frozen=True)
class Neuron:
    """A crease that was followed, and the incoming weights it gives; `turned` is None while its side is open."""

    crease: Crease
    incoming: Incoming
    turned: bool | None = None


def accepted(store: Store, known: Known, crease: Crease) -> Neuron | None:
    """The neuron of a crease, if its equations agree and the stored lines do not speak against it."""
    incoming = solve(known, crease)
    if incoming.residual < RESIDUAL and score(store, known, incoming).share() >= SEEN:
        return Neuron(crease, incoming)
    return None


def confirmed(asker: Asker, store: Store, known: Known, neuron: Neuron) -> bool:
    """True if stored lines cross it often enough, or it is there where it is looked for."""
    hits = score(store, known, neuron.incoming).hits
    if not known.layers:
        return hits >= HITS_FIRST
    looked_for = hits < HITS
    return hits >= FEWEST_HITS and not (looked_for and not is_there(asker, known, neuron.crease, neuron.incoming))


def as_layer(neurons: Sequence[Neuron], features: FloatArray) -> Layer:
    """A layer with unit rows; what cannot be seen of its neurons is settled by the features at points met so far."""
    settled = [settle(n.incoming, features) for n in neurons]
    rows = np.array([s.weights for s in settled])
    biases = -np.array([s.weights @ n.incoming.start for s, n in zip(settled, neurons, strict=True)])
    carried = np.zeros(rows.shape[1], dtype=bool)
    for s, n in zip(settled, neurons, strict=True):
        carried |= n.incoming.open_features() & s.on
    size = np.linalg.norm(rows, axis=1) * np.array([-1.0 if n.turned else 1.0 for n in neurons])
    undecided = np.array([n.turned is None for n in neurons])
    return Layer(rows / size[:, None], biases / size, undecided, np.flatnonzero(carried))

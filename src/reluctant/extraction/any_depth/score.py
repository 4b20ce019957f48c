"""What the stored lines say of a neuron, without a query: its crossings must be kinks.

Between neighbouring kinks of a line every known feature is affine, so a change of sign there without a kink is a
crossing that was not seen; unless the function is constant there, and shows nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.crease import Incoming
from reluctant.extraction.any_depth.kink_store import SAME_PLACE, Store, relative_distance
from reluctant.extraction.any_depth.known import Known
from reluctant.geometry.samples import BoolArray

__all__ = ["Score", "passes", "score"]


@dataclass(frozen=True)
class Score:
    """Crossings that are kinks, and crossings that are not."""

    hits: int
    misses: int

    def share(self) -> float:
        """Part of the crossings that was seen."""
        return self.hits / max(self.hits + self.misses, 1)


def passes(store: Store, known: Known, incoming: Incoming) -> BoolArray:
    """At which kinks the neuron's value is zero."""
    slopes = store.slopes(known)
    values = incoming.values(slopes.features)[:, None]
    near = relative_distance(values, (slopes.feature_slopes @ incoming.weights)[:, None], store.kinks)[:, 0]
    return np.asarray((near < SAME_PLACE) & incoming.determined(slopes.features))


def score(store: Store, known: Known, incoming: Incoming) -> Score:
    """Count hits and misses on all lines, where the neuron is determined."""
    kinks = store.kinks
    hit = passes(store, known, incoming)
    points = np.concatenate([kinks.point, store.ends[:, 0], store.ends[:, 1]])
    features = known.features(points)
    positive, sure = incoming.values(features) > 0, incoming.determined(features)
    on = np.concatenate([hit, np.zeros(2 * store.lines, dtype=bool)])
    line = np.concatenate([kinks.line, np.arange(store.lines), np.arange(store.lines)])
    rank = np.concatenate([np.ones(len(kinks)), np.zeros(store.lines), np.full(store.lines, 2.0)])
    order = np.lexsort([np.arange(len(line)), rank, line])  # ends before and after the kinks of each line
    line, positive, sure, on = line[order], positive[order], sure[order], on[order]
    pieces = np.flatnonzero(line[1:] == line[:-1])
    visible = pieces[~store.constant]
    missed = (sure & ~on)[visible] & (sure & ~on)[visible + 1] & (positive[visible] != positive[visible + 1])
    return Score(int(hit.sum()), int(missed.sum()))

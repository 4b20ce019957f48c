"""All neurons of the next layer: unexplained kinks are followed one after the other until none is left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.asker import Asker
from reluctant.extraction.any_depth.crease import Crease, Incoming, solve
from reluctant.extraction.any_depth.follow import follow
from reluctant.extraction.any_depth.kink_store import Store
from reluctant.extraction.any_depth.known import Known, Layer
from reluctant.extraction.any_depth.score import passes, score
from reluctant.extraction.any_depth.sides import find_sides
from reluctant.geometry.samples import BoolArray, IntArray

__all__ = ["Neuron", "Search"]

SEEN = 0.7  # share of a neuron's crossings that must be kinks
NARROWEST = 1e-4  # pieces narrower than this, relative to scale and distance, are no good start
FARTHEST = 10.0  # starts farther out, in units of the scale, are left to others
RESIDUAL = 1e-7  # of a neuron's linear system
QUIET = 4  # lines in a row that bring nothing new
QUIET_FIRST = 2  # for the first layer, whose creases every line meets
MOST_LINES = 60


@dataclass(frozen=True)
class Neuron:
    """A crease that was followed, and the incoming weights it gives."""

    crease: Crease
    incoming: Incoming


class Search:
    """The search for one layer; it may settle the sides of the layer before on its way."""

    def __init__(self, asker: Asker, store: Store, known: Known) -> None:
        self.asker, self.store, self.known = asker, store, known
        self.neurons: list[Neuron] = []
        self.tried: set[int] = set()

    def run(self) -> None:
        """Try every unexplained kink, on new lines too, until lines bring nothing new."""
        quiet, enough = 0, QUIET if self.known.layers else QUIET_FIRST
        while quiet < enough and self.store.lines < MOST_LINES:
            quiet = 0 if self.try_all() else quiet + 1
            if not len(self.next_batch()):
                self.store.scan_random(1)

    def try_all(self) -> int:
        """Follow candidates, for the first layer those of one line, until none is left; the neurons found."""
        before = len(self.neurons)
        while len(batch := self.next_batch()):
            self.store.measure(batch)
            for kink in batch:
                self.tried.add(int(kink))
                if self.unexplained()[kink]:
                    self.try_kink(int(kink))
            if not self.known.layers:
                break
        return len(self.neurons) - before

    def next_batch(self) -> IntArray:
        """All kinks of a line for the first layer; then one at a time, the cheapest and roomiest first."""
        kinks = self.store.kinks
        usable = self.unexplained() & (kinks.width > NARROWEST * kinks.unit)
        usable &= kinks.unit < FARTHEST * self.store.scale
        usable[list(self.tried)] = False
        which = np.flatnonzero(usable)
        if not len(which):
            return which
        if not self.known.layers:
            return which[kinks.line[which] == kinks.line[which[0]]]
        width = (kinks.width / kinks.unit)[which]
        return which[np.lexsort([-width, ~self.store.measured()[which]])[:1]]

    def unexplained(self) -> BoolArray:
        """Kinks that neither known layers nor neurons found so far explain."""
        rest = self.store.unexplained(self.known)
        for neuron in self.neurons:
            rest &= ~passes(self.store, self.known, neuron.incoming)
        return rest

    def try_kink(self, kink: int) -> None:
        """Follow the crease of a kink; keep it if it is a neuron of this layer."""
        normal = self.store.normal(kink)
        if normal is None:
            return
        crease = follow(self.asker, self.known, Crease(self.store.kinks.point[kink][None], *normal))
        if crease is None:
            return
        incoming = solve(self.known, crease)
        if incoming.residual < RESIDUAL and score(self.store, self.known, incoming).share() >= SEEN:
            self.neurons.append(Neuron(crease, incoming))
            self.settle_sides()

    def settle_sides(self) -> None:
        """Find the sides of the layer before, if they can be; then solve all creases anew, without queries."""
        if not self.known.keeps_previous:
            return
        wrong = find_sides(self.known, [neuron.incoming for neuron in self.neurons])
        if wrong is None:
            return
        self.known = self.known.with_sides(wrong)
        neurons = [Neuron(n.crease, solve(self.known, n.crease)) for n in self.neurons]
        self.neurons = [n for n in neurons if n.incoming.residual < RESIDUAL]

    def layer(self) -> Layer:
        """The neurons found, as a layer with unit rows."""
        rows = np.array([n.incoming.weights for n in self.neurons])
        biases = np.array([n.incoming.bias for n in self.neurons])
        size = np.linalg.norm(rows, axis=1)
        return Layer(rows / size[:, None], biases / size)

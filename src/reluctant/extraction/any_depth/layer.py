"""All neurons of the next layer: unexplained kinks are followed one after the other until none is left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from reluctant.extraction.any_depth.asker import Asker
from reluctant.extraction.any_depth.closing import close_from_kinks
from reluctant.extraction.any_depth.crease import Crease, solve
from reluctant.extraction.any_depth.follow import follow
from reluctant.extraction.any_depth.kink_store import Store
from reluctant.extraction.any_depth.known import Known, Layer
from reluctant.extraction.any_depth.merge import joined, same_neuron
from reluctant.extraction.any_depth.neurons import SEEN, Neuron, accepted, as_layer, confirmed
from reluctant.extraction.any_depth.score import passes, score
from reluctant.extraction.any_depth.sides import find_sides
from reluctant.extraction.failures import StageFailed
from reluctant.geometry.samples import BoolArray, IntArray

__all__ = ["Search"]

NARROWEST = 1e-4  # pieces narrower than this, relative to scale and distance, are no good start
FARTHEST = 16.0  # in units of the scale: no walk starts farther out
STRAIGHT = 1e-6  # share of the weights: a crease that does not bend
ENOUGH_FOR_SIDES = 5  # neurons, where the layer below is no wider than the one before it
FEWEST_TO_DOUBT = 3  # neurons: with fewer there is no majority
QUIET = 4  # lines in a row that bring nothing new
QUIET_FIRST = 2  # for the first layer, whose creases every line meets
MOST_LINES = 10  # new ones for one layer
MOST_FOLLOWED = 1500  # creases in all layers together: networks that can be recovered need a few hundred
FRUITLESS = 200  # kinks in a row that bring nothing: what is left belongs to deeper layers, or cannot be followed


class Search:
    """The search for one layer on those below; it settles the sides of the one below on its way."""

    def __init__(self, asker: Asker, store: Store, known: Known) -> None:
        self.asker, self.store, self.known = asker, store, known
        self.neurons: list[Neuron] = []
        self.tried: set[int] = set()
        self.turned: BoolArray | None = None  # neurons of the layer below that were turned, once that is known

    def run(self) -> None:
        """Try every unexplained kink, on new lines too, until lines bring nothing new."""
        quiet, enough = 0, QUIET if self.known.layers else QUIET_FIRST
        most = self.store.lines + MOST_LINES
        while quiet < enough and self.store.lines < most and not self.at_odds():
            if not len(self.next_batch()):
                self.store.scan_random(1)
                self.review()
            quiet = 0 if self.try_all() else quiet + 1
        self.settle_sides(final=True)

    def adopt(self, neurons: Iterable[Neuron]) -> None:
        """Neurons that were found before features changed: followed on where that opened something."""
        for neuron in neurons:
            followed = follow(self.asker, self.known, neuron.crease)
            again = None if followed is None else self.accepted(followed)
            if again is not None:
                self.add(replace(again, turned=neuron.turned))
                self.settle_sides()

    def at_odds(self) -> bool:
        """True if there are neurons enough to tell all sides below, and they do not agree on them."""
        if self.known.sided:
            return False
        below = self.known.layers[-1]
        return len(self.neurons) > ENOUGH_FOR_SIDES * (1 + len(below) / below.weights.shape[1])

    def misplaced(self) -> list[Neuron]:
        """Creases that do not bend at the neurons of the layer below: they belong to that layer themselves."""
        if self.known.sided:
            return []
        below = len(self.known.layers[-1])
        return [
            n for n in self.neurons
            if np.linalg.norm(n.incoming.weights[:below]) < STRAIGHT * np.linalg.norm(n.incoming.weights)
        ]  # fmt: skip

    def try_everything(self) -> int:
        """Follow all candidates there are; the number of neurons found."""
        found = 0
        while len(self.next_batch()) and not self.at_odds():
            new = self.try_all()
            found += new
            if not new and self.known.layers:
                break
        return found

    def try_all(self) -> int:
        """Follow candidates, for the first layer those of one line, until none is left; the neurons found."""
        before, fruitless = len(self.neurons), 0
        while fruitless < FRUITLESS and len(batch := self.next_batch()) and not self.at_odds():
            found = len(self.neurons)
            self.store.measure(batch)
            self.close()
            for kink in batch:
                self.tried.add(int(kink))
                if self.unexplained()[kink]:
                    self.try_kink(int(kink))
            fruitless = 0 if len(self.neurons) > found else fruitless + len(batch)
            if not self.known.layers:
                break
        return len(self.neurons) - before

    def review(self) -> None:
        """Let go of neurons that new lines speak against."""
        self.neurons = [n for n in self.neurons if score(self.store, self.known, n.incoming).share() >= SEEN]

    def next_batch(self) -> IntArray:
        """All kinks of a line for the first layer; then one at a time, the cheapest and roomiest first."""
        kinks = self.store.kinks
        usable = self.unexplained() & (kinks.width > NARROWEST * kinks.unit)
        usable &= (kinks.unit < FARTHEST * self.store.scale) | (not self.known.layers)
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
        self.count_one()
        start = Crease(self.store.kinks.point[kink][None], *normal)
        crease = None if self.is_part(start) else follow(self.asker, self.known, start)
        if crease is None:
            return
        neuron = self.accepted(crease)
        if neuron is not None and confirmed(self.asker, self.store, self.known, neuron):
            self.add(neuron)
            self.settle_sides()

    def count_one(self) -> None:
        """One crease more is followed; too many of them are a sign that layers are too many, or too wide."""
        self.store.followed += 1
        if self.store.followed > MOST_FOLLOWED:
            reason = "creases that could not be told apart by layer, after this many"
            number = self.store.followed
            raise StageFailed(f"layer {len(self.known.layers) + 1}", reason, number=number, limit=MOST_FOLLOWED)

    def is_part(self, start: Crease) -> bool:
        """True if this is the crease of an open neuron, where more of it can be seen; then it has become part of it."""
        incoming = solve(self.known, start)
        for k, neuron in enumerate(self.neurons):
            if not neuron.incoming.closed and same_neuron(neuron.incoming, incoming):
                both = self.accepted(joined(neuron.crease, start))
                if both is not None:
                    self.neurons[k] = replace(both, turned=neuron.turned)
                    return True
        return False

    def add(self, neuron: Neuron) -> None:
        """Add a neuron, or what was seen of it to one that is there already."""
        for k, other in enumerate(self.neurons):
            if same_neuron(other.incoming, neuron.incoming):
                both = self.accepted(joined(other.crease, neuron.crease))
                if both is not None:
                    self.neurons[k] = replace(both, turned=other.turned)
                return
        self.neurons.append(neuron)

    def close(self) -> None:
        """Settle open coefficients by kinks that nothing explains yet."""
        open_ = [k for k, neuron in enumerate(self.neurons) if not neuron.incoming.closed]
        points = self.store.kinks.point[self.unexplained()] if open_ else self.store.kinks.point[:0]
        for k in open_:
            neuron = self.neurons[k]
            crease = close_from_kinks(self.known, neuron.crease, neuron.incoming, points)
            closed = None if crease is None else self.accepted(crease)
            if closed is not None:
                self.neurons[k] = replace(closed, turned=neuron.turned)

    def settle_sides(self, *, final: bool = False) -> None:
        """Find the sides of the layer below, if they can be; then solve all creases anew, without queries."""
        if self.known.sided:
            return
        wrong = find_sides(self.known, [neuron.incoming for neuron in self.neurons], final=final)
        if wrong is None and final and len(self.neurons) > FEWEST_TO_DOUBT:
            wrong = self.doubt()
        if wrong is None:
            return
        self.turned, self.known = wrong, self.known.with_sides(wrong)
        before, self.neurons = self.neurons, []
        for neuron in before:
            again = self.accepted(neuron.crease)
            if again is not None:
                self.add(again)

    def doubt(self) -> BoolArray | None:
        """The sides on which all neurons but one agree; that one is let go."""
        for k in range(len(self.neurons)):
            others = self.neurons[:k] + self.neurons[k + 1 :]
            wrong = find_sides(self.known, [neuron.incoming for neuron in others], final=True)
            if wrong is not None:
                self.neurons = others
                return wrong
        return None

    def learn_sides(self, turned: BoolArray) -> None:
        """Take down which neurons had to be turned, those turned before already being so."""
        for k, (neuron, turn) in enumerate(zip(self.neurons, turned, strict=True)):
            self.neurons[k] = replace(neuron, turned=bool(turn) != bool(neuron.turned))

    def layer(self) -> Layer:
        """The neurons found, as a layer with unit rows; what cannot be seen of them is settled."""
        points = [self.store.kinks.point, self.store.middles, *self.store.ends]
        return as_layer(self.neurons, self.known.features(np.concatenate(points)))

    def accepted(self, crease: Crease) -> Neuron | None:
        """The neuron of a crease, as far as is known."""
        return accepted(self.store, self.known, crease)

"""The search for one layer after another: unexplained kinks are followed until no neuron is left.

`Neuron` is a crease that was followed, that its equations agree on and that stored lines show often enough.
`LayerSearch` finds one layer and settles the sides of the one below on its way. `Ladder` holds the searches of all
layers; a neuron found late in a lower one rebuilds those above without new lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.any_depth.cell_test import Cells, fills_cell, straight_in_cell
from reluctant.extraction.any_depth.crease_equations import (
    Crease,
    IncomingWeights,
    close_from_kinks,
    find_mirrored,
    find_sides,
    find_unread,
    joined_creases,
    same_neuron,
    settle_open,
    settled_by_states,
    settled_sides,
    sides_are_told,
    solve_crease,
    try_sides,
)
from reluctant.extraction.any_depth.crease_presence import ends_at, goes_straight_on, is_there, places_of, reached
from reluctant.extraction.any_depth.features import KnownLayers, Layer, OpenWeights
from reluctant.extraction.any_depth.follow import INCONSISTENT, follow_crease
from reluctant.extraction.any_depth.kinks import Asker, KinkStore, line_score, passes_kinks
from reluctant.extraction.any_depth.open_weights import carried_states
from reluctant.extraction.any_depth.shared_jumps import JumpEquations, shared_jumps
from reluctant.extraction.crease_depth import CreaseMeetings, CreasePlanes
from reluctant.extraction.method import StageFailed, check_settings
from reluctant.geometry.lines import BoolArray, IntArray
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting


@dataclass(frozen=True)
class Neuron:
    """A crease that was followed, and the incoming weights it gives; `turned` is None while its side is open.

    mirrored: two neurons, one to each side of it. hidden: units above hide it in part of space.
    """

    crease: Crease
    incoming: IncomingWeights
    turned: bool | None = None
    mirrored: bool = False
    hidden: bool = False

    def again(self, other: Neuron) -> Neuron:
        """The same neuron by another crease, on the sides this one has."""
        return replace(other, turned=self.turned, mirrored=self.mirrored, hidden=self.hidden)


LARGEST_RESIDUAL = 1e-7  # of a neuron's linear system


def accepted_neuron(store: KinkStore, known: KnownLayers, crease: Crease, seen_share: float) -> Neuron | None:
    """The neuron of a crease, if its equations agree and the stored lines do not speak against it."""
    incoming = solve_crease(known, crease)
    if incoming.residual < LARGEST_RESIDUAL and line_score(store, known, incoming).share() >= seen_share:
        return Neuron(crease, incoming)
    return None


def lies_on(known: KnownLayers, crease: Crease, incoming: IncomingWeights) -> bool:
    """True if all points of a crease lie on that of these incoming weights, where it is determined."""
    same = 1e-8  # of the features: how far from zero the value may be
    features = known.features(crease.points)
    sizes = np.linalg.norm(features - features.mean(axis=0), axis=1).max() + 1
    on = np.abs(incoming.values(features)) <= same * sizes * np.linalg.norm(incoming.weights)
    return bool(on.all() and incoming.determined(features).all())


def is_sum(incoming: IncomingWeights, others: Sequence[IncomingWeights]) -> bool:
    """True if weights are a sum of those of others that span less than everything."""
    dependent = 1e-7  # of the weights: what such a sum leaves
    weights = incoming.weights
    if not 0 < len(others) < len(weights):
        return False
    rows = np.array([each.weights / np.linalg.norm(each.weights) for each in others])
    left = weights - np.linalg.lstsq(rows.T, weights, rcond=dependent)[0] @ rows
    return bool(np.linalg.norm(left) <= dependent * np.linalg.norm(weights))


def off_at(neuron: Neuron, points: FloatArray) -> float:
    """Distance at which most of these points lie from the hyperplane of a neuron of the first layer."""
    return float(np.median(np.abs(neuron.incoming.values(points)))) if len(points) else np.inf


def is_confirmed(asker: Asker, store: KinkStore, known: KnownLayers, neuron: Neuron, least: float) -> bool:
    """True if stored lines cross it often enough, or it is there where it is looked for, at `least` share of places."""
    most_lines = 0.75  # share of the lines: a hyperplane that so many show goes on
    enough_hits = 4  # crossings seen on stored lines that make further questions needless
    fewest_hits = 1 if neuron.incoming.closed else 2  # the one it was found by, and another where not all is known
    hits_first = 3  # a hyperplane is met by every line
    hits = line_score(store, known, neuron.incoming).hits
    if not asker.domain.is_space:  # a line through a box meets few of the hyperplanes
        fewest_hits = hits_first = 1
        most_lines = np.inf
    if not known.layers:
        on_most = hits >= most_lines * store.lines
        return hits >= hits_first and (on_most or goes_straight_on(asker, neuron.crease, least))
    looked_for = hits < enough_hits
    return hits >= fewest_hits and not (looked_for and not is_there(asker, known, neuron.crease, neuron.incoming))


def as_layer(neurons: Sequence[Neuron], features: FloatArray, *, both: bool = False) -> Layer:
    """A layer with unit rows; what cannot be seen of its neurons is settled by the features at points met so far.

    both: a neuron that may be on or off where it is not seen is there twice, and the outputs tell which one it is.
    """
    if not neurons:
        raise StageFailed("layers", "a layer has lost all of its neurons", number=0, limit=1)
    if both:
        sides = [settled_sides(n.incoming, features, soft=True) for n in neurons]
        kept = [[one for one in each if one.margin > 0] or [max(each, key=lambda one: one.margin)] for each in sides]
        kept = [each if not n.incoming.closed else each[:1] for n, each in zip(neurons, kept, strict=True)]
        neurons = [n for n, each in zip(neurons, kept, strict=True) for _ in each]
        settled = [one for each in kept for one in each]
    else:
        settled = [settle_open(n.incoming, features) for n in neurons]
    rows = np.array([s.weights for s in settled])
    biases = -np.array([s.weights @ n.incoming.start for s, n in zip(settled, neurons, strict=True)])
    carried = np.zeros(rows.shape[1], dtype=bool)
    for s, n in zip(settled, neurons, strict=True):
        carried |= n.incoming.open_features() & s.on
    size = np.linalg.norm(rows, axis=1) * np.array([-1.0 if n.turned else 1.0 for n in neurons])
    undecided = np.array([n.turned is None for n in neurons])
    mirrored = np.flatnonzero([n.mirrored for n in neurons])
    nowhere = np.empty((0, neurons[0].crease.points.shape[1]))
    open_ = [
        OpenWeights(k, n.incoming.open, n.crease.points[0], nowhere, nowhere)
        for k, n in enumerate(neurons)
        if not n.incoming.closed
    ]
    return Layer(rows / size[:, None], biases / size, undecided, np.flatnonzero(carried), mirrored, tuple(open_))


@dataclass(frozen=True)
class LayerLimits:
    """How long the search for layers goes on.

    Arguments:
        layers: at most so many hidden layers.
        quiet_lines: lines in a row without a new neuron that end the search for a layer.
        quiet_lines_first: the same for the first layer, whose creases every line meets.
        new_lines: random lines for one layer, at most.
        followed: creases that are followed in all layers together. Networks that can be recovered need a few hundred.
        followed_each: the same above the first layer, for each neuron found and five more. Those need three to eight.
        fruitless: kinks in a row without a neuron; those left belong to deeper layers, or cannot be followed.
        repairs: how often a layer that fails is looked for again, after a look at the layers below.
        repair_lines: random lines for that look.
        reentries: how often all layers are gone through again after new lines.
        sharp: distance of a hyperplane of the first layer from kinks it passes, relative, from which on it is measured
            at more places.
        seen_share: share of a neuron's crossings of lines that must be kinks. Few neurons hide behind others; more
            often a crease of a deeper layer goes straight on for long.
        hidden_share: the same of neurons that units above hide, and that were seen to go on behind others.
        hidden_kinks: kinks that such neurons are looked for at, in a layer.
        in_part: neurons of the first layer are those that several lines show and that bend at no other, however much
            of them is hidden.
    """

    layers: int = 8
    quiet_lines: int = 4
    quiet_lines_first: int = 2
    new_lines: int = 10
    followed: int = 1500
    followed_each: int = 50
    fruitless: int = 200
    repairs: int = 2
    repair_lines: int = 4
    reentries: int = 3
    sharp: float = 1e-11
    seen_share: float = 0.95
    hidden_share: float = 0.25
    hidden_kinks: int = 64
    in_part: bool = False

    def __post_init__(self) -> None:
        check_settings(self, may_be_zero=("repairs", "reentries"))


NARROWEST = 1e-4  # pieces narrower than this, relative to scale and distance, are no good start


class LayerSearch:
    """The search for one layer on those below; it settles the sides of the one below on its way."""

    def __init__(self, asker: Asker, store: KinkStore, known: KnownLayers, limits: LayerLimits) -> None:
        self.asker, self.store, self.known, self.limits = asker, store, known, limits
        self.neurons: list[Neuron] = []
        self.tried: set[int] = set()
        self.tried_again: set[int] = set()  # for neurons that show in part of space
        self.turned: BoolArray | None = None  # neurons of the layer below that were turned, once that is known
        self.mirrored: BoolArray | None = None  # those that are active on both sides
        self.stuck: dict[bytes, int] = {}  # open coefficients of creases that following closed none of
        self.begun = False  # with neurons that were known before
        self.fitted: dict[bytes, FloatArray] = {}  # weights that answers gave, by the first point of a crease
        self.open_sides = False  # there are no sides to find: layers see more than the one before them

    def begin(self, normals: FloatArray, offsets: FloatArray) -> None:
        """Neurons of a first layer whose hyperplanes are known, and their sides too; they are measured once more."""
        for normal, offset in zip(normals, offsets, strict=True):
            neuron = self.on_hyperplane(-offset * normal[None], normal)
            passed = self.store.kinks.point[passes_kinks(self.store, self.known, neuron.incoming)]
            nearest = passed[np.argsort(np.linalg.norm(passed, axis=1))[:1]]
            self.neurons.append(self.on_hyperplane(nearest, normal) if len(nearest) else neuron)
        self.begun = True
        self.sharpen()

    def on_hyperplane(self, point: FloatArray, normal: FloatArray) -> Neuron:
        """The neuron of the first layer with this unit normal, on a point (1, d) of its crease."""
        crease = Crease(point, normal, 0.0)
        return Neuron(crease, solve_crease(self.known, crease), turned=False)

    def run(self) -> None:
        """Try every unexplained kink, on new lines too, until lines bring nothing new."""
        if self.limits.in_part and not self.known.layers:
            self.find_in_part()
        elif self.limits.in_part and self.find_by_jumps():
            return
        quiet, enough = 0, self.limits.quiet_lines if self.known.layers else self.limits.quiet_lines_first
        enough = 1 if self.begun else enough
        most = self.store.lines + self.limits.new_lines
        while quiet < enough * self.patience() and self.store.lines < most * self.patience() and not self.at_odds():
            if not len(self.next_batch()):
                self.store.scan_random(1)
                self.review()
            quiet = 0 if self.try_all() else quiet + 1
            if self.at_odds():  # for one that is none, or a mirrored one: then there are more to find
                self.let_go_deeper()
                self.settle_sides(final=True)
        self.sharpen()
        self.let_go_deeper()
        self.settle_sides(final=True)
        self.follow_further()

    def follow_further(self) -> None:
        """Inside bounds, follow creases with open coefficients again, as long as that closes some, a few times."""
        rounds = 4
        for _ in range(rounds if self.open_sides and not self.store.domain.is_space else 0):
            before = sum(neuron.incoming.open.shape[1] for neuron in self.neurons)
            self.neurons = [self.followed_on(neuron) for neuron in self.neurons]
            if sum(neuron.incoming.open.shape[1] for neuron in self.neurons) == before:
                break

    def find_by_jumps(self) -> bool:
        """Neurons whose kinks jump alike, on more lines until they explain most kinks; True if they do.

        Cost: d + 2 rows for each piece of a line.
        """
        fewest_lines, more, rounds, few = 16, 4, 3, 0.1
        for _ in range(rounds):
            self.store.scan_random(max(more, fewest_lines - self.store.lines))
            self.neurons = self.jumping_alike()
            if self.unexplained().sum() <= few * self.store.unexplained(self.known).sum():
                break
        else:
            return False
        before, neurons = self.known, self.neurons
        self.settle_sides(final=True)
        if not self.known.sided or len(self.neurons) < len(neurons):
            self.known, self.neurons, self.turned, self.mirrored = before.with_open_sides(), neurons, None, None
            self.open_sides = True
            if not before.layers[-1].undecided.all():  # the features are others
                self.solve_again()
        return True

    def jumping_alike(self) -> list[Neuron]:
        """The neurons that kinks of several lines are of."""
        kinks = self.store.kinks
        which = np.flatnonzero(self.store.unexplained(self.known) & (kinks.width > NARROWEST * kinks.unit))
        which = which[np.argsort(-(kinks.width / kinks.unit)[which])]
        if len(which):
            self.store.measure(which, self.known)
        seen = [(kink, jump) for kink in which if (jump := self.store.jump(int(kink))) is not None]
        if not seen:
            return []
        which, jumps = np.array([kink for kink, _ in seen]), np.array([jump for _, jump in seen])
        equations = JumpEquations.of(self.known, kinks.point[which], jumps)
        found = list[Neuron]()
        for members in shared_jumps(equations, kinks.line[which]):
            size = float(np.linalg.norm(jumps[members[0]]))
            crease = Crease(kinks.point[which[members]], jumps[members[0]] / size, size)
            neuron = self.accepted(crease, hidden=True)
            found += [] if neuron is None else [neuron]
        return self.without_parts([self.followed_on(neuron) for neuron in self.without_parts(found)])

    def followed_on(self, neuron: Neuron) -> Neuron:
        """A neuron with open coefficients followed to where they show, as far as its equations agree then."""
        start, open_ = neuron.crease.points[0].tobytes(), neuron.incoming.open.shape[1]
        if neuron.incoming.closed or self.stuck.get(start, 0) == open_:
            return neuron
        crease = follow_crease(self.asker, self.known, neuron.crease)
        further = None if crease is None else self.accepted(crease)
        if further is None or further.incoming.open.shape[1] == open_:
            self.stuck[start] = open_
        return neuron if further is None else further

    def without_parts(self, neurons: Sequence[Neuron]) -> list[Neuron]:
        """Without neurons whose points all lie on the crease of another one that is known better."""
        kept = list[Neuron]()
        for neuron in sorted(neurons, key=lambda each: each.incoming.open.shape[1]):
            if not any(lies_on(self.known, neuron.crease, one.incoming) for one in kept):
                kept.append(neuron)
        return kept

    def find_in_part(self) -> None:
        """Neurons of the first layer that show in part of space: kinks of several lines lie on their hyperplanes.

        So do those of neurons above inside a cell, but these bend where they meet others. Cost: d + 2 rows for each
        piece of a line, and up to 192 for each hyperplane.
        """
        lines, fewest, same, error = 12, 2, 1e-6, 1e-8  # of a normal: errors, and how far those of one neuron differ
        if self.store.lines < lines:
            self.store.scan_random(lines - self.store.lines)
        kinks = self.store.kinks
        which = np.flatnonzero(kinks.width > NARROWEST * kinks.unit)
        self.store.measure(which, self.known)
        seen = [(kink, normal) for kink in which if (normal := self.store.normal(int(kink))) is not None]
        if not seen:
            return
        which, normals = np.array([kink for kink, _ in seen]), np.array([normal for _, (normal, _) in seen])
        on = kinks.point[which]
        offsets = -(normals * on).sum(axis=1)
        together = np.abs(normals @ normals.T) > 1 - same**2
        signs = np.sign(normals @ normals.T)
        together &= np.abs(offsets - signs * offsets[:, None]) < same * kinks.unit[which]
        first = np.array([int(np.flatnonzero(row)[0]) == i for i, row in enumerate(together)])
        several = np.array([len(np.unique(kinks.line[which[row]])) >= fewest for row in together])
        chosen = np.flatnonzero(first & several)
        planes = CreasePlanes(normals, offsets, np.full(len(which), error), on)
        meetings = CreaseMeetings(self.asker.ask, self.asker.noise, self.asker.scale)
        chosen = chosen[~meetings.bending(planes.chosen(chosen), planes.chosen(chosen))]
        for i in chosen:  # again at every place where it was seen, with fewer others that are none
            if meetings.bending(planes.chosen(together[i]), planes.chosen(chosen[chosen != i])).any():
                chosen = chosen[chosen != i]
        for i in chosen:
            passed = on[together[i]]
            crease = Crease(on[i][None], normals[i], float(seen[i][1][1])).with_points(passed)
            neuron = self.accepted(crease, hidden=True)
            if neuron is not None:
                self.add(neuron)

    def sharpen(self) -> None:
        """Solve every neuron with all stored kinks that it passes: layers above are no better known than those below.

        One that was found twice is seen to be one then, though few places tell some of its coefficients.
        Cost: none; for neurons of the first layer that lack digits 4 rows an input.
        """
        for k, neuron in enumerate(self.neurons):
            passed = self.store.kinks.point[passes_kinks(self.store, self.known, neuron.incoming)]
            crease = neuron.crease.with_points(passed)
            sharp = self.limits.sharp * self.store.scale
            if not self.known.layers and off_at(neuron, passed) > sharp and len(neuron.crease.points) <= self.store.dim:
                crease = crease.with_points(places_of(self.asker, crease, self.store.dim + 2))
            incoming = solve_crease(self.known, crease)
            as_open = incoming.open.shape[1] <= neuron.incoming.open.shape[1]
            if as_open and incoming.residual < LARGEST_RESIDUAL:
                self.neurons[k] = replace(neuron, crease=crease, incoming=incoming)
        if self.known.layers:
            self.neurons = self.without_parts(self.neurons)

    def explains_little(self) -> bool:
        """True if most kinks are left of those there were: neurons may be missing below."""
        little = 0.2
        before, after = self.store.unexplained(self.known).sum(), self.unexplained().sum()
        return bool(before - after <= little * before)

    def explains_most(self) -> bool:
        """True if hardly any kinks are left of those there were."""
        few = 0.25
        return bool(self.unexplained().sum() <= few * self.store.unexplained(self.known).sum())

    @property
    def is_guess(self) -> bool:
        """True if so many coefficients of most neurons are open that hardly anything is known of them."""
        many, little, known = 4, 0.1, 0.25  # coefficients, share of the pieces of lines, and share of the neurons
        features = self.known.features(self.store.middles)
        sure = [
            neuron.incoming.open.shape[1] <= many or neuron.incoming.determined(features).mean() >= little
            for neuron in self.neurons
        ]
        return bool(sure) and sum(sure) < known * len(sure)

    def is_well_seen(self) -> bool:
        """True if neurons that are known explain most kinks, many each: then all that switches below is known."""
        each = 8  # kinks
        explained = self.store.unexplained(self.known).sum() - self.unexplained().sum()
        open_ = sum(not neuron.incoming.closed for neuron in self.neurons)
        return self.explains_most() and open_ <= 1 and bool(explained >= each * len(self.neurons))

    def find_hidden(self) -> int:
        """Look for neurons that show in part of space alone: they go on behind those known; the number found."""
        fewest, before = 2, len(self.neurons)
        if len(self.cells().so_far.layers) == len(self.known.layers) or before < fewest:
            return 0
        kinks = self.store.kinks
        usable = self.unexplained() & (kinks.width > NARROWEST * kinks.unit)
        usable[list(self.tried_again)] = False
        which = np.flatnonzero(usable)
        which = which[np.argsort(-(kinks.width / kinks.unit)[which])][: self.limits.hidden_kinks]
        self.tried_again.update(which.tolist())
        for kink in which[straight_in_cell(self.asker, self.store, self.cells(near=True), which)]:
            if self.unexplained()[kink]:
                self.store.measure(np.array([kink]), self.known)
                self.try_kink(int(kink), hidden=True)
        if not self.known.layers and len(self.neurons) > before:
            self.let_go_bending()
        return len(self.neurons) - before

    def patience(self) -> int:
        """How many times as many lines are worth it: more where most lines do not show hyperplanes that they cross."""
        if self.known.layers or not len(self.store.kinks):
            return 1
        hits = [line_score(self.store, self.known, neuron.incoming).hits for neuron in self.neurons]
        rarely_seen, longer = 0.6, 3
        return longer if not hits or np.mean(hits) < rarely_seen * self.store.lines else 1

    def adopt(self, neurons: Iterable[Neuron]) -> None:
        """Neurons that were found before features changed: followed on where that opened something."""
        for neuron in neurons:
            followed = follow_crease(self.asker, self.known, neuron.crease)
            again = None if followed is None else self.accepted(followed, hidden=neuron.hidden)
            if again is not None:
                self.add(neuron.again(again))
                self.settle_sides()

    def at_odds(self) -> bool:
        """True if there are neurons enough to tell all sides below, and they do not agree on them."""
        enough_for_sides = 5  # neurons, where the layer below is no wider than the one before it
        most_for_sides = 2.0  # times as many, while open coefficients leave some side open
        if self.known.sided or self.open_sides:
            return False
        below = self.known.layers[-1]
        ratio = len(self.neurons) / (enough_for_sides * (1 + len(below) / below.weights.shape[1]))
        incomings = [neuron.incoming for neuron in self.neurons]
        return ratio > 1 and (ratio > most_for_sides or sides_are_told(self.known, incomings))

    def unread(self) -> IntArray:
        """Neurons of the layer below that none of these reads: parts of neurons of this layer, in one of its cells."""
        return find_unread(self.known, [neuron.incoming for neuron in self.neurons])

    def misplaced(self) -> list[Neuron]:
        """Creases that do not bend at the neurons of the layer below: they belong to that layer themselves."""
        straight_share = 1e-6  # share of the weights: a crease that does not bend
        if self.known.sided:
            return []
        below = len(self.known.layers[-1])
        return [
            n for n in self.neurons
            if np.linalg.norm(n.incoming.weights[:below]) < straight_share * np.linalg.norm(n.incoming.weights)
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
        while fruitless < self.limits.fruitless and len(batch := self.next_batch()) and not self.at_odds():
            found = len(self.neurons)
            self.tried.update(batch.tolist())
            straight = batch[straight_in_cell(self.asker, self.store, self.cells(), batch)]
            if not self.known.layers:
                self.store.measure(straight, self.known)
            self.close()
            for kink in straight:
                if self.at_odds():
                    break
                if self.unexplained()[kink]:
                    self.store.measure(np.array([kink]), self.known)
                    self.try_kink(int(kink))
            fruitless = 0 if len(self.neurons) > found else fruitless + len(batch)
            if not self.known.layers:
                break
        return len(self.neurons) - before

    def review(self) -> None:
        """Let go of neurons that new lines speak against."""
        least = self.limits.seen_share
        shares = [line_score(self.store, self.known, neuron.incoming).share() for neuron in self.neurons]
        scores = [
            share / (self.limits.hidden_share if n.hidden else least)
            for n, share in zip(self.neurons, shares, strict=True)
        ]
        most = max(scores, default=0.0)  # one stays
        self.neurons = [n for n, score in zip(self.neurons, scores, strict=True) if score >= min(1.0, most)]

    def next_batch(self) -> IntArray:
        """All kinks of a line for the first layer; then some at a time, the cheapest and roomiest first."""
        together = 16
        farthest_start = 16.0  # in units of the scale: no walk starts farther out
        kinks = self.store.kinks
        usable = self.unexplained() & (kinks.width > NARROWEST * kinks.unit)
        usable &= (kinks.unit < farthest_start * self.store.scale) | (not self.known.layers)
        usable[list(self.tried)] = False
        which = np.flatnonzero(usable)
        if not len(which):
            return which
        if not self.known.layers:
            return which[kinks.line[which] == kinks.line[which[0]]]
        width = (kinks.width / kinks.unit)[which]
        return which[np.lexsort([-width, ~self.store.measured()[which]])[:together]]

    def unexplained(self) -> BoolArray:
        """Kinks that neither known layers nor neurons found so far explain."""
        rest = self.store.unexplained(self.known)
        for neuron in self.neurons:
            rest &= ~passes_kinks(self.store, self.known, neuron.incoming)
        return rest

    def try_kink(self, kink: int, *, hidden: bool = False) -> None:
        """Follow the crease of a kink; keep it if it is a neuron of this layer."""
        normal, cells = self.store.normal(kink), self.cells(near=hidden)
        if normal is None or not fills_cell(self.asker, cells, self.store.kinks.point[kink], normal[0]):
            return
        self.count_one()
        start = Crease(self.store.kinks.point[kink][None], *normal)
        crease = None if self.is_part(start) else follow_crease(self.asker, self.known, start)
        if crease is None:
            return
        neuron = self.accepted(crease, hidden=hidden)
        if neuron is not None and (self.goes_on(neuron) if hidden else self.is_confirmed(neuron)):
            self.add(neuron)
            self.settle_sides()

    def is_confirmed(self, neuron: Neuron) -> bool:
        """True if stored lines or places that are asked show it often enough."""
        return is_confirmed(self.asker, self.store, self.known, neuron, self.limits.seen_share)

    def goes_on(self, neuron: Neuron) -> bool:
        """True if several lines show it, and no other neuron of this layer ends it."""
        fewest_hits = 3
        hits = line_score(self.store, self.known, neuron.incoming).hits
        so_far = self.cells(besides=neuron).so_far
        return hits >= fewest_hits and not ends_at(self.asker, self.known, neuron.crease, neuron.incoming, so_far)

    def cells(self, besides: Neuron | None = None, *, near: bool = False) -> Cells:
        """The cells of the layers below, and the neurons that are known well, but one."""
        sure = [neuron.incoming for neuron in self.neurons if neuron.incoming.closed and neuron is not besides]
        if not sure:
            return Cells(self.known, self.known, near)
        rows, biases = np.array([each.weights for each in sure]), np.array([each.bias for each in sure])
        return Cells(self.known, self.known.extended(Layer.of(rows, biases)), near)

    def count_one(self) -> None:
        """One crease more is followed; too many of them are a sign that layers are too many, or too wide."""
        besides = 5  # neurons
        self.store.followed += 1
        self.store.found = max(self.store.found, self.known.hinge_count + len(self.neurons))
        most = self.limits.followed
        if self.known.layers:  # those of the first layer take no walk
            most = min(most, self.limits.followed_each * (self.store.found + besides))
        if self.store.followed > most:
            stage = f"layer {len(self.known.layers) + 1}"
            reason = "creases that no layer could be named for, after this many"
            raise StageFailed(stage, reason, number=self.store.followed, limit=most)

    def is_part(self, start: Crease) -> bool:
        """True if this is the crease of an open neuron, where more of it can be seen; then it has become part of it."""
        incoming = solve_crease(self.known, start)
        for k, neuron in enumerate(self.neurons):
            if not neuron.incoming.closed and same_neuron(neuron.incoming, incoming):
                both = self.accepted(joined_creases(neuron.crease, start), hidden=neuron.hidden)
                if both is not None:
                    self.neurons[k] = neuron.again(both)
                    return True
        return False

    def add(self, neuron: Neuron) -> None:
        """Add a neuron, or what was seen of it to one that is there already."""
        for k, other in enumerate(self.neurons):
            if same_neuron(other.incoming, neuron.incoming):
                both = self.accepted(joined_creases(other.crease, neuron.crease), hidden=other.hidden)
                if both is not None:
                    self.neurons[k] = other.again(both)
                return
        self.neurons.append(neuron)

    def close(self) -> None:
        """Settle open coefficients by kinks that nothing explains yet."""
        open_ = [k for k, neuron in enumerate(self.neurons) if not neuron.incoming.closed]
        points = self.store.kinks.point[self.unexplained()] if open_ else self.store.kinks.point[:0]
        for k in open_:
            neuron = self.neurons[k]
            crease = close_from_kinks(self.known, neuron.crease, neuron.incoming, points)
            closed = None if crease is None else self.accepted(crease, hidden=neuron.hidden)
            if closed is not None:
                self.neurons[k] = neuron.again(closed)

    def settle_sides(self, *, final: bool = False) -> None:
        """Find the sides of the layer below, if they can be; then solve all creases anew, without queries."""
        fewest_to_doubt = 3  # neurons: with fewer there is no majority
        if self.known.sided or self.open_sides:
            return
        incomings = [neuron.incoming for neuron in self.neurons]
        wrong = find_sides(self.known, incomings, final=final)
        both = find_mirrored(self.known, incomings) if wrong is None and final else None
        if both is not None:
            wrong, self.mirrored = both
        elif wrong is None and final and len(self.neurons) > fewest_to_doubt:
            wrong = self.doubt()
        if wrong is not None and self.takes(wrong):
            return
        wrong = try_sides(self.known, [neuron.crease for neuron in self.neurons], LARGEST_RESIDUAL) if final else None
        if wrong is not None:
            self.takes(wrong)

    def takes(self, wrong: BoolArray) -> bool:
        """Turn these neurons of the layer below and solve all creases again; False if none is one with these sides."""
        before, neurons = self.known, self.neurons
        self.turned, self.known = wrong, self.known.with_sides(wrong, self.mirrored)
        self.solve_again()
        if self.neurons:
            return True
        self.known, self.neurons, self.turned, self.mirrored = before, neurons, None, None
        return False

    def solve_again(self) -> None:
        """Solve all creases in the features as they are now."""
        before, self.neurons = self.neurons, []
        for neuron in before:
            again = self.accepted(neuron.crease, hidden=neuron.hidden)
            if again is not None:
                self.add(again)

    def leave_sides_open(self) -> bool:
        """Where neurons are known well and agree on no sides: a layer sees more than the one before. True if so.

        A leaky unit is one with a skip, and so is a residual connection. All layers below stay among the features.
        """
        known_well = 0.5  # share of the neurons without open coefficients
        closed = sum(neuron.incoming.closed for neuron in self.neurons)
        if len(self.neurons) < 2 or self.misplaced() or closed < known_well * len(self.neurons):
            return False
        self.open_sides = True
        if not self.known.layers[-1].undecided.all():
            self.known = self.known.with_open_sides()
            self.solve_again()
        return True

    @property
    def complete(self) -> bool:
        """True if there are neurons, and sides below where there are any to find."""
        return bool(self.neurons) and (self.known.sided or self.open_sides)

    def carry_on(self) -> bool:
        """Leave sides of the layer below open for good, where what turns them can be carried on beside it.

        They do not show where a neuron there is always on: its part of the layer above is linear as well.
        """
        some_decided = self.neurons and not self.known.layers[-1].undecided.all()
        self.known = self.known.carried_on() if self.neurons else self.known
        if some_decided:  # more is carried on than before: the features are others
            self.solve_again()
        return bool(self.neurons)

    def doubt(self) -> BoolArray | None:
        """The sides on which all neurons but one agree; that one is let go."""
        for k in range(len(self.neurons)):
            others = self.neurons[:k] + self.neurons[k + 1 :]
            wrong = find_sides(self.known, [neuron.incoming for neuron in others], final=True)
            if wrong is not None:
                self.neurons = others
                return wrong
        return None

    def learn_sides(self, turned: BoolArray, mirrored: BoolArray | None) -> None:
        """Take down which neurons had to be turned, those turned before already being so, and which are mirrored."""
        for k, (neuron, turn) in enumerate(zip(self.neurons, turned, strict=True)):
            both = neuron.mirrored or (mirrored is not None and bool(mirrored[k]))
            self.neurons[k] = replace(neuron, turned=bool(turn) != bool(neuron.turned), mirrored=both)

    def let_go_deeper(self) -> None:
        """Let go of neurons that bend at others of this layer: they belong to a deeper one.

        Such a crease goes straight on for long where the target is constant behind its bends, or open coefficients
        leave much to choose. Those that lines show least come first.
        """
        if not self.known.layers and self.limits.in_part:
            self.let_go_bending()
        if self.known.layers:
            self.let_go_of_sums()
        on_most = 0.75 * self.store.lines
        hits = {id(neuron): line_score(self.store, self.known, neuron.incoming).hits for neuron in self.neurons}
        for neuron in sorted(self.neurons, key=lambda each: hits[id(each)]):
            if self.known.layers:
                so_far = self.cells(besides=neuron).so_far
                if ends := ends_at(self.asker, self.known, neuron.crease, neuron.incoming, so_far):
                    self.neurons = [other for other in self.neurons if other is not neuron]
                if ends or neuron.incoming.closed:
                    continue
            if not self.known.layers and hits[id(neuron)] >= on_most:
                continue
            surer = [n for n in self.neurons if n.incoming.closed and hits[id(n)] > hits[id(neuron)]]
            if surer and self.bends_at(surer, neuron):
                self.neurons = [other for other in self.neurons if other is not neuron]

    def let_go_of_sums(self) -> None:
        """Let go of neurons that are sums of others, and show only on one side of all of these: they read those.

        Above a few neurons, nothing shows where all of these are off, so that such a crease never seems to end. Not
        where it is nowhere else: above a few features all neurons are sums of others.
        """
        for neuron in sorted(self.neurons, key=lambda each: len(each.crease.points)):
            others = [n.incoming for n in self.neurons if n.incoming.closed and n is not neuron]
            if neuron.incoming.closed and is_sum(neuron.incoming, self.one_sided_of(neuron, others)):
                places = reached(self.asker, self.known, neuron.crease, neuron.incoming)
                beside = self.one_sided_of(neuron, others, places)
                if not is_sum(neuron.incoming, beside):
                    self.neurons = [other for other in self.neurons if other is not neuron]

    def one_sided_of(
        self, neuron: Neuron, others: Sequence[IncomingWeights], also: FloatArray | None = None
    ) -> list[IncomingWeights]:
        """Those of these neurons on one side of which all points of a crease lie, and these points."""
        points = neuron.crease.points if also is None else np.concatenate([neuron.crease.points, also])
        features = self.known.features(points)
        sides = [other.values(features) > 0 for other in others]
        return [other for other, side in zip(others, sides, strict=True) if side.all() or not side.any()]

    def let_go_bending(self) -> None:
        """Let go of neurons of the first layer whose creases bend where they meet those of others."""
        rows = np.array([neuron.incoming.weights for neuron in self.neurons]).reshape(-1, self.store.dim)
        sizes = np.linalg.norm(rows, axis=1)
        biases = np.array([neuron.incoming.bias for neuron in self.neurons])
        on = np.array([neuron.crease.points[0] for neuron in self.neurons]).reshape(rows.shape)
        planes = CreasePlanes(rows / sizes[:, None], biases / sizes, np.full(len(rows), LARGEST_RESIDUAL), on)
        bent = CreaseMeetings(self.asker.ask, self.asker.noise, self.asker.scale).bending(planes, planes)
        self.neurons = [neuron for neuron, drop in zip(self.neurons, bent, strict=True) if not drop]

    def bends_at(self, others: Sequence[Neuron], neuron: Neuron) -> bool:
        """True if the crease of a neuron, followed across those of others, is seen to bend there."""
        known = self.known.extended(replace(self.layer(others), undecided=np.ones(len(others), dtype=bool)))
        crease = follow_crease(self.asker, known, neuron.crease)
        return crease is not None and solve_crease(self.known, crease).residual > INCONSISTENT

    def layer(self, neurons: Sequence[Neuron] | None = None, *, both: bool = False) -> Layer:
        """The neurons found, or these, as a layer with unit rows; what cannot be seen of them is settled."""
        neurons = self.neurons if neurons is None else neurons
        if not self.store.domain.is_space:
            return self.layer_by_states(neurons)
        points = [self.store.kinks.point, self.store.middles, *self.store.ends]
        return as_layer(neurons, self.known.features(np.concatenate(points)), both=both)

    def layer_by_states(self, neurons: Sequence[Neuron]) -> Layer:
        """The same where lines tell the states of neurons; all sides are open."""
        store, known = self.store, self.known
        features = known.features(store.middles)
        passed = [passes_kinks(store, known, neuron.incoming) for neuron in neurons]
        explained = ~store.unexplained(known)
        rows, biases, open_ = [], [], []
        for k, neuron in enumerate(neurons):
            incoming, point = neuron.incoming, neuron.crease.points[0]
            weights = incoming.weights
            if not incoming.closed:
                others = np.logical_or.reduce([explained, *passed[:k], *passed[k + 1 :]])
                states = carried_states(store, known, incoming, others)
                weights = self.fitted_before(incoming, point, features, states)
                off, on = (store.middles[states * side > 0] for side in (-1, 1))
                open_.append(OpenWeights(k, incoming.open, point, off, on))
            size = np.linalg.norm(weights)
            rows.append(weights / size)
            biases.append(-(weights @ incoming.start) / size)
        undecided = np.ones(len(neurons), dtype=bool)
        return Layer(np.array(rows), np.array(biases), undecided, np.empty(0, dtype=np.intp), open=tuple(open_))

    def fitted_before(
        self, incoming: IncomingWeights, point: FloatArray, features: FloatArray, states: FloatArray
    ) -> FloatArray:
        """Weights with the open part as answers gave it before, or as these states at features ask for."""
        before = self.fitted.get(point.tobytes())
        if before is not None and len(before) == len(incoming.weights):
            fixed = before - incoming.open @ (incoming.open.T @ before)
            size = float(incoming.weights @ incoming.weights) / float(fixed @ incoming.weights)
            return incoming.weights + incoming.open @ (incoming.open.T @ before) * size
        return settled_by_states(incoming, features, states).weights

    def accepted(self, crease: Crease, *, hidden: bool = False) -> Neuron | None:
        """The neuron of a crease, as far as is known."""
        least = self.limits.hidden_share if hidden else self.limits.seen_share
        found = accepted_neuron(self.store, self.known, crease, least)
        return None if found is None else replace(found, hidden=hidden)


class NoFurtherLayer(StageFailed):
    """No crease is one of a layer on top of these."""


MOST_WRONG = 0.4  # of the answers: beyond, the others are no majority


@dataclass(frozen=True)
class _Stop:
    """Layers that leave so many answers wrong, and what puts them back; is_end: no further one is looked for."""

    wrong: float
    both: bool = False
    go_back: Callable[[], None] | None = None
    is_end: bool = False


class Ladder:
    """The searches of all layers so far; below each, sides are decided."""

    def __init__(
        self,
        oracle: Counting,
        asker: Asker,
        store: KinkStore,
        limits: LayerLimits,
        first: tuple[FloatArray, FloatArray] | None = None,
    ) -> None:
        self.oracle, self.asker, self.store, self.limits = oracle, asker, store, limits
        self.first = first  # normals and offsets of the first layer, where they are known
        self.searches: list[LayerSearch] = []
        self.both = False  # open neurons of the last layer are there on both sides

    @property
    def top(self) -> LayerSearch:
        """The search of the last layer."""
        return self.searches[-1]

    def known(self) -> KnownLayers:
        """All layers, the last one with open sides."""
        return self.with_top(both=self.both)

    def next_search(self) -> LayerSearch:
        """The search for a layer on top of these, each neuron of which is there once."""
        search = LayerSearch(self.asker, self.store, self.with_top(both=False), self.limits)
        search.open_sides = not self.store.domain.is_space and bool(self.searches)
        return search

    def with_top(self, *, both: bool) -> KnownLayers:
        """All layers; both: open neurons of the last one are there on both sides."""
        if not self.searches:
            return KnownLayers(self.store.dim, domain=self.store.domain)
        return self.top.known.extended(self.top.layer(both=both))

    @property
    def settled(self) -> tuple[int, ...]:
        """Neurons of each layer, and how many of their coefficients are open."""
        neurons = [neuron for search in self.searches for neuron in search.neurons]
        return *(len(search.neurons) for search in self.searches), sum(n.incoming.open.shape[1] for n in neurons)

    def climb(self, wrong_share: Callable[[KnownLayers], float]) -> None:
        """Find layers until one is the last, by the share of answers that an output on top of them leaves wrong.

        Where no further layer is found, the layers that leave the fewest wrong are all, if these are no majority.
        """
        best = _Stop(MOST_WRONG)
        try:
            while len(self.searches) < self.limits.layers:
                search = self.next_layer()
                if search.is_guess:
                    raise NoFurtherLayer(f"layer {len(self.searches) + 1}", "open coefficients", number=0, limit=1)
                self.push(search)
                best = self.best_stop(best, search, wrong_share)
                if best.is_end:
                    break
        except NoFurtherLayer:
            if best.go_back is None:
                raise
        if best.go_back is None:
            most = self.limits.layers
            raise StageFailed("layers", "kinks that no layer explains", number=most, limit=most)
        best.go_back()
        self.both = best.both

    def best_stop(self, best: _Stop, search: LayerSearch, wrong_share: Callable[[KnownLayers], float]) -> _Stop:
        """Where to end, after one search more: there if little is left wrong, or little of its own kinks."""
        little = 0.1  # of the answers: what missing neurons play a part in as a rule
        for both in (False, True):
            self.both = both
            if both and all(neuron.incoming.closed for neuron in search.neurons):
                continue
            wrong = wrong_share(self.known())
            if wrong < best.wrong:
                is_end = wrong <= little or search.explains_most()
                best = _Stop(wrong, both, self.kept(), is_end)
            if best.is_end:
                break
        self.both = False
        return best

    def next_layer(self) -> LayerSearch:
        """The search of the next layer, after repairs of those below where it asks for them."""
        repairs = 0
        while True:
            number = len(self.searches) + 1
            search = self.next_search()
            with self.oracle.stage(f"layer {number}"):
                if number == 1 and self.first is not None:
                    search.begin(*self.first)
                search.run()
                if search.explains_little() and self.find_hidden():
                    continue
                search = self.without_unread(search)
                if not search.complete:
                    misplaced, hopeful = search.misplaced(), repairs < self.limits.repairs
                    hopeful &= bool(misplaced) or not search.is_well_seen()  # else units missing below are always on
                    if (misplaced or not search.neurons or number > 1) and hopeful and self.repair(search):
                        repairs += not misplaced
                        continue
                    if search.leave_sides_open():
                        search.run()
                    if not search.complete:
                        if not search.carry_on():
                            raise _layer_failure(number, search)
                        search.run()  # neurons at odds have ended it before
            return search

    def without_unread(self, search: LayerSearch) -> LayerSearch:
        """The same layer on the one below without neurons that it does not read, if it explains their kinks too.

        Not where neurons are missing below, for those that are found here instead read nothing; nor above the first
        layer, which every line shows.
        """
        explained = 0.75  # of their kinks
        if len(self.searches) < 2 or search.misplaced() or not len(unread := search.unread()):
            return search
        put_back, below = self.kept(), self.top
        gone = [below.neurons[k].incoming for k in unread]
        below.neurons = [neuron for k, neuron in enumerate(below.neurons) if k not in unread]
        again = self.next_search()
        again.adopt(search.neurons)
        again.run()
        passed = np.any([passes_kinks(self.store, below.known, incoming) for incoming in gone], axis=0)
        known_well = [sum(neuron.incoming.closed for neuron in each.neurons) for each in (search, again)]
        as_well = known_well[1] >= known_well[0] and (again.complete or (again.is_well_seen() and not search.complete))
        if as_well and again.unexplained()[passed].mean() <= 1 - explained:
            return again
        put_back()
        return search

    def push(self, search: LayerSearch) -> None:
        """One rung more; the sides it found are those of the rung below."""
        if search.turned is not None:
            self.top.learn_sides(search.turned, search.mirrored)
        self.searches.append(search)

    def repair(self, failed: LayerSearch) -> bool:
        """Something is missing below: creases that run straight through the last layer, or kinks on new lines."""
        if not self.searches:
            return False
        before = len(self.top.neurons)
        self.top.adopt(failed.misplaced())
        if len(self.top.neurons) > before:
            return True
        self.store.scan_random(self.limits.repair_lines)
        return self.reenter()

    def find_hidden(self) -> bool:
        """Look for neurons that show in part of space alone, from the lowest layer up; those above begin again."""
        for number, search in enumerate(self.searches):
            if search.known.sided and search.find_hidden():
                self.searches = self.searches[: number + 1]
                return True
        return False

    def starts(self) -> Iterator[KnownLayers]:
        """All layers, their open coefficients as answers gave them before, then as lines alone say."""
        yield self.known()
        before = [search.fitted for search in self.searches]
        if any(before):
            for search in self.searches:
                search.fitted = {}
            yield self.known()
            for search, fitted in zip(self.searches, before, strict=True):
                search.fitted = fitted

    def remember_fit(self, known: KnownLayers) -> None:
        """Keep open coefficients as answers gave them: the next fit begins there."""
        for search, layer in zip(self.searches, known.layers, strict=True):
            search.fitted = {part.point.tobytes(): layer.weights[part.neuron] for part in layer.open}

    def look_again(self) -> None:
        """After new lines: what they speak against is dropped, what they close is closed, new creases are followed."""
        if self.limits.in_part and self.top.known.layers and self.top.find_by_jumps():
            return
        self.top.review()
        self.top.close()
        if not self.store.domain.is_space:
            self.top.neurons = [self.top.followed_on(neuron) for neuron in self.top.neurons]
        # Layers that were rebuilt may have lost neurons, whose kinks are there again.
        for again in range(self.limits.reentries):
            if not self.reenter():
                if not again and self.store.domain.is_space:
                    self.add_layer()
                return

    def add_layer(self) -> None:
        """One layer more of kinks that fit into none: units that switch on few inputs may be all that shows of it."""
        if len(self.searches) < self.limits.layers:
            search = self.next_search()
            search.try_everything()
            search.settle_sides(final=True)
            if search.neurons and (search.known.sided or search.carry_on()):
                self.push(search)

    def kept(self) -> Callable[[], None]:
        """What puts all searches back as they are now; kinks that were tried since stay tried."""
        before = [(each, each.known, list(each.neurons), each.turned, each.mirrored) for each in self.searches]

        def put_back() -> None:
            tried = [search.tried for search in self.searches]
            self.searches = [search for search, *_ in before]
            for search, known, neurons, turned, mirrored in before:
                search.known, search.neurons, search.turned, search.mirrored = known, neurons, turned, mirrored
            for search, more in zip(self.searches, tried, strict=False):
                search.tried |= more

        return put_back

    def reenter(self) -> bool:
        """Try kinks that nothing explains in every layer, from the lowest; True if a neuron was found."""
        unexplained = self.store.unexplained(self.known())
        for number, search in enumerate(self.searches):
            search.tried |= set(np.flatnonzero(~unexplained).tolist())
            if search.try_everything():
                self.rebuild(number + 1)
                return True
        return False

    def rebuild(self, start: int) -> None:
        """Solve all creases from this rung on in the features of the layers below as they are now."""
        above, self.searches = self.searches[start:], self.searches[:start]
        for old in above:
            search = self.next_search()
            search.open_sides = old.open_sides
            search.adopt(old.neurons)
            if not search.known.sided:
                search.try_everything()
                search.settle_sides(final=True)
            if not (search.complete or search.carry_on()):
                raise _layer_failure(len(self.searches) + 1, search)
            self.push(search)


def _layer_failure(number: int, search: LayerSearch) -> StageFailed:
    if not search.neurons:
        return NoFurtherLayer(f"layer {number}", "no crease could be followed", number=0, limit=1)
    open_ = int(search.known.layers[-1].undecided.sum())
    return StageFailed(f"layer {number}", f"sides of neurons of layer {number - 1} stay open", number=open_, limit=0)

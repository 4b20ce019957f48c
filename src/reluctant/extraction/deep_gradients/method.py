"""`GradientLayers`: several hidden layers of a target that answers gradients.

Whole lines show the creases of all layers with their normals. Those of the first layer are the same on every line;
those of the next are combinations of slopes that the first one gives, and so on. A neuron counts once its crease is
where it must be at other places. A layer counts once gradients are combinations of its neurons' slopes where a missing
neuron would be on. The last layer is the one that outputs can be solved for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import ClassVar, TypeAlias

import numpy as np

from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.extraction.any_depth.output_layer import oriented_network, without_outputs
from reluctant.extraction.deep_gradients.crease_normals import CreaseLines, Normals, explained, known_creases
from reluctant.extraction.deep_gradients.layer_matches import Match, crease_places, matches, pool, with_more_weights
from reluctant.extraction.deep_gradients.layer_sides import (
    find_sides,
    readout_from_gradients,
    stray_and_clean,
    with_outputs,
)
from reluctant.extraction.deep_gradients.open_cells import across_facet, probes, segment, with_more_on
from reluctant.extraction.method import Candidate, Method, StageFailed, check_settings
from reluctant.geometry import DistanceNoise
from reluctant.geometry.jumps import (
    MOST_JUMPS,
    SAME_ROUNDINGS,
    ExpectedCreases,
    GradientNoise,
    Jumps,
    SearchedLine,
    TooManyJumps,
    jumps_on_line,
)
from reluctant.geometry.lines import BoolArray, Lines
from reluctant.messages import Diagnosis, Notes
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting, Explained
from reluctant.oracles.ledger import Limit
from reluctant.verification import HeldOutRows
from reluctant.verification.cells import covering_points, far_points

LINES, LAYERS = "lines", "layers"
CHECK = "check"
MOST_DIFFERING = 0.1  # of the rows: where a network is right but for a neuron that is missing
CHECKED_TO = 1e-6  # of the largest gradient
EXACT = 1e-8  # the same, of outputs that gradients are solved for
SAME_NEURON = 1e-6  # sine of the angle between rows of one neuron
PLACES, MORE_PLACES = 2, 4  # that a neuron is confirmed at, and where sides stay in doubt
ROUNDS = 3  # of looking at places
FOLLOWED = 4  # points of a crease that is followed, and places on it
MOST_LOOKS = 4  # at short segments, for the next weights of a neuron
PAIRS_SEEN = 3  # creases of one neuron above the first layer that need no such places, if none is missing
LIMITS = Notes((Diagnosis("layers-where-met"),))


Lacks: TypeAlias = Callable[[FloatArray, Explained], BoolArray]


def stray_rows(known: KnownLayers, rows: FloatArray, found: Explained) -> BoolArray:
    """Rows (n,) whose gradients lack a neuron of the last layer."""
    return stray_and_clean(known, rows, found)[0]


@dataclass(frozen=True)
class GradientLayers(Method):
    """Exact extraction of several hidden layers, none wider than the one before, from gradients.

    Arguments:
        first_lines: whole lines to search before the first layer is built.
        lines: most lines, one by one, until every layer is found.
        starts: most starts with other lines, if hidden layers were found in part and none is wider than the one before.
        segments: most extra segments for a layer, where as many known neurons as possible are on.
        look: first rows of the search on a line.
        most_layers: most hidden layers.
        through: inputs (n, d) for the first lines to pass, such as those that contradicted an earlier network.
        begun: lines that an earlier method searched, the first of them to its end.
        leads: most lines to places where a layer lacks a neuron.
        held_against: earlier rows that decide where a layer lacks one.
        rows_a_crease: most rows of a start for each crease of the first lines.
        fewest_creases: this limit counts so many creases more.
        fitted_distance: fits of biases leave out rows farther from the origin, in typical inputs.
    """

    needs_space: ClassVar[bool] = True
    reads_gradients: ClassVar[bool] = True

    first_lines: int = 2
    lines: int = 4
    starts: int = 3
    segments: int = 24
    look: int = 5
    most_layers: int = 8
    leads: int = 8
    held_against: int = 200
    rows_a_crease: int = 20
    fewest_creases: int = 50
    fitted_distance: float = 30.0
    through: FloatArray | None = field(default=None, compare=False, repr=False)
    begun: tuple[SearchedLine, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        check_settings(self)

    def run(
        self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]
    ) -> Candidate:
        """One attempt; raises StageFailed where creases stay unexplained."""
        for start in range(self.starts):
            search = _LayerSearch(oracle, GradientNoise(noise), rng, self)
            try:
                return self.from_lines(search, keep, self.begun if not start else ())
            except StageFailed:
                if start + 1 == self.starts or not search.narrows:
                    raise
        raise AssertionError  # there is one start at least

    def from_lines(
        self, search: _LayerSearch, keep: Callable[[ReLUNetwork], None], begun: tuple[SearchedLine, ...]
    ) -> Candidate:
        """One start: lines, then more of them while layers are not found."""
        oracle, rng = search.oracle, search.rng
        with oracle.stage(LINES):
            for line in begun:
                search.take(line)
            for _ in range(self.first_lines - len(begun)):
                search.look_along_another()
            for row in [] if self.through is None else self.through[: self.leads]:
                search.look_along(replace(Lines.random(rng, 1, oracle.dim), origins=row[None]))
        while True:
            try:
                with oracle.stage(LAYERS):
                    return search.candidate(keep)
            except StageFailed:
                if search.whole >= self.lines or search.widens:
                    raise
            with oracle.stage(LINES):
                search.look_along_another()


@dataclass
class _LayerSearch:
    """The lines, everything that was asked, and the neurons of each layer so far."""

    oracle: Counting
    noise: GradientNoise
    rng: np.random.Generator
    settings: GradientLayers

    def __post_init__(self) -> None:
        self.oracle = Limit(self.most_rows, refusal=self.refusal).of(self.oracle)
        self.creases = CreaseLines(self.oracle.dim)
        self.known = KnownLayers(self.oracle.dim)  # complete layers with their sides
        self.below: list[bytes] = []  # of each layer, those below it when its neurons were found
        self.found: list[list[Match]] = []  # of each layer, the neurons that count
        self.refuted: list[list[FloatArray]] = []  # of each layer, rows of matches that are no neuron of it
        self.stuck: list[list[FloatArray]] = []  # of each layer, rows of neurons that lack weights
        self.begun: set[int] = set()  # layers that a segment was searched for
        self.probed: set[int] = set()  # layers whose completeness was asked for
        self.probed_again: set[int] = set()
        self.probes: list[tuple[FloatArray, Explained]] = []  # the rows of that
        self.size, self.whole, self.led = 0.0, 0, 0
        self.rows: list[FloatArray] = []
        self.answers: list[Explained] = []

    @property
    def widens(self) -> bool:
        """True if a layer is wider than the one before: sides do not show then."""
        widths = [self.oracle.dim, *(len(each) for each in self.found)]
        return any(before < width for before, width in pairwise(widths))

    def most_rows(self) -> float:
        """Rows that this start may take, from the end of the first lines on."""
        settings = self.settings
        if len(self.creases.lines) < settings.first_lines:
            return np.inf
        creases = int((self.creases.normals.line < settings.first_lines).sum())
        return float(settings.rows_a_crease * (settings.fewest_creases + creases))

    @staticmethod
    def refusal(wanted: int, most: float) -> StageFailed:
        """The end of a search that goes on beyond that."""
        return StageFailed(LAYERS, "creases that no layers explain", number=wanted, limit=most)

    @property
    def narrows(self) -> bool:
        """True if several layers are found in part, none wider than the one before."""
        return len(self.found) > 1 and not self.widens

    # ---- asking

    def ask(self, rows: FloatArray) -> Explained:
        """Values and gradients, kept for later."""
        found = self.oracle.query_gradients(rows)
        self.rows.append(rows)
        self.answers.append(found)
        self.size = max(self.size, float(np.linalg.norm(found.gradients, axis=2).max(initial=0.0)))
        return found

    @property
    def smallest(self) -> float:
        """A change of gradient that is not rounding."""
        return SAME_ROUNDINGS * self.noise.rounding * self.size

    def look_along_another(self) -> None:
        """The creases of one more whole line."""
        self.whole += 1
        self.look_along(Lines.random(self.rng, 1, self.oracle.dim))

    def take(self, line: SearchedLine) -> None:
        """A line that was searched before, by the same questions; to its end."""
        self.whole += 1
        self.rows.append(line.rows)
        self.answers.append(line.answers)
        self.size = max(self.size, float(np.linalg.norm(line.answers.gradients, axis=2).max()))
        if line.jumps is None:
            self.look_along(line.lines, begun=line)
        else:
            sizes = np.linalg.norm(line.answers.gradients, axis=2).max(axis=1)
            self.creases.add(line.lines, line.jumps, (line.rows, sizes), self.noise, self.size)

    def expected(self, line: Lines) -> ExpectedCreases | None:
        """Creases on a line of the neurons that are known; without any, of every hyperplane so far."""
        known = self.all_found()
        if known.layers:
            return known_creases(known, line)
        if self.creases.found is None:
            return None
        found = self.creases.found
        return ExpectedCreases.of_hyperplanes(line, found.normals, -np.einsum("nd,nd->n", found.normals, found.points))

    def look_along(self, line: Lines, depth: int = 0, *, begun: SearchedLine | None = None) -> None:
        """The creases of this line, along which so many layers do not change."""
        before = len(self.rows) - (begun is not None)
        try:
            jumps = jumps_on_line(
                self.ask, line, self.noise, size=lambda: self.size, first=self.settings.look,
                expected=self.expected(line), begun=begun,
            )  # fmt: skip
        except TooManyJumps as many:
            raise self.refusal(many.found, MOST_JUMPS) from many
        rows = np.concatenate(self.rows[before:])
        sizes = np.concatenate([np.linalg.norm(each.gradients, axis=2).max(axis=1) for each in self.answers[before:]])
        self.creases.add(line, jumps, (rows, sizes), self.noise, self.size, depth)

    def between_ends(self, line: Lines, depth: int) -> Normals:
        """The crease of a short segment that should have one; whether it is one, its weights say. Cost: 2 rows."""
        ends = line.points(np.zeros(2, dtype=np.intp), np.array([line.low[0], line.high[0]]))
        jump = np.diff(self.ask(ends).gradients, axis=0)
        middle = ends.mean(axis=0)[None]
        place = Jumps(middle, jump, np.zeros(1), line.high - line.low, middle, np.zeros((1, jump.shape[1])))
        return Normals.of(place, 0, depth, self.noise, self.size)

    def look_between(self, rows: FloatArray, there: FloatArray, lacks: Lacks) -> None:
        """The creases near an unknown one, on the way from the nearest of some inputs to another, if there is a way.

        lacks: whether a neuron is missing at rows, as at the end of the way. Halving leaves few known creases on it.
        """
        distance = np.linalg.norm(rows - there, axis=1)
        if not distance.min(initial=np.inf) > 0 or not len(rows):
            return
        start, stop = (with_more_on(self.known, row) for row in (rows[np.argmin(distance)], there))
        while (start != stop).any():
            line = Lines.between(start[None], stop[None], float(np.sqrt(self.oracle.dim)))
            expected = self.expected(line)
            if expected is None or len(expected) <= FEW_EXPECTED:
                self.look_along(line)
                return
            middle = line.points(
                np.zeros(1, dtype=np.intp), expected.t[len(expected) // 2 - 1 :][:2].mean(keepdims=True)
            )
            if lacks(middle, self.ask(middle))[0]:
                stop = middle[0]
            else:
                start = middle[0]

    def everything(self) -> tuple[FloatArray, Explained]:
        """All rows with their answers."""
        values = np.concatenate([each.values for each in self.answers])
        slopes = np.concatenate([each.gradients for each in self.answers])
        return np.concatenate(self.rows), Explained(values, slopes)

    # ---- layers

    def layer(self, number: int) -> Layer:
        """The neurons that were found of a layer, sides open."""
        found = self.found[number]
        width = len(self.known.layers[number - 1]) if number else self.oracle.dim
        weights = np.array([each.weights for each in found]).reshape(len(found), width)
        biases = np.array([each.bias for each in found])
        return Layer(weights, biases, np.ones(len(found), dtype=bool), np.empty(0, dtype=np.intp))

    def all_found(self) -> KnownLayers:
        """Every layer with a neuron, and the sides that are known of those below the last."""
        known = self.known
        number = len(known.layers)
        if number < len(self.found) and self.found[number]:
            known = known.extended(self.layer(number))
        return known

    def candidate(self, keep: Callable[[ReLUNetwork], None]) -> Candidate:
        """Layer after layer, until outputs explain the gradients."""
        self.known, number = KnownLayers(self.oracle.dim), 0
        while number < self.settings.most_layers:
            self.begin(number)
            found = self.as_last(number, keep)
            if found is not None:
                return found
            try:
                layers = self.known.extended(self.layer(number))
                self.known = find_sides(layers, *self.everything(), self.ask, self.rng)
                number += 1
            except StageFailed:
                if not (self.probe_again(number) or self.recheck(number)):
                    raise
        raise StageFailed(LAYERS, "more layers than are looked for", number=float(number), limit=0.0)

    def begin(self, number: int) -> None:
        """Forget what was found of a layer, and above it, on other layers below than are known now."""
        below = b"".join(layer.weights.tobytes() for layer in self.known.layers)
        if number < len(self.below) and self.below[number] == below:
            return
        for part in (self.below, self.found, self.refuted, self.stuck):
            del part[number:]
        self.below.append(below)
        for empty in (self.found, self.refuted, self.stuck):
            empty.append([])
        for done in (self.begun, self.probed, self.probed_again):
            done.difference_update(range(number, self.settings.most_layers))

    def as_last(self, number: int, keep: Callable[[ReLUNetwork], None]) -> Candidate | None:
        """The network if this layer is the last one, after lines to where it lacks a neuron; else None."""
        lacking, self.led = False, 0
        while self.led <= self.settings.leads:
            before = len(self.found[number])
            self.complete(self.known, number, lacking)
            if not self.found[number]:
                raise StageFailed(LAYERS, "no neuron of a layer is met twice", number=float(number), limit=0.0)
            if self.widens and number:
                self.recheck(number)
            if self.widens:
                most = float(self.oracle.dim if not number else len(self.found[number - 1]))
                raise StageFailed(
                    LAYERS, "a layer wider than the one before", number=len(self.found[number]), limit=most
                )
            layers = self.known.extended(self.layer(number))
            keep(without_outputs(layers, self.oracle.outputs))
            network = self.with_outputs(layers) if not lacking or len(self.found[number]) > before else None
            if network is None:
                break
            held_out, lacking = self.agrees(network), True
            if held_out is not None:
                return Candidate(network, held_out, limits=LIMITS)
        return None

    def probe_again(self, number: int) -> bool:
        """True if more probes show that a layer lacks a neuron; once for each layer."""
        if not number or number in self.probed_again:
            return False
        self.probed_again.add(number)
        self.probe(number, every=True)
        return len(self.stray_and_clean(self.known.extended(self.layer(number)))[0]) > 0

    def probe(self, number: int, *, every: bool = False) -> None:
        """Ask where neurons that a layer may lack would be on."""
        rows = probes(self.known, self.rng, every=every)
        if len(rows):
            self.probes.append((rows, self.ask(rows)))

    def complete(self, known: KnownLayers, number: int, lacking: bool) -> None:
        """Look for the neurons of a layer until none seems to be missing, or nothing more is found.

        lacking: one is missing, so that creases that were met once count, too.
        """
        segments = 0
        while True:
            open_ = self.take_matches(known, number, singles=lacking)
            if number and not self.found[number] and number not in self.begun:
                self.begun.add(number)
                self.look_in_cell(known, None)
                continue
            if open_ and segments < self.settings.segments and not lacking:
                segments += 1
                self.look_in_cell(known, open_[self.rng.integers(len(open_))].weights)
                continue
            if number and number not in self.probed:
                self.probed.add(number)
                self.probe(number)
            stray, clean = self.stray_and_clean(known.extended(self.layer(number)))
            self.led += 1
            if not len(stray) or self.led > self.settings.leads:
                return
            if lacking and len(clean):
                lacks = partial(stray_rows, known.extended(self.layer(number)))
                self.look_between(clean, stray[self.rng.integers(len(stray))], lacks)
            elif lacking and number:
                self.look_in_cell(known, None)
            lacking = True

    def look_in_cell(self, known: KnownLayers, across: FloatArray | None) -> None:
        """The creases of a segment where as many known neurons are on as can be."""
        line = segment(known, self.rng, across)
        if line is not None:
            self.look_along(line, len(known.layers))

    def followed(self, known: KnownLayers, match: Match, number: int) -> Match:
        """The same neuron with the weights that show where its crease goes on among more features."""
        while not match.whole:
            more = self.one_step(known, match, number)
            if more is None:
                break
            match = more
        return match

    def one_step(self, known: KnownLayers, match: Match, number: int) -> Match | None:
        """The same with some more weights, from one short segment; None where none shows them."""
        places = crease_places(known, match, pool(known, self.rng), FOLLOWED, self.rng).points
        points = np.concatenate([self.creases.normals.points[match.creases[:FOLLOWED]], places])
        unknown, looks = self.rng.permutation(np.flatnonzero(~match.known)), 0
        each = [np.arange(len(match.known)) == feature for feature in unknown]
        for turned_on in [~match.known, *each] if len(each) > 1 else each:
            for point in points:
                if (known.features(point[None])[0, : len(match.known)] > 0)[~match.known].any():
                    continue
                line = across_facet(known, point, match, turned_on)
                if line is None:
                    continue
                more = with_more_weights(known, match, self.between_ends(line, number), turned_on)
                looks += 1
                if more is not None or looks == MOST_LOOKS:
                    return more
        return None

    def stray_and_clean(self, known: KnownLayers) -> tuple[FloatArray, FloatArray]:
        """Rows whose gradients lack a neuron of the last layer, and rows whose do not."""
        rows, found = self.everything()
        some = self.rng.permutation(len(rows))[: self.settings.held_against]
        probed = {row.tobytes() for part, _ in self.probes for row in part}
        some = np.union1d(some, [i for i, row in enumerate(rows) if row.tobytes() in probed]).astype(np.intp)
        rows = rows[some]
        stray, clean = stray_and_clean(known, rows, Explained(found.values[some], found.gradients[some]))
        return rows[stray], rows[clean]

    def take_matches(self, known: KnownLayers, number: int, *, singles: bool = False) -> list[Match]:
        """Take in the neurons that creases show; those that lack weights come back. singles: also of one crease."""
        while True:
            new = [each for each in matches(known, self.creases, self.layer(number)) if self.may_be(each, number)]
            sure = [each for each in new if each.whole and self.is_sure(each, number)]
            if not sure:
                break
            self.found[number] += sure
        met = [each for each in new if each.lines > 1 or singles or (each.whole and number > 0)]
        good, lacking = self.confirmed(known, number, met), []
        self.found[number] += [each for each in good if each.whole]
        for each in good:
            if number and not each.whole and self.is_new(each, number):
                grown = self.followed(known, each, number)
                if grown.whole and (
                    self.is_sure(grown, number) or self.confirmed(known, number, [grown], followed=True)
                ):
                    self.found[number].append(grown)
                else:
                    self.stuck[number].append(each.row)
                    lacking.append(each)
        return lacking

    def is_new(self, match: Match, number: int) -> bool:
        """False of what was followed in vain before, and of a crease that a neuron found since then explains."""
        if any(abs(row @ match.row) > 1 - SAME_NEURON**2 for row in self.stuck[number]):
            return False
        one = self.creases.normals.chosen(match.creases[:1])
        return not explained(self.known.extended(self.layer(number)), one).any()

    def may_be(self, match: Match, number: int) -> bool:
        """False of what was refuted before."""
        rows = self.refuted[number]
        return not rows or bool((np.abs(np.array(rows) @ match.row) < 1 - SAME_NEURON**2).all())

    @staticmethod
    def is_sure(match: Match, number: int) -> bool:
        """True if creases on several lines are where they must be: two of one hyperplane, else some more."""
        enough = PAIRS_SEEN if number else 2
        return match.lines > 1 and len(match.creases) >= enough and not match.missing

    def confirmed(
        self, known: KnownLayers, number: int, doubtful: list[Match], *, followed: bool = False, again: bool = False
    ) -> list[Match]:
        """Those whose creases are where they must be at other places; also without any place, if weights are missing.

        One that several lines show, and that lacks weights, comes back without a row. The others are remembered as
        refuted. followed: of a neuron that was confirmed before it had all weights. again: of neurons that count, at
        more places.
        """
        if not doubtful:
            return []
        most = MORE_PLACES if again else PLACES
        whole = np.array([each.whole for each in doubtful])
        regular = np.array([each.lines > 1 and not each.missing for each in doubtful])
        needed = np.where((regular | ~whole | followed) & (not again), 1, most)
        votes, points = np.zeros((len(doubtful), 2), dtype=int), pool(known, self.rng)
        open_ = np.flatnonzero(whole | ~regular | again)
        for _ in range(ROUNDS):
            there = [crease_places(known, doubtful[i], points, int(needed[i]), self.rng) for i in open_]
            if not sum(map(len, there)):
                break
            found, start = self.ask(np.concatenate([each.rows for each in there])), 0
            for i, each in zip(open_, there, strict=True):
                stop = start + 2 * len(each)
                part = Explained(found.values[start:stop], found.gradients[start:stop])
                votes[i] += each.seen(part, self.smallest)
                start = stop
            open_ = open_[(votes[open_, 0] < needed[open_]) & (votes[open_, 1] <= votes[open_, 0])]
        yes, no = votes.T
        good = ((yes >= needed) & (yes > 2 * no)) | (~votes.any(axis=1) & (~whole | again))
        self.refuted[number] += [doubtful[i].row for i in np.flatnonzero((no > 0) & ~good)]
        return [doubtful[i] for i in np.flatnonzero(good)]

    def recheck(self, number: int) -> bool:
        """True if neurons of a layer are dropped, whose creases are not where they must be at more places."""
        good = self.confirmed(self.known, number, self.found[number], again=True)
        dropped = len(good) < len(self.found[number])
        self.found[number] = good
        return dropped

    # ---- outputs

    def with_outputs(self, layers: KnownLayers) -> ReLUNetwork | None:
        """The network if this is the last layer: outputs explain most gradients; else None.

        A neuron that is always on has no crease; its part is linear in the layer below.
        """
        rows, found = self.everything()
        near = np.linalg.norm(rows, axis=1) < self.settings.fitted_distance * np.sqrt(self.oracle.dim)
        near_rows, near_found = rows[near], Explained(found.values[near], found.gradients[near])
        try:
            sided = find_sides(layers, rows, found, self.ask, self.rng, last=True)
            return with_outputs(sided, near_rows, near_found, self.ask, self.rng)
        except StageFailed:
            pass
        readout = readout_from_gradients(layers, near_rows, near_found)
        network = oriented_network(layers, readout, near_rows, near_found.values)
        off = self.errors(network, near_rows, near_found)
        return network if (off > EXACT * self.size).mean() <= MOST_DIFFERING else None

    def agrees(self, network: ReLUNetwork) -> HeldOutRows | None:
        """Fresh rows whose gradients are those of the network; None after lines that lead to where they are not.

        Cost: a row for each neuron of every layer but the last, those at which a missing neuron would be on, and those
        of a few lines.
        """
        with self.oracle.stage(CHECK):
            fresh = covering_points(network, self.rng)
            if network.depth > 3 or not self.probes:
                fresh = np.concatenate([fresh, far_points(network, self.rng)])
            found = self.ask(fresh)
            wrong = self.differs(network, fresh, found)
            if not wrong.any():
                return self.held_out(fresh, found)
            rows, found = self.everything()
            right = rows[~self.differs(network, rows, found)]
            for row in self.rng.permutation(fresh[wrong])[:LEADS]:
                self.look_between(right, row, partial(self.differs, network))
        return None

    def held_out(self, fresh: FloatArray, found: Explained) -> HeldOutRows:
        """These rows, and those where layers were probed for missing neurons."""
        rows = np.concatenate([fresh, *(rows for rows, _ in self.probes)])
        values = np.concatenate([found.values, *(each.values for _, each in self.probes)])
        slopes = np.concatenate([found.gradients, *(each.gradients for _, each in self.probes)])
        return HeldOutRows(rows, values, slopes, "where few units are on")

    def errors(self, network: ReLUNetwork, rows: FloatArray, found: Explained) -> FloatArray:
        """Errors (n,) of a network's gradients."""
        return np.asarray(np.linalg.norm(network.gradients(rows) - found.gradients, axis=2).max(axis=1))

    def differs(self, network: ReLUNetwork, rows: FloatArray, found: Explained) -> BoolArray:
        """Rows (n,) where gradients are not those of the network."""
        return self.errors(network, rows, found) > CHECKED_TO * self.size


FEW_EXPECTED = 3  # known creases on a line that leads to a neuron that is not
LEADS = 3  # lines to where gradients are not those of the network, in turn

"""`GradientLayers`: several hidden layers of a target that answers gradients.

Whole lines show the creases of all layers with their normals. Those of the first layer are the same on every line;
those of the next are combinations of slopes that the first one gives, and so on. A neuron counts once its crease is
where it must be at other places. A layer counts once gradients are combinations of its neurons' slopes where a missing
neuron would be on. The last layer is the one that outputs can be solved for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.extraction.any_depth.readout import without_outputs
from reluctant.extraction.deep_gradients.crease_normals import CreaseLines, explained, known_creases
from reluctant.extraction.deep_gradients.crease_places import crease_places, pool
from reluctant.extraction.deep_gradients.layer_matches import Match, matches, with_more_weights
from reluctant.extraction.deep_gradients.layer_sides import find_sides, on_crease, stray_and_clean, with_outputs
from reluctant.extraction.deep_gradients.open_cells import across_facet, probes, segment, with_more_on
from reluctant.extraction.method import Candidate, Method, StageFailed, check_settings
from reluctant.geometry import DistanceNoise
from reluctant.geometry.jumps import SAME_ROUNDINGS, ExpectedCreases, GradientNoise, SearchedLine, jumps_on_line
from reluctant.geometry.lines import BoolArray, Lines
from reluctant.messages import Diagnosis, Notes
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting, Explained
from reluctant.verification import HeldOutRows
from reluctant.verification.cells import covering_points, far_points

LINES, LAYERS = "lines", "layers"
CHECK = "check"
CHECKED_TO = 1e-6  # of the largest gradient
SAME_NEURON = 1e-6  # sine of the angle between rows of one neuron
PLACES, MOST_PLACES = 2, 6  # that a neuron is confirmed at, and that are looked at
FOLLOWED = 4  # points of a crease that is followed, and places on it
MOST_LOOKS = 4  # at short segments, for the next weights of a neuron
PAIRS_SEEN = 3  # creases of one neuron that need no such places, if none is missing
LIMITS = Notes((Diagnosis("layers-where-met"),))


@dataclass(frozen=True)
class GradientLayers(Method):
    """Exact extraction of several hidden layers, none wider than the one before, from gradients.

    Arguments:
        first_lines: whole lines that are searched before the first layer is looked for.
        lines: at most, one by one until every layer is found.
        segments: of a layer, at most, where as many known neurons are on as can be.
        look: rows that the search of a line begins with.
        most_layers: hidden layers, at most.
        through: inputs (n, d) on the first lines, such as spoke against an earlier network.
        begun: lines that were searched before, the first of them to its end.
        leads: lines, at most, to where a layer lacks a neuron.
        held_against: rows that a layer is held against for that, of those asked before.
        fitted_distance: rows farther out, in typical inputs, say nothing of biases.
    """

    needs_space: ClassVar[bool] = True
    reads_gradients: ClassVar[bool] = True

    first_lines: int = 2
    lines: int = 6
    segments: int = 24
    look: int = 5
    most_layers: int = 8
    leads: int = 8
    held_against: int = 200
    fitted_distance: float = 30.0
    through: FloatArray | None = field(default=None, compare=False, repr=False)
    begun: tuple[SearchedLine, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        check_settings(self)

    def run(
        self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]
    ) -> Candidate:
        """One attempt; raises StageFailed where creases stay unexplained."""
        search = _LayerSearch(oracle, GradientNoise(noise), rng, self)
        with oracle.stage(LINES):
            for line in self.begun:
                search.take(line)
            for _ in range(self.first_lines - len(self.begun)):
                search.look_along_another()
            for row in [] if self.through is None else self.through[: self.leads]:
                search.look_along(replace(Lines.random(rng, 1, oracle.dim), origins=row[None]))
        while True:
            try:
                with oracle.stage(LAYERS):
                    return search.candidate(keep)
            except StageFailed:
                if search.whole >= self.lines:
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
        self.creases = CreaseLines(self.oracle.dim)
        self.known = KnownLayers(self.oracle.dim)  # complete layers with their sides
        self.found: list[list[Match]] = []  # of each layer, the neurons that count
        self.refuted: list[list[FloatArray]] = []  # of each layer, rows of what is no neuron of it
        self.probed: set[int] = set()  # layers whose completeness was asked for
        self.size, self.whole, self.led = 0.0, 0, 0
        self.rows: list[FloatArray] = []
        self.answers: list[Explained] = []

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
        jumps = jumps_on_line(
            self.ask, line, self.noise, size=lambda: self.size, first=self.settings.look,
            expected=self.expected(line), begun=begun,
        )  # fmt: skip
        rows = np.concatenate(self.rows[before:])
        sizes = np.concatenate([np.linalg.norm(each.gradients, axis=2).max(axis=1) for each in self.answers[before:]])
        self.creases.add(line, jumps, (rows, sizes), self.noise, self.size, depth)

    def look_between(self, rows: FloatArray, there: FloatArray) -> None:
        """The creases between an input and the nearest of others, if there is a way."""
        distance = np.linalg.norm(rows - there, axis=1)
        if distance.min(initial=np.inf) > 0 and len(rows):
            start, stop = (with_more_on(self.known, row) for row in (rows[np.argmin(distance)], there))
            if (start != stop).any():
                self.look_along(Lines.between(start[None], stop[None], float(np.sqrt(self.oracle.dim))))

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
        self.known = KnownLayers(self.oracle.dim)
        for number in range(self.settings.most_layers):
            known = self.known
            if number == len(self.found):
                self.found.append([])
                self.refuted.append([])
            self.led, lacking = 0, False
            while self.led <= self.settings.leads:
                before = len(self.found[number])
                self.complete(known, number, lacking)
                layer = known.extended(self.layer(number))
                if not len(self.found[number]):
                    raise StageFailed(LAYERS, "no neuron of a layer is met twice", number=float(number), limit=0.0)
                keep(without_outputs(layer, self.oracle.outputs))
                network = self.with_outputs(layer) if not lacking or len(self.found[number]) > before else None
                if network is None:
                    break
                held_out, lacking = self.agrees(network), True
                if held_out is not None:
                    return Candidate(network, held_out, limits=LIMITS)
            self.known = find_sides(layer, *self.everything(), self.ask, self.rng)
        raise StageFailed(LAYERS, "more layers than are looked for", number=float(number), limit=0.0)

    def complete(self, known: KnownLayers, number: int, lacking: bool) -> None:
        """Look for the neurons of a layer until none seems to be missing, or nothing more is found.

        lacking: one is missing, so that creases that were met once are looked at, too.
        """
        segments = 0
        while True:
            partial = self.take_matches(known, number, singles=lacking)
            if number and (not segments or partial) and segments < self.settings.segments and not lacking:
                segments += 1
                across = partial[self.rng.integers(len(partial))].weights if partial else None
                line = segment(known, self.rng, across)
                if line is not None:
                    self.look_along(line, number)
                continue
            if number and number not in self.probed:
                self.probed.add(number)
                self.ask(probes(known, self.rng))
            stray, clean = self.stray_and_clean(known.extended(self.layer(number)))
            self.led += 1
            if not len(stray) or self.led > self.settings.leads:
                return
            if lacking and len(clean):
                self.look_between(clean, stray[self.rng.integers(len(stray))])
            lacking = True

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
                before = len(self.creases.normals)
                self.look_along(line, number)
                new = self.creases.normals.chosen(slice(before, None))
                more = with_more_weights(known, match, new, turned_on)
                looks += 1
                if more is not None or looks == MOST_LOOKS:
                    return more
        return None

    def stray_and_clean(self, known: KnownLayers) -> tuple[FloatArray, FloatArray]:
        """Rows whose gradients lack a neuron of the last layer, and rows whose do not."""
        rows, found = self.everything()
        some = self.rng.permutation(len(rows))[: self.settings.held_against]
        rows = rows[some]
        stray, clean = stray_and_clean(known, rows, Explained(found.values[some], found.gradients[some]))
        return rows[stray], rows[clean]

    def take_matches(self, known: KnownLayers, number: int, *, singles: bool = False) -> list[Match]:
        """Take in the neurons that creases show; those that lack weights come back. singles: also of one crease."""
        while True:
            new = [each for each in matches(known, self.creases, self.layer(number)) if self.may_be(each, number)]
            sure = [each for each in new if each.whole and self.is_sure(each)]
            if not sure:
                break
            self.found[number] += sure
        met = [each for each in new if each.lines > 1 or singles or (each.whole and number > 0)]
        good = self.confirmed(known, number, met)
        self.found[number] += [each for each in good if each.whole]
        partial = []
        for each in good:
            if number and not each.whole and self.is_new(each, number):
                grown = self.followed(known, each, number)
                if grown.whole and self.confirmed(known, number, [grown]):
                    self.found[number].append(grown)
                else:
                    partial.append(each)
        return partial

    def is_new(self, match: Match, number: int) -> bool:
        """False of a crease that a neuron found since then explains."""
        one = self.creases.normals.chosen(match.creases[:1])
        return not explained(self.known.extended(self.layer(number)), one).any()

    def may_be(self, match: Match, number: int) -> bool:
        """False of what was refuted before."""
        rows = self.refuted[number]
        return not rows or bool((np.abs(np.array(rows) @ match.row) < 1 - SAME_NEURON**2).all())

    @staticmethod
    def is_sure(match: Match) -> bool:
        """True if creases on several lines are where they must be."""
        return match.lines > 1 and len(match.creases) >= PAIRS_SEEN and not match.missing

    def confirmed(self, known: KnownLayers, number: int, doubtful: list[Match]) -> list[Match]:
        """Those whose creases are where they must be at other places; the others are remembered as refuted."""
        if not doubtful:
            return []
        points = pool(known, self.rng)
        good, votes = [], {id(each): [0, 0] for each in doubtful}
        open_ = doubtful
        for _ in range(MOST_PLACES // PLACES):
            places = [crease_places(known, each, points, PLACES, self.rng) for each in open_]
            rows = np.concatenate([each.rows for each in places])
            if not len(rows):
                break
            found, start = self.ask(rows), 0
            for match, place in zip(open_, places, strict=True):
                stop = start + 2 * len(place)
                part = Explained(found.values[start:stop], found.gradients[start:stop])
                yes, no = place.seen(part, self.smallest) if len(place) else (0, 0)
                votes[id(match)][0] += yes
                votes[id(match)][1] += no
                start = stop
            still = []
            for match in open_:
                yes, no = votes[id(match)]
                if yes >= PLACES and yes > 2 * no:
                    good.append(match)
                elif no > yes:
                    self.refuted[number].append(match.row)
                else:
                    still.append(match)
            open_ = still
            if not open_:
                break
        return good

    # ---- outputs

    def with_outputs(self, layers: KnownLayers) -> ReLUNetwork | None:
        """The network if this is the last layer: outputs explain most gradients; else None."""
        rows, found = self.everything()
        near = np.linalg.norm(rows, axis=1) < self.settings.fitted_distance * np.sqrt(self.oracle.dim)
        found_near = Explained(found.values[near], found.gradients[near])
        try:
            sided = find_sides(layers, rows, found, self.ask, self.rng, last=True)
            return with_outputs(sided, rows[near], found_near, self.ask, self.rng)
        except StageFailed:
            return None

    def agrees(self, network: ReLUNetwork) -> HeldOutRows | None:
        """Fresh rows whose gradients are those of the network; None after lines that lead to where they are not.

        Cost: a row for each neuron of every layer but the last, those at which a missing neuron would be on, and those
        of a few lines.
        """
        with self.oracle.stage(CHECK):
            fresh = np.concatenate([far_points(network, self.rng), covering_points(network, self.rng)])
            answers = self.ask(fresh)
            wrong = self.differs(network, fresh, answers)
            if not wrong.any():
                return HeldOutRows(fresh, answers.values, answers.gradients, "where few units are on")
            rows, found = self.everything()
            right = rows[~self.differs(network, rows, found)]
            for row in self.rng.permutation(fresh[wrong])[:LEADS]:
                self.look_between(right, row)
        return None

    def differs(self, network: ReLUNetwork, rows: FloatArray, found: Explained) -> BoolArray:
        """Rows (n,) where gradients are not those of the network."""
        off = np.linalg.norm(network.gradients(rows) - found.gradients, axis=2).max(axis=1)
        return np.asarray(off > CHECKED_TO * self.size)


LEADS = 3  # lines to where gradients are not those of the network, in turn

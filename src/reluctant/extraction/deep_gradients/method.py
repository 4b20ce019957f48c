"""`GradientLayers`: several hidden layers of a target that answers gradients.

Whole lines show the creases of all layers with their normals. Those of the first layer are the same on every line;
those of the next are combinations of slopes that the first one gives, and so on, until every crease is explained. Then
the output layer is fitted to the answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.extraction.any_depth.readout import fit_readout, oriented_network, without_outputs
from reluctant.extraction.deep_gradients.crease_normals import CreaseLines, explained
from reluctant.extraction.deep_gradients.layer_matches import next_layer
from reluctant.extraction.deep_gradients.layer_sides import find_sides, stray_and_clean, with_outputs
from reluctant.extraction.deep_gradients.open_cells import crossed, segment
from reluctant.extraction.method import Candidate, Method, StageFailed, check_settings
from reluctant.fitting.network_fit import MOST_PARAMETERS, polish
from reluctant.geometry import DistanceNoise
from reluctant.geometry.jumps import ExpectedCreases, GradientNoise, SearchedLine, jumps_on_line
from reluctant.geometry.lines import Lines
from reluctant.messages import Diagnosis, Notes
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting, Explained
from reluctant.verification import HeldOutRows
from reluctant.verification.cells import far_points, sparse_points

LINES, LAYERS = "lines", "layers"
CHECK, CHECKED = "check", 8  # rows where few units are on, besides those far out
CHECKED_TO = 1e-6  # of the largest gradient
SINGLE = 2  # segments in a row across creases that were met once, without a new neuron
LEADS = 3  # lines from where gradients are those of the network to where they are not
LIMITS = Notes((Diagnosis("layers-where-met"),))


@dataclass(frozen=True)
class GradientLayers(Method):
    """Exact extraction of several hidden layers, none wider than the one before, from gradients.

    Arguments:
        first_lines: whole lines that are searched before the first layer is looked for.
        lines: at most, one by one until every crease is explained.
        segments: of a layer, at most, where as many known neurons are on as can be.
        look: rows that the search of a line begins with.
        most_layers: hidden layers, at most.
        through: inputs (n, d) on the first lines, such as spoke against an earlier network.
        begun: lines that were searched before, the first of them to its end.
        leads: lines, at most, to where a layer lacks a neuron.
        held_against: rows that a layer is held against for that, of those asked before.
        fitted_distance: rows farther out, in typical inputs, have no part in the fit.
    """

    needs_space: ClassVar[bool] = True
    reads_gradients: ClassVar[bool] = True

    first_lines: int = 2
    lines: int = 6
    segments: int = 24
    look: int = 5
    most_layers: int = 8
    leads: int = 3
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
            for row in [] if self.through is None else self.through[:LEADS]:
                search.look_along(replace(Lines.random(rng, 1, oracle.dim), origins=row[None]))
        while True:
            try:
                known = search.all_layers(keep)
                network = search.network(known)
            except StageFailed:
                if search.whole >= self.lines:
                    raise
            else:
                whole = network.widths[1:-1] == tuple(len(layer) for layer in known.layers)  # else a neuron is missing
                held_out = search.agrees(network) if whole else None
                if held_out is not None or search.whole >= self.lines:
                    return Candidate(network, held_out, limits=LIMITS)
                if whole and search.leads_left():
                    continue
            with oracle.stage(LINES):
                search.look_along_another()


@dataclass
class _LayerSearch:
    """The lines, and everything that was asked."""

    oracle: Counting
    noise: GradientNoise
    rng: np.random.Generator
    settings: GradientLayers

    def __post_init__(self) -> None:
        self.creases = CreaseLines(self.oracle.dim)
        self.first_layer: Layer | None = None
        self.size, self.whole, self.led = 0.0, 0, 0
        self.begun: set[int] = set()  # layers that a segment was searched for
        self.rows: list[FloatArray] = []
        self.answers: list[Explained] = []

    def ask(self, rows: FloatArray) -> Explained:
        """Values and gradients, kept for the fit."""
        found = self.oracle.query_gradients(rows)
        self.rows.append(rows)
        self.answers.append(found)
        self.size = max(self.size, float(np.linalg.norm(found.gradients, axis=2).max()))
        return found

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
        """Creases of the first layer on a line: of neurons that are known, else of every crease so far."""
        if self.first_layer is not None:
            return ExpectedCreases.of_hyperplanes(line, self.first_layer.weights, self.first_layer.biases)
        if self.creases.found is None:
            return None
        found = self.creases.found
        return ExpectedCreases.of_hyperplanes(line, found.normals, -np.einsum("nd,nd->n", found.normals, found.points))

    def look_along(
        self, line: Lines, depth: int = 0, *, expected: ExpectedCreases | None = None, begun: SearchedLine | None = None
    ) -> None:
        """The creases of this line, along which so many layers do not change."""
        before = len(self.rows) - (begun is not None)
        expected = self.expected(line) if expected is None and not depth else expected
        jumps = jumps_on_line(
            self.ask, line, self.noise, size=lambda: self.size, first=self.settings.look, expected=expected, begun=begun
        )
        rows = np.concatenate(self.rows[before:])
        sizes = np.concatenate([np.linalg.norm(each.gradients, axis=2).max(axis=1) for each in self.answers[before:]])
        self.creases.add(line, jumps, (rows, sizes), self.noise, self.size, depth)

    def everything(self) -> tuple[FloatArray, Explained]:
        """All rows near enough for a fit, with their answers."""
        rows = np.concatenate(self.rows)
        values = np.concatenate([each.values for each in self.answers])
        slopes = np.concatenate([each.gradients for each in self.answers])
        near = np.linalg.norm(rows, axis=1) < self.settings.fitted_distance * np.sqrt(self.oracle.dim)
        return rows[near], Explained(values[near], slopes[near])

    def all_layers(self, keep: Callable[[ReLUNetwork], None]) -> KnownLayers:
        """Layer after layer, until every crease is explained."""
        known = KnownLayers(self.oracle.dim)
        left = len(self.creases.normals)
        with self.oracle.stage(LAYERS):
            for _ in range(self.settings.most_layers):
                if known.layers and not known.sided:
                    known = find_sides(known, *self.everything(), self.ask, self.rng)
                layer = self.next_layer(known)
                if not len(layer):
                    break
                for _ in range(self.settings.leads):
                    if not self.look_for_missing(known.extended(layer)):
                        break
                    layer = self.next_layer(known)
                self.first_layer = self.first_layer if known.layers else layer
                known = known.extended(layer)
                keep(without_outputs(known, self.oracle.outputs))
                left = int((~explained(known, self.creases.normals)).sum())
                if not left:
                    return known
        reason = "creases that no layer explains"
        raise StageFailed(LAYERS, reason, number=float(left), limit=0.0)

    def leads_left(self) -> bool:
        """True for the first times: lines that lead to where a network is wrong show more than another random one."""
        self.led += 1
        return self.led <= self.settings.leads

    def look_for_missing(self, known: KnownLayers) -> bool:
        """True if the last layer lacks a neuron: after a line that leads there, or where another segment is to."""
        rows, found = self.everything()
        some = self.rng.permutation(len(rows))[: self.settings.held_against]
        rows = rows[some]
        stray, clean = stray_and_clean(known, rows, Explained(found.values[some], found.gradients[some]))
        if not stray.any():
            return False
        self.begun.discard(len(known.layers) - 1)
        if clean.any():
            there = rows[self.rng.choice(np.flatnonzero(stray))]
            self.look_between(rows[clean], there)
        return True

    def look_between(self, rows: FloatArray, there: FloatArray) -> None:
        """The creases between an input and the nearest of others, if there is a way."""
        distance = np.linalg.norm(rows - there, axis=1)
        if distance.min() > 0:
            start = rows[np.argmin(distance)]
            self.look_along(Lines.between(start[None], there[None], float(np.sqrt(self.oracle.dim))))

    def next_layer(self, known: KnownLayers) -> Layer:
        """The neurons of the next layer, each with all its weights: segments show those that whole lines leave open."""
        layer, complete, others = next_layer(known, self.creases)
        if not known.layers:
            return layer
        single = 0
        for number in range(self.settings.segments):
            whole = complete.all(axis=1)
            lonely = len(others) > 0 and single < SINGLE
            if whole.all() and (number or len(known.layers) in self.begun) and not lonely:
                break
            across = None
            if not whole.all():
                across = layer.weights[self.rng.choice(np.flatnonzero(~whole))]
            elif lonely:  # a crease of a neuron that was met once, or of a deeper one
                across, single = others[self.rng.integers(len(others))], single + 1
            line = segment(known, self.rng, across)
            if line is None:
                continue
            self.begun.add(len(known.layers))
            found = len(layer)
            self.look_along(line, len(known.layers), expected=crossed(known, layer, complete, line))
            layer, complete, others = next_layer(known, self.creases)
            single = 0 if len(layer) > found else single
        whole = complete.all(axis=1)
        return Layer(layer.weights[whole], layer.biases[whole], layer.undecided[whole], layer.carried)

    def agrees(self, network: ReLUNetwork) -> HeldOutRows | None:
        """Rows far out whose gradients are those of the network; None after lines that lead to where they are not.

        Cost: a row for each neuron of every layer but the last, and those of a few lines.
        """
        with self.oracle.stage(CHECK):
            rows = np.concatenate([far_points(network, self.rng), sparse_points(network, CHECKED, self.rng)])
            found = self.ask(rows)
            off = np.linalg.norm(network.gradients(rows) - found.gradients, axis=2).max(axis=1)
            wrong = off > CHECKED_TO * self.size
            if not wrong.any():
                return HeldOutRows(rows, found.values, found.gradients, "one unit on, far out")
            for row in rows[wrong][:LEADS] if not wrong.all() else ():
                self.look_between(rows[~wrong], row)
        return None

    def network(self, known: KnownLayers) -> ReLUNetwork:
        """With the output layer that the answers ask for: from gradients, or from values where some neuron is missing.

        A neuron that is always on has no crease; its part is linear in the layer below, and values are fitted to that.
        """
        rows, found = self.everything()
        try:
            with self.oracle.stage(LAYERS):
                sided = find_sides(known, rows, found, self.ask, self.rng, last=True)
                return with_outputs(sided, rows, found, self.ask, self.rng)
        except StageFailed:
            pass
        network = oriented_network(known, fit_readout(known, rows, found.values), rows, found.values)
        if network.parameters > MOST_PARAMETERS or network.parameters > len(rows) * network.outputs:
            return network
        return polish(network, rows, found.values, self.noise.values)

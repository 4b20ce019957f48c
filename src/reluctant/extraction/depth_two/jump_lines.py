"""One hidden layer from gradients: lines until nothing is left of the target but an affine map.

A line crosses the hyperplane of every neuron, and the gradient jumps there by the neuron's weights times its output
weights: place and jump are the neuron. Known neurons are subtracted, so the next line shows what the first one missed:
neurons whose creases it met too close together, or not at all inside bounds. The last lines show nothing, and what they
answer is the affine rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from reluctant.domains import Domain
from reluctant.extraction.depth_two.assembly import refit_biases
from reluctant.extraction.method import Candidate, Certificate, Handover, Keep, Shows, StageFailed
from reluctant.extraction.orientation import orient
from reluctant.geometry import DistanceNoise
from reluctant.geometry.jumps import (
    MOST_JUMPS,
    SAME_ROUNDINGS,
    GradientNoise,
    Jumps,
    SearchedLine,
    TooManyJumps,
    jumps_on_line,
)
from reluctant.geometry.lines import FAR_END, Batch, BoolArray, Lines
from reluctant.interface.noise import narrowest_format
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray, unit_roundoff
from reluctant.oracles import Counting, Explained
from reluctant.verification import HeldOutRows
from reluctant.verification.points import FARTHEST_CREASE, rare_points

STAGE = "lines"
LAYERS = "layers"  # a stage that fails where creases of one line do not explain the next


@dataclass(frozen=True)
class JumpLines:
    """Settings for a target that answers gradients.

    Arguments:
        lines: at most, in all of space; inside bounds `lines_inside`, which do not meet every crease.
        points_inside: random inputs inside bounds that must lie in one piece, in the end.
        look: rows of a line that the search begins with, an odd number.
        dense_look: the same of one more line, where there are at most `few_neurons`: narrow ridges of small networks.
        through: inputs (n, d) on the first lines, such as spoke against an earlier network: narrow ridges show there.
        new_share: creases that a second line may show beside those that are known, of these, and 8.
        bias_share: random inputs for each bias, where answers are rounded by more than `exact_rounding` of their size:
            far creases leave few digits of it.
    """

    lines: int = 6
    lines_inside: int = 24
    points_inside: int = 48
    look: int = 5
    dense_look: int = 257
    few_neurons: int = 32
    new_share: float = 0.3
    through: FloatArray | None = field(default=None, compare=False, repr=False)
    bias_share: float = 2.0
    exact_rounding: float = 1e-12


@dataclass(frozen=True)
class Neurons(Batch):
    """Neurons with unit weights: normals (h, d), biases (h,), outputs (h, m); errors (h,) of a weight and of a bias."""

    normals: FloatArray
    biases: FloatArray
    outputs: FloatArray
    errors: FloatArray
    off: FloatArray

    @classmethod
    def none(cls, dim: int, outputs: int) -> Self:
        """No neuron yet."""
        return cls(np.empty((0, dim)), np.empty(0), np.empty((0, outputs)), np.empty(0), np.empty(0))

    @classmethod
    def of(cls, jumps: Jumps, direction: FloatArray, error: float) -> tuple[Self, BoolArray]:
        """Of each jump one that is on where the line goes on; and which jumps are those of one neuron."""
        left, sizes, right = np.linalg.svd(jumps.jump, full_matrices=False)
        single = np.ones(len(jumps), dtype=bool) if sizes.shape[1] < 2 else sizes[:, 1] <= SAME_ROUNDINGS * error
        single &= sizes[:, 0] > SAME_ROUNDINGS * error  # values alone may show a crease that is not resolved
        normals, outputs = right[:, 0], sizes[:, :1] * left[:, :, 0]
        weakest = np.maximum(sizes[:, 0], DOUBLE.tiny)
        sides = np.where(normals @ direction < 0, -1.0, 1.0)[:, None]
        normals, outputs = sides * normals, sides * outputs
        biases = -np.einsum("hd,hd->h", normals, jumps.points)
        off = np.abs(normals @ direction) * jumps.off + error / weakest * np.linalg.norm(jumps.points, axis=1)
        return cls(normals, biases, outputs, error / weakest, off), single

    def explained(self, rows: FloatArray) -> Explained:
        """What they add to values and gradients."""
        values = rows @ self.normals.T + self.biases
        on = values > 0
        slopes = np.einsum("nh,hm,hd->nmd", on, self.outputs, self.normals, optimize=True)
        return Explained((values * on) @ self.outputs, slopes)

    @staticmethod
    def _same(i: int, j: int, errors: FloatArray) -> float:
        """How far two numbers with these errors may be apart and still be one."""
        return DOUBLE.in_line * float(errors[i] + errors[j])

    def without_copies(self) -> Self:
        """Neurons of one hyperplane added up, whichever side of it they are on; what cancels is left out."""
        gone, alike = 1e-9, 1e-6  # of the largest output weights, and of a cosine
        outputs, kept = self.outputs.copy(), np.ones(len(self), dtype=bool)
        first, second = np.nonzero(np.triu(np.abs(self.normals @ self.normals.T) > 1 - alike, k=1))
        for i, j in zip(first.tolist(), second.tolist(), strict=True):
            sign = 1.0 if self.normals[i] @ self.normals[j] > 0 else -1.0
            close = np.linalg.norm(self.normals[i] - sign * self.normals[j]) < self._same(i, j, self.errors)
            near = abs(self.biases[i] - sign * self.biases[j]) < self._same(i, j, self.off)
            if kept[i] and kept[j] and close and near:  # a max(-z, 0) = a max(z, 0) - a z: the affine rest is read last
                outputs[i], kept[j] = outputs[i] + outputs[j], False
        found = replace(self, outputs=outputs).chosen(kept)
        sizes = np.linalg.norm(found.outputs, axis=1)
        return found.chosen(sizes > gone * sizes.max(initial=0.0))


def recover_from_gradients(
    oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Keep, settings: JumpLines
) -> Candidate:
    """A network with one hidden layer; raises StageFailed where lines do not agree on one.

    Cost: about 3.6 rows a neuron in all of space, and 13.
    """
    with oracle.stage(STAGE):
        search = _LinesSoFar(oracle, _gradient_noise(oracle, noise, rng), Neurons.none(oracle.dim, oracle.outputs))
        whole = oracle.facts.domain.is_space
        lines = _whole_lines(oracle.dim, rng, settings.through) if whole else search.lines_between_pieces(rng, settings)
        quiet = False
        for number, line in enumerate(lines):
            most = MOST_JUMPS if number == 0 or not whole else settings.new_share * len(search.neurons) + FEW_NEW
            try:
                dense = quiet and len(search.neurons) <= settings.few_neurons
                new = search.look_along(line, settings.dense_look if dense else settings.look, most)
            except TooManyJumps as many:
                raise _deeper(search, many.found, most) from many
            if whole and not new and (dense or len(search.neurons) > settings.few_neurons):
                break
            quiet = not new
            keep(search.network())
            if number + 1 >= (settings.lines if whole else settings.lines_inside):
                raise _deeper(search, new, 0)
    candidate = search.candidate()
    if candidate.network.depth == 1 or search.noise.rounding <= settings.exact_rounding:
        return candidate
    turned = orient(candidate.network, gone=SAME_ROUNDINGS * search.noise.rounding, arrays=oracle.arrays)
    rarely = rare_points(turned, len(search.neurons), oracle.facts.domain, rng)
    both = np.concatenate([rarely, _on_both_sides(turned, oracle.facts.domain, rng)])
    fitted = refit_biases(oracle, turned, rng, settings.bias_share, also=both)
    return replace(candidate, network=fitted, rounding=search.noise.rounding)


def _on_both_sides(network: ReLUNetwork, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Of many random inputs a few (n, d): each neuron is on at some of them and off at others.

    With many outputs a few inputs give as many numbers as there are biases, but few of a neuron that is rarely on.
    """
    pool = domain.sample(rng, DRAWN_FOR_BIASES, network.dim)
    on = network.patterns(pool)[0]
    sides = np.concatenate([on, ~on], axis=1)
    lacking, chosen = np.minimum(ROWS_A_SIDE, sides.sum(axis=0)), np.empty(0, dtype=np.intp)
    while lacking.any():
        best = int(np.argmax(sides @ (lacking > 0)))
        chosen, lacking = np.append(chosen, best), np.maximum(lacking - sides[best], 0)
        sides[best] = False
    return pool[chosen]


def _deeper(search: _LinesSoFar, found: int, limit: float) -> StageFailed:
    """The failure of bent creases, with two lines: the first, and the one that spoke against it."""
    reason, partial = "creases of some lines do not explain another", search.network()
    lines: tuple[SearchedLine, ...] = ()
    if search.first is not None and search.line is not search.first.lines:
        lines = search.first, search.searched()
    left, shows = Handover(lines=lines), Shows.OTHER_CREASES
    return StageFailed(LAYERS, reason, number=found, limit=limit, partial=partial, shows=shows, handover=left)


FEW_NEW = 8
DRAWN_FOR_BIASES = 400  # inputs that those of a fit of biases are chosen from
ROWS_A_SIDE = 4  # of these, chosen for each side of a neuron
LOOK = 3  # rows that the number format is read from


def _gradient_noise(oracle: Counting, noise: DistanceNoise, rng: np.random.Generator) -> GradientNoise:
    """Noise of gradients, by their number format and by the noise of values. Cost: 3 rows."""
    found = oracle.query_gradients(oracle.facts.domain.sample(rng, LOOK, oracle.dim))
    size = float(np.abs(found.values).max())
    seen = noise.near / size if size > 0 else 0.0
    number_format = narrowest_format(found.gradients)
    if number_format == "float16":  # weights on a grid have few digits themselves
        number_format = narrowest_format(found.values)
    return GradientNoise(noise, max(unit_roundoff(number_format), min(seen, NOISIEST)))


NOISIEST = 1e-4  # of the values: noise of gradients is not known to be larger


@dataclass
class _LinesSoFar:
    """The neurons that lines have shown, and what the last line was answered without them."""

    oracle: Counting
    noise: GradientNoise
    neurons: Neurons
    size: float = 0.0  # of gradients
    resolution: float = 0.0
    beside: tuple[HeldOutRows, ...] = ()
    line: Lines | None = None
    first: SearchedLine | None = None  # with its creases, none of which was known
    rest: tuple[tuple[FloatArray, Explained], ...] = ()

    def answers(self, rows: FloatArray) -> Explained:
        """Of the target itself."""
        found = self.oracle.query_gradients(rows)
        self.rest += ((rows, found),)
        self.size = max(self.size, float(np.linalg.norm(found.gradients, axis=2).max()))
        return found

    def ask(self, rows: FloatArray) -> Explained:
        """The residual: the target without the known neurons."""
        return self.left_of(rows, self.answers(rows))

    def left_of(self, rows: FloatArray, found: Explained) -> Explained:
        """Answers without the known neurons."""
        known = self.neurons.explained(rows)
        return Explained(found.values - known.values, found.gradients - known.gradients)

    def look_along(self, lines: Lines, first: int, most: float) -> int:
        """Take in the neurons that one more line shows; the number of its jumps."""
        self.rest, self.line = (), lines
        jumps = jumps_on_line(self.ask, lines, self.noise, size=lambda: self.size, first=first, most=most)
        if self.first is None:
            self.first = replace(self.searched(), jumps=jumps)
        error = self.noise.rounding * self.size
        found, single = Neurons.of(jumps, lines.directions[0], error)
        known = self.neurons.explained(jumps.beside).values
        near = np.linalg.norm(jumps.beside, axis=1) <= FARTHEST_CREASE * np.sqrt(self.oracle.dim)
        self.beside += (HeldOutRows(jumps.beside[near], (jumps.value + known)[near]),)
        self.neurons = (self.neurons + found.chosen(single)).without_copies()
        return len(jumps)

    def searched(self) -> SearchedLine:
        """The last line, as far as it was searched."""
        rows = np.concatenate([rows for rows, _ in self.rest])
        values = np.concatenate([found.values for _, found in self.rest])
        slopes = np.concatenate([found.gradients for _, found in self.rest])
        assert self.line is not None  # as there are rows
        return SearchedLine(self.line, rows, Explained(values, slopes))

    def lines_between_pieces(self, rng: np.random.Generator, settings: JumpLines) -> Iterator[Lines]:
        """Lines inside bounds, each through two random inputs that lie in different pieces of the residual."""
        domain = self.oracle.facts.domain
        while True:
            rows = domain.sample(rng, settings.points_inside, self.oracle.dim)
            rows = rows if settings.through is None else np.concatenate([rows, settings.through])
            self.rest = ()
            found = self.answers(rows)
            pair = self.in_different_pieces(rows, found)
            if pair is None:
                return
            while pair is not None:
                yield _between_bounds(domain, *pair)
                pair = self.in_different_pieces(rows, found)

    def in_different_pieces(self, rows: FloatArray, found: Explained) -> FloatArray | None:
        """Two of the rows with different gradients of the residual; None where all have one."""
        slopes = self.left_of(rows, found).gradients
        off = np.linalg.norm(slopes - np.median(slopes, axis=0), axis=2).max(axis=1)
        nearest, farthest = int(np.argmin(off)), int(np.argmax(off))
        apart = np.linalg.norm(slopes[farthest] - slopes[nearest], axis=1).max()
        same = apart <= SAME_ROUNDINGS * self.noise.rounding * self.size
        return None if same else rows[[nearest, farthest]]

    def network(self) -> ReLUNetwork:
        """With the affine rest that the last rows show."""
        rows = np.concatenate([asked for asked, _ in self.rest])
        left = [self.left_of(*asked) for asked in self.rest]
        values, slopes = (
            np.concatenate([each.values for each in left]),
            np.concatenate([each.gradients for each in left]),
        )
        skip, nearest = slopes.mean(axis=0), int(np.argmin(np.linalg.norm(rows, axis=1)))
        constant = values[nearest] - skip @ rows[nearest]
        if not len(self.neurons):
            return ReLUNetwork([skip], [constant])
        return ReLUNetwork(
            [self.neurons.normals, self.neurons.outputs.T], [self.neurons.biases, constant], skip
        )  # fmt: skip

    def candidate(self) -> Candidate:
        """The network, with rows beside its creases."""
        rows = np.concatenate([np.empty((0, self.oracle.dim)), *(each.rows for each in self.beside)])
        answers = np.concatenate([np.empty((0, self.oracle.outputs)), *(each.answers for each in self.beside)])
        resolution, radius = SAME_ROUNDINGS * self.noise.rounding * self.size, np.inf
        if self.oracle.facts.domain.is_space:
            radius = FAR_END * float(np.sqrt(self.oracle.dim))
        certificate = Certificate(self.neurons.errors, resolution, radius)
        held_out = HeldOutRows(rows, answers) if len(rows) else None
        return Candidate(self.network(), held_out, certificate)


def _whole_lines(dim: int, rng: np.random.Generator, through: FloatArray | None) -> Iterator[Lines]:
    """Random lines of all of space, the first of them through these inputs."""
    for row in () if through is None else through:
        yield replace(Lines.random(rng, 1, dim), origins=row[None])
    while True:
        yield Lines.random(rng, 1, dim)


def _between_bounds(domain: Domain, start: FloatArray, stop: FloatArray) -> Lines:
    """The line through two inputs, from bound to bound."""
    along = (stop - start) / np.linalg.norm(stop - start)
    ends = np.array([-domain.room(start[None], -along[None])[0], domain.room(start[None], along[None])[0]])
    longest = FAR_END * np.sqrt(len(start))
    low, high = np.clip((1 - DOUBLE.wide) * ends, -longest, longest)
    return Lines(start[None], along[None], float(high - low) / 2, np.array([low]), np.array([high]))

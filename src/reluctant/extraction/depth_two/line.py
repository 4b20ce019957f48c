"""First stage of depth two: every neuron on one line.

Each crease is one neuron, each piece between creases one region. Assumes that creases of different neurons can be
told apart on a random line; a few that cannot bring another line, more are a failure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise, Frame, FramedNetwork, Lines, LineSearch, Scan, scan_lines
from reluctant.geometry.creases import merge_slivers
from reluctant.geometry.samples import IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.moves import Steps

__all__ = ["CROWD", "NoCrease", "Regions", "neurons_on_a_line"]

# Two creases this close are of neurons that are nearly parallel: of the scale, and of what a neuron adds there.
CROWD = 1000  # creases on a line: some are likely to be too close to each other


class NoCrease(Exception):
    """The target is affine along the whole line."""


@dataclass(frozen=True)
class Regions:
    """Pieces of the line between creases: middle, width, value there and how well it is known."""

    middle: FloatArray
    width: FloatArray
    value: FloatArray  # (n, m)
    value_sd: FloatArray
    scale: float

    def chosen(self, which: IntArray) -> Regions:
        """These regions only."""
        return Regions(self.middle[which], self.width[which], self.value[which], self.value_sd[which], self.scale)

    def __len__(self) -> int:
        return len(self.middle)


def neurons_on_a_line(
    oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, frame: Frame | None = None, *, lines: int
) -> tuple[FramedNetwork, Regions]:
    """Scan one random line, of a frame if one is given; another where a few creases cannot be told apart.

    lines: how many are scanned at most.

    Cost: about five rows a neuron.
    """
    sliver, shallow = 1e-6, 3e-9
    few_open = 0.01  # of a line's creases, left open by chance: with more, the target is curved
    crowded_by_chance = 3000  # neurons: with more, creases of any two may be that close by chance
    for _ in range(lines):
        line = Lines.random(rng, 1, oracle.dim) if frame is None else frame.random_lines(rng, 1)
        scan = _scan_a_line(oracle, line, noise, rng)
        unresolved = _unresolved(scan)
        if not 0 < unresolved < few_open * len(scan.creases):
            break
    if not len(scan.creases):
        raise NoCrease
    _refuse_unresolved(unresolved)
    usual = float(np.median(np.linalg.norm(scan.creases.jump, axis=1)))
    least = line.scale * min(1.0, (crowded_by_chance / len(scan.creases)) ** 2)
    scan = merge_slivers(scan, sliver * least, shallow * least * usual)
    _refuse_unresolved(_unresolved(scan))  # what is left of two that bend against each other may be nothing
    return _network_on_line(scan, line), _regions(scan, line)


def _refuse_unresolved(unresolved: int) -> None:
    if unresolved:
        raise StageFailed("line", "creases too close to each other to be told apart", number=unresolved, limit=0)


def _scan_a_line(oracle: Counting, lines: Lines, noise: DistanceNoise, rng: np.random.Generator) -> Scan:
    def show(scan: Scan) -> None:
        oracle.ledger.show(LineSearch.of(lines, scan))

    def ask_at(line: IntArray, t: FloatArray) -> FloatArray:
        return oracle.query_moves(Steps(lines.origins, line, t, line, lines.directions))

    watch = show if oracle.ledger.viewer else None
    with oracle.stage("line"):
        scan = scan_lines(oracle.query, lines, noise, rng, watch=watch, ask_at=ask_at)
        show(scan)
    return scan


def _unresolved(scan: Scan) -> int:
    """Places of the line that stay open, creases that are not in order, and such that bend nothing or are nowhere."""
    creases = scan.creases
    nothing = ~creases.jump.any(axis=1) | creases.nowhere
    return int(scan.open.sum() + (np.diff(creases.t[~creases.nowhere]) <= 0).sum() + nothing.sum())


def _network_on_line(scan: Scan, lines: Lines) -> FramedNetwork:
    """The function on the line as a network of one input; the leftmost piece is its skip term."""
    sizes = np.linalg.norm(scan.creases.jump, axis=1)
    outputs = (scan.creases.jump / sizes[:, None]).T
    near = scan.pieces.last[0]  # the near end: the far one has lost its digits
    slope = scan.pieces.slope[0]
    constant = scan.samples.f[near] - slope * scan.samples.t[near]
    network = ReLUNetwork([sizes[:, None], outputs], [-sizes * scan.creases.t, constant], slope[:, None])
    return FramedNetwork(Frame(lines.origins[0], lines.directions), network, scan.creases.jump_sd, scan.creases.jump_sd)


def _regions(scan: Scan, lines: Lines) -> Regions:
    t, pieces, s = scan.creases.t, scan.pieces, scan.samples
    ends = np.concatenate([[t[0] - _beyond(t[0], lines)], t, [t[-1] + _beyond(t[-1], lines)]])
    middle = (ends[1:] + ends[:-1]) / 2
    to_first, to_last = middle - s.t[pieces.first], middle - s.t[pieces.last]
    nearest = np.where(np.abs(to_first) < np.abs(to_last), pieces.first, pieces.last)
    step = middle - s.t[nearest]
    value = s.f[nearest] + pieces.slope * step[:, None]
    return Regions(middle, np.diff(ends), value, pieces.sd * (1 + np.abs(step) / pieces.length), lines.scale)


def _beyond(t: float, lines: Lines) -> float:
    outermost = 2.0  # how far beyond the outermost crease a region is looked at, in its distance or the scale
    return outermost * max(lines.scale, abs(t))

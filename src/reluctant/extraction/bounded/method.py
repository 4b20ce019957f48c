"""The stages of depth two inside a domain: anchor, first line, exploration, fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from reluctant.extraction.bounded.explore import FIRST_GATE, explore
from reluctant.extraction.bounded.inside import Inside
from reluctant.extraction.bounded.known import Known
from reluctant.extraction.bounded.neurons import neurons_on_a_ray
from reluctant.extraction.bounded.rays import Ray, halves
from reluctant.extraction.bounded.straight import check_straight
from reluctant.extraction.candidate import Candidate
from reluctant.extraction.certificate import Certificate
from reluctant.extraction.failures import StageFailed
from reluctant.extraction.memory import remember
from reluctant.extraction.polish import MOST_PARAMETERS, polish
from reluctant.geometry import DistanceNoise, Lines, scan_lines
from reluctant.geometry.creases import SMALLEST_BEND
from reluctant.geometry.noise import roundings
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting

__all__ = ["recover_inside"]

ANCHOR_STEP = 0.02  # of the longest piece of the first line


def recover_inside(
    oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]
) -> Candidate:
    """One attempt; the network equals the target on the domain, neurons that do not bend it there are left out.

    Cost: about d + 10 rows a neuron with one output, and some 500 to explore.
    """
    remembering, memory = remember(oracle)
    inside, known, rays = first_line(Inside.of(remembering, noise, rng))
    keep(known.network())
    with oracle.stage("first neurons", expected=sum(map(len, rays)) * (oracle.dim + 2)):
        for ray in rays:
            known = neurons_on_a_ray(inside, known, ray, FIRST_GATE) if len(ray) else known
    keep(known.network())
    check_straight(inside, known)
    known = explore(inside, known, keep)
    network, parameters = known.network(), known.neurons * (oracle.dim + 1 + oracle.outputs)
    if 0 < parameters <= MOST_PARAMETERS:
        rows, answers = memory.everything()
        network = polish(network, rows, answers, noise, lost=inside.lost(rows, answers))
    resolution = SMALLEST_BEND * float(np.median(known.sd)) if known.neurons else 0.0
    return Candidate(network, certificate=Certificate(known.sd, resolution, radius=np.inf))


def first_line(inside: Inside) -> tuple[Inside, Known, list[Ray]]:
    """A segment through the domain; the middle of its longest piece becomes the anchor.

    Cost: d + 18 rows and 5 a crease.
    """
    ends = inside.domain.sample(inside.rng, 2, inside.oracle.dim)
    line = Lines.between(ends[:1], ends[1:], inside.scale)
    with inside.oracle.stage("first line"):
        scan = scan_lines(inside.ask, line, inside.noise, inside.rng, lost=inside.lost)
        if scan.open.any() or np.any(np.diff(scan.creases.t) <= 0):
            raise StageFailed("first line", "creases too close to each other", number=scan.open.sum(), limit=0)
        stops = np.concatenate([line.low, scan.creases.t, line.high])
        longest = int(np.argmax(np.diff(stops)))
        at, length = stops[longest : longest + 2].mean(), np.diff(stops)[longest : longest + 1]
        anchor = line.points(np.zeros(1, dtype=int), np.array([at]))
        found = inside.gradients(anchor, None, ANCHOR_STEP * length)
    if not found.good.all():
        raise StageFailed("first line", "not affine anywhere near the anchor", number=1, limit=0)
    known = Known.affine(anchor[0], found.value[0], found.slope[0], float(found.sd[0]))
    spread, largest = float(scan.samples.f.std(axis=0).max()), np.abs(scan.samples.f).max()
    # The difference to a model is small, but no better than a few roundings of the answer it comes from.
    noise = DistanceNoise(max(inside.noise.near, float(roundings(largest))), inside.noise.growth)
    rays = halves(scan, float(at), line.directions[0], (float(line.low[0]), float(line.high[0])))
    return replace(inside, noise=noise, spread=spread or 1.0), known, rays

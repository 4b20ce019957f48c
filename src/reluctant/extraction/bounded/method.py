"""`recover_inside`: depth two on a bounded domain (first line and anchor, exploration, fit).

Neurons that do not bend the target inside are left out. Some of the first creases are looked for elsewhere in the
domain: those of deeper layers bend, and no such model fits them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from reluctant.extraction.bounded.anchor import AnchorModel, Bounded, BoundedTarget
from reluctant.extraction.bounded.exploration import explore, neurons_on_a_ray
from reluctant.extraction.bounded.rays import Ray, halves
from reluctant.extraction.linear import remember
from reluctant.extraction.method import Candidate, Certificate, StageFailed
from reluctant.fitting.network_fit import MOST_PARAMETERS, polish
from reluctant.geometry import DistanceNoise, Lines, scan_lines
from reluctant.geometry.gradients import cross
from reluctant.geometry.lines import answer_roundings
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting


def recover_inside(
    oracle: Counting,
    noise: DistanceNoise,
    rng: np.random.Generator,
    keep: Callable[[ReLUNetwork], None],
    settings: Bounded,
) -> Candidate:
    """One attempt; the network equals the target on the domain, neurons that do not bend it there are left out.

    Cost: about d + 10 rows a neuron with one output, and some 500 to explore.
    """
    remembering, memory = remember(oracle)
    inside, known, rays = first_line(BoundedTarget.of(remembering, noise, rng, settings))
    keep(known.network())
    with oracle.stage("first neurons", expected=sum(map(len, rays)) * (oracle.dim + 2)):
        for ray in rays:
            known = neurons_on_a_ray(inside, known, ray, settings.neuron_error) if len(ray) else known
    keep(known.network())
    check_straight(inside, known)
    known = explore(inside, known, keep)
    network, parameters = known.network(), known.neurons * (oracle.dim + 1 + oracle.outputs)
    if 0 < parameters <= MOST_PARAMETERS:
        rows, answers = memory.everything()
        network = polish(network, rows, answers, noise, lost=inside.lost(rows, answers))
    resolution = DOUBLE.bend * float(np.median(known.sd)) if known.neurons else 0.0
    return Candidate(network, certificate=Certificate(known.sd, resolution, radius=np.inf))


def first_line(inside: BoundedTarget) -> tuple[BoundedTarget, AnchorModel, list[Ray]]:
    """A segment through the domain; the middle of its longest piece becomes the anchor.

    Cost: d + 18 rows and 5 a crease.
    """
    anchor_step = 0.02  # of the longest piece of the first line
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
        found = inside.gradients(anchor, None, anchor_step * length)
    if not found.good.all():
        raise StageFailed("first line", "not affine anywhere near the anchor", number=1, limit=0)
    known = AnchorModel.affine(anchor[0], found.value[0], found.slope[0], float(found.sd[0]))
    spread, largest = float(scan.samples.f.std(axis=0).max()), np.abs(scan.samples.f).max()
    # The difference to a model is small, but no better than a few roundings of the answer it comes from.
    noise = DistanceNoise(max(inside.noise.near, float(answer_roundings(largest))), inside.noise.growth)
    rays = halves(scan, float(at), line.directions[0], (float(line.low[0]), float(line.high[0])))
    return replace(inside, noise=noise, spread=spread or 1.0), known, rays


def check_straight(inside: BoundedTarget, known: AnchorModel) -> None:
    """Look for some neurons' creases elsewhere in the domain; raises StageFailed. Cost: 32 rows."""
    crossing_reach = 1e-4  # of a crossing, in lengths of the domain
    meeting_share = 0.05  # of the reach: how far a crease may be from where it is expected
    chosen = inside.rng.permutation(known.neurons)[: inside.settings.tested_neurons]
    places = [_place_on_hyperplane(inside, known, neuron) for neuron in chosen]
    neurons = [neuron for neuron, place in zip(chosen, places, strict=True) if place is not None]
    if not neurons:
        return
    points = np.array([place for place in places if place is not None])
    normals = known.weights[neurons] / np.linalg.norm(known.weights[neurons], axis=1, keepdims=True)
    reach = np.full(len(points), crossing_reach * inside.scale)
    with inside.oracle.stage("straight", expected=4 * len(points)):
        seen = cross(inside.ask, points, normals, reach, meeting_share * reach, inside.noise)
    missing = int((~seen.critical).sum())
    if missing > inside.settings.missing:
        raise StageFailed(
            "straight", "creases that bend: there is another hidden layer", number=missing,
            limit=inside.settings.missing, partial=known.network(),
        )  # fmt: skip


def _place_on_hyperplane(inside: BoundedTarget, known: AnchorModel, neuron: int) -> FloatArray | None:
    """A point of a neuron's hyperplane between two points of the domain; None if it passes between none."""
    crossed_between = 64  # between which hyperplanes are crossed
    points = inside.domain.interior(inside.rng, crossed_between, inside.oracle.dim)
    values = known.values(points)[:, neuron]
    low, high = np.flatnonzero(values < 0), np.flatnonzero(values > 0)
    if not len(low) or not len(high):
        return None
    i, j = inside.rng.choice(low), inside.rng.choice(high)
    share = values[i] / (values[i] - values[j])
    return np.asarray(points[i] + share * (points[j] - points[i]))

"""The first layer of a deeper network from labels: creases that run straight across others.

A neuron of the first layer bends the boundary on one hyperplane, whatever else bends there; those of deeper layers
change their direction at every crease they cross. So hyperplanes that gather bends of many facets are the first layer.
They are found in a flat, then the facets beside their bends are measured in the whole space, to the last digits.

A facet's normal is a sum of the weights of neurons that are active there. So the active side of a neuron is the one
where its part in the normals is not zero, and normals that are no such sums show that neurons are missing. Labels then
confirm each neuron: where it is off, no step that changes its value alone moves the boundary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.depth_three.first_layer import FirstLayer
from reluctant.extraction.from_labels.bent_model import BoundaryPoints, row_norms
from reluctant.extraction.from_labels.flat import Flat
from reluctant.extraction.from_labels.walks import Bends, Creases, Facets, Walks, creases_of
from reluctant.extraction.method import StageFailed
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles.ledger import check_time
from reluctant.verification.label_check import largest_share

FEW_CUT = 0.4  # of a crease's bends: facets that it may cut
STRAIGHT = 1e-3  # of a typical input: points farther from a crease lie on one side of it
ALL_STRAIGHT = 0.95  # of the bends on straight creases: the target has one hidden layer
MOST_CROOKED = 0.1  # share of bends off straight creases that those seen may leave possible
FEWEST = 3  # bends of a crease that runs straight across others
LAYER_FLAT = 6  # dimensions
WORST_CONDITION = 1e6  # of the weights: beyond, one of them is a sum of others
LIFTED = 3  # bends of each crease that are measured in the whole space
IDLE = 2  # rounds of walks without a new straight crease, at most
LONG_STEPS = (1e-2, 2e-3, 4e-4)  # of a typical input: steps aside of a facet in the whole space
EXACT_BITS = (7, 20, 40)  # of a step: how well crossings are located, one after the other
ZERO = 1e-4  # of a neuron's part in normals: less is none
OUTSIDE = 1e-3  # of a normal: so much of it outside the layer's weights shows a neuron that is missing
PROBES = 16  # facets of the whole space whose normals the layer must explain
MOST = 0.97  # of the facets beside bends that it must explain; a few may be measured badly


class OneHiddenLayer(StageFailed):
    """Nearly all bends lie on straight creases: there is no layer above the first."""

    def __init__(self, share: float) -> None:
        super().__init__("creases", "one hidden layer", number=share, limit=ALL_STRAIGHT)


@dataclass
class LayerSearch:
    """The search for a first layer: facets and bends of the whole space, found in one flat after the other."""

    space: Flat
    facets: Facets
    bends: Bends

    @classmethod
    def of(cls, space: Flat) -> LayerSearch:
        """Nothing found yet."""
        return cls(space, Facets.none(space.dim), Bends(np.empty((0, space.dim)), np.empty((0, 2), dtype=int)))

    def run(self, flat: Flat) -> FirstLayer:
        """The first layer, begun in this flat; StageFailed where no flat shows it whole."""
        flats, probes = 4, Facets.none(self.space.dim)
        for _ in range(flats):
            LayerFlat(self, Walks.none(flat)).run()
            if not len(probes):  # a target of one hidden layer ends in the flat, before they are paid
                probes = self.probed()
            layer, unclear = oriented(self.creases(), self.facets, self.space.dim)
            outside = probes.normals - probes.normals @ np.linalg.pinv(layer.weights) @ layer.weights
            missing = np.linalg.norm(outside, axis=1)
            worst = int(missing.argmax())
            explained = max(unclear, missing[worst]) < OUTSIDE
            moved = self.moved(layer) if explained else 0
            if explained and not moved:
                return layer
            flat = self.flat_through(probes.points[worst], np.stack([probes.normals[worst], outside[worst]]))
        if moved:
            raise StageFailed("creases", "boundary points that a first layer should not move", number=moved, limit=0)
        raise StageFailed("creases", "normals that no first layer explains", number=missing[worst], limit=OUTSIDE)

    def moved(self, layer: FirstLayer) -> int:
        """How many boundary points move with what the layer says that the target does not see.

        Steps that no neuron sees, and steps that change the value of one alone that is off, from near its crease to far
        from it. A neuron that is none of the target's fails, and so does a layer without one. Cost: two rows a step.
        """
        each, near, off = 6, 1e-3, 1e-6  # steps a neuron; of a value off; of a typical input
        rng, size, facets = self.space.rng, self.space.typical, self.facets
        alone = np.linalg.pinv(layer.weights).T  # (k, d): changes one value by one
        values = facets.points @ layer.weights.T + layer.biases
        facet, neuron = np.nonzero(values < 0)
        chosen = [rng.permutation(np.flatnonzero(neuron == i))[:each] for i in range(len(layer))]
        facet, neuron = (part[np.concatenate(chosen)] for part in (facet, neuron))
        there = np.where(rng.random(len(facet)) < 1 / 2, near * values[facet, neuron], -size * rng.random(len(facet)))
        steps = (there - values[facet, neuron])[:, None] * alone[neuron]
        unseen = size / np.sqrt(self.space.dim) * rng.standard_normal((min(each * each, len(facets)), self.space.dim))
        unseen -= (unseen @ layer.weights.T) @ alone
        steps, facet = np.concatenate([steps, unseen]), np.append(facet, rng.permutation(len(facets))[: len(unseen)])
        at = BoundaryPoints(facets.points[facet] + steps, facets.normals[facet], facets.pairs[facet])
        return int((~self.space.holds(at, off * (size + row_norms(steps)))).sum())

    def probed(self) -> Facets:
        """Facets at random places of the whole space. Cost: about 45·d rows each."""
        places = self.space.draw(4 * PROBES), self.space.draw(4 * PROBES)
        numbers = self.add(Walks.none(self.space).crossings_between(*places)[:PROBES])
        if (numbers < 0).all():
            raise StageFailed("creases", "no flat facet", number=0, limit=PROBES)
        return self.facets[numbers[numbers >= 0]]

    def flat_through(self, point: FloatArray, directions: FloatArray) -> Flat:
        """A flat through a boundary point, with these directions (2, d) in it."""
        random = self.space.rng.standard_normal((self.space.dim, LAYER_FLAT))
        basis = np.linalg.qr(np.column_stack([*directions, random]))[0][:, : min(LAYER_FLAT, self.space.dim)].T
        return replace(self.space, origin=point, basis=basis)

    def creases(self) -> Creases:
        """The hyperplanes that bends of the whole space lie on."""
        error = 8 * self.space.located_to / (LONG_STEPS[-1] * self.space.typical)
        facets = replace(self.facets, error=np.full(len(self.facets), error))
        return creases_of(facets, self.bends, self.space.typical)[0]

    def add(self, at: BoundaryPoints) -> np.ndarray:
        """The numbers of facets measured at boundary points, -1 where they are not flat. Cost: about 45·d rows each."""
        numbers, open_ = np.full(len(at), -1), np.arange(len(at))
        for step in LONG_STEPS:
            if not len(open_):
                break
            steps = np.full(len(open_), step * self.space.typical)
            found, even = Facets.at(self.space, at[open_], steps, np.ones(len(open_), dtype=bool), EXACT_BITS)
            numbers[open_[even]] = len(self.facets) + np.arange(int(even.sum()))
            self.facets += found[even]
            open_ = open_[~even]
        return numbers


@dataclass
class LayerFlat:
    """One flat of the search, with its walks."""

    search: LayerSearch
    walks: Walks

    def run(self) -> None:
        """Walk until no more straight creases come, then measure the facets beside those in the whole space."""
        rounds, starts, steps, idle, width = 8, 16, 8, 0, 0
        flat = self.walks.flat
        while rounds and idle < IDLE:
            check_time()
            self.walks.go(flat.draw(starts), flat.draw(starts), steps)
            creases, owners = creases_of(self.walks.facets, self.walks.bends, flat.typical)
            straight = np.flatnonzero((creases.bends >= FEWEST) & (self.cut_facets(creases) <= FEW_CUT * creases.bends))
            idle, width = (0, len(straight)) if len(straight) > width else (idle + 1, width)
            rounds -= 1
            crooked, bends = int((~np.isin(owners, straight)).sum()), max(len(owners), 1)
            share = 1 - crooked / bends
            if share > ALL_STRAIGHT and largest_share(crooked, bends) < MOST_CROOKED:
                raise OneHiddenLayer(share)
        new = [crease for crease in straight if not self.known(creases, crease)]
        chosen = np.concatenate([np.empty(0, dtype=int), *(self.best_bends(owners == crease) for crease in new)])
        wanted = np.unique(self.walks.bends.sides[chosen])
        some = self.walks.facets[wanted]
        lifted = dict(zip(
            wanted.tolist(),
            self.search.add(BoundaryPoints(flat.rows(some.points), flat.along(some.normals), some.pairs)).tolist(),
            strict=True,
        ))  # fmt: skip
        sides = np.array([[lifted[facet] for facet in pair] for pair in self.walks.bends.sides[chosen]], dtype=int)
        good = (sides.reshape(-1, 2) >= 0).all(axis=1)
        found = self.on_both(Bends(flat.rows(self.walks.bends.points[chosen[good]]), sides.reshape(-1, 2)[good]))
        known = self.search.bends
        self.search.bends = Bends(
            np.concatenate([known.points, found.points]), np.concatenate([known.sides, found.sides])
        )

    def known(self, creases: Creases, crease: np.intp) -> bool:
        """Whether a crease of the flat is one of the whole space that is known already."""
        alike, flat, known = 1e-3, self.walks.flat, self.search.creases()
        if not len(known.offsets):
            return False
        inside = known.directions @ flat.basis.T if flat.basis is not None else known.directions
        levels = known.offsets + (known.directions @ flat.origin if flat.basis is not None else 0.0)
        ours = np.append(creases.directions[crease], creases.offsets[crease] / flat.typical)
        theirs = np.column_stack([inside, levels / flat.typical]) / row_norms(inside)[:, None]
        apart = np.minimum(np.linalg.norm(theirs - ours, axis=1), np.linalg.norm(theirs + ours, axis=1))
        return bool(apart.min() < alike)

    def cut_facets(self, creases: Creases) -> np.ndarray:
        """How many facets (k,) have points on both sides: a crease of the first layer ends every facet."""
        clear = STRAIGHT * self.walks.flat.typical
        sides = self.walks.bends.sides
        number = np.concatenate([np.arange(len(self.walks.facets)), *sides.T])
        points = np.concatenate([self.walks.facets.points, self.walks.bends.points, self.walks.bends.points])
        z = points @ creases.directions.T + creases.offsets
        above, below = (np.zeros((len(self.walks.facets), z.shape[1]), dtype=bool) for _ in range(2))
        np.logical_or.at(above, number, z > clear)
        np.logical_or.at(below, number, z < -clear)
        return np.asarray((above & below).sum(axis=0))

    def best_bends(self, on: np.ndarray) -> np.ndarray:
        """The bends of one crease that show it best: where the boundary turns most."""
        mine = np.flatnonzero(on)
        first, second = (self.walks.facets.normals[self.walks.bends.sides[mine, i]] for i in (0, 1))
        chosen: list[int] = []
        for bend in mine[np.argsort(np.abs((first * second).sum(axis=1)))]:
            used = self.walks.bends.sides[chosen]
            if len(chosen) < LIFTED and not np.isin(self.walks.bends.sides[bend], used).any():
                chosen.append(int(bend))
        return np.array(chosen, dtype=int)

    def on_both(self, bends: Bends) -> Bends:
        """The bends moved onto the planes of both their facets."""
        first, second = (self.search.facets[bends.sides[:, i]] for i in (0, 1))
        normals = np.stack([first.normals, second.normals], axis=1)  # (q, 2, d)
        off = np.stack([(f.normals * (bends.points - f.points)).sum(axis=1) for f in (first, second)], axis=1)
        moves = np.linalg.solve(normals @ np.swapaxes(normals, 1, 2), off[:, :, None])
        return replace(bends, points=bends.points - (np.swapaxes(normals, 1, 2) @ moves)[:, :, 0])


def oriented(creases: Creases, facets: Facets, dim: int) -> tuple[FirstLayer, float]:
    """Creases as neurons, active on the side where normals have a part of them; and how much they leave unclear.

    A crease of a deeper layer is a sum of those of the first, and has a part in normals on both its sides: those with
    fewest bends are left out until none is.
    """
    order = np.argsort(-creases.bends, kind="stable")
    weights, biases = creases.directions[order], creases.offsets[order]
    while len(biases):
        left, singular, _ = np.linalg.svd(weights)
        condition = float(singular[0] / singular[-1]) if len(biases) <= dim else np.inf
        parts = facets.normals @ np.linalg.pinv(weights)  # (f, k)
        outside = np.linalg.norm(facets.normals - parts @ weights, axis=1)
        explained = outside < OUTSIDE  # where no neuron that is missing is active
        positive = facets.points[explained] @ weights.T + biases > 0
        usual = np.stack([_median(np.abs(parts[explained]), positive == side) for side in (False, True)])
        margins = usual.min(axis=0) / np.maximum(np.where(np.isfinite(usual), usual, 0).max(axis=0), DOUBLE.tiny)
        if condition < WORST_CONDITION:
            false = np.flatnonzero(np.isfinite(usual).all(axis=0) & (margins > ZERO))
        else:
            false = np.flatnonzero(np.abs(left[:, -1]) > ZERO)
        if not len(false):
            break
        kept = np.arange(len(biases)) != false[-1]
        weights, biases = weights[kept], biases[kept]
    else:
        raise StageFailed("creases", "no straight crease", number=0, limit=1)
    sign = np.where(usual[1] > usual[0], 1.0, -1.0)
    layer = FirstLayer(sign[:, None] * weights, sign * biases, condition, margins, np.zeros(len(biases)))
    return layer, float(np.quantile(outside, MOST)) if np.isfinite(usual).all() else np.inf


def _median(parts: FloatArray, where: np.ndarray) -> FloatArray:
    """The median (k,) of the rows that count; infinite without any."""
    columns = zip(parts.T, where.T, strict=True)
    return np.array([np.median(column[mine]) if mine.any() else np.inf for column, mine in columns])

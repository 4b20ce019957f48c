"""Neurons from bends: two bends whose planes of normals meet in one direction lie on one crease.

The normals n₁, n₂ beside a bend span a plane that holds the neuron's direction u. Planes of two bends of one neuron
meet in u, and u·(p₁ − p₂) = 0 for their places. In five dimensions and more chance makes no such pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.from_labels.walks import SLOPE_ERROR, Bends, Facets
from reluctant.numerics import FloatArray

AGREES, APART = 4.0, 30.0  # errors of a plane within which planes meet, and from which they are not the same


@dataclass(frozen=True)
class Creases:
    """Hyperplanes directions·y + offsets = 0, with the number of bends on each."""

    directions: FloatArray  # (k, r), unit rows
    offsets: FloatArray  # (k,)
    bends: np.ndarray  # (k,)


def creases_of(
    facets: Facets, bends: Bends, size: float, slope_error: float = SLOPE_ERROR
) -> tuple[Creases, np.ndarray]:
    """The hyperplanes that two bends and more lie on, and the hyperplane of each bend, -1 where there is none."""
    first, second = (facets.normals[bends.sides[:, i]] for i in (0, 1))
    side = second - (first * second).sum(axis=1)[:, None] * first
    sine = np.maximum(np.linalg.norm(side, axis=1), slope_error**2)
    planes = np.stack([first, side / sine[:, None]], axis=2)  # (q, r, 2)
    error = slope_error / sine
    slack = 2 * AGREES * (error + slope_error)
    owner = np.full(len(bends), -1)
    i, j, u, offset = _matches(planes, bends, error, facets, size)
    found: list[tuple[FloatArray, float, int]] = []
    fits = _fitting(planes, bends, slack, u, offset, size)  # (candidates, q)
    alive = np.ones(len(bends), dtype=bool)
    while len(u):
        support = (fits & alive).sum(axis=1) * (alive[i] & alive[j])
        best = int(support.argmax())
        if support[best] < 2:
            break
        members = np.flatnonzero(fits[best] & alive)
        direction, level = _refitted(planes, bends, error, members, size)
        members = np.flatnonzero(_fitting(planes, bends, slack, direction[None], np.array([level]), size)[0] & alive)
        alive[fits[best]] = False
        alive[members] = False
        if len(members) > 1:
            owner[members] = len(found)
            found.append((direction, level, len(members)))
    r = facets.points.shape[1]
    if not found:
        return Creases(np.empty((0, r)), np.empty(0), np.empty(0, dtype=int)), owner
    directions, offsets, counts = zip(*found, strict=True)
    return Creases(np.array(directions), np.array(offsets), np.array(counts)), owner


def _matches(
    planes: FloatArray, bends: Bends, error: FloatArray, facets: Facets, size: float
) -> tuple[np.ndarray, np.ndarray, FloatArray, FloatArray]:
    """Pairs of bends (i, j) whose planes meet in one direction u at one offset."""
    i, j = np.triu_indices(len(bends), 1)
    shared = (bends.sides[i][:, :, None] == bends.sides[j][:, None, :]).any(axis=(1, 2))
    i, j = i[~shared], j[~shared]
    if not len(i):
        return i, j, np.empty((0, planes.shape[1])), np.empty(0)
    shared_part = np.swapaxes(planes[i], 1, 2) @ planes[j]
    left, _, right = np.linalg.svd(shared_part)
    sines = np.linalg.svd(planes[j] - planes[i] @ shared_part, compute_uv=False)[:, ::-1]
    both = error[i] + error[j]
    u = np.einsum("qrl,ql->qr", planes[i], left[:, :, 0]) + np.einsum("qrl,ql->qr", planes[j], right[:, 0, :])
    u /= np.linalg.norm(u, axis=1)[:, None]
    apart = bends.points[i] - bends.points[j]
    near = AGREES * both * (size + np.linalg.norm(apart, axis=1)) / np.maximum(sines[:, 1], both)
    normals = facets.normals[np.concatenate([bends.sides[i], bends.sides[j]], axis=1)]  # (q, 4, r)
    like_a_facet = np.sqrt(np.maximum(1 - np.einsum("qfr,qr->qf", normals, u) ** 2, 0)).min(axis=1) < APART * both
    good = (sines[:, 0] < AGREES * both) & (sines[:, 1] > APART * both) & (np.abs((apart * u).sum(axis=1)) < near)
    good &= ~like_a_facet
    i, j, u = i[good], j[good], u[good]
    return i, j, u, -((bends.points[i] + bends.points[j]) / 2 * u).sum(axis=1)


def _fitting(
    planes: FloatArray, bends: Bends, slack: FloatArray, u: FloatArray, offset: FloatArray, size: float
) -> np.ndarray:
    """Which bends lie on each hyperplane: (candidates, q)."""
    inside = np.einsum("qrl,cr->cql", planes, u)
    outside = np.linalg.norm(u[:, None] - np.einsum("qrl,cql->cqr", planes, inside), axis=2)
    near = np.abs(u @ bends.points.T + offset[:, None])
    far = size + np.linalg.norm(bends.points, axis=1)
    return np.asarray((outside < slack) & (near < slack * far))


def _refitted(
    planes: FloatArray, bends: Bends, error: FloatArray, members: np.ndarray, size: float
) -> tuple[FloatArray, float]:
    """The hyperplane that fits these bends best."""
    r = planes.shape[1]
    rows = []
    for one in members:
        outside = (np.eye(r) - planes[one] @ planes[one].T) / error[one]
        place = np.append(bends.points[one] / size, 1.0)[None] / error[one]
        rows += [np.column_stack([outside, np.zeros(r)]), place]
    solution = np.linalg.svd(np.concatenate(rows))[2][-1]
    length = float(np.linalg.norm(solution[:r]))
    return solution[:r] / length, float(solution[r]) * size / length

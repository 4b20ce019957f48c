"""Kinks of one neuron, known by how the slopes jump there: no crease is followed, and nothing is asked.

A neuron with weights y of the known features, times its output weight, jumps by Jᵀy at each of its kinks, J being the
slopes of the features there, and y·φ + c is zero. So each kink gives d + 1 linear equations for the same unknowns, up
to one sign. A kink in a cell beside that of another adds one unknown, the coefficient of the neuron between the cells,
and all other equations must hold. Kinks are joined where more equations hold than unknowns are settled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.features import KnownLayers
from reluctant.geometry.lines import BoolArray, IntArray
from reluctant.numerics import FloatArray
from reluctant.oracles.ledger import check_time

AGREE = 1e-6  # of the jumps: equations that hold
OPEN = 1e-6  # of the equations: unknowns that are not settled


@dataclass(frozen=True)
class JumpEquations:
    """Equations left (n, q, F + 1) @ (y, c) = ± right (n, q) of n kinks."""

    left: FloatArray
    right: FloatArray

    @classmethod
    def of(cls, known: KnownLayers, points: FloatArray, jumps: FloatArray) -> JumpEquations:
        """Of kinks at points (n, d) with jumps (n, d) of one output's slopes."""
        local = known.local(points)
        slopes = np.swapaxes(local.jacobian, 1, 2)  # (n, d, F)
        _, sizes, rows = np.linalg.svd(jumps, full_matrices=False)
        basis = rows[sizes > OPEN * sizes[0]]  # directions that matter
        gradients = np.concatenate([basis @ slopes, np.zeros((len(points), len(basis), 1))], axis=2)
        places = np.column_stack([local.features, np.ones(len(points))])
        size = np.linalg.norm(places, axis=1, keepdims=True)
        left = np.concatenate([gradients, (places / size)[:, None]], axis=1)
        right = np.column_stack([jumps @ basis.T, np.zeros(len(points))])
        return cls(left, right)

    def __len__(self) -> int:
        return len(self.right)


@dataclass
class _Unknowns:
    """All solutions so far: one of them (F + 1,) and the directions (F + 1, u) that are open."""

    one: FloatArray
    open: FloatArray

    def joined(self, left: FloatArray, right: FloatArray) -> _Unknowns:
        """With more equations, which agree."""
        u, sizes, rows = np.linalg.svd(left @ self.open, full_matrices=True)
        rank = int((sizes > OPEN).sum())
        step = rows[:rank].T @ ((u[:, :rank].T @ (right - left @ self.one)) / sizes[:rank])
        return _Unknowns(self.one + self.open @ step, self.open @ rows[rank:].T)


def shared_jumps(equations: JumpEquations, lines: IntArray) -> list[IntArray]:
    """Kinks of each neuron that several lines show, as indices."""
    fewest = 3  # lines
    left, parts = np.ones(len(equations), dtype=bool), list[_Part]()
    for seed in range(len(equations)):
        if left[seed]:
            check_time()
            part = _grown(equations, seed, left)
            if len(part.members) > 1:
                left[part.members] = False
                parts.append(part)
    return [part.members for part in _merged(equations, parts) if len(np.unique(lines[part.members])) >= fewest]


@dataclass(frozen=True)
class _Part:
    """Kinks of one neuron, the signs of their jumps, and what they leave open."""

    members: IntArray
    signs: FloatArray
    unknowns: _Unknowns

    def stacked(self, equations: JumpEquations) -> tuple[FloatArray, FloatArray]:
        """All equations of the kinks."""
        left, right = equations.left[self.members], self.signs[:, None] * equations.right[self.members]
        return left.reshape(-1, left.shape[2]), right.reshape(-1)


def _merged(equations: JumpEquations, parts: list[_Part]) -> list[_Part]:
    """Parts of one neuron joined: those of which many equations hold together, the largest first."""
    parts = sorted(parts, key=lambda part: -len(part.members))
    done = list[_Part]()
    while parts:
        one, parts = parts[0], parts[1:]
        k = 0
        while k < len(parts):
            both = _together(equations, one, parts[k])
            if both is None:
                k += 1
            else:
                one, parts, k = both, parts[:k] + parts[k + 1 :], 0
        done.append(one)
    return done


def _together(equations: JumpEquations, one: _Part, other: _Part) -> _Part | None:
    """The two as one, if they agree in more than one way round can by chance."""
    spare = 3  # equations of the other that hold beyond the unknowns they settle
    left, right = other.stacked(equations)
    size = float(np.linalg.norm(equations.right[np.concatenate([one.members, other.members])], axis=1).min())
    told = left.shape[1] - other.unknowns.open.shape[1]  # independent equations of the other
    u, sizes, _ = np.linalg.svd(left @ one.unknowns.open, full_matrices=False)
    rank = int((sizes > OPEN).sum())
    if told - rank < spare:
        return None
    for turn in (1.0, -1.0):
        off = turn * right - left @ one.unknowns.one
        off = off - u[:, :rank] @ (u[:, :rank].T @ off)
        if np.linalg.norm(off) < AGREE * size * np.sqrt(len(other.members)):
            unknowns = one.unknowns.joined(left, turn * right)
            members = np.concatenate([one.members, other.members])
            return _Part(members, np.concatenate([one.signs, turn * other.signs]), unknowns)
    return None


def _grown(equations: JumpEquations, seed: int, left: BoolArray) -> _Part:
    """The kinks among those left that agree with one, those that settle the fewest unknowns first."""
    most_spare = 4  # equations that hold beyond the unknowns they settle, or all but one
    spare = min(equations.left.shape[1] - 1, most_spare)
    sizes_of = np.linalg.norm(equations.right, axis=1)
    count = equations.left.shape[2]
    unknowns = _Unknowns(np.zeros(count), np.eye(count)).joined(equations.left[seed], equations.right[seed])
    members, signs = [seed], [1.0]
    others = np.flatnonzero(left & (np.arange(len(left)) != seed))
    while len(others):
        parts = equations.left[others] @ unknowns.open  # (n, q, u)
        u, sizes, _ = np.linalg.svd(parts, full_matrices=False)
        settled = sizes > OPEN
        rank = settled.sum(axis=1)
        rest = -(equations.left[others] @ unknowns.one)
        sign = np.zeros(len(others))
        for turn in (1.0, -1.0):
            off = rest + turn * equations.right[others]
            inside = np.where(settled, np.einsum("nqu,nq->nu", u, off), 0.0)
            off = off - np.einsum("nqu,nu->nq", u, inside)
            sign[np.linalg.norm(off, axis=1) < AGREE * np.minimum(sizes_of[others], sizes_of[seed])] = turn
        agreeing = np.flatnonzero((sign != 0) & (equations.left.shape[1] - rank >= spare))
        if not len(agreeing):
            break
        best = agreeing[np.argmin(rank[agreeing])]
        joined = agreeing[rank[agreeing] == 0] if rank[best] == 0 else np.array([best])
        for k in joined:
            unknowns = unknowns.joined(equations.left[others[k]], sign[k] * equations.right[others[k]])
        members += others[joined].tolist()
        signs += sign[joined].tolist()
        others = np.delete(others, joined)
    return _Part(np.array(members), np.array(signs), unknowns)

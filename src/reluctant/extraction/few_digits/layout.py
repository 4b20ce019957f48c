"""Which numbers of a network are unknowns of the last fit, and where they stand in its equations.

The core is the network in the subspace; own unknowns are those of one direction off it. A single output's weights are
fixed, for only their sign matters; a network without a skip term has constants alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reluctant.geometry.samples import IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["AnyFloats", "Layout", "Step", "Unknowns"]

AnyFloats: TypeAlias = NDArray[np.floating[Any]]
Step: TypeAlias = tuple[FloatArray, FloatArray]  # of the core (p,), of every direction (D, q)


@dataclass(frozen=True)
class Unknowns:
    """Parameters as pairs: which column they multiply, and the outputs (p, m) they change by it."""

    column: IntArray
    outputs: FloatArray

    def normal(self, gram: FloatArray, other: Unknowns) -> FloatArray:
        """Normal equations between parameters from those between columns."""
        return np.asarray(gram[np.ix_(self.column, other.column)] * (self.outputs @ other.outputs.T))

    def gradient(self, products: FloatArray) -> FloatArray:
        """Right side (p,) from products of columns with residuals."""
        return np.asarray((products[self.column] * self.outputs).sum(axis=1))


@dataclass(frozen=True)
class Layout:
    """Neurons, coordinates of the subspace, outputs, and whether there is a skip term."""

    h: int
    k: int
    m: int
    affine: bool

    @classmethod
    def of(cls, core: ReLUNetwork) -> Layout:
        """The layout of this network."""
        h, k = core.weights[0].shape
        return cls(h, k, core.outputs, core.skip is not None)

    @property
    def columns(self) -> int:
        """Columns of the core: active neurons times each coordinate and one, neurons, coordinates and one."""
        return self.h * (self.k + 1) + self.h + self.k + 1

    def own(self, a: FloatArray) -> Unknowns:
        """Of one direction: a weight of every neuron, then the skip term of every output."""
        neurons = Unknowns(np.arange(self.h), a.T)
        if not self.affine:
            return neurons
        skip = np.full(self.m, self.h)
        return Unknowns(np.append(neurons.column, skip), np.concatenate([a.T, np.eye(self.m)]))

    def core(self, a: FloatArray) -> Unknowns:
        """Of the core: weights and bias of every neuron, its outputs if there are several, the affine term."""
        hidden, each = self.h * (self.k + 1), np.eye(self.m)
        column, outputs = [np.arange(hidden)], [np.repeat(a.T, self.k + 1, axis=0)]
        if self.m > 1:
            column.append(hidden + np.repeat(np.arange(self.h), self.m))
            outputs.append(np.tile(each, (self.h, 1)))
        terms = np.arange(0 if self.affine else self.k, self.k + 1)
        column.append(hidden + self.h + np.repeat(terms, self.m))
        outputs.append(np.tile(each, (len(terms), 1)))
        return Unknowns(np.concatenate(column), np.concatenate(outputs))

    def split_core(self, step: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights and biases (h, k + 1), output weights (h, m), affine term and constants (k + 1, m)."""
        hidden, outputs, affine = np.split(step, np.cumsum([self.h * (self.k + 1), self.h * self.m * (self.m > 1)]))
        full = np.zeros((self.k + 1, self.m))
        full[0 if self.affine else self.k :] = affine.reshape(-1, self.m)
        free = outputs.reshape(self.h, self.m) if self.m > 1 else np.zeros((self.h, self.m))
        return hidden.reshape(self.h, self.k + 1), free, full

    def join_core(self, hidden: AnyFloats, outputs: AnyFloats, affine: AnyFloats) -> FloatArray:
        """Inverse of `split_core`."""
        free = outputs.reshape(-1) if self.m > 1 else np.empty(0)
        parts = [hidden.reshape(-1), free, affine[0 if self.affine else self.k :].reshape(-1)]
        return np.concatenate([part.astype(np.float64) for part in parts])

    def moved(self, core: ReLUNetwork, step: FloatArray) -> ReLUNetwork:
        """The core after a step."""
        hidden, outputs, affine = self.split_core(step)
        (w, a), (b, c), k = core.weights, core.biases, self.k
        skip = None if core.skip is None else core.skip + affine[:k].T
        return ReLUNetwork([w + hidden[:, :k], a + outputs.T], [b + hidden[:, k], c + affine[k]], skip)

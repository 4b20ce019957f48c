"""Neurons in the coordinates of a frame as lines show them: where their creases are on a line, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from reluctant.extraction.depth_two.close_creases import kept_along
from reluctant.geometry import FramedNetwork
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["AGREE", "UNSURE", "Line", "Marks", "Neurons"]

AGREE = 5.0  # errors, in place and in bend, within which two creases may be the same
UNSURE = 1e-3  # error of a neuron's weights, of their length, and of its values where base points are


@dataclass(frozen=True)
class Line:
    """A line of a frame, in its coordinates."""

    start: FloatArray  # (k,)
    along: FloatArray

    @classmethod
    def of(cls, found: FramedNetwork, known: FramedNetwork) -> Line:
        """The line that one network was found on, in the frame of the other."""
        frame = known.frame
        return cls((found.frame.origin - frame.origin) @ frame.basis.T, found.frame.basis[0] @ frame.basis.T)

    def points(self, t: FloatArray) -> FloatArray:
        """Points (n, k) at these positions."""
        return self.start + t[:, None] * self.along

    @classmethod
    def first(cls, k: int) -> Line:
        """The first line of the frame."""
        return cls(np.zeros(k), np.eye(k)[0])


@dataclass(frozen=True)
class Marks:
    """Creases of a line: where they are, by how much they bend the function, and the errors of both."""

    t: FloatArray
    t_sd: FloatArray
    bend: FloatArray
    bend_sd: FloatArray

    def chosen(self, which: IntArray) -> Marks:
        """These creases only."""
        return Marks(*(getattr(self, part.name)[which] for part in fields(self)))

    def near(self, other: Marks) -> BoolArray:
        """Which may be where the other is."""
        return np.asarray(np.abs(self.t - other.t) < AGREE * np.hypot(self.t_sd, other.t_sd))

    def bend_as(self, others: Marks) -> bool:
        """Whether all bend the function as all others do."""
        off = self.bend.sum() - others.bend.sum()
        return bool(abs(off) < AGREE * np.linalg.norm(np.concatenate([self.bend_sd, others.bend_sd])))

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True)
class Neurons:
    """Neurons in the coordinates of a frame, each as it was seen on a line."""

    weights: FloatArray  # (n, k)
    offsets: FloatArray
    outputs: FloatArray
    sd: FloatArray
    along_sd: FloatArray
    points: FloatArray  # (n, k)
    lines: FloatArray

    @classmethod
    def of(cls, known: FramedNetwork) -> Neurons:
        """All of a network with one output."""
        (g, a), z = known.network.weights, known.network.biases[0]
        return cls(g, z, a[0], known.weight_sd, known.along_sd, known.points, known.lines)

    def without(self, which: IntArray) -> Neurons:
        """All but these."""
        return self.chosen(np.setdiff1d(np.arange(len(self)), which))

    def chosen(self, which: IntArray) -> Neurons:
        """These only."""
        return Neurons(*(getattr(self, part.name)[which] for part in fields(self)))

    def __add__(self, more: Neurons) -> Neurons:
        return Neurons(*(np.concatenate([getattr(side, part.name) for side in (self, more)]) for part in fields(self)))

    def __len__(self) -> int:
        return len(self.offsets)

    def on(self, line: Line) -> Marks:
        """Their creases on a line."""
        slope = self.weights @ line.along
        t = -(self.weights @ line.start + self.offsets) / slope
        t_sd = self._sd_along(line.points(t) - self.points) / np.abs(slope)
        return Marks(
            t, t_sd, self.outputs * np.abs(slope), self._sd_along(np.broadcast_to(line.along, self.lines.shape))
        )

    def _sd_along(self, steps: FloatArray) -> FloatArray:
        """Noise of the change of each neuron's value along its own of these steps (n, k)."""
        along = (steps * self.lines).sum(axis=1)
        across = np.sqrt(np.maximum((steps**2).sum(axis=1) - along**2, 0))
        return np.hypot(self.along_sd * along, self.sd * across)

    def well_known(self) -> BoolArray:
        """Which are known well enough to say where their creases are."""
        return np.asarray(self.sd < UNSURE * np.linalg.norm(self.weights, axis=1))

    def may_be_nothing(self) -> BoolArray:
        """Which are not larger than their errors, or were not measured at all."""
        return ~(np.linalg.norm(self.weights, axis=1) >= AGREE * self.sd)

    def with_weights(self, which: IntArray, others: Neurons) -> Neurons:
        """With the weights that these are found to have; what their own lines show stays as it is."""
        weights, offsets, sd, along_sd = (part.copy() for part in (self.weights, self.offsets, self.sd, self.along_sd))
        off = np.abs(((weights[which] - others.weights) * self.lines[which]).sum(axis=1))
        kept = (along_sd[which] < others.sd) & (off < AGREE * np.hypot(along_sd[which], others.sd))
        weights[which] = kept_along(weights[which], others.weights, self.lines[which], kept)
        offsets[which] = -(weights[which] * self.points[which]).sum(axis=1)
        sd[which], along_sd[which] = others.sd, np.where(kept, along_sd[which], others.sd)
        return replace(self, weights=weights, offsets=offsets, sd=sd, along_sd=along_sd)

    def network(self, known: FramedNetwork) -> FramedNetwork:
        """As a network of the frame that `known` is one of; its skip term is where the first line begins."""
        network = ReLUNetwork(
            [self.weights, self.outputs[None]], [self.offsets, known.network.biases[1]], known.network.skip
        )
        return FramedNetwork(known.frame, network, self.sd, self.along_sd, self.points, self.lines)

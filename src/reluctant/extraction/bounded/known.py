"""What is known of a target on its domain: an affine map around an anchor, and neurons that are off there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.bounded.outputs import Factors
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Known"]

SIGNIFICANT = 30.0  # deviations of the noise from which on a neuron is one
SAME = 30.0  # deviations of the noise within which two hyperplanes are one


@dataclass(frozen=True)
class Known:
    """f(x) = value + slope (x - anchor) + Σ outputs_k max(weights_k · (x - feet_k), 0).

    Every neuron is off at the anchor, so what is still unknown is off there too: between the anchor and a point
    where target and model differ there is a crease nobody has seen. Outputs have norm one; `sd` is the noise of
    each neuron's weights, `slope_sd` that of the affine map.
    """

    anchor: FloatArray  # (d,)
    value: FloatArray  # (m,)
    slope: FloatArray  # (m, d)
    slope_sd: float
    weights: FloatArray  # (h, d)
    feet: FloatArray  # (h, d)
    outputs: FloatArray  # (m, h)
    sd: FloatArray  # (h,)
    output_sd: FloatArray  # (h,)

    @classmethod
    def affine(cls, anchor: FloatArray, value: FloatArray, slope: FloatArray, slope_sd: float) -> Known:
        """No neurons yet."""
        none = np.empty((0, len(anchor)))
        return cls(anchor, value, slope, slope_sd, none, none, np.empty((len(value), 0)), np.empty(0), np.empty(0))

    @property
    def neurons(self) -> int:
        """Number of neurons."""
        return len(self.weights)

    @property
    def biases(self) -> FloatArray:
        """Biases (h,) of the neurons."""
        return -(self.weights * self.feet).sum(axis=1)

    def network(self) -> ReLUNetwork:
        """The same function as a network with a skip term, or without hidden layer where there are no neurons."""
        constant = self.value - self.slope @ self.anchor
        if not self.neurons:
            return ReLUNetwork([self.slope], [constant])
        return ReLUNetwork([self.weights, self.outputs], [self.biases, constant], self.slope)

    def values(self, rows: FloatArray) -> FloatArray:
        """What each neuron sums up (n, h)."""
        return rows @ self.weights.T + self.biases

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Answers (n, m) of the model."""
        hidden = np.maximum(self.values(rows), 0)
        return np.asarray(self.value + (rows - self.anchor) @ self.slope.T + hidden @ self.outputs.T)

    def slopes(self, rows: FloatArray) -> FloatArray:
        """Gradients (n, m, d)."""
        active = self.values(rows) > 0
        return self.slope + np.einsum("mh,nh,hd->nmd", self.outputs, active, self.weights, optimize=True)

    def slope_error(self, rows: FloatArray) -> FloatArray:
        """Standard deviation (n,) of a slope of the model along a coordinate."""
        active = self.values(rows) > 0
        return np.sqrt(self.slope_sd**2 + active @ self.sd**2)

    def error(self, rows: FloatArray) -> FloatArray:
        """Standard deviation (n,) of the model: what the noise of its weights makes of the distance to each row."""
        squares = (self.slope_sd * np.linalg.norm(rows - self.anchor, axis=1)) ** 2
        if self.neurons:
            values = np.maximum(self.values(rows), 0)
            near = (rows**2).sum(axis=1)[:, None] - 2 * rows @ self.feet.T + (self.feet**2).sum(axis=1)
            squares = squares + ((values > 0) * np.maximum(near, 0)) @ self.sd**2 + values**2 @ self.output_sd**2
        return np.sqrt(squares)

    def noise_towards(self, point: FloatArray, noise: DistanceNoise) -> DistanceNoise:
        """Noise of target minus model on the way from the anchor to a point, by the distance from the anchor."""
        length = float(np.linalg.norm(point - self.anchor))
        farthest = max(float(np.linalg.norm(point)), float(np.linalg.norm(self.anchor)))
        near = float(noise.at(np.array([farthest]))[0])
        return DistanceNoise(near, float(self.error(point[None])[0]) / length)

    def with_neurons(self, found: Factors, feet: FloatArray) -> Known:
        """The model with more neurons; those on a crease it has already are added to the neuron there."""
        known = self
        for i in np.flatnonzero(np.linalg.norm(found.weights, axis=1) > SIGNIFICANT * found.weight_sd):
            foot, w, a = feet[i], found.weights[i], found.outputs[:, i]
            same = known._on_the_same_crease(w, foot, found.weight_sd[i])
            if same is None:
                known = known._with_one(w, foot, a, found.weight_sd[i], found.output_sd[i])
            else:
                known = known._changed(same, np.linalg.norm(w) * a, found.weight_sd[i])
        return known

    def _with_one(self, w: FloatArray, foot: FloatArray, a: FloatArray, sd: float, output_sd: float) -> Known:
        return replace(
            self,
            weights=np.vstack([self.weights, w]),
            feet=np.vstack([self.feet, foot]),
            outputs=np.column_stack([self.outputs, a]),
            sd=np.append(self.sd, sd),
            output_sd=np.append(self.output_sd, output_sd),
        )

    def _changed(self, which: int, jump: FloatArray, sd: float) -> Known:
        """One neuron with more of a jump across its crease."""
        size = np.linalg.norm(self.weights[which])
        jump = self.outputs[:, which] * size + jump
        total = np.linalg.norm(jump)
        if total <= SIGNIFICANT * sd:
            return self._without(which)
        weights, outputs, sds = self.weights.copy(), self.outputs.copy(), self.sd.copy()
        weights[which] *= total / size
        outputs[:, which] = jump / total
        sds[which] = np.hypot(sds[which], sd)
        return replace(self, weights=weights, outputs=outputs, sd=sds)

    def _without(self, which: int) -> Known:
        keep = np.arange(self.neurons) != which
        return replace(
            self,
            weights=self.weights[keep],
            feet=self.feet[keep],
            outputs=self.outputs[:, keep],
            sd=self.sd[keep],
            output_sd=self.output_sd[keep],
        )

    def _on_the_same_crease(self, w: FloatArray, foot: FloatArray, sd: float) -> int | None:
        """A known neuron with the same hyperplane, within what the noise of both allows."""
        if not self.neurons:
            return None
        sizes, size = np.linalg.norm(self.weights, axis=1), np.linalg.norm(w)
        angle = np.linalg.norm(self.weights / sizes[:, None] - w / size, axis=1)
        distance = np.abs(self.values(foot[None])[0]) / sizes
        blur = SAME * np.sqrt(len(w)) * (self.sd / sizes + sd / size)
        reach = np.linalg.norm(self.feet - foot, axis=1) + np.linalg.norm(foot - self.anchor)
        best = int(np.argmin(angle))
        return best if angle[best] < blur[best] and distance[best] < blur[best] * reach[best] else None

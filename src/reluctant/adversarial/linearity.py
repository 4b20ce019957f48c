"""`local_linearity`: how much the gradient changes with the distance from an input.

In a random network with ℓ hidden layers the relative change at radius r (of the input's norm) in a random direction
is about √(2ℓr/π): each layer's neurons change side with probability about r/π. Along the gradient it is larger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from reluctant.adversarial.flip import checked_input
from reluctant.adversarial.margins import Margins, Toward
from reluctant.adversarial.sources import Known, Queried, Source
from reluctant.domains import Domain
from reluctant.errors import InvalidInput
from reluctant.geometry import DistanceNoise
from reluctant.geometry.gradients import gradients
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Oracle
from reluctant.oracles.opening import as_opened

__all__ = ["LocalLinearity", "local_linearity", "predicted_change"]

Slopes: TypeAlias = Callable[[FloatArray], FloatArray]  # points (n, d) to slopes (n, k) of one margin

RADII = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
HALF = 0.5  # change of gradient that ends the neighbourhood in which one step can be trusted


def predicted_change(hidden_layers: int, radius: ArrayLike) -> FloatArray:
    """√(2ℓr/π): the relative change of gradient in a random network, in a random direction, for small r."""
    return np.sqrt(2 * hidden_layers * np.asarray(radius, float) / np.pi)


@dataclass(frozen=True)
class LocalLinearity:
    """Relative changes of gradient, ‖∇f(y) - ∇f(x)‖ / ‖∇f(x)‖, at each radius.

    random: root mean square over random directions. along: down the gradient, toward the boundary.
    """

    radii: FloatArray
    random: FloatArray
    along: FloatArray
    queries: int = 0

    @property
    def linear_radius(self) -> float:
        """Radius at which the gradient has changed by half in a random direction; inf if it never does here."""
        if not (self.random >= HALF).any():
            return float("inf")
        last = int(np.argmax(self.random >= HALF))
        if last == 0:
            return float(self.radii[0])
        (low, high), (a, b) = np.log(self.radii[last - 1 : last + 1]), self.random[last - 1 : last + 1]
        return float(np.exp(low + (high - low) * (HALF - a) / (b - a)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "radii": self.radii.tolist(),
            "random": self.random.tolist(),
            "along": self.along.tolist(),
            "linear radius": self.linear_radius,
            "queries": self.queries,
        }


def local_linearity(
    target: Oracle | ReLUNetwork,
    x: ArrayLike,
    *,
    radii: Sequence[float] = RADII,
    directions: int = 4,
    probes: int | None = 64,
    rng: Rng = 0,
) -> LocalLinearity:
    """Measure how the gradient of the sign (or of the winning margin) changes around x.

    Arguments:
        target: a target to ask, or a network, which costs nothing.
        x: the input (d,), not the origin.
        radii: distances, of the norm of x.
        directions: random directions in which each radius is looked at.
        probes: random directions along which gradients are compared by questions; None for all d. With 64 the
            ratio is known to about a tenth. Networks are compared exactly.
        rng: seed of all random choices.

    Cost by questions: 14 + (1 + radii × (directions + 1)) × (probes + 2) rows, and d + 2 for the gradient itself.
    """
    if not len(radii) or min(radii) <= 0 or directions < 1:
        raise InvalidInput.about("radii, directions", got=(tuple(radii), directions), expected="numbers above 0")
    generator, sizes = as_generator(rng), np.asarray(radii, float)
    if isinstance(target, ReLUNetwork):
        start = checked_input(x, target.dim, Domain())
        toward = _toward(Known.at(target, start, Domain()), start)
        nearby = _Nearby.draw(start, toward, sizes, directions, generator)
        return nearby.compare(_known_slopes(target, toward), Domain())
    opened = as_opened(target)
    start = checked_input(x, opened.dim, opened.facts.domain)
    opened.begin("linearity", rng)
    before = opened.queries
    source = Queried.at(opened, start, None, generator)
    toward = _toward(source, start)
    nearby = _Nearby.draw(start, toward, sizes, directions, generator)
    found = nearby.compare(_asked_slopes(source, toward, probes), opened.facts.domain)
    return replace(found, queries=opened.queries - before)


def _toward(source: Source, start: FloatArray) -> Toward:
    values = source.ask(start[None])[0]
    margins, gradient = Margins.at(values), source.gradient(start)
    toward = margins.toward_boundary(values, gradient, np.zeros_like(start), source.slope_noise)
    if toward is None:
        raise InvalidInput.about("x", got="an input around which the target is flat or undecided", expected="another")
    return toward


def _known_slopes(network: ReLUNetwork, toward: Toward) -> Slopes:
    return lambda points: np.einsum("m,nmd->nd", toward.form, network.gradients(points))


def _asked_slopes(source: Queried, toward: Toward, probes: int | None) -> Slopes:
    """Slopes along random orthonormal directions, scaled so that their norm is that of the gradient on average."""
    dim = source.oracle.dim
    basis = None if probes is None or probes >= dim else _orthonormal(probes, dim, source.rng)
    scale = 1.0 if basis is None else float(np.sqrt(dim / len(basis)))
    noise = DistanceNoise(source.sd, 0.0)

    def slopes(points: FloatArray) -> FloatArray:
        at, steps = source.inside(points), np.full(len(points), source.step)
        with source.oracle.stage("gradients"):
            found = gradients(source.oracle.query, at, basis, steps, noise, source.rng, domain=source.domain, rounds=1)
        return np.asarray(scale * np.einsum("m,nmk->nk", toward.form, found.slope))

    return slopes


def _orthonormal(n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    return np.asarray(np.linalg.qr(rng.standard_normal((dim, n)))[0].T)


@dataclass(frozen=True)
class _Nearby:
    """The points at which gradients are compared: radii × (random directions, then the one to the boundary)."""

    start: FloatArray
    radii: FloatArray
    directions: FloatArray
    slope: float  # norm of the gradient at the start

    @classmethod
    def draw(
        cls, start: FloatArray, toward: Toward, radii: FloatArray, count: int, rng: np.random.Generator
    ) -> _Nearby:
        directions = rng.standard_normal((count, len(start)))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        down = toward.change / np.linalg.norm(toward.change)
        every = np.concatenate([directions, down[None]])
        return cls(start, radii, every, float(np.linalg.norm(toward.slope)))

    def compare(self, slopes: Slopes, domain: Domain) -> LocalLinearity:
        lengths = self.radii * np.linalg.norm(self.start)
        points = self.start + lengths[:, None, None] * self.directions
        every = np.concatenate([self.start[None], points.reshape(-1, len(self.start))])
        found = slopes(np.clip(every, domain.low, domain.high))
        change = np.linalg.norm(found[1:] - found[0], axis=1) / self.slope
        by_radius = change.reshape(len(self.radii), -1)
        return LocalLinearity(self.radii, np.sqrt((by_radius[:, :-1] ** 2).mean(axis=1)), by_radius[:, -1])

"""`local_linearity`: how much the gradient changes with the distance from an input.

In a random network with ℓ hidden layers the relative change at radius r (of the input's norm) in a random
direction is about √(2ℓr/π): each layer's neurons change side with probability about r/π. Along the gradient it is
larger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, Unpack

import numpy as np
from numpy.typing import ArrayLike

from reluctant.adversarial.decision import Margins, Toward
from reluctant.adversarial.flip_search import LEAST_SLOPE
from reluctant.adversarial.gradient_source import GradientSource, KnownNetwork, QueriedTarget, checked_input, walk
from reluctant.domains import Domain
from reluctant.errors import InvalidInput, NoGradient
from reluctant.interface.noise import MEDIAN_OF_ABS_NORMAL
from reluctant.messages import Diagnosis
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Counting
from reluctant.oracles.keywords import InputsKeywords
from reluctant.oracles.open import Target, in_units, opened_target

# points (n, d) to slopes (n, k) of one margin, and the norm of what noise puts on a difference of two of them
MarginSlopes: TypeAlias = Callable[[FloatArray], tuple[FloatArray, float]]

RADII = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
HALF_CHANGE = 0.5  # change of gradient that ends the neighbourhood in which one step can be trusted


def predicted_change(hidden_layers: int, radius: ArrayLike) -> FloatArray:
    """√(2ℓr/π): the relative change of gradient in a random network, in a random direction, for small r."""
    return np.sqrt(2 * hidden_layers * np.asarray(radius, float) / np.pi)


@dataclass(frozen=True)
class LocalLinearity:
    """Relative changes of gradient, ‖∇f(y) - ∇f(x)‖ / ‖∇f(x)‖, at each radius.

    radii: distances as they were reached; a bounded domain may have cut those that were asked for.
    random: root mean square over random directions. along: down the gradient, toward the boundary.
    floor: the change that the target's noise alone would give; the others exclude it.
    """

    radii: FloatArray
    random: FloatArray
    along: FloatArray
    floor: float = 0.0
    queries: int = 0

    @property
    def linear_radius(self) -> float:
        """Radius at which the gradient has changed by half in a random direction; inf if it never does here."""
        return _half_way(self.radii, self.random)

    @property
    def linear_radius_along(self) -> float:
        """The distance along the gradient at which it has changed by half."""
        return _half_way(self.radii, self.along)

    def __str__(self) -> str:
        radius, random, along = (float(each[-1]) for each in (self.radii, self.random, self.along))
        return str(Diagnosis("local-linearity", {"radius": radius, "random": random, "along": along}))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; None means infinite."""
        radii = {"linear radius": self.linear_radius, "linear radius along": self.linear_radius_along}
        return {
            "radii": self.radii.tolist(),
            "random": self.random.tolist(),
            "along": self.along.tolist(),
            "floor": self.floor,
            **{name: radius if np.isfinite(radius) else None for name, radius in radii.items()},
            "queries": self.queries,
        }


def _half_way(radii: FloatArray, change: FloatArray) -> float:
    beyond = np.flatnonzero(change >= HALF_CHANGE)
    if not len(beyond):
        return float("inf")
    last = int(beyond[0])
    if last == 0:
        return float(radii[0])
    (low, high), (a, b) = np.log(radii[last - 1 : last + 1]), change[last - 1 : last + 1]
    return float(np.exp(low + (high - low) * (HALF_CHANGE - a) / (b - a)))


def local_linearity(
    target: Target,
    x: ArrayLike,
    *,
    radii: Sequence[float] = RADII,
    directions: int = 4,
    probes: int | None = 64,
    rng: Rng = 0,
    **opening: Unpack[InputsKeywords],
) -> LocalLinearity:
    """Measure how the gradient of the sign (or of the winning margin) changes around x.

    Arguments:
        target: an oracle, or anything that `open_oracle` takes; a network costs nothing.
        x: the input (d,), not the origin.
        radii: distances, of the norm of x, from short to long.
        directions: random directions at each radius.
        probes: random directions along which gradients are compared by questions; None for all d. With 64 the
            ratio is known to about a tenth. Networks are compared exactly.
        rng: seed of all random choices.
        opening: keywords of `open_oracle`, for this call; with any a network is asked like other targets.

    Cost by questions: 14 + (1 + radii × (directions + 1)) × (probes + 2) rows, and d + 2 for the gradient itself:
    1,730 + d by default.
    """
    sizes = np.atleast_1d(np.asarray(radii, dtype=np.float64))
    if sizes.ndim != 1 or not len(sizes) or not (np.isfinite(sizes) & (sizes > 0)).all() or (np.diff(sizes) <= 0).any():
        raise InvalidInput.about("radii", got=radii, expected="numbers above 0, from short to long")
    for name, value in (("directions", directions), ("probes", 1 if probes is None else probes)):
        if value < 1:
            raise InvalidInput.about(name, got=value, expected="at least 1")
    generator = as_generator(rng)
    if isinstance(target, ReLUNetwork) and not opening:
        start = _off_origin(checked_input(x, target.dim, Domain()))
        toward = _toward(KnownNetwork.at(target, start, Domain()), start, reference=False)

        def slopes(points: FloatArray) -> tuple[FloatArray, float]:
            return np.einsum("m,nmd->nd", toward.form, target.gradients(points)), 0.0

        return _compare(slopes, start, toward, sizes, _directions(toward, directions, generator), Domain())
    with opened_target(target, opening) as opened:
        scaled, units = in_units(opened)
        if units is None or units.are_plain:
            return _asked_linearity(opened, x, sizes, directions, probes, rng, generator)
        start = units.reduced(checked_input(x, opened.dim, opened.facts.domain))
        return _asked_linearity(scaled, start, sizes, directions, probes, rng, generator)


def _asked_linearity(
    opened: Counting,
    x: ArrayLike,
    sizes: FloatArray,
    directions: int,
    probes: int | None,
    rng: Rng,
    generator: np.random.Generator,
) -> LocalLinearity:
    start = _off_origin(checked_input(x, opened.dim, opened.facts.domain))
    opened.begin("linearity", rng)
    before = opened.queries
    source = QueriedTarget.at(opened, start, None, generator)
    toward = _toward(source, start, opened.facts.reference)
    drawn = _directions(toward, directions, generator)
    found = _compare(_asked_slopes(source, toward, probes), start, toward, sizes, drawn, opened.facts.domain)
    return replace(found, queries=opened.queries - before)


def _off_origin(start: FloatArray) -> FloatArray:
    if not start.any():
        raise InvalidInput.about("x", got="the origin", expected="another input: radii are in units of its norm")
    return start


def _toward(source: GradientSource, start: FloatArray, reference: bool) -> Toward:
    values = source.ask(start[None])[0]
    margins, gradient = Margins.at(values, reference), source.gradient(start)
    toward = margins.toward_boundary(values, gradient, np.zeros_like(start), LEAST_SLOPE * source.slope_noise)
    if toward is None:
        got = "an input around which the target is flat or undecided, as far as its digits tell"
        raise NoGradient.about("x", got=got, expected="another")
    return toward


def _asked_slopes(source: QueriedTarget, toward: Toward, probes: int | None) -> MarginSlopes:
    """Slopes along random orthonormal directions, scaled so that their norm is that of the gradient on average."""
    dim = source.oracle.dim
    basis = None
    if probes is not None and probes < dim:
        basis = np.asarray(np.linalg.qr(source.rng.standard_normal((dim, probes)))[0].T)
    scale = 1.0 if basis is None else float(np.sqrt(dim / len(basis)))
    weight = scale * float(np.linalg.norm(toward.form) * np.sqrt(2))

    def slopes(points: FloatArray) -> tuple[FloatArray, float]:
        found, off = source.slopes(source.inside(points), basis)
        source.sd = max(source.sd, float(np.median(off)) / MEDIAN_OF_ABS_NORMAL)
        noise = weight * source.slope_noise_of(found.shape[2])
        return scale * np.einsum("m,nmk->nk", toward.form, found), noise

    return slopes


def _directions(toward: Toward, count: int, rng: np.random.Generator) -> FloatArray:
    """Random directions, then the one to the boundary (count + 1, d)."""
    directions = rng.standard_normal((count, len(toward.change)))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.concatenate([directions, toward.change[None] / np.linalg.norm(toward.change)])


def _compare(
    slopes: MarginSlopes, start: FloatArray, toward: Toward, radii: FloatArray, directions: FloatArray, domain: Domain
) -> LocalLinearity:
    """Gradients at these radii along each direction, beside that at the start."""
    size = float(np.linalg.norm(toward.slope))
    rays = [walk(start, direction, radii * np.linalg.norm(start), domain) for direction in directions]
    points = np.concatenate([start[None], *rays])
    found, noise = slopes(points)
    change = np.linalg.norm(found[1:] - found[0], axis=1) / size
    squares = np.maximum(change**2 - (noise / size) ** 2, 0.0).reshape(len(rays), -1)
    reached = np.linalg.norm(points[1:] - start, axis=1).reshape(len(rays), -1).mean(axis=0)
    random, along = np.sqrt(squares[:-1].mean(axis=0)), np.sqrt(squares[-1])
    return LocalLinearity(reached / np.linalg.norm(start), random, along, noise / size)

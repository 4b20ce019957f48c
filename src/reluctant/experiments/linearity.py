"""How nearly linear random networks are around an input, and what a bottleneck changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluctant.adversarial import local_linearity, predicted_change
from reluctant.adversarial.decomposition import gradient_terms
from reluctant.adversarial.random_networks import random_network
from reluctant.experiments.experiment import Experiment
from reluctant.experiments.finding import Check, Finding
from reluctant.experiments.papers import ADVERSARIAL
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.report.words import size

__all__ = ["BOTTLENECKS", "LAW", "bottleneck_study", "linearity_law"]

DIM = 1000
HIDDEN = (1, 2, 3, 4, 5)
RADII = (1e-2, 3e-2, 1e-1)
NETWORKS = 48
DIRECTIONS = 16
CLOSE = 0.1  # of the law, with so many networks; fewer leave more room
IDENTITY = 1e-13  # relative error of the decomposition

WIDE, NARROW = 1000, 20
BOTTLENECK_RADII = (3e-3, 1e-2, 3e-2)
BOTTLENECK_NETWORKS = 40
RANDOM, ALONG = 2, 3  # columns
MORE = (1.3, 10.0)  # times as much as without a bottleneck, along the gradient


def linearity_law(
    *,
    dim: int = DIM,
    hidden: tuple[int, ...] = HIDDEN,
    radii: tuple[float, ...] = RADII,
    networks: int = NETWORKS,
    rng: Rng = 0,
) -> Finding:
    """Relative change of gradient in random directions against √(2ℓr/π), and the decomposition of one change."""
    generator = as_generator(rng)
    rows, identity = [], 0.0
    for layers in hidden:
        found, errors = _study((*[dim] * (layers + 1), 1), radii, networks, generator)
        identity = max(identity, errors)
        random, along = np.sqrt(np.mean(found, axis=0))
        rows += list(zip([layers] * len(radii), radii, random, predicted_change(layers, radii), along, strict=True))
    table = tuple((k, r, float(a), float(b), float(a / b), float(c)) for k, r, a, b, c in rows)
    small = [row for row in table if row[1] <= RADII[1]]
    close = CLOSE * float(np.sqrt(NETWORKS / networks))
    ratios = [row[4] for row in small]
    return Finding(
        name="linearity-law",
        title=f"Relative change of the gradient at radius r, {dim} inputs, all widths {dim}, {networks} networks each",
        claim="Near an input the gradient of a random network hardly changes; the change is a sum with one term a "
        "hidden layer (GD-DECOMP), and Lemma 2.8 bounds it.",
        measured=f"In a random direction, with ℓ hidden layers, {min(ratios):.2f} to {max(ratios):.2f} times √(2ℓr/π) "
        f"up to r = {RADII[1]:g}; the terms of GD-DECOMP add up to the change within {size(identity, 1)}.",
        columns=("hidden", "r", "random", "√(2ℓr/π)", "ratio", "along the gradient"),
        rows=table,
        draw=lambda figure: _draw_law(figure, table, hidden),
        checks=(
            *(Check(f"ratio, {k} hidden, r = {r:g}", ratio, 1 - close, 1 + close) for k, r, _, _, ratio, _ in small),
            Check("error of the sum of GD-DECOMP's terms", identity, 0, IDENTITY),
        ),
        notes=("The law is the first order in r: at r = 0.1 several layers have used up part of it.",),
    )


def _study(
    widths: tuple[int, ...], radii: tuple[float, ...], networks: int, rng: np.random.Generator
) -> tuple[list[FloatArray], float]:
    """Squared changes (2, radii) of each network, random and along, and the worst error of the decomposition."""
    found, identity = [], 0.0
    for _ in range(networks):
        network, x = random_network(widths, rng), rng.standard_normal(widths[0])
        found.append(_squares(network, x, radii, rng))
        identity = max(identity, _identity_error(network, x, radii[-1], rng))
    return found, identity


def _squares(network: ReLUNetwork, x: FloatArray, radii: tuple[float, ...], rng: np.random.Generator) -> FloatArray:
    found = local_linearity(network, x, radii=radii, directions=DIRECTIONS, rng=rng)
    return np.array([found.random**2, found.along**2])


def _identity_error(network: ReLUNetwork, x: FloatArray, radius: float, rng: np.random.Generator) -> float:
    y = x + radius * rng.standard_normal(len(x))
    at_x, at_y = network.gradients(np.array([x, y]))
    error = gradient_terms(network, x, y).sum(axis=0) - (at_x - at_y)
    return float(np.linalg.norm(error) / np.linalg.norm(at_x))


def _draw_law(figure: Any, table: tuple[tuple[Any, ...], ...], hidden: tuple[int, ...]) -> None:
    axes = figure.add_subplot()
    for layers in hidden:
        _, r, measured, law, *_ = np.array([row for row in table if row[0] == layers]).T
        (line,) = axes.loglog(r, measured, "o", label=f"{layers} hidden")
        axes.loglog(r, law, "-", color=line.get_color(), alpha=0.5)
    axes.set_xlabel("radius r, of the input's norm")
    axes.set_ylabel("relative change of gradient")
    axes.legend(frameon=False)


def bottleneck_study(
    *, wide: int = WIDE, narrow: int = NARROW, networks: int = BOTTLENECK_NETWORKS, rng: Rng = 0
) -> Finding:
    """Three hidden layers, one of them narrow or none: where the gradient changes most."""
    generator = as_generator(rng)
    shapes = {
        "none": (wide, wide, wide),
        "first": (narrow, wide, wide),
        "middle": (wide, narrow, wide),
        "last": (wide, wide, narrow),
    }
    rows = []
    for place, hidden in shapes.items():
        found, _ = _study((wide, *hidden, 1), BOTTLENECK_RADII, networks, generator)
        random, along = np.sqrt(np.mean(found, axis=0))
        errors = np.std(np.sqrt(found), axis=0)[1] / np.sqrt(networks)
        rows += list(zip([place] * len(random), BOTTLENECK_RADII, random, along, errors, strict=True))
    table = tuple((place, r, float(a), float(b), float(c)) for place, r, a, b, c in rows)
    checks = (_along_ratio(table, "first"), _along_ratio(table, "middle"))
    return Finding(
        name="bottlenecks",
        title=f"Relative change of the gradient, {wide} inputs, three hidden layers of {wide}, one only {narrow} wide",
        claim="The narrowest layer so far sets how far a ball around the input can reach (NN-DECOMP).",
        measured=f"Along the gradient a bottleneck makes the change {checks[0].value:.1f} (first layer) and "
        f"{checks[1].value:.1f} times (middle) as large at r = {BOTTLENECK_RADII[1]:g}, in random directions "
        f"{_over_none(table, 'first', RANDOM):.1f} and {_over_none(table, 'middle', RANDOM):.1f} times.",
        columns=("bottleneck", "r", "random", "along the gradient", "±"),
        rows=table,
        draw=lambda figure: _draw_bottlenecks(figure, table),
        checks=checks,
        notes=("±: standard error of the mean along the gradient.",),
    )


def _along_ratio(table: tuple[tuple[str, float, float, float, float], ...], place: str) -> Check:
    name = f"along the gradient, bottleneck {place} over none, r = {BOTTLENECK_RADII[1]:g}"
    return Check(name, _over_none(table, place, ALONG), *MORE)


def _over_none(table: tuple[tuple[str, float, float, float, float], ...], place: str, column: int) -> float:
    change = {row[0]: float(row[column]) for row in table if row[1] == BOTTLENECK_RADII[1]}
    return change[place] / change["none"]


def _draw_bottlenecks(figure: Any, table: tuple[tuple[str, float, float, float, float], ...]) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    for place in dict.fromkeys(row[0] for row in table):
        r, random, along, _ = np.array([row[1:] for row in table if row[0] == place]).T
        left.loglog(r, random, "o-", label=place)
        right.loglog(r, along, "o-", label=place)
    left.set_title("random directions")
    right.set_title("along the gradient")
    left.set_ylabel("relative change of gradient")
    for axes in (left, right):
        axes.set_xlabel("radius r")
        axes.set_xticks(BOTTLENECK_RADII, [f"{r:g}" for r in BOTTLENECK_RADII], minor=False)
        axes.set_xticks([], minor=True)
    right.legend(frameon=False, title="bottleneck")


LAW = Experiment("linearity-law", ADVERSARIAL, "Lemma 2.8 and GD-DECOMP", linearity_law, quick={"networks": 16})
BOTTLENECKS = Experiment("bottlenecks", ADVERSARIAL, "Section 2.3, NN-DECOMP", bottleneck_study, quick={"networks": 16})

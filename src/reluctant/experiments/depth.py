"""Section 3: deep random networks are nearly constant, and what the width has to do with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from reluctant.adversarial.sphere import mean_angle, next_angle, sphere_points
from reluctant.experiments.experiment import Experiment
from reluctant.experiments.finding import Check, Finding
from reluctant.experiments.papers import ADVERSARIAL
from reluctant.numerics import Rng, as_generator

__all__ = ["DEPTH", "depth_study"]

DIM, POINTS = 10, 64
WIDTHS = (50, 100, 200, 400)
DEPTHS = (1, 3, 10, 30, 100, 300, 1000)
SHALLOW_NETWORKS = 56  # more, where angles are compared with the recursion
WIDE = 10  # times the depth: widths at which they are
CLOSE = 0.1  # of the recursion
FLOOR = (2.0, 5.0)  # times √width: spread of the values of the deepest networks


def depth_study(
    *,
    widths: tuple[int, ...] = WIDTHS,
    depths: tuple[int, ...] = DEPTHS,
    networks: int = 8,
    rng: Rng = 0,
) -> Finding:
    """Angles between the images of random points, share of networks with one sign, and how far values differ."""
    generator = as_generator(rng)
    rows = [row for width in widths for row in _rows(width, depths, networks, generator)]
    table = tuple(rows)
    return Finding(
        name="depth",
        title=f"{POINTS} points of a sphere in {DIM} dimensions through random networks, {networks} each",
        claim="Angles between images of inputs shrink layer by layer (Lemma 3.2), and a network of depth d³ or more is "
        "nearly constant on the sphere.",
        measured=_measured(table),
        columns=("width", "hidden", "mean angle", "recursion", "one sign", "ratio", "spread", "· √width"),
        rows=table,
        draw=lambda figure: _draw(figure, table, widths),
        checks=_checks(table),
        notes=(
            "The theorem asks for a width of (depth · d)^20, which no machine holds. At real widths the values stop "
            "differing less at a floor of a few times 1/√width: more depth makes the sign constant, not the value.",
            "Ratio: the theorem's, the largest |f(x) - f(y)| / |f(x)|. Spread: standard deviation over mean. Medians.",
        ),
    )


def _rows(width: int, depths: tuple[int, ...], networks: int, rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    seen = [_one(width, depths, rng) for _ in range(networks)]
    angles, signs, spreads, ratios = (np.array([run[i] for run in seen]) for i in range(4))
    shallow = tuple(depth for depth in depths if WIDE * depth <= width)
    more = np.array([_one(width, shallow, rng)[0] for _ in range(SHALLOW_NETWORKS)]) if shallow else angles[:, :0]
    # A wide layer takes each angle of its own, so the mean of the recursion is taken, not that of the mean angle.
    law = _recursion(depths, rng)
    for i, depth in enumerate(depths):
        angle = float(np.concatenate([angles[:, i], more[:, i] if i < len(shallow) else []]).mean())
        spread, ratio = float(np.median(spreads[:, i])), float(np.median(ratios[:, i]))
        yield (width, depth, angle, law[i], float(signs[:, i].mean()), ratio, spread, spread * width**0.5)


def _one(
    width: int, depths: tuple[int, ...], rng: np.random.Generator
) -> tuple[list[float], list[bool], list[float], list[float]]:
    """One random network, layer after layer; at each depth an output layer of its own."""
    hidden = sphere_points(POINTS, DIM, rng)
    angles, signs, spreads, ratios = [], [], [], []
    for layer in range(1, max(depths) + 1):
        weights = rng.standard_normal((width, hidden.shape[1])) / np.sqrt(hidden.shape[1])
        hidden = np.maximum(hidden @ weights.T, 0)
        hidden *= np.sqrt(width) / np.linalg.norm(hidden, axis=1).mean()  # scale does not matter, underflow does
        if layer in depths:
            values = hidden @ rng.standard_normal(width) / np.sqrt(width)
            angles.append(mean_angle(hidden))
            signs.append(bool((values > 0).all() or (values < 0).all()))
            spreads.append(float(values.std() / abs(values.mean())))
            farthest = np.maximum(values - values.min(), values.max() - values)
            ratios.append(float((farthest / np.abs(values)).max()))
    return angles, signs, spreads, ratios


def _recursion(depths: tuple[int, ...], rng: np.random.Generator) -> list[float]:
    points = sphere_points(POINTS, DIM, rng)
    angles = np.arccos(np.clip(points @ points.T, -1, 1)[np.triu_indices(POINTS, 1)])
    means = []
    for layer in range(1, max(depths) + 1):
        angles = next_angle(angles)
        if layer in depths:
            means.append(float(angles.mean()))
    return means


def _checks(table: tuple[tuple[Any, ...], ...]) -> tuple[Check, ...]:
    shallow = [row for row in table if WIDE * row[1] <= row[0]]
    last = max(row[1] for row in table)
    return (
        *(
            Check(f"angle over recursion, width {width}, {depth} layers", angle / law, 1 - CLOSE, 1 + CLOSE)
            for width, depth, angle, law, *_ in shallow
        ),
        *(Check(f"floor · √width, width {row[0]}", row[7], *FLOOR) for row in table if row[1] == last),
        *(Check(f"one sign, width {row[0]}", row[4], 1, 1) for row in table if row[1] == last),
    )


def _measured(table: tuple[tuple[Any, ...], ...]) -> str:
    depth = max(row[1] for row in table)
    deepest = [row for row in table if row[1] == depth]
    one_sign, floors = float(np.mean([row[4] for row in deepest])), [row[7] for row in deepest]
    return (
        f"After {depth} layers {one_sign:.0%} of the networks have one sign on all points; their values still differ "
        f"by {min(floors):.1f} to {max(floors):.1f} over √width."
    )


def _draw(figure: Any, table: tuple[tuple[Any, ...], ...], widths: tuple[int, ...]) -> None:
    left, right = figure.subplots(1, 2)
    for width in widths:
        _, depth, angle, law, _, _, spread, _ = np.array([row for row in table if row[0] == width]).T
        (line,) = left.loglog(depth, angle, "o", label=f"width {width}")
        right.loglog(depth, spread, "o-", color=line.get_color(), label=f"width {width}")
    left.loglog(depth, law, "k:", label="recursion")
    left.set_ylabel("mean angle")
    right.set_ylabel("spread of values")
    for axes in (left, right):
        axes.set_xlabel("hidden layers")
    left.legend(frameon=False)


DEPTH = Experiment(
    "depth", ADVERSARIAL, "Lemma 3.2 and Theorem 3.1", depth_study,
    quick={"widths": (50, 100, 200), "depths": (1, 3, 10, 30, 100, 300, 1000), "networks": 6},
)  # fmt: skip

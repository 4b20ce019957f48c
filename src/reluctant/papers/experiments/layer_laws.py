"""Laws of random layers: local linearity, bottlenecks, the smallest hiding change, and depth.

All are from the paper on adversarial examples: Lemma 2.8 with GD-DECOMP and NN-DECOMP for linearity and bottlenecks,
Figure 1 for the smallest change that hides an input from a layer, and Section 3 for why deep random networks are nearly
constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from reluctant.adversarial import local_linearity, predicted_change
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.papers.experiments.experiment import ADVERSARIAL_PAPER, Check, Experiment, Finding, label_axes
from reluctant.papers.random_networks import (
    gradient_terms,
    mean_angle,
    minimal_perturbation,
    next_angle,
    perturbation_law,
    random_network,
    sphere_points,
)
from reluctant.report.text import size

LAW_DIM = 1000
LAW_HIDDEN = (1, 2, 3, 4, 5)
LAW_RADII = (1e-2, 3e-2, 1e-1)
LAW_NETWORKS = 48
LAW_DIRECTIONS = 16
CLOSE_TO_LAW = 0.1  # of the law, with so many networks; fewer leave more room
MOST_IDENTITY_ERROR = 1e-13  # relative error of the decomposition

WIDE_LAYER, NARROW_LAYER = 1000, 20
BOTTLENECK_RADII = (3e-3, 1e-2, 3e-2)
BOTTLENECK_NETWORKS = 40
RANDOM_COLUMN, ALONG_COLUMN = 2, 3  # columns
MORE_ALONG = (1.3, 10.0)  # times as much as without a bottleneck, along the gradient


def linearity_law(
    *,
    dim: int = LAW_DIM,
    hidden: tuple[int, ...] = LAW_HIDDEN,
    radii: tuple[float, ...] = LAW_RADII,
    networks: int = LAW_NETWORKS,
    rng: Rng = 0,
) -> Finding:
    """Relative change of gradient in random directions against √(2ℓr/π), and the decomposition of one change."""
    generator = as_generator(rng)
    rows, identity = [], 0.0
    for layers in hidden:
        found, errors = _gradient_changes((*[dim] * (layers + 1), 1), radii, networks, generator)
        identity = max(identity, errors)
        random, along = np.sqrt(np.mean(found, axis=0))
        rows += list(zip([layers] * len(radii), radii, random, predicted_change(layers, radii), along, strict=True))
    table = tuple((k, r, float(a), float(b), float(a / b), float(c)) for k, r, a, b, c in rows)
    small = [row for row in table if row[1] <= LAW_RADII[1]]
    close = CLOSE_TO_LAW * float(np.sqrt(LAW_NETWORKS / networks))
    ratios = [row[4] for row in small]
    return Finding(
        title=f"Relative change of the gradient at radius r, {dim} inputs, all widths {dim}, {networks} networks each",
        claim="Near an input the gradient of a random network hardly changes; the change is a sum with one term a "
        "hidden layer (GD-DECOMP), and Lemma 2.8 bounds it.",
        measured=f"In a random direction, with ℓ hidden layers, {min(ratios):.2f} to {max(ratios):.2f} times √(2ℓr/π) "
        f"up to r = {LAW_RADII[1]:g}; the terms of GD-DECOMP add up to the change within {size(identity, 1)}.",
        columns=("hidden", "r", "random", "√(2ℓr/π)", "ratio", "along the gradient"),
        rows=table,
        draw=lambda figure: _draw_law(figure, table, hidden),
        checks=(
            *(Check(f"ratio, {k} hidden, r = {r:g}", ratio, 1 - close, 1 + close) for k, r, _, _, ratio, _ in small),
            Check("error of the sum of GD-DECOMP's terms", identity, 0, MOST_IDENTITY_ERROR),
        ),
        notes=("The law is the first order in r: at r = 0.1 several layers have used up part of it.",),
    )


def _gradient_changes(
    widths: tuple[int, ...], radii: tuple[float, ...], networks: int, rng: np.random.Generator
) -> tuple[list[FloatArray], float]:
    """Squared changes (2, radii) of each network, random and along, and the worst error of the decomposition."""
    found, identity = [], 0.0
    for _ in range(networks):
        network, x = random_network(widths, rng), rng.standard_normal(widths[0])
        around = local_linearity(network, x, radii=radii, directions=LAW_DIRECTIONS, rng=rng)
        found.append(np.array([around.random**2, around.along**2]))
        identity = max(identity, _identity_error(network, x, radii[-1], rng))
    return found, identity


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
    label_axes(axes, "radius r, of the input's norm", "relative change of gradient")


def bottleneck_study(
    *, wide: int = WIDE_LAYER, narrow: int = NARROW_LAYER, networks: int = BOTTLENECK_NETWORKS, rng: Rng = 0
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
        found, _ = _gradient_changes((wide, *hidden, 1), BOTTLENECK_RADII, networks, generator)
        random, along = np.sqrt(np.mean(found, axis=0))
        errors = np.std(np.sqrt(found), axis=0)[1] / np.sqrt(networks)
        rows += list(zip([place] * len(random), BOTTLENECK_RADII, random, along, errors, strict=True))
    table = tuple((place, r, float(a), float(b), float(c)) for place, r, a, b, c in rows)
    checks = (_along_ratio(table, "first"), _along_ratio(table, "middle"))
    return Finding(
        title=f"Relative change of the gradient, {wide} inputs, three hidden layers of {wide}, one only {narrow} wide",
        claim="The narrowest layer so far sets how far a ball around the input can reach (NN-DECOMP).",
        measured=f"Along the gradient a bottleneck makes the change {checks[0].value:.1f} (first layer) and "
        f"{checks[1].value:.1f} times (middle) as large at r = {BOTTLENECK_RADII[1]:g}, in random directions "
        f"{_over_none(table, 'first', RANDOM_COLUMN):.1f} and {_over_none(table, 'middle', RANDOM_COLUMN):.1f} times.",
        columns=("bottleneck", "r", "random", "along the gradient", "±"),
        rows=table,
        draw=lambda figure: _draw_bottlenecks(figure, table),
        checks=checks,
        notes=("±: standard error of the mean along the gradient.",),
    )


def _along_ratio(table: tuple[tuple[str, float, float, float, float], ...], place: str) -> Check:
    name = f"along the gradient, bottleneck {place} over none, r = {BOTTLENECK_RADII[1]:g}"
    return Check(name, _over_none(table, place, ALONG_COLUMN), *MORE_ALONG)


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


LAW = Experiment("linearity-law", ADVERSARIAL_PAPER, "Lemma 2.8 and GD-DECOMP", linearity_law, quick={"networks": 16})
BOTTLENECKS = Experiment(
    "bottlenecks", ADVERSARIAL_PAPER, "Section 2.3, NN-DECOMP", bottleneck_study, quick={"networks": 16}
)

PERTURBATION_DIM = 10_000
PERTURBATION_WIDTHS = (10, 50, 100, 500, 1000, 5000, 10_000)
PERTURBATION_RUNS = 10
LARGEST_Z = 3.0  # standard errors

PerturbationRow = tuple[int, float, float, float, float | None]


def smallest_perturbation(
    *,
    dim: int = PERTURBATION_DIM,
    widths: tuple[int, ...] = PERTURBATION_WIDTHS,
    runs: int = PERTURBATION_RUNS,
    rng: Rng = 0,
) -> Finding:
    """‖W⁺Wx‖ / ‖x‖ against the number of neurons, beside √(k/d) and the exact law of a run."""
    generator = as_generator(rng)
    rows = [_perturbation_row(k, dim, runs, generator) for k in widths]
    drawn = {k: z for k, *_, z in rows if z is not None}
    return Finding(
        title=f"Smallest change that hides an input of {dim} numbers from k random neurons, mean of {runs} runs",
        claim="The smallest change that hides an input from k random neurons is about √(k/d) of its norm.",
        measured=f"Means {min(row[1] for row in rows):.3f} to {max(row[1] for row in rows):.3f}, within "
        f"{max(map(abs, drawn.values()), default=0.0):.1f} standard errors of the law at every k below d: the square "
        "follows Beta(k/2, (d - k)/2).",
        columns=("k", "mean", "√(k/d)", "law", "z"),
        rows=tuple(rows),
        draw=lambda figure: _draw_perturbation(figure, rows),
        checks=tuple(Check(f"z at k = {k}", z, -LARGEST_Z, LARGEST_Z) for k, z in drawn.items()),
        notes=("As many neurons as inputs see all of it: 1 by algebra, nothing is drawn.",) if dim in widths else (),
    )


def _perturbation_row(k: int, dim: int, runs: int, rng: np.random.Generator) -> PerturbationRow:
    """k, mean, rule, mean of the law, and how many standard errors apart; None where nothing is random."""
    law = perturbation_law(k, dim)
    if k == dim:
        return k, 1.0, 1.0, 1.0, None
    mean = float(np.mean([_perturbation_ratio(k, dim, rng) for _ in range(runs)]))
    return k, mean, float(np.sqrt(k / dim)), law.mean, (mean - law.mean) / law.sd * float(np.sqrt(runs))


def _perturbation_ratio(k: int, dim: int, rng: np.random.Generator) -> float:
    """One run. float32 halves the memory and is far more exact than the spread of a run."""
    weights = rng.standard_normal((k, dim), dtype=np.float32)
    x = rng.standard_normal(dim, dtype=np.float32)
    return minimal_perturbation(weights, x) / float(np.linalg.norm(x))


def _draw_perturbation(figure: Any, rows: list[PerturbationRow]) -> None:
    k, mean, rule = np.array([row[:3] for row in rows]).T
    axes = figure.add_subplot()
    axes.loglog(k, rule, "-", color="0.6", label="√(k/d)")
    axes.loglog(k, mean, "o", label="measured")
    label_axes(axes, "neurons k", "‖W⁺Wx‖ / ‖x‖")


SMALLEST = Experiment(
    "smallest-perturbation", ADVERSARIAL_PAPER, "Appendix D, Figure 1", smallest_perturbation,
    quick={"widths": (10, 50, 100, 500, 1000, 2000, 10_000)},
)  # fmt: skip

SPHERE_DIM, SPHERE_POINTS = 10, 64
DEPTH_WIDTHS = (50, 100, 200, 400)
HIDDEN_LAYERS = (1, 3, 10, 30, 100, 300, 1000)
SHALLOW_NETWORKS = 56  # more, where angles are compared with the recursion
WIDTHS_A_LAYER = 10  # times the depth: widths at which they are
CLOSE_TO_RECURSION = (0.9, 1.1)  # times the recursion
SPREAD_FLOOR = (2.0, 5.0)  # times √width: spread of the values of the deepest networks


def depth_study(
    *,
    widths: tuple[int, ...] = DEPTH_WIDTHS,
    depths: tuple[int, ...] = HIDDEN_LAYERS,
    networks: int = 8,
    rng: Rng = 0,
) -> Finding:
    """Angles between the images of random points, share of networks with one sign, and how far values differ."""
    generator = as_generator(rng)
    rows = [row for width in widths for row in _depth_rows(width, depths, networks, generator)]
    table = tuple(rows)
    return Finding(
        title=f"{SPHERE_POINTS} points of a sphere in {SPHERE_DIM} dimensions through random networks, {networks} each",
        claim="Angles between images of inputs shrink layer by layer (Lemma 3.2), and a network of depth d³ or more is "
        "nearly constant on the sphere.",
        measured=_depth_in_words(table),
        columns=("width", "hidden", "mean angle", "recursion", "one sign", "ratio", "spread", "· √width"),
        rows=table,
        draw=lambda figure: _draw_depth(figure, table, widths),
        checks=_depth_checks(table),
        notes=(
            "The theorem asks for a width of (depth · d)^20, which no machine holds. At real widths the values stop "
            "differing less at a floor of a few times 1/√width: more depth makes the sign constant, not the value.",
            "Ratio: the theorem's, the largest |f(x) - f(y)| / |f(x)|. Spread: standard deviation over mean. Medians.",
        ),
    )


def _depth_rows(
    width: int, depths: tuple[int, ...], networks: int, rng: np.random.Generator
) -> Iterator[tuple[Any, ...]]:
    seen = [_one_network(width, depths, rng) for _ in range(networks)]
    angles, signs, spreads, ratios = (np.array([run[i] for run in seen]) for i in range(4))
    shallow = tuple(depth for depth in depths if WIDTHS_A_LAYER * depth <= width)
    more = (
        np.array([_one_network(width, shallow, rng)[0] for _ in range(SHALLOW_NETWORKS)]) if shallow else angles[:, :0]
    )
    # A wide layer takes each angle of its own, so this is the mean of the recursion, not that of the mean angle.
    law = _mean_recursion(depths, rng)
    for i, depth in enumerate(depths):
        angle = float(np.concatenate([angles[:, i], more[:, i] if i < len(shallow) else []]).mean())
        spread, ratio = float(np.median(spreads[:, i])), float(np.median(ratios[:, i]))
        yield (width, depth, angle, law[i], float(signs[:, i].mean()), ratio, spread, spread * width**0.5)


def _one_network(
    width: int, depths: tuple[int, ...], rng: np.random.Generator
) -> tuple[list[float], list[bool], list[float], list[float]]:
    """One random network, layer after layer; at each depth an output layer of its own."""
    hidden = sphere_points(SPHERE_POINTS, SPHERE_DIM, rng)
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


def _mean_recursion(depths: tuple[int, ...], rng: np.random.Generator) -> list[float]:
    points = sphere_points(SPHERE_POINTS, SPHERE_DIM, rng)
    angles = np.arccos(np.clip(points @ points.T, -1, 1)[np.triu_indices(SPHERE_POINTS, 1)])
    means = []
    for layer in range(1, max(depths) + 1):
        angles = next_angle(angles)
        if layer in depths:
            means.append(float(angles.mean()))
    return means


def _depth_checks(table: tuple[tuple[Any, ...], ...]) -> tuple[Check, ...]:
    shallow = [row for row in table if WIDTHS_A_LAYER * row[1] <= row[0]]
    last = max(row[1] for row in table)
    return (
        *(
            Check(f"angle over recursion, width {width}, {depth} layers", angle / law, *CLOSE_TO_RECURSION)
            for width, depth, angle, law, *_ in shallow
        ),
        *(Check(f"floor · √width, width {row[0]}", row[7], *SPREAD_FLOOR) for row in table if row[1] == last),
        *(Check(f"one sign, width {row[0]}", row[4], 1, 1) for row in table if row[1] == last),
    )


def _depth_in_words(table: tuple[tuple[Any, ...], ...]) -> str:
    depth = max(row[1] for row in table)
    deepest = [row for row in table if row[1] == depth]
    one_sign, floors = float(np.mean([row[4] for row in deepest])), [row[7] for row in deepest]
    return (
        f"After {depth} layers {one_sign:.0%} of the networks have one sign on all points; their values still differ "
        f"by {min(floors):.1f} to {max(floors):.1f} over √width."
    )


def _draw_depth(figure: Any, table: tuple[tuple[Any, ...], ...], widths: tuple[int, ...]) -> None:
    left, right = figure.subplots(1, 2)
    for width in widths:
        _, depth, angle, law, _, _, spread, _ = np.array([row for row in table if row[0] == width]).T
        (line,) = left.loglog(depth, angle, "o", label=f"width {width}")
        right.loglog(depth, spread, "o-", color=line.get_color(), label=f"width {width}")
    left.loglog(depth, law, "k:", label="recursion")
    label_axes(left, "hidden layers", "mean angle")
    right.set(xlabel="hidden layers", ylabel="spread of values")


DEPTH = Experiment(
    "depth", ADVERSARIAL_PAPER, "Lemma 3.2 and Theorem 3.1", depth_study,
    quick={"widths": (50, 100, 200), "depths": (1, 3, 10, 30, 100, 300, 1000), "networks": 6},
)  # fmt: skip

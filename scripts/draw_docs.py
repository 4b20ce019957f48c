"""Draw the pictures of the documentation.

python scripts/draw_docs.py
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from reluctant.extraction import extract
from reluctant.extraction.any_position.accuracy import points_to_see
from reluctant.extraction.any_position.line_search import line_through
from reluctant.geometry import DistanceNoise, Lines, LineSearch, scan_lines
from reluctant.geometry.jumps import GradientNoise, jumps_on_line
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Explained, open_oracle
from reluctant.report import search_svg
from reluctant.testing import planted
from reluctant.testing.families import bump
from reluctant.testing.faults import noisy
from reluctant.verification.alignment import compare

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
NOISE = DistanceNoise(near=1e-15, growth=1e-16)
DOUBLING = 1e-3 * 2.0 ** np.arange(14)  # places sampled on both sides of a point inside a bump
REACH = 1.6  # of the picture, in units of a typical input


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    draw_line()
    draw_search()
    draw_bump()
    draw_jumps()
    draw_tutorial()
    draw_boundary()
    draw_few_digits()
    draw_surrogate()
    draw_defense()
    draw_noise()
    draw_label_bits()


def draw_label_bits() -> None:
    """Labels of the kept networks against the bits of their weights: a label is one bit."""
    rows = json.loads((ROOT / "benchmarks" / "results" / "labels.json").read_text("utf-8"))
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    bits = {name.removesuffix(", labels"): (row["queries"] / row["over_floor"], row["queries"])
            for name, row in rows.items() if "-f32" not in name}  # fmt: skip
    ends = np.array([min(floor for floor, _ in bits.values()) / 2, 2 * max(labels for _, labels in bits.values())])
    axes.loglog(ends, ends, ":", color="#999999", label="one label a bit")
    for name, (floor, labels) in bits.items():
        axes.loglog(floor, labels, "o", markersize=5, color="#b5461c")
        axes.annotate(name, (floor, labels), textcoords="offset points", xytext=(6, 4), fontsize=8)
    axes.set_xlabel("bits of the weights, as exact as they were recovered")
    axes.set_ylabel("labels asked")
    axes.legend(frameon=False)
    save(figure, "label-bits")


NOISE_LEVELS = 10.0 ** np.arange(-8, -2)


def draw_noise() -> None:
    """Error of both hidden layers and of the output against the noise of answers; all that is ok."""
    true = planted((20, 10, 10, 1), 90_000, bias=0.5)
    deviation = float(true(np.random.default_rng(7).standard_normal((4000, 20))).std())
    shown, errors = [], []
    for level in NOISE_LEVELS:
        target = noisy(true, level * deviation, 1)
        result = extract(open_oracle(target, dim=20), rng=1, attempts=3, seconds=60)
        if result.ok and result.network is not None:
            found = compare(result.network, true)
            shown.append(level)
            errors.append([*(float(np.median(part)) for part in found.neuron_errors), found.output_error])
        print(f"noise {level:.0e}: {result.outcome.slug}, {result.queries} rows", errors[-1:] if result.ok else "")
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    axes = figure.add_subplot()
    names, colours = ("first layer", "second layer", "output, largest"), ("#3b6ea5", "#c1543c", "#555555")
    for name, colour, values in zip(names, colours, np.array(errors).T, strict=True):
        axes.loglog(shown, values, "o-", markersize=4, linewidth=1.2, color=colour, label=name)
    axes.loglog(NOISE_LEVELS, NOISE_LEVELS, ":", color="#999999", label="noise of one answer")
    axes.set_xlabel("noise of an answer, of the output's deviation")
    axes.set_ylabel("relative error")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    with matplotlib.rc_context({"svg.hashsalt": "noise-by-layer"}):
        figure.savefig(IMAGES / "noise-by-layer.svg", metadata={"Date": None})


def draw_search() -> None:
    """The search for creases, moving."""
    network, rng = planted((30, 24, 1), 5), np.random.default_rng(0)
    lines = Lines.random(rng, 1, 30)
    search = LineSearch.of(lines, scan_lines(network, lines, NOISE, rng))
    (IMAGES / "search.svg").write_text(search_svg(search) + "\n", encoding="utf-8")


def draw_jumps() -> None:
    """One coordinate of the gradient along a line: a step at every crease, two rows beside it."""
    network, rng = planted((20, 9, 1), 20), np.random.default_rng(3)
    oracle, lines = open_oracle(network, gradients=True), Lines.random(rng, 1, 20)
    asked: list[np.ndarray] = []

    def ask(rows: np.ndarray) -> Explained:
        asked.append((rows - lines.origins[0]) @ lines.directions[0])
        return oracle.query_gradients(rows)

    jumps = jumps_on_line(ask, lines, GradientNoise(NOISE))
    reach = REACH * lines.scale
    t = np.linspace(-reach, reach, 2000)
    places = np.concatenate(asked)
    places = places[np.abs(places) < reach]
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(t, first_slope(network, lines, t), linewidth=1.2, color="#3b6ea5")
    axes.plot(places, first_slope(network, lines, places), ".", markersize=5, color="#555555")
    axes.set_xlabel("position on the line")
    axes.set_ylabel("first entry of the gradient")
    axes.set_title(f"{len(jumps)} jumps found with {len(np.concatenate(asked))} rows, far ones included", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    with matplotlib.rc_context({"svg.hashsalt": "gradient-line"}):
        figure.savefig(IMAGES / "gradient-line.svg", metadata={"Date": None})


def first_slope(network: ReLUNetwork, lines: Lines, t: np.ndarray) -> np.ndarray:
    """The first entry of the gradient at places of the line."""
    return np.asarray(network.gradients(lines.points(np.zeros(len(t), dtype=np.intp), t))[:, 0, 0])


def draw_line() -> None:
    """The function near the middle of the line, with all that was asked there."""
    network, rng = planted((20, 9, 1), 20), np.random.default_rng(3)
    lines = Lines.random(rng, 1, 20)
    scan = scan_lines(network, lines, NOISE, rng)
    reach = REACH * lines.scale
    t = np.linspace(-reach, reach, 2000)
    near = np.abs(scan.samples.t) < reach
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(t, without_trend(network, lines, t), linewidth=1.2, color="#3b6ea5")
    asked = scan.samples.t[near]
    axes.plot(asked, without_trend(network, lines, asked), ".", markersize=5, color="#555555", label="asked")
    for crease in scan.creases.t[np.abs(scan.creases.t) < reach]:
        axes.axvline(crease, linewidth=0.8, color="#b5461c", alpha=0.6)
    axes.set_xlabel("position on the line")
    axes.set_ylabel("answer, less its trend")
    axes.set_title(f"{len(scan.creases)} creases found with {len(scan.samples)} rows, far ones included", fontsize=10)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    with matplotlib.rc_context({"svg.hashsalt": "line"}):  # the same file every time
        figure.savefig(IMAGES / "line.svg", metadata={"Date": None})


def draw_tutorial() -> None:
    """The line of the tutorial: answers above, their slope below, a mark at every kink."""
    network = planted((6, 4, 1), 3)
    direction = np.random.default_rng(0).standard_normal(6)
    direction /= np.linalg.norm(direction)
    t = np.linspace(-6, 6, 2401)
    answers = network(t[:, None] * direction)[:, 0]
    kinks = -network.biases[0] / (network.weights[0] @ direction)
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    top, bottom = figure.subplots(2, sharex=True)
    top.plot(t, answers, linewidth=1.4, color="#3b6ea5")
    at_kinks = network(kinks[:, None] * direction)[:, 0]
    top.plot(kinks, at_kinks, "o", markersize=6, color="#b5461c", label="kink: one neuron switches")
    top.set_ylabel("answer")
    top.legend(frameon=False)
    bottom.step(t[:-1], np.diff(answers) / np.diff(t), where="post", linewidth=1.4, color="#3b6ea5")
    bottom.set_ylabel("slope")
    bottom.set_xlabel("position t on the line")
    for part in (top, bottom):
        part.spines[["top", "right"]].set_visible(False)
        for kink in kinks:
            part.axvline(kink, linewidth=0.8, color="#b5461c", alpha=0.5)
    with matplotlib.rc_context({"svg.hashsalt": "tutorial-kinks"}):
        figure.savefig(IMAGES / "tutorial-kinks.svg", metadata={"Date": None})


def draw_few_digits() -> None:
    """Rounded answers near the origin and far out: the steps stay, the function grows."""
    network = planted((6, 4, 1), 3)
    direction = np.random.default_rng(0).standard_normal(6)
    direction /= np.linalg.norm(direction)
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    for axes, reach in zip(figure.subplots(1, 2), (4.0, 400.0), strict=True):
        t = np.linspace(-reach, reach, 4001)
        values = network(t[:, None] * direction)[:, 0]
        axes.plot(t, values, linewidth=1.0, color="#b5461c", label="target")
        axes.plot(t, np.round(values), linewidth=1.2, color="#3b6ea5", label="its answers, whole numbers")
        axes.set_title(f"inputs up to {reach:g}", fontsize=10)
        axes.set_xlabel("position on the line")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=8)
    save(figure, "few-digits")


def draw_surrogate() -> None:
    """A curve, and least-squares surrogates of eight hinges trained on few and on many answers."""
    rng, grid = np.random.default_rng(1), np.linspace(-3, 3, 600)
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    for axes, rows in zip(figure.subplots(1, 2, sharey=True), (12, 200), strict=True):
        t = rng.uniform(-3, 3, rows)
        answers = np.tanh(2 * t) + 0.3 * np.sin(3 * t) + 0.05 * rng.standard_normal(rows)
        design = hinges(t)
        fit = np.linalg.solve(
            design.T @ design + 1e-2 * np.eye(design.shape[1]), design.T @ answers
        )  # a little damping
        axes.plot(grid, np.tanh(2 * grid) + 0.3 * np.sin(3 * grid), linewidth=1.0, color="#b5461c", label="target")
        axes.plot(grid, hinges(grid) @ fit, linewidth=1.4, color="#3b6ea5", label="surrogate")
        axes.plot(t, answers, ".", markersize=4, color="#555555", label="answers, with noise")
        axes.set_title(f"{rows} answers", fontsize=10)
        axes.set_ylim(-2, 2)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=8)
    save(figure, "surrogate")


def hinges(t: np.ndarray) -> np.ndarray:
    """Eight hinges, a slope and a constant (n, 10) at these places."""
    knots = np.linspace(-2.6, 2.6, 8)
    return np.column_stack([np.maximum(t[:, None] - knots, 0.0), t, np.ones_like(t)])


def draw_defense() -> None:
    """Error of honest users beside the error of an attacker's copy, behind each defense of the example audit."""
    record = json.loads((ROOT / "tests" / "report" / "example-audit.json").read_text("utf-8"))
    rows = [
        row
        for row in record["defenses"]["rows"]
        if row["rebuilt"] and row["rebuilt"]["ok"] and row["honest"]["rms_error"]
    ]
    names = [row["defense"] for row in rows]
    places = np.arange(len(rows))
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes = figure.add_subplot()
    axes.barh(places + 0.2, [row["honest"]["rms_error"] for row in rows], 0.38, color="#9aa3af", label="honest users")
    axes.barh(places - 0.2, [row["rebuilt"]["error"] for row in rows], 0.38, color="#b5461c", label="attacker's copy")
    axes.set_xscale("log")
    axes.set_yticks(places, names)
    axes.set_xlabel("error, in deviations of the answers")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, "defenses")


def save(figure: Figure, name: str) -> None:
    """The same file every time."""
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})


def draw_boundary() -> None:
    """A decision boundary in a plane: every crease bends it wherever they meet, and two bends give the crease."""
    rng, reach, width = np.random.default_rng(166), 4.0, 7
    directions, offsets = rng.standard_normal((width, 2)), rng.standard_normal(width)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    out, typical = rng.standard_normal((1, width)), 2 * np.random.default_rng(0).standard_normal((2000, 2))
    middle = np.median(np.maximum(typical @ directions.T + offsets, 0) @ out[0])
    network = ReLUNetwork([directions, out], [offsets, np.array([-middle])])
    side = np.linspace(-reach, reach, 301)
    values = network(np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)).reshape(301, 301)
    figure = Figure(figsize=(5.4, 5.0), layout="constrained")
    axes = figure.add_subplot()
    axes.contourf(side, side, values, levels=[-1e9, 0, 1e9], colors=["#f4f1ec", "#e3ebf4"])
    axes.contour(side, side, values, levels=[0], colors=["#333333"], linewidths=1.8)
    t = np.linspace(-3 * reach, 3 * reach, 20001)
    for i, (u, b) in enumerate(zip(directions, offsets, strict=True)):
        crease = -b * u + t[:, None] * np.array([-u[1], u[0]])
        crease = crease[(np.abs(crease) < reach).all(axis=1)]
        above = network(crease)[:, 0] > 0
        bends = crease[1:][above[1:] != above[:-1]]
        axes.plot(*crease[[0, -1]].T, linewidth=0.9, color=f"C{i}", alpha=0.8)
        axes.plot(*bends.T, "o", markersize=6, color=f"C{i}")
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title("The boundary bends where it meets a neuron's crease", fontsize=10)
    save(figure, "label-boundary")


def draw_bump() -> None:
    """A bump on a line: the function, what a search by bisection asks, and what `learn` asks and finds."""
    network, rng = bump(4, width=0.05), np.random.default_rng(4)
    points = rng.standard_normal((points_to_see(0.05), network.dim))
    met = points[np.argmax(np.abs(network(points)[:, 0]))]
    line = line_through(met, rng)
    bisection = scan_lines(network, line, NOISE, rng).samples
    found = scan_lines(network, line, NOISE, rng, places=np.concatenate([-DOUBLING[::-1], [0.0], DOUBLING]))
    figure = Figure(figsize=(7.2, 5.4), layout="constrained")
    axes = figure.subplots(3, 1)
    wide, close = np.linspace(-12, 12, 4001), np.linspace(-0.5, 0.5, 2001)
    titles = (
        "the function: zero but for a bump",
        f"what bisection asks: {len(bisection)} answers, all of them zero, so there is nothing between",
        f"what learn asks around the highest of {len(points)} random points (◆): {len(found.creases)} creases",
    )
    for part, t, title in zip(axes, (wide, wide, close), titles, strict=True):
        part.plot(t, along(network, line, t), linewidth=1.2, color="#3b6ea5")
        part.set_title(title, fontsize=9, loc="left")
        part.spines[["top", "right"]].set_visible(False)
    for part, samples, size in ((axes[1], bisection, 6), (axes[2], found.samples, 5)):
        shown = np.abs(samples.t) < np.abs(part.get_xlim()).min()
        part.plot(samples.t[shown], samples.f[shown, 0], ".", markersize=size, color="#555555")
    for crease in found.creases.t:
        axes[2].axvline(crease, linewidth=0.8, color="#b5461c", alpha=0.6)
    axes[2].plot([0], network(met[None])[0], "D", markersize=5, color="#b5461c")
    axes[2].set_xlabel("position on the line")
    with matplotlib.rc_context({"svg.hashsalt": "bump"}):
        figure.savefig(IMAGES / "bump.svg", metadata={"Date": None})


def along(network: ReLUNetwork, line: Lines, t: np.ndarray) -> np.ndarray:
    return np.asarray(network(line.points(np.zeros(len(t), int), t))[:, 0])


def without_trend(network: ReLUNetwork, lines: Lines, t: np.ndarray) -> np.ndarray:
    """Values on the line, less the straight line through the ends of the picture."""
    ends = REACH * lines.scale * np.array([-1.0, 1.0])
    low, high = network(lines.points(np.zeros(2, int), ends))[:, 0]
    values = network(lines.points(np.zeros(len(t), int), t))[:, 0]
    return values - low - (high - low) * (t - ends[0]) / (ends[1] - ends[0])


if __name__ == "__main__":
    main()

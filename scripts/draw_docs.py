"""Draw the pictures of the documentation.

python scripts/draw_docs.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from reluctant.extraction.any_position.accuracy import points_to_see
from reluctant.extraction.any_position.line_search import line_through
from reluctant.geometry import DistanceNoise, Lines, LineSearch, scan_lines
from reluctant.geometry.jumps import GradientNoise, jumps_on_line
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Explained, open_oracle
from reluctant.report import search_svg
from reluctant.testing import planted
from reluctant.testing.families import bump

IMAGES = Path(__file__).parent.parent / "docs" / "images"
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
    with matplotlib.rc_context({"svg.hashsalt": "label-boundary"}):
        figure.savefig(IMAGES / "label-boundary.svg", metadata={"Date": None})


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

"""Draw the pictures of the documentation.

python scripts/draw_docs.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from reluctant.geometry import DistanceNoise, Lines, LineSearch, scan_lines
from reluctant.networks import ReLUNetwork
from reluctant.report import search_svg
from reluctant.testing import planted

IMAGES = Path(__file__).parent.parent / "docs" / "images"
NOISE = DistanceNoise(near=1e-15, growth=1e-16)
REACH = 1.6  # of the picture, in units of a typical input


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    draw_line()
    draw_search()


def draw_search() -> None:
    """The search for creases, moving."""
    network, rng = planted((30, 24, 1), 5), np.random.default_rng(0)
    lines = Lines.random(rng, 1, 30)
    search = LineSearch.of(lines, scan_lines(network, lines, NOISE, rng))
    (IMAGES / "search.svg").write_text(search_svg(search) + "\n", encoding="utf-8")


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


def without_trend(network: ReLUNetwork, lines: Lines, t: np.ndarray) -> np.ndarray:
    """Values on the line, less the straight line through the ends of the picture."""
    ends = REACH * lines.scale * np.array([-1.0, 1.0])
    low, high = network(lines.points(np.zeros(2, int), ends))[:, 0]
    values = network(lines.points(np.zeros(len(t), int), t))[:, 0]
    return values - low - (high - low) * (t - ends[0]) / (ends[1] - ends[0])


if __name__ == "__main__":
    main()

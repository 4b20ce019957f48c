"""Pictures of a target, as inline SVG: its answers along a line through input space."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np

from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.optional import require
from reluctant.oracles import Counting

__all__ = ["LineProfile", "ask_profile", "profile_svg"]

REACH = 1.0  # of the line beyond its two inputs, in units of their distance
MOST_CURVES = 10


@dataclass(frozen=True)
class LineProfile:
    """Answers along a line: positions (n,) and answers (n, m)."""

    positions: FloatArray
    answers: FloatArray


def ask_profile(oracle: Counting, rng: Rng = 0, points: int = 240) -> LineProfile:
    """Ask a target along the line through two random inputs. Cost: `points` rows."""
    generator = as_generator(rng)
    start, stop = oracle.facts.domain.sample(generator, 2, oracle.dim)
    reach = REACH if oracle.facts.domain.is_space else 0.0
    positions = np.linspace(-reach, 1 + reach, points)
    with oracle.stage("picture", expected=points):
        answers = oracle.query(start + positions[:, None] * (stop - start))
    return LineProfile(positions, answers)


def profile_svg(profile: LineProfile) -> str:
    """The profile as SVG; text and axes take the colour of the page around it."""
    require("matplotlib", extra="report", purpose="A picture")
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.add_subplot()
    axes.plot(profile.positions, profile.answers[:, :MOST_CURVES], linewidth=1.3)
    axes.set_xlabel("position along a line from one random input (0) to another (1)")
    axes.set_ylabel("answer")
    axes.spines[["top", "right"]].set_visible(False)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    return svg[svg.index("<svg") :].replace("#000000", "currentColor")

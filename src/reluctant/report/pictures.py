"""Pictures of a target, as inline SVG: its answers along a line through input space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Counting
from reluctant.report.figures import figure_svg, new_figure

__all__ = ["LineProfile", "ask_profile", "profile_svg"]

REACH = 1.0  # of the line beyond its two inputs, in units of their distance
MOST_CURVES = 10


@dataclass(frozen=True)
class LineProfile:
    """Answers along the line from one input to another: positions (n,) and answers (n, m)."""

    start: FloatArray
    stop: FloatArray
    positions: FloatArray
    answers: FloatArray

    def creases_of(self, network: ReLUNetwork) -> FloatArray:
        """Positions on the line where a first-layer neuron of a network turns on or off."""
        (at_start, at_stop) = network.preactivations(np.array([self.start, self.stop]))[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            where = at_start / (at_start - at_stop)
        return np.sort(where[(where > self.positions[0]) & (where < self.positions[-1])])


def ask_profile(oracle: Counting, rng: Rng = 0, points: int = 240) -> LineProfile:
    """Ask a target along the line through two random inputs. Cost: `points` rows."""
    generator = as_generator(rng)
    start, stop = oracle.facts.domain.sample(generator, 2, oracle.dim)
    reach = REACH if oracle.facts.domain.is_space else 0.0
    positions = np.linspace(-reach, 1 + reach, points)
    with oracle.stage("picture", expected=points):
        answers = oracle.query(start + positions[:, None] * (stop - start))
    return LineProfile(start, stop, positions, answers)


def profile_svg(profile: LineProfile, network: ReLUNetwork | None = None) -> str:
    """The profile as SVG, with the creases of a recovered network marked below it.

    Text and axes take the colour of the page around it.
    """
    figure = new_figure()
    axes = figure.add_subplot()
    axes.plot(profile.positions, profile.answers[:, :MOST_CURVES], linewidth=1.3)
    if network is not None and network.depth > 1:
        creases = profile.creases_of(network)
        axes.plot(
            creases, np.zeros_like(creases), "|", color="#b5461c", markersize=9, transform=axes.get_xaxis_transform()
        )
    axes.set_xlabel("position along a line from one random input (0) to another (1)")
    axes.set_ylabel("answer")
    return figure_svg(figure)

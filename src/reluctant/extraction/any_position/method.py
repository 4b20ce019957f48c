"""`AnyPosition`: one hidden layer without general position: parallel neurons, narrow ridges, clusters.

`DepthTwo` reads a few lines and goes on in directions that all neurons share; neurons that its line does not show apart
spoil it. Here a line goes through a point that the network so far does not explain. The method follows the
hyperplane of every new crease on it to its last digit, and fits the output weights anew, until nothing is left to
explain. It costs several times as much. `learn` does the same towards an accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from reluctant.extraction.any_position.accuracy import DrawnPoints, Model, draw_points, fitted_model
from reluctant.extraction.any_position.crease_planes import CreasePlanes
from reluctant.extraction.any_position.line_search import improve_by_lines
from reluctant.extraction.method import Candidate, Keep, Method, StageFailed, check_settings
from reluctant.geometry import DistanceNoise
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.ledger import Limit

STAGE = "lines"


@dataclass(frozen=True)
class AnyPosition(Method):
    """Exact extraction of one hidden layer whose neurons may be parallel, close together or in ridges.

    Arguments:
        points: random points that the network must explain.
        patience: the search ends after so many lines in a row without progress.
        aim: relative square error at which the search ends.
        complete: relative square error below which no neuron is missing.
        rows_a_neuron: most rows for each neuron found, besides the points, in units of d + 5.
        fewest_neurons: this limit counts at least so many neurons.
        through: inputs (n, d) that the network must also explain, such as those that contradicted an earlier one. A
            narrow ridge shows there and hardly at random points.
    """

    needs_space: ClassVar[bool] = True

    points: int = 300
    patience: int = 6
    aim: float = 1e-20
    complete: float = 1e-6
    rows_a_neuron: int = 20
    fewest_neurons: int = 8
    through: FloatArray | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_settings(self)

    def run(self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Keep) -> Candidate:
        """One attempt; raises StageFailed where points stay unexplained."""
        neurons = self.fewest_neurons

        def most_rows() -> int:
            return 20 * self.points + self.rows_a_neuron * (oracle.dim + 5) * neurons

        def refusal(wanted: int, most: float) -> StageFailed:
            return StageFailed(STAGE, "creases without end", number=wanted, limit=most)

        def kept(model: Model) -> Model:
            nonlocal neurons
            neurons = max(neurons, len(model.planes))
            keep(model.network)
            return model

        noise = DistanceNoise(noise.near, max(noise.growth, noise.near / float(np.sqrt(oracle.dim))))
        limited = Limit(most_rows, refusal=refusal).of(oracle)
        drawn = draw_points(limited, self.points, rng, self.through)
        model = improve_by_lines(
            limited, _without_neurons(limited, drawn, noise, rng), drawn, noise, rng,
            eps=self.aim, patience=self.patience, keep=kept,
        )  # fmt: skip
        error = model.checked.accuracy.error
        if error > self.complete:
            reason = "points that no hyperplane of a line explains"
            raise StageFailed(STAGE, reason, number=error, limit=self.complete, partial=model.network)
        return Candidate(model.network)


def _without_neurons(oracle: Counting, drawn: DrawnPoints, noise: DistanceNoise, rng: np.random.Generator) -> Model:
    """The affine map that is nearest to all points."""
    return fitted_model(oracle, CreasePlanes.none(oracle.dim, oracle.outputs), drawn, noise, rng)

"""All experiments by name, paper by paper, as `reluctant reproduce` runs them."""

from __future__ import annotations

from reluctant.experiments.depth import DEPTH
from reluctant.experiments.exact import ONE_LAYER, ORTHANT, TWO_LAYERS
from reluctant.experiments.experiment import Experiment
from reluctant.experiments.learning import BUMP, CLUSTERS
from reluctant.experiments.learning_theorem import THEOREM
from reluctant.experiments.linearity import BOTTLENECKS, LAW
from reluctant.experiments.perturbation import SMALLEST
from reluctant.experiments.span_noise import NOISE
from reluctant.experiments.span_ranks import MODERATE_FIGURE, THIN_FIGURE
from reluctant.experiments.span_recovery import LABELS, VALUES
from reluctant.experiments.steps import FLIPS
from reluctant.experiments.trained import TRAINED

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        *(THIN_FIGURE, MODERATE_FIGURE, NOISE, VALUES, LABELS),
        *(BUMP, CLUSTERS, THEOREM),
        *(ONE_LAYER, ORTHANT, TWO_LAYERS),
        *(SMALLEST, FLIPS, LAW, BOTTLENECKS, DEPTH, TRAINED),
    )
}

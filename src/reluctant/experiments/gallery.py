"""All experiments by name, as `reluctant reproduce` runs them."""

from __future__ import annotations

from collections.abc import Callable

from reluctant.experiments.depth import depth_study
from reluctant.experiments.finding import Finding
from reluctant.experiments.linearity import bottleneck_study, linearity_law
from reluctant.experiments.perturbation import smallest_perturbation
from reluctant.experiments.span_noise import span_noise
from reluctant.experiments.span_ranks import span_moderate, span_thin
from reluctant.experiments.steps import flip_steps
from reluctant.experiments.trained import trained_linearity

__all__ = ["EXPERIMENTS"]

# Each takes rng=; those with mnist_folder= also a folder with MNIST.
EXPERIMENTS: dict[str, Callable[..., Finding]] = {
    "smallest-perturbation": smallest_perturbation,
    "flip-steps": flip_steps,
    "linearity-law": linearity_law,
    "bottlenecks": bottleneck_study,
    "depth": depth_study,
    "trained": trained_linearity,
    "span-thin": span_thin,
    "span-moderate": span_moderate,
    "span-noise": span_noise,
}

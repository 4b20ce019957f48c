"""The question the paper leaves open: are trained networks as nearly linear as random ones?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from reluctant.adversarial import Flip, flip_sign, local_linearity
from reluctant.experiments.experiment import Experiment
from reluctant.experiments.finding import Check, Finding
from reluctant.experiments.images import Images, digits, mnist
from reluctant.experiments.papers import ADVERSARIAL
from reluctant.experiments.training import accuracy, before_and_after
from reluctant.networks import ReLUNetwork
from reluctant.numerics import Rng, as_generator

__all__ = ["TRAINED", "trained_linearity"]

HIDDEN = ((32,), (128,), (512,), (64, 64), (64, 64, 64), (64, 64, 64, 64, 64))
INPUTS = 60
RADII = tuple(10 ** np.linspace(-3, 0.5, 15))
DIRECTIONS = 4
MOST = 0.9  # of the images of every trained network: so many flip in one step
MOST_IMAGES = 10_000  # of a larger data set, to train on
COLUMNS = (
    "data",
    "hidden",
    "state",
    "accuracy",
    "one step flips",
    "size · √d",
    "step / linear",
    "radius",
    "radius along",
)


def trained_linearity(
    *,
    hidden: tuple[tuple[int, ...], ...] = HIDDEN,
    mnist_folder: str | Path | None = None,
    inputs: int = INPUTS,
    rng: Rng = 0,
) -> Finding:
    """One-step flips and local linearity on test images, before and after training, from the same start.

    Arguments:
        hidden: hidden layers of each classifier.
        mnist_folder: also train on MNIST, from this folder.
        inputs: test images looked at.
        rng: seed of all random choices.
    """
    generator = as_generator(rng)
    sets = [digits()] if mnist_folder is None else [digits(), _fewer(mnist(mnist_folder))]
    table = tuple(row for images in sets for layers in hidden for row in _rows(images, layers, inputs, generator))
    after = [row for row in table if row[2] == "after"]
    return Finding(
        name="trained",
        title=f"One gradient step and local linearity on {inputs} test images, before and after training",
        claim="The paper asks whether trained networks keep the nearly linear behaviour of random ones.",
        measured=_measured(table),
        columns=COLUMNS,
        rows=table,
        draw=lambda figure: _draw(figure, table),
        checks=(Check("trained networks: smallest share that one step flips", min(row[4] for row in after), MOST, 1),),
        notes=(
            "Size: median change over the norm of the image, times √d. Linear step: where a linear function with the "
            "same gradient would flip. Radius: where the gradient has changed by half, of the norm of the image, in "
            "random directions and along the gradient.",
        ),
    )


def _measured(table: tuple[tuple[Any, ...], ...]) -> str:
    before, after = ([row for row in table if row[2] == state] for state in ("before", "after"))
    grown = [late[8] / early[8] for early, late in zip(before, after, strict=True)]
    steps = [row[6] for row in after]
    return (
        f"One step flips at least {min(row[4] for row in after):.0%} of the images of a trained network, and is "
        f"{min(steps):.2f} to {max(steps):.2f} of what a linear function would need. Along the gradient networks are "
        f"nearly linear {min(grown):.1f} to {max(grown):.1f} times as far as before training."
    )


def _fewer(images: Images) -> Images:
    return replace(images, train_x=images.train_x[:MOST_IMAGES], train_y=images.train_y[:MOST_IMAGES])


def _rows(images: Images, hidden: tuple[int, ...], inputs: int, rng: np.random.Generator) -> list[tuple[Any, ...]]:
    seed = int(rng.integers(2**31))
    chosen = images.test_x[rng.choice(len(images.test_x), inputs, replace=False)]
    name = "-".join(map(str, hidden))
    return [
        (images.name, name, state, accuracy(network, images), *_measure(network, chosen, rng))
        for state, network in zip(("before", "after"), before_and_after(images, hidden, seed), strict=True)
    ]


def _measure(network: ReLUNetwork, inputs: np.ndarray, rng: np.random.Generator) -> tuple[float, ...]:
    flips = [flip_sign(network, x) for x in inputs]
    around = [local_linearity(network, x, radii=RADII, directions=DIRECTIONS, rng=rng) for x in inputs]
    return (
        float(np.mean([flip.ok for flip in flips])),
        float(np.median([flip.scaled_size if flip.ok else np.inf for flip in flips])),
        float(np.median([_over_linear(flip) for flip in flips])),
        float(np.median([found.linear_radius for found in around])),
        float(np.median([found.linear_radius_along for found in around])),
    )


def _over_linear(flip: Flip) -> float:
    return flip.size / float(flip.evidence["linear size"]) if flip.ok else np.inf


def _draw(figure: Any, table: tuple[tuple[Any, ...], ...]) -> None:
    left, right = figure.subplots(1, 2)
    names = list(dict.fromkeys((row[0], row[1]) for row in table))
    for state, marker in (("before", "o"), ("after", "s")):
        rows = {(row[0], row[1]): row for row in table if row[2] == state}
        left.plot([rows[name][5] for name in names], range(len(names)), marker, label=state)
        right.plot([rows[name][8] for name in names], range(len(names)), marker, label=state)
    left.set_yticks(range(len(names)), [f"{data} {hidden}" for data, hidden in names], fontsize=7)
    right.set_yticks([])
    left.set_xlabel("size of the flip · √d")
    right.set_xlabel("linear radius, along the gradient")
    right.legend(frameon=False)


TRAINED = Experiment(
    "trained", ADVERSARIAL, "Introduction, open question", trained_linearity,
    quick={"hidden": ((32,), (128,), (64, 64), (64, 64, 64)), "inputs": 40},
)  # fmt: skip

"""Theorem 1.1 on adversarial examples: the size of the flipping step; and flips and linearity after training.

The step is measured against the number of inputs. The paper leaves open whether trained networks are as nearly linear
as random ones.

The step a linear function would need, |f| / ‖∇f‖, has a known law: over ‖x‖ it is the cosine between a fixed and a
random direction. How far its sample median is off says how lucky the draw was, and the median of the true steps is
corrected by as much: the same networks give a tenth of the error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from reluctant.adversarial import flip_sign, local_linearity
from reluctant.adversarial.flip_search import TYPICAL
from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import open_oracle
from reluctant.papers.experiments.experiment import ADVERSARIAL_PAPER, Check, Experiment, Finding, label_axes
from reluctant.papers.experiments.image_classifiers import Images, before_and_after, hit_rate, load_digits, load_mnist
from reluctant.papers.random_networks import random_network

FLIP_NETWORKS = {100: 200, 200: 200, 500: 200, 1000: 200, 2000: 100, 4000: 40}  # inputs: networks of each depth
FLIP_DEPTHS = (2, 3, 4, 5, 6)  # layers of weights
ASKED_NETWORKS = 3  # networks of each cell that are also flipped by questions alone,
LARGEST_ASKED_DIM = 1000  # up to so many inputs
LARGE_DIM = 1000  # inputs from which nearly every network has to flip and the slope is fitted
LEAST_FLIPPED = 0.99
SIZE_SLOPE = (-0.54, -0.46)  # power of d
RESAMPLES = 200  # for a standard error
MOST_EXTRA_ROWS = 50  # rows a flip may cost beyond the number of inputs


@dataclass(frozen=True)
class _FlipSizes:
    """Relative sizes of one depth and number of inputs, inf where nothing flipped, and those of a linear function."""

    depth: int
    d: int
    sizes: FloatArray
    linear: FloatArray
    extra: int  # rows beyond d, the most that a flip by questions took

    @property
    def flipped(self) -> float:
        return float(np.isfinite(self.sizes).mean())

    @property
    def median(self) -> float:
        """A network that did not flip counts as larger than any."""
        return float(np.median(self.sizes))

    @property
    def corrected(self) -> float:
        """The median, less the luck of the draw."""
        from scipy.stats import beta  # takes half a second to import

        law = float(np.sqrt(beta(0.5, (self.d - 1) / 2).median()))
        return self.median * law / float(np.median(self.linear))

    def resampled(self, rng: np.random.Generator) -> _FlipSizes:
        some = rng.integers(len(self.sizes), size=len(self.sizes))
        return replace(self, sizes=self.sizes[some], linear=self.linear[some])

    def row(self) -> tuple[int, int, int, float, float, float]:
        root = float(np.sqrt(self.d))
        return self.depth, self.d, len(self.sizes), self.flipped, self.median * root, self.corrected * root


def flip_steps(
    *,
    networks: dict[int, int] | None = None,
    depths: tuple[int, ...] = FLIP_DEPTHS,
    asked: int = ASKED_NETWORKS,
    rng: Rng = 0,
) -> Finding:
    """Size of the one gradient step that flips a random network, against the number of inputs.

    One network and one input a run: inputs of one network are not independent.

    Arguments:
        networks: how many of each number of inputs and each depth.
        depths: layers of weights.
        asked: so many of each are flipped by questions alone too, to count them.
        rng: seed of all random choices.
    """
    counts, generator = networks or FLIP_NETWORKS, as_generator(rng)
    if len(counts) < 2:
        raise InvalidInput.about("networks", got=counts, expected="two numbers of inputs or more, for a slope")
    cells = [_flip_sizes(d, depth, n, asked, generator) for depth in depths for d, n in counts.items()]
    by_depth = {depth: [cell for cell in cells if cell.depth == depth] for depth in depths}
    slopes = {depth: _size_slope(mine) for depth, mine in by_depth.items()}
    errors = {depth: _slope_errors(mine, generator) for depth, mine in by_depth.items()}
    deviations = ", ".join(f"{k} layers {raw:.2f} and {fine:.3f}" for k, (raw, fine) in errors.items())
    return Finding(
        title="Smallest flip along the gradient of random networks with all widths d, one input each",
        claim="One step along the gradient, of relative size of order 1/√d, flips the sign of a random network of any "
        "fixed depth.",
        measured=_flips_in_words(cells, slopes),
        columns=("layers", "d", "networks", "flipped", "median · √d", "corrected · √d"),
        rows=tuple(cell.row() for cell in cells),
        draw=lambda figure: _draw_flips(figure, cells, depths),
        checks=(
            *(
                Check(f"flipped, {c.depth} layers, d = {c.d}", c.flipped, LEAST_FLIPPED, 1)
                for c in cells
                if c.d >= LARGE_DIM
            ),
            *(Check(f"slope of the corrected median in d, {k} layers", v, *SIZE_SLOPE) for k, v in slopes.items()),
            Check("rows beyond d for a flip by questions", max(cell.extra for cell in cells), 0, MOST_EXTRA_ROWS),
        ),
        notes=(
            "Corrected: the law of the linear step is known, and the error of its sample median is divided out: the "
            "slope tests how the true step over the linear one changes with d.",
            f"Standard errors of the slopes, as drawn and corrected: {deviations}.",
            "With few inputs deep networks need longer steps than 1/√d, and some do not flip at all; the theorem's "
            "widths and constants, exponential in depth, are out of reach.",
        ),
    )


def _flips_in_words(cells: list[_FlipSizes], slopes: dict[int, float]) -> str:
    large = [cell for cell in cells if cell.d >= LARGE_DIM] or cells
    flipped = sum(np.isfinite(cell.sizes).sum() for cell in large)
    scaled = [cell.corrected * np.sqrt(cell.d) for cell in large]
    return (
        f"{flipped} of {sum(len(cell.sizes) for cell in large)} networks with {large[0].d} inputs or more flipped in "
        f"one step; its median is {min(scaled):.2f} to {max(scaled):.2f} over √d, and falls like d to the power "
        f"{max(slopes.values()):.2f} to {min(slopes.values()):.2f}. A random linear function has {TYPICAL:.2f} over √d."
    )


def _flip_sizes(d: int, depth: int, networks: int, asked: int, rng: np.random.Generator) -> _FlipSizes:
    sizes, linear, extra = [], [], 0
    for number in range(networks):
        network, x = random_network((*[d] * depth, 1), rng), rng.standard_normal(d)
        flip = flip_sign(network, x)
        sizes.append(flip.relative_size if flip.ok else np.inf)
        linear.append(flip.evidence.get("linear size", np.inf) / float(np.linalg.norm(x)))
        if number < asked and d <= LARGEST_ASKED_DIM:
            extra = max(extra, flip_sign(open_oracle(network), x).queries - d)
    return _FlipSizes(depth, d, np.array(sizes), np.array(linear), extra)


def _size_slope(cells: list[_FlipSizes], raw: bool = False) -> float:
    """Slope of log size against log d, for large d; for all d if few are large."""
    large = [cell for cell in cells if cell.d >= LARGE_DIM]
    used = large if len(large) > 1 else cells
    sizes = [cell.median if raw else cell.corrected for cell in used]
    return float(np.polyfit(np.log([cell.d for cell in used]), np.log(sizes), 1)[0])


def _slope_errors(cells: list[_FlipSizes], rng: np.random.Generator) -> tuple[float, float]:
    """Standard errors of the slope as drawn and of the corrected one, by drawing networks again with replacement."""
    slopes = []
    for _ in range(RESAMPLES):
        drawn = [cell.resampled(rng) for cell in cells]
        slopes.append((_size_slope(drawn, raw=True), _size_slope(drawn)))
    return tuple(float(error) for error in np.std(slopes, axis=0))  # type: ignore[return-value]


def _draw_flips(figure: Any, cells: list[_FlipSizes], depths: tuple[int, ...]) -> None:
    axes = figure.add_subplot()
    for depth in depths:
        mine = [cell for cell in cells if cell.depth == depth]
        axes.loglog([cell.d for cell in mine], [cell.corrected for cell in mine], "o-", label=f"{depth} layers")
    dims = np.array(sorted({cell.d for cell in cells}))
    axes.loglog(dims, TYPICAL / np.sqrt(dims), "k:", label=f"{TYPICAL:.2f}/√d")
    label_axes(axes, "inputs d", "median relative size")


FLIPS = Experiment(
    "flip-steps", ADVERSARIAL_PAPER, "Theorem 1.1", flip_steps,
    quick={"networks": {100: 100, 300: 100, 1000: 100, 2000: 40}, "depths": (2, 3), "asked": 2},
)  # fmt: skip

TRAINED_HIDDEN = ((32,), (128,), (512,), (64, 64), (64, 64, 64), (64, 64, 64, 64, 64))
TRAINED_INPUTS = 60
TRAINED_RADII = tuple(10 ** np.linspace(-3, 0.5, 15))
TRAINED_DIRECTIONS = 4
LEAST_TRAINED_FLIPPED = 0.9  # of the images of every trained network: so many flip in one step
MOST_IMAGES = 10_000  # of a larger data set, to train on
TRAINED_COLUMNS = ("data", "hidden", "state", "accuracy", "one step flips", "size · √d", "step / linear", "radius",
                   "radius along")  # fmt: skip


def trained_linearity(
    *,
    hidden: tuple[tuple[int, ...], ...] = TRAINED_HIDDEN,
    mnist_folder: str | Path | None = None,
    inputs: int = TRAINED_INPUTS,
    rng: Rng = 0,
) -> Finding:
    """One-step flips and local linearity on test images, before and after training, from the same start.

    Arguments:
        hidden: hidden layers of each classifier.
        mnist_folder: also train on MNIST, from this folder.
        inputs: number of test images.
        rng: seed of all random choices.
    """
    generator = as_generator(rng)
    sets = [load_digits()]
    if mnist_folder is not None:
        mnist = load_mnist(mnist_folder)
        sets.append(replace(mnist, train_x=mnist.train_x[:MOST_IMAGES], train_y=mnist.train_y[:MOST_IMAGES]))
    table = tuple(
        row for images in sets for layers in hidden for row in _training_rows(images, layers, inputs, generator)
    )
    least = min(row[4] for row in table if row[2] == "after")
    return Finding(
        title=f"One gradient step and local linearity on {inputs} test images, before and after training",
        claim="The paper asks whether trained networks keep the nearly linear behaviour of random ones.",
        measured=_training_in_words(table),
        columns=TRAINED_COLUMNS,
        rows=table,
        draw=lambda figure: _draw_training(figure, table),
        checks=(Check("trained networks: smallest share that one step flips", least, LEAST_TRAINED_FLIPPED, 1),),
        notes=(
            "Size: median change over the norm of the image, times √d. Linear step: where a linear function with the "
            "same gradient would flip. Radius: where the gradient has changed by half, of the norm of the image, in "
            "random directions and along the gradient.",
        ),
    )


def _training_in_words(table: tuple[tuple[Any, ...], ...]) -> str:
    before, after = ([row for row in table if row[2] == state] for state in ("before", "after"))
    grown = [late[8] / early[8] for early, late in zip(before, after, strict=True)]
    steps = [row[6] for row in after]
    return (
        f"One step flips at least {min(row[4] for row in after):.0%} of the images of a trained network, and is "
        f"{min(steps):.2f} to {max(steps):.2f} of what a linear function would need. Along the gradient networks are "
        f"nearly linear {min(grown):.1f} to {max(grown):.1f} times as far as before training."
    )


def _training_rows(
    images: Images, hidden: tuple[int, ...], inputs: int, rng: np.random.Generator
) -> list[tuple[Any, ...]]:
    seed = int(rng.integers(2**31))
    chosen = images.test_x[rng.choice(len(images.test_x), inputs, replace=False)]
    name = "-".join(map(str, hidden))
    return [
        (images.name, name, state, hit_rate(network, images), *_measure_network(network, chosen, rng))
        for state, network in zip(("before", "after"), before_and_after(images, hidden, seed), strict=True)
    ]


def _measure_network(network: ReLUNetwork, inputs: np.ndarray, rng: np.random.Generator) -> tuple[float, ...]:
    flips = [flip_sign(network, x) for x in inputs]
    around = [local_linearity(network, x, radii=TRAINED_RADII, directions=TRAINED_DIRECTIONS, rng=rng) for x in inputs]
    return (
        float(np.mean([flip.ok for flip in flips])),
        float(np.median([flip.scaled_size if flip.ok else np.inf for flip in flips])),
        float(np.median([flip.size / flip.evidence["linear size"] if flip.ok else np.inf for flip in flips])),
        float(np.median([found.linear_radius for found in around])),
        float(np.median([found.linear_radius_along for found in around])),
    )


def _draw_training(figure: Any, table: tuple[tuple[Any, ...], ...]) -> None:
    left, right = figure.subplots(1, 2)
    names = list(dict.fromkeys((row[0], row[1]) for row in table))
    for state, marker in (("before", "o"), ("after", "s")):
        rows = {(row[0], row[1]): row for row in table if row[2] == state}
        left.plot([rows[name][5] for name in names], range(len(names)), marker, label=state)
        right.plot([rows[name][8] for name in names], range(len(names)), marker, label=state)
    left.set_yticks(range(len(names)), [f"{data} {hidden}" for data, hidden in names], fontsize=7)
    right.set_yticks([])
    left.set_xlabel("size of the flip · √d")
    label_axes(right, "linear radius, along the gradient")


TRAINED = Experiment(
    "trained", ADVERSARIAL_PAPER, "Introduction, open question", trained_linearity,
    quick={"hidden": ((32,), (128,), (64, 64), (64, 64, 64)), "inputs": 40},
)  # fmt: skip

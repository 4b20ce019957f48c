"""Theorem 1.1: the size of the one gradient step that flips a random network, against the number of inputs.

The step a linear function would need, |f| / ‖∇f‖, has a known law: over ‖x‖ it is the cosine between a fixed and a
random direction. How far its sample median is off says how lucky the draw was, and the median of the true steps is
corrected by as much: the same networks give a tenth of the error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import beta

from reluctant.adversarial import flip_sign
from reluctant.adversarial.random_networks import random_network
from reluctant.adversarial.result import TYPICAL
from reluctant.errors import InvalidInput
from reluctant.experiments.experiment import Experiment
from reluctant.experiments.finding import Check, Finding
from reluctant.experiments.papers import ADVERSARIAL
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import open_oracle

__all__ = ["FLIPS", "flip_steps"]

NETWORKS = {100: 200, 200: 200, 500: 200, 1000: 200, 2000: 100, 4000: 40}  # inputs: networks of each depth
DEPTHS = (2, 3, 4, 5, 6)  # layers of weights
ASKED = 3  # networks of each cell that are also flipped by questions alone,
LARGEST_ASKED = 1000  # up to so many inputs
LARGE = 1000  # inputs from which nearly every network has to flip and the slope is taken
NEARLY_ALL = 0.99
SLOPE = (-0.54, -0.46)  # power of d
RESAMPLES = 200  # for a standard error
MOST_EXTRA = 50  # rows a flip may cost beyond the number of inputs


@dataclass(frozen=True)
class _Cell:
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
        law = float(np.sqrt(beta(0.5, (self.d - 1) / 2).median()))
        return self.median * law / float(np.median(self.linear))

    def resampled(self, rng: np.random.Generator) -> _Cell:
        some = rng.integers(len(self.sizes), size=len(self.sizes))
        return replace(self, sizes=self.sizes[some], linear=self.linear[some])

    def row(self) -> tuple[int, int, int, float, float, float]:
        root = float(np.sqrt(self.d))
        return self.depth, self.d, len(self.sizes), self.flipped, self.median * root, self.corrected * root


def flip_steps(
    *,
    networks: dict[int, int] | None = None,
    depths: tuple[int, ...] = DEPTHS,
    asked: int = ASKED,
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
    counts, generator = networks or NETWORKS, as_generator(rng)
    if len(counts) < 2:
        raise InvalidInput.about("networks", got=counts, expected="two numbers of inputs or more, for a slope")
    cells = [_cell(d, depth, n, asked, generator) for depth in depths for d, n in counts.items()]
    by_depth = {depth: [cell for cell in cells if cell.depth == depth] for depth in depths}
    slopes = {depth: _slope(mine) for depth, mine in by_depth.items()}
    errors = {depth: _slope_errors(mine, generator) for depth, mine in by_depth.items()}
    return Finding(
        name="flip-steps",
        title="Smallest flip along the gradient of random networks with all widths d, one input each",
        claim="One step along the gradient, of relative size of order 1/√d, flips the sign of a random network of any "
        "fixed depth.",
        measured=_measured(cells, slopes),
        columns=("layers", "d", "networks", "flipped", "median · √d", "corrected · √d"),
        rows=tuple(cell.row() for cell in cells),
        draw=lambda figure: _draw(figure, cells, depths),
        checks=_checks(cells, slopes),
        notes=_notes(errors),
    )


def _checks(cells: list[_Cell], slopes: dict[int, float]) -> tuple[Check, ...]:
    return (
        *(Check(f"flipped, {c.depth} layers, d = {c.d}", c.flipped, NEARLY_ALL, 1) for c in cells if c.d >= LARGE),
        *(Check(f"slope of the corrected median in d, {k} layers", v, *SLOPE) for k, v in slopes.items()),
        Check("rows beyond d for a flip by questions", max(cell.extra for cell in cells), 0, MOST_EXTRA),
    )


def _notes(errors: dict[int, tuple[float, float]]) -> tuple[str, ...]:
    each = ", ".join(f"{k} layers {raw:.2f} and {fine:.3f}" for k, (raw, fine) in errors.items())
    return (
        "Corrected: the law of the linear step is known, and what its sample median is off by is taken out: "
        "the slope tests how the true step over the linear one changes with d.",
        f"Standard errors of the slopes, as drawn and corrected: {each}.",
        "With few inputs deep networks need longer steps than 1/√d, and some do not flip at all; the theorem's "
        "widths and constants, exponential in depth, are out of reach.",
    )


def _measured(cells: list[_Cell], slopes: dict[int, float]) -> str:
    large = [cell for cell in cells if cell.d >= LARGE] or cells
    flipped = sum(np.isfinite(cell.sizes).sum() for cell in large)
    scaled = [cell.corrected * np.sqrt(cell.d) for cell in large]
    return (
        f"{flipped} of {sum(len(cell.sizes) for cell in large)} networks with {large[0].d} inputs or more flipped in "
        f"one step; its median is {min(scaled):.2f} to {max(scaled):.2f} over √d, and falls like d to the power "
        f"{max(slopes.values()):.2f} to {min(slopes.values()):.2f}. A random linear function has {TYPICAL:.2f} over √d."
    )


def _cell(d: int, depth: int, networks: int, asked: int, rng: np.random.Generator) -> _Cell:
    sizes, linear, extra = [], [], 0
    for number in range(networks):
        network, x = random_network((*[d] * depth, 1), rng), rng.standard_normal(d)
        flip = flip_sign(network, x)
        sizes.append(flip.relative_size if flip.ok else np.inf)
        linear.append(flip.evidence.get("linear size", np.inf) / float(np.linalg.norm(x)))
        if number < asked and d <= LARGEST_ASKED:
            extra = max(extra, flip_sign(open_oracle(network), x).queries - d)
    return _Cell(depth, d, np.array(sizes), np.array(linear), extra)


def _slope(cells: list[_Cell], raw: bool = False) -> float:
    """Of log size in log d, where d is large; over all of them if too few are."""
    large = [cell for cell in cells if cell.d >= LARGE]
    used = large if len(large) > 1 else cells
    sizes = [cell.median if raw else cell.corrected for cell in used]
    return float(np.polyfit(np.log([cell.d for cell in used]), np.log(sizes), 1)[0])


def _slope_errors(cells: list[_Cell], rng: np.random.Generator) -> tuple[float, float]:
    """Standard errors of the slope as drawn and of the corrected one, by drawing networks again with replacement."""
    slopes = []
    for _ in range(RESAMPLES):
        drawn = [cell.resampled(rng) for cell in cells]
        slopes.append((_slope(drawn, raw=True), _slope(drawn)))
    return tuple(float(error) for error in np.std(slopes, axis=0))  # type: ignore[return-value]


def _draw(figure: Any, cells: list[_Cell], depths: tuple[int, ...]) -> None:
    axes = figure.add_subplot()
    for depth in depths:
        mine = [cell for cell in cells if cell.depth == depth]
        axes.loglog([cell.d for cell in mine], [cell.corrected for cell in mine], "o-", label=f"{depth} layers")
    dims = np.array(sorted({cell.d for cell in cells}))
    axes.loglog(dims, TYPICAL / np.sqrt(dims), "k:", label=f"{TYPICAL:.2f}/√d")
    axes.set_xlabel("inputs d")
    axes.set_ylabel("median relative size")
    axes.legend(frameon=False)


FLIPS = Experiment(
    "flip-steps", ADVERSARIAL, "Theorem 1.1", flip_steps,
    quick={"networks": {100: 100, 300: 100, 1000: 100, 2000: 40}, "depths": (2, 3), "asked": 2},
)  # fmt: skip

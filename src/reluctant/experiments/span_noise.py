"""Figure 3 of the span paper: images under noise in the null space, which the network does not see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reluctant.experiments.experiment import Experiment
from reluctant.experiments.finding import Check, Finding
from reluctant.experiments.images import digits, mnist
from reluctant.experiments.papers import SPAN
from reluctant.experiments.training import accuracy, train
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import open_oracle
from reluctant.report.words import size
from reluctant.span import check_obfuscation, obfuscate, recover_span
from reluctant.span.obfuscation import Obfuscation

__all__ = ["NOISE", "span_noise"]

DIGITS_HIDDEN, MNIST_HIDDEN = (32, 16), (80, 40, 30, 20)
SCALES = (1.0, 10.0, 100.0)
SHOWN, DRAWN_SCALE = 6, 10.0
LOGITS = 1e-7  # what 100 times the norm of an image may change, in float64
COLUMNS = ("noise / image norm", "same class", "largest logit change", "largest logit", "visible part of images")


def span_noise(
    *, hidden: tuple[int, ...] | None = None, mnist_folder: str | Path | None = None, rng: Rng = 0
) -> Finding:
    """Noise of a hundred times an image's norm that changes no answer."""
    images = digits() if mnist_folder is None else mnist(mnist_folder)
    hidden = hidden or (DIGITS_HIDDEN if mnist_folder is None else MNIST_HIDDEN)
    network = train(images, hidden, int(as_generator(rng).integers(2**31)))
    oracle = open_oracle(network)
    span = recover_span(oracle, rng=0, reach=max(SCALES)).raise_for_status()
    queries = span.queries
    shown = [check_obfuscation(oracle, span, images.test_x, scale, rng=0) for scale in SCALES]
    rows = [
        (scale, check.same_label, check.largest_change, check.size, check.visible_share)
        for scale, check in zip(SCALES, shown, strict=True)
    ]
    pictures = images.test_x[:SHOWN]
    noisy = obfuscate(span, pictures, DRAWN_SCALE, rng=0)
    return Finding(
        name="span-noise",
        title=f"{images.name}, {'-'.join(map(str, network.widths))}, {accuracy(network, images):.1%} right: noise in "
        f"the null space of a span recovered by {queries} queries",
        claim="Noise in the null space makes an image unrecognizable, and the prediction stays.",
        measured=f"Noise of {SCALES[-1]:g} times an image's norm leaves the class of {rows[-1][1]:.1%} of "
        f"{len(images.test_x)} test images as it was and moves no logit by more than {size(rows[-1][2], 1)}. "
        f"The span took {queries} queries.",
        columns=COLUMNS,
        rows=tuple(rows),
        draw=lambda figure: _draw(figure, network, pictures, noisy),
        checks=_checks(shown[-1]),
        notes=(f"The network looks at {span.rank} of {network.dim} directions: "
               f"{span.subspace.invisible_share:.1%} of them are invisible to it.",),
    )  # fmt: skip


def _checks(farthest: Obfuscation) -> tuple[Check, ...]:
    return (
        Check("share of images that keep their class at 100 times their norm", farthest.same_label, 1.0, 1.0),
        Check("largest logit change at 100 times the norm", farthest.largest_change, 0.0, LOGITS),
    )


def _draw(figure: Any, network: ReLUNetwork, images: FloatArray, noisy: FloatArray) -> None:
    """Images above, the same with noise below; the class and its softmax probability as titles."""
    grid = figure.subplots(2, len(images))
    side = int(np.sqrt(network.dim))
    for row, rows in zip(grid, (images, noisy), strict=True):
        for axes, image, p in zip(row, rows, _softmax(network(rows)), strict=True):
            axes.imshow(image.reshape(side, side), cmap="gray")
            axes.set_title(f"{p.argmax()}  ({p.max():.3f})", fontsize=8)
            axes.set_axis_off()


def _softmax(logits: FloatArray) -> FloatArray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


NOISE = Experiment("span-noise", SPAN, "Figure 3", span_noise, quick={})

"""Classifiers before and after training, with the same start."""

from __future__ import annotations

import warnings

import numpy as np

from reluctant.experiments.images import Images
from reluctant.networks import ReLUNetwork
from reluctant.optional import require

__all__ = ["accuracy", "before_and_after", "train"]

MOST_EPOCHS = 60
SMALL_STEP = 1e-30  # a learning rate that leaves the start as it was drawn
PENALTY = 1e-3
FEW_IMAGES_FACTOR = 20  # as many more epochs where there are few images
FEW = 200  # images shown to the start, which does not learn from them


def before_and_after(images: Images, hidden: tuple[int, ...], seed: int) -> tuple[ReLUNetwork, ReLUNetwork]:
    """Logits of a classifier as it was drawn, and trained from there (needs scikit-learn)."""
    networks = require("sklearn.neural_network", extra="sklearn", purpose="Training")
    start = networks.MLPClassifier(hidden, random_state=seed, learning_rate_init=SMALL_STEP)
    start.partial_fit(images.train_x[:FEW], images.train_y[:FEW], classes=np.unique(images.train_y))
    trained = networks.MLPClassifier(hidden, random_state=seed, alpha=PENALTY, max_iter=MOST_EPOCHS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # epochs may run out: accuracy is reported
        trained.fit(images.train_x, images.train_y)
    return _network(start), _network(trained)


def train(images: Images, hidden: tuple[int, ...], seed: int, *, most: int = 20_000, epochs: int = 15) -> ReLUNetwork:
    """Logits of a trained classifier: many images for a few epochs, few ones for as many steps (needs scikit-learn)."""
    networks = require("sklearn.neural_network", extra="sklearn", purpose="Training")
    few = len(images.train_x) < most
    model = networks.MLPClassifier(
        hidden, random_state=seed, alpha=PENALTY, max_iter=FEW_IMAGES_FACTOR * epochs if few else epochs
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # epochs may run out: accuracy is reported
        model.fit(images.train_x[:most], images.train_y[:most])
    return _network(model)


def _network(model: object) -> ReLUNetwork:
    return ReLUNetwork([w.T for w in model.coefs_], model.intercepts_)  # type: ignore[attr-defined]


def accuracy(network: ReLUNetwork, images: Images) -> float:
    """Share of test images that get their class."""
    return float((network(images.test_x).argmax(axis=1) == images.test_y).mean())

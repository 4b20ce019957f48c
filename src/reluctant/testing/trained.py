"""Trained networks for tests and benchmarks."""

from __future__ import annotations

from reluctant.bundled import digits_model
from reluctant.networks import ReLUNetwork
from reluctant.optional import require

__all__ = ["train_digits", "trained_digits"]

PIXEL_MAX = 16.0


def trained_digits() -> ReLUNetwork:
    """The bundled 64-32-10 digits classifier (reading it needs onnx)."""
    return ReLUNetwork.load(digits_model())


def train_digits(hidden: tuple[int, ...], seed: int) -> ReLUNetwork:
    """Logits of a classifier with these hidden layers, trained on the UCI digits (needs scikit-learn)."""
    datasets = require("sklearn.datasets", extra="sklearn", purpose="Training on digits")
    networks = require("sklearn.neural_network", extra="sklearn", purpose="Training on digits")
    images, labels = datasets.load_digits(return_X_y=True)
    model = networks.MLPClassifier(hidden, max_iter=1000, alpha=1e-3, random_state=seed).fit(images / PIXEL_MAX, labels)
    return ReLUNetwork([w.T for w in model.coefs_], model.intercepts_)

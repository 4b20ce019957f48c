"""Images to train on: MNIST from a folder (MNIST_DIR), else scikit-learn's digits; and classifiers trained on them."""

from __future__ import annotations

import gzip
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

import reluctant as rl

IMAGES_HEADER, LABELS_HEADER = 16, 8  # bytes of an IDX file before its data
TEST_SHARE = 0.3


@dataclass(frozen=True)
class Images:
    """Pixels from 0 to 1, one image a row, and the class of each."""

    name: str
    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def images() -> Images:
    """MNIST if MNIST_DIR names a folder with its four files, else digits."""
    folder = os.environ.get("MNIST_DIR")
    return mnist(Path(folder)) if folder else digits()


def digits() -> Images:
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    test, train = np.split(order, [int(TEST_SHARE * len(labels))])
    return Images("digits", pixels[train] / 16, labels[train], pixels[test] / 16, labels[test])


def mnist(folder: Path) -> Images:
    return Images("MNIST", *(part for name in ("train", "t10k") for part in _read(folder, name)))


def _read(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    pixels, labels = (
        np.frombuffer(gzip.decompress((folder / f"{part}-{kind}-ubyte.gz").read_bytes()), np.uint8, offset=header)
        for kind, header in (("images-idx3", IMAGES_HEADER), ("labels-idx1", LABELS_HEADER))
    )
    return pixels.reshape(len(labels), -1) / 255, labels


def train(data: Images, hidden: tuple[int, ...], seed: int, *, most: int = 20_000, epochs: int = 15) -> rl.ReLUNetwork:
    """Logits of a classifier; on many images for a few epochs, on few ones for as many steps."""
    few = len(data.train_x) < most
    model = MLPClassifier(hidden, max_iter=20 * epochs if few else epochs, alpha=1e-3, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.train_x[:most], data.train_y[:most])
    return rl.ReLUNetwork([w.T for w in model.coefs_], model.intercepts_)


def accuracy(network: rl.ReLUNetwork, data: Images) -> float:
    return float((network(data.test_x).argmax(axis=1) == data.test_y).mean())

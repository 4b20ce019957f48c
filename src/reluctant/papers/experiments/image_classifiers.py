"""Image data (digits, MNIST), and classifiers before and after training from the same start.

Images are scikit-learn's digits, or the MNIST files if a folder with them is given.
"""

from __future__ import annotations

import gzip
import struct
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reluctant.errors import InvalidInput, require
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

DIGITS_MAX, MNIST_MAX = 16.0, 255.0
HELD_OUT_SHARE = 0.3
SPLIT_SEED = 0
LABELS_MAGIC, PICTURES_MAGIC = 0x801, 0x803  # magic numbers of the two kinds of file
MNIST_FILES = tuple(
    (f"{part}-{kind}-ubyte.gz", magic)
    for part in ("train", "t10k")
    for kind, magic in (("images-idx3", PICTURES_MAGIC), ("labels-idx1", LABELS_MAGIC))
)


@dataclass(frozen=True)
class Images:
    """Pixels from 0 to 1, one image a row, and the class of each."""

    name: str
    train_x: FloatArray
    train_y: np.ndarray
    test_x: FloatArray
    test_y: np.ndarray

    @property
    def dim(self) -> int:
        """Pixels of an image."""
        return int(self.train_x.shape[1])


def load_digits() -> Images:
    """The UCI digits, 8 × 8, as scikit-learn ships them."""
    datasets = require("sklearn.datasets", extra="sklearn", purpose="Loading digits")
    pixels, labels = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(labels))
    test, train = np.split(order, [int(HELD_OUT_SHARE * len(labels))])
    return Images("digits", pixels[train] / DIGITS_MAX, labels[train], pixels[test] / DIGITS_MAX, labels[test])


def check_mnist(folder: str | Path) -> None:
    """Refuse a folder that lacks one of the four files of MNIST, before anything is run."""
    missing = [name for name, _ in MNIST_FILES if not (Path(folder) / name).is_file()]
    if missing:
        expected = f"a folder with {', '.join(name for name, _ in MNIST_FILES)}"
        raise InvalidInput.about("mnist", got=f"'{folder}' without {', '.join(missing)}", expected=expected)


def load_mnist(folder: str | Path) -> Images:
    """The four files of MNIST, 28 × 28, from a folder."""
    train_x, train_y, test_x, test_y = (_read_idx(Path(folder) / name, magic) for name, magic in MNIST_FILES)
    if (len(train_x), len(test_x)) != (len(train_y), len(test_y)):
        raise InvalidInput.about("mnist", got=f"'{folder}'", expected="as many labels as images")
    return Images("MNIST", train_x / MNIST_MAX, train_y, test_x / MNIST_MAX, test_y)


def _read_idx(path: Path, magic: int) -> np.ndarray:
    """An IDX file: magic number, sizes, bytes; images become rows."""
    try:
        with gzip.open(path) as file:
            data = file.read()
        found, count = struct.unpack(">II", data[:8])
    except (OSError, struct.error, EOFError, zlib.error) as error:
        expected = "a folder with MNIST's four .gz files"
        raise InvalidInput.about("mnist", got=f"'{path}' ({error})", expected=expected) from error
    if found != magic:
        raise InvalidInput.about("mnist", got=f"'{path}', which is something else", expected="an IDX file of MNIST")
    values = np.frombuffer(data, np.uint8, offset=min(8 if magic == LABELS_MAGIC else 16, len(data)))
    if not count or len(values) % count or len(values) < count:
        raise InvalidInput.about("mnist", got=f"'{path}' with {len(values)} bytes", expected=f"{count} entries")
    return values.astype(int) if magic == LABELS_MAGIC else values.reshape(count, -1)


MOST_EPOCHS, FEW_EPOCHS = 60, 15
MANY_IMAGES = 20_000  # that a classifier is trained on, at most
SMALL_STEP = 1e-30  # a learning rate that leaves the start as it was drawn
WEIGHT_PENALTY = 1e-3
FEW_IMAGES_FACTOR = 20  # as many more epochs where there are few images
START_IMAGES = 200  # images shown to the start, which does not learn from them


def before_and_after(images: Images, hidden: tuple[int, ...], seed: int) -> tuple[ReLUNetwork, ReLUNetwork]:
    """Logits of a classifier as it was drawn, and trained from there (needs scikit-learn)."""
    networks = require("sklearn.neural_network", extra="sklearn", purpose="Training")
    start = networks.MLPClassifier(hidden, random_state=seed, learning_rate_init=SMALL_STEP)
    start.partial_fit(images.train_x[:START_IMAGES], images.train_y[:START_IMAGES], classes=np.unique(images.train_y))
    return _as_network(start), _trained(images.train_x, images.train_y, hidden, seed, MOST_EPOCHS)


def train_classifier(images: Images, hidden: tuple[int, ...], seed: int) -> ReLUNetwork:
    """Logits of a trained classifier: many images for a few epochs, few ones for as many steps (needs scikit-learn)."""
    epochs = FEW_IMAGES_FACTOR * FEW_EPOCHS if len(images.train_x) < MANY_IMAGES else FEW_EPOCHS
    return _trained(images.train_x[:MANY_IMAGES], images.train_y[:MANY_IMAGES], hidden, seed, epochs)


def _trained(x: FloatArray, y: np.ndarray, hidden: tuple[int, ...], seed: int, epochs: int) -> ReLUNetwork:
    networks = require("sklearn.neural_network", extra="sklearn", purpose="Training")
    model = networks.MLPClassifier(hidden, random_state=seed, alpha=WEIGHT_PENALTY, max_iter=epochs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # epochs may run out: accuracy is reported
        model.fit(x, y)
    return _as_network(model)


def _as_network(model: object) -> ReLUNetwork:
    return ReLUNetwork([w.T for w in model.coefs_], model.intercepts_)  # type: ignore[attr-defined]


def hit_rate(network: ReLUNetwork, images: Images) -> float:
    """Share of test images that get their class."""
    return float((network(images.test_x).argmax(axis=1) == images.test_y).mean())

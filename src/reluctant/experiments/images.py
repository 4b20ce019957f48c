"""Images to train on: scikit-learn's digits, or the MNIST files if a folder with them is given."""

from __future__ import annotations

import gzip
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.numerics import FloatArray
from reluctant.optional import require

__all__ = ["Images", "check_mnist", "digits", "mnist"]

DIGITS_MAX, MNIST_MAX = 16.0, 255.0
TEST_SHARE = 0.3
SPLIT_SEED = 0
LABELS, PICTURES = 0x801, 0x803  # magic numbers of the two kinds of file
FILES = tuple(
    (f"{part}-{kind}-ubyte.gz", magic)
    for part in ("train", "t10k")
    for kind, magic in (("images-idx3", PICTURES), ("labels-idx1", LABELS))
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


def digits() -> Images:
    """The UCI digits, 8 × 8, as scikit-learn ships them."""
    datasets = require("sklearn.datasets", extra="sklearn", purpose="Loading digits")
    pixels, labels = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(labels))
    test, train = np.split(order, [int(TEST_SHARE * len(labels))])
    return Images("digits", pixels[train] / DIGITS_MAX, labels[train], pixels[test] / DIGITS_MAX, labels[test])


def check_mnist(folder: str | Path) -> None:
    """Refuse a folder that lacks one of the four files of MNIST, before anything is run."""
    missing = [name for name, _ in FILES if not (Path(folder) / name).is_file()]
    if missing:
        expected = f"a folder with {', '.join(name for name, _ in FILES)}"
        raise InvalidInput.about("--mnist", got=f"'{folder}' without {', '.join(missing)}", expected=expected)


def mnist(folder: str | Path) -> Images:
    """The four files of MNIST, 28 × 28, from a folder."""
    train_x, train_y, test_x, test_y = (_read(Path(folder) / name, magic) for name, magic in FILES)
    if (len(train_x), len(test_x)) != (len(train_y), len(test_y)):
        raise InvalidInput.about("--mnist", got=f"'{folder}'", expected="as many labels as images")
    return Images("MNIST", train_x / MNIST_MAX, train_y, test_x / MNIST_MAX, test_y)


def _read(path: Path, magic: int) -> np.ndarray:
    """An IDX file: magic number, sizes, bytes; images become rows."""
    try:
        with gzip.open(path) as file:
            data = file.read()
        found, count = struct.unpack(">II", data[:8])
    except (OSError, struct.error, EOFError, zlib.error) as error:
        expected = "a folder with MNIST's four .gz files"
        raise InvalidInput.about("--mnist", got=f"'{path}' ({error})", expected=expected) from error
    if found != magic:
        raise InvalidInput.about("--mnist", got=f"'{path}', which is something else", expected="an IDX file of MNIST")
    values = np.frombuffer(data, np.uint8, offset=min(8 if magic == LABELS else 16, len(data)))
    if not count or len(values) % count or len(values) < count:
        raise InvalidInput.about("--mnist", got=f"'{path}' with {len(values)} bytes", expected=f"{count} entries")
    return values.astype(int) if magic == LABELS else values.reshape(count, -1)

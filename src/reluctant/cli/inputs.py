"""Arrays that commands are given as .npy files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.numerics import FloatArray

__all__ = ["read_array"]


def read_array(option: str, path: Path) -> FloatArray:
    """The numbers in a .npy file; nothing in it can run code."""
    try:
        x: Any = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InvalidInput.about(option, got=f"'{path}' ({error})", expected="a .npy file of numbers") from error
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiu":
        raise InvalidInput.about(option, got=f"'{path}'", expected="one array of numbers (np.save)")
    return np.asarray(x, dtype=np.float64)

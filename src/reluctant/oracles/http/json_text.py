"""Numbers as JSON and back, exactly: by orjson where it is installed (ten times as fast), else by the standard one."""

from __future__ import annotations

import importlib
import json
from functools import cache
from typing import Any

import numpy as np

__all__ = ["number_list", "read_json"]


@cache
def _orjson() -> Any:
    try:
        return importlib.import_module("orjson")
    except ImportError:
        return None


def number_list(numbers: Any) -> bytes:
    """A JSON list of the numbers, nested as the array is; each reads back as the same number of its format."""
    fast = _orjson()
    if fast is None:
        return json.dumps(numbers.tolist()).encode()
    return bytes(fast.dumps(np.ascontiguousarray(numbers), option=fast.OPT_SERIALIZE_NUMPY))


def read_json(text: bytes) -> Any:
    """The data, NaN and Infinity included, which only the standard library reads; ValueError if it is no JSON."""
    fast = _orjson()
    if fast is not None:
        try:
            return fast.loads(text)
        except ValueError:
            pass  # NaN, or no JSON at all
    return json.loads(text)

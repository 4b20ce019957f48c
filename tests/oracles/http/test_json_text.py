"""Numbers written as JSON read back to the last bit, with orjson and without."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from reluctant.oracles.http import transport


@pytest.fixture(params=["orjson", "json"], autouse=True)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "orjson":
        pytest.importorskip("orjson")
    else:
        monkeypatch.setattr(transport, "_orjson", lambda: None)


@pytest.mark.parametrize("kind", ["<f8", "<f4"])
def test_numbers_read_back_exactly(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = (rng.standard_normal((50, 3)) * 10.0 ** rng.integers(-30, 30, (50, 3))).astype(kind)
    for each in (numbers, numbers[0], np.asfortranarray(numbers), numbers[::2]):
        np.testing.assert_array_equal(np.array(json.loads(transport.number_list(each)), kind), each)


def test_nan_is_read() -> None:
    assert math.isnan(transport.read_json(b"[NaN]")[0])
    assert transport.read_json(b'{"a": [1.5, null]}') == {"a": [1.5, None]}


@pytest.mark.parametrize("text", [b"", b"{", b"[1,", b"\xff\xfe"])
def test_what_is_no_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (whichever library says it)
        transport.read_json(text)

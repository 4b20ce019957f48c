"""The keyword `rng`: what it takes, what it refuses, and the name a transcript knows a run by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reluctant.errors import InvalidInput
from reluctant.numerics import as_generator, seed_signature


@pytest.mark.parametrize("rng", [True, 1.5, "0", [1], -1, np.int64(-3)])
def test_what_is_no_seed_is_refused(rng: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^rng: got"):
        as_generator(rng)


def test_a_seed_of_numpy_is_a_seed() -> None:
    assert as_generator(np.int64(5)).random() == as_generator(5).random()


def test_a_generator_is_used_as_it_is() -> None:
    generator = np.random.default_rng(3)
    assert as_generator(generator) is generator


def test_runs_are_named_by_their_random_numbers() -> None:
    assert seed_signature(None) is None
    assert seed_signature(7) == seed_signature(np.int64(7)) != seed_signature(8)
    one, same, later = np.random.default_rng(1), np.random.default_rng(1), np.random.default_rng(1)
    later.random()
    assert seed_signature(one) == seed_signature(same) != seed_signature(later)

"""Seeds and Hypothesis settings that every test shares."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, settings

DEFAULT_SEEDS = (0,)
ALL_SEEDS = range(100)

# No clocks: a busy machine is no reason to fail.
CLOCKS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, max_examples=40, **CLOCKS)
settings.register_profile("explore", max_examples=1000, **CLOCKS)
settings.load_profile("ci")


def _wanted_seeds() -> Sequence[int]:
    wanted = os.environ.get("RELUCTANT_SEEDS", "")
    if wanted == "all":
        return ALL_SEEDS
    return [int(seed) for seed in wanted.split(",")] if wanted else DEFAULT_SEEDS


@pytest.fixture(params=_wanted_seeds(), ids="seed{}".format)
def seed(request: pytest.FixtureRequest) -> int:
    """One seed by default; RELUCTANT_SEEDS=all or RELUCTANT_SEEDS=3,5 for others."""
    return request.param

"""What a comparison accepts."""

from __future__ import annotations

import numpy as np

from reluctant.numerics import unit_roundoff

__all__ = ["EXACT_TOLERANCE", "MOST_TOLERANCE", "NOISE_FACTOR"]

# Accept half the digits of float64; a target with more noise than that, up to this many deviations of it.
EXACT_TOLERANCE = float(np.sqrt(2 * unit_roundoff(np.float64)))
NOISE_FACTOR = 30.0
MOST_TOLERANCE = 1e-2  # of the output's deviation: where noise asks for more, nothing can be told

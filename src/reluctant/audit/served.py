"""The digits of a target: what leaves a copy with the same, and how many they are.

What an interface does to answers is told by names of defenses: its noise stands next to the model, its digits come
last.
"""

from __future__ import annotations

import numpy as np

from reluctant.interface import Interface
from reluctant.interface.digits import UNIFORM_SD
from reluctant.numerics import unit_roundoff

__all__ = ["FLOAT64_DIGITS", "digits_given", "digits_served", "format_served", "noise_served"]

FLOAT64_DIGITS = -float(np.log10(unit_roundoff("float64")))
FORMAT_ROUNDINGS = 16.0  # noise that is no more than so many roundings of a format is its own


def noise_served(served: Interface | None) -> tuple[str, ...]:
    """The noise of answers, as a defense that adds it."""
    noisy = served is not None and not served.deterministic and served.fresh_noise > 0
    return (f"gaussian={served.fresh_noise:.2g}",) if served is not None and noisy else ()


def digits_served(served: Interface | None) -> tuple[str, ...]:
    """The digits of answers, as a defense that leaves no more of them."""
    if served is not None and served.decimals is not None:
        return (f"decimals={served.decimals}",)
    return format_served(served)


def format_served(served: Interface | None) -> tuple[str, ...]:
    """The number format of answers, as a defense, where it is not that of all computing."""
    narrow = served is not None and served.number_format != "float64"
    return (served.number_format,) if served is not None and narrow else ()


def digits_given(served: Interface | None) -> float:
    """Decimal digits of the answers, of their deviation: what format, rounding and noise leave."""
    if served is None or not served.spread > 0:
        return FLOAT64_DIGITS
    unit = float(unit_roundoff(served.number_format))
    noise = max(served.noise.absolute, 0.0 if served.deterministic else served.fresh_noise) / served.spread
    rounding = 0.0 if served.decimals is None else UNIFORM_SD * 10.0**-served.decimals / served.spread
    noise = noise if noise > FORMAT_ROUNDINGS * unit else 0.0
    return max(0.0, -float(np.log10(max(unit, rounding, noise))))

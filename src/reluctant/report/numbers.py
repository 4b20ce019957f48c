"""Numbers as readers expect them, with a dash for unknown ones."""

from __future__ import annotations

import math
import re
from typing import Any

UNKNOWN = "–"
NO_BREAK = "\N{NO-BREAK SPACE}"
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
SCIENTIFIC = re.compile(r"(?<![\w.])-?\d(?:\.\d+)?e[+-]?\d+(?!\w)")  # 2.0e-13
PLAIN = range(-3, 5)  # decimal exponents that are written out
SHORTEST, MINUTE, HOUR, DAY, YEAR = 0.1, 60.0, 3600.0, 86_400.0, 365 * 86_400.0
SMALL = 0.001  # shares below this have one digit that says something
BYTES = ("bytes", "kB", "MB", "GB", "TB", "PB")
NEARLY_ALL = 0.9995  # shares beyond this are not rounded up to all


def superscript(number: int) -> str:
    """A whole number as an exponent."""
    return str(number).translate(SUPERSCRIPTS)


def count(value: Any) -> str:
    """A whole number with commas."""
    return UNKNOWN if value is None else f"{value:,.0f}".replace("-", "−")


def size(value: Any, digits: int = 2) -> str:
    """A number of any size to a few significant digits: 0.031, 3.1 × 10⁻¹³."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    if int(exponent) in PLAIN:
        decimals = max(digits - 1 - int(exponent), 0)
        return f"{float(f'{mantissa}e{exponent}'):,.{decimals}f}".replace("-", "−")
    return f"{mantissa}{NO_BREAK}×{NO_BREAK}10{superscript(int(exponent))}".replace("-", "−")


def percent(value: Any) -> str:
    """A share as a percentage; one that is not whole is never written as 100%."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if NEARLY_ALL <= value < 1:
        return "> 99.9%"
    if 0 < value < SMALL:
        return f"{size(100 * value, 1)}%"
    return f"{100 * value:.1f}%" if 0 < value < 1 else f"{100 * value:.0f}%"


def duration(seconds: Any) -> str:
    """Seconds, minutes or hours; days and years where it is many of them."""
    if seconds is None:
        return UNKNOWN
    if seconds < SHORTEST:
        return "0 s" if seconds == 0 else f"< {SHORTEST} s"
    if seconds < MINUTE:
        return f"{seconds:.1f} s" if seconds < MINUTE / 6 else f"{seconds:.0f} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.1f} min"
    if seconds < 2 * DAY:
        return f"{seconds / HOUR:.1f} h"
    return f"{seconds / DAY:,.1f} days" if seconds < YEAR else f"{seconds / YEAR:,.1f} years"


def bytes_(value: Any) -> str:
    """A size on disk."""
    if value is None:
        return UNKNOWN
    power = min(int(math.log(max(value, 1), 1000)), len(BYTES) - 1)
    return f"{value / 1000**power:.{1 if power else 0}f} {BYTES[power]}"


def money(value: Any, currency: str = "") -> str:
    """An amount, with at least two digits that say something."""
    if value is None:
        return UNKNOWN
    decimals = 2 if value >= 0.1 or value == 0 else 1 - math.floor(math.log10(value))
    return f"{value:,.{decimals}f} {currency}".strip()


def powers(text: str) -> str:
    """A sentence with its numbers as people read them: 2.0e-13 becomes 2.0 × 10⁻¹³."""
    return SCIENTIFIC.sub(lambda found: size(float(found[0]), _digits_of(found[0])), text)


def _digits_of(number: str) -> int:
    """Significant digits that a number is written with."""
    return sum(character.isdigit() for character in number.partition("e")[0])

"""Numbers as readers expect them, with a dash for unknown ones, and what each number of the page means."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
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


# ---- meanings, shown on hover and in the last section

DEVIATION = "in units of the standard deviation of that output over typical inputs"
MEANINGS = {
    # The first screen.
    "Parameters copied": "Weights and biases of the verified copy.",
    "Parameters of a copy": "Weights and biases of a copy whose error was measured.",
    "Error of a trained copy": "Root mean square at held-out inputs, relative to the answers' deviation.",
    "The same label from a trained copy": "Share of new inputs at which the surrogate gives the model's label.",
    "The same label from a trained network": "Share of new inputs at which the surrogate gives the model's label.",
    "Neurons of the first layer copied": "Neurons at whose hyperplanes the model was seen to bend.",
    "Queries it took": "Rows sent to the model for the copy, verification included.",
    "Queries spent": "Rows sent to the model by all steps.",
    "Defense that stops every copy": "The defense with the least cost to honest users that no method passed.",
    "Input directions used": "Dimension of the input subspace that the answers depend on, of all inputs.",
    "Change that flips an answer": "Norm of the change over the norm of the input, for one gradient step.",
    "An answer gives": "What one answer shows of the function.",
    "Noise of an answer": "Standard deviation between two answers to the same row.",
    "Digits in an answer": "Number format and rounding of the answers.",
    "Steps done": "Steps of the audit that finished.",
    # The copy.
    "Method": "The method that made the copy.",
    "Verified": "Whether the copy agrees with the model at new inputs, on and beside every crease.",
    "Parameters": "Weights and biases of the copy.",
    "Answers through": "The link after the last layer of the copy.",
    "Largest error seen": f"Largest difference between copy and model, {DEVIATION}.",
    "Typical error (root mean square)": f"Root mean square of the differences, {DEVIATION}.",
    "Its own error, without the noise of the answers": "The error without the noise of the answers.",
    "Queries": "Rows sent to the model; one row brings one answer for each output.",
    "Cost": "Queries times the price that you gave.",
    "Time": "Queries over the rate that you gave; on the first screen, the time of all steps.",
    "What an attack would cost": "The estimate for this shape, with its range.",
    # The truth.
    "File": "The model's own file; no method read it.",
    "True network": "Widths and parameters in the file.",
    "Neurons found": "True neurons with a neuron of the copy beside them.",
    "Largest error of an output": f"Copy against file at new inputs, {DEVIATION}.",
    "Largest error of a weight": "After neurons have the same order and scale, relative to the neuron's weights.",
    # The interface.
    "Inputs": "Numbers in one row.",
    "Outputs": "Numbers in one answer.",
    "Answers": "Values, probabilities or labels.",
    "Number format": "The format that the target declares.",
    "Read through": "The link that was undone to get values.",
    "Domain": "The inputs that may be asked.",
    "Answers only in": "The range of inputs that the target answers.",
    "Identity": "A hash that recognises the target.",
    "The same every time": "Whether the same row gets the same answer.",
    "Space of answers": "Dimensions of the affine space that all answers lie in, of many outputs.",
    "With explanations": "Queries of a verified copy with the gradients that the target answers, and without them.",
    "Digits seen": "The narrowest format and rounding that explain the answers.",
    "Noise": "Smallest difference between answers that means anything.",
    "Spread of the answers": "Standard deviation over random inputs.",
    "No change beyond": "Inputs larger than this get constant answers.",
    "Rows without a number": "Rows answered with NaN or inf.",
    "Largest inputs answered": "Largest size of inputs that got finite answers.",
    "Shape at small scale": "How the answers change along short lines.",
    "Shape of the values read, at small scale": "How the values before the link change along short lines.",
    "Spread of the values read": "Standard deviation of the values before the link.",
    "Rows whose answers show no value": "Rows whose answers saturate the link.",
    "Largest inputs that show values": "Largest size of inputs whose answers do not saturate the link.",
    # Columns.
    "asked": "Rows that a method asked for.",
    "sent": "Rows that reached the target, repeats included.",
    "replayed": "Rows answered from the transcript, without a query.",
    "queries": "Rows that reached the target, of those allowed.",
    "time": "Wall-clock time.",
    "users' error": "Root mean square change of answers for honest users, relative to the spread of the answers.",
    "labels kept": "Share of honest inputs that keep their label.",
    "directions": "Directions of the input that an attacker still finds.",
    "copy": "The best copy behind this defense.",
    "copy's error": "Root mean square error of that copy against the undefended model.",
}


def explained(names: Iterable[str]) -> list[tuple[str, str]]:
    """The names that have a meaning, once each, in their order."""
    return [(name, MEANINGS[name]) for name in dict.fromkeys(names) if name in MEANINGS]

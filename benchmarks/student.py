"""A network trained on the defended answers of the bundled digits classifier: how close it comes, and what that takes.

Errors on its held-out images are of the model's own values (log-ratios, where answers are probabilities), in units of
their deviation; "random" are inputs drawn like those of the training, where errors are of the answers as given, less
their noise or rounding where that can be told: "<" stands before an upper end.
"""

from __future__ import annotations

import time

import numpy as np

import reluctant as rl
from reluctant.bundled import digits_inputs, digits_model
from reluctant.learning.student import rows_like
from reluctant.learning.student_losses import HeldOutError
from reluctant.numerics import FloatArray

DEFENSES: tuple[tuple[str, ...], ...] = (
    (), ("decimals=3",), ("decimals=2",), ("float16",), ("gaussian=0.01",), ("gaussian=0.1",), ("softmax",),
    ("softmax", "decimals=6"), ("softmax", "decimals=3"), ("softmax", "top=1"), ("labels",),
)  # fmt: skip
STUDENT_ROWS = 40_000
ROWS = (2_500, 10_000, 40_000, 160_000)


def main() -> None:
    copy = rl.open_oracle(digits_model(), precision="float64")
    images = np.load(digits_inputs())
    print("| defense | error, images | same label | error, random | same label | queries | CPU s |")
    print("|---|---|---|---|---|---|---|")
    inputs = rows_like(images, copy.facts.domain, STUDENT_ROWS, np.random.default_rng(0).spawn(1)[0])
    for names in DEFENSES:
        start = time.process_time()
        found = rl.train_student(rl.defend(copy, *names), rows=STUDENT_ROWS, inputs=inputs, rng=0)
        took, held = time.process_time() - start, found.evidence["accuracy"]
        assert found.network is not None
        error, same = beside_model(found, copy.query(images), images)
        own = "" if held.of_copy is None else f"{'< ' * held.is_bound}{number(float(np.sqrt(held.of_copy)))}"
        called = ", ".join(names) or "none"
        columns = (number(error), f"{same:.1%}", own, f"{held.agreement:.1%}", f"{found.queries:,}", f"{took:.1f}")
        print(f"| `{called}` | {' | '.join(columns)} |", flush=True)
    print(
        "\n| queries | float16: error, random | top probability: same label | labels: same label |\n|---|---|---|---|"
    )
    for rows in ROWS:
        told = [train(copy, names, rows) for names in (("float16",), ("softmax", "top=1"), ("labels",))]
        first = number(float(np.sqrt(told[0].of_copy or np.nan)))
        print(f"| {rows:,} | {first} | {told[1].agreement:.1%} | {told[2].agreement:.1%} |", flush=True)


def beside_model(found: rl.Result, true: FloatArray, images: FloatArray) -> tuple[float | None, float]:
    """Root mean square error of its values (log-ratios of probabilities), and the share of equal labels."""
    assert found.network is not None
    values = found.network(images)
    same = float((values.argmax(axis=1) == true.argmax(axis=1)).mean())
    if "labels" in found.evidence:
        return None, same
    if found.evidence["link"] != "identity":
        true, values = true[:, 1:] - true[:, :1], values[:, 1:] - values[:, :1]
    return float(np.sqrt(np.mean(((values - true) / true.std(axis=0)) ** 2))), same


def train(copy: rl.Oracle, names: tuple[str, ...], rows: int) -> HeldOutError:
    found: HeldOutError = rl.train_student(rl.defend(copy, *names), rows=rows, hidden=(64,)).evidence["accuracy"]
    return found


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"

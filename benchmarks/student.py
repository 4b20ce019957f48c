"""A network trained on the defended answers of the bundled digits classifier: how close it comes, and what that takes.

Errors on its held-out images are of the model's own values (log-ratios, where answers are probabilities), in units of
their deviation; "random" are inputs drawn like those of the training, where errors are of the answers as given, less
their noise or rounding where that can be told: "<" stands before an upper end.
"""

from __future__ import annotations

import time

import numpy as np

import reluctant as rl
from reluctant.audit import DefenseResult, try_defense
from reluctant.bundled import digits_inputs, digits_model
from reluctant.learning.student_losses import HeldOutError

DEFENSES: tuple[tuple[str, ...], ...] = (
    (), ("decimals=3",), ("decimals=2",), ("float16",), ("gaussian=0.01",), ("gaussian=0.1",), ("softmax",),
    ("softmax", "decimals=6"), ("softmax", "decimals=3"), ("softmax", "top=1"), ("labels",),
)  # fmt: skip
ROWS = (2_500, 10_000, 40_000, 160_000)


def main() -> None:
    copy = rl.open_oracle(digits_model(), precision="float64")
    images = np.load(digits_inputs())
    print("| defense | error, images | same label | error, random | same label | queries | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for names in DEFENSES:
        start = time.process_time()
        found = try_defense(copy, names, inputs=images, methods=["train"])
        row, took = found.facts(None).trained, time.process_time() - start
        assert row is not None
        seen, below = f"{number(row.error)} | {row.labels_kept:.1%}", "< " * is_bound(found)
        held = f"{below}{number(row.held_out_error)} | {row.held_out_labels:.1%}"
        called = ", ".join(names) or "none"
        print(f"| `{called}` | {seen} | {held} | {row.queries:,} | {took:.1f} |", flush=True)
    print(
        "\n| queries | float16: error, random | top probability: same label | labels: same label |\n|---|---|---|---|"
    )
    for rows in ROWS:
        told = [train(copy, names, rows) for names in (("float16",), ("softmax", "top=1"), ("labels",))]
        error = number(float(np.sqrt(told[0].of_copy or np.nan)))
        print(f"| {rows:,} | {error} | {told[1].agreement:.1%} | {told[2].agreement:.1%} |", flush=True)


def is_bound(found: DefenseResult) -> bool:
    """True if the student's own error is known to be smaller, and not how large it is."""
    return found.trained is not None and bool(found.trained.result.evidence["accuracy"].is_bound)


def train(copy: rl.Oracle, names: tuple[str, ...], rows: int) -> HeldOutError:
    found: HeldOutError = rl.train_student(rl.defend(copy, *names), rows=rows, hidden=(64,)).evidence["accuracy"]
    return found


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"

"""What each defense costs honest users of the bundled digits classifier: all 1797 images, asked plain and defended.

Errors are relative to the deviation of what is answered without the defense: logits, or probabilities where the
defense is about those.
"""

from __future__ import annotations

import numpy as np

import reluctant as rl
from reluctant.bundled import digits_model
from reluctant.errors import require
from reluctant.testing.planted import MOST_INK

VALUES = [
    ["float32"], ["float16"], ["decimals=6"], ["decimals=4"], ["decimals=3"], ["decimals=2"], ["digits=6"],
    ["digits=4"], ["gaussian=1e-6"], ["gaussian=1e-3"], ["gaussian=0.1"], ["gaussian=0.1,fixed"], ["laplace=0.1"],
    ["labels"], ["limit=100000"], ["clip=0:1"],
]  # fmt: skip
PROBABILITIES = [["decimals=6"], ["decimals=3"], ["decimals=2"], ["top=5"], ["top=1"], ["labels"], ["float16"]]


def main() -> None:
    images, truth = require("sklearn.datasets", extra="sklearn", purpose="Digits").load_digits(return_X_y=True)
    images = images / MOST_INK
    plain = rl.open_oracle(digits_model(), precision="float64")
    print(f"{'before':<16}{'defense':<22}{'error rms':>11}{'at most':>10}{'labels kept':>13}{'right':>8}")
    for name, before, defenses in (
        ("logits", plain, VALUES),
        ("probabilities", rl.defend(plain, "softmax"), PROBABILITIES),
    ):
        for defense in defenses:
            after = rl.defend(before, *defense)
            cost = rl.honest_cost(before, after, images)
            right = accuracy(after, images, truth)
            error = f"{cost.rms_error:>11.1e}{cost.max_error:>10.1e}"
            print(f"{name:<16}{' '.join(defense):<22}{error}{cost.agreement:>13.2%}{right:>8.2%}", flush=True)


def accuracy(oracle: rl.Oracle, images: np.ndarray, truth: np.ndarray) -> float:
    answers = oracle.query(images)
    labels = answers[:, 0] if answers.shape[1] == 1 else answers.argmax(axis=1)
    return float(np.mean(labels == truth))

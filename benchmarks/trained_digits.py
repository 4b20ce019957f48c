"""Networks 64-32-16-10 trained on the UCI digits, kept as a file so that benchmarks need no scikit-learn.

    python -m benchmarks.trained_digits                     trains them again (needs scikit-learn)

Seeds of training start at FIRST_SEED; nothing was tuned on these.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.testing.planted import train_digits

FILE = Path(__file__).parent / "results" / "digits-64-32-16-10.npz"
HIDDEN = (32, 16)
FIRST_SEED, NETWORKS = 70_000, 10


def trained_network(number: int) -> ReLUNetwork:
    """One of the ten, with weights of float32."""
    with np.load(FILE) as parts:
        layers = range(len(HIDDEN) + 1)
        weights, biases = ([parts[f"{kind}{layer}"][number] for layer in layers] for kind in "wb")
    return ReLUNetwork([w.astype(np.float64) for w in weights], [b.astype(np.float64) for b in biases])


def main() -> None:
    """Train all and write the file."""
    networks = [train_digits(HIDDEN, FIRST_SEED + number) for number in range(NETWORKS)]
    parts = {}
    for layer in range(len(HIDDEN) + 1):
        parts[f"w{layer}"] = np.array([network.weights[layer] for network in networks], dtype=np.float32)
        parts[f"b{layer}"] = np.array([network.biases[layer] for network in networks], dtype=np.float32)
    np.savez_compressed(FILE, allow_pickle=False, **parts)


if __name__ == "__main__":
    main()

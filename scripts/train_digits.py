"""Train the bundled digits classifier and write it with its card.

    python scripts/train_digits.py

Data: scikit-learn's copy of the UCI handwritten digits (8 × 8 images, pixels divided by 16). One hidden
layer of 32 ReLUs, ten logits, float32 weights. The split, the seed and the accuracy on images that were
not trained on go into the card beside the model.
"""

from __future__ import annotations

import json

import numpy as np
import sklearn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from reluctant.bundled import digits_card, digits_inputs, digits_model
from reluctant.networks import ReLUNetwork

SEED = 0
HIDDEN = 32
PIXEL_MAX = 16.0
TEST_SHARE = 0.25
INPUTS = 100  # held-out images that are kept beside the model


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    images = images / PIXEL_MAX
    split = train_test_split(images, labels, test_size=TEST_SHARE, random_state=SEED, stratify=labels)
    train_x, test_x, train_y, test_y = split
    model = MLPClassifier((HIDDEN,), max_iter=1000, alpha=1e-3, random_state=SEED).fit(train_x, train_y)
    network = ReLUNetwork([w.T for w in model.coefs_], model.intercepts_)
    network.save(digits_model(), dtype="float32")
    stored = ReLUNetwork.load(digits_model())
    np.save(digits_inputs(), test_x[:INPUTS].astype(np.float16))  # sixteenths: exact
    card = {
        "widths": stored.widths,
        "parameters": stored.parameters,
        "data": "UCI handwritten digits as shipped with scikit-learn, pixels in [0, 1]",
        "inputs": f"{INPUTS} held-out images: Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, "
        "UCI Machine Learning Repository, CC BY 4.0",
        "training": f"sklearn {sklearn.__version__} MLPClassifier, seed {SEED}, {len(train_x)} images",
        "accuracy": {
            "train": accuracy(stored, train_x, train_y),
            "held out": accuracy(stored, test_x, test_y),
        },
    }
    digits_card().write_text(json.dumps(card, indent=2) + "\n")
    print(json.dumps(card, indent=2))


def accuracy(network: ReLUNetwork, images: np.ndarray, labels: np.ndarray) -> float:
    return round(float(np.mean(network(images).argmax(axis=1) == labels)), 4)


if __name__ == "__main__":
    main()

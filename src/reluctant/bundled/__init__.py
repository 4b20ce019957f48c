"""The bundled model: a small digits classifier, trained by scripts/train_digits.py."""

from __future__ import annotations

from pathlib import Path

__all__ = ["digits_card", "digits_inputs", "digits_model"]

FOLDER = Path(__file__).parent


def digits_model() -> Path:
    """Path of the bundled 64-32-10 digits classifier (ONNX, float32 weights, ten logits)."""
    return FOLDER / "digits-64-32-10.onnx"


def digits_card() -> Path:
    """Path of its card: data, training, accuracy (JSON, written by the training script)."""
    return FOLDER / "digits-64-32-10.json"


def digits_inputs() -> Path:
    """Path of 100 images that it was not trained on, (100, 64) in [0, 1] (.npy, written by the training script)."""
    return FOLDER / "digits-held-out.npy"

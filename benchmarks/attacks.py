"""One gradient step by questions beside Foolbox's attacks, on the same trained classifier and images.

    pip install '.[dev,peers]'
    python -m benchmarks attacks                   100 test images of digits, pixels from 0 to 1
    HOPSKIPJUMP=1 python -m benchmarks attacks     its label-only attack too (minutes)

Foolbox's DeepFool and PGD are given the weights (gradients by backpropagation); ours only asks. `size` is the median
L2 norm of the change, `over DeepFool` the median and the largest ratio to its change of the same image, `queries`
the most rows an image took (for Foolbox: evaluations of the model, each with a gradient except for HopSkipJump).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import reluctant as rl
from reluctant.papers.experiments.image_classifiers import before_and_after, hit_rate, load_digits

HIDDEN = (32, 16)
SEED = 70_100
IMAGES = 100
BOX = (0.0, 1.0)
PGD_SIZES = np.linspace(0.05, 2.0, 40)
HOPSKIPJUMP_STEPS = 16
HOW_TO_INSTALL = "Foolbox is not installed, so it was not run. To run it: pip install '.[dev,peers]'"


@dataclass(frozen=True)
class Row:
    name: str
    sizes: np.ndarray  # inf where nothing flipped
    queries: int


def main() -> None:
    images = load_digits()
    _, network = before_and_after(images, HIDDEN, SEED)
    chosen = images.test_x[:IMAGES]
    print(f"digits {'-'.join(map(str, network.widths))}, {hit_rate(network, images):.1%} right, {IMAGES} images")
    rows = [*peers(network, chosen), *ours(network, chosen)]
    print(f"{'attack':<34}{'flipped':>9}{'size':>9}{'over DeepFool':>16}{'(max)':>8}{'queries':>10}")
    reference = next((row.sizes for row in rows if row.name == "DeepFool"), None)
    for row in rows:
        print(line(row, reference))


def line(row: Row, reference: np.ndarray | None) -> str:
    ratio = row.sizes / reference if reference is not None else np.full(len(row.sizes), np.nan)
    return (
        f"{row.name:<34}{np.isfinite(row.sizes).mean():>9.1%}{np.median(row.sizes):>9.4f}"
        f"{np.median(ratio):>16.4f}{ratio.max():>8.3f}{row.queries:>10}"
    )


# ---- ours


def ours(network: rl.ReLUNetwork, images: np.ndarray) -> list[Row]:
    copy = rl.extract(rl.open_oracle(network), rng=SEED).raise_for_status().network
    assert copy is not None
    seen = rl.recover_span(rl.open_oracle(network), rng=SEED)
    return [
        flips("ours, one step", network, images),
        flips("ours, three steps", network, images, steps=3),
        flips(f"ours, one step, span of {len(seen.basis)}", network, images, span=seen),
        flips("ours, on a recovered network", network, images, network=copy, steps=3),
    ]


def flips(name: str, target: rl.ReLUNetwork, images: np.ndarray, **how: Any) -> Row:
    found = [rl.flip_sign(rl.open_oracle(target, domain=BOX), x, rng=SEED, **how) for x in images]
    sizes = np.array([flip.size if flip.ok else np.inf for flip in found])
    return Row(name, sizes, max(flip.queries for flip in found))


# ---- Foolbox


def peers(network: rl.ReLUNetwork, images: np.ndarray) -> list[Row]:
    if find_spec("foolbox") is None:
        print(HOW_TO_INSTALL)
        return []
    attacks_of = import_module("foolbox.attacks")
    attacks: dict[str, tuple[Any, list[float] | None]] = {
        "DeepFool": (attacks_of.L2DeepFoolAttack(), None),
        "PGD, smallest of 40 sizes": (attacks_of.L2PGD(), PGD_SIZES.tolist()),
    }
    if os.environ.get("HOPSKIPJUMP"):
        attacks["HopSkipJump (labels)"] = (attacks_of.HopSkipJumpAttack(steps=HOPSKIPJUMP_STEPS), None)
    return [peer(name, *attack, network, images) for name, attack in attacks.items()]


def peer(name: str, attack: Any, sizes: list[float] | None, network: rl.ReLUNetwork, images: np.ndarray) -> Row:
    import torch

    torch.manual_seed(SEED)
    model, counted = torch_model(network)
    target = import_module("foolbox").PyTorchModel(model, bounds=BOX, device="cpu")
    labels = torch.tensor(network(images).argmax(axis=1))
    _, clipped, success = attack(target, torch.tensor(images), labels, epsilons=sizes)
    found = clipped if sizes is not None else [clipped]
    norms = np.array([np.linalg.norm(change.numpy() - images, axis=1) for change in found])
    norms[~np.atleast_2d(success.numpy())] = np.inf
    return Row(name, norms.min(axis=0), counted() // len(images))


def torch_model(network: rl.ReLUNetwork) -> tuple[Any, Callable[[], int]]:
    """The same network in torch, in float64, that counts its rows."""
    import torch

    class Counting(torch.nn.Module):  # type: ignore[misc]  # torch is not read
        def __init__(self) -> None:
            super().__init__()
            self.rows = 0
            self.layers = torch.nn.ModuleList()
            for w, b in zip(network.weights, network.biases, strict=True):
                layer = torch.nn.Linear(w.shape[1], w.shape[0], dtype=torch.float64)
                layer.weight.data, layer.bias.data = torch.tensor(w.copy()), torch.tensor(b.copy())
                self.layers.append(layer)

        def forward(self, x: Any) -> Any:
            self.rows += len(x)
            for layer in self.layers[:-1]:
                x = torch.relu(layer(x))
            return self.layers[-1](x)

    model = Counting().eval()
    return model, lambda: model.rows

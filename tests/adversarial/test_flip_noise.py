"""Flips found on a network, on a target with fresh noise: what noise decides is no flip."""

import numpy as np

import reluctant as rl
from reluctant.adversarial.flip_search import BEYOND_THE_STEP
from reluctant.adversarial.gradient_source import ASKED_AGAIN
from reluctant.testing import planted

NOISE = 1e-2


def noisy(network: rl.ReLUNetwork, size: float, seed: int = 0) -> rl.Oracle:
    rng = np.random.default_rng(seed)
    return rl.open_oracle(lambda x: network(x) + size * rng.standard_normal((len(x), network.outputs)), dim=network.dim)


def flips_of_a_moved_copy(network: rl.ReLUNetwork, rng: np.random.Generator, seed: int) -> list[rl.Flip]:
    (w, a), (b, c) = network.weights, network.biases
    copy = rl.ReLUNetwork([w, a], [b, c + 0.2 * NOISE * rng.standard_normal(network.outputs)])
    oracle = noisy(network, NOISE, seed)
    return [rl.flip_sign(oracle, x, network=copy, rng=seed) for x in rng.standard_normal((10, network.dim))]


def test_a_flip_is_beyond_the_noise(seed: int) -> None:
    """A copy that noise has moved a little ends its step at its own boundary, where noise decides about the target."""
    rng, flipped = np.random.default_rng(seed), 0
    for k in range(4):
        network = planted((8, 16, 3), 100 * k + seed)
        done = [flip for flip in flips_of_a_moved_copy(network, rng, seed) if flip.ok]
        for flip in done:
            before, after = network(np.array([flip.start, flip.x])).argmax(axis=1)
            assert flip.classes == (before, after)
            assert before != after
        flipped += len(done)
    assert flipped >= 10


def test_noise_is_asked_about_once() -> None:
    network = planted((8, 16, 3), 0)
    x = np.random.default_rng(0).standard_normal(8)
    assert rl.flip_sign(noisy(network, 0.0), x, network=network).queries == 2
    flip = rl.flip_sign(noisy(network, NOISE), x, network=network)
    assert flip.rows["confirm"].asked == 3 + ASKED_AGAIN * len(BEYOND_THE_STEP)


def test_noise_that_hides_the_boundary_is_told() -> None:
    network = planted((8, 16, 3), 0)
    x = np.random.default_rng(0).standard_normal(8)
    outcomes = {rl.flip_sign(noisy(network, 30.0, seed), x, network=network).outcome for seed in range(8)}
    assert outcomes <= {rl.Outcome.TOO_NOISY, rl.Outcome.ON_BOUNDARY}
    assert rl.Outcome.TOO_NOISY in outcomes


def test_labels_of_many_classes_flip_on_a_network() -> None:
    """Whole numbers fit few bits, however large: a label of 200 has no rounding."""
    network = planted((6, 12, 3), 0)
    labels = rl.open_oracle(lambda x: 200.0 + network(x).argmax(axis=1), dim=6)
    wide = rl.ReLUNetwork(
        [network.weights[0], np.concatenate([np.zeros((200, 12)), network.weights[1]])],
        [network.biases[0], np.concatenate([np.full(200, -1e3), network.biases[1]])],
    )
    flips = [rl.flip_sign(labels, x, network=wide) for x in np.random.default_rng(0).standard_normal((8, 6))]
    assert sum(flip.ok for flip in flips) > 3
    assert not any(flip.outcome is rl.Outcome.ON_BOUNDARY for flip in flips)


def test_one_hot_labels_are_not_told_of_a_threshold() -> None:
    network = planted((6, 12, 3), 0)
    one_hot = rl.open_oracle(lambda x: np.eye(3)[network(x).argmax(axis=1)], dim=6)
    flip = rl.flip_sign(one_hot, np.random.default_rng(0).standard_normal(6))
    assert flip.outcome is rl.Outcome.PIECEWISE_CONSTANT
    assert not any("threshold" in remedy.options for remedy in flip.diagnosis.remedies)

"""`local_linearity`: exact on networks, close by questions, the law of random networks."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.adversarial import predicted_change
from reluctant.testing import planted

RADII = (0.01, 0.1)


def test_by_questions_along_every_input_equals_by_weights(seed):
    network, x = rl.random_network((80, 80, 80, 1), seed), np.random.default_rng(seed + 1).standard_normal(80)
    known = rl.local_linearity(network, x, radii=RADII, directions=2, rng=seed)
    asked = rl.local_linearity(rl.open_oracle(network), x, radii=RADII, directions=2, probes=None, rng=seed)
    np.testing.assert_allclose(asked.along, known.along, atol=1e-4)


def test_a_few_directions_estimate_it(seed):
    network, x = rl.random_network((300, 300, 300, 1), seed), np.random.default_rng(seed + 1).standard_normal(300)
    known = rl.local_linearity(network, x, radii=RADII, directions=2, rng=seed)
    asked = rl.local_linearity(rl.open_oracle(network), x, radii=RADII, directions=2, probes=64, rng=seed)
    assert asked.along[-1] == pytest.approx(known.along[-1], rel=0.5)
    assert asked.queries == 13 + 1 + (300 + 2) + (1 + len(RADII) * 3) * (64 + 2)


def test_a_random_network_follows_the_law(seed):
    found = []
    for k in range(4):
        network = rl.random_network((500, 500, 500, 1), 10 * seed + k)
        x = np.random.default_rng(1000 + k).standard_normal(500)
        found.append(rl.local_linearity(network, x, radii=(0.03,), directions=16).random ** 2)
    assert np.sqrt(np.mean(found)) == pytest.approx(predicted_change(2, 0.03), rel=0.25)


def test_a_linear_target_never_changes():
    found = rl.local_linearity(rl.ReLUNetwork([np.ones((1, 5))], [np.ones(1)]), np.ones(5))
    assert not found.random.any()
    assert not found.along.any()
    assert found.linear_radius == np.inf


def test_the_linear_radius_is_where_half_has_changed():
    found = rl.LocalLinearity(np.array([0.1, 1.0]), np.array([0.25, 0.75]), np.zeros(2))
    assert found.linear_radius == pytest.approx(np.sqrt(0.1))
    assert rl.LocalLinearity(np.array([0.1]), np.array([0.9]), np.zeros(1)).linear_radius == 0.1


def test_a_box_is_kept(seed):
    network, asked = planted((10, 12, 1), seed), []

    def target(rows):
        asked.append(rows)
        return network(rows)

    found = rl.local_linearity(rl.open_oracle(target, dim=10, domain=(0, 1)), np.full(10, 0.5), radii=(0.1, 9.0))
    assert found.radii[-1] < 2  # as far as the box goes
    every = np.concatenate(asked)
    assert every.min() >= 0
    assert every.max() <= 1


@pytest.mark.parametrize(
    "bad",
    [{"radii": ()}, {"radii": (0.0,)}, {"radii": (np.nan,)}, {"radii": (1.0, 0.1)}, {"directions": 0}, {"probes": 0}],
)
def test_bad_settings_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        rl.local_linearity(planted((4, 5, 1), 0), np.ones(4), **bad)


def test_noise_is_no_change_of_gradient(seed):
    rng = np.random.default_rng(seed)
    target = rl.open_oracle(lambda rows: rows.sum(axis=1) + 1e-3 * rng.standard_normal(len(rows)), dim=30)
    found = rl.local_linearity(target, np.ones(30), directions=8, rng=seed)
    assert found.floor > 0
    assert (found.random <= 2 * found.floor).all()


def test_the_origin_has_no_radius():
    with pytest.raises(ValueError, match="origin"):
        rl.local_linearity(planted((4, 5, 1), 0), np.zeros(4))


def test_a_flat_place_is_refused():
    flat = rl.ReLUNetwork([np.eye(3), np.ones((1, 3))], [np.full(3, -10.0), np.ones(1)])
    with pytest.raises(ValueError, match="flat"):
        rl.local_linearity(flat, np.ones(3))

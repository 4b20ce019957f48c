"""The fit of all parameters in all directions, to random inputs and to what its own checks find wanting.

Answers of a check at four scales and across the creases of both layers join the fit until none is a surprise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reluctant.extraction.deep_few_digits.frame_fit import SURPRISE, CarriedNoise, FittedFrame, across_creases
from reluctant.extraction.deep_few_digits.layers_fit import Layers, Weighed, fit_layers
from reluctant.extraction.few_digits.answer_store import Asked
from reluctant.extraction.method import StageFailed
from reluctant.geometry.lines import whole_space
from reluctant.numerics import FloatArray

LAST_CHI = 2.0
CHECK_RMS = 2.0
LAST_ROUNDS = 6
CHECK_SHARE, FEWEST_CHECKED, MOST_CHECKED = 0.25, 120, 600  # points across the creases of a layer, for a parameter


def fit_everywhere(asked: Asked, fitted: FittedFrame, share: float, span: FloatArray | None = None) -> FittedFrame:
    """All parameters as functions of inputs. Cost: `share` rows a parameter, and up to 2400 for each check.

    span: orthonormal rows of the space that the search was in.
    """
    rng = asked.rng
    share_kept = 4.5 if asked.outputs == 1 else 9.0  # answers for a parameter: outputs of one row tell much the same
    n = int(share * fitted.network.parameters / asked.answers_a_row) + 200
    with asked.view.oracle.stage("last fit"):
        asked.ask(asked.view.scaled(asked.view.sample(rng, n), np.exp(0.4 * rng.standard_normal(n))))
    must, chi = n, np.inf
    for turn in range(LAST_ROUNDS):
        rows, f = asked.everything()
        most = max(int(share_kept * fitted.network.parameters / asked.answers_a_row), 4000)
        if len(rows) > most:
            older = rng.permutation(len(rows) - must)[: max(most - must, 0)]
            kept = np.sort(np.concatenate([older, np.arange(len(rows) - must, len(rows))]))
            rows, f = rows[kept], f[kept]
        answers = Weighed(rows, f, fitted.noise.at(asked, fitted.network, rows, rows))
        enough = 0.0 if turn else 3.0  # answers that were a surprise place their crease, if they may pull
        network = fit_layers(fitted.network, answers, rng, huber=1e3, steps=15, damping=1e-5, enough=enough, span=span)
        network = fit_layers(network, answers, rng, huber=30.0, steps=10, damping=1e-7, span=span)
        fitted = replace(fitted, network=network)
        chi = float(np.sqrt(np.mean(answers.left_by(network) ** 2)))
        groups = _fresh_groups(asked, fitted)
        if all(np.sqrt(np.mean(group**2)) < CHECK_RMS and np.abs(group).max() < SURPRISE for group in groups):
            return replace(fitted, noise=fitted.noise.times(float(np.sqrt(np.mean(np.concatenate(groups) ** 2)))))
        must += sum(map(len, groups))
    if not chi < LAST_CHI:
        raise StageFailed("last fit", "answers are not explained", number=chi, limit=LAST_CHI)
    return fitted


def _fresh_groups(asked: Asked, fitted: FittedFrame) -> list[FloatArray]:
    """What fresh answers at four scales and across creases leave (n, m), in deviations; they join the others."""
    rng, network = asked.rng, fitted.network
    count = int(np.clip(CHECK_SHARE * network.parameters / asked.answers_a_row, FEWEST_CHECKED, MOST_CHECKED))
    view, half = asked.view, count // 2
    places = [view.scaled(view.sample(rng, half), np.full(half, scale)) for scale in (0.5, 1.0, 2.0, 30.0)]
    for layer in range(len(network.hidden)):
        scales = rng.choice([1.0, 1.0, 3.0, 30.0], count)
        rows = view.scaled(view.sample(rng, count), scales)
        places.append(across_creases(asked, fitted.frame, network, rows, layer))
    groups = []
    with asked.view.oracle.stage("last fit"):
        for rows, answers in map(asked.fresh, places):
            asked.keep(rows, answers)
            sd = fitted.noise.at(asked, network, rows, rows)
            groups.append((answers / asked.unit - network(rows)) / sd)
    return groups


CLOSER_SCALE = 10.0  # from one scale to the next, on the way to the scale of use


def fit_nearby(asked: Asked, network: Layers, scale: float, share: float) -> FittedFrame:
    """All parameters at smaller and smaller scales down to that of use. Cost: 0.3 rows a parameter at each scale.

    Seen from afar biases are small; one step all the way would start with too many neurons in the wrong state.
    """
    rng = asked.rng
    n = int(0.3 * network.parameters / asked.answers_a_row) + 200
    while scale > 1:
        with asked.view.oracle.stage("nearby"):
            asked.ask(scale * asked.view.sample(rng, n))
        rows, f = asked.everything()
        answers = Weighed(rows, f, CarriedNoise().at(asked, network, rows, rows))
        network = fit_layers(network, answers, rng, huber=1e3, steps=12, damping=1e-8, enough=2.0)
        scale /= CLOSER_SCALE
    return fit_everywhere(asked, FittedFrame(whole_space(asked.view.dim), network, CarriedNoise()), share)

"""Weights of the first layer in the directions outside the frame, one direction at a time, and the fit in all of them.

A step from a base point of the frame along a new direction changes the values of the first layer by its weights
there, and answers by their sensitivities. Steps end before the nearest crease. Then everything is fitted to random
inputs; answers of the check join the fit until none is a surprise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg

from reluctant.extraction.deep_few_digits.answer_store import Asked
from reluctant.extraction.deep_few_digits.frame_fit import (
    SURPRISE,
    CarriedNoise,
    FittedFrame,
    across_creases,
    random_coordinates,
)
from reluctant.extraction.deep_few_digits.two_layers import TwoLayers, Weighed, fit_two_layers
from reluctant.extraction.method import StageFailed
from reluctant.geometry import Frame
from reluctant.numerics import FloatArray

DIRECTIONS_AT_ONCE = 32
DIRECTION_CHI = 30.0  # of the worst direction: 2 when right, hundreds when base points are wrong
STEPS_SHORTER = (1.0, 0.25, 0.06)  # in directions that are not explained
LAST_CHI = 2.0
CHECK_RMS = 2.0


def extend_to_all(asked: Asked, fitted: FittedFrame) -> FittedFrame:
    """Weights of the first layer in all directions. Cost: 1.5 h + 6 rows a direction."""
    frame, network, k, d = fitted.frame, fitted.network, len(fitted.frame.basis), asked.view.dim
    if k == d:
        return fitted
    directions = frame.new_directions(d - k, asked.rng)
    with asked.view.oracle.stage("extension"):
        y, steps = _base_points(asked, fitted)
        rows, columns, chi = frame.points(y), np.zeros((len(network.b), d - k)), np.full(d - k, np.inf)
        sd = fitted.noise.at(asked, network, y, rows)
        for shorter in STEPS_SHORTER:  # some direction may have a large weight, and steps that cross creases
            open_ = np.flatnonzero(~(chi < DIRECTION_CHI))
            if not len(open_):
                break
            for some in np.split(open_, range(DIRECTIONS_AT_ONCE, len(open_), DIRECTIONS_AT_ONCE)):
                moves = (shorter * steps)[:, None] * directions[some, None]
                f = asked.ask((rows + moves).reshape(-1, d))[0].reshape(len(some), len(y), -1)
                for i, direction in enumerate(some):
                    columns[:, direction], chi[direction] = _column(network, y, shorter * steps, f[i], sd)
    if not chi.max() < DIRECTION_CHI:
        raise StageFailed("extension", "steps are not explained", number=float(chi.max()), limit=DIRECTION_CHI)
    everywhere = replace(network, w=np.column_stack([network.w, columns]))
    return FittedFrame(frame.extended(directions), everywhere, fitted.noise)


def _base_points(asked: Asked, fitted: FittedFrame) -> tuple[FloatArray, FloatArray]:
    """Points of the frame from which steps tell all weights, and the steps: sensitive, and far from creases."""
    drawn, pool, explained = 6000, 3000, 6.0
    network, rng = fitted.network, asked.rng
    h, k, wanted = len(network.b), len(fitted.frame.basis), int(np.ceil(1.5 * len(network.b))) + 6
    y = random_coordinates(asked, fitted.frame, drawn)
    z, z2 = network.states(y)
    slopes, room = network.sensitivities(z, z2), _room(network, z, z2)
    rows = fitted.frame.points(y)
    steps = 0.35 * room * np.sqrt(k)
    sd = fitted.noise.at(asked, network, y, rows).max(axis=1)
    chosen: list[int] = []
    while len(chosen) < wanted:
        along = np.einsum("nmh,m->nh", slopes * (steps / sd)[:, None, None], rng.standard_normal(len(network.e)))
        best = np.setdiff1d(np.argsort(-np.linalg.norm(along, axis=1))[:pool], chosen)
        order = scipy.linalg.qr(along[best].T, mode="economic", pivoting=True)[2]
        chosen += list(best[order[: min(h, wanted - len(chosen))]])
    f, _ = asked.ask(rows[chosen])
    right = np.abs((f - network(y[chosen])) / sd[chosen, None]).max(axis=1) < explained
    kept = np.array(chosen)[right]
    if len(kept) < h:
        raise StageFailed("extension", "base points are not explained", number=len(kept), limit=h)
    return y[kept], steps[kept] * rng.choice([-1.0, 1.0], len(kept))


def _room(network: TwoLayers, z: FloatArray, z2: FloatArray) -> FloatArray:
    """Distance (n,) to the nearest crease."""
    room = (np.abs(z) / np.linalg.norm(network.w, axis=1)).min(axis=1)
    gram = network.w @ network.w.T
    for row, values in zip(network.v, z2.T, strict=True):
        on = (z > 0) * row
        lengths = np.sqrt(np.maximum(np.einsum("nh,nh->n", on @ gram, on), 1e-24))
        room = np.minimum(room, np.abs(values) / lengths)
    return np.asarray(room)


def _column(
    network: TwoLayers, y: FloatArray, steps: FloatArray, f: FloatArray, sd: FloatArray
) -> tuple[FloatArray, float]:
    """Weights (h,) in one direction and what they leave: a robust solution, then with the states that steps reach."""
    rounds, close, closer = 6, 3.0, 5.0
    z0, z20 = network.states(y)
    base, weight = network(y), 1 / sd.ravel()
    matrix = (network.sensitivities(z0, z20) * steps[:, None, None]).reshape(-1, len(network.b)) * weight[:, None]
    right = (f - base).ravel() * weight
    share: FloatArray = np.ones(len(right))
    w: FloatArray = np.zeros(len(network.b))
    for _ in range(rounds):
        w = np.asarray(np.linalg.lstsq(matrix * share[:, None], right * share, rcond=1e-9)[0], dtype=np.float64)
        left = np.abs(matrix @ w - right)
        share = np.sqrt(np.minimum(1.0, close * max(1.0, 1.5 * np.median(left)) / np.maximum(left, 1e-9)))
    chi = np.inf
    for _ in range(rounds):
        z = z0 + steps[:, None] * w
        hidden = np.maximum(z, 0)
        z2 = hidden @ network.v.T + network.c
        reached = np.maximum(z2, 0) @ network.a.T + network.e
        if network.s is not None:
            reached += hidden @ network.s.T
        matrix = (network.sensitivities(z, z2) * steps[:, None, None]).reshape(-1, len(w)) * weight[:, None]
        left = (f - reached).ravel() * weight
        chi = float(np.sqrt(np.mean(left**2)))
        share = np.sqrt(np.minimum(1.0, closer / np.maximum(np.abs(left), 1e-9)))
        change = np.linalg.lstsq(matrix * share[:, None], left * share, rcond=1e-9)[0]
        w = w + change
        if np.abs(change).max() < 1e-7 * np.abs(w).max():
            break
    return w, chi


LAST_ROUNDS = 6
CHECK_SHARE, FEWEST_CHECKED, MOST_CHECKED = 0.25, 120, 600  # points across the creases of a layer, for a parameter


def fit_everywhere(asked: Asked, fitted: FittedFrame, share: float) -> FittedFrame:
    """All parameters, all directions. Cost: `share` rows a parameter, and up to 2400 for each check."""
    frame, rng = fitted.frame, asked.rng
    share_kept = 4.5 if asked.outputs == 1 else 9.0  # answers for a parameter: outputs of one row tell much the same
    n = int(share * fitted.network.parameters / asked.answers_a_row) + 200
    with asked.view.oracle.stage("last fit"):
        asked.ask(asked.view.sample(rng, n) * np.exp(0.4 * rng.standard_normal((n, 1))))
    must, chi = n, np.inf
    for turn in range(LAST_ROUNDS):
        rows, f = asked.everything()
        most = max(int(share_kept * fitted.network.parameters / asked.answers_a_row), 4000)
        if len(rows) > most:
            older = rng.permutation(len(rows) - must)[: max(most - must, 0)]
            kept = np.sort(np.concatenate([older, np.arange(len(rows) - must, len(rows))]))
            rows, f = rows[kept], f[kept]
        y = (rows - frame.origin) @ frame.basis.T
        answers = Weighed(y, f, fitted.noise.at(asked, fitted.network, y, rows))
        enough = 0.0 if turn else 3.0  # answers that were a surprise place their crease, if they may pull
        network = fit_two_layers(fitted.network, answers, rng, huber=1e3, steps=15, damping=1e-5, enough=enough)
        network = fit_two_layers(network, answers, rng, huber=30.0, steps=10, damping=1e-7)
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
    frame, rng = fitted.frame, asked.rng
    count = int(np.clip(CHECK_SHARE * fitted.network.parameters / asked.answers_a_row, FEWEST_CHECKED, MOST_CHECKED))
    places = [scale * asked.view.sample(rng, count // 2) for scale in (0.5, 1.0, 2.0, 30.0)]
    for layer in (0, 1):
        scales = rng.choice([1.0, 1.0, 3.0, 30.0], (count, 1))
        y = (scales * asked.view.sample(rng, count) - frame.origin) @ frame.basis.T
        places.append(frame.points(across_creases(asked, fitted.network, y, layer)))
    groups = []
    with asked.view.oracle.stage("last fit"):
        for rows, answers in map(asked.fresh, places):
            asked.keep(rows, answers)
            y = (rows - frame.origin) @ frame.basis.T
            sd = fitted.noise.at(asked, fitted.network, y, rows)
            groups.append((answers / asked.unit - fitted.network(y)) / sd)
    return groups


CLOSER_SCALE = 10.0  # from one scale to the next, on the way to the scale of use


def fit_nearby(asked: Asked, network: TwoLayers, scale: float, share: float) -> FittedFrame:
    """All parameters at smaller and smaller scales down to that of use. Cost: 0.3 rows a parameter at each scale.

    Seen from afar biases are small; one step all the way would start with too many neurons in the wrong state.
    """
    rng, dim = asked.rng, asked.view.dim
    frame = Frame(np.zeros(dim), np.eye(dim))
    n = int(0.3 * network.parameters / asked.answers_a_row) + 200
    while scale > 1:
        with asked.view.oracle.stage("nearby"):
            asked.ask(scale * asked.view.sample(rng, n))
        rows, f = asked.everything()
        answers = Weighed(rows, f, CarriedNoise().at(asked, network, rows, rows))
        network = fit_two_layers(network, answers, rng, huber=1e3, steps=12, damping=1e-8, enough=2.0)
        scale /= CLOSER_SCALE
    return fit_everywhere(asked, FittedFrame(frame, network, CarriedNoise()), share)

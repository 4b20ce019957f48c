"""Steps for the pictures: the target along a line and on a plane, and the copy's errors by scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluctant.audit.budget import ERROR_POINTS, GRID, LINE_POINTS, SCALES
from reluctant.audit.findings import Findings, Skip
from reluctant.audit.picture_data import ErrorHistogram, FirstLayer, LinePicture, PlanePicture
from reluctant.geometry import Frame
from reluctant.geometry.sections import crossings, polylines
from reluctant.interface.noise import ask
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, as_generator
from reluctant.oracles import Counting

ERROR_EDGES = 10.0 ** np.arange(-18.0, 2.0)
BEYOND = 1.0  # how far a line goes on beyond its two inputs, in units of their distance
MOST_IMAGES = 32
FEWEST_TOLD = 2  # rows that make a picture
OTHER_POINTS = 1_000_003  # added to the seed: errors are measured at points that no method has seen
DIGITS = 6  # of a number that is drawn


def rounded(values: FloatArray, digits: int = DIGITS) -> Any:
    """Numbers with the digits that a picture shows, as tuples."""
    if values.ndim > 1:
        return tuple(rounded(row, digits) for row in values)
    return tuple(float(f"{value:.{digits}g}") for value in values.tolist())


def ask_line(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """The target on the line through two inputs, and where the copy has creases on it."""
    a, b = _distinct(known.given.inputs, 2)
    length = float(np.linalg.norm(b - a))
    section = Frame(a, (b - a)[None] / length)
    beyond = BEYOND if oracle.facts.domain.is_space else 0.0
    low, high = -beyond * length, (1 + beyond) * length
    t = np.linspace(low, high, LINE_POINTS)
    with oracle.stage("line picture", expected=LINE_POINTS):
        answers = ask(oracle, _inside(section.points(t[:, None]), oracle))
    told = _told(answers)
    t, answers = t[told], answers[told]
    creases = None if known.network is None else crossings(section.restricted(known.network), low, high)
    return {
        "line": LinePicture(
            rounded(t / length), rounded(answers), None if creases is None else rounded(creases / length), length
        ),
        **_left_out(known, "line", told),
    }


def ask_plane(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """The target on a square of the plane through three inputs, and the copy's creases in it."""
    section, size = _plane(oracle, known, seed)
    axis = np.linspace(-size, size, GRID)
    x, y = np.meshgrid(axis, axis)
    with oracle.stage("plane picture", expected=GRID**2):
        rows = section.points(np.column_stack([x.ravel(), y.ravel()]))
        answers = ask(oracle, _inside(rows, oracle))
    told = _told(answers)
    several = oracle.outputs > 1 or oracle.facts.reference
    answers = np.clip(answers, answers[told].min(axis=0), answers[told].max(axis=0))  # every place has a value to draw
    scores = np.column_stack([np.zeros(len(answers)), answers]) if oracle.facts.reference else answers
    values = scores.max(axis=1) if several else answers[:, 0]
    creases = [] if known.network is None else polylines(section.restricted(known.network), size)
    return {
        "plane": PlanePicture(
            (-size, -size),
            (size, size),
            rounded(values.reshape(GRID, GRID)),
            tuple(map(tuple, scores.argmax(axis=1).reshape(GRID, GRID).tolist())) if several else None,
            tuple(rounded(points) for _, points in creases),
            tuple(layer + 1 for layer, _ in creases),
        ),
        **_left_out(known, "plane", told),
    }


def measure_errors(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """How far the copy is from the target, at random inputs of three scales."""
    network = known.network
    if network is None:
        raise Skip("copy-apart" if known.apart else "no-copy")
    rng, domain = as_generator(seed + OTHER_POINTS), oracle.facts.domain
    scales = SCALES[:2] if domain.is_box else SCALES
    groups = [domain.sample(rng, ERROR_POINTS, oracle.dim, scale) for scale in scales]
    with oracle.stage("error picture", expected=len(scales) * ERROR_POINTS):
        answers = ask(oracle, np.concatenate(groups))
    told = _told(answers)
    parts = zip(scales, groups, np.split(answers, len(scales)), np.split(told, len(scales)), strict=True)
    errors = tuple(
        _histogram(scale, network(rows[kept]), true[kept]) for scale, rows, true, kept in parts if kept.any()
    )
    return {"errors": errors, **_left_out(known, "errors", told)}


def _told(answers: FloatArray) -> NDArray[np.bool_]:
    """Rows with finite answers: the log-ratio of a class that is certain to the last digit is infinite."""
    told = np.asarray(np.isfinite(answers).all(axis=1))
    if told.sum() < FEWEST_TOLD:
        raise Skip("no-finite-answers")
    return told


def _left_out(known: Findings, picture: str, told: NDArray[np.bool_]) -> dict[str, Any]:
    """How many rows a picture does without."""
    return {} if told.all() else {"left_out": {**known.left_out, picture: int((~told).sum())}}


def _histogram(scale: float, found: FloatArray, true: FloatArray) -> ErrorHistogram:
    """Errors relative to the deviation of the answers at this scale, counted by their power of ten."""
    spread = true.std(axis=0)
    errors = (np.abs(found - true) / np.where(spread > 0, spread, 1.0)).max(axis=1)
    counts, _ = np.histogram(np.clip(errors, ERROR_EDGES[0], ERROR_EDGES[-1]), ERROR_EDGES)
    edges = tuple(ERROR_EDGES.tolist())
    return ErrorHistogram(scale, edges, tuple(counts.tolist()), float(errors.max()), len(errors))


def first_layer(network: ReLUNetwork | None, shape: tuple[int, int] | None) -> FirstLayer | None:
    """Unit weights of the first neurons as images, where inputs are images."""
    if network is None or network.depth < 2:
        return None
    side = int(np.sqrt(network.dim))
    height, width = shape or (side, side)
    if height * width != network.dim or min(height, width) < 2:
        return None
    normals, _ = network.hyperplanes()
    live = np.isfinite(normals).all(axis=1)
    strength = np.linalg.norm(network.weights[1], axis=0) * np.linalg.norm(network.weights[0], axis=1)
    normals, strength = normals[live], strength[live]
    order = np.argsort(-strength, kind="stable")[:MOST_IMAGES]
    return FirstLayer(height, width, tuple(rounded(normals[k], 3) for k in order), len(normals))


def _distinct(inputs: FloatArray, count: int) -> FloatArray:
    """The first inputs that differ from each other."""
    found = np.unique(inputs, axis=0, return_index=True)[1]
    if len(found) < count:
        raise Skip("few-inputs", inputs=count)
    return inputs[np.sort(found)[:count]]


def _plane(oracle: Counting, known: Findings, seed: int) -> tuple[Frame, float]:
    """The plane of three inputs (of two, and any direction, where there are two coordinates), and its half width."""
    domain = oracle.facts.domain
    if oracle.dim < 2:
        raise Skip("one-input")
    a, b, c = _distinct(known.given.inputs, 3)
    origin = a if domain.is_space else domain.interior(as_generator(seed), 1, oracle.dim)[0]
    directions = np.linalg.qr(np.column_stack([b - a, c - a]))[0].T
    size = float(max(np.linalg.norm(b - a), np.linalg.norm(c - a)))
    if not domain.is_space:
        corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]) @ directions * size
        size *= min(1.0, float(domain.room(np.broadcast_to(origin, corners.shape), corners).min()))
    return Frame(origin, directions), size


def _inside(rows: FloatArray, oracle: Counting) -> FloatArray:
    """Rounding must not carry a row over a bound."""
    domain = oracle.facts.domain
    return rows if domain.is_space else np.clip(rows, domain.low, domain.high)

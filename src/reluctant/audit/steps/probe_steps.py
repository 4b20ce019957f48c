"""Steps that probe some inputs: the smallest flip, local linearity, sections by a line and a plane, a copy's errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluctant.adversarial import LocalLinearity, flip_sign, local_linearity, predicted_change
from reluctant.audit.budget import ERROR_POINTS, FLIP_INPUTS, GRID, LINE_POINTS, SCALES
from reluctant.audit.facts import GradientFrom, Linearity, finite
from reluctant.audit.findings import Findings, Skip, skip_where
from reluctant.audit.record import ErrorHistogram, FirstLayerImages, LinePicture, PlanePicture
from reluctant.errors import NoGradient
from reluctant.geometry import Frame
from reluctant.interface.noise import ask
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, as_generator
from reluctant.oracles import Counting
from reluctant.results import Outcome
from reluctant.span import Span

ON_A_LINE = 4001  # points on which changes of side are looked for: more than a page has across


def flip_inputs(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """One gradient step at a few inputs: on the copy where there is one, else with the span, else by questions."""
    network, labels = _flipping_network(known), known.target.of_labels
    if network is None:
        try:
            _skip_without_gradient(known)
        except Skip as reason:  # another attack may flip labels: that nothing was tried settles nothing
            reason.settles &= not labels
            raise
    between = known.target.health is not None and known.target.health.unit and not known.target.linked
    if (known.target.may_be_sigmoids or between) and oracle.outputs == 1 and not labels:
        raise Skip("no-sign", settles=False)
    by: dict[str, Any] = {"span": _usable_span(known)} if network is None else {"network": network}
    return {"flips": tuple(flip_sign(oracle, x, rng=seed, **by) for x in known.given.inputs[:FLIP_INPUTS])}


def _flipping_network(known: Findings) -> ReLUNetwork | None:
    """The copy whose gradients are followed. Labels have none, but a network that gives the same labels has."""
    return known.copy.network if known.target.of_labels and known.copy is not None else known.network


def gradient_from(known: Findings) -> tuple[GradientFrom, int]:
    """The source of the gradient, and the queries that the source had cost before any input was tried."""
    if known.copy is not None and _flipping_network(known) is not None:
        return _copy_used(known), known.copy.queries
    span = _usable_span(known)
    return (GradientFrom.QUERIES, 0) if span is None else (GradientFrom.QUERIES_IN_SPAN, span.queries)


def _copy_used(known: Findings) -> GradientFrom:
    return GradientFrom.TRAINED if known.copy is known.training else GradientFrom.RECOVERED


def _usable_span(known: Findings) -> Span | None:
    return known.span if known.span is not None and known.span.ok and known.span.rank else None


def measure_linearity(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """On the copy, at a few inputs and for nothing; else at one input by questions."""
    _skip_without_gradient(known)
    starts, network = [x for x in known.given.inputs if x.any()], known.network
    if not starts:
        raise Skip("only-the-origin")
    if network is None:
        try:
            return {"linearity": _means([local_linearity(oracle, starts[0], rng=seed)], GradientFrom.QUERIES, None)}
        except NoGradient as error:
            raise Skip("flat-target") from error
    sloped = [x for x in starts[:FLIP_INPUTS] if np.abs(network.gradients(x[None])).max() > 0]
    found = [local_linearity(network, x, rng=seed) for x in sloped]
    if not found:
        raise Skip("flat-network")
    return {"linearity": _means(found, _copy_used(known), network.depth - 1)}


def _skip_without_gradient(known: Findings) -> None:
    refused = (Outcome.CONSTANT, Outcome.NON_FINITE, Outcome.PIECEWISE_CONSTANT)
    skip_where(known, *refused, missing="gradient")


def _means(found: list[LocalLinearity], by: GradientFrom, hidden: int | None) -> Linearity:
    """Means over the inputs, beside what a random network of this depth would give."""
    first = found[0]
    random, along = (np.mean([getattr(each, name) for each in found], axis=0) for name in ("random", "along"))
    return Linearity(
        tuple(first.radii.tolist()), tuple(map(finite, random)), tuple(map(finite, along)), finite(first.floor),
        finite(np.median([each.linear_radius for each in found])),
        finite(np.median([each.linear_radius_along for each in found])), sum(each.queries for each in found),
        len(found), by, None if hidden is None else tuple(predicted_change(hidden, first.radii).tolist()),
    )  # fmt: skip


# ---- pictures

ERROR_EDGES = 10.0 ** np.arange(-18.0, 2.0)
BEYOND = 1.0  # how far a line goes on beyond its two inputs, in units of their distance
MOST_IMAGES = 32
FEWEST_ROWS = 2  # rows that make a picture
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
        answers = ask(oracle, oracle.facts.domain.nearest(section.points(t[:, None])))
    finite = _finite_rows(answers)
    t, answers = t[finite], answers[finite]
    creases = None if known.network is None else crossings(section.restricted(known.network), low, high)
    return {
        "line": LinePicture(
            rounded(t / length), rounded(answers), None if creases is None else rounded(creases / length), length
        ),
        **_left_out(known, "line", finite),
    }


def ask_plane(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """The target on a square of the plane through three inputs, and the copy's creases in it."""
    section, size = _plane(oracle, known, seed)
    axis = np.linspace(-size, size, GRID)
    x, y = np.meshgrid(axis, axis)
    with oracle.stage("plane picture", expected=GRID**2):
        rows = section.points(np.column_stack([x.ravel(), y.ravel()]))
        answers = ask(oracle, oracle.facts.domain.nearest(rows))
    finite = _finite_rows(answers)
    several = oracle.outputs > 1 or oracle.facts.reference
    low, high = answers[finite].min(axis=0), answers[finite].max(axis=0)
    answers = np.clip(answers, low, high)  # every place has a value to draw
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
        **_left_out(known, "plane", finite),
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
    finite = _finite_rows(answers)
    parts = zip(scales, groups, np.split(answers, len(scales)), np.split(finite, len(scales)), strict=True)
    errors = tuple(
        _histogram(scale, network(rows[kept]), true[kept]) for scale, rows, true, kept in parts if kept.any()
    )
    return {"errors": errors, **_left_out(known, "errors", finite)}


def _finite_rows(answers: FloatArray) -> NDArray[np.bool_]:
    """Rows with finite answers: the log-ratio of a class that is certain to the last digit is infinite."""
    finite = np.asarray(np.isfinite(answers).all(axis=1))
    if finite.sum() < FEWEST_ROWS:
        raise Skip("no-finite-answers")
    return finite


def _left_out(known: Findings, picture: str, finite: NDArray[np.bool_]) -> dict[str, Any]:
    """How many rows a picture does without."""
    return {} if finite.all() else {"left_out": {**known.left_out, picture: int((~finite).sum())}}


def _histogram(scale: float, found: FloatArray, true: FloatArray) -> ErrorHistogram:
    """Errors relative to the deviation of the answers at this scale, counted by their power of ten."""
    spread = true.std(axis=0)
    errors = (np.abs(found - true) / np.where(spread > 0, spread, 1.0)).max(axis=1)
    counts, _ = np.histogram(np.clip(errors, ERROR_EDGES[0], ERROR_EDGES[-1]), ERROR_EDGES)
    edges = tuple(ERROR_EDGES.tolist())
    return ErrorHistogram(scale, edges, tuple(counts.tolist()), float(errors.max()), len(errors))


def first_layer(network: ReLUNetwork | None, shape: tuple[int, int] | None) -> FirstLayerImages | None:
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
    return FirstLayerImages(height, width, tuple(rounded(normals[k], 3) for k in order), len(normals))


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


# ---- sections of a network


def crossings(network: ReLUNetwork, low: float, high: float, samples: int = ON_A_LINE) -> FloatArray:
    """Positions in which a network of one input has a neuron that changes side, all layers."""
    t = np.linspace(low, high, samples)
    found = []
    for values in network.preactivations(t[:, None]):
        i, j = np.nonzero((values[:-1] > 0) != (values[1:] > 0))
        a, b = values[i, j], values[i + 1, j]
        found.append(t[i] + (t[1] - t[0]) * a / (a - b))
    return np.sort(np.concatenate([*found, np.empty(0)]))


def polylines(network: ReLUNetwork, size: float) -> list[tuple[int, FloatArray]]:
    """Creases of a network of two inputs in the square of this half width: (layer, points (n, 2)) of each."""
    fine = 121  # points a side of the grid on which deeper creases are followed
    axis = np.linspace(-size, size, fine)
    x, y = np.meshgrid(axis, axis)
    layers = network.preactivations(np.column_stack([x.ravel(), y.ravel()]))
    return [
        (layer, _straightened(points))
        for layer, values in enumerate(layers)
        for neuron in values.T
        for points in _chains(*_segments(neuron.reshape(fine, fine), axis))
    ]


def _segments(values: FloatArray, axis: FloatArray) -> tuple[dict[int, FloatArray], list[tuple[int, int]]]:
    """Where the zero set crosses the edges of the grid (by number), and which crossings each square joins."""
    n, active = len(axis), values > 0
    points: dict[int, FloatArray] = {}
    squares: dict[int, list[int]] = {}
    for across in (True, False):  # edges to the right, then edges upward
        a, b = (values[:, :-1], values[:, 1:]) if across else (values[:-1], values[1:])
        on_a, on_b = (active[:, :-1], active[:, 1:]) if across else (active[:-1], active[1:])
        for i, j in np.argwhere(on_a != on_b).tolist():
            share = float(a[i, j] / (a[i, j] - b[i, j]))
            edge, step = 2 * (i * n + j) + (not across), axis[1] - axis[0]
            points[edge] = np.array([axis[j] + share * step * across, axis[i] + share * step * (not across)])
            beside = ((i, j), (i - 1, j)) if across else ((i, j), (i, j - 1))
            for row, column in beside:
                if 0 <= row < n - 1 and 0 <= column < n - 1:
                    squares.setdefault(row * n + column, []).append(edge)
    pairs = [(edges[k], edges[k + 1]) for edges in squares.values() for k in range(0, len(edges) - 1, 2)]
    return points, pairs


def _chains(points: dict[int, FloatArray], pairs: list[tuple[int, int]]) -> list[FloatArray]:
    """Join the pairs into as few lines as there are."""
    beside: dict[int, list[int]] = {}
    for a, b in pairs:
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    ends = sorted(beside, key=lambda edge: len(beside[edge]))  # open ends first, then closed curves
    chains = []
    for start in ends:
        chain = [start]
        while beside[chain[-1]]:
            following = beside[chain[-1]].pop()
            beside[following].remove(chain[-1])
            chain.append(following)
        if len(chain) > 1:
            chains.append(np.array([points[edge] for edge in chain]))
    return chains


def _straightened(points: FloatArray) -> FloatArray:
    """The line without the points in which it does not bend."""
    straight = 1e-3  # sine of the angle below which a crease has not bent
    if len(points) < 3:
        return points
    before, after = points[1:-1] - points[:-2], points[2:] - points[1:-1]
    turn = np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0])
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    return points[np.concatenate([[True], turn > straight * lengths, [True]])]

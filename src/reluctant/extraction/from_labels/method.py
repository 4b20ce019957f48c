"""`FromLabels`: a network with one hidden layer, or two, from labels alone.

First look, then a model of the boundary in a flat of a few dimensions. Of two labels: one facet, and neuron after
neuron peeled from it. Of more: walks over many facets, and neurons from their bends. Then all other directions by
linear equations, what the flat did not show, and verification by labels.

Labels tell a network up to a common positive scale and a function added to all classes. A crease that never meets the
boundary is part of the affine term. In the units of the search every hidden neuron has weights of norm one, the output
weights together too, and several classes have sum zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import InvalidInput
from reluctant.extraction.depth_three.first_layer import FirstLayer
from reluctant.extraction.depth_three.method import compose, first_layer_alone, peel
from reluctant.extraction.from_labels.averages import averaged
from reluctant.extraction.from_labels.bent_model import BentModel, Draw
from reluctant.extraction.from_labels.class_model import ClassModel
from reluctant.extraction.from_labels.class_search import class_model
from reluctant.extraction.from_labels.extension import LONG_STEPS, Extension
from reluctant.extraction.from_labels.first_facet import first_facet
from reluctant.extraction.from_labels.flat import Flat
from reluctant.extraction.from_labels.joint_polish import Certainty, LocatedPoints
from reluctant.extraction.from_labels.layer_creases import LAYER_FLAT, LayerSearch, OneHiddenLayer
from reluctant.extraction.from_labels.missed_creases import NoCorner, Peeling, sharpened
from reluctant.extraction.method import ComparedCandidate, Method, StageFailed, check_settings
from reluctant.extraction.orientation import orient
from reluctant.geometry import DistanceNoise
from reluctant.geometry.boundary import Boundary, LabelField, boundary_resolution, only_labels
from reluctant.geometry.lines import BoolArray
from reluctant.messages import Diagnosis, Notes
from reluctant.messages.catalogue import SPAN_FROM_LABELS, TRAIN
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, one_blas_thread
from reluctant.oracles import Counting
from reluctant.results import Outcome
from reluctant.verification.label_check import LabelVerification, check_labels

TWO = 2  # labels
TOPS = 20  # networks above a first layer that are looked for, each in another flat
DEEP_CHECK = (800, 4096)  # boundary points, inputs: a neuron of a deeper layer bends a small share of the boundary
DEEP_CONFIRMED = (8000, 16384)  # the same once more, of a network that passed
NOISY_POINTS = 8  # times as many boundary points: with few digits each point is near the limit
FLATS = 2  # in which one hidden layer is looked for
NOISY_FLATS = 3  # of two labels with few digits: a facet that is small beside its flicker spoils a flat
FACETS = 3  # of a flat from which neurons are looked for, where the creases around one do not meet
FEWEST_INPUTS = 5  # of a flat in which bends on one hyperplane differ from others
CLASS_FLAT = 6  # dimensions in which bends of one neuron seldom look like those of others
WEAK, NOISY_WEAK = 1e-9, 1e3  # error of a neuron's direction from which a flat does not show it well; in resolutions
OFFSETS = ((1e-9, 32.0), (1e-6, 64.0), (4e-12, 1.0))  # fine, coarse, exact: of a typical input; and in resolutions


@dataclass(frozen=True)
class FromLabels(Method):
    """Extraction of f(x) = a·max(W x + b, 0) + s·x + c from labels alone: its sign, or the largest of several outputs.

    Arguments:
        classes: number of different labels. None counts them.
        flat: dimensions of the random subspace in which the first model is built.
        bits: a crossing is located to 2^-bits of a typical input.
        hidden_layers: most hidden layers to search for behind two labels.
        boundary_error: largest error of the boundary, in typical inputs, that passes verification.
    """

    reads_labels: ClassVar[bool] = True

    classes: int | None = None
    flat: int = 8
    bits: int = 46
    hidden_layers: int = 2
    boundary_error: float = 1e-6

    def __post_init__(self) -> None:
        check_settings(self)

    def run(
        self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]
    ) -> ComparedCandidate:
        """One attempt; raises StageFailed where it gets stuck."""
        with one_blas_thread():
            return self.search(only_labels(oracle), noise, rng, keep)

    def search(
        self, labels: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None],
        inputs: Draw | None = None,
    ) -> ComparedCandidate:  # fmt: skip
        """The network of a target that answers labels alone; `inputs` draws typical rows that are not Gaussian."""
        seen, failed, noisy = look(labels, self.classes, rng), 0, 0
        while True:
            space = replace(seen.space(labels, max(2.0**-self.bits, seen.resolution), rng), inputs=inputs)
            deeper = self.hidden_layers > 1 and seen.may_be_deeper(labels)
            try:
                found = self.checked(labels, self.network(labels, space, seen, keep), seen, rng)
                if not deeper or found.verification.ok:
                    return found
            except NewLabel as new:  # again, through inputs of it
                seen = seen.with_inputs(new.rows, new.labels, self.classes)
                continue
            except StageFailed as failure:
                try:
                    seen = self.flickering(labels, seen, failure, rng)
                    continue
                except StageFailed:
                    noisy += seen.resolution > COARSE and len(seen.names) == TWO
                    if failure.outcome is None and 0 < noisy < NOISY_FLATS:
                        continue
                    if failure.outcome is not None or not deeper:
                        raise
            failed += 1
            try:
                return self.deeper(labels, space, seen, noise, rng, keep)
            except OneHiddenLayer:  # another flat may show what one does not
                if failed == FLATS:
                    raise

    def checked(
        self, labels: Counting, network: ReLUNetwork, seen: FirstLabels, rng: np.random.Generator,
        points: int = 32, inputs: int = 256,
    ) -> ComparedCandidate:  # fmt: skip
        """The network with its verification by labels, at so many boundary points and inputs of each of two scales."""
        points *= NOISY_POINTS if seen.resolution > COARSE else 1
        check = check_labels(
            labels, network, lambda n: seen.draw(n, rng), seen.size, seen.class_of,
            tol=max(self.boundary_error, OWN_RESOLUTION * seen.resolution), finest=4 * seen.resolution,
            points=points, inputs=inputs,
        )  # fmt: skip
        return ComparedCandidate(network, limits=LIMITS, verification=check)

    def deeper(
        self, labels: Counting, space: Flat, seen: FirstLabels, noise: DistanceNoise, rng: np.random.Generator,
        keep: Callable[[ReLUNetwork], None],
    ) -> ComparedCandidate:  # fmt: skip
        """A network of more hidden layers: the first, and those above it on the orthant of its hidden values."""
        with labels.stage("layer"):
            layer = LayerSearch.of(space).run(seen.flat(space, min(LAYER_FLAT, labels.dim)))
        known = first_layer_alone(layer, 1)
        keep(known)
        diagnosis = Diagnosis("first-layer-from-labels", {"neurons": len(layer)}, (TRAIN,))
        above, peeled = replace(self, hidden_layers=self.hidden_layers - 1), peel(labels, layer)
        last = StageFailed("top", "no network above the first layer", number=0, limit=1)
        for _ in range(TOPS):  # another flat may show what one does not
            try:
                top = above.search(peeled, noise, rng, lambda part: None, hidden_inputs(layer, seen, rng))
                found = self.checked(labels, compose(layer, top.network), seen, rng, *DEEP_CHECK)
                if found.verification.ok:  # many fail: the dear check comes last
                    found = self.checked(labels, found.network, seen, rng, *DEEP_CONFIRMED)
                check = found.verification
                if not isinstance(check, LabelVerification) or check.ok:
                    return found
                last = StageFailed("verify", "labels beside the boundary are wrong", number=check.wrong, limit=0)
            except StageFailed as failure:
                last = failure
        raise StageFailed(
            last.stage, f"above the first layer: {last.reason}", number=last.number, limit=last.limit,
            partial=known, outcome=Outcome.PARTIAL, diagnosis=diagnosis,
        ) from last  # fmt: skip

    def flickering(
        self, labels: Counting, seen: FirstLabels, failure: StageFailed, rng: np.random.Generator
    ) -> FirstLabels:
        """What was seen, with a worse resolution that explains a failure: a few points may not have shown it."""
        much_worse = 8.0
        if failure.outcome is not None:
            raise failure
        with labels.stage("look"):
            again = seen.measured(labels, MEASURED_AGAIN, rng)
        _refuse_flicker(again)
        if again.resolution < much_worse * max(seen.resolution, COARSE):
            raise failure
        return again

    def network(
        self, labels: Counting, space: Flat, seen: FirstLabels, keep: Callable[[ReLUNetwork], None]
    ) -> ReLUNetwork:
        """A network whose boundary holds wherever it was asked; of one output for two labels, else one for each."""
        if len(seen.names) == TWO:
            return as_network(self.whole_model(labels, space, seen, keep))
        flat = seen.class_flat(space, min(CLASS_FLAT, labels.dim))
        return network_of_classes(class_model(labels, space, flat, len(seen.names)))

    def whole_model(
        self, labels: Counting, space: Flat, seen: FirstLabels, keep: Callable[[ReLUNetwork], None]
    ) -> BentModel:
        """A model of the whole space whose boundary holds wherever it was asked."""
        fine, coarse, exact = (max(least, times * seen.resolution) for least, times in OFFSETS)
        flat = seen.flat(space, min(self.flat, labels.dim))
        for others in reversed(range(FACETS)):
            with labels.stage("facet"):
                model, located = first_facet(flat)
            search = Peeling(flat, located, located.points[:1], offset=coarse, elsewhere=others > 0)
            try:
                with labels.stage("peel"):
                    model = search.peel(model)
                break
            except NoCorner:
                continue
        with labels.stage("polish"):
            model = sharpened(search, model, exact * flat.typical)
        search = replace(search, offset=fine)
        with labels.stage("peel"):
            model = search.peel(model)
        with labels.stage("polish"):
            model = sharpened(search, model, exact * flat.typical)
        known, sides = _without_weak(model, search.located, max(WEAK, NOISY_WEAK * seen.resolution))
        with labels.stage("extend"):
            room = _room_of_weak(model, search.located.points, sides, max(LONG_STEPS) * flat.typical)
            extension = Extension.of(
                flat, ClassModel.of_two(known), lambda at: model_sides(model, at.points, sides, room)
            )
            whole = extension.run().second()
        keep(as_network(whole))
        right = search.located.points[model_sides(model, search.located.points, sides)]
        good = flat.rows(right[:1])
        rest = Peeling(space, LocatedPoints.none(labels.dim), good, offset=10 * fine, whole=False)
        with labels.stage("polish"):
            whole = averaged(space, whole, 10 * fine * space.typical) if flat.few_digits else whole
        with labels.stage("hidden"):
            found = rest.peel(whole)
        with labels.stage("polish"):
            return averaged(space, found, 10 * fine * space.typical) if flat.few_digits else found


LIMITS = Notes((Diagnosis("scale-of-labels"),))


def _without_weak(model: BentModel, located: LocatedPoints, worst: float) -> tuple[BentModel, dict[int, float]]:
    """The model without neurons that the flat shows badly, and the sides {neuron: sign} on which it is still right.

    Where they bend the boundary of the whole space they are found again.
    """
    sides: dict[int, float] = {}
    errors = Certainty.of(model, located).directions(model.width, model.dim)
    weak = np.flatnonzero(errors > worst) if model.width > 1 else ()  # a crease alone leaves its direction open
    known = model
    for neuron in sorted(weak, reverse=True):
        positive = model.preactivations(located.points)[:, neuron] > 0
        sides[int(neuron)] = 1.0 if 2 * positive.sum() > len(positive) else -1.0
        kept = located.points[positive == (sides[int(neuron)] > 0)][0]
        known = known.without(int(neuron), kept)
    return known, sides


def _room_of_weak(model: BentModel, y: FloatArray, sides: dict[int, float], farthest: float) -> float:
    """How far boundary points can stay from creases that are left out, which move as a step leaves the flat.

    As far as the longest step, or as half of these points (n, r) do.
    """
    z = np.abs(model.preactivations(y[model_sides(model, y, sides)])[:, list(sides)])
    return float(np.median(z.min(axis=1, initial=farthest))) if z.size else 0.0


def model_sides(model: BentModel, y: FloatArray, sides: dict[int, float], room: float = 0.0) -> BoolArray:
    """Which points (n, r) lie on these sides of creases, so far from them."""
    z = model.preactivations(y)
    return np.all([z[:, neuron] * side > room for neuron, side in sides.items()] or [np.full(len(y), True)], axis=0)


def as_network(model: BentModel) -> ReLUNetwork:
    """The model as a network of one output, with the scales that `FromLabels` states; without skip where it can be."""
    if not model.width:
        size = float(np.linalg.norm(model.slope)) or 1.0
        return ReLUNetwork([model.slope[None] / size], [np.array([model.level / size])])
    skip = model.slope - model.bends @ model.directions
    level = model.level - model.bends @ model.offsets
    size = 2 * float(np.linalg.norm(model.bends))
    network = ReLUNetwork(
        [model.directions, 2 * model.bends[None] / size], [model.offsets, np.array([level / size])], skip[None] / size
    )
    return orient(network)


def network_of_classes(model: ClassModel) -> ReLUNetwork:
    """The model as a network with an output for each class, in the scales that `FromLabels` states."""
    model = model.centred()
    size = 2 * float(np.linalg.norm(model.bends)) if model.width else float(np.linalg.norm(model.slopes))
    size = size or 1.0
    if not model.width:
        return ReLUNetwork([model.slopes / size], [model.levels / size])
    skip = model.slopes - model.bends @ model.directions
    levels = model.levels - model.bends @ model.offsets
    network = ReLUNetwork([model.directions, 2 * model.bends / size], [model.offsets, levels / size], skip / size)
    return orient(network)


class NewLabel(StageFailed):
    """Inputs (n, d) with labels (n,) that none of the first inputs has."""

    def __init__(self, rows: FloatArray, labels: FloatArray) -> None:
        super().__init__("look", "labels that the first inputs did not show", number=len(rows), limit=0)
        self.rows, self.labels = rows, labels


@dataclass(frozen=True)
class FirstLabels:
    """Random inputs of a domain with their labels: what labels there are, and a place between two of them."""

    points: FloatArray  # (n, d)
    labels: FloatArray  # (n,)
    names: FloatArray  # (m,): the different labels, in order
    scale: float  # of one coordinate
    resolution: float  # of a crossing, in typical inputs
    domain: Domain = field(default_factory=Domain)

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Random inputs (n, d)."""
        return typical_inputs(self.domain, rng, n, self.points.shape[1], self.scale)

    @property
    def centre(self) -> FloatArray:
        """The middle (d,) of all inputs."""
        dim = self.points.shape[1]
        if not self.domain.is_box:
            return np.zeros(dim) if self.domain.is_space else np.asarray(np.median(self.points, axis=0))
        return np.broadcast_to((np.asarray(self.domain.low) + self.domain.high) / 2, dim)

    @property
    def size(self) -> float:
        """Norm of a typical input."""
        return self.scale * float(np.sqrt(self.points.shape[1]))

    def may_be_deeper(self, labels: Counting) -> bool:
        """Whether more hidden layers may be looked for: of two labels with all their digits."""
        enough = labels.dim >= FEWEST_INPUTS and self.resolution <= COARSE
        return enough and len(self.names) == TWO and not self.domain.is_box

    def class_of(self, answers: FloatArray) -> np.ndarray:
        """The number of each label among the names, -1 for any other."""
        place = np.minimum(np.searchsorted(self.names, answers[:, 0]), len(self.names) - 1)
        return np.where(self.names[place] == answers[:, 0], place, -1)

    @property
    def common(self) -> FloatArray:
        """The two labels that most inputs have, in order."""
        names, counts = np.unique(self.labels, return_counts=True)
        return np.sort(names[np.argsort(-counts, kind="stable")[:TWO]])

    def measured(self, labels: Counting, points: int, rng: np.random.Generator) -> FirstLabels:
        """With the resolution at so many boundary points. Cost: about 110 rows each."""
        low, high = (self.points[self.labels == name] for name in self.common)
        first, second = (some[rng.integers(len(some), size=points)] for some in (low, high))
        field = LabelField(labels.query, labels.dim, labels.facts.domain, self.scale)
        boundary = Boundary.between(labels.query, first, second, np.full(points, self.common[0]), 1e-3 * self.size)
        return replace(self, resolution=boundary_resolution(field, boundary, labels.facts.dtype, rng) / self.size)

    def with_inputs(self, rows: FloatArray, labels: FloatArray, classes: int | None) -> FirstLabels:
        """With inputs whose labels were not seen before."""
        points, found = np.concatenate([self.points, rows]), np.append(self.labels, labels)
        names = np.unique(found)
        if classes is not None and len(names) > classes:
            raise InvalidInput.about("classes", got=f"{len(names)} different labels", expected=f"{classes}")
        return replace(self, points=points, labels=found, names=names)

    def space(self, labels: Counting, finest: float, rng: np.random.Generator) -> Flat:
        """All of space."""

        def ask(rows: FloatArray) -> FloatArray:
            answers = labels.query(rows)
            classes = self.class_of(answers)
            if classes.min(initial=0) < 0:
                raise NewLabel(rows[classes < 0], answers[classes < 0, 0])
            return classes[:, None].astype(float)

        return Flat(ask, self.centre, None, self.size, finest * self.size, rng, self.domain)

    def flat(self, space: Flat, dim: int) -> Flat:
        """A random flat through a boundary point between two of the inputs."""
        low, high = (self.points[self.labels == name] for name in self.common)
        first, second = low[space.rng.integers(len(low))], high[space.rng.integers(len(high))]
        middle = Boundary.between(space.ask, first[None], second[None], np.zeros(1), 1e-3 * self.size).points[0]
        if not self.domain.is_space:
            middle, first, second = self.near_the_centre(space)
        random = space.rng.standard_normal((len(first), dim - 1))
        basis = np.linalg.qr(np.column_stack([second - first, random]))[0].T
        return replace(space, origin=middle, basis=basis)

    def near_the_centre(self, space: Flat) -> tuple[FloatArray, FloatArray, FloatArray]:
        """A boundary point near the centre of the domain, where there is room, and the ends of a segment across it."""
        rays, here = 24, space.ask(self.centre[None])[:, 0]
        others = self.points[self.class_of(self.labels[:, None]) != here]
        others = others[space.rng.permutation(len(others))[:rays]]
        centres = np.broadcast_to(self.centre, others.shape)
        found = Boundary.between(space.ask, centres, others, np.full(len(others), here), 1e-3 * self.size).points
        nearest = int(np.linalg.norm(found - self.centre, axis=1).argmin())
        return found[nearest], self.centre, others[nearest]

    def class_flat(self, space: Flat, dim: int) -> Flat:
        """A flat through inputs of as many classes as it has room for, the rarest first."""
        names, counts = np.unique(self.labels, return_counts=True)
        rarest = names[np.argsort(counts, kind="stable")]
        chosen = [self.points[space.rng.choice(np.flatnonzero(self.labels == name))] for name in rarest[:dim]]
        random = space.rng.standard_normal((len(chosen[0]), dim))
        origin = (np.mean(chosen, axis=0) + self.centre) / TWO  # nearer to the middle of all inputs
        basis = np.linalg.qr(np.column_stack([*(point - origin for point in chosen), random]))[0][:, :dim].T
        return replace(space, origin=origin, basis=basis)


def hidden_inputs(layer: FirstLayer, seen: FirstLabels, rng: np.random.Generator) -> Draw:
    """Draws hidden values (n, k) of random inputs of two scales, with room for steps where they are 0."""
    room, scales = 0.02, (1.0, 3.0)

    def draw(n: int) -> FloatArray:
        rows = seen.draw(n, rng) * rng.choice(scales, (n, 1))
        hidden = np.maximum(rows @ layer.weights.T + layer.biases, 0.0)
        return np.asarray(hidden + room * seen.scale * np.abs(rng.standard_normal(hidden.shape)))

    return draw


def typical_inputs(domain: Domain, rng: np.random.Generator, n: int, dim: int, scale: float) -> FloatArray:
    """Random inputs (n, d): Gaussian of this scale, uniform in all of a box."""
    return domain.sample(rng, n, dim, 1.0 if domain.is_box else scale)


MORE = 24  # inputs a class at each of two scales, for classes that are rare, where there are more than two
BLOCKS = ((64, 1.0), (448, 1.0), (512, 10.0), (1024, 0.1))  # inputs, scale: until labels differ
ASKED_AGAIN = 2  # times that the first inputs are asked again: labels must keep their word
OWN_RESOLUTION = 16.0  # resolutions that the boundary may be off where that is more than the error asked for
MEASURED, MEASURED_AGAIN = 3, 16  # boundary points at which the resolution is measured, and again after a failure
COARSE, TOO_COARSE = 1e-11, 1e-5  # resolution, in typical inputs: few digits, as of float32; too few


def look(labels: Counting, classes: int | None, rng: np.random.Generator) -> FirstLabels:
    """The first look at labels. Cost: about 500 rows; 2048 for labels that never change.

    StageFailed with the outcome where there is one label alone, labels change, or flicker beside their boundary.
    """
    with labels.stage("look"):
        for count, scale in BLOCKS:
            points = typical_inputs(labels.facts.domain, rng, count, labels.dim, scale)
            found = labels.query(points)[:, 0]
            names = np.unique(found)
            if len(names) > 1:
                break
        else:
            raise StageFailed("look", "one label alone", number=1, limit=2, outcome=Outcome.ONE_LABEL)
        domain = labels.facts.domain
        if domain.is_box:
            scale = float(np.median(np.subtract(domain.high, domain.low))) / np.sqrt(12)  # of uniform inputs
        seen = FirstLabels(points, found, names, scale, 0.0, domain).with_inputs(points[:0], found[:0], classes)
        if len(names) > TWO:
            more = np.concatenate([
                typical_inputs(domain, rng, MORE * len(names), labels.dim, times * scale) for times in (1.0, 3.0)
            ])  # fmt: skip
            seen = seen.with_inputs(more, labels.query(more)[:, 0], classes)
        again = labels.query(np.tile(points[:64], (ASKED_AGAIN, 1)))[:, 0].reshape(ASKED_AGAIN, -1)
        changed = int((again != found[:64]).any(axis=0).sum())
        seen = seen.measured(labels, MEASURED, rng)
        if seen.resolution > COARSE:
            seen = seen.measured(labels, MEASURED_AGAIN, rng)
    if changed:
        raise StageFailed(
            "look", "labels change when asked again", number=changed, limit=0,
            outcome=Outcome.TOO_NOISY, diagnosis=Diagnosis("labels-changed", {"changed": changed}, (TRAIN,)),
        )  # fmt: skip
    _refuse_flicker(seen)
    return seen


def _refuse_flicker(seen: FirstLabels) -> None:
    if seen.resolution > TOO_COARSE:
        raise StageFailed(
            "look", "labels flicker beside their boundary", number=seen.resolution, limit=TOO_COARSE,
            outcome=Outcome.LOW_PRECISION,
            diagnosis=Diagnosis("boundary-resolution", {"resolution": seen.resolution}, (TRAIN, SPAN_FROM_LABELS)),
        )  # fmt: skip

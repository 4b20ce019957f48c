"""`FewDigitsDeep`: the stages for two or three hidden layers and answers of few digits, in order.

Noise, first layer, rows and sides, second layer, frame, extension, last fit. Structure needs two digits, because
Gauss–Newton on all parameters comes from 3 % to the noise of the answers; what breaks it is a neuron that is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from reluctant.extraction.deep_few_digits.first_hyperplanes import FirstLayer, KinkGradients, find_first_layer
from reluctant.extraction.deep_few_digits.frame_fit import FittedFrame, fit_in_frame, settled_fit
from reluctant.extraction.deep_few_digits.kink_rows import rows_of_kinks
from reluctant.extraction.deep_few_digits.last_fit import fit_everywhere, fit_nearby
from reluctant.extraction.deep_few_digits.layers_fit import Layers
from reluctant.extraction.deep_few_digits.named_kinks import find_wide_layers
from reluctant.extraction.deep_few_digits.orthant import Orthant
from reluctant.extraction.deep_few_digits.other_directions import extend_to_all
from reluctant.extraction.deep_few_digits.third_layer import upper_layers
from reluctant.extraction.few_digits.answer_store import Asked
from reluctant.extraction.few_digits.method import choose_distance
from reluctant.extraction.few_digits.scaled_view import BoxView, View, look_from, look_inside
from reluctant.extraction.few_digits.shared_hyperplanes import Hyperplane, SmallFrame
from reluctant.extraction.method import Candidate, Keep, Method, StageFailed, check_settings
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.numerics import one_blas_thread
from reluctant.oracles import Counting
from reluctant.verification.precision import CarriedPrecision


@dataclass(frozen=True)
class FewDigitsDeep(Method):
    """Extraction of two or three hidden layers from answers of few digits, to the noise they have.

    The first layer may have as many neurons as there are inputs; of two with several outputs it may have more. The
    second of three may have as many as the first.

    Arguments:
        quiet: segments without a new row of the second layer, after which the search for them ends.
        random_share: answers at random inputs for each parameter, in the last fit.
        far_noise: noise of an answer, of the output's deviation, from which the search reads a target that rounds to
            decimals or adds noise.
    """

    few_digits: ClassVar[bool] = True

    quiet: int = 12
    random_share: float = 2.0
    far_noise: float = 1e-9

    def __post_init__(self) -> None:
        check_settings(self)

    def run(self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Keep) -> Candidate:
        """One attempt; raises StageFailed where it gets stuck."""
        domain = oracle.facts.domain
        if not (domain.is_space or domain.is_box):
            raise StageFailed("domain", "two hidden layers need all of space, or a box", number=0, limit=1)
        near = look_from(oracle, 1.0, rng) if domain.is_space else look_inside(oracle, rng)
        with one_blas_thread():
            scale = self._scale(near, rng)
            asked = Asked(near if scale == 1 else look_from(oracle, scale, rng), rng)
            fitted = self._fitted(asked, keep)
            network = _of_target(asked, fitted)
            keep(network)
            if scale > 1:
                asked = Asked(near, rng)
                fitted = fit_nearby(asked, _in_units(asked, network), scale, self.random_share)
                network = _of_target(asked, fitted)
        return Candidate(network, precision=_precision(asked, fitted, network))

    def _scale(self, near: View, rng: np.random.Generator) -> float:
        """The distance of the search. Noise that does not grow is left behind there, down to `far_noise`."""
        if isinstance(near, BoxView) or Asked(near, rng).grows:
            return 1.0
        distance = choose_distance(near, rng)
        if not distance.exact:
            return distance.scale
        with near.oracle.stage("noise"):
            spread = float(near.ask(near.sample(rng, 16))[1].std(axis=0).mean())
        wanted = near.noise.near / (self.far_noise * spread)
        return min(distance.scale, float(2.0 ** max(0, round(np.log2(wanted)))))

    def _fitted(self, asked: Asked, keep: Keep) -> FittedFrame:
        small = SmallFrame(asked)
        planes = small.find()
        if not planes:
            raise StageFailed("first layer", "no hyperplane is shared by lines", number=0, limit=1)
        calibration = asked.calibrate([square for line in small.lines for square in line.reading.mean_squares()])
        if asked.outputs > 1 and asked.view.is_space and len(planes) > asked.view.dim:
            layer, rows = find_wide_layers(asked, small, planes)
            keep(_of_first_layer(asked, layer))
            fitted = fit_in_frame(asked, layer.frame, [(layer.w, layer.b)], rows, float(calibration.max()))
            return fit_everywhere(asked, fitted.of_inputs(), self.random_share)
        fitted = self._fitted_in_frame(asked, small, planes, float(calibration.max()), keep)
        everywhere = extend_to_all(asked, settled_fit(asked, fitted))
        return fit_everywhere(asked, everywhere, self.random_share, fitted.frame.span())

    def _fitted_in_frame(
        self, asked: Asked, small: SmallFrame, planes: list[Hyperplane], calibration: float, keep: Keep
    ) -> FittedFrame:
        """The network in a frame in which all neurons of the first layer can be on."""
        layer, gradients = find_first_layer(asked, small, planes)
        keep(_of_first_layer(asked, layer))
        orthant, first = Orthant(asked, layer), (layer.w, layer.b)
        h = len(layer.b)
        for quiet in (self.quiet, 2 * self.quiet):
            rows = orthant.search(quiet, most=2 * h + 100)
            if asked.view.is_space and orthant.bends(rows):
                return self._three_layers(asked, small, layer, gradients, orthant, calibration)
            if not (rows and asked.view.is_space and quiet == self.quiet):  # in all of space that rarely lacks one
                rows += rows_of_kinks(asked, small, [first], gradients, rows)
            if not rows:
                raise StageFailed("second layer", "no crease where the first layer is on", number=0, limit=1)
            try:
                return fit_in_frame(asked, layer.frame, [first], rows, calibration)
            except StageFailed as failure:
                failed = failure
        raise failed

    def _three_layers(
        self, asked: Asked, small: SmallFrame, layer: FirstLayer, gradients: KinkGradients, orthant: Orthant,
        calibration: float,
    ) -> FittedFrame:  # fmt: skip
        """Three hidden layers by what the orthant shows; if that lacks a neuron, with kinks of lines elsewhere too.

        A neuron without a crease may be off at inputs that are too few to be met: then no network is given.
        """
        second, neurons = upper_layers(orthant)
        below = [(layer.w, layer.b), second]
        try:
            return _with_all_creases(fit_in_frame(asked, layer.frame, below, neurons.rows(), calibration))
        except StageFailed:
            rows_of_kinks(asked, small, below, gradients, [], neurons)
            return _with_all_creases(fit_in_frame(asked, layer.frame, below, neurons.rows(fewest=3), calibration))


def _with_all_creases(fitted: FittedFrame) -> FittedFrame:
    """The same, if no term past the last layer is left."""
    if fitted.network.s is not None:
        raise StageFailed("last layer", "a neuron has no crease where one was looked for", number=1, limit=0)
    return fitted


def _of_target(asked: Asked, fitted: FittedFrame) -> ReLUNetwork:
    """The network as one of the target's inputs and outputs."""
    view, frame, network = asked.view, fitted.frame, fitted.network.network()
    (w, *weights, a), (b, *biases, e) = network.weights, network.biases
    w, a = w @ frame.basis, asked.unit[:, None] * a
    return view.lifted(ReLUNetwork([w, *weights, a], [b - w @ frame.origin, *biases, asked.unit * e]))


def _in_units(asked: Asked, network: ReLUNetwork) -> Layers:
    """A network of the target with outputs in units of their noise, seen from near."""
    units, found = asked.unit * asked.view.units, Layers.of_network(network)
    return replace(found, a=found.a / units[:, None], e=found.e / units)


def _of_first_layer(asked: Asked, layer: FirstLayer) -> ReLUNetwork:
    """The first layer alone, with outputs of zero: the network before the second is known."""
    w, m = layer.w @ layer.frame.basis, asked.outputs
    b = layer.b - w @ layer.frame.origin
    return asked.view.lifted(ReLUNetwork([w, np.zeros((m, len(b)))], [b, np.zeros(m)]))


def _precision(asked: Asked, fitted: FittedFrame, network: ReLUNetwork) -> CarriedPrecision:
    """The noise of the target, carried through the network."""
    view = asked.view
    units = asked.unit * view.units * view.scale
    growth = 0.0 if fitted.noise.factor is not None else asked.growth / view.input_size
    near = units * (0.0 if fitted.noise.factor is not None else asked.near)
    factor = (fitted.noise.factor or 0.0) * np.ones(len(units))
    return CarriedPrecision(near, units * growth, view.centre, network=network, factor=factor)

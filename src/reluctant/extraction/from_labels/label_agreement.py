"""`verify_labels`: a network compared with a target by labels alone, as a verb.

A first look finds which labels there are and how well their boundary can be located. The network's own boundary is then
asked on both sides, as `FromLabels` verifies its copies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.extraction.from_labels.method import OWN_RESOLUTION, TWO, FirstLabels, FromLabels, look
from reluctant.extraction.method import StageFailed
from reluctant.geometry.boundary import check_threshold, only_labels
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles.keywords import InputsKeywords
from reluctant.oracles.open import Target, in_units, opened_target
from reluctant.verification.label_check import LabelVerification, check_labels

RARE = 512  # inputs of each of two scales where a class was not seen


def verify_labels(
    oracle: Target, network: ReLUNetwork, *, rng: Rng = 1, tol: float = FromLabels.boundary_error, points: int = 128,
    rows: int = 1024, threshold: float | None = None, **opening: Unpack[InputsKeywords],
) -> LabelVerification:  # fmt: skip
    """Compare a network with a target by labels alone: on both sides of its decision boundary, and at random inputs.

    Arguments:
        oracle: the target: an oracle, or anything that `open_oracle` takes. Of several outputs the largest is the
            label.
        network: its label is the largest of several outputs, or whether one is above 0.
        rng: seed of the points. Use another one than for the extraction.
        tol: largest error of the boundary to accept, in typical inputs; more where labels flicker by more.
        points: of the boundary, at each of two scales, besides those at creases.
        rows: random inputs, at each of two scales.
        threshold: where one output that is no whole number changes its label. By default 0.5.
        opening: keywords of `open_oracle`, for this call: dim, budget, inputs, ...

    Cost: about 500 rows for the first look, 1,024 more where a class of the network was not seen there; 4 for each
    boundary point, up to 10 where the network is wrong, and one for each input.
    """
    with opened_target(oracle, opening) as opened:
        generator, before = as_generator(rng), opened.queries
        opened.begin("verify", rng)
        if network.dim != opened.dim:
            raise InvalidInput.about("network", got=f"{network.dim} inputs", expected=f"{opened.dim} inputs")
        if threshold is not None:
            check_threshold(opened, threshold)
        target, units = in_units(opened)
        network = network if units is None else units.reduced_network(network)
        labels = only_labels(target, threshold)
        try:
            seen = look(labels, None, generator)
            if len(seen.names) < network.outputs:
                scales = (1.0, 3.0 if labels.facts.domain.is_space else 1.0)
                more = np.concatenate([scale * seen.draw(RARE, generator) for scale in scales])
                with labels.stage("look"):
                    seen = seen.with_inputs(more, labels.query(more)[:, 0], None)
        except StageFailed as failure:
            raise InvalidInput.about(
                "oracle", got=failure.reason, expected="labels that differ, and stay the same where asked again"
            ) from failure
        names = _class_names(network, seen, numbered=target.outputs > 1)
        found = check_labels(
            labels, network, lambda n: seen.draw(n, generator), seen.size, names.class_of,
            tol=max(tol, OWN_RESOLUTION * seen.resolution), finest=4 * seen.resolution, points=points, inputs=rows,
        )  # fmt: skip
        return replace(found, queries=opened.queries - before)  # with those of the first look


def _class_names(network: ReLUNetwork, seen: FirstLabels, *, numbered: bool) -> FirstLabels:
    """Labels in the order of the network's classes: their own numbers, else as many as it has, in order.

    Without the label 0 whole numbers may count from 1, unless the target numbered its outputs.
    """
    numbers: FloatArray = np.arange(max(network.outputs, TWO), dtype=np.float64)
    if (numbered or 0 in seen.names) and np.isin(seen.names, numbers).all():  # a rare class may not have been seen
        return replace(seen, names=numbers)
    if len(seen.names) != len(numbers):
        raise InvalidInput.about(
            "network", got=f"{network.outputs} outputs", expected=f"one for each of the {len(seen.names)} labels seen",
            fix=f"Or number the labels from 0 to {len(numbers) - 1}, with 0 that of a class which is not rare.",
        )  # fmt: skip
    return seen

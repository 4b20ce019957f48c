"""Networks rebuilt from defended answers, held against what they stand for at the honest inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reluctant.audit.leak import Rebuilt
from reluctant.defenses.disclosure import labels_of
from reluctant.learning.student import commonest_share
from reluctant.numerics import FloatArray
from reluctant.oracles import Kind

__all__ = ["compared"]


def compared(
    rebuilt: Rebuilt, true: FloatArray, found: FloatArray, reference: bool, kind: Kind = Kind.VALUES
) -> Rebuilt:
    """What the network gives at the inputs beside what it should give."""
    told = np.isfinite(true).all(axis=1)  # an infinite log-ratio is a class that is certain to the last digit
    if not told.any():
        return rebuilt
    true, found = true[told], found[told]
    spread = true.std(axis=0)
    errors = np.abs(found - true) / np.where(spread > 0, spread, 1.0)
    labels = _labels(true, reference, kind)
    same = float((_labels(found, reference, kind) == labels).mean())
    rms, largest = float(np.sqrt(np.mean(errors**2))), float(errors.max())
    return replace(rebuilt, error=rms, largest=largest, agreement=same, commonest=commonest_share(labels))


def _labels(values: FloatArray, reference: bool, kind: Kind) -> Any:
    with_first = np.column_stack([np.zeros(len(values)), values]) if reference else values
    return labels_of(with_first, kind)

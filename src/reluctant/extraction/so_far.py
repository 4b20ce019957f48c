"""What is known of a target before everything is: a network of its input, or of a frame inside input space."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from reluctant.geometry import FramedNetwork
from reluctant.networks import ReLUNetwork

__all__ = ["Keep", "Known", "lifted"]

Known: TypeAlias = ReLUNetwork | FramedNetwork
Keep: TypeAlias = Callable[[Known], None]  # is told what is known so far


def lifted(known: Known) -> ReLUNetwork:
    """What is known, as a function of the input itself."""
    return known.lifted() if isinstance(known, FramedNetwork) else known

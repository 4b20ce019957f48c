"""What tests of the verdict share: a network, what is known of it, and runs that found it or did not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reluctant import ReLUNetwork, check_health, open_oracle, recover_span, verify
from reluctant.audit.findings import AuditedTarget, Findings, Settings
from reluctant.oracles import Rows
from reluctant.results import Outcome, Result
from reluctant.testing import planted

__all__ = ["NETWORK", "NOTHING", "SETTLED", "SPAN", "off_by", "refused", "unverified"]

NETWORK = planted((8, 4, 2))
SPAN = recover_span(open_oracle(NETWORK))
NOTHING = Findings(Settings(np.zeros((1, 8))), AuditedTarget(health=check_health(open_oracle(NETWORK))))


def off_by(share: float) -> ReLUNetwork:
    """The network with its output weights a little wrong."""
    first, last = NETWORK.weights
    return ReLUNetwork([first, last * (1 + share)], NETWORK.biases)


def unverified(share: float, outcome: Outcome = Outcome.UNVERIFIED) -> Result:
    wrong = off_by(share)
    found = verify(open_oracle(NETWORK), wrong)
    return Result(outcome, wrong, {"line": Rows(100, 100)}, evidence={"verification": found})


def refused(outcome: Outcome = Outcome.LOW_PRECISION) -> Result:
    """A run that came to its end without a network."""
    return Result(outcome, None, {})


# Every step that looks for a copy or the span has come to its end, and found none.
SETTLED = replace(
    NOTHING, extraction=refused(), learning=refused(Outcome.NOT_ACCURATE), training=refused(Outcome.NOT_ACCURATE),
    refused=("span",),
)  # fmt: skip

"""A file of percentages behind a defense: what stands for it in the sweep answers as the target does."""

from types import SimpleNamespace

import numpy as np

from reluctant.audit.defense_sweep import _copy
from reluctant.audit.findings import AuditedTarget
from reluctant.defenses import defend
from reluctant.domains import Domain
from reluctant.oracles import CallableOracle, open_oracle
from reluctant.oracles.links import LINK_FUNCTIONS, ProbabilityFormat
from reluctant.testing import planted

NETWORK = planted((5, 8, 3), 2)
ROWS = np.random.default_rng(0).standard_normal((20, 5))


def test_digits_are_cut_before_percentages_are_divided() -> None:
    file = CallableOracle(lambda x: 100 * LINK_FUNCTIONS["softmax"](NETWORK(x)), 5)
    target = open_oracle(defend(file, "decimals=1"), percent=True)
    given = SimpleNamespace(
        file=file, output=None, defense=("decimals=1",), precision="as-served", percent=False, units=None
    )
    target_as_read = AuditedTarget(written=ProbabilityFormat(percent=True))
    known = SimpleNamespace(given=given, target=target_as_read, extraction=None, network=None)
    copy, _, last, _ = _copy(known, Domain())
    assert np.array_equal(defend(copy, *last).answer(ROWS), target.query(ROWS))

"""The Hypothesis strategies give what they say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reluctant.testing.strategies import networks, rows_for, symmetric_copies


@given(networks(max_depth=3, max_width=4))
def test_networks_keep_their_limits(network):
    assert 1 <= network.depth <= 3
    assert max(network.widths[:-1]) <= 4
    assert network.skip is None or network.depth > 1


@given(st.data())
def test_rows_fit_their_network(data):
    network = data.draw(networks())
    rows = data.draw(rows_for(network, max_rows=5))
    assert rows.shape[1] == network.dim
    assert 1 <= len(rows) <= 5
    assert np.isfinite(rows).all()


@given(st.data())
def test_copies_keep_shape_skip_and_link(data):
    network = data.draw(networks())
    copy = data.draw(symmetric_copies(network))
    assert (copy.widths, copy.link) == (network.widths, network.link)
    assert copy.skip is network.skip or np.array_equal(copy.skip, network.skip)

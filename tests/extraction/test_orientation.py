"""Which side each neuron is on: found from the affine remainder wherever its digits hold the answer."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.errors import TimeExhausted
from reluctant.extraction.orientation import _time_of_children, orient
from reluctant.networks import ReLUNetwork
from reluctant.oracles.ledger import Limit
from reluctant.testing import planted


def turned(network: ReLUNetwork, seed: int) -> ReLUNetwork:
    """The same function with random neurons the wrong way round and a skip term that makes up for it."""
    (w, a), (b, c) = network.weights, network.biases
    flip = np.random.default_rng(seed).random(len(b)) < 0.5
    sign = np.where(flip, -1.0, 1.0)
    return ReLUNetwork([sign[:, None] * w, a], [sign * b, c + a[:, flip] @ b[flip]], a[:, flip] @ w[flip])


SIDES = [
    ((20, 12, 1), "least squares"),
    ((10, 25, 3), "least squares"),
    ((40, 60, 1), "a linear programme"),
    ((8, 24, 1), "a lattice"),
    ((10, 50, 1), "a lattice"),
    ((10, 100, 1), "a lattice"),
]


@pytest.mark.parametrize(("widths", "by"), sweep(SIDES, fast=SIDES[:-1], arguments=2))
def test_sides_are_found(widths: tuple[int, ...], by: str, seed: int) -> None:
    if by == "a lattice":
        pytest.importorskip("fpylll")
    true = planted(widths, seed)
    found = orient(turned(true, seed))
    assert found.skip is None
    assert rl.equivalent(found, true, tol=1e-8)


def test_wide_network_is_recovered_without_a_skip_term(seed: int) -> None:
    pytest.importorskip("fpylll")
    true = planted((8, 24, 1), 60 + seed)
    network = rl.extract(rl.open_oracle(true), rng=seed).raise_for_status().network
    assert network is not None
    assert network.skip is None
    assert rl.equivalent(network, true, tol=1e-6)


def test_too_many_neurons_for_the_digits_keep_the_skip_term() -> None:
    network = turned(planted((3, 60, 1), 0), 0)
    assert orient(network) is network


def test_skip_term_of_its_own_is_not_forced_away(seed: int) -> None:
    for widths in ((12, 6, 1), (12, 18, 1), (8, 24, 1)):
        network = planted(widths, seed, skip=True)
        assert orient(network) is network


def test_a_lattice_leaves_the_signal_handlers_of_its_host_alone() -> None:
    """Also in a thread, where fpylll cannot be imported."""
    pytest.importorskip("fpylll")
    code = """
import signal, sys, threading
import numpy as np
from reluctant.extraction.orientation import find_turned
before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGALRM, signal.SIGHUP)}
terms, chosen = np.random.default_rng(0).standard_normal((8, 24)), np.random.default_rng(1).random(24) < 0.5
found = []
thread = threading.Thread(target=lambda: found.append(find_turned(terms, terms @ chosen)))
thread.start()
thread.join()
found.append(find_turned(terms, terms @ chosen))
assert len(found) == 2 and all(np.array_equal(each, chosen) for each in found)
assert {name: signal.getsignal(name) for name in before} == before
assert "fpylll" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("widths", [(40, 60, 1), (8, 24, 1)])
def test_the_search_for_sides_keeps_to_its_time(widths: tuple[int, ...]) -> None:
    if widths == (8, 24, 1):  # by a lattice
        pytest.importorskip("fpylll")
    limit = Limit(seconds=1e-3)
    with pytest.raises(TimeExhausted), limit.running():
        orient(turned(planted(widths, 0), 0))
    assert limit.time_up


@pytest.mark.skipif(os.name != "posix", reason="the system does not tell")
def test_a_reduction_that_waits_takes_no_processor_time():
    before = _time_of_children()
    subprocess.run([sys.executable, "-S", "-c", "import time; time.sleep(1)"], check=True)
    assert 0 <= _time_of_children() - before < 0.9

"""What a certificate says where no neuron was found."""

from __future__ import annotations

import json

import numpy as np

import reluctant as rl
from reluctant.extraction.method import Certificate


def test_without_a_neuron_no_number_is_told_of_one() -> None:
    weights = np.random.default_rng(8).normal(size=(5, 1))
    found = rl.extract(rl.open_oracle(lambda x: x @ weights + 1, dim=5, domain=(-1, 1)), rng=0)
    certificate = found.evidence["certificate"]
    assert certificate.notes.entries[0].slug == "no-neuron-found"
    assert "0.0e+00" not in str(certificate)
    assert json.loads(json.dumps(certificate.to_dict()))["resolution"] is None


def test_how_far_out_nothing_was_looked_for_is_told() -> None:
    assert Certificate(np.empty(0), 0.0, 1e3).notes.entries[0].fields["radius"] == 1e3
    assert "farther out" not in str(Certificate(np.empty(0), 0.0, np.inf))


def test_what_is_said_of_small_bends_is_said_of_lines_alone() -> None:
    assert "On the lines searched, a neuron that bends" in str(Certificate(np.ones(3), 1e-12, 1e3))

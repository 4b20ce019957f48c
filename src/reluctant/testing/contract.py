"""`OracleContract`: the tests that every oracle passes, as a pytest class with `make_oracle` to give.

class TestMyOracle(OracleContract):
    def make_oracle(self):
        return MyOracle(...)

Bad rows are no part of it: `Oracle.query`, which nobody overrides, refuses them before the oracle hears of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Facts, Kind, Oracle
from reluctant.oracles.base import layers

# Answers of one target in batches of different sizes may differ by this many roundings.
BATCH_ROUNDINGS = 2**12


class OracleContract:
    """Checks of the boundary; every adapter and wrapper, ours or yours, passes them."""

    def make_oracle(self) -> Oracle:
        """Return a fresh oracle with known outputs."""
        raise NotImplementedError("give make_oracle in your subclass of OracleContract")

    @pytest.fixture
    def oracle(self) -> Iterator[Oracle]:
        """The oracle under test, closed afterwards."""
        with self.make_oracle() as oracle:
            yield oracle

    def rows(self, oracle: Oracle, n: int = 7) -> FloatArray:
        """Random rows inside the oracle's domain."""
        return oracle.facts.domain.sample(np.random.default_rng(5), n, oracle.dim)

    def tolerance(self, oracle: Oracle, answers: FloatArray) -> float:
        """Rounding allowed between two batches."""
        return BATCH_ROUNDINGS * unit_roundoff(oracle.facts.dtype) * float(1 + np.abs(answers).max())

    def skip_if_answers_vary(self, oracle: Oracle) -> None:
        """Skip what compares two answers to a row that may differ, unless the subclass has a tolerance of its own."""
        vary = any(layer.draws or not getattr(layer, "repeatable", True) for layer in layers(oracle))
        if vary and type(self).tolerance is OracleContract.tolerance:
            pytest.skip("the same row may get another answer; override tolerance to compare them")

    def test_facts_are_facts(self, oracle: Oracle) -> None:
        """Facts are typed and agree with the shortcuts."""
        assert isinstance(oracle.facts, Facts)
        assert oracle.dim == oracle.facts.dim >= 1
        assert oracle.outputs == oracle.facts.outputs >= 1
        assert isinstance(oracle.facts.kind, Kind)

    def test_answers_are_float64_rows(self, oracle: Oracle) -> None:
        """(n, d) in, (n, m) float64 out, for one row and for many."""
        for n in (1, 7):
            answers = oracle.query(self.rows(oracle, n))
            assert answers.shape == (n, oracle.outputs)
            assert answers.dtype == np.float64

    def test_order_is_kept(self, oracle: Oracle) -> None:
        """Row i of the answers belongs to row i of the question."""
        self.skip_if_answers_vary(oracle)
        rows = self.rows(oracle)
        answers = oracle.query(rows)
        tol = self.tolerance(oracle, answers)
        np.testing.assert_allclose(oracle.query(rows[::-1]), answers[::-1], rtol=0, atol=tol)

    def test_batches_do_not_matter(self, oracle: Oracle) -> None:
        """One batch or row by row: the same answers."""
        self.skip_if_answers_vary(oracle)
        rows = self.rows(oracle)
        answers = oracle.query(rows)
        single = np.concatenate([oracle.query(row[None, :]) for row in rows])
        np.testing.assert_allclose(single, answers, rtol=0, atol=self.tolerance(oracle, answers))

    def test_question_and_answer_share_no_memory(self, oracle: Oracle) -> None:
        """The rows are not changed, and changing an answer changes nothing else."""
        rows = self.rows(oracle)
        before = rows.copy()
        answers = oracle.query(rows)
        np.testing.assert_array_equal(rows, before)
        self.skip_if_answers_vary(oracle)
        kept = answers.copy()
        answers[:] = 0
        again = oracle.query(rows)
        np.testing.assert_allclose(again, kept, rtol=0, atol=self.tolerance(oracle, kept))

    def test_other_layouts_and_types(self, oracle: Oracle) -> None:
        """Lists and Fortran order are accepted."""
        self.skip_if_answers_vary(oracle)
        rows = self.rows(oracle)
        answers = oracle.query(rows)
        tol = self.tolerance(oracle, answers)
        for same in (rows.tolist(), np.asfortranarray(rows)):
            np.testing.assert_allclose(oracle.query(same), answers, rtol=0, atol=tol)


class GradientContract(OracleContract):
    """Checks of an oracle that answers gradients too, besides those of every oracle."""

    def test_values_are_those_of_a_query(self, oracle: Oracle) -> None:
        """A row has the same values with its gradients as without."""
        self.skip_if_answers_vary(oracle)
        rows = self.rows(oracle)
        found, answers = oracle.query_gradients(rows), oracle.query(rows)
        assert found.gradients.shape == (len(rows), oracle.outputs, oracle.dim)
        assert found.gradients.dtype == np.float64
        np.testing.assert_allclose(found.values, answers, rtol=0, atol=self.tolerance(oracle, answers))

    def test_gradients_are_slopes(self, oracle: Oracle) -> None:
        """A short step changes the values as the gradient says."""
        self.skip_if_answers_vary(oracle)
        rows = self.rows(oracle)
        step = float(np.cbrt(unit_roundoff(oracle.facts.dtype)))
        moves = step * np.random.default_rng(6).standard_normal(rows.shape) / np.sqrt(oracle.dim)
        found = oracle.query_gradients(rows)
        ends = [oracle.facts.domain.nearest(rows + sign * moves) for sign in (1, -1)]
        change = oracle.query(ends[0]) - oracle.query(ends[1])
        predicted = np.einsum("nmd,nd->nm", found.gradients, ends[0] - ends[1])
        off = np.abs(change - predicted).max(axis=1)
        size = step * float(1 + np.abs(found.gradients).max())
        assert np.median(off) <= self.tolerance(oracle, found.values) + step * size  # a step may cross a crease

    def test_gradients_keep_their_order(self, oracle: Oracle) -> None:
        """Row i of the gradients belongs to row i of the question, whatever the batch."""
        self.skip_if_answers_vary(oracle)
        rows = self.rows(oracle)
        slopes = oracle.query_gradients(rows).gradients
        single = np.concatenate([oracle.query_gradients(row[None, :]).gradients for row in rows[::-1]])
        np.testing.assert_allclose(single[::-1], slopes, rtol=0, atol=self.tolerance(oracle, slopes))

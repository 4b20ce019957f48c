"""What a notebook shows: a small table of facts, in which nothing of a target is markup."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

import reluctant as rl
from reluctant._notebook import LONGEST, html_table
from reluctant.results import Result
from reluctant.testing import planted

NETWORK = planted((4, 6, 3), 1)
VOID = {"br", "hr", "img"}


class Cells(HTMLParser):
    """Rows of a table by their heading; raises on tags that do not close."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)
        assert not self.open
        self.rows = dict(zip(self.cells[1::2], self.cells[2::2], strict=True))

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        if tag in ("caption", "th", "td"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells[-1] += data


def shown(value) -> Cells:
    return Cells(value._repr_html_())


def test_a_result_shows_its_network_and_its_cost():
    result = rl.extract(NETWORK, rng=0)
    table = shown(result)
    assert table.cells[0] == "Result: recovered"
    assert table.rows["network"] == repr(result.network)
    assert table.rows["queries"] == f"{result.queries:,}"
    assert "ended in" not in table.rows


def test_a_result_that_is_not_ok_says_where_it_ended():
    result = rl.extract(NETWORK, rng=0, budget=90)
    table = shown(result)
    assert table.cells[0] == "Result: out-of-budget"
    assert table.rows["ended in"] == result.stage
    assert table.rows["what happened"] == str(result.diagnosis)
    assert table.rows["error"] == result.evidence["error"]


def test_a_span_shows_its_rank():
    table = shown(rl.recover_span(planted((9, 2, 1)), rng=0))
    assert table.cells[0] == "Span: span-recovered"
    assert table.rows["rank"] == "2 of 9 inputs"


def test_a_flip_shows_its_size():
    flip = rl.flip_sign(NETWORK, np.ones(4))
    table = shown(flip)
    assert table.cells[0] == f"Flip: {flip.outcome.slug}"
    assert ("relative size" in table.rows) == flip.ok


def test_a_network_shows_its_layers():
    table = shown(rl.ReLUNetwork(NETWORK.weights, NETWORK.biases, np.ones((3, 4)), "softmax"))
    assert table.cells[0] == "ReLUNetwork 4-6-3"
    assert table.rows["layer 1"] == "4 → 6"
    assert table.rows["skip"] == "affine"
    assert table.rows["link"] == "softmax"


def test_an_interface_shows_its_answers():
    table = shown(rl.check_health(lambda x: np.round(NETWORK(x), 3), dim=4))
    assert table.rows["answers"] == "values"
    assert table.rows["decimals"] == "3"


def test_a_verification_shows_its_error():
    found = rl.verify(NETWORK, NETWORK, rng=1)
    table = shown(found)
    assert table.cells[0] == "Verification: passed"
    assert table.rows["points"] == f"{found.points:,}"
    assert table.rows["what happened"].startswith(str(found)[:100])


def test_an_audit_shows_its_verdict():
    found = rl.audit(NETWORK, budget=2000, steps=["health", "extraction"])
    table = shown(found)
    assert table.cells[0] == f"Audit: {found.verdict.level}"
    assert "extractable" in table.rows["leaks"]
    assert "extraction: done" in table.rows["steps"]


@pytest.mark.parametrize("evil", ["<script>alert(1)</script>", "a & b", '"><img src=x>', "</table>"])
def test_what_a_target_says_is_no_markup(evil):
    table = shown(Result(rl.Outcome.TARGET_FAILED, None, {evil: rl.oracles.Rows(sent=1)}, evil, {"error": evil}))
    assert table.rows["error"] == evil
    assert table.rows["ended in"] == evil
    assert table.tags == {"table", "caption", "tbody", "tr", "th", "td"}


def test_a_cell_is_never_long():
    table = Cells(html_table("long", {"error": "x" * 10_000, "absent": None, "empty": ()}))
    assert len(table.rows["error"]) == LONGEST
    assert set(table.rows) == {"error"}


def test_estimates_and_linearity_print_as_sentences():
    found = rl.estimate("784-128-1")
    assert f"{found.queries.expected:,.0f} queries" in str(found)
    unmeasured = rl.estimate("784-128-64-32-16-8-1", precision="float32")
    assert unmeasured.ok or str(unmeasured) == str(unmeasured.reason)
    near = rl.local_linearity(NETWORK, np.ones(4))
    assert f"{near.random[-1]:.2g} of its size" in str(near)

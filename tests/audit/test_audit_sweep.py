"""The defense sweep: on a copy alone, with true figures, and a cheapest defense that is one."""

from __future__ import annotations

import numpy as np
import pytest
from audit_kit import Rows, step

from reluctant import open_oracle
from reluctant.audit import audit, sweep, try_defense
from reluctant.audit.defense_sweep import StandIn, default_defenses
from reluctant.audit.record import StandsFor
from reluctant.oracles import Facts, Kind, NetworkOracle
from reluctant.oracles.links import Linked, Tidied
from reluctant.results import Outcome
from reluctant.testing import planted

NETWORK = planted((6, 5, 3))
DRAWN = planted((6, 5, 3), rng=1)
INPUTS = np.random.default_rng(3).standard_normal((200, 6))


@pytest.fixture(scope="module")
def swept():
    """An audit with the sweep, and how many rows its target had answered when the sweep began and ended."""
    target = Rows(planted((4, 3, 3)))
    begun = []

    def watch(what, done, of, doing):
        if what == "defenses" and doing:
            begun.append(target.seen)

    with open_oracle(target, dim=4) as oracle:
        found = audit(oracle, watch=watch, steps=["health", "span", "extraction", "defenses"])
    return found.record, begun, target.seen


def test_the_real_target_is_asked_nothing(swept):
    record, begun, end = swept
    assert len(begun) == 8  # but for the row without a defense, which the audit has already
    assert set(begun) == {end}
    assert step(record, "defenses").queries == 0


def test_the_first_row_is_what_the_audit_found(swept, valid):
    record = valid(swept[0])
    first = record.defenses.rows[0]
    assert first.defense == "none"
    assert first.rebuilt.queries == record.extraction.queries
    assert first.stopped is False
    assert record.defenses.on is StandsFor.RECOVERED


def test_the_cheapest_defense_stops_a_copy(swept):
    defenses = swept[0].defenses
    rows = {row.defense: row for row in defenses.rows}
    assert rows[defenses.cheapest].stopped is True
    assert (rows["labels"].stopped, rows["labels"].rebuilt.ok, rows["labels"].no_method) == (False, True, False)
    assert rows["softmax"].stopped is False  # a link undoes it
    assert rows["labels"].digits is None
    digits = [rows[f"decimals={k}"].digits for k in (6, 3, 2)]
    assert digits == sorted(digits, reverse=True)


def test_leak_measures_a_copy_against_the_undefended_one():
    found = try_defense(NetworkOracle(NETWORK), "decimals=4", inputs=INPUTS, methods=["extract"])
    assert found.extracted is not None
    assert found.extracted.result.ok
    network = found.extracted.result.network
    true = NETWORK(INPUTS)
    expected = np.sqrt(np.mean(((network(INPUTS) - true) / true.std(axis=0)) ** 2))
    assert found.extracted.error == pytest.approx(expected)
    assert found.span is None
    assert found.learned is None
    assert found.honest.rms_error < 1e-4


def test_leak_through_a_softmax_is_measured_in_log_ratios():
    found = try_defense(NetworkOracle(NETWORK), "softmax", inputs=INPUTS, methods=["extract"])
    assert found.extracted.error < 1e-10
    assert found.extracted.agreement == 1.0
    assert np.isnan(found.honest.rms_error)  # other answers, as labels are


def test_one_rule_for_what_users_lose():
    """An error where answers are of the same kind as without the defense, none where they are of another."""
    values, probabilities = NetworkOracle(NETWORK), NetworkOracle(NETWORK.before_link("softmax"))
    for copy, defense, told in (
        (values, ("decimals=3",), True),
        (values, ("softmax",), False),
        (values, ("log-softmax",), False),
        (values, ("softmax", "top=1"), False),
        (values, ("labels",), False),
        (probabilities, ("decimals=3",), True),
        (probabilities, ("top=1",), False),  # one number instead of three
        (probabilities, ("labels",), False),
    ):
        honest = try_defense(copy, defense, inputs=INPUTS, methods=[]).honest
        assert np.isfinite(honest.rms_error) == told


def test_leak_of_a_copy_that_answers_probabilities():
    copy = NetworkOracle(NETWORK.before_link("softmax"))
    found = try_defense(copy, inputs=INPUTS, link="softmax", methods=["extract"])
    assert found.extracted.error < 1e-10


def test_labels_give_the_span_and_the_boundary():
    network = planted((12, 4, 2))
    inputs = np.random.default_rng(0).standard_normal((50, 12))
    found = try_defense(NetworkOracle(network), "labels", inputs=inputs, methods=["span", "extract", "learn"])
    assert (found.span.ok, found.span.rank) == (True, 4)
    assert (found.stopped, found.no_method) == (False, False)
    assert (found.extracted.error, found.extracted.agreement) == (None, 1.0)
    span = found.facts(None).span
    assert (span.rank, span.inputs, span.from_labels) == (4, 12, True)
    spans = try_defense(NetworkOracle(network), "labels", inputs=inputs, methods=["span"])
    assert spans.stopped is None  # nobody asked for a copy
    assert np.isnan(found.honest.rms_error)


def test_a_budget_for_each_method():
    found = try_defense(NetworkOracle(NETWORK), "float32", inputs=INPUTS, budget=300)
    for ended in (found.span, found.extracted.result, found.learned.result):
        assert ended.queries <= 300
    assert found.extracted.result.outcome is Outcome.OUT_OF_BUDGET
    assert found.stopped is None  # more might have been enough


def test_time_that_runs_out_decides_nothing():
    found = try_defense(NetworkOracle(NETWORK), "float32", inputs=INPUTS, seconds=0.01, methods=["extract"])
    assert found.extracted.undecided
    assert found.stopped is None


@pytest.mark.parametrize(
    ("facts", "names"),
    [
        (Facts(4, 1), {"labels"}),
        (Facts(4, 3), {"softmax", "softmax, top=1", "labels"}),
        (Facts(4, 3, kind=Kind.PROBABILITIES), {"top=1", "labels"}),
        (Facts(4, 1, kind=Kind.PROBABILITIES), {"labels"}),
        (Facts(4, 1, kind=Kind.LABELS), set()),
    ],
)
def test_the_defenses_fit_the_answers(facts, names):
    tried = {", ".join(trial) for trial in default_defenses(facts, 2.0)}
    assert tried - {"", "decimals=6", "decimals=3", "decimals=2", "float16", "gaussian=0.002"} == names


def test_without_a_copy_only_the_span_is_tried(tmp_path, valid):
    """A file whose network is not recovered stands for itself, and no time goes into copies that do not exist."""
    planted((8, 4, 2)).save(tmp_path / "model.npz")
    steps = ["health", "extraction", "defenses"]
    with open_oracle(lambda x: planted((8, 4, 2))(x).argmax(axis=1), dim=8) as oracle:
        found = valid(audit(oracle, file=tmp_path / "model.npz", steps=steps, seconds=10.0).record)
    assert found.defenses.on is StandsFor.FILE
    assert found.defenses.cheapest is None
    assert all(row.rebuilt is None for row in found.defenses.rows[1:])


def test_one_defense_that_fails_does_not_cost_the_others():
    class Strange(NetworkOracle):
        """A copy that breaks when its answers would be rounded."""

        answered = 0

        def answer(self, rows):
            Strange.answered += 1
            if Strange.answered <= 2:  # the first time to see what labels there are
                raise RuntimeError("broken")
            return super().answer(rows)

    copy = Strange(planted((3, 2, 1)))
    found = sweep(StandIn(copy, StandsFor.FILE, INPUTS[:, :3]), seconds=20, methods=("span",))
    assert (found.failed[0].defense, found.failed[0].error) == ("none", "RuntimeError")
    assert len(found.rows) == 6


def test_noisy_probabilities_are_put_right():
    p = np.array([[0.5, 0.501, -1e-3], [0.2, 0.3, 0.5], [0.7, 0.5, 0.2], [-0.1, -0.1, -0.1], [1.1, -0.05, -0.05]])
    for link, expected in (
        ("softmax", [[0.5, 0.501, 0], p[1], p[2] / 1.4, [np.nan] * 3, [1, 0, 0]]),
        ("sigmoid", np.clip(p, 0, 1)),
        ("top-k", [[0.5, 0.501, 0], p[1], p[2] / 1.4, [np.nan] * 3, [1, 0, 0]]),
    ):
        tidied = Tidied(open_oracle(lambda x: p[: len(x)], dim=1), link)
        answers = tidied.answer(np.zeros((5, 1)))
        np.testing.assert_allclose(answers, expected)
        assert (answers[1] == p[1]).all()  # probabilities pass to the last digit
        Linked(tidied, link).answer(np.zeros((5, 1)))  # no row is refused
    logs = Tidied(open_oracle(lambda x: np.log([[0.9, 0.4, 0.1]] * len(x)), dim=1), "log-softmax")
    np.testing.assert_allclose(np.exp(logs.answer(np.zeros((1, 1)))).sum(), 1.0)


def test_an_audit_that_ran_out_of_time_has_an_undecided_first_row(tmp_path, valid):
    NETWORK.save(tmp_path / "model.npz")
    with open_oracle(tmp_path / "model.npz") as oracle:
        steps = ["health", "extraction", "defenses"]
        found = valid(audit(oracle, file=tmp_path / "model.npz", steps=steps, seconds=1e-9).record).defenses
    assert found.rows[0].stopped is None
    assert found.open is None


def test_the_sweep_keeps_to_its_time(ticking):
    """Rows that were not begun have their costs, and are not decided."""
    copy = NetworkOracle(planted((6, 8, 3)))
    found = sweep(StandIn(copy, StandsFor.FILE, INPUTS), seconds=1.0)
    assert ticking.seconds < 1.5  # every method looks once more
    assert found.rows[-1].defense == "labels"
    last = found.rows[-1]
    assert last.tried == [] or last.stopped is not None or last.tried[-1].undecided
    late = sweep(StandIn(copy, StandsFor.FILE, INPUTS), seconds=1e-9)
    assert [row.stopped for row in late.rows] == [None] * 9  # labels may give the network, given time
    assert late.rows[1].honest.rms_error > 0


def test_a_defense_has_one_clock_for_all_its_methods(ticking):
    try_defense(NetworkOracle(planted((20, 40, 20, 3))), "softmax", inputs=np.zeros((5, 20)), seconds=1.0)
    assert ticking.seconds < 1.1

"""The defense sweep: on a copy alone, with true figures, and a cheapest defense that is one."""

from __future__ import annotations

import time

import numpy as np
import pytest
from audit_kit import Rows, step

from reluctant import ReLUNetwork, open_oracle
from reluctant.audit import audit, defending, leak, sweep
from reluctant.audit.closeness import CLOSE
from reluctant.audit.known import Given, Known, Skip
from reluctant.audit.leak import NO_METHOD, Leak, Rebuilt
from reluctant.audit.served import as_served, digits_given
from reluctant.audit.sweep import Sweep
from reluctant.audit.sweeping import StandIn, default_defenses
from reluctant.audit.tidied import Tidied
from reluctant.defenses import HonestCost, defend
from reluctant.defenses.registry import DIGITS, split_last
from reluctant.defenses.words import defense_words
from reluctant.domains import Domain
from reluctant.errors import InvalidRows
from reluctant.health import check_health
from reluctant.oracles import Facts, Kind, NetworkOracle
from reluctant.oracles.link import Linked
from reluctant.results import Outcome, Result
from reluctant.testing import in_float32, planted
from reluctant.testing.faults import noisy, rounded

NETWORK = planted((6, 5, 3))
DRAWN = planted((6, 5, 3), rng=1)
PROBABLE = ReLUNetwork([DRAWN.weights[0], 3 * DRAWN.weights[1]], DRAWN.biases).log_ratios()
INPUTS = np.random.default_rng(3).standard_normal((200, 6))


@pytest.fixture(scope="module")
def swept():
    """An audit with the sweep, and how many rows its target had answered when the sweep began and ended."""
    target = Rows(NETWORK)
    begun = []

    def watch(what, done, of, doing):
        if what == "defenses" and doing:
            begun.append(target.seen)

    with open_oracle(target, dim=6) as oracle:
        found = audit(oracle, watch=watch, steps=["health", "span", "extraction", "defenses"])
    return found.to_dict(), begun, target.seen


def test_the_real_target_is_asked_nothing(swept):
    record, begun, end = swept
    assert len(begun) == 9  # the row without a defense too: what the audit found, and a network trained on a copy
    assert set(begun) == {end}
    assert step(record, "defenses")["queries"] == 0


def test_the_first_row_is_what_the_audit_found(swept, valid):
    record = valid(swept[0])
    first = record["defenses"]["rows"][0]
    assert first["defense"] == "none"
    assert first["rebuilt"]["queries"] == record["extraction"]["queries"]
    assert first["stopped"] is False
    assert record["defenses"]["on"] == "the recovered network"


def test_the_cheapest_defense_stops_a_copy(swept):
    defenses = swept[0]["defenses"]
    rows = {row["defense"]: row for row in defenses["rows"]}
    assert rows[defenses["cheapest"]]["stopped"] is True
    assert defense_words(defenses["cheapest"]) in defenses["sentence"]
    assert (rows["labels"]["stopped"], rows["labels"]["rebuilt"]) == (True, None)
    assert "no exact method here takes labels" in defenses["sentence"]
    assert rows["softmax"]["stopped"] is False  # a link undoes it
    assert rows["labels"]["digits"] is None
    digits = [rows[f"decimals={k}"]["digits"] for k in (6, 3, 2)]
    assert digits == sorted(digits, reverse=True)


def test_leak_measures_a_copy_against_the_undefended_one():
    found = leak(NetworkOracle(NETWORK), "decimals=4", inputs=INPUTS, methods=["extract"])
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
    found = leak(NetworkOracle(NETWORK), "softmax", inputs=INPUTS, methods=["extract"])
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
        honest = leak(copy, defense, inputs=INPUTS, methods=[]).honest
        assert np.isfinite(honest.rms_error) == told


def test_leak_of_a_copy_that_answers_probabilities():
    copy = NetworkOracle(NETWORK.before_link("softmax"))
    found = leak(copy, inputs=INPUTS, link="softmax", methods=["extract"])
    assert found.extracted.error < 1e-10


def test_labels_leave_the_span_alone():
    network = planted((12, 4, 2))
    inputs = np.random.default_rng(0).standard_normal((50, 12))
    found = leak(NetworkOracle(network), "labels", inputs=inputs, methods=["span", "extract", "learn"])
    assert (found.span.ok, found.span.rank) == (True, 4)
    assert (found.stopped, found.ending) == (True, NO_METHOD)
    bare = Leak("none", HonestCost(0.0, 0.0, 1.0, 10), None, Rebuilt("extract", Result(Outcome.RECOVERED, None, {})))
    assert "It leaves the span: 4 of 12 directions" in Sweep("", (bare, found), 16.0, "").sentence
    spans = leak(NetworkOracle(network), "labels", inputs=inputs, methods=["span"])
    assert spans.stopped is None  # nobody asked for a copy
    assert np.isnan(found.honest.rms_error)


def test_a_budget_for_each_method():
    found = leak(NetworkOracle(NETWORK), "float32", inputs=INPUTS, budget=300)
    for ended in (found.span, found.extracted.result, found.learned.result, found.trained.result):
        assert ended.queries <= 300
    assert found.extracted.result.outcome is Outcome.OUT_OF_BUDGET
    assert found.stopped is None  # more might have been enough


def test_time_that_runs_out_decides_nothing():
    found = leak(NetworkOracle(NETWORK), "float32", inputs=INPUTS, seconds=0.01, methods=["extract"])
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


@pytest.mark.parametrize("served", ["float32", "decimals", "noise"])
def test_the_copy_answers_in_the_digits_of_its_model(served):
    targets = {
        "float32": in_float32(NETWORK),
        "decimals": lambda x: np.round(NETWORK(x), 3),
        "noise": noisy(NETWORK, 1e-3),
    }
    health = check_health(open_oracle(targets[served], dim=6))
    again = check_health(open_oracle(as_served(NetworkOracle(NETWORK), health)))
    assert (again.decimals, again.number_format) == (health.decimals, health.number_format)
    assert again.deterministic == health.deterministic
    assert again.fresh_noise == pytest.approx(health.fresh_noise, rel=0.5)


def test_without_a_copy_only_the_span_is_tried(tmp_path, valid):
    """A file whose network is not recovered stands for itself, and no time goes into copies that do not exist."""
    planted((8, 4, 2)).save(tmp_path / "model.npz")
    with open_oracle(lambda x: planted((8, 4, 2))(x).argmax(axis=1), dim=8) as oracle:
        found = valid(audit(oracle, file=tmp_path / "model.npz", steps=["health", "extraction", "defenses"]).to_dict())
    assert found["defenses"]["on"] == "the local file"
    assert found["defenses"]["cheapest"] is None
    assert all(row["rebuilt"] is None for row in found["defenses"]["rows"][1:])


def test_one_defense_that_fails_does_not_cost_the_others():
    class Strange(NetworkOracle):
        """A copy that breaks when its answers would be rounded."""

        answered = 0

        def answer(self, rows):
            Strange.answered += 1
            if Strange.answered == 1:
                raise RuntimeError("broken")
            return super().answer(rows)

    copy, tried = Strange(planted((3, 2, 1))), ("span", "extract", "learn")
    found = sweep(StandIn(copy, "the local file", INPUTS[:, :3]), seconds=20, methods=tried)
    assert found.failed[0][0] == "none"
    assert len(found.rows) == 6


def _leak(name: str, error: float, ok: bool, *, undecided: bool = False, copied: float = 1.0) -> Leak:
    outcome = Outcome.RECOVERED if ok else Outcome.LOW_PRECISION
    rebuilt = Rebuilt("extract", Result(outcome, None, {}), copied, undecided=undecided)
    return Leak(name, HonestCost(error, error, 1.0, 10), None, rebuilt)


def test_other_answers_cost_more_than_an_error_and_labels_most():
    names = (("labels", np.nan), ("softmax, top=1", np.nan), ("softmax", np.nan), ("decimals=1", 0.5))
    bare, *stopping = _leak("none", 0.0, True), *(_leak(name, error, False) for name, error in names)
    for k in range(len(stopping)):
        assert Sweep("", (bare, *stopping[: k + 1]), 16.0, "").cheapest is stopping[k]
    assert "honest users get other answers than before" in Sweep("", (bare, stopping[0]), 16.0, "").sentence


def test_the_cheapest_is_the_one_with_the_smallest_error():
    rows = (_leak("none", 0.0, True), _leak("a", 1e-2, False), _leak("b", 1e-4, False), _leak("c", 1e-6, True))
    assert Sweep("", rows, 16.0, "").cheapest.defense == "b"


def test_defenses_that_ended_alike_are_told_together():
    slow = [_leak(name, 1e-3, False, undecided=True) for name in ("decimals=6", "decimals=3")]
    found = Sweep("", (_leak("none", 0.0, True), *slow), 16.0, "")
    assert "Not decided: 6 decimals, 3 decimals (extraction: time over)." in found.sentence


def test_a_refusal_is_no_run_through_the_budget():
    said = Sweep("", (_leak("none", 0.0, True), _leak("a", 1e-3, False)), 16.0, "").sentence
    assert "is a (extraction: low precision, refused after a look at 0 answers)" in said
    assert "200,000" not in said


def test_a_close_copy_is_not_stopped():
    rows = (_leak("none", 0.0, True), _leak("a", 1e-3, False, copied=CLOSE / 2))
    assert Sweep("", rows, 16.0, "").cheapest is None


def test_what_was_not_decided_is_said():
    rows = (_leak("none", 0.0, True), _leak("slow", 1e-3, False, undecided=True))
    found = Sweep("", rows, 16.0, "")
    assert found.cheapest is None
    assert "Not decided: slow (extraction: time over)." in found.sentence


@pytest.mark.parametrize(
    ("outcome", "stopped"),
    [
        (Outcome.PIECEWISE_CONSTANT, True),
        (Outcome.NOT_ACCURATE, True),
        (Outcome.TOO_NOISY, None),
        (Outcome.UNVERIFIED, None),
        (Outcome.TARGET_FAILED, None),
        (Outcome.NON_FINITE, None),
        (Outcome.OUT_OF_REACH, None),
        (Outcome.OUT_OF_BUDGET, None),
        (Outcome.PARTIAL, None),
    ],
)
def test_only_a_method_that_came_to_its_end_was_stopped(outcome, stopped):
    row = Leak("a", HonestCost(0.1, 0.1, 1.0, 10), None, Rebuilt("extract", Result(outcome, None, {})))
    found = Sweep("", (_leak("none", 0.0, True), row), 16.0, "")
    assert row.stopped is stopped
    assert (found.cheapest is row) == (stopped is True)
    assert f"a (extraction: {outcome.slug.replace('-', ' ')}" in found.sentence


@pytest.mark.parametrize("outcome", [Outcome.NON_FINITE, Outcome.OUT_OF_REACH])
def test_what_a_link_cannot_read_was_left_out_by_the_defense(outcome):
    tried = Rebuilt("extract", Result(outcome, None, {}), missing=True)
    assert Leak("top=1", HonestCost(0.1, 0.1, 1.0, 10), None, tried).stopped is True


UNLUCKY = Result(Outcome.LOW_PRECISION, None, {}, evidence={"failures": ["lines"]})


@pytest.mark.parametrize("run", [UNLUCKY, *(Result(outcome, None, {}) for outcome in Outcome)], ids=repr)
def test_a_row_and_the_verdict_have_one_rule(run):
    """What leaves a leak open in the audit of a target is no proof that a defense stops it."""
    of_the_audit = Known(Given(INPUTS), extraction=run).settled("extraction")
    assert Rebuilt("extract", run).settled == of_the_audit


def test_few_digits_tried_in_vain_stop_nothing():
    row = Leak("decimals=2", HonestCost(0.1, 0.1, 1.0, 10), None, Rebuilt("extract", UNLUCKY, 0.5))
    found = Sweep("", (_leak("none", 0.0, True), row), 16.0, "")
    assert (row.stopped, found.cheapest) == (None, None)
    assert "Not decided: 2 decimals (extraction: low precision (few digits tried in vain))." in found.sentence


def test_noise_that_hides_everything_from_one_seed_stops_nothing():
    """At the brink of what can be seen one seed refuses the answers, and another gives a copy."""
    copy, settings = NetworkOracle(NETWORK), {"inputs": INPUTS, "methods": ["extract", "learn"]}
    refused, copied = (leak(copy, "gaussian=0.005", rng=seed, **settings) for seed in (1, 0))
    assert refused.extracted.result.outcome is Outcome.TOO_NOISY
    assert (refused.stopped, copied.stopped) == (None, False)


def test_a_box_that_one_seed_does_not_find_stops_nothing():
    """Probabilities that are certain nearly everywhere: extraction looks for a box, and finds one or does not."""
    steep = ReLUNetwork([DRAWN.weights[0], 300 * DRAWN.weights[1]], [DRAWN.biases[0], 300 * DRAWN.biases[1]])
    settings = {"inputs": INPUTS, "methods": ["extract", "learn"]}
    missed, copied = (leak(NetworkOracle(steep), "softmax", rng=seed, **settings) for seed in (1, 0))
    assert missed.extracted.result.outcome is Outcome.OUT_OF_REACH
    assert (missed.stopped, copied.stopped) == (None, False)


@pytest.mark.parametrize("defense", ["decimals=6", "decimals=3", "float16", "gaussian=3e-4", "top=1"])
def test_every_defense_of_probabilities_is_decided(defense):
    """In float64, where probabilities by themselves are no defense."""
    copy = NetworkOracle(PROBABLE.before_link("softmax"))
    found = leak(copy, defense, inputs=INPUTS, link="softmax", methods=["extract", "learn"])
    assert found.stopped is True
    assert all(each.refused for each in found.tried)
    assert f"refused after a look at {found.extracted.result.queries:,} answers" in found.ending_in_full


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


def test_copies_are_held_against_all_digits():
    """A model that rounds is one all the same: a copy that is better than its answers is told as that."""
    network = planted((6, 5, 3))
    plain = defend(NetworkOracle(network), "softmax")
    rounded_, settings = defend(plain, "decimals=2"), {"inputs": INPUTS, "link": "identity", "methods": ["train"]}
    true = leak(rounded_, (), yardstick=plain, hidden=(32,), **settings).trained
    beside = leak(rounded_, (), hidden=(32,), **settings).trained
    assert true.error < beside.error


@pytest.mark.parametrize("cut", [{"undecided": True}, {"outcome": Outcome.OUT_OF_BUDGET}])
def test_without_a_settled_first_row_nothing_is_said_of_copies(cut):
    result = Result(cut.pop("outcome", Outcome.LOW_PRECISION), None, {})
    bare = Leak("none", HonestCost(0.0, 0.0, 1.0, 10), None, Rebuilt("extract", result, **cut))
    found = Sweep("", (bare, _leak("a", 1e-3, False)), 16.0, "")
    assert found.open is None
    assert found.sentence.startswith("Whether the network can be rebuilt without a defense is not settled, so none")


def test_an_audit_that_ran_out_of_time_has_an_undecided_first_row(tmp_path, valid):
    NETWORK.save(tmp_path / "model.npz")
    with open_oracle(tmp_path / "model.npz") as oracle:
        steps = ["health", "extraction", "defenses"]
        found = valid(audit(oracle, file=tmp_path / "model.npz", steps=steps, seconds=1e-9).to_dict())["defenses"]
    assert found["rows"][0]["stopped"] is None
    assert found["sentence"].startswith("Whether the network can be rebuilt without a defense is not settled")


def test_a_copy_is_asked_inside_the_targets_domain(tmp_path):
    """The network and the file alike stand for the target where it may be asked."""
    network = planted((4, 3, 1))
    network.save(tmp_path / "model.npz")
    given = Given(np.zeros((1, 4)), file=tmp_path / "model.npz")
    recovered = Known(given, extraction=Result(Outcome.RECOVERED, network, {}))
    for known in (recovered, Known(given)):
        copy, yardstick, _, _ = defending._copy(known, Domain(-1.0, 1.0))
        assert copy.facts.domain == yardstick.facts.domain == Domain(-1.0, 1.0)
        with pytest.raises(InvalidRows):
            copy.query(np.full((1, 4), 2.0))


def test_a_file_stands_behind_the_defenses_of_its_target(tmp_path):
    NETWORK.save(tmp_path / "model.npz")
    given = Given(INPUTS, file=tmp_path / "model.npz", defense=("decimals=2",), output=1)
    copy, yardstick, last, _ = defending._copy(Known(given), Domain())
    np.testing.assert_allclose(defend(copy, *last).query(INPUTS), np.round(NETWORK(INPUTS)[:, 1:2], 2))
    np.testing.assert_allclose(yardstick.query(INPUTS), NETWORK(INPUTS)[:, 1:2])


@pytest.mark.parametrize(("target", "last"), [(rounded(NETWORK, 3), "decimals=3"), (in_float32(NETWORK), "float32")])
def test_a_recovered_network_has_its_digits_cut_last(target, last):
    health = check_health(open_oracle(target, dim=6))
    known = Known(Given(INPUTS), served=health, extraction=Result(Outcome.RECOVERED, NETWORK, {}))
    copy, yardstick, names, _ = defending._copy(known, Domain())
    assert names == (last,)
    np.testing.assert_array_equal(copy.query(INPUTS), NETWORK(INPUTS))
    np.testing.assert_array_equal(yardstick.query(INPUTS), NETWORK(INPUTS))


@pytest.mark.parametrize(
    ("defense", "before", "last"),
    [
        (("decimals=2",), (), ("decimals=2",)),
        (("softmax", "float32", "digits=3"), ("softmax",), ("float32", "digits=3")),
        (("decimals=2", "softmax"), ("decimals=2", "softmax"), ()),  # values are rounded before, and stay so
        (("decimals=3", "gaussian=0.1,fixed"), ("decimals=3", "gaussian=0.1,fixed"), ()),
    ],
)
def test_what_a_target_does_to_its_digits_last_stays_last(defense, before, last):
    assert split_last(defense, DIGITS) == (before, last)


@pytest.mark.parametrize("digits", [2, 4])
def test_probabilities_are_made_of_values_with_all_their_digits(digits):
    """An owner who serves them rounds them, and not the values before: what is refused is told with its digits."""
    settings = {"inputs": INPUTS, "methods": ["extract"], "last": (f"decimals={digits}",)}
    row = leak(NetworkOracle(NETWORK), "softmax", **settings)
    assert row.defense == f"softmax, decimals={digits}"
    assert defense_words(row.defense) == f"probabilities of {digits} decimals"
    assert row.extracted.result.evidence["health"].behind.decimals == digits
    told = Sweep("", (_leak("none", 0.0, True), row), 16.0, "").sentence
    assert f"stopped exact recovery is probabilities of {digits} decimals (" in told


def test_a_number_format_is_how_rounded_answers_are_written():
    """Rounded after that they would be no numbers of the format, and its range would be met as a fault."""
    settings = {"inputs": INPUTS, "methods": ["extract"], "last": ("decimals=2",)}
    row = leak(NetworkOracle(NETWORK), "float16", **settings)
    assert row.extracted.result.evidence["health"].number_format == "float16"
    assert (row.defense, row.stopped) == ("float16", True)


def test_digits_are_told_of_other_numbers_alone():
    """Of the answers as they are an owner knows them, and labels have none."""
    settings = {"inputs": INPUTS, "methods": [], "last": ("float32",)}
    names = [("softmax", "top=1"), ("labels",), ("gaussian=0.1",), ()]
    called = [leak(NetworkOracle(NETWORK), name, **settings).defense for name in names]
    assert called == ["softmax, top=1, float32", "labels", "gaussian=0.1", "none"]


@pytest.mark.parametrize(
    ("last", "tried"),
    [
        ((), ["decimals=6", "decimals=3", "decimals=2", "float16"]),
        (("decimals=4",), ["decimals=3", "decimals=2", "float16"]),
        (("decimals=3",), ["decimals=2", "float16"]),
        (("decimals=2",), ["decimals=1", "float16"]),
        (("decimals=0",), ["float16"]),
        (("float16",), ["decimals=6", "decimals=3", "decimals=2"]),
    ],
)
def test_defenses_that_change_nothing_are_not_tried(last, tried):
    digits = {"decimals", "float16"}
    names = [name for name, *_ in default_defenses(Facts(4, 3), 1.0, last)[1:] if name.partition("=")[0] in digits]
    assert names == tried


def test_noise_that_users_have_already_is_no_cost_of_a_defense():
    noisy_copy, settings = defend(NetworkOracle(NETWORK), "gaussian=0.5"), {"inputs": INPUTS, "methods": []}
    row = leak(noisy_copy, "decimals=6", yardstick=NetworkOracle(NETWORK), **settings)
    assert row.honest.rms_error < 1e-6
    assert row.honest.agreement == 1.0


def test_one_output_behind_a_link_is_not_swept(tmp_path):
    NETWORK.save(tmp_path / "model.npz")
    with pytest.raises(Skip, match="One output"):
        defending._copy(Known(Given(INPUTS, file=tmp_path / "model.npz", output=1), link="softmax"), Domain())


@pytest.mark.parametrize(
    ("target", "digits"),
    [(NETWORK, 16.0), (in_float32(NETWORK), 7.2), (rounded(NETWORK, 3), 3.5), (noisy(NETWORK, 1e-2), 2.0)],
)
def test_digits_given_are_those_of_the_answers(target, digits):
    health = check_health(open_oracle(target, dim=6))
    assert digits_given(health) == pytest.approx(digits, abs=0.6)


def test_the_sweep_keeps_to_its_time():
    """Rows that were not begun have their costs, and are not decided."""
    copy, start = NetworkOracle(planted((6, 8, 3))), time.process_time()
    found = sweep(StandIn(copy, "the local file", INPUTS), seconds=1.0)
    assert time.process_time() - start < 3.0
    assert found.rows[-1].defense == "labels"
    assert found.rows[-1].tried == [] or found.rows[-1].stopped is not None
    late = sweep(StandIn(copy, "the local file", INPUTS), seconds=1e-9)
    assert [row.stopped for row in late.rows] == [None] * 8 + [True]  # labels need no time to be refused
    assert late.rows[1].honest.rms_error > 0


def test_a_defense_has_one_clock_for_all_its_methods():
    start = time.process_time()
    leak(NetworkOracle(planted((20, 40, 20, 3))), "softmax", inputs=np.zeros((5, 20)), seconds=1.0)
    assert time.process_time() - start < 2.0


def test_nothing_is_recommended_where_no_copy_was_made():
    found = Sweep("", (_leak("none", 0.0, False), _leak("a", 1e-3, False)), 16.0, "")
    assert found.cheapest is None
    assert "even without a defense" in found.sentence


def test_a_student_is_not_taken_again_where_fewer_rows_are_answered() -> None:
    """A limit changes no answer, but how many there are."""
    settings = {"inputs": INPUTS, "methods": ("train",), "hidden": (8,), "budget": 2000, "seconds": 3.0}
    first = leak(NetworkOracle(NETWORK), (), **settings).trained
    again = leak(NetworkOracle(NETWORK), "digits=12", first=first, **settings).trained
    limited = leak(NetworkOracle(NETWORK), "limit=500", first=first, **settings).trained
    assert first is not None
    assert first.error is not None
    assert again is not None
    assert again.reused
    assert limited is not None
    assert not limited.reused
    assert limited.result.queries == 500


def test_a_student_of_noisy_probabilities_is_held_beside_probabilities() -> None:
    """Noise makes them look independent: a student then has no log-ratios to the first class."""
    network = ReLUNetwork([DRAWN.weights[0], 3 * DRAWN.weights[1]], DRAWN.biases, None, "softmax")
    settings = {"inputs": INPUTS, "link": "softmax", "methods": ("train",), "hidden": (16,), "budget": 4000}
    trained = leak(NetworkOracle(network), ("gaussian=0.05",), seconds=4.0, **settings).trained
    assert trained is not None
    assert trained.result.evidence["link"] == "sigmoid"
    assert trained.error is not None
    assert trained.error < 0.3

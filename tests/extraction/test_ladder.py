"""The ladder of methods: where a line shows one hidden layer and that fails, deeper methods have their turn."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.domains import Domain
from reluctant.errors import InvalidInput
from reluctant.extraction import attempts
from reluctant.extraction.crease_depth import CreaseKinds
from reluctant.extraction.ladder import LADDER, Attempt, Attempts, Need, Standing, walk
from reluctant.extraction.method import Shows, StageFailed
from reluctant.interface.health import examine as examine_health
from reluctant.oracles import Wrapper
from reluctant.results import Run
from reluctant.testing import planted


@pytest.fixture
def one_layer_seen(monkeypatch):
    """Every crease that was followed goes straight on."""
    monkeypatch.setattr(attempts, "look_for_layers", lambda *_: CreaseKinds(9, 9, 0))


@pytest.mark.usefixtures("one_layer_seen")
def test_any_depth_is_tried_after_one_hidden_layer():
    found = rl.extract(planted((10, 6, 4, 1), 0), rng=0)
    assert found.ok
    assert [each.method for each in found.evidence["attempts"].entries] == [
        "DepthTwo",
        "DepthTwo",
        "AnyPosition",
        "AnyDepth",
    ]


def test_what_was_tried_is_told_with_its_rows():
    found = rl.extract(planted((10, 6, 4, 1), 0), rng=0)
    tried = found.evidence["attempts"].entries
    assert [each.method for each in tried] == ["DepthTwo", "DepthThree"]
    assert tried[0].number > tried[0].limit
    assert all(each.rows > 0 for each in tried)
    assert sum(each.rows for each in tried) <= found.queries
    assert found.to_dict()["evidence"]["attempts"][0]["method"] == "DepthTwo"
    assert str(found.evidence["attempts"]).startswith(f"DepthTwo: {tried[0].rows} rows")


class Given(rl.Method):
    """Returns whatever it was made with."""

    def __init__(self, given) -> None:
        self.given = given

    def run(self, oracle, noise, rng, keep):
        return self.given


@pytest.mark.parametrize(
    ("given", "part"),
    [
        (planted((3, 2, 1), 0), "got ReLUNetwork, expected a Candidate"),
        (None, "got NoneType, expected a Candidate"),
        (rl.Candidate(planted((4, 2, 1), 0)), "got a network of 4 inputs and 1 outputs, expected 3 and 1"),
        (rl.Candidate(planted((3, 2, 2), 0)), "got a network of 3 inputs and 2 outputs"),
    ],
)
def test_what_no_method_can_mean_is_refused_by_name(given, part):
    with pytest.raises(InvalidInput, match=part):
        rl.extract(planted((3, 4, 1), 0), Given(given), rng=0)


def test_rows_with_answers_are_compared_beside_the_points_of_every_verification():
    network = planted((3, 4, 1), 0)
    rows = np.random.default_rng(0).normal(size=(20, 3))
    without = rl.extract(network, Given(rl.Candidate(network)), rng=0)
    right = rl.extract(network, Given(rl.Candidate(network, held_out=(rows, network(rows)))), rng=0)
    wrong = rl.extract(network, Given(rl.Candidate(network, held_out=(rows, network(rows) + 1))), rng=0)
    assert right.ok
    assert right.queries == without.queries
    assert right.evidence["verification"].points == without.evidence["verification"].points + 20
    assert wrong.outcome is rl.Outcome.UNVERIFIED
    with pytest.raises(InvalidInput, match=r"^held_out: got rows and answers of shapes"):
        rl.Candidate(network, held_out=(rows, network(rows)[:5]))


@pytest.mark.slow
def test_a_trained_regressor_is_recovered_at_every_seed():
    regressor = pytest.importorskip("sklearn.neural_network").MLPRegressor
    data = np.random.default_rng(0).normal(size=(400, 10))
    values = np.sin(data[:, 0]) + data[:, 1] * data[:, 2]
    model = regressor(hidden_layer_sizes=(20, 10), max_iter=60, tol=1.0, random_state=0).fit(data, values)
    assert all(rl.extract(model, rng=seed).ok for seed in range(5))


class Greedy(rl.Method):
    """Asks for a few rows; first for more than the budget holds at once, then gives the network."""

    def __init__(self, network: rl.ReLUNetwork, wanted: int) -> None:
        self.network, self.wanted, self.runs = network, wanted, 0

    def run(self, oracle, noise, rng, keep):
        self.runs += 1
        oracle.query(rng.normal(size=(self.wanted if self.runs == 1 else 10, oracle.dim)))
        return rl.Candidate(self.network)


@pytest.mark.parametrize("budget", [20_000, None])
def test_a_batch_that_the_budget_refuses_leaves_its_rows_for_another_start(budget):
    network = planted((4, 5, 1), 0)
    method = Greedy(network, 25_000)
    result = rl.extract(rl.open_oracle(network, budget=budget), method)
    assert result.ok
    assert method.runs == (2 if budget else 1)


def test_with_few_rows_left_the_first_attempt_ends_the_run():
    network = planted((4, 5, 1), 0)
    method = Greedy(network, 5_000)
    result = rl.extract(rl.open_oracle(network, budget=2_000), method)
    assert result.outcome is rl.Outcome.OUT_OF_BUDGET
    assert method.runs == 1


def test_cheap_attempts_of_the_last_method_do_not_count():
    entry = Attempt
    tried = Attempts([entry("DepthTwo", 200, "biases"), entry("AnyPosition", 9_000, "lines")])
    tried.entries += [entry("AnyDepth", 1_700, "completion")]
    assert tried.last_was_cheap(attempts=4)
    assert not tried.last_was_cheap(attempts=1)
    tried.entries += [entry("AnyDepth", 8_000, "completion")]
    assert not tried.last_was_cheap(attempts=4)
    assert tried.last_was_cheap(attempts=4, however=True)
    assert not tried.last_was_cheap(attempts=2, however=True)


class OutOfRange(rl.Method):
    """Keeps a part of the network, then reads beyond the end of an array; from a later run on it gives the network."""

    def __init__(self, network: rl.ReLUNetwork, failures: int) -> None:
        self.network, self.failures, self.runs = network, failures, 0

    def run(self, oracle, noise, rng, keep):
        self.runs += 1
        with oracle.stage("lines"):
            oracle.query(rng.normal(size=(10, oracle.dim)))
        keep(self.network)
        if self.runs <= self.failures:
            np.zeros(3)[5]
        return rl.Candidate(self.network)


def test_arithmetic_that_raises_ends_one_attempt_by_name():
    network = planted((4, 5, 1), 0)
    result = rl.extract(network, OutOfRange(network, failures=1), rng=0)
    assert result.ok
    first, last = result.evidence["attempts"].entries
    assert (first.stage, first.raised, first.number, first.limit) == ("arithmetic", "IndexError", 1, 0)
    assert first.rows == 10
    assert last.raised == ""


def test_arithmetic_that_always_raises_leaves_the_part_that_was_found():
    network = planted((4, 5, 1), 0)
    result = rl.extract(network, OutOfRange(network, failures=9), rng=0, attempts=2)
    assert result.outcome is rl.Outcome.PARTIAL
    assert result.network is not None
    assert [each.raised for each in result.evidence["attempts"].entries] == ["IndexError"] * 2


def test_what_raised_an_exception_stays_with_it():
    network = planted((4, 5, 1), 0)
    with rl.open_oracle(network) as oracle:
        run = Run.begin(oracle, "extract", 0, None)
        search = attempts.Search(run, None, np.random.default_rng(0))
        place = attempts.Place(oracle, examine_health(oracle, np.random.default_rng(0)))
        with pytest.raises(StageFailed) as failed:
            search.attempt(place, OutOfRange(network, failures=1), np.random.default_rng(0))
    assert isinstance(failed.value.__cause__, IndexError)


class Astray(Wrapper):
    """An oracle of a user's own that fails after a few questions."""

    asked = 0

    def answer(self, rows):
        self.asked += 1
        if self.asked > 12:
            raise IndexError("its own")
        return self.inner.answer(rows)


def test_an_exception_of_an_oracle_is_not_taken_for_arithmetic():
    with rl.open_oracle(planted((4, 5, 1), 0)) as oracle, pytest.raises(IndexError, match="its own"):
        rl.extract(Astray(oracle.inner), rng=0)


def standing(shows=Shows.NOTHING, **given):
    usual = {
        "domain": Domain(), "shows": shows, "lines": (), "first": None, "part": None, "whole": False, "against": [],
        "stages": (), "layers": lambda: CreaseKinds(9, 4, 0),
    }  # fmt: skip
    return Standing(**usual | given)


def first_methods(count, *has, **given):
    offers = frozenset(has if has else {Need.SPACE, Need.VALUES, Need.DIGITS, Need.MORE_INPUTS})
    walked = walk(LADDER, offers, lambda: standing(**given))
    return [type(method).__name__ for method, _ in zip(walked, range(count), strict=False)]


FEW = (Need.SPACE, Need.VALUES, Need.FEW_DIGITS, Need.MORE_INPUTS)


@pytest.mark.parametrize(
    ("shows", "methods"),
    [
        (Shows.NOTHING, ["FewDigits"] * 4),
        (Shows.SUBSPACE, ["FewDigits", "FewDigits", "FewDigitsDeep", "FewDigitsDeep"]),
        (Shows.BENT_CREASES, ["FewDigitsDeep"] * 4),
        (Shows.OTHER_CREASES, ["FewDigitsDeep"] * 4),
        (Shows.WIDE_LAYER, ["FewDigits"] * 4),
    ],
)
def test_findings_of_a_failed_stage_lead_to_two_layers_of_few_digits(shows, methods):
    assert first_methods(4, *FEW, shows=shows) == methods


def test_where_creases_bend_one_layer_is_tried_once():
    assert first_methods(4) == ["DepthTwo", "DepthThree", "AnyDepth", "AnyDepth"]
    hopeless = CreaseKinds(1, 0, 9)
    assert first_methods(4, layers=lambda: hopeless) == ["DepthTwo"]


def test_a_crowd_whose_lines_are_explained_lacks_digits_alone():
    crowd = planted((2, rl.DepthTwo.crowd, 1), 0)
    reached = (rl.DepthTwo.depth_known_from,)
    assert first_methods(4, part=crowd, stages=reached) == ["DepthTwo"] * 2
    assert first_methods(4, part=crowd, stages=reached, shows=Shows.WITNESSES)[2] == "DepthThree"


def test_a_box_of_its_own_is_left_to_one_layer_unless_creases_bend():
    has = (Need.BOUNDS, Need.OWN_BOX, Need.VALUES, Need.DIGITS, Need.MORE_INPUTS)
    assert first_methods(3, *has) == ["DepthTwo", "DepthTwo", "DeepInBox"]
    assert first_methods(3, *has, shows=Shows.BENT_CREASES) == ["DepthTwo", "DeepInBox", "DeepInBox"]

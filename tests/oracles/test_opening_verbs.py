"""Every verb takes an oracle or anything `open_oracle` takes, with its keywords; it closes what it opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle_models import gaussian_rows, save_onnx, softmax, torch_module

import reluctant as rl
from reluctant.audit import Audit
from reluctant.errors import InvalidInput, TranscriptError
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Facts, NetworkOracle, Oracle, Wrapper, open_oracle
from reluctant.testing import planted

NETWORK = planted((4, 6, 1), 1)
X = gaussian_rows(1, 4)[0]


def served(x: np.ndarray) -> np.ndarray:
    return NETWORK(x)


def same(found: Any) -> Any:
    """What can be compared of a result."""
    network = getattr(found, "network", None)
    weights = [w.tobytes() for w in network.weights] if network is not None else None
    opening = found.rows["open"].queries if isinstance(found, Audit) else 0  # an audit counts the questions of opening
    return type(found), (found.queries if hasattr(found, "queries") else found.points) - opening, weights


VERBS: dict[str, Callable[..., Any]] = {
    "extract": rl.extract,
    "learn": lambda target, **opening: rl.learn(target, narrowest=0.1, **opening),
    "recover_span": rl.recover_span,
    "train_student": lambda target, **opening: rl.train_student(target, rows=200, steps=50, hidden=(4,), **opening),
    "flip_sign": lambda target, **opening: rl.flip_sign(target, X, **opening),
    "local_linearity": lambda target, **opening: rl.local_linearity(target, X, radii=(0.1,), **opening),
    "verify": lambda target, **opening: rl.verify(target, NETWORK, **opening),
    "check_health": rl.check_health,
    "audit": lambda target, **opening: rl.audit(target, steps=["health"], **opening),
}


class Closing(Wrapper):
    """An oracle of one's own that knows whether it was closed."""

    transparent = True
    closed = 0

    def answer(self, rows: np.ndarray) -> np.ndarray:
        return self.inner.answer(rows)

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("verb", VERBS)
def test_a_bare_function_is_opened(verb):
    assert same(VERBS[verb](served, dim=4)) == same(VERBS[verb](open_oracle(served, dim=4)))


@pytest.mark.parametrize("verb", VERBS)
def test_a_function_without_its_number_of_inputs_is_refused(verb):
    with pytest.raises(InvalidInput, match="dim"):
        VERBS[verb](served)


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_keyword_is_named(verb):
    with pytest.raises(TypeError, match="depth"):
        VERBS[verb](served, dim=4, depth=3)


@pytest.mark.parametrize("verb", VERBS)
def test_an_oracle_stays_open_and_keeps_its_count(verb):
    own = Closing(NetworkOracle(NETWORK))
    oracle = open_oracle(own)
    VERBS[verb](oracle)
    spent = oracle.queries
    assert spent > 0
    VERBS[verb](oracle, timeout=60.0)  # opened anew around it, for this call
    assert oracle.queries > spent
    assert not own.closed


@pytest.mark.parametrize("verb", sorted(set(VERBS) - {"audit", "check_health", "verify", "local_linearity"}))
def test_a_budget_is_one_of_this_call(verb):
    oracle = open_oracle(served, dim=4)
    oracle.query(gaussian_rows(50, 4))
    found = VERBS[verb](oracle, budget=20)
    assert found.outcome in {rl.Outcome.OUT_OF_BUDGET, rl.Outcome.NOT_ACCURATE}
    assert found.queries <= 20
    assert oracle.queries <= 71


@pytest.mark.parametrize("verb", VERBS)
def test_a_transcript_is_closed_with_the_call_and_resumed_by_the_next(verb, tmp_path):
    first = VERBS[verb](served, dim=4, transcript=tmp_path / "kept")
    asked: list[int] = []

    def watched(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        return served(x)

    again = VERBS[verb](watched, dim=4, transcript=tmp_path / "kept")
    assert same(again) == same(first)
    assert sum(asked) <= 6  # to know the target by
    with pytest.raises(TranscriptError):
        VERBS[verb](lambda x: served(x) + 1, dim=4, transcript=tmp_path / "kept")


def test_a_path_a_network_and_a_module_are_opened(tmp_path):
    file = save_onnx(NETWORK, tmp_path / "net.onnx")
    for target in (file, str(file), NETWORK):
        assert rl.check_health(target, rng=0, precision="as-served").queries > 0
    module = torch_module(NETWORK)
    assert rl.check_health(module, dim=4, precision="float64").queries > 0


def test_a_network_costs_nothing_unless_it_is_opened():
    assert rl.flip_sign(NETWORK, X).queries == 0
    assert rl.flip_sign(NETWORK, X, budget=1000).queries > 0
    assert rl.local_linearity(NETWORK, X).queries == 0
    assert rl.local_linearity(NETWORK, X, domain=(-10, 10)).queries > 0


def test_a_link_is_one_of_this_call():
    network = planted((4, 6, 3), 1)
    found = rl.extract(lambda x: softmax(network(x)), dim=4, link="softmax", rng=0)
    assert found.ok


def test_the_audit_of_a_file_knows_its_truth(tmp_path):
    NETWORK.save(tmp_path / "net.npz")
    found = rl.audit(tmp_path / "net.npz", budget=3000, steps=["health", "extraction", "truth"])
    assert found.to_dict()["truth"] is not None
    assert found.queries <= 3000


def test_what_an_oracle_opened_for_itself_is_its_own():
    class Own(Oracle):
        facts = Facts(4, 1)
        closed = False

        def answer(self, rows: np.ndarray) -> np.ndarray:
            return served(rows)

        def close(self) -> None:
            self.closed = True

    own = Own()
    assert rl.extract(own, rng=0).ok
    assert rl.extract(own, rng=0, budget=2000).ok
    assert not own.closed


@pytest.mark.parametrize("opened", [NetworkOracle(NETWORK), open_oracle(NETWORK)])
def test_an_oracle_is_called_like_it_is_queried(opened):
    rows = gaussian_rows(7, 4)
    np.testing.assert_array_equal(opened(rows), opened.query(rows))
    with pytest.raises(rl.ReluctantError):
        opened(rows[:, :3])


def test_a_call_is_counted():
    oracle = open_oracle(NETWORK)
    oracle(gaussian_rows(7, 4))
    assert oracle.queries == 7


def test_a_network_read_from_a_file_is_a_target(tmp_path: Path):
    NETWORK.save(tmp_path / "net.npz")
    assert rl.verify(tmp_path / "net.npz", ReLUNetwork.load(tmp_path / "net.npz")).ok


class OfOneNumber(rl.Oracle):
    """An oracle of a user, which answers one number a row, as a list or as an array."""

    def __init__(self, kind):
        self.kind = kind

    @property
    def facts(self):
        return rl.Facts(dim=3, outputs=1, name="sum")

    def answer(self, rows):
        return self.kind(np.abs(rows).sum(axis=1))


@pytest.mark.parametrize("kind", [np.asarray, list, lambda column: column[:, None].tolist()])
def test_an_oracle_of_a_user_may_answer_a_list_or_one_number_a_row(kind):
    result, usual = (rl.extract(OfOneNumber(each), rng=0) for each in (kind, lambda column: column[:, None]))
    assert result.ok
    assert result.queries == usual.queries

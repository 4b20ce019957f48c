"""A transcript replays what was paid for, survives a torn end, and refuses another target, seed or damage."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_models import Asked, fitted_mlp, gaussian_rows, save_onnx, torch_module

from reluctant.errors import (
    InvalidInput,
    TargetUnavailable,
    TranscriptCorrupt,
    TranscriptError,
    TranscriptInUse,
    TranscriptMismatch,
)
from reluctant.networks import ReLUNetwork
from reluctant.oracles import (
    Counting,
    Facts,
    Ledger,
    NetworkOracle,
    Oracle,
    Rows,
    Transcript,
    Wrapper,
    open_oracle,
    transcript,
)
from reluctant.oracles.framelog import FrameLog
from reluctant.oracles.transcript import CHUNK_ROWS
from reluctant.testing import planted
from reluctant.testing.faults import Dying, noisy

NETWORK = planted((4, 6, 1), 1)
BATCHES = [gaussian_rows(n, 4, seed=n) for n in (7, 3, 5)]


def served(x: np.ndarray) -> np.ndarray:
    return NETWORK(x)


def log_of(folder: Path) -> Path:
    return folder / "transcript.log"


def record(folder: Path, target: Any = NETWORK, batches: list[np.ndarray] = BATCHES, **keywords: Any) -> list[int]:
    """Ask the batches; return the size of the log before the first of them and after each."""
    with open_oracle(target, transcript=folder, **keywords) as oracle:
        sizes = [log_of(folder).stat().st_size]
        for batch in batches:
            oracle.query(batch)
            sizes.append(log_of(folder).stat().st_size)
    return sizes


def reopened(folder: Path, target: Any = NETWORK, **keywords: Any) -> tuple[Counting, Transcript]:
    oracle = open_oracle(target, transcript=folder, **keywords)
    assert isinstance(oracle.inner, Transcript)
    return oracle, oracle.inner


# ---- replaying


def test_replay_sends_nothing(tmp_path: Path) -> None:
    record(tmp_path)
    oracle, log = reopened(tmp_path)
    with oracle:
        assert log.unused == 15
        for batch in BATCHES:
            np.testing.assert_array_equal(oracle.query(batch), NETWORK(batch))
    assert oracle.ledger.total == Rows(asked=15, replayed=15)
    assert (log.unused, log.torn_bytes) == (0, 0)


def test_replay_does_not_depend_on_batches_or_order(tmp_path: Path) -> None:
    record(tmp_path)
    answers = np.concatenate([NETWORK(batch) for batch in BATCHES])
    oracle, _ = reopened(tmp_path)
    with oracle:
        np.testing.assert_array_equal(oracle.query(np.concatenate(BATCHES)[::-1]), answers[::-1])
    assert oracle.ledger.total.sent == 0


def test_only_new_rows_are_sent(tmp_path: Path) -> None:
    record(tmp_path)
    rows = np.concatenate([gaussian_rows(4, 4, seed=99), BATCHES[1], gaussian_rows(2, 4, seed=98)])
    oracle, _ = reopened(tmp_path)
    with oracle:
        np.testing.assert_allclose(oracle.query(rows), NETWORK(rows), rtol=0, atol=1e-13)
    assert oracle.ledger.total == Rows(asked=9, sent=6, replayed=3)


@pytest.mark.parametrize("outputs", [1, 3])
def test_any_number_of_outputs_comes_back(tmp_path: Path, outputs: int) -> None:
    network = planted((4, 6, outputs), 1)
    record(tmp_path, network)
    oracle, _ = reopened(tmp_path, network)
    with oracle:
        np.testing.assert_array_equal(oracle.query(BATCHES[0]), network(BATCHES[0]))


@pytest.mark.parametrize("rows", [1, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1, 3 * CHUNK_ROWS])
def test_rows_go_out_in_chunks(tmp_path: Path, rows: int) -> None:
    target = Asked(served)
    batch = gaussian_rows(rows, 4)
    with open_oracle(target, dim=4, transcript=tmp_path) as oracle:
        np.testing.assert_allclose(oracle.query(batch), NETWORK(batch), rtol=0, atol=1e-13)
    assert sum(target.calls) == rows + 6  # and the opening question, twice
    assert max(target.calls) <= CHUNK_ROWS
    record(tmp_path, target, [batch], dim=4)
    assert sum(target.calls) == rows + 9


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_non_finite_answers_are_kept(tmp_path: Path, value: float) -> None:
    target = Asked(lambda x: np.where(x[:, :1] > 100, value, NETWORK(x)))
    rows = BATCHES[0].copy()
    rows[2, 0] = 101
    for greeting, sent in ((6, 7), (3, 0)):
        target.calls.clear()
        with open_oracle(target, dim=4, transcript=tmp_path) as oracle:
            answers = oracle.answer(rows)
        np.testing.assert_array_equal(answers[2], [value])
        assert np.isfinite(np.delete(answers, 2, axis=0)).all()
        assert sum(target.calls) == greeting + sent


# ---- size on disk


@pytest.mark.parametrize(("outputs", "most"), [(1, 25), (10, 97)])
def test_bytes_per_row(tmp_path: Path, outputs: int, most: int) -> None:
    rows = 10_000
    record(tmp_path, planted((784, 4, outputs), 0), [gaussian_rows(rows, 784)])
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= most * rows


def test_rows_are_kept_on_demand(tmp_path: Path) -> None:
    record(tmp_path, keep_rows=True)
    log = FrameLog(log_of(tmp_path))
    payloads = [frame.payload for frame in log.frames if frame.kind == transcript.ANSWERS_AND_ROWS]
    log.close()
    kept = [np.frombuffer(payload[(16 + 8) * len(batch) :]) for payload, batch in zip(payloads, BATCHES, strict=True)]
    np.testing.assert_array_equal(np.concatenate(kept), np.concatenate(BATCHES).reshape(-1))
    oracle, log = reopened(tmp_path)
    with oracle:
        assert log.unused == 15


# ---- torn and damaged logs

LAST_FRAME_BYTES = 152  # 32 of head, then 16 + 8 for each of 5 rows


@pytest.mark.parametrize("left", [1, 3, 4, 5, 15, 31, 32, 33, 80, 112, 150, 151])
def test_torn_end_is_cut_off(tmp_path: Path, left: int) -> None:
    sizes = record(tmp_path)
    assert sizes[-1] - sizes[-2] == LAST_FRAME_BYTES
    os.truncate(log_of(tmp_path), sizes[-2] + left)
    oracle, log = reopened(tmp_path)
    with oracle:
        assert log.torn_bytes == left
        for batch in BATCHES:
            np.testing.assert_array_equal(oracle.query(batch), NETWORK(batch))
    assert oracle.ledger.total == Rows(asked=15, sent=5, replayed=10)
    assert log_of(tmp_path).stat().st_size == sizes[-1]


@pytest.mark.parametrize("left", [0, 1, 20, 40, 100])
def test_torn_header_is_written_again(tmp_path: Path, left: int) -> None:
    sizes = record(tmp_path)
    os.truncate(log_of(tmp_path), left)
    assert record(tmp_path) == sizes
    oracle, log = reopened(tmp_path)
    with oracle:
        assert (log.unused, log.torn_bytes) == (15, 0)


@pytest.mark.parametrize("place", [0, 3, 5, 9, 20, 40, -1, -LAST_FRAME_BYTES, -200])
def test_damage_before_good_blocks_is_refused(tmp_path: Path, place: int) -> None:
    sizes = record(tmp_path)
    path = log_of(tmp_path)
    content = bytearray(path.read_bytes())
    content[place if place >= 0 else sizes[-2] + place] ^= 0x10
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(TranscriptCorrupt, match=r"^transcript: .*transcript\.log' is damaged at byte \d+"):
            open_oracle(NETWORK, transcript=tmp_path)
    assert path.read_bytes() == content


def test_damaged_log_is_let_go(tmp_path: Path) -> None:
    record(tmp_path)
    path = log_of(tmp_path)
    good = path.read_bytes()
    path.write_bytes(b"#" + good[1:])
    with pytest.raises(TranscriptCorrupt) as caught:
        open_oracle(NETWORK, transcript=tmp_path)
    path.write_bytes(good)
    oracle, log = reopened(tmp_path)
    with oracle:
        assert log.unused == 15
    assert caught.value.slug == "transcript-corrupt"


def test_file_that_is_no_transcript_is_left_alone(tmp_path: Path) -> None:
    notes = b"notes of my own, by chance of the same name\n" * 20
    log_of(tmp_path).write_bytes(notes)
    with pytest.raises(TranscriptError):
        open_oracle(NETWORK, transcript=tmp_path).close()
    assert log_of(tmp_path).read_bytes() == notes


def test_full_disk_leaves_a_log_to_go_on_with(tmp_path: Path) -> None:
    oracle = open_oracle(NETWORK, transcript=tmp_path)
    oracle.query(BATCHES[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log_of(tmp_path).stat().st_size + 50, hard))
    try:
        with pytest.raises(TranscriptError, match=r"^transcript: cannot write .*Free space and resume"):
            oracle.query(BATCHES[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with oracle:
        oracle.query(BATCHES[2])
    with open_oracle(NETWORK, transcript=tmp_path) as oracle:
        np.testing.assert_array_equal(oracle.query(BATCHES[2]), NETWORK(BATCHES[2]))
        assert oracle.ledger.total.sent == 0


# ---- another target, another seed


def another_precision(folder: Path) -> tuple[Any, Any]:
    path = save_onnx(NETWORK, folder / "model.onnx")
    return (path, {}), (path, {"precision": "float64"})


def another_file(folder: Path) -> tuple[Any, Any]:
    paths = [save_onnx(planted((4, 6, 1), seed), folder / f"{seed}.onnx") for seed in (1, 2)]
    return (paths[0], {}), (paths[1], {})


def another_width(change: str) -> Callable[[Path], tuple[Any, Any]]:
    widths = {"target": (4, 6, 1), "dim": (5, 6, 1), "outputs": (4, 6, 2)}[change]
    return lambda _: ((NETWORK, {}), (planted(widths, 2), {}))


def another_callable(widths: tuple[int, ...]) -> Callable[[Path], tuple[Any, Any]]:
    other = planted(widths, 2)
    return lambda _: ((served, {"dim": 4}), (lambda x: other(x), {"dim": other.dim}))


def recast(model: Any) -> Callable[[Path], tuple[Any, Any]]:
    return lambda _: ((model, {}), (model, {"precision": "float64"}))


CHANGES: dict[str, tuple[Callable[[Path], tuple[Any, Any]], str]] = {
    "network": (another_width("target"), "target 'network sha256"),
    "dim": (another_width("dim"), "dim 4, expected dim 5"),
    "outputs": (another_width("outputs"), "outputs 1, expected outputs 2"),
    "file": (another_file, "target 'onnx sha256"),
    "precision of a file": (another_precision, "target 'onnx sha256"),
    "precision of a module": (recast(torch_module(NETWORK)), "target 'torch sha256"),
    "precision of an MLP": (recast(fitted_mlp("MLPRegressor", dtype="float32")), "target 'sklearn sha256"),
    "function": (another_callable((4, 6, 1)), "another answer to the opening question"),
    "dim of a callable": (another_callable((5, 6, 1)), "dim 4, expected dim 5"),
    "outputs of a callable": (another_callable((4, 6, 2)), "outputs 1, expected outputs 2"),
    "adapter": (lambda _: ((NETWORK, {}), (served, {"dim": 4})), "target 'network sha256.*, expected target ''"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_transcript_of_another_target_is_refused(tmp_path: Path, change: str) -> None:
    make, reason = CHANGES[change]
    (target, keywords), (other, other_keywords) = make(tmp_path)
    record(tmp_path / "run", target, [], **keywords)
    before = log_of(tmp_path / "run").read_bytes()
    with pytest.raises(TranscriptMismatch, match=rf"^transcript: .*run' was made for .*{reason}"):
        open_oracle(other, transcript=tmp_path / "run", **other_keywords)
    assert log_of(tmp_path / "run").read_bytes() == before
    open_oracle(target, transcript=tmp_path / "run", **keywords).close()


def test_transcript_of_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path)
    monkeypatch.setattr(transcript, "FORMAT", transcript.FORMAT + 1)
    with pytest.raises(TranscriptMismatch, match="format 1, expected format 2"):
        open_oracle(NETWORK, transcript=tmp_path)


def test_log_without_header_is_refused(tmp_path: Path) -> None:
    log = FrameLog(log_of(tmp_path))
    log.append(transcript.NOTE, b"{}")
    log.close()
    with pytest.raises(TranscriptMismatch, match="does not begin with a header"):
        open_oracle(NETWORK, transcript=tmp_path)


def test_target_with_little_noise_is_known_again(tmp_path: Path) -> None:
    sizes = [record(tmp_path, noisy(served, sd=1e-3, rng=seed), [], dim=4) for seed in range(5)]
    assert sizes == [sizes[0]] * 5  # opened again, not made anew


def test_target_that_answers_nan_is_known_again(tmp_path: Path) -> None:
    sizes = [record(tmp_path, lambda x: np.full((len(x), 1), np.nan), [], dim=4) for _ in range(2)]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(
    ("first", "second"),
    [(0, 1), (np.random.default_rng(0), np.random.default_rng(1)), (0, np.random.default_rng(0))],
    ids=["seeds", "generators", "seed and generator"],
)
@pytest.mark.parametrize("sittings", [1, 2])
def test_another_seed_is_refused(tmp_path: Path, first: Any, second: Any, sittings: int) -> None:
    with open_oracle(NETWORK, transcript=tmp_path) as oracle:
        oracle.begin("search", first)
        oracle.begin("search", first)
        if sittings == 1:
            with pytest.raises(TranscriptMismatch, match=r"made for search with .*, expected search with "):
                oracle.begin("search", second)
    with open_oracle(NETWORK, transcript=tmp_path) as oracle:
        with pytest.raises(TranscriptMismatch, match=r"made for search with .*, expected search with "):
            oracle.begin("search", second)
        oracle.begin("search", first)
        oracle.begin("another search", second)


def test_transcript_needs_a_seed(tmp_path: Path) -> None:
    open_oracle(NETWORK).begin("search", None)
    refused = pytest.raises(InvalidInput, match=r"^rng: got None, expected a seed")
    with open_oracle(NETWORK, transcript=tmp_path) as oracle, refused:
        oracle.begin("search", None)


# ---- one writer, one folder


def test_second_opener_is_refused(tmp_path: Path) -> None:
    with open_oracle(NETWORK, transcript=tmp_path) as oracle:
        with pytest.raises(TranscriptInUse, match=r"^transcript: .*transcript\.log' is being written by another"):
            open_oracle(NETWORK, transcript=tmp_path)
        oracle.query(BATCHES[0])
    oracle, log = reopened(tmp_path)
    with oracle:
        assert log.unused == 7


OPENER = """
import sys
from reluctant.errors import ReluctantError
from reluctant.oracles import open_oracle
try:
    open_oracle(sys.argv[1], transcript=sys.argv[2]).close()
except ReluctantError as error:
    print(error.slug)
"""


def test_second_process_is_refused(tmp_path: Path) -> None:
    NETWORK.save(tmp_path / "model.npz")
    command = [sys.executable, "-c", OPENER, str(tmp_path / "model.npz"), str(tmp_path / "run")]
    with open_oracle(tmp_path / "model.npz", transcript=tmp_path / "run"):
        refused = subprocess.run(command, capture_output=True, text=True, check=True)
    opened = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (refused.stdout, opened.stdout) == ("transcript-in-use\n", "")


def test_folders_are_made(tmp_path: Path) -> None:
    record(tmp_path / "some" / "where")
    assert log_of(tmp_path / "some" / "where").is_file()


@pytest.mark.parametrize("folder", ["file", "file/below", "taken"])
def test_place_that_is_no_folder_is_refused(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    log_of(tmp_path / "taken").mkdir(parents=True)
    with pytest.raises(InvalidInput, match=rf"^transcript: got .*{folder}' .*, expected a folder to write to"):
        open_oracle(NETWORK, transcript=tmp_path / folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InvalidInput, match=r"^transcript: got .*, expected a folder to write to"):
        open_oracle(NETWORK, transcript=tmp_path)


def test_closed_oracle_sends_nothing(tmp_path: Path) -> None:
    target = Asked(served)
    oracle = open_oracle(target, dim=4, transcript=tmp_path)
    oracle.close()
    oracle.close()
    with pytest.raises(TranscriptError):
        oracle.query(BATCHES[0])
    assert target.calls == [3, 3]


# ---- the k-th time a row is asked


def test_repeated_row_replays_its_answers_in_order(tmp_path: Path) -> None:
    row = np.ones((1, 4))
    sittings = []
    for seed in (0, 1):
        with open_oracle(noisy(served, sd=1e-3, rng=seed), dim=4, transcript=tmp_path) as oracle:
            sittings.append([oracle.query(row).item() for _ in range(3)])
            sittings[-1] += oracle.query(np.repeat(row, 3, axis=0)).ravel().tolist()
    assert len(set(sittings[0])) == 6
    assert sittings[0] == sittings[1]


def test_asking_more_often_than_before_sends_the_rest(tmp_path: Path) -> None:
    row = np.ones((1, 4))
    record(tmp_path, batches=[row, row])
    oracle, _ = reopened(tmp_path)
    with oracle:
        oracle.query(np.repeat(row, 5, axis=0))
    assert oracle.ledger.total == Rows(asked=5, sent=3, replayed=2)


# ---- interrupted runs


def test_target_that_dies_is_paid_once(tmp_path: Path) -> None:
    rows = gaussian_rows(5000, 4)
    opened = open_oracle(Dying(served, rows=4500), dim=4, transcript=tmp_path)
    with opened as oracle, pytest.raises(TargetUnavailable):
        oracle.query(rows)
    target = Asked(served)
    with open_oracle(target, dim=4, transcript=tmp_path) as oracle:
        np.testing.assert_allclose(oracle.query(rows), served(rows), rtol=0, atol=1e-13)
    kept = 2 * CHUNK_ROWS
    assert target.calls == [3, 5000 - kept]
    assert oracle.ledger.total == Rows(asked=5000, sent=3 + 5000 - kept, replayed=kept)


class Numbering(Oracle):
    """Answers each row with the number of rows answered before it; may die when it has answered some."""

    def __init__(self) -> None:
        self.answered = 0
        self.dies_after: int | None = None

    @property
    def facts(self) -> Facts:
        return Facts(1, 1, identity="numbering")

    def answer(self, rows: np.ndarray) -> np.ndarray:
        after = self.answered + len(rows)
        if self.dies_after is not None and after > self.dies_after:
            raise TargetUnavailable("target: died")
        numbers = np.arange(self.answered, after, dtype=float)[:, None]
        self.answered = after
        return numbers


def sitting(target: Oracle, folder: str, rows: np.ndarray, batch: int) -> np.ndarray:
    with open_oracle(target, transcript=folder) as oracle:
        return np.concatenate([oracle.query(rows[i : i + batch]) for i in range(0, len(rows), batch)])


@given(
    rows=st.lists(st.integers(0, 4), min_size=1, max_size=25),
    sittings=st.lists(st.tuples(st.integers(0, 25), st.integers(1, 25)), max_size=4),
    last_batch=st.integers(1, 25),
)
def test_any_split_into_sittings_is_one_run(rows: list[int], sittings: list[tuple[int, int]], last_batch: int) -> None:
    x = np.array(rows, dtype=float)[:, None]
    target = Numbering()
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(transcript, "CHUNK_ROWS", 3)
        for stop, batch in sittings:
            sitting(target, folder, x[: max(stop, 1)], batch)
        np.testing.assert_array_equal(sitting(target, folder, x, last_batch).ravel(), np.arange(len(x)))
    assert target.answered == len(x)


@given(
    rows=st.lists(st.integers(0, 4), min_size=1, max_size=25),
    deaths=st.lists(st.tuples(st.integers(0, 24), st.integers(1, 25)), max_size=4),
    last_batch=st.integers(1, 25),
)
def test_any_deaths_of_the_target_leave_one_run(
    rows: list[int], deaths: list[tuple[int, int]], last_batch: int
) -> None:
    x = np.array(rows, dtype=float)[:, None]
    target = Numbering()
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(transcript, "CHUNK_ROWS", 3)
        for dies_after, batch in deaths:
            target.dies_after = min(dies_after, len(x) - 1)
            with pytest.raises(TargetUnavailable):
                sitting(target, folder, x, batch)
        target.dies_after = None
        np.testing.assert_array_equal(sitting(target, folder, x, last_batch).ravel(), np.arange(len(x)))
    assert target.answered == len(x)


def test_transcript_stands_on_its_own(tmp_path: Path) -> None:
    ledger = Ledger()
    with Transcript(NetworkOracle(NETWORK), tmp_path, ledger) as oracle:
        np.testing.assert_array_equal(oracle.query(BATCHES[0]), NETWORK(BATCHES[0]))
    with Transcript(NetworkOracle(NETWORK), tmp_path, ledger) as oracle:
        np.testing.assert_array_equal(oracle.query(BATCHES[0]), NETWORK(BATCHES[0]))
    assert ledger.total == Rows(replayed=7)


# ---- what counts as the same target


class Doubled(Wrapper):
    def answer(self, rows: np.ndarray) -> np.ndarray:
        return 2 * self.inner.answer(rows)


def test_wrapper_that_changes_answers_is_another_target(tmp_path: Path) -> None:
    record(tmp_path, NetworkOracle(NETWORK))
    with pytest.raises(TranscriptMismatch):
        open_oracle(Doubled(NetworkOracle(NETWORK)), transcript=tmp_path)


def test_other_output_of_an_opened_oracle_is_another_target(tmp_path: Path) -> None:
    network = planted((4, 6, 3), 0)
    record(tmp_path, open_oracle(network, output=1))
    with pytest.raises(TranscriptMismatch):
        open_oracle(open_oracle(network, output=2), transcript=tmp_path)


def test_callable_that_changed_a_little_is_another_target(tmp_path: Path) -> None:
    record(tmp_path, served, dim=4)
    changed = ReLUNetwork([1.0001 * NETWORK.weights[0], NETWORK.weights[1]], NETWORK.biases)
    with pytest.raises(TranscriptMismatch):
        open_oracle(lambda x: changed(x), dim=4, transcript=tmp_path)


def test_noisy_callable_is_known_again(tmp_path: Path) -> None:
    target = noisy(served, 1e-3)
    record(tmp_path, target, dim=4)
    with open_oracle(target, dim=4, transcript=tmp_path) as oracle:
        assert oracle.queries == 3


def test_call_that_failed_is_not_paid_twice_when_repeated(tmp_path: Path) -> None:
    rows = gaussian_rows(3 * CHUNK_ROWS, 4)
    target = Asked(Dying(served, rows=6 + 2 * CHUNK_ROWS, failures=1))
    with open_oracle(target, dim=4, transcript=tmp_path) as oracle:
        with pytest.raises(TargetUnavailable):
            oracle.query(rows)
        np.testing.assert_allclose(oracle.query(rows), served(rows), rtol=0, atol=1e-13)
    assert target.calls == [3, 3, *[CHUNK_ROWS] * 4]  # the third chunk was sent twice, the others once

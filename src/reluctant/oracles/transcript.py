"""`Transcript`: every answer on disk before it is used, and replayed when a run is resumed.

A method is deterministic given its seed and the answers, so resuming is replaying: run it again on the
same folder, and rows that were answered before come from disk. New rows go out in parts, and each answered part is
written as it comes in, before the next one is sent where only one is sent at a time.

A row is stored as a 128-bit hash and its answer, 16 + 8·m bytes. The k-th time a row is asked replays the
k-th recorded answer, so a target with fresh noise replays truly too. Answers with gradients have blocks of their own:
such a row is 16 + 8·m·(1 + d) bytes, and replays where gradients are asked for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from reluctant.errors import InvalidInput, TranscriptError, TranscriptMismatch, words
from reluctant.numerics import FLOAT_BYTES, FloatArray, unit_roundoff
from reluctant.oracles.base import Oracle, Wrapper
from reluctant.oracles.framelog import FrameLog, LogFrame, row_keys
from reluctant.oracles.ledger import Ledger, Rows

FORMAT = 1
HEADER, NOTE, ANSWERS, ANSWERS_AND_ROWS, EXPLAINED, EXPLAINED_AND_ROWS = range(6)
KEY_BYTES = 16
ROW_BYTES = {ANSWERS: 0, ANSWERS_AND_ROWS: 8, EXPLAINED: 0, EXPLAINED_AND_ROWS: 8}  # of each coordinate of a row
PLAIN_KINDS, EXPLAINED_KINDS = (ANSWERS, ANSWERS_AND_ROWS), (EXPLAINED, EXPLAINED_AND_ROWS)

# Rows sent between two writes: what a kill can lose. Large enough for a local target to run at full speed.
CHUNK_ROWS = 2048

# How far the answers to the opening question may be from the recorded ones before the target counts as another
# one: a few roundings, and a few times what two answers to the same question differed by.
GREETING_ROUNDINGS = 64.0
GREETING_NOISE_FACTOR = 8.0


Recorded: TypeAlias = dict[bytes, list[FloatArray]]  # answers to a row, the first one last


class Transcript(Wrapper):
    """Records answers in `folder`, and replays those that are there.

    Arguments:
        inner: the oracle that sends.
        folder: made if it does not exist, or its open log; one target and one run to a folder.
        ledger: replayed rows are entered here.
        keep_rows: store the rows themselves too (8·d bytes each).
        greet: asks the opening question, where only its answers can tell the target from others.
    """

    transparent = True

    def __init__(
        self,
        inner: Oracle,
        folder: str | Path | FrameLog,
        ledger: Ledger,
        *,
        keep_rows: bool = False,
        greet: Callable[[], FloatArray] | None = None,
    ) -> None:
        super().__init__(inner)
        self.ledger = ledger
        self.keep_rows = keep_rows
        self._verbs: dict[str, str] = {}
        self._kinds = PLAIN_KINDS
        self._recorded: dict[tuple[int, int], Recorded] = {PLAIN_KINDS: {}, EXPLAINED_KINDS: {}}
        self._log = folder if isinstance(folder, FrameLog) else open_log(Path(folder))
        self.folder = self._log.path.parent
        try:
            self._load(greet)
        except BaseException:
            self._log.close()
            raise

    @property
    def unused(self) -> int:
        """Recorded answers that this run has not asked for (yet)."""
        return sum(len(answers) for recorded in self._recorded.values() for answers in recorded.values())

    @property
    def _pending(self) -> Recorded:
        """Recorded answers of the kind that is asked for here."""
        return self._recorded[self._kinds]

    def explaining(self, inner: Oracle) -> Transcript:
        """The transcript's folder, for answers with gradients."""
        other = self.around(inner)
        other._kinds = EXPLAINED_KINDS
        return other

    @property
    def torn_bytes(self) -> int:
        """Bytes of a half-written block that were cut off on opening."""
        return self._log.torn_bytes

    # ---- opening

    def _load(self, greet: Callable[[], FloatArray] | None) -> None:
        frames, self._log.frames = self._log.frames, []
        if not frames:
            # Asked twice, so that the noise of the target is known when it is to be recognised.
            greeting = None if greet is None else [greet().reshape(-1).tolist() for _ in range(2)]
            self._log.append(HEADER, json.dumps(self._header() | {"greeting": greeting}).encode())
            return
        if frames[0].kind != HEADER:
            raise TranscriptMismatch(f"transcript: '{self._log.path}' does not begin with a header; use a new folder.")
        self._check_header(json.loads(bytes(frames[0].payload)), greet)
        for frame in frames[1:]:
            if frame.kind in ROW_BYTES:
                self._remember(frame)
            elif frame.kind == NOTE:
                self._verbs |= json.loads(bytes(frame.payload))
        for recorded in self._recorded.values():
            for answers in recorded.values():
                answers.reverse()  # replayed from the end, first recorded first

    def _header(self) -> dict[str, Any]:
        facts = self.inner.facts
        return {
            "format": FORMAT,
            "key": "xxh3_128 of the row's float64 bytes",
            "byteorder": sys.byteorder,
            "dim": facts.dim,
            "outputs": facts.outputs,
            "name": facts.name,
            "target": facts.identity,
        }

    def _check_header(self, recorded: dict[str, Any], greet: Callable[[], FloatArray] | None) -> None:
        expected = self._header()
        for fact in ("format", "key", "byteorder", "dim", "outputs", "target"):
            if recorded.get(fact) != expected[fact]:
                raise self._mismatch(f"{fact} {recorded.get(fact)!r}", f"{fact} {expected[fact]!r}")
        greeting = recorded.get("greeting")
        if greet is not None and (greeting is None or not _same_greeting(greeting, greet().reshape(-1))):
            raise self._mismatch("a target or domain with another answer to the opening question", "the same one")

    def _mismatch(self, got: str, expected: str) -> TranscriptMismatch:
        return TranscriptMismatch(
            f"transcript: '{self.folder}' was made for {got}, expected {expected}. "
            "Open the target it was made for, or use a new folder."
        )

    def _remember(self, frame: LogFrame) -> None:
        kinds = PLAIN_KINDS if frame.kind in PLAIN_KINDS else EXPLAINED_KINDS
        payload, row_bytes = frame.payload, ROW_BYTES[frame.kind] * self.inner.dim
        outputs = self.inner.outputs * (1 if kinds is PLAIN_KINDS else 1 + self.inner.dim)
        count = len(payload) // (KEY_BYTES + FLOAT_BYTES * outputs + row_bytes)
        keys = bytes(payload[: count * KEY_BYTES])
        values = payload[count * KEY_BYTES : count * (KEY_BYTES + FLOAT_BYTES * outputs)]
        answers = np.frombuffer(values, dtype=np.float64).reshape(count, outputs)
        for i in range(count):
            self._recorded[kinds].setdefault(keys[KEY_BYTES * i : KEY_BYTES * (i + 1)], []).append(answers[i])

    # ---- asking

    def bind(self, verb: str, signature: str | None) -> None:
        """Note the seed of a run, or refuse to mix it with a run made with another one."""
        if signature is None:
            raise InvalidInput.about(
                "rng", got="None", expected="a seed, since a transcript is resumed by repeating the run",
                fix=words("Pass {rng}.", rng=0),
            )  # fmt: skip
        recorded = self._verbs.get(verb)
        if recorded is None:
            self._verbs[verb] = signature
            self._log.append(NOTE, json.dumps({verb: signature}).encode())
        elif recorded != signature:
            raise self._mismatch(f"{verb} with {recorded}", f"{verb} with {signature}")
        super().bind(verb, signature)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Replay recorded rows, send the rest in chunks, write each before going on."""
        if self._log.closed:
            raise TranscriptError(f"transcript: '{self.folder}' is closed; open the target again.")
        keys = row_keys(rows)
        answers = np.empty((len(rows), self.inner.outputs))
        fresh = self._replay(keys, answers)
        missing = np.zeros(len(rows), dtype=bool)
        missing[fresh] = True
        self.ledger.enter(Rows(replayed=int((~missing).sum())))
        try:
            for part, got in self._send(rows, fresh):
                place = part if isinstance(fresh, slice) else fresh[part]
                answers[place] = got
                missing[place] = False
                self._record(_at(keys, place), rows[place], answers[place])
        except BaseException:
            for i in np.flatnonzero(~missing)[::-1]:
                self._pending.setdefault(keys[i], []).append(answers[i].copy())
            raise
        return answers

    def _send(self, rows: FloatArray, fresh: slice | list[int]) -> Iterator[tuple[slice, FloatArray]]:
        """Answers to the fresh rows, part by part, with their places among them."""
        sent = rows[fresh]
        return self.inner.answer_parts(sent, CHUNK_ROWS) if len(sent) else iter(())

    def _replay(self, keys: list[bytes], answers: FloatArray) -> slice | list[int]:
        """Fill in recorded answers; return the rows that have none, a slice (which copies nothing) if none has."""
        if not self._pending:
            return slice(0, len(keys))
        fresh = []
        for i, key in enumerate(keys):
            recorded = self._pending.get(key)
            if recorded is None:
                fresh.append(i)
                continue
            answers[i] = recorded.pop()
            if not recorded:
                del self._pending[key]
        return fresh

    def _record(self, keys: list[bytes], rows: FloatArray, answers: FloatArray) -> None:
        alone, with_rows = self._kinds
        if self.keep_rows:
            self._log.append(with_rows, *keys, answers.tobytes(), rows.tobytes())
        else:
            self._log.append(alone, *keys, answers.tobytes())

    def close(self) -> None:
        """Force the log to disk and close it."""
        self._log.close()
        super().close()


def open_log(folder: Path) -> FrameLog:
    """The log of a transcript folder, which is made if it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return FrameLog(folder / "transcript.log")
    except OSError as error:
        raise InvalidInput.about("transcript", got=f"'{folder}' ({error})", expected="a folder to write to") from error


def _same_greeting(recorded: list[list[float]], now: FloatArray) -> bool:
    """True if the answers are the recorded ones, up to rounding and to the noise the recorded ones show."""
    first, second = np.asarray(recorded, dtype=np.float64)
    finite = np.isfinite(first)
    if first.shape != now.shape or not np.array_equal(first[~finite], now[~finite], equal_nan=True):
        return False
    first, second, now = first[finite], second[finite], now[finite]
    rounding = GREETING_ROUNDINGS * unit_roundoff(np.float64) * np.abs(first).max(initial=0)
    noise = GREETING_NOISE_FACTOR * np.abs(second - first).max(initial=0)
    return bool(np.abs(now - first).max(initial=0) <= rounding + noise)


def _at(keys: list[bytes], place: slice | list[int]) -> list[bytes]:
    return keys[place] if isinstance(place, slice) else [keys[i] for i in place]

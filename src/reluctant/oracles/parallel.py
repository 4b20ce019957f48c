"""`Parallel`: several requests in flight at once, in batches the target accepts, in the order of the rows.

Every worker is a thread that asks the inner oracle for one batch after the other. It hands answers on at once, so that
a transcript can write them; no more is in flight or not yet written than one batch a connection, which is what a kill
can lose. After a failure it sends nothing new, but waits for batches under way and hands them on: they are paid for.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from reluctant.errors import BatchRefused
from reluctant.numerics import FloatArray
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Oracle, Wrapper

# A question is spread over the connections, but not into pieces so small that each costs more than its rows.
SMALLEST_SHARE = 32

Part = tuple[slice, FloatArray]
Answered = tuple[slice, "FloatArray | BaseException"]


class Parallel(Wrapper):
    """Splits rows into batches of at most `batch` and keeps up to `connections` of them in flight.

    A question is cut into `spread` batches if these are neither too small nor too large; None: one a connection.

    A batch that the target refuses (`BatchRefused`) is asked again in halves, each handed on by itself, and no larger
    one is sent from then on.
    """

    transparent = True

    def __init__(self, inner: Oracle, connections: int, batch: int, spread: int | None = None) -> None:
        super().__init__(inner)
        self.connections = connections
        self.spread = connections if spread is None else spread
        self.batch = batch
        self._learning = threading.Lock()

    def answer(self, rows: FloatArray) -> FloatArray:
        """All answers, in the order of the rows."""
        answers, whole = np.empty((0, 0)), _RequestBatch(slice(0, len(rows)))
        short = len(rows) <= min(self.batch, SMALLEST_SHARE)  # no other thread is worth it
        for part, got in self._in_turn(rows, whole) if short else self.answer_parts(rows, len(rows)):
            if not answers.size:
                answers = np.empty((len(rows), got.shape[1]))
            answers[part] = got
        return answers

    def answer_parts(self, rows: FloatArray, size: int) -> Iterator[Part]:
        """Batches as they come in, not in order; `size` is an upper bound."""
        share = max(-(-len(rows) // self.spread), SMALLEST_SHARE)
        batches = deque(map(_RequestBatch, _slices(slice(0, len(rows)), min(size, share, self.batch))))
        if self.inner.outputs == UNKNOWN_OUTPUTS:
            yield from self._in_turn(rows, batches.popleft())
        workers = min(self.connections, len(batches))
        crew = _Crew(batches, threading.Semaphore(workers))
        for _ in range(workers):
            threading.Thread(target=self._work, args=(crew, rows), daemon=True).start()
            crew.working += 1
        yield from crew.gather()

    def _in_turn(self, rows: FloatArray, batch: _RequestBatch) -> Iterator[Part]:
        """A batch, in this thread."""
        todo = deque([batch])
        while todo:
            batch = todo.popleft()
            answers = self._answer_batch(rows, batch, todo)
            if answers is not None:
                yield batch.part, answers

    def _work(self, crew: _Crew, rows: FloatArray) -> None:
        while (batch := crew.next()) is not None:
            try:
                answers = self._answer_batch(rows, batch, crew.todo)
            except BaseException as error:  # raised in the thread that asked
                crew.outbox.put((batch.part, error))
            else:
                crew.room.release() if answers is None else crew.outbox.put((batch.part, answers))
        crew.outbox.put(None)

    def _answer_batch(self, rows: FloatArray, batch: _RequestBatch, todo: deque[_RequestBatch]) -> FloatArray | None:
        """Answers to a batch; None where it is too large: its parts are then to be done, and handed on one by one."""
        limit = self.batch
        if batch.size <= limit:
            try:
                answers = self.inner.answer(rows[batch.part])
            except BatchRefused:
                if batch.size == 1:
                    raise
                limit = -(-batch.size // 2)
            else:
                self._learn(batch)
                return answers
        todo.extendleft(reversed(batch.cut(limit)))
        return None

    def _learn(self, taken: _RequestBatch) -> None:
        """Send nothing larger from now on, once all parts of the refused batch are done."""
        with self._learning:
            whole = taken.whole
            while whole is not None:
                whole.left -= taken.size
                self.batch = self.batch if whole.left else min(self.batch, whole.limit)
                whole = whole.within


@dataclass
class _Refused:
    """A batch that was too large: how large its parts are, its rows without an answer, what it is a part of itself."""

    limit: int
    left: int
    within: _Refused | None


@dataclass(frozen=True)
class _RequestBatch:
    """Rows to send together; `whole` is what they were cut from, if that was refused."""

    part: slice
    whole: _Refused | None = None

    @property
    def size(self) -> int:
        return int(self.part.stop - self.part.start)

    def cut(self, size: int) -> list[_RequestBatch]:
        """The rows in parts of at most this size."""
        whole = _Refused(size, self.size, self.whole)
        return [_RequestBatch(part, whole) for part in _slices(self.part, size)]


@dataclass
class _Crew:
    """What the workers of one question share; `room` for a batch is free again when its answers are collected."""

    todo: deque[_RequestBatch]
    room: threading.Semaphore
    outbox: queue.SimpleQueue[Answered | None] = field(default_factory=queue.SimpleQueue)
    stopped: threading.Event = field(default_factory=threading.Event)
    working: int = 0

    def next(self) -> _RequestBatch | None:
        """The next batch to send, None when there is none or something failed."""
        self.room.acquire()
        try:
            return None if self.stopped.is_set() else self.todo.popleft()
        except IndexError:
            return None

    def gather(self) -> Iterator[Part]:
        """Answers as they come in; the first error after everything under way has come in."""
        failure: BaseException | None = None
        try:
            while self.working:
                came = self.outbox.get()
                if came is None:
                    self.working -= 1
                elif isinstance(came[1], BaseException):
                    failure = failure or came[1]
                    self.stopped.set()
                else:
                    yield came[0], came[1]
                self.room.release()
        finally:
            self.stopped.set()  # whoever asked may have gone: Ctrl-C
            self.room.release(max(self.working, 1))
        if failure is not None:
            raise failure


def _slices(part: slice, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, part.stop)) for start in range(part.start, part.stop, size))

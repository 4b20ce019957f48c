"""Several requests in flight at once, each of a size the target takes; the order of rows is kept.

Every worker is a thread that asks the inner oracle for one batch after the other. What comes back is handed on as
soon as it is there, so that a transcript can write it down; no more is in flight or not yet written than one batch a
connection, which is what a kill can lose. After a failure nothing new is sent, but what was already under way is
waited for and handed on: it was paid for.
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

__all__ = ["Parallel"]

# A question is spread over the connections, but not into pieces so small that each costs more than its rows.
SMALLEST_SHARE = 32

Answered = tuple[slice, "FloatArray | BaseException"]


class Parallel(Wrapper):
    """Splits rows into batches of at most `batch` and keeps up to `connections` of them in flight.

    A question is cut into `spread` batches if these are neither too small nor too large; None: one a connection.

    A batch that the target refuses (`BatchRefused`) is asked again in halves, and no larger one is sent from then on.
    """

    transparent = True

    def __init__(self, inner: Oracle, connections: int, batch: int, spread: int | None = None) -> None:
        super().__init__(inner)
        self.connections = connections
        self.spread = connections if spread is None else spread
        self.batch = batch

    def answer(self, rows: FloatArray) -> FloatArray:
        """All answers, in the order of the rows."""
        if len(rows) <= min(self.batch, SMALLEST_SHARE):
            return self._answer_batch(rows)
        answers = np.empty((0, 0))
        for part, got in self.answer_parts(rows, len(rows)):
            if not answers.size:
                answers = np.empty((len(rows), got.shape[1]))
            answers[part] = got
        return answers

    def answer_parts(self, rows: FloatArray, size: int) -> Iterator[tuple[slice, FloatArray]]:
        """Batches as they come in, not in order; `size` is an upper bound."""
        share = max(-(-len(rows) // self.spread), SMALLEST_SHARE)
        batches = _slices(len(rows), min(size, share, self.batch))
        if self.inner.outputs == UNKNOWN_OUTPUTS:
            first = batches.popleft()
            yield first, self._answer_batch(rows[first])
        workers = min(self.connections, len(batches))
        crew = _Crew(batches, threading.Semaphore(workers))
        for _ in range(workers):
            threading.Thread(target=self._work, args=(crew, rows), daemon=True).start()
            crew.working += 1
        yield from crew.gather()

    def _work(self, crew: _Crew, rows: FloatArray) -> None:
        while (part := crew.next()) is not None:
            try:
                crew.outbox.put((part, self._answer_batch(rows[part])))
            except BaseException as error:  # raised in the thread that asked
                crew.outbox.put((part, error))
        crew.outbox.put(None)

    def _answer_batch(self, rows: FloatArray) -> FloatArray:
        """One batch, in smaller ones where the target refuses it or has refused its like."""
        limit = self.batch
        if len(rows) <= limit:
            try:
                return self.inner.answer(rows)
            except BatchRefused:
                if len(rows) == 1:
                    raise
                limit = -(-len(rows) // 2)
        halves = [self._answer_batch(rows[part]) for part in _slices(len(rows), limit)]
        self.batch = min(self.batch, limit)  # learned only now: the smaller ones were taken
        return np.concatenate(halves)


@dataclass
class _Crew:
    """What the workers of one question share; `room` for a batch is free again when its answers are taken."""

    todo: deque[slice]
    room: threading.Semaphore
    outbox: queue.SimpleQueue[Answered | None] = field(default_factory=queue.SimpleQueue)
    stopped: threading.Event = field(default_factory=threading.Event)
    working: int = 0

    def next(self) -> slice | None:
        """The next batch to send, None when there is none or something failed."""
        self.room.acquire()
        try:
            return None if self.stopped.is_set() else self.todo.popleft()
        except IndexError:
            return None

    def gather(self) -> Iterator[tuple[slice, FloatArray]]:
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


def _slices(rows: int, size: int) -> deque[slice]:
    return deque(slice(start, min(start + size, rows)) for start in range(0, rows, size))

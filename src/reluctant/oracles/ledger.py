"""Accounts of an opened target: rows by stage, the budget, and limits on rows and processor time.

Every row passes here. `Counting` is the oracle that a user holds; `Metered` counts each attempt next to the target and
refuses what would pass the budget before it is sent; `Limit` bounds one part of a run in rows and in processor time. A
limit is checked between questions, never by a signal.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from reluctant.domains import Domain
from reluctant.errors import BudgetExhausted, ReluctantError, TargetBusy, TargetRefused, TargetTimeout, TimeExhausted
from reluctant.numerics import FloatArray, Rng, seed_signature
from reluctant.oracles.base import Facts, Moves, Oracle, Wrapper, as_answers, layers


@dataclass(frozen=True)
class Rows:
    """Row counts that add up.

    asked: rows a method asked for. sent: rows that went to the target, every attempt counted.
    replayed: rows whose answer was paid for in an earlier sitting of the same transcript.
    """

    asked: int = 0
    sent: int = 0
    replayed: int = 0

    def __add__(self, other: Rows) -> Rows:
        return Rows(self.asked + other.asked, self.sent + other.sent, self.replayed + other.replayed)

    def __sub__(self, other: Rows) -> Rows:
        return Rows(self.asked - other.asked, self.sent - other.sent, self.replayed - other.replayed)

    @property
    def queries(self) -> int:
        """Rows that reached the target, in this sitting or an earlier one."""
        return self.sent + self.replayed


@dataclass
class Ledger:
    """Running account of an opened target.

    listener: called after every change, for a progress bar. views: pictures of their work that stages keep, the last
    of each. raised: an exception of the target's own class that came out of a question.
    """

    stages: dict[str, Rows] = field(default_factory=dict)
    stage: str = "open"
    last_stage: str = "open"
    expected: int | None = None
    listener: Callable[[Ledger], None] | None = None
    views: dict[str, Any] = field(default_factory=dict)
    raised: Exception | None = None

    def enter(self, rows: Rows) -> None:
        """Add rows to the current stage."""
        self.stages[self.stage] = self.stages.get(self.stage, Rows()) + rows
        if self.listener is not None:
            self.listener(self)

    def show(self, view: Any) -> None:
        """Keep a view of the current stage."""
        self.views[self.stage] = view

    @property
    def total(self) -> Rows:
        """Sum over all stages."""
        return sum(self.stages.values(), Rows())

    def since(self, before: Mapping[str, Rows]) -> dict[str, Rows]:
        """Rows entered since `stages` was this, by stage; stages without any are left out."""
        difference = {stage: rows - before.get(stage, Rows()) for stage, rows in self.stages.items()}
        return {stage: rows for stage, rows in difference.items() if rows != Rows()}

    @contextmanager
    def question(self, rows: int) -> Iterator[None]:
        """Count rows that are asked for inside the block, and remember an exception of the target's own class."""
        self.enter(Rows(asked=rows))
        try:
            yield
        except ReluctantError:
            raise
        except Exception as error:
            self.raised = error
            raise

    @contextmanager
    def during(self, stage: str, expected: int | None = None) -> Iterator[None]:
        """Enter rows under this stage; `expected` rows, if known, let a progress bar show its end."""
        before = self.stage, self.expected
        self.stage, self.last_stage, self.expected = stage, stage, expected
        try:
            yield
        finally:
            self.stage, self.expected = before


class Counting(Wrapper):
    """Counts rows by stage, and the rows that reached the target.

    Arguments:
        inner: the rest of the stack.
        ledger: shared with the object that counts rows sent, next to the target.
        domain: where the target may be asked; rows outside are refused before they are sent.
        samples: rows of the kind the target is for.
        unread: nobody said how its answers are to be read, so that a verb may look for a link.
    """

    transparent = True

    def __init__(
        self, inner: Oracle, ledger: Ledger, domain: Domain | None = None, samples: FloatArray | None = None, *,
        unread: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(inner)
        self.unread = unread
        self.ledger = ledger
        self._domain = domain
        self._samples = samples
        self._made: tuple[Facts | None, Facts | None] = (None, None)  # of the inner facts, which every query reads

    @property
    def facts(self) -> Facts:
        """Facts of the target, with the domain and the samples it was opened with."""
        inner = self.inner.facts
        if self._domain is None and self._samples is None:
            return inner
        before, made = self._made
        if made is None or before is not inner:
            domain = inner.domain if self._domain is None else self._domain
            made = replace(inner, domain=domain, samples=inner.samples if self._samples is None else self._samples)
            self._made = inner, made
        return made

    def around(self, inner: Oracle) -> Counting:
        """The target with its answers in another form: one ledger, one domain, the same samples."""
        facts = self.facts
        return Counting(inner, self.ledger, facts.domain, facts.samples)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Count, then pass on."""
        with self.ledger.question(len(rows)):
            return self.inner.answer(rows)

    def answer_moves(self, moves: Moves) -> FloatArray:
        """Count, then pass on."""
        with self.ledger.question(len(moves)):
            return self.inner.answer_moves(moves)

    @property
    def queries(self) -> int:
        """Rows that reached the target so far, those of earlier sittings of a transcript included."""
        return self.ledger.total.queries

    def stage(self, name: str, expected: int | None = None) -> AbstractContextManager[None]:
        """Enter the rows asked inside a `with` block under this name."""
        return self.ledger.during(name, expected)

    def begin(self, verb: str, rng: Rng) -> None:
        """Tell the stack which run starts; a transcript refuses one made with another seed."""
        self.ledger.views.clear()
        self.bind(verb, seed_signature(rng))


class Metered(Wrapper):
    """Enters each row in the ledger as it goes out, every attempt of a retry included.

    Rows that come back unread (too busy, too many) are subtracted again, and so are those that an
    opened target below this one, behind a defense, did not send for its own budget.
    The budget covers what was paid in earlier sittings of a transcript too, so that a resumed run ends where an
    undisturbed one would. Several threads may ask at once.
    """

    transparent = True

    def __init__(self, inner: Oracle, ledger: Ledger, budget: int | None = None) -> None:
        super().__init__(inner)
        self.ledger = ledger
        self.budget = budget
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """A copy, on another machine perhaps, has a lock of its own."""
        return {**vars(self), "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def answer(self, rows: FloatArray) -> FloatArray:
        """Refuse or count, then send."""
        return self._send(len(rows), lambda: self.inner.answer(rows))

    def answer_moves(self, moves: Moves) -> FloatArray:
        """Refuse or count, then send."""
        return self._send(len(moves), lambda: self.inner.answer_moves(moves))

    def _send(self, count: int, send: Callable[[], FloatArray]) -> FloatArray:
        with self._lock:
            spent = self.ledger.total.queries
            if self.budget is not None and spent + count > self.budget:
                raise BudgetExhausted(budget=self.budget, spent=spent, asked=count)
            self.ledger.enter(Rows(sent=count))
            before = self._rows_below
        try:
            return as_answers(send(), count, None)  # an oracle of a user may answer a list, or one number a row
        except (TargetBusy, TargetRefused):
            with self._lock:
                self.ledger.enter(Rows(sent=-count))
            raise
        except BudgetExhausted:
            with self._lock:
                self.ledger.enter(Rows(sent=self._rows_below - before - count))
            raise

    @property
    def _rows_below(self) -> int:
        """Rows that reached the target by the count of an opened one below, 0 if there is none."""
        return next((layer.queries for layer in layers(self.inner) if isinstance(layer, Counting)), 0)


class ShareExhausted(BudgetExhausted):
    """The next rows would pass what one part of a run may ask, which is not the budget that its user gave."""

    def __init__(self, *, share: int, spent: int, asked: int, part: str = "this part") -> None:
        ReluctantError.__init__(
            self,
            f"The share of the budget for {part} is {share:,} rows, {spent:,} of them spent: {asked:,} more were not "
            "sent. Raise the budget, which all parts share.",
        )
        self.budget, self.spent, self.asked = share, spent, asked


_seconds_apart = 0.0  # processor time of this library's own child processes


def processor_time() -> float:
    """Seconds of processor time of this process and of the work it has had done apart."""
    return time.process_time() + _seconds_apart


def add_time_apart(seconds: float) -> None:
    """Count what a child process took."""
    global _seconds_apart
    _seconds_apart += seconds


# Makes the error from the rows wanted so far and the most allowed.
Refusal: TypeAlias = Callable[[int, float], Exception]


@dataclass
class Limit:
    """At most so many rows, and so many seconds of processor time; None is no limit. Checked between questions.

    Arguments:
        rows: the most rows, or a function that gives it, where it may grow.
        seconds: from the beginning of `with limit.running():`. No question under way is cut: the next one is refused.
            A computation that asks nothing for long calls `check_time`.
        part: whose limit it is, in words.
        stage: count the rows of this stage alone. They count as they are asked for, sent or not: a stage that has
            asked too much gets no more.
        refusal: what to raise where rows run out; `ShareExhausted` if not given.

    passed: rows let through, those of an answer from a transcript included, so that a replayed run stops where the
    first one did. answered: those of them that came to an answer. time_up: the time ended the work.
    """

    rows: float | Callable[[], float] | None = None
    seconds: float | None = None
    part: str = "this part"
    stage: str = ""
    refusal: Refusal | None = None
    passed: int = field(default=0, init=False)
    answered: int = field(default=0, init=False)
    time_up: bool = field(default=False, init=False)
    _deadline: float = field(default=float("inf"), init=False)

    def of(self, oracle: Counting) -> Counting:
        """The target within this limit, with the same ledger."""
        facts = oracle.facts
        limited = _Limited(oracle.inner, oracle.ledger, self)
        return Counting(limited, oracle.ledger, facts.domain, facts.samples, unread=oracle.unread)

    def fits(self, asked: int, stage: str) -> bool:
        """True if so many more rows of this stage are allowed."""
        most = self.rows() if callable(self.rows) else self.rows
        return most is None or bool(self.stage and stage != self.stage) or self.passed + asked <= most

    def admit(self, asked: int, stage: str) -> None:
        """Count the next rows; raise if they are more than allowed, or come too late."""
        counted = not self.stage or stage == self.stage
        if counted:
            self._check_rows(asked)
        self.check_time(asked)
        self.passed += asked if counted else 0

    def _check_rows(self, asked: int) -> None:
        most, wanted = self.rows() if callable(self.rows) else self.rows, self.passed + asked
        if most is None or wanted <= most:
            return
        spent, self.passed = self.passed, wanted if self.stage else self.passed
        if self.refusal is not None:
            raise self.refusal(wanted, most)
        raise ShareExhausted(share=int(most), spent=spent, asked=asked, part=self.part)

    @property
    def in_vain(self) -> bool:
        """True if there were queries, and the target answered none."""
        return self.passed > 0 and not self.answered

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return max(0.0, self._deadline - processor_time())

    def check_time(self, asked: int = 0) -> None:
        """Raise `TimeExhausted` if the time is over."""
        if processor_time() > self._deadline:
            self.time_up = True
            raise TimeExhausted(seconds=self.seconds or 0.0, spent=self.passed, asked=asked)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start the clock; inside the block `check_time` looks at it."""
        if self.seconds is not None:
            self._deadline = processor_time() + self.seconds
        token = _RUNNING.set((*_RUNNING.get(), self))
        try:
            yield
        finally:
            _RUNNING.reset(token)


_RUNNING: ContextVar[tuple[Limit, ...]] = ContextVar("running limits", default=())


def check_time() -> None:
    """Raise `TimeExhausted` if the time of a limit around this call is over: for loops that ask nothing for long."""
    for limit in _RUNNING.get():
        limit.check_time()


def time_left() -> float | None:
    """Seconds of processor time that the limits around this call leave; None without a limit."""
    left = min((limit.left for limit in _RUNNING.get()), default=float("inf"))
    return left if left < float("inf") else None


class _Limited(Wrapper):
    """Asks its limit first."""

    transparent = True

    def __init__(self, inner: Oracle, ledger: Ledger, limit: Limit) -> None:
        super().__init__(inner)
        self.ledger, self.limit = ledger, limit

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, unless the limit refuses."""
        self.limit.admit(len(rows), self.ledger.stage)
        answers = self.inner.answer(rows)
        self.limit.answered += len(rows)
        return answers

    def answer_moves(self, moves: Moves) -> FloatArray:
        """Pass the description on if all its rows are allowed; else write them out, as far as the limit goes."""
        if not self.limit.fits(len(moves), self.ledger.stage):
            return super().answer_moves(moves)
        self.limit.admit(len(moves), self.ledger.stage)
        answers = self.inner.answer_moves(moves)
        self.limit.answered += len(moves)
        return answers


class Clock:
    """Processor time that several parts share: each gets its part of the rest, so that all keep to the whole."""

    def __init__(self, seconds: float | None, parts: int = 1) -> None:
        self.deadline = None if seconds is None else processor_time() + seconds
        self.parts = max(parts, 1)

    @property
    def left(self) -> float | None:
        """Seconds until the end, None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - processor_time())

    def share(self, most: float = 1.0) -> float | None:
        """Seconds of the next part, `most` times its equal share where that much is left."""
        left, parts = self.left, self.parts
        self.parts = max(parts - 1, 1)
        return None if left is None else min(left, most * left / parts)

    def fraction(self, of_left: float) -> float | None:
        """This fraction of the rest, None without an end."""
        return None if self.left is None else of_left * self.left


class Timed(Wrapper):
    """Waits at most `seconds` for each call.

    The call runs in a thread that cannot be stopped from outside; a hung one is left behind and does
    not keep the program from ending.
    """

    transparent = True

    def __init__(self, inner: Oracle, seconds: float) -> None:
        super().__init__(inner)
        self.seconds = seconds

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on in a thread of its own; raise what it raises."""
        outbox: queue.SimpleQueue[FloatArray | BaseException] = queue.SimpleQueue()
        threading.Thread(target=self._answer_into, args=(outbox, rows), daemon=True).start()
        try:
            outcome = outbox.get(timeout=min(self.seconds, threading.TIMEOUT_MAX))
        except queue.Empty:
            raise TargetTimeout(
                f"target: no answer to {len(rows)} rows within {self.seconds:g} s. "
                "Raise timeout, ask smaller batches, or check that the target is alive."
            ) from None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _answer_into(self, outbox: queue.SimpleQueue[FloatArray | BaseException], rows: FloatArray) -> None:
        try:
            outbox.put(self.inner.answer(rows))
        except BaseException as error:  # handed to the caller's thread, whatever it is
            outbox.put(error)

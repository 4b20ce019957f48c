"""`Affine`: a target without hidden neurons, as it is or behind a link, from d + 1 answers and a few lines.

Lines come first: three collinear points of an affine map are in line, and a network with hidden neurons ends here after
a few rows. Then one long step along every input gives the map, to the rounding of the target's own answers. A step
whose answer a hidden neuron changed spoils the map, and the points of the lines, held out till then, show it. Behind a
link everything stays where values can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reluctant.domains import Domain
from reluctant.extraction.method import Candidate, Keep, Method, StageFailed, check_settings
from reluctant.geometry import DistanceNoise
from reluctant.interface.noise import RawDigits
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.links import raw_answers
from reluctant.verification.agreement import AskedRows
from reluctant.verification.points import SCALES, PointGroup, random_group

LONGEST_SHARES = (10.0, -10.0, 5.0, -5.0, 2.0, -2.0, -1.0, 0.5)  # of the way from the first point to the second
FAR_SHARE, FAR_LINES = 1e4, 2  # in all of space: creases farther out than typical inputs bend a line there
STAGE, ROWS_A_LINE = "affine", 3


@dataclass(frozen=True)
class Affine(Method):
    """Extraction of f(x) = W x + b, of all digits or few.

    Arguments:
        lines: lines that have to be straight before the map is asked for, three rows each.
        step: of a row along one input, in sizes of a typical input.
        readable: largest value behind a link that is asked for on purpose.
        odds: size of the values, behind a link, that the map is read from.
    """

    few_digits: ClassVar[bool] = True

    lines: int = 5
    step: float = 8.0
    readable: float = 10.0
    odds: float = 4.0

    def __post_init__(self) -> None:
        check_settings(self)

    def run(self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Keep) -> Candidate:
        """One attempt; raises StageFailed where a line bends. Cost: d + 16 rows, in all of space up to 4 more."""
        with oracle.stage(STAGE, expected=oracle.dim + 1 + ROWS_A_LINE * self.lines), raw_answers(oracle) as raw:
            lines = _AskedLines.ask(oracle, rng, self)
            lines.check_straight(oracle, noise, raw)
            network = self._map(oracle, rng, lines.steepest, few_digits=_few_digits(oracle, raw))
        keep(network)
        known = oracle.facts.domain.is_space or oracle.facts.saturates  # a user's bounds are searched from end to end
        return Candidate(network, asked=lines.held_out(raw) if known else None)

    def _map(
        self, oracle: Counting, rng: np.random.Generator, steepest: float, *, few_digits: bool
    ) -> ReLUNetwork:  # fmt: skip
        """From one row along every input; behind a link, where digits are few, again in the longest readable steps."""
        dim, domain = oracle.dim, oracle.facts.domain
        longest = self.step * float(np.sqrt(dim))
        if oracle.facts.saturates:
            longest = min(longest, self.odds / steepest) if steepest > 0 else longest
        base, signs = _middle(domain, dim), rng.choice([-1.0, 1.0], dim)
        at_base = oracle.query(base[None])[0]
        steps = _inside(domain, base, signs * _power_of_two(np.full(dim, longest)))
        weights = _slopes(oracle, base, at_base, steps)
        if few_digits and oracle.facts.saturates:
            with np.errstate(divide="ignore"):
                readable = self.odds / np.abs(weights).max(axis=1)
            longer = _power_of_two(np.clip(readable, longest, self.step * float(np.sqrt(dim))))
            weights = _slopes(oracle, base, at_base, _inside(domain, base, signs * longer))
        return ReLUNetwork([weights.T], [at_base - base @ weights])


@dataclass(frozen=True)
class _AskedLines:
    """Groups of rows on the same lines, the scales first, all answers, and the way of each row along its line."""

    groups: list[PointGroup]
    answers: FloatArray
    shares: FloatArray  # (n,), 0 at the first point of a line and 1 at the second
    line: FloatArray  # (n,), which one

    @classmethod
    def ask(cls, oracle: Counting, rng: np.random.Generator, settings: Affine) -> _AskedLines:
        """Two points of each, then a third where answers can be read."""
        domain, dim, n = oracle.facts.domain, oracle.dim, settings.lines
        start, stop = (domain.sample(rng, n, dim, scale) for scale in SCALES[:2])
        if domain.is_space and oracle.facts.saturates is False:
            return cls._of_rows(oracle, start, stop, np.full(n, LONGEST_SHARES[0]), far=True)
        both = oracle.answer(np.concatenate([start, stop]))
        if not np.isfinite(both).all():
            raise StageFailed(STAGE, "answers that cannot be read", number=1, limit=0)
        first, second = np.split(both, 2)
        share = np.array([
            next(filter(_may_ask(domain, *line, oracle.facts.saturates, settings.readable), LONGEST_SHARES), 0.5)
            for line in zip(start, stop, first, second, strict=True)
        ])  # fmt: skip
        third = _along(start, stop, share)
        answers = np.concatenate([both, oracle.query(domain.nearest(third))])
        return cls._of((start, stop, third), answers, share)

    @classmethod
    def _of_rows(
        cls, oracle: Counting, start: FloatArray, stop: FloatArray, share: FloatArray, *, far: bool
    ) -> _AskedLines:
        """All at once, where every row can be read; far: some lines also far out, to both sides."""
        third = _along(start, stop, share)
        ends = np.array([FAR_SHARE, -FAR_SHARE] * FAR_LINES) if far else np.empty(0)
        which = np.repeat(np.arange(FAR_LINES), 2)[: len(ends)]
        beyond = _along(start[which], stop[which], ends)
        answers = oracle.answer(np.concatenate([start, stop, third, beyond]))
        count = ROWS_A_LINE * len(start)
        if not np.isfinite(answers[:count]).all():
            raise StageFailed(STAGE, "answers that cannot be read", number=1, limit=0)
        found = cls._of((start, stop, third), answers[:count], share)
        read = np.isfinite(answers[count:]).all(axis=1)
        if not read.any():
            return found
        return cls(
            [*found.groups, PointGroup("far along lines", beyond[read])],
            np.concatenate([found.answers, answers[count:][read]]),
            np.concatenate([found.shares, ends[read]]),
            np.concatenate([found.line, which[read]]),
        )

    @classmethod
    def _of(cls, points: tuple[FloatArray, ...], answers: FloatArray, share: FloatArray) -> _AskedLines:
        n = len(share)
        groups = [random_group(scale, rows) for scale, rows in zip(SCALES[:2], points[:2], strict=True)]
        shares = np.concatenate([np.zeros(n), np.ones(n), share])
        return cls([*groups, PointGroup("along lines", points[2])], answers, shares, np.tile(np.arange(n), ROWS_A_LINE))

    def held_out(self, raw: Sequence[FloatArray]) -> AskedRows:
        """What a map is verified at; where digits are few it errs far out by more than the noise there."""
        groups = self.groups[:ROWS_A_LINE]
        count = sum(len(group.rows) for group in groups)
        return AskedRows(groups, self.answers[:count], tuple(raw))

    @property
    def rows(self) -> FloatArray:
        """All of them."""
        return np.concatenate([group.rows for group in self.groups])

    @property
    def steepest(self) -> float:
        """Largest change of a value with the distance, as far as these lines show; in all directions it is more."""
        n = len(self.groups[0].rows)
        lengths = np.linalg.norm(self.groups[1].rows - self.groups[0].rows, axis=1)
        change = np.abs(self.answers[n : 2 * n] - self.answers[:n]).max(axis=1)
        return float((change / lengths).max() * np.sqrt(self.groups[0].rows.shape[1]))

    def check_straight(self, oracle: Counting, noise: DistanceNoise, raw: Sequence[FloatArray]) -> None:
        """Every answer is in line with the first two of its line, but for noise; raises StageFailed."""
        sd = np.hypot(noise.at(np.linalg.norm(self.rows, axis=1))[:, None], _lost(self.answers, oracle, raw))
        n, line, share = len(self.groups[0].rows), self.line, self.shares[:, None]
        first, second = self.answers[:n][line], self.answers[n : 2 * n][line]
        off = np.abs(self.answers - first - share * (second - first))
        limit = DOUBLE.in_line * (sd + np.abs(1 - share) * sd[:n][line] + np.abs(share) * sd[n : 2 * n][line])
        if not (off <= limit).all():
            raise StageFailed(
                STAGE, "a line bends: there are hidden neurons", number=float((off / limit).max()), limit=1
            )


def _along(start: FloatArray, stop: FloatArray, share: FloatArray) -> FloatArray:
    return np.asarray(start + share[:, None] * (stop - start))


def _may_ask(
    domain: Domain, start: FloatArray, stop: FloatArray, first: FloatArray, second: FloatArray, saturates: bool,
    readable: float,
) -> Callable[[float], bool]:  # fmt: skip
    """Whether a share of the way is inside the domain and, behind a link, a value there can be read."""

    def allowed(share: float) -> bool:
        value = np.abs(first + share * (second - first)).max()
        return domain.contains(start + share * (stop - start)) and (not saturates or bool(value <= readable))

    return allowed


def _lost(values: FloatArray, oracle: Counting, raw: Sequence[FloatArray]) -> FloatArray:
    """Noise (n, m) of values for the digits that probabilities have lost."""
    if not raw:
        return np.zeros_like(values)
    return RawDigits.behind(oracle, raw).lost(values, oracle)


def _middle(domain: Domain, dim: int) -> FloatArray:
    """The origin where it may be asked, else the point of the domain next to it; in a box its middle."""
    low, high = np.broadcast_to(domain.low, dim), np.broadcast_to(domain.high, dim)
    middle = np.clip(0.0, low, high)
    bounded = np.isfinite(low) & np.isfinite(high)
    middle[bounded] = (low[bounded] + high[bounded]) / 2
    return middle


def _power_of_two(size: FloatArray) -> FloatArray:
    """The largest ones at most as long: such steps round nothing."""
    return np.asarray(2.0 ** np.floor(np.log2(size)))


def _inside(domain: Domain, base: FloatArray, steps: FloatArray) -> FloatArray:
    """Steps (d,) that stay inside, to the side with more room."""
    below, above = base - domain.low, domain.high - base
    sides = np.where(above == below, np.sign(steps), np.where(above > below, 1.0, -1.0))
    return np.clip(sides * np.abs(steps), -below, above)


def _slopes(oracle: Counting, base: FloatArray, at_base: FloatArray, steps: FloatArray) -> FloatArray:
    """Of every output (d, m), from one row along each input."""
    rows = base + np.diag(steps)
    taken = rows.diagonal() - base
    return np.asarray((oracle.query(rows) - at_base) / taken[:, None])


def _few_digits(oracle: Counting, raw: Sequence[FloatArray]) -> bool:
    """True if probabilities behind a link have fewer digits than float64."""
    if not raw:
        return False
    behind = RawDigits.behind(oracle, raw)
    return behind.decimals is not None or behind.number_format != "float64"

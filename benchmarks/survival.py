"""What survives which defense: span, exact extraction and learning behind each, on a trained and a planted network.

    python -m benchmarks survival                           3 seeds a cell
    SURVIVAL_ONLY=decimals SURVIVAL_TARGET=digits python -m benchmarks survival

A cell says how many of the runs ended well (else the outcome), the median error, and the median number of rows.
Error: the largest angle to the true span; of a network the root mean square over Gaussian inputs, relative to each
output's deviation (log-ratios behind a softmax); behind labels alone the share of other labels. An error in brackets is
that of a network that is not called good.
Wrong: said to be good and off: a span of another rank, or off by more than 0.01 and than it says; an extracted network
that errs by more than five times what the defense itself does; a learned one by more than it was asked to.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np

import reluctant as rl
from benchmarks.sweeping import Sweeping
from reluctant.audit import DefenseResult, try_defense
from reluctant.audit.defense_trial import Rebuilt
from reluctant.bundled import digits_model
from reluctant.learning.learner import EPS
from reluctant.numerics import FloatArray
from reluctant.span import Span, Subspace
from reluctant.testing import planted

SEEDS = int(os.environ.get("SURVIVAL_SEEDS", "3"))
FIRST_SEED = 84_000  # nothing was looked at on these before
METHODS = 3
BUDGET, SECONDS = 300_000, 60.0  # for each method; the seconds are there for a machine that is slow
POINTS = 2000
LEVELS = (1e-6, 1e-4, 1e-2)  # of noise, in deviations of the answers
WRONG_ANGLE, WRONG_TIMES, LEAST_WRONG = 1e-2, 5.0, 1e-6


@dataclass(frozen=True)
class Target:
    """A network with what is true of it."""

    name: str
    network: rl.ReLUNetwork

    @property
    def inputs(self) -> FloatArray:
        return np.random.default_rng(11).standard_normal((POINTS, self.network.dim))

    @property
    def deviation(self) -> float:
        return float(self.network(self.inputs).std(axis=0).mean())

    @property
    def span(self) -> Subspace:
        return Subspace(np.linalg.svd(self.network.weights[0], full_matrices=False)[2])


@dataclass(frozen=True)
class Cell:
    """One method behind one defense on one seed."""

    outcome: str
    ok: bool
    error: float | None
    queries: int
    wrong: bool


def targets() -> list[Target]:
    found = [
        Target("digits 64-32-10, trained", rl.ReLUNetwork.load(digits_model())),
        Target("planted 40-12-3", planted((40, 12, 3), FIRST_SEED)),
    ]
    return [target for target in found if os.environ.get("SURVIVAL_TARGET", "") in target.name]


def defenses(target: Target) -> list[tuple[str, tuple[str, ...]]]:
    """Names as the table has them, and as `defend` takes them."""
    found: list[tuple[str, tuple[str, ...]]] = [("float64", ()), ("float32", ("float32",)), ("float16", ("float16",))]
    found += [(f"{k} decimals", (f"decimals={k}",)) for k in (6, 4, 3, 2)]
    for kind, ending in (("fresh", ""), ("fixed", ",fixed")):
        found += [(f"noise {x:g}, {kind}", (f"gaussian={x * target.deviation:.3g}{ending}",)) for x in LEVELS]
    found += [("probabilities, float64", ("softmax",)), ("probabilities, float32", ("softmax", "float32"))]
    found += [("probabilities, 6 decimals", ("softmax", "decimals=6"))]
    found += [("probabilities, 4 decimals", ("softmax", "decimals=4"))]
    found += [("top-1 probability", ("softmax", "top=1")), ("labels", ("labels",))]
    only = os.environ.get("SURVIVAL_ONLY", "")
    return [(name, defense) for name, defense in found if only in name]


def main() -> None:
    wrong = 0
    for target in targets():
        print(f"\n{target.name}; {SEEDS} seeds")
        print(f"| {'defense':<25} | {'span':<38} | {'extract':<38} | {'learn':<38} |")
        tried = defenses(target)
        cells = [(target, defense, FIRST_SEED + seed) for _, defense in tried for seed in range(SEEDS)]
        ended = Sweeping.over(one, cells)
        for name, _ in tried:
            runs = list(islice(ended, SEEDS))
            columns = [summary([run[k] for run in runs]) for k in range(3)]
            wrong += sum(cell.wrong for run in runs for cell in run if cell is not None)
            print(f"| {name:<25} | " + " | ".join(f"{column:<38}" for column in columns) + " |", flush=True)
    print(f"\nwrong, and said to be good: {wrong}")


def one(cell: tuple[Target, tuple[str, ...], int]) -> tuple[Cell, Cell | None, Cell | None]:
    target, defense, seed = cell
    found = try_defense(
        rl.open_oracle(target.network), defense, inputs=target.inputs, budget=BUDGET, seconds=METHODS * SECONDS,
        every=True, rng=seed,
    )  # fmt: skip
    assert found.span is not None
    return of_span(found.span, target), of_copy(found.extracted, found), of_copy(found.learned, found)


def of_span(span: Span, target: Target) -> Cell:
    true = target.span
    angle = float(true.angles(span.subspace).max(initial=0.0)) if span.rank else None
    told = max(WRONG_ANGLE, span.angle)  # what the span says of itself
    wrong = span.ok and (span.rank != true.rank or angle is None or angle > told)
    return Cell(span.outcome.slug, span.ok, angle, span.queries, wrong)


def of_copy(copy: Rebuilt | None, found: DefenseResult) -> Cell | None:
    if copy is None:
        return None
    own = np.nan_to_num(found.honest.rms_error)
    most = np.sqrt(EPS) if copy.method == "learn" else max(WRONG_TIMES * own, LEAST_WRONG)
    error = 1 - copy.agreement if copy.error is None and copy.agreement is not None else copy.error
    wrong = copy.result.ok and not (error is not None and error <= most)
    return Cell(copy.result.outcome.slug, copy.result.ok, error, copy.result.queries, wrong)


def summary(cells: Iterable[Cell | None]) -> str:
    runs = [cell for cell in cells if cell is not None]
    good = [run for run in runs if run.ok]
    shown = good or runs
    outcome = Counter(run.outcome for run in shown).most_common(1)[0][0]
    errors = [run.error for run in shown if run.error is not None]
    error = f"{np.median(errors):.0e}" if errors else "–"
    rows = f"{np.median([run.queries for run in shown]):,.0f}"
    wrong = f" {sum(run.wrong for run in runs)} WRONG" if any(run.wrong for run in runs) else ""
    if good:
        return f"{len(good)}/{len(runs)} {error}, {rows}{wrong}"
    return f"{outcome} ({error}), {rows}"

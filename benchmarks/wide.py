"""Networks of every kind: how many are recovered, wrong with `ok`, end in an exception that is not ours, or take long.

    python -m benchmarks wide                                       120 seconds on 2 processes, from seed 1,000,000
    WIDE_SECONDS=600 WIDE_PROCESSES=16 WIDE_FIRST=2000000 python -m benchmarks wide
    python -m benchmarks.wide --seconds 600 --processes 16 --first 2000000 [--most 1000] [--each 100] [--out FILE]
        [--layers 2]    networks of two hidden layers alone
        [--failed]      a line for each network that was not recovered: its stages and what they cost

The second form needs numpy and scipy alone and starts at once. A seed draws one network, as
`reluctant.testing.assortment` describes it: one to three hidden layers, twelve kinds of weights, five of biases,
seventeen twists; of one hidden layer half answer in float32 or rounded. Wrong: `ok`, and somewhere at scales 0.1, 1 and
3 or beside a crease off by more than 1e-6 of the output's deviation (of few digits: ten to thirty times what the target
itself is off by at these points). Each run may take `each` CPU seconds. Shares are of networks whose output is not
constant. Use seeds below 9,000,000.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import multiprocessing
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

import reluctant as rl
from reluctant.testing.assortment import Specimen, specimen, true_error

BUDGET = 400_000  # rows
LONG = 60.0  # CPU seconds
LAST_SEED = 9_000_000
PATIENCE = 5.0  # times the CPU seconds of a run: then its process is ended
GRACE = 15.0  # seconds after the end for runs under way

Facts = dict[str, Any]


class Over(BaseException):
    """A run has had its CPU seconds."""


def over(*_: object) -> None:
    raise Over


def one(seed: int, each: float) -> Facts:
    """One network, extracted and judged."""
    drawn = specimen(seed)
    facts: Facts = {"seed": seed, **described(drawn), "ok": False, "wrong": False, "foreign": False}
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, each)
    try:
        with rl.open_oracle(drawn.target(), dim=drawn.network.dim, budget=BUDGET) as oracle:
            result = rl.extract(oracle, rng=seed % 1000)
    except Over:
        facts |= {"outcome": "out of time"}
    except rl.ReluctantError as error:
        facts |= {"outcome": type(error).__name__}
    except Exception as error:  # what this benchmark is for
        facts |= {"outcome": f"{type(error).__name__}: {error}"[:200], "foreign": True}
    else:
        facts |= {"outcome": result.outcome.slug, "ok": result.ok, "queries": result.queries}
        tried = result.evidence.get("attempts")
        facts["attempts"] = [] if tried is None else tried.to_dict()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    facts["cpu"] = round(time.process_time() - start, 2)
    if facts["ok"]:
        assert result.network is not None
        worst = true_error(result.network, drawn)
        facts |= {"error": worst.error, "most": worst.most, "wrong": worst.wrong}
    return facts


def described(drawn: Specimen) -> Facts:
    return {
        "shape": "-".join(map(str, drawn.network.widths)), "hidden layers": drawn.hidden_layers,
        "weights": drawn.weights, "biases": drawn.biases, "twist": drawn.twist, "digits": drawn.digits,
        "constant": drawn.constant,
    }  # fmt: skip


def work(asked: Connection, each: float) -> None:
    """One process: a seed comes, its facts go."""
    signal.signal(signal.SIGPROF, over)
    while True:
        asked.send(one(asked.recv(), each))


class Lane:
    """A process that runs one seed after another, and is started again when it dies."""

    def __init__(self, each: float) -> None:
        self.each = each
        self.start()

    def start(self) -> None:
        self.seed: int | None = None
        self.began = time.time()
        self.asked, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=work, args=(theirs, self.each), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, seed: int) -> None:
        self.seed, self.began = seed, time.time()
        self.asked.send(seed)

    def take(self) -> Facts:
        """What it found; of a process that died, that it did."""
        seed, self.seed = self.seed, None
        assert seed is not None
        try:
            return dict(self.asked.recv())
        except EOFError:
            self.process.join()
            end = f"the process died with {self.process.exitcode}"
            self.start()
            wrong: Facts = {"ok": False, "wrong": False, "foreign": True, "cpu": 0.0}
            return {"seed": seed, **described(specimen(seed)), **wrong, "outcome": end}

    @property
    def hangs(self) -> bool:
        return self.seed is not None and time.time() - self.began > PATIENCE * self.each


def sweep(seeds: Iterator[int], seconds: float, processes: int, each: float) -> Iterator[Facts]:
    """The facts of these seeds as they come, until the time is over."""
    end, lanes = time.time() + seconds, [Lane(each) for _ in range(processes)]
    while True:
        for lane in lanes:
            seed = next(seeds, None) if lane.seed is None and time.time() < end else None
            if seed is not None:
                lane.give(seed)
        busy = {lane.asked: lane for lane in lanes if lane.seed is not None}
        if not busy or time.time() > end + GRACE:
            break
        for ready in wait(list(busy), timeout=1.0):
            yield busy[ready].take()  # type: ignore[index]
        for lane in lanes:
            if lane.hangs:
                lane.process.kill()
    for lane in lanes:
        lane.process.kill()


def group(facts: Facts) -> str:
    layers = ("one", "two", "three")[facts["hidden layers"] - 1]
    if facts["hidden layers"] > 1:
        return layers
    return f"{layers}, float64" if facts["digits"] == "float64" else f"{layers}, few digits"


def table(found: Sequence[Facts]) -> Iterator[str]:
    yield f"{'hidden layers':<18}{'networks':>10}{'recovered':>18}{'wrong':>8}{'foreign':>9}{'over 60 s':>11}"
    for name in (*sorted({group(each) for each in found}), "all"):
        some = [each for each in found if name in ("all", group(each))]
        changing = [each for each in some if not each["constant"]]
        good = sum(each["ok"] and not each["wrong"] for each in changing)
        share = f"{good}/{len(changing)} ({good / max(1, len(changing)):.0%})"
        wrong, foreign = (sum(each[what] for each in some) for what in ("wrong", "foreign"))
        long = sum(each["cpu"] > LONG for each in some)
        yield f"{name:<18}{len(some):>10}{share:>18}{wrong:>8}{foreign:>9}{long:>11}"


def costs(found: Sequence[Facts]) -> Iterator[str]:
    """Median and 90 % quantile of rows and CPU seconds, of networks that were recovered and that were not."""
    for name in sorted({group(each) for each in found}):
        for what in (True, False):
            some = [each for each in found if group(each) == name and each["ok"] == what and not each["constant"]]
            rows, seconds = ([each[key] for each in some if key in each] for key in ("queries", "cpu"))
            if rows:
                ends = [np.quantile(values, (0.5, 0.9)) for values in (rows, seconds)]
                cells = "".join(f"{middle:>12.6g}{most:>10.6g}" for middle, most in ends)
                yield f"{name:<18}{'recovered' if what else 'refused':<12}{cells}   rows and CPU s: median, 90 %"


def by_kind(found: Sequence[Facts]) -> Iterator[str]:
    """Recovered of all, by each property and number of hidden layers."""
    for what in ("weights", "biases", "twist", "digits"):
        for name in sorted({each[what] for each in found}):
            cells = []
            for layers in (1, 2, 3):
                some = [e for e in found if e[what] == name and e["hidden layers"] == layers and not e["constant"]]
                cells.append(f"{sum(each['ok'] for each in some)}/{len(some)}" if some else "–")
            yield f"{what:<10}{name:<18}" + "".join(f"{cell:>10}" for cell in cells)


def noted(found: Sequence[Facts], failed: bool) -> Iterator[str]:
    """The runs to look at."""
    for name in ("wrong", "foreign"):
        for each in (each for each in found if each[name]):
            kinds = ", ".join(each[what] for what in ("weights", "biases", "twist", "digits"))
            error = f"error {each['error']:.1e} (most {each['most']:.1e})" if name == "wrong" else each["outcome"]
            yield f"{name:<9}seed {each['seed']}  {each['shape']}  {kinds}  {error}"
    for each in found if failed else ():
        if not (each["ok"] or each["constant"]):
            kinds = ", ".join(each[what] for what in ("weights", "biases", "twist", "digits"))
            yield f"failed   seed {each['seed']}  {each['shape']}  {kinds}  {each['outcome']}  {each['cpu']} s"
            for tried in each.get("attempts", []):
                number = "" if tried["number"] is None else f" {tried['number']:.2g}"
                yield f"         {tried['method']}: {tried['rows']} rows, {tried['stage']}{number}"
    ends = Counter(each["outcome"].split(":")[0] for each in found)
    yield "ends: " + ", ".join(f"{name} {count}" for name, count in ends.most_common())


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wide", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    preset = {"seconds": 120.0, "processes": 2, "first": 1_000_000, "most": 10**6, "each": 100.0}
    for name, value in preset.items():
        kind = type(value)
        parser.add_argument(f"--{name}", type=kind, default=kind(os.environ.get(f"WIDE_{name.upper()}", value)))
    parser.add_argument("--layers", type=int, choices=(1, 2, 3), help="hidden layers; any without it")
    parser.add_argument("--failed", action="store_true", help="a line for each network that was not recovered")
    parser.add_argument("--out", type=Path, default=os.environ.get("WIDE_OUT"), help="JSON lines, one a network")
    return parser.parse_args(given)


def main(given: Sequence[str] = ()) -> None:
    asked = arguments(given)
    if asked.first + asked.most > LAST_SEED:
        asked.most = max(0, LAST_SEED - asked.first)
    every, found = range(asked.first, asked.first + asked.most), []
    seeds = (seed for seed in every if asked.layers in (None, specimen(seed).hidden_layers))
    for facts in sweep(seeds, asked.seconds, asked.processes, asked.each):
        found.append(facts)
        if asked.out is not None:
            with Path(asked.out).open("a", encoding="utf-8") as file:
                file.write(json.dumps(facts) + "\n")
    for line in (*table(found), "", *costs(found), "", *by_kind(found), "", *noted(found, asked.failed)):
        print(line)


if __name__ == "__main__":
    main(sys.argv[1:])

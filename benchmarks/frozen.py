"""Behaviour held still: what every verb finds on some three hundred targets, and audits of some forty, as facts.

    python -m benchmarks.frozen                  compare with results/frozen.json; exit status 1 if they differ
    python -m benchmarks.frozen --only extract   cases whose name contains this
    python -m benchmarks.frozen --write          write the file anew (say why in the commit)
    python -m benchmarks.frozen --processes 2

A case is a verb, a target and a seed. Its facts are the outcome, the rows of each stage and a hash of every weight, so
that a change of structure that changes one bit of a result shows. Another processor or another BLAS may round
otherwise: the file names the machine it was made on, and only there are hashes and rows expected to be equal.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import hashlib
import json
import multiprocessing
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import reluctant as rl
from benchmarks.interfaces import INTERFACES
from reluctant.audit import audit
from reluctant.networks import ReLUNetwork
from reluctant.testing import DEGENERATE, WORST_CASE, labelled, planted

FILE = Path(__file__).parent / "results" / "frozen.json"
ENOUGH_SECONDS = 1e6  # no audit may end by the clock
AUDIT_BUDGET = 20_000
AUDIT_STEPS = (
    "health", "span", "extraction", "part", "learning", "training", "flip", "linearity", "line", "plane", "errors",
)  # fmt: skip
TRAINED_ON = (
    "values", "softmax", "label", "sign", "top-1", "percent", "softmax, 3 decimals", "one value, whole numbers",
)  # fmt: skip
DIGITS = 6  # of errors, which no decision rests on

Facts = dict[str, Any]
Case = Callable[[], Facts]
Answers = Callable[[Any], Any]


def digest(*arrays: Any) -> str:
    """Sixteen hexadecimal digits of a hash over these arrays, None among them."""
    total = hashlib.sha256()
    for array in arrays:
        if array is None:
            total.update(b"none")
        else:
            value = np.ascontiguousarray(np.asarray(array, dtype=np.float64))
            total.update(repr(value.shape).encode() + value.tobytes())
    return total.hexdigest()[:16]


def rows_of(rows: Mapping[str, Any]) -> dict[str, int]:
    return {stage: count.asked for stage, count in rows.items() if count.asked}


def network_facts(network: ReLUNetwork | None) -> Facts | None:
    if network is None:
        return None
    arrays = (*network.weights, *network.biases, network.skip)
    return {"widths": list(network.widths), "hash": digest(*arrays)}


def result_facts(result: Any) -> Facts:
    return {
        "outcome": result.outcome.slug,
        "stage": result.stage,
        "rows": rows_of(result.rows),
        "network": network_facts(result.network),
    }


def span_facts(span: Any) -> Facts:
    return {
        "outcome": span.outcome.slug,
        "rank": int(span.rank),
        "rows": rows_of(span.rows),
        "hash": digest(span.basis),
    }


def flip_facts(flip: Any) -> Facts:
    return {"outcome": flip.outcome.slug, "rows": rows_of(flip.rows), "hash": digest(flip.x)}


def health_facts(health: Any) -> Facts:
    noise = health.noise
    return {
        "shape": str(health.shape),
        "answers": str(health.answers),
        "refusal": None if health.refusal is None else health.refusal.slug,
        "deterministic": bool(health.deterministic),
        "decimals": health.decimals,
        "format": health.number_format,
        "noise": digest(noise.absolute, noise.relative),
        "queries": int(health.queries),
    }


def audit_facts(found: Any) -> Facts:
    known, verdict = found.known, found.verdict
    runs = {"extraction": known.extraction, "learning": known.learning, "training": known.training}
    health = known.target.health
    return {
        "level": verdict.level,
        "leaks": list(verdict.leaks),
        "unsettled": list(verdict.unsettled),
        "link": known.target.link,
        "reach": None if known.target.reach is None else digest(known.target.reach.low, known.target.reach.high),
        "steps": {step.step: [str(step.state), step.queries] for step in found.steps},
        "health": None if health is None else health_facts(health),
        "span": None if known.span is None else span_facts(known.span),
        "flips": [flip_facts(flip) for flip in known.flips],
        **{name: None if run is None else result_facts(run) for name, run in runs.items()},
    }


def guarded(run: Callable[[], Facts]) -> Facts:
    """The facts, or the name of the error."""
    try:
        return run()
    except rl.ReluctantError as error:
        return {"error": type(error).__name__, "slug": error.slug}


def bare(function: Any) -> Answers:
    return lambda x: function(np.asarray(x, dtype=np.float64))


def in_float32(network: ReLUNetwork) -> Answers:
    weights = [w.astype(np.float32) for w in network.weights]
    biases = [b.astype(np.float32) for b in network.biases]

    def answer(x: Any) -> Any:
        h = np.asarray(x).astype(np.float32)
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            h = np.maximum(h @ w.T + b, 0)
        return h @ weights[-1].T + biases[-1]

    return answer


def gaussian(widths: tuple[int, ...], seed: int) -> Answers:
    return bare(planted(widths, seed))


def family_of(make: Callable[[int], ReLUNetwork], seed: int) -> Answers:
    return bare(make(seed))


def written(digits: Callable[[ReLUNetwork], Answers], widths: tuple[int, ...], seed: int) -> Answers:
    return digits(planted(widths, seed, bias=0.5))


def decimals(function: Any, digits: int) -> Answers:
    return lambda x: np.round(function(np.asarray(x, dtype=np.float64)), digits)


def noisy(function: Any, size: float) -> Answers:
    rng = np.random.default_rng(12)

    def answer(x: Any) -> Any:
        values = function(np.asarray(x, dtype=np.float64))
        return values + size * rng.standard_normal(values.shape)

    return answer


def clipped(function: Any, size: float) -> Answers:
    return lambda x: function(np.clip(np.asarray(x, dtype=np.float64), -size, size))


def shown(interface: str, widths: tuple[int, ...], seed: int) -> Answers:
    kind = INTERFACES[interface]
    network = planted((*widths[:-1], 1) if kind.one else widths, seed)
    return kind.asked(network, seed)


def extracts() -> Iterator[tuple[str, Case]]:
    def case(name: str, target: Callable[[], Any], dim: int, seed: int, **how: Any) -> tuple[str, Case]:
        method = how.pop("method", None)
        attempts = {"attempts": how.pop("attempts")} if "attempts" in how else {}

        def run() -> Facts:
            with rl.open_oracle(target(), dim=dim, **how) as oracle:
                given = () if method is None else (method(),)
                return result_facts(rl.extract(oracle, *given, rng=seed, **attempts))

        return f"extract / {name} / {seed}", run

    for family, make in DEGENERATE.items():
        for seed in (0, 1):
            yield case(family, partial(family_of, make, seed), 64, seed)
    shapes: tuple[tuple[tuple[int, ...], int], ...] = (
        ((784, 32, 1), 2), ((784, 128, 1), 1), ((300, 20, 10), 2), ((10, 100, 1), 2), ((3, 12, 1), 2), ((1, 6, 1), 2),
        ((20, 20, 3), 2), ((16, 8, 4, 1), 2), ((30, 16, 8, 2), 2), ((80, 40, 20, 1), 1), ((20, 15, 10, 5, 1), 2),
        ((12, 8, 6, 4, 2), 2), ((6, 16, 6, 1), 1), ((40, 1, 1), 1), ((5, 5, 5, 5, 1), 1),
    )  # fmt: skip
    for widths, seeds in shapes:
        for seed in range(seeds):
            yield case(f"plain {widths}", partial(gaussian, widths, seed), widths[0], seed)
    few: dict[str, Callable[[ReLUNetwork], Any]] = {
        "float32": in_float32, "6 decimals": lambda net: decimals(net, 6), "4 decimals": lambda net: decimals(net, 4),
        "noise 1e-6": lambda net: noisy(net, 1e-6), "noise 1e-4": lambda net: noisy(net, 1e-4),
    }  # fmt: skip
    for name, digits in few.items():
        for seed in (0, 1):
            yield case(f"{name} (32, 12, 1)", partial(written, digits, (32, 12, 1), seed), 32, seed)
    yield case("float32 (784, 32, 1)", partial(written, in_float32, (784, 32, 1), 3), 784, 3)
    yield case("float32 (64, 16, 10)", partial(written, in_float32, (64, 16, 10), 3), 64, 3)
    for seed in (0, 1):
        net = planted((10, 12, 3), seed)
        one = planted((10, 12, 1), seed)
        deep = planted((12, 8, 4, 2), seed)
        yield case("box", partial(bare, one), 10, seed, domain=(-2.0, 2.0))
        yield case("orthant", partial(bare, one), 10, seed, domain=(0.0, np.inf))
        yield case("unit box", partial(bare, net), 10, seed, domain=(0.0, 1.0))
        yield case("two layers in a box", partial(bare, deep), 12, seed, domain=(-3.0, 3.0))
        yield case("skip", partial(bare, planted((14, 9, 2), seed, skip=True)), 14, seed)
        yield case("one output of three", partial(bare, net), 10, seed, output=1)
        yield case("clipped inputs", partial(clipped, one, 5.0), 10, seed)
        yield case("budget 300", partial(bare, one), 10, seed, budget=300)
        yield case("budget 2000, two layers", partial(bare, deep), 12, seed, budget=2000)
        yield case("affine", partial(gaussian, (9, 2), seed), 9, seed)
        yield case("DepthTwo", partial(bare, net), 10, seed, method=rl.DepthTwo)
        yield case("DepthThree", partial(bare, deep), 12, seed, method=rl.DepthThree)
        yield case("AnyDepth", partial(bare, deep), 12, seed, method=rl.AnyDepth, attempts=1)
        yield case("FewDigits", partial(in_float32, one), 10, seed, method=rl.FewDigits)
        yield case("AnyDepth on one layer", partial(bare, net), 10, seed, method=rl.AnyDepth, attempts=1)
    for name, link in (
        ("softmax", "softmax"), ("softmax, float32", "softmax"), ("softmax, 3 decimals", "softmax"),
        ("sigmoid", "sigmoid"), ("sigmoid, float32", "sigmoid"), ("log-softmax", "log-softmax"), ("tanh", "tanh"),
        ("top-2", "top-k"), ("values", "softmax"), ("label", "softmax"),
    ):  # fmt: skip
        for seed in (0, 1):
            yield case(f"{name} through {link}", partial(shown, name, (8, 6, 3), seed), 8, seed, link=link)
    for name in INTERFACES:
        yield case(f"interface {name}", partial(shown, name, (8, 6, 3), 4), 8, 4)
    yield case("quadratic", lambda: lambda x: (np.asarray(x) ** 2).sum(axis=1), 6, 0)
    yield case("constant", lambda: lambda x: np.ones(len(x)), 6, 0)
    yield case("NaN", lambda: lambda x: np.full(len(x), np.nan), 6, 0)
    yield case("NaN far out", lambda: lambda x: np.where(np.abs(x).max(axis=1) > 50, np.nan, x[:, 0]), 6, 0)


def learns() -> Iterator[tuple[str, Case]]:
    for family, make in WORST_CASE.items():
        if family == "generic 200, 100 inputs":
            continue
        for seed in (0, 1):

            def run(make: Any = make, seed: int = seed) -> Facts:
                net = make(seed)
                with rl.open_oracle(bare(net), dim=net.dim) as oracle:
                    return result_facts(rl.learn(oracle, rng=seed, narrowest=0.02))

            yield f"learn / {family} / {seed}", run
    for name in ("values, float32", "values, 4 decimals", "values, noise", "softmax", "label", "sign", "tanh", "top-1"):

        def on(name: str = name) -> Facts:
            with rl.open_oracle(shown(name, (8, 6, 3), 5), dim=8) as oracle:
                return result_facts(rl.learn(oracle, rng=5, narrowest=0.1))

        yield f"learn / interface {name} / 5", on


def spans() -> Iterator[tuple[str, Case]]:
    def case(name: str, target: Callable[[], Any], dim: int, seed: int, **how: Any) -> tuple[str, Case]:
        def run() -> Facts:
            with rl.open_oracle(target(), dim=dim) as oracle:
                return span_facts(rl.recover_span(oracle, rng=seed, **how))

        return f"span / {name} / {seed}", run

    for widths in ((60, 10, 1), (100, 12, 3), (40, 8, 6, 1), (300, 20, 1), (12, 30, 1), (30, 5, 5, 5, 2)):
        for seed in (0, 1):
            yield case(f"values {widths}", partial(gaussian, widths, seed), widths[0], seed)
    for seed in (0, 1):
        yield case("float32 (60, 10, 1)", partial(in_float32, planted((60, 10, 1), seed)), 60, seed)
        yield case("coarse (60, 10, 1)", partial(gaussian, (60, 10, 1), seed), 60, seed, fine=False)
        for activation in ("relu", "tanh", "softplus"):
            yield case(
                f"labels, {activation}",
                partial(labelled, (30, 5, 8, 1), activation, seed),
                30,
                seed,
                labels=True,
            )
    for name in INTERFACES:
        yield case(f"interface {name}", partial(shown, name, (12, 5, 3), 6), 12, 6)


def others() -> Iterator[tuple[str, Case]]:
    for name in INTERFACES:

        def health(name: str = name) -> Facts:
            with rl.open_oracle(shown(name, (8, 6, 3), 7), dim=8) as oracle:
                return health_facts(rl.check_health(oracle, rng=7))

        def flip(name: str = name) -> Facts:
            with rl.open_oracle(shown(name, (20, 12, 3), 8), dim=20) as oracle:
                return flip_facts(rl.flip_sign(oracle, np.ones(20), steps=3))

        yield f"health / interface {name} / 7", health
        yield f"flip / interface {name} / 8", flip
    for name in TRAINED_ON:

        def train(name: str = name) -> Facts:
            with rl.open_oracle(shown(name, (8, 6, 3), 9), dim=8) as oracle:
                return result_facts(rl.train_student(oracle, rows=600, steps=300, hidden=(12,), rng=9))

        yield f"train / interface {name} / 9", train
    for widths in ((20, 12, 1), (16, 8, 4, 2)):

        def verify(widths: tuple[int, ...] = widths) -> Facts:
            net = planted(widths, 3)
            with rl.open_oracle(bare(net), dim=widths[0]) as oracle:
                found = rl.verify(oracle, net, rng=3)
            return {"ok": found.ok, "points": found.points, "queries": found.queries, "hash": digest(found.max_error)}

        def linearity(widths: tuple[int, ...] = widths) -> Facts:
            with rl.open_oracle(bare(planted(widths, 3)), dim=widths[0]) as oracle:
                found = rl.local_linearity(oracle, np.ones(widths[0]))
                return {"queries": oracle.queries, "kind": type(found).__name__}

        yield f"verify / {widths} / 3", verify
        yield f"linearity / {widths} / 3", linearity


def audits() -> Iterator[tuple[str, Case]]:
    def case(name: str, target: Callable[[], Any], dim: int, **how: Any) -> tuple[str, Case]:
        opening = {key: how.pop(key) for key in ("domain", "kind") if key in how}

        def run() -> Facts:
            settings: dict[str, Any] = {
                "steps": AUDIT_STEPS,
                "budget": AUDIT_BUDGET,
                "seconds": ENOUGH_SECONDS,
                "rng": 1,
            } | how
            with rl.open_oracle(target(), dim=dim, **opening) as oracle:
                return audit_facts(audit(oracle, **settings))

        return f"audit / {name}", run

    for name in INTERFACES:
        yield case(name, partial(shown, name, (8, 6, 3), 10), 8)
    yield case("two hidden layers", lambda: bare(planted((12, 8, 4, 2), 2)), 12)
    yield case("two hidden layers, float32", lambda: in_float32(planted((12, 8, 4, 2), 2)), 12)
    yield case("wide first layer", lambda: bare(planted((6, 40, 1), 2)), 6)
    yield case("many inputs", lambda: bare(planted((200, 10, 2), 2)), 200)
    yield case("small budget", lambda: bare(planted((40, 20, 1), 2)), 40, budget=600)
    yield case("in a box", lambda: bare(planted((8, 10, 2), 2)), 8, domain=(0.0, 1.0))
    yield case("clipped inputs", lambda: clipped(planted((8, 10, 1), 2), 4.0), 8)
    yield case("quadratic", lambda: lambda x: (np.asarray(x) ** 2).sum(axis=1), 6)
    yield case("constant", lambda: lambda x: np.ones(len(x)), 6)
    yield case("one output of three", lambda: bare(planted((8, 10, 3), 2)), 8, output=1)
    yield case("labels, smooth", lambda: labelled((12, 4, 6, 1), "tanh", 2), 12)


def cases() -> dict[str, Case]:
    return dict(case for group in (extracts, learns, spans, others, audits) for case in group())


def one(name: str) -> tuple[str, Facts, float]:
    start = time.process_time()
    facts = json.loads(json.dumps(guarded(cases()[name])))
    return name, facts, time.process_time() - start


def machine() -> str:
    return f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}"


def difference(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Where two facts differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from difference(old.get(key), new.get(key), f"{path}.{key}")
    elif old != new:
        yield f"{path[1:]}: {old} -> {new}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    names = [name for name in cases() if asked.only in name]
    with multiprocessing.Pool(asked.processes, maxtasksperchild=40) as pool:
        found = list(pool.imap_unordered(one, names, chunksize=1))
    facts = {name: value for name, value, _ in found}
    if asked.times:
        for name, _, seconds in sorted(found, key=lambda each: -each[2])[:40]:
            print(f"{seconds:8.1f} CPU s  {name}")
    print(f"{len(facts)} cases, {sum(seconds for *_, seconds in found):.0f} CPU s")
    kept = json.loads(FILE.read_text("utf-8"))["cases"] if FILE.exists() else {}
    if asked.write:
        together = kept | facts
        merged = {name: together[name] for name in cases() if name in together}
        lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(merged[name])}" for name in merged)
        FILE.write_text(f'{{"machine": {json.dumps(machine())}, "cases": {{\n{lines}\n}}}}\n', encoding="utf-8")
        return 0
    changed = 0
    for name in names:
        for line in difference(kept.get(name), facts[name]):
            print(f"{name}  {line}")
            changed += 1
    print("equal" if not changed else f"{changed} facts differ")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())

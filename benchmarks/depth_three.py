"""Exact extraction of two hidden layers and more: success, queries, exactness and CPU time.

    python -m benchmarks depth-three                       20 networks of each small shape, 5 of each large one
    DEPTH_THREE_SEEDS=3 python -m benchmarks depth-three   as many of every shape
    DEPTH_THREE_SHAPES=80-40-20-1,784-32-16-1 ...          these shapes only
    python -m benchmarks mixed                             300 random networks with two hidden layers
    MIXED_NETWORKS=50 python -m benchmarks mixed           as many
    MIXED_FIRST=150 MIXED_NETWORKS=150 ...                 those from number 150 on
    python -m benchmarks frugal                            two hidden layers with as few rows as possible
    MNIST=folder MNIST_SECONDS=150 python -m benchmarks mnist-layers     trained 784-64-64-10 and 784-128-128-1

`extract` is not told the number of layers; verification is included in the count. Seeds that nothing was tuned on.
P counts all parameters. `out` is the largest error over 10 000 Gaussian inputs relative to the output's standard
deviation, `worst` the largest over inputs at scales 0.1 to 10 and beside every true crease of the first layer: above
1e-6 the network counts as wrong. CPU is the whole run over the target's share of it, with one BLAS thread.
"""

from __future__ import annotations

import os
import time
from collections import Counter

import numpy as np

import reluctant as rl
from benchmarks.results import Results
from reluctant.estimation.formulas import parameters, shape_name
from reluctant.papers.experiments.image_classifiers import load_mnist, train_classifier
from reluctant.papers.experiments.trials import ExactRun, exact_run
from reluctant.testing import planted, train_digits

SMALL = (
    (10, 10, 10, 1),
    (20, 10, 20, 1),
    (20, 10, 35, 1),
    (80, 40, 20, 1),
    (5, 8, 10, 1),
    (10, 15, 15, 1),
    (20, 15, 10, 5, 1),
)
LARGE = ((784, 32, 16, 1), (784, 64, 32, 1), (64, 32, 16, 10), (20, 40, 20, 1), (784, 16, 16, 16, 1))
FRUGAL = ((784, 32, 16, 1), (784, 64, 32, 1))
FIRST_SEED = 160_000
BIAS = 0.3
RESULTS = Results("depth-three")

MIXED_FIRST_SEED = 170_000
MIXED_WIDER = 0.1  # of the networks have more neurons in the first layer than inputs

PEERS = """\
Peers, not run here: google-research/cryptanalytic-model-extraction (CRYPTO'20) needed 40,217 queries for 10-10-10-1,
73-75 thousand and a search through 2^20 signs for 20-10-20-1, and crashed on 80-40-20-1 after 442 thousand."""


def main() -> None:
    every = os.environ.get("DEPTH_THREE_SEEDS")
    print(f"{'network':<16}{'ok':>7}{'refused':>9}{'wrong':>7}{'queries':>10}{'(max)':>10}{'q·m/P':>8}", end="")
    print(f"{'out':>10}{'(max)':>10}{'worst':>10}{'CPU s':>8}{'CPU':>7}")
    names = os.environ.get("DEPTH_THREE_SHAPES")
    for widths in (*SMALL, *LARGE):
        if names is not None and shape_name(widths) not in names.split(","):
            continue
        seeds = int(every) if every else (20 if widths in SMALL else 5)
        runs = [exact_run(planted(widths, FIRST_SEED + seed, bias=BIAS), seed) for seed in range(seeds)]
        print(row(shape_name(widths), widths, runs), flush=True)
    digits()
    print(PEERS)


def mnist() -> None:
    """Wide second layers, trained on MNIST: how far each run comes, in which stages."""
    images = load_mnist(os.environ["MNIST"])
    for hidden, outputs in (((64, 64), 10), ((128, 128), 1)):
        trained = train_classifier(images, hidden, 0)
        *below, top = trained.weights
        *below_biases, bias = trained.biases
        true = rl.ReLUNetwork([*below, top[:outputs]], [*below_biases, bias[:outputs]])
        start = time.process_time()
        result = rl.extract(true, rng=0, seconds=float(os.environ.get("MNIST_SECONDS", "150")))
        cost = result.queries * outputs / true.parameters
        spent = f"{result.queries} queries, {cost:.2f} q·m/P, {time.process_time() - start:.0f} CPU s"
        print(f"{shape_name(true.widths)}: {result.outcome.slug}, {spent}", flush=True)
        for tried in result.evidence["attempts"].to_dict():
            print(f"    {tried['method']}: {tried['rows']} rows, {tried['stage']} {tried['number']}")
        print("    " + ", ".join(f"{name} {count}" for name, count in result.rows.items()))


def row(name: str, widths: tuple[int, ...], runs: list[ExactRun]) -> str:
    good = [run for run in runs if run.ok] or runs
    ok, wrong = sum(run.ok for run in runs), sum(run.wrong for run in runs)
    queries, out = [run.queries for run in good], [run.out for run in good]
    answers = np.median(queries) * widths[-1] / parameters(widths)
    worst, cpu = max(run.worst for run in good), np.median([run.cpu for run in good])
    RESULTS.keep(
        name, networks=len(runs), ok=ok, wrong=wrong, parameters=parameters(widths), queries=np.median(queries),
        queries_max=max(queries), cost=answers, out=np.median(out), out_max=max(out), worst=worst, cpu=cpu,
    )  # fmt: skip
    return (
        f"{name:<16}{ok:>3}/{len(runs):<3}{len(runs) - ok:>9}{wrong:>7}"
        f"{np.median(queries):>10.0f}{max(queries):>10.0f}{answers:>8.2f}"
        f"{np.median(out):>10.1e}{max(out):>10.1e}{worst:>10.1e}"
        f"{np.median([run.seconds for run in good]):>8.2f}{cpu:>7.1f}"
    )


def frugal() -> None:
    """The method given, no rows for a last fit: queries per parameter, median and worst seed, and exactness."""
    for widths in FRUGAL:
        networks = [planted(widths, FIRST_SEED + seed, bias=BIAS) for seed in range(5)]
        runs = [exact_run(network, seed, rl.DepthThree(fit_share=0)) for seed, network in enumerate(networks)]
        cost = [run.queries / parameters(widths) for run in runs]
        print(f"{shape_name(widths)}: {sum(run.ok for run in runs)} of {len(runs)}, q/P {np.median(cost):.2f} "
              f"({max(cost):.2f}), out {max(run.out for run in runs):.1e}", flush=True)  # fmt: skip


def mixed() -> None:
    """Random shapes with two hidden layers: how many are recovered, and is anything wrong called right."""
    count, start = Counter[str](), time.process_time()
    networks, worst, reasons = int(os.environ.get("MIXED_NETWORKS", "300")), 0.0, Counter[str]()
    first = int(os.environ.get("MIXED_FIRST", "0"))
    for seed in range(first, first + networks):
        widths, bias = mixed_shape(np.random.default_rng(MIXED_FIRST_SEED + seed))
        run = exact_run(planted(widths, MIXED_FIRST_SEED + seed, bias=bias), seed)
        kind = "more neurons than inputs" if widths[1] > widths[0] else "invertible first layer"
        count[f"{kind}: {'wrong' if run.wrong else 'exact' if run.ok else 'refused'}"] += 1
        if run.ok:
            worst = max(worst, run.worst)
        else:
            reasons[run.why.split(" (")[0]] += 1
    for name, number in sorted(count.items()):
        print(f"{name:<40}{number:>5}")
    exact = sum(number for name, number in count.items() if name.endswith("exact"))
    print(f"{networks} networks: {exact / networks:.1%} exact, largest error of those {worst:.1e}, "
          f"{time.process_time() - start:.0f} CPU s")  # fmt: skip
    for reason, number in reasons.most_common():
        print(f"  refused {number}: {reason}")


def mixed_shape(rng: np.random.Generator) -> tuple[tuple[int, ...], float]:
    """Widths and the size of biases of one random network."""
    inputs = int(np.exp(rng.uniform(np.log(5), np.log(60))))
    wider = rng.random() < MIXED_WIDER
    first = int(rng.integers(inputs + 1, int(1.5 * inputs) + 2)) if wider else int(rng.integers(3, inputs + 1))
    second, outputs = int(rng.integers(3, 31)), int(rng.choice([1, 1, 1, 2, 5]))
    return (inputs, first, second, outputs), float(rng.choice([0.1, 0.3, 1.0]))


def digits() -> None:
    """A trained classifier with two hidden layers, all ten logits."""
    networks = [train_digits((32, 16), seed) for seed in range(5)]
    runs = [exact_run(network, seed) for seed, network in enumerate(networks)]
    print(row("digits", networks[0].widths, runs))

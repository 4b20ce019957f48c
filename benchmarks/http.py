"""Rows a second through HTTP, beside a plain load script against the same server.

The server is the testing kit's, in a process of its own. The load script sends bodies that were made beforehand over
as many kept-open connections (`http.client`), and reads every reply; ours encodes rows, decodes answers, counts,
watches and puts them in order. They take turns in one run; the figure is the median of the ratios.
"""

from __future__ import annotations

import http.client
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

import reluctant as rl
from reluctant.oracles.http.address import modest_rows
from reluctant.oracles.http.inference_protocol import InferenceRequest, TensorSpec, encode_binary, encode_json
from reluctant.testing import planted

WIDTHS = ((64, 32, 10), (784, 128, 1))
CONNECTIONS, BATCHES, TURNS = 4, 24, 9


def main() -> None:
    columns = f"{'load script':>14}{'ours':>10}{'with transcript':>17}{'ours / script':>15}"
    print(f"{'network':<12}{'tensors':<10}{'rows a request':>15}{columns}")
    for widths in WIDTHS:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "network.npz"
            planted(widths, 0).save(path)
            command = [sys.executable, "-m", "reluctant.testing.server", str(path)]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
                assert server.stdout is not None
                url = server.stdout.readline().strip()
                for encoding in ("binary", "json"):
                    report(url, widths, encoding, Path(name) / encoding)
                server.communicate()


def report(url: str, widths: tuple[int, ...], encoding: str, folder: Path) -> None:
    batch = modest_rows(widths[0])
    rows = np.random.default_rng(0).standard_normal((batch * BATCHES, widths[0]))
    bodies = make_bodies(rows, encoding)
    options = {"encoding": encoding, "connections": CONNECTIONS}
    speeds = []
    with (
        rl.open_oracle(url, **options) as oracle,  # type: ignore[arg-type]
        rl.open_oracle(url, transcript=folder, **options) as recorded,  # type: ignore[arg-type]
    ):
        for turn in range(TURNS):
            moved = rows + turn
            turns = (partial(load, url, bodies), partial(oracle.query, moved), partial(recorded.query, moved))
            speeds.append([len(rows) / seconds(turn) for turn in turns])
    script, ours, written = np.median(speeds, axis=0)
    ratio = np.median([mine / theirs for theirs, mine, _ in speeds])
    name = "-".join(map(str, widths))
    figures = f"{script:>10,.0f} r/s{ours:>10,.0f}{written:>17,.0f}{ratio:>15.0%}"
    print(f"{name:<12}{encoding:<10}{batch:>15}{figures}", flush=True)


def make_bodies(rows: np.ndarray, encoding: str) -> list[tuple[bytes, dict[str, str]]]:
    encode = encode_binary if encoding == "binary" else encode_json
    tensor = TensorSpec("x", "FP64", (rows.shape[1],))
    return [encode(InferenceRequest("load", tensor, part, None)) for part in np.array_split(rows, BATCHES)]


def load(url: str, bodies: list[tuple[bytes, dict[str, str]]]) -> None:
    """Every body once, over all connections."""
    todo, place = iter(bodies), urlsplit(url)
    lock = threading.Lock()

    def work() -> None:
        connection = http.client.HTTPConnection(place.hostname or "", place.port)
        while True:
            with lock:
                body = next(todo, None)
            if body is None:
                break
            connection.request("POST", f"{place.path}/infer", *body)
            reply = connection.getresponse()
            assert reply.status == 200
            reply.read()
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start

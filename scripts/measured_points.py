"""Write the measured points of the cost model from the kept results of the benchmarks.

python scripts/measured_points.py          writes src/reluctant/estimation/measured.json
python scripts/measured_points.py --check  exit status 1 if that is not what the results say

Rows measured before verification got its points at three times the scale, on lines and on rays are written with these
added.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.results import read_results  # noqa: E402

from reluctant.estimation.cost import OPERATIONS_A_WEIGHT  # noqa: E402
from reluctant.estimation.formulas import DECIMALS, FEWEST_LAYERS, FLOAT32, NOISE  # noqa: E402
from reluctant.extraction.candidate_check import (  # noqa: E402
    POINTS_FOR_DEEP,
    points_on_rays,
    shallow_counts,
)
from reluctant.verification.points import LINE_POINTS  # noqa: E402

MEASURED = ROOT / "src" / "reluctant" / "estimation" / "measured.json"
EXACT = (
    "depth-two",
    "growth",
    "large",
    "gpu",
    "depth-three",
    "calibration",
)  # float64 if a row does not say another kind
TRAINED = {"digits": [64, 32, 16, 10]}  # networks that are not called by their shape
NAMED = re.compile(r"(\d+(?:-\d+)+)")
FEW_DIGITS = re.compile(r"(float32, )?(\d+) decimals|noise (\S+)|(float32)$")
SINGLE = "-f32"  # labels of a target that computes in float32
VERIFIED_SO_SINCE = "2026-11-17"
ON_RAYS_SINCE = "2026-11-18"
CORE, DEVICE = "one CPU core", "NVIDIA H200"

Row = dict[str, Any]


def points() -> Iterator[Row]:
    """All points, in the order of the benchmarks."""
    for source in EXACT:
        for name, row in read_results(source).items():
            found = point(name, row, source, row.get("kind", "float64"))
            # Labels give all of one hidden layer for less than its span.
            if found["answers"] != "labels" or len(found["widths"]) > FEWEST_LAYERS:
                yield found
    for name, row in read_results("labels").items():
        if SINGLE not in name:
            yield point(name, row, "labels", "labels")
    for name, row in read_results("precision").items():
        if asked := answers(name):
            yield point(name, row, "precision", asked)


def point(name: str, row: Row, source: str, asked: str) -> Row:
    widths = row.get("widths") or TRAINED.get(name) or [int(part) for part in NAMED.findall(name)[0].split("-")]
    per_answer = row.get("parameters", 0) / widths[-1]  # results that tell the cost tell it in answers a parameter
    queries = row["queries"] if "queries" in row else row["cost"] * per_answer
    most = row.get("queries_max") or row.get("cost_max", 0) * per_answer or queries
    more = verification_since(widths, queries) if row["date"] < VERIFIED_SO_SINCE and asked != "labels" else 0
    if row["date"] < ON_RAYS_SINCE and asked == "float64" and len(widths) == FEWEST_LAYERS:
        more += points_on_rays(int(queries))
    return {
        "name": name, "widths": widths, "answers": asked, "networks": row["networks"], "ok": row["ok"],
        "queries": round(queries) + more, "most_queries": round(most) + more, "out": row.get("out", row.get("out_max")),
        "most_out": row.get("out_max"), "source": source,
    }  # fmt: skip


def verification_since(widths: list[int], queries: float) -> int:
    """Rows that verification asks now and did not before: at scales 1 and 3, and on lines."""
    if len(widths) > 3:
        return POINTS_FOR_DEEP + sum(widths[1:-1]) + LINE_POINTS
    counts = shallow_counts(int(queries))
    return counts.at_use + counts.on_lines


def answers(name: str) -> str | None:
    """What a row of few digits is asked for, None if it is of another kind."""
    found = FEW_DIGITS.search(name)
    if found is None:
        return None
    of_single, decimals, noise, single = found.groups()
    rounded = f"{FLOAT32},{DECIMALS}" if of_single else DECIMALS
    return single or (f"{rounded}={decimals}" if decimals else f"{NOISE}={float(noise):g}")


def speeds() -> dict[str, float]:
    """Operations a second of targets: what a core did in the largest run, and the product of a device."""
    _, largest = max(read_results("large").items(), key=lambda item: item[1]["parameters"])
    operations = OPERATIONS_A_WEIGHT * largest["parameters"] * largest["queries"]
    device = next(iter(read_results("gpu").values()))
    return {CORE: operations / (largest["seconds"] / largest["cpu"]), DEVICE: device["rate"]}


def text() -> str:
    lines = ",\n".join(f"  {json.dumps(row)}" for row in points())
    return f'{{\n "speeds": {json.dumps(speeds())},\n "points": [\n{lines}\n ]\n}}\n'


def main() -> None:
    if "--check" in sys.argv:
        same = MEASURED.read_text(encoding="utf-8") == text()
        sys.exit(
            0 if same else f"{MEASURED.name} is not what benchmarks/results says: python scripts/measured_points.py"
        )
    MEASURED.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()

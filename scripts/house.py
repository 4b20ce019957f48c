"""Measures of the code base: modules, lines, names, and how many files one call enters.

python scripts/house.py            print them
python scripts/house.py --entered  also list the files that `extract` and `audit` enter, in order
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

SOURCE = Path(__file__).parents[1] / "src" / "reluctant"
MODEL = SOURCE / "bundled" / "digits-64-32-10.onnx"
SHALLOW = 60  # lines: a module below has little behind its face
AUDIT_BUDGET = 60_000
SHARED_STEMS = {"__init__", "__main__", "method"}  # a method package names its method so


def numbers(tree: ast.Module) -> int:
    """Assignments of numbers at the top level of a module."""
    given = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None]
    return sum(
        any(isinstance(part, ast.Constant) and type(part.value) in (int, float) for part in ast.walk(node.value))
        for node in given
        if node.value is not None
    )


def entered(call: Callable[[], Any]) -> list[str]:
    """Modules of the package in which a function was called, in order."""
    found: dict[str, None] = {}
    met: set[CodeType] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code in met:
            return
        met.add(code)
        name = code.co_filename
        if name.startswith(str(SOURCE)) and name.endswith(".py") and code.co_name != "<module>":  # no templates
            found.setdefault(str(Path(name).relative_to(SOURCE)))

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(found)


def extract_once() -> None:
    import numpy as np

    import reluctant as rl

    rng = np.random.default_rng(0)
    weights, biases, outputs = rng.standard_normal((784, 32)) / 28, rng.standard_normal(32), rng.standard_normal(32)
    rl.extract(lambda x: np.maximum(x @ weights + biases, 0) @ outputs, dim=784, rng=0)


def audit_once() -> None:
    import reluctant as rl

    with rl.open_oracle(str(MODEL)) as oracle, tempfile.TemporaryDirectory() as folder:
        found = rl.audit(oracle, budget=AUDIT_BUDGET, rng=0, file=MODEL)
        rl.report(found, Path(folder) / "report.html")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entered", action="store_true")
    listed = parser.parse_args().entered
    files = sorted(SOURCE.rglob("*.py"))
    lines = {file: len(file.read_text("utf-8").splitlines()) for file in files}
    modules = [file for file in files if file.name != "__init__.py"]
    sizes = sorted(lines[file] for file in modules)
    stems = Counter(file.stem for file in modules if file.stem not in SHARED_STEMS)
    print(f"{len(files)} files, {sum(lines.values())} lines; modules: {len(modules)}")
    print(f"lines of a module: median {statistics.median(sizes):.0f}, tenth largest {sizes[-len(sizes) // 10]}")
    print(f"modules below {SHALLOW} lines: {sum(size < SHALLOW for size in sizes)}")
    print(f"stems used twice: {sorted(stem for stem, count in stems.items() if count > 1)}")
    print(f"stems that end in -ing or -ed: {sorted(stem for stem in stems if re.search('(ing|ed)$', stem))}")
    print(f"numbers at the top level: {sum(numbers(ast.parse(file.read_text('utf-8'))) for file in files)}")
    for name, call in (("extract", extract_once), ("audit", audit_once)):
        call()  # imports, once
        doors = entered(call)
        print(f"files entered by one {name}: {len(doors)}")
        if listed:
            print("  " + " → ".join(doors))


if __name__ == "__main__":
    main()

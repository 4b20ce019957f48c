"""Write the tables of docs/estimate.md from the cost model and the kept results of the benchmarks.

python scripts/estimate_tables.py          writes them
python scripts/estimate_tables.py --check  exit status 1 if they are not what the results say
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import growth  # noqa: E402
from benchmarks.estimate import model_table, size_table  # noqa: E402
from marked import markdown_table, write_marked  # noqa: E402

from reluctant.estimation.formulas import shape_name  # noqa: E402

PAGE = ROOT / "docs" / "estimate.md"


def growth_text() -> str:
    """How flat it is, then every shape."""
    rows = list(growth.every_shape(kept=True))
    head = ("network", "parameters", "recovered", "q/P", "model", "family", "from")
    cells = [
        (
            shape_name(row.widths), f"{row.parameters:,}", f"{row.ok} of {row.networks}", f"{row.cost:.4f}",
            f"{growth.modelled(row.widths):.4f}", row.family, row.source,
        )
        for row in rows
    ]  # fmt: skip
    said = "\n".join(f"- {sentence}" for sentence in growth.flatness(rows))
    return f"{said}\n\n{markdown_table(head, cells)}"


if __name__ == "__main__":
    parts = {"models": markdown_table(*model_table()), "sizes": markdown_table(*size_table()), "growth": growth_text()}
    write_marked(PAGE, parts, "python scripts/estimate_tables.py")

"""Write docs/tutorial.ipynb from docs/tutorial.md: text becomes text cells, Python becomes code cells, output output.

python scripts/notebook.py          writes it
python scripts/notebook.py --check  exit status 1 if the notebook is not the one of the page
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
PAGE, NOTEBOOK = DOCS / "tutorial.md", DOCS / "tutorial.ipynb"
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```\n", re.DOTALL | re.MULTILINE)


def cells(page: str) -> list[dict[str, Any]]:
    """The cells in their order; a block without a language is the output of the code before it."""
    found: list[dict[str, Any]] = []
    end = 0
    for block in BLOCK.finditer(page):
        found += _text(page[end : block.start()])
        if block["language"] == "python":
            found.append(
                {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], **_source(block["body"])}
            )
        else:
            found[-1]["outputs"].append({"output_type": "stream", "name": "stdout", "text": _lines(block["body"])})
        end = block.end()
    found += _text(page[end:])
    return [{"id": f"cell-{number}", **cell} for number, cell in enumerate(found)]


def _text(part: str) -> list[dict[str, Any]]:
    part = part.strip()
    return [{"cell_type": "markdown", "metadata": {}, **_source(part)}] if part else []


def _source(text: str) -> dict[str, list[str]]:
    return {"source": _lines(text.rstrip("\n"))}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def notebook(page: str) -> str:
    """The whole file."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells(page), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Write the notebook, or compare it."""
    wanted = notebook(PAGE.read_text("utf-8"))
    if "--check" in sys.argv:
        return int(not NOTEBOOK.exists() or NOTEBOOK.read_text("utf-8") != wanted)
    NOTEBOOK.write_text(wanted, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

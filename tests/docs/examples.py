"""What the pages show: Python examples and command lines, page by page."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["PAGES", "ROOT", "command_lines", "python_examples"]

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```", re.DOTALL | re.MULTILINE)


def python_examples(page: Path) -> list[str]:
    """The Python blocks of a page, in order."""
    return [block["body"] for block in BLOCK.finditer(page.read_text("utf-8")) if block["language"] == "python"]


def command_lines(page: Path) -> list[str]:
    """Every `reluctant ...` line in the blocks of a page, without a comment or a file for its output."""
    bodies = [block["body"] for block in BLOCK.finditer(page.read_text("utf-8")) if block["language"] != "python"]
    lines = [line.strip().removeprefix("$ ") for body in bodies for line in body.replace("\\\n", " ").splitlines()]
    return [re.split(" #| > ", line)[0] for line in lines if line.startswith("reluctant ")]

"""What the pages show: Python examples and command lines, page by page."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["PAGES", "ROOT", "command_lines", "python_examples", "same_output", "shown_outputs"]

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```", re.DOTALL | re.MULTILINE)

OUTPUT = re.compile(r"\s*^```\n(?!reluctant )(?P<body>.*?)^```", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def python_examples(page: Path) -> list[str]:
    """The Python blocks of a page, in order."""
    return [block["body"] for block in BLOCK.finditer(page.read_text("utf-8")) if block["language"] == "python"]


def shown_outputs(page: Path) -> list[str | None]:
    """What the page shows below each Python block, None where it shows nothing."""
    text, found = page.read_text("utf-8"), list[str | None]()
    for block in BLOCK.finditer(text):
        below = OUTPUT.match(text, block.end())
        found += [below and below["body"]] if block["language"] == "python" else []
    return found


def same_output(shown: str, printed: str) -> bool:
    """Equal words, counts within a few per cent, errors within two digits: a processor rounds in its own way."""
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (shown, printed)]
    return NUMBER.split(shown) == NUMBER.split(printed) and all(map(_close, *numbers))


def _close(shown: float, printed: float) -> bool:
    tiny = 1e-6
    if abs(shown) < tiny and shown:
        return 0.01 < printed / shown < 100
    return abs(shown - printed) <= 0.02 * abs(shown)


def command_lines(page: Path) -> list[str]:
    """Every `reluctant ...` line in the blocks of a page, without a comment or a file for its output."""
    bodies = [block["body"] for block in BLOCK.finditer(page.read_text("utf-8")) if block["language"] != "python"]
    lines = [line.strip().removeprefix("$ ") for body in bodies for line in body.replace("\\\n", " ").splitlines()]
    return [re.split(" #| > ", line)[0] for line in lines if line.startswith("reluctant ")]

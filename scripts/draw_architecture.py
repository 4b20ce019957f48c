"""Draw the layers of the package, as the import contracts state them, into docs/images/architecture.svg.

    python scripts/draw_architecture.py           write the picture
    python scripts/draw_architecture.py --check   exit status 1 if the picture is not the one of pyproject.toml

A box is a package or module; it may import from boxes below it and from none above. What a box is for is the first
clause of its docstring, so that picture, contracts and code cannot drift apart.
"""

from __future__ import annotations

import argparse
import ast
import sys
import textwrap
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
WIDTH, MARGIN, GAP = 1080, 24, 10
BOX, LINE, LETTERS = 74, 15, 6.4  # height of a box, of a line; width of a letter


def layers() -> list[list[str]]:
    """Names of the layers, top first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    first = next(contract for contract in contracts if contract["name"] == "Imports go one way")
    return [[name.strip().removeprefix("reluctant.") for name in layer.split("|")] for layer in first["layers"]]


def purpose(name: str) -> str:
    """The first clause of a package's or module's docstring, without its own name."""
    folder = ROOT / "src" / "reluctant" / name
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    said = (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").split("\n\n")[0].replace("\n", " ")
    said = said.split(". ")[0].rstrip(".")
    own, colon, rest = said.partition(": ")
    return rest if colon and len(own) < len(name) + 6 else said


def box(x: float, y: float, width: float, name: str) -> str:
    lines = textwrap.wrap(purpose(name), int((width - 20) / LETTERS))[:3]
    rows = "".join(
        f'<text class="says" x="{x + 10:.0f}" y="{y + 36 + LINE * i:.0f}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{BOX}" rx="6"/>'
        f'<text class="name" x="{x + 10:.0f}" y="{y + 19:.0f}">{escape(name)}</text>{rows}'
    )


def picture() -> str:
    rows = layers()
    height = 2 * MARGIN + len(rows) * (BOX + GAP) + 24
    parts = []
    for i, names in enumerate(rows):
        width = (WIDTH - 2 * MARGIN - GAP * (len(names) - 1)) / len(names)
        y = MARGIN + i * (BOX + GAP)
        parts += [box(MARGIN + j * (width + GAP), y, width, name) for j, name in enumerate(names)]
    foot = "Imports go down, never up. The target is reached through oracles alone."
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t">
<title id="t">The layers of reluctant, from the command line down to errors</title>
<style>
text {{ font-family: system-ui, sans-serif; fill: #1b1f24 }}
.name {{ font-size: 14px; font-weight: 600 }} .says {{ font-size: 12px; fill: #4a5260 }}
rect {{ fill: #f3f6fa; stroke: #9fb0c3 }} .page {{ fill: #ffffff; stroke: none }}
</style>
<rect class="page" width="{WIDTH}" height="{height}"/>
{chr(10).join(parts)}
<text class="says" x="{MARGIN}" y="{height - 14}">{foot}</text>
</svg>
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        return 0 if PICTURE.exists() and PICTURE.read_text("utf-8") == picture() else 1
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The map of the package in docs/architecture.md: a picture of its layers, and a table of its modules.

    python scripts/draw_architecture.py           write picture and table
    python scripts/draw_architecture.py --check   exit status 1 if they are not those of the code

A box is a package or module; it may import from boxes below it and from none above, as the import contracts state.
Words come from docstrings, so that map, contracts and code cannot drift apart.
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
SOURCE = ROOT / "src" / "reluctant"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- modules: scripts/draw_architecture.py -->", "<!-- end of modules -->"
WIDTH, MARGIN, GAP = 1080, 24, 10
BOX, LINE, LETTERS = 74, 15, 6.4  # height of a box, of a line; width of a letter


def layers() -> list[list[str]]:
    """Names of the layers, top first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    first = next(contract for contract in contracts if contract["name"] == "Imports go one way")
    return [[name.strip().removeprefix("reluctant.") for name in layer.split("|")] for layer in first["layers"]]


def sentence(file: Path) -> str:
    """The first sentence of a file's docstring."""
    said = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return said.split("\n\n")[0].replace("\n", " ").split(". ")[0].rstrip(".")


def purpose(name: str) -> str:
    """What a package or module is for, without its own name."""
    package = SOURCE / name / "__init__.py"
    said = sentence(package if package.exists() else SOURCE / f"{name}.py")
    own, colon, rest = said.partition(": ")
    return rest if colon and len(own) < len(name) + 6 else said


def table(folder: Path) -> list[str]:
    """The modules of one folder and of the folders inside it."""
    modules = [file for file in sorted(folder.glob("*.py")) if not file.name.startswith("__")]
    inside = [each for each in sorted(folder.iterdir()) if (each / "__init__.py").exists()]
    rows = [f"| `{file.relative_to(SOURCE)}` | {sentence(file)} |" for file in modules]
    return [*rows, *(row for each in inside for row in table(each))]


def modules() -> str:
    """Every module with its first sentence, a table for each package."""
    top = [f"| `{file.name}` | {sentence(file)} |" for file in sorted(SOURCE.glob("*.py")) if "__" not in file.name]
    folders = [folder for folder in sorted(SOURCE.iterdir()) if (folder / "__init__.py").exists()]
    said = [(f"`{folder.name}/`", f"{sentence(folder / '__init__.py')}.\n\n", table(folder)) for folder in folders]
    parts = [("The root", "", top), *said]
    return "\n".join(
        f"### {name}\n\n{words}| module | content |\n|---|---|\n" + "\n".join(rows) + "\n"
        for name, words, rows in parts
        if rows
    )


def page() -> str:
    """The page with its table of modules made anew."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n\n{modules()}\n{END}{rest.partition(END)[2]}"


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
        same = PICTURE.read_text("utf-8") == picture() and PAGE.read_text("utf-8") == page()
        return 0 if same else 1
    PICTURE.write_text(picture(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

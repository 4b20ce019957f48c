"""Check the words of pages, docstrings, comments and messages: crutches fail, long sentences are listed.

python scripts/prose.py            lists crutches and sentences of more than 30 words, page by page
python scripts/prose.py --check    prints crutches, sentences and table cells that are too long; exit status 1 if any
python scripts/prose.py --measure  prints the mean and the longest sentence of pages, docstrings and messages

docs/style.md has the rules, with examples.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
SOURCES = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "src").rglob("*.html"))]
QUOTES_CRUTCHES = {"style.md"}  # the page that shows what to avoid
CRUTCH = re.compile(r"\b(told|taken|looked at|stands|what is)\b", re.IGNORECASE)
LONG, LONG_DOC = 30, 40  # words of a sentence of a page, and of a docstring
LONG_CELL = 40  # words of a table's cell, however many sentences it has
BLOCK = re.compile(r"^```.*?^```\n?|^:::.*\n", re.DOTALL | re.MULTILINE)  # code, and names that the API page fills in
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[\"0-9])|\s*(?:\||·)\s*|\n\s*\n|\n(?=\s*(?:[-*]|\d+\.|#+|\|)\s)")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
ARGUMENT = re.compile(r"(?<=[.:])\s+(?=\w+(?:, \w+)*(?: \([^)]*\))?: )|\n\s*(?=\w+(?:, \w+)*(?: \([^)]*\))?: )|;\s")
DRAWING = re.compile(r"^.*[│├└→].*$", re.MULTILINE)  # trees and diagrams
WORD = re.compile(r"[A-Za-zÀ-ÿ][\w'’-]*")
Prose = Iterator[tuple[int, str]]  # line number, text


def of_page(text: str) -> Prose:
    """The lines of a page outside of code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, re.sub(r"`[^`]*`", "", line)


def of_source(text: str) -> Prose:
    """Comments and strings of a module, by line."""
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line


def crutches(file: Path) -> list[str]:
    """Each crutch of a file, with its place."""
    text = file.read_text("utf-8")
    prose = of_source(text) if file.suffix == ".py" else of_page(text)
    return [
        f"{file.relative_to(ROOT)}:{number}: {found[0]!r}: {line.strip()[:100]}"
        for number, line in prose
        for found in CRUTCH.finditer(line)
    ]


def words(text: str) -> int:
    """How many words a text has; code counts as one."""
    return len(WORD.findall(text))


def plain(text: str) -> str:
    """Markdown without blocks of code and addresses; code in a line is one word."""
    return LINK.sub(r"\1", re.sub(r"`[^`]*`", "Code", BLOCK.sub("\n\n", text)))


def page_sentences(page: Path) -> list[str]:
    """The sentences of a page; a cell of a table is text too."""
    return [" ".join(part.split()) for part in SENTENCE_END.split(plain(page.read_text("utf-8")))]


def docstring_sentences(file: Path) -> list[str]:
    """The sentences of a module's docstrings, each argument by itself."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, documented)]
    text = "\n\n".join(plain(ast.get_docstring(node) or "") for node in nodes)
    parts = ARGUMENT.split(DRAWING.sub("\n\n", text))
    return [" ".join(part.split()) for whole in parts for part in SENTENCE_END.split(whole)]


def message_sentences(file: Path) -> list[str]:
    """The sentences of a module's texts: strings of several words that are not docstrings."""
    tree = ast.parse(file.read_text("utf-8"))
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in bare]
    texts = [node.value for node in strings if isinstance(node.value, str) and node.value.rstrip().endswith(".")]
    return [part for text in texts for part in SENTENCE_END.split(plain(text))]


def long_sentences(sentences: list[str], limit: int) -> list[tuple[int, str]]:
    """Sentences with more words than the limit."""
    return [(words(sentence), sentence) for sentence in sentences if words(sentence) > limit]


def long_cells(page: Path) -> list[tuple[int, str]]:
    """Cells of tables with too many words."""
    rows = [line for line in plain(page.read_text("utf-8")).splitlines() if line.startswith("|")]
    return long_sentences([cell.strip() for row in rows for cell in row.split("|")], LONG_CELL)


def measure() -> None:
    """Print the mean and the longest sentence of each kind of text; fewer than three words are no sentence."""
    modules = [file for file in SOURCES if file.suffix == ".py"]
    kinds = {
        "README": page_sentences(ROOT / "README.md"),
        "pages": [each for page in PAGES for each in page_sentences(page)],
        "docstrings": [each for file in modules for each in docstring_sentences(file)],
        "messages": [each for file in modules if "messages" in file.parts for each in message_sentences(file)],
        "report and CLI": [
            each for file in modules if {"report", "cli"} & {*file.parts} for each in message_sentences(file)
        ],
    }
    print("text            sentences  mean words  longest")
    for kind, sentences in kinds.items():
        counts = [count for count in map(words, sentences) if count > 2]
        print(f"{kind:15} {len(counts):9,} {sum(counts) / len(counts):11.1f} {max(counts):8}")


def main() -> int:
    """Print what is wrong; the number of faults decides."""
    if "--measure" in sys.argv:
        measure()
        return 0
    faults = [line for file in [*PAGES, *SOURCES] if file.name not in QUOTES_CRUTCHES for line in crutches(file)]
    if "--check" in sys.argv:
        for page in PAGES:
            for count, text in [*long_sentences(page_sentences(page), LONG), *long_cells(page)]:
                faults.append(f"{page.relative_to(ROOT)}: {count} words: {text[:160]}")
        for file in SOURCES:
            for count, text in long_sentences(docstring_sentences(file), LONG_DOC) if file.suffix == ".py" else ():
                faults.append(f"{file.relative_to(ROOT)}: {count} words: {text[:160]}")
        print("\n".join(faults), end="\n" if faults else "")
        return int(bool(faults))
    print("\n".join(faults))
    for page in PAGES:
        found = long_sentences(page_sentences(page), LONG)
        if found:
            print(
                f"{page.relative_to(ROOT)}: {len(found)} sentences of more than {LONG} words, at most {max(found)[0]}"
            )
            if "--all" in sys.argv:
                print("".join(f"    {count}: {sentence}\n" for count, sentence in found), end="")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())

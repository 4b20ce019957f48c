"""Check the words of pages, docstrings, comments and messages: crutches fail, long sentences are listed.

python scripts/prose.py          lists crutches and sentences of more than 30 words, page by page
python scripts/prose.py --check  prints crutches and sentences of more than 40 words; exit status 1 if there are any

docs/style.md has the rules, with examples.
"""

from __future__ import annotations

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
LONG, TOO_LONG = 30, 40  # words of a sentence
BLOCK = re.compile(r"^```.*?^```\n?", re.DOTALL | re.MULTILINE)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[\"0-9])|\s*(?:\||·)\s*|\n\s*\n|\n(?=\s*(?:[-*]|\d+\.|#+|\|)\s)")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
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


def long_sentences(page: Path, limit: int) -> list[tuple[int, str]]:
    """Sentences of a page with more words than the limit; a cell of a table is text too."""
    text = LINK.sub(r"\1", re.sub(r"`[^`]*`", "Code", BLOCK.sub("\n\n", page.read_text("utf-8"))))
    sentences = (" ".join(part.split()) for part in SENTENCE_END.split(text))
    counted = ((len(WORD.findall(sentence)), sentence) for sentence in sentences)
    return [(words, sentence) for words, sentence in counted if words > limit]


def main() -> int:
    """Print what is wrong; the number of faults decides."""
    faults = [line for file in [*PAGES, *SOURCES] if file.name not in QUOTES_CRUTCHES for line in crutches(file)]
    if "--check" in sys.argv:
        for page in PAGES:
            for words, sentence in long_sentences(page, TOO_LONG):
                faults.append(f"{page.relative_to(ROOT)}: {words} words: {sentence[:160]}")
        print("\n".join(faults), end="\n" if faults else "")
        return int(bool(faults))
    print("\n".join(faults))
    for page in PAGES:
        found = long_sentences(page, LONG)
        if found:
            print(
                f"{page.relative_to(ROOT)}: {len(found)} sentences of more than {LONG} words, at most {max(found)[0]}"
            )
            if "--all" in sys.argv:
                print("".join(f"    {words}: {sentence}\n" for words, sentence in found), end="")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())

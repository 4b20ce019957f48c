"""Write docs/messages.md from the catalogue of messages: one heading for each slug.

python scripts/messages_page.py           write the page
python scripts/messages_page.py --check   exit status 1 if the page is not the one of the catalogue
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from reluctant.messages.catalogue import AUDITS, CHANGES, CHECKS, FINDINGS, INTERFACES, LEAKS, OUTCOMES, RUNS, Entry
from reluctant.messages.diagnosis import Diagnosis
from reluctant.messages.error_pages import ERRORS

PAGE = Path(__file__).parents[1] / "docs" / "messages.md"
HEAD = """\
# Messages

Look up a message by its slug. The command line prints the slug of an error in brackets; in Python it is `error.slug`,
`result.outcome.slug` or `result.diagnosis.slug`. Numbers below are examples.
"""
SECTIONS: tuple[tuple[str, str, Mapping[str, Entry]], ...] = (
    (
        "Outcomes",
        "How a run ended. Only `recovered`, `learned`, `span-recovered`, `full-rank` and (of a flip) `flipped` are "
        "`ok`. Everything else keeps the partial result and the evidence.",
        OUTCOMES,
    ),
    (
        "Why an interface is refused",
        "Answers that exact methods cannot use as they are.",
        INTERFACES,
    ),
    ("What an interface shows", "Lines of the text of `check_health`.", FINDINGS),
    ("Why a run ended", "More exact than the outcome, where more is known.", RUNS),
    ("What a comparison shows", "Lines of the text of a verification, and of a flip.", CHECKS),
    ("What an audit adds", "How its steps ended, why one had nothing to do, what was assumed.", AUDITS),
    ("What a model leaks", "The findings of an audit, as SARIF and JUnit name them.", LEAKS),
    ("What changed between two audits", "Lines of `reluctant compare-audits`.", CHANGES),
)


def page() -> str:
    """The whole page."""
    parts = [HEAD, "# Errors\n", *(f"## {slug}\n\n{text}\n" for slug, text in ERRORS.items())]
    for title, about, entries in SECTIONS:
        parts += [
            f"# {title}\n\n{about}\n",
            *(f"## {slug}\n\n{_shown(slug, entry)}\n" for slug, entry in entries.items()),
        ]
    return "\n".join(parts)


def _shown(slug: str, entry: Entry) -> str:
    said = Diagnosis(slug, entry.example or {}, entry.remedies)
    return " ".join(filter(None, [str(said), entry.more]))


def main() -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        return int(PAGE.read_text("utf-8") != page())
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

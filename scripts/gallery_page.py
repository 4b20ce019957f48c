"""Write docs/gallery.md and its pictures from a folder that `reluctant reproduce all --out FOLDER` made.

python scripts/gallery_page.py FOLDER
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from reluctant.papers.experiments.reproduction import EXPERIMENTS

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = DOCS / "images" / "gallery"
HEAD = """\
# Gallery

Every experiment of the four papers, with its claim, its measurement and its picture. The pictures come from one run:

```
reluctant reproduce all --out figures --jobs 2
python scripts/gallery_page.py figures
```

{checks} of {of} checks hold in that run (quick size, seed 0). [Four papers, run again](experiments.md) has the tables.
The page that `reproduce` writes has every number.
"""


def main() -> None:
    """Copy the pictures, write the page."""
    folder = Path(sys.argv[1])
    findings = [json.loads((folder / f"{name}.json").read_text("utf-8")) for name in EXPERIMENTS]
    checks = [check["ok"] for finding in findings for check in finding["checks"]]
    PICTURES.mkdir(parents=True, exist_ok=True)
    parts, paper = [HEAD.format(checks=sum(checks), of=len(checks))], ""
    for finding in findings:
        if finding["paper"]["title"] != paper:
            paper = finding["paper"]["title"]
            parts.append(f"## {finding['paper']['authors']}, {finding['paper']['venue']}\n\n*{paper}*\n")
        shutil.copy(folder / f"{finding['name']}.svg", PICTURES)
        parts.append(_section(finding))
    (DOCS / "gallery.md").write_text("\n".join(parts), "utf-8")


def _section(finding: dict[str, Any]) -> str:
    name = finding["name"]
    return (
        f"### {name}: {finding['where']}\n\n"
        f"**Claim.** {finding['claim']}\n\n**Measured.** {finding['measured']}\n\n"
        f"![{finding['title']}](images/gallery/{name}.svg)\n\n`{finding['command']}`\n"
    )


if __name__ == "__main__":
    main()

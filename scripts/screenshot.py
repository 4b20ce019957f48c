"""Take the picture of the report that the README shows: docs/images/report.png.

python scripts/screenshot.py [REPORT]

Without a report the demo is run first. Needs the extra dev, and the Debian package chromium.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import ViewportSize, sync_playwright

from reluctant.cli.commands.audit_commands import demo

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "report.png"
SIZE: ViewportSize = {"width": 1200, "height": 1500}  # the verdict, what was recovered, what would help


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) > 1:
            report = Path(sys.argv[1])
        else:
            demo(out=Path(folder), quiet=True)
            report = Path(folder) / "report.html"
        take(report.resolve())
    print(f"Written: {PICTURE}")


def take(report: Path) -> None:
    """The first screens of a page, light, as they stand when everything has stopped moving."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("No browser: install the Debian package chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
        page.goto(report.as_uri())
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()

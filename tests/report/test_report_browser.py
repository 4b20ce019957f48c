"""The page in a real browser: it renders, in light and in dark, and nothing in it runs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.image import imread

CHROMIUM = shutil.which("chromium")
SETTINGS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=900,1400"]
DARK = "--blink-settings=preferredColorScheme=0"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no browser: install the Debian package chromium")


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., str]:
    """Open a page with these switches; what the browser prints is given back."""

    def open_page(page: Path, *switches: str) -> str:
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        command = [CHROMIUM, *SETTINGS, profile, *switches, page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout

    return open_page


def test_the_page_renders(write_report, browse):
    dom = browse(write_report(), "--dump-dom")
    assert "<h1>What <code>model.onnx</code> answers</h1>" in dom
    assert dom.count("<svg") == 1
    assert "Rows that reached the target: 343" in dom


def test_nothing_in_a_name_runs(write_report, browse):
    page = write_report("<img src=x onerror=\"document.title='ran'\"><script>document.title='ran'</script>")
    dom = browse(page, "--dump-dom")
    assert "<title>What &lt;img" in dom
    assert "<script" not in dom
    assert "<img" not in dom


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_is_light_or_dark(dark, write_report, browse, tmp_path):
    picture = tmp_path / "page.png"
    browse(write_report(), f"--screenshot={picture}", *([DARK] if dark else []))
    pixels = imread(picture)[:, :, :3].mean(axis=2)
    background = pixels[5, 5]
    assert background < 0.3 if dark else background > 0.9
    assert pixels.std() > 0.01  # something is drawn on it


STILL = "--force-prefers-reduced-motion"
LARGE = ["--window-size=900,700"]


def test_the_film_is_whole_without_motion(write_report, browse, tmp_path):
    """Marks of creases are there at once for a reader who wants no motion, and have yet to come for others."""
    page = write_report(recover=True)
    for name, switches in (("still", [STILL]), ("moving", [])):
        browse(page, *LARGE, f"--screenshot={tmp_path / name}.png", *switches)
    still, moving = (marks(imread(tmp_path / f"{name}.png")) for name in ("still", "moving"))
    assert still > 30
    assert moving < still


def marks(picture) -> int:
    """Pixels in the colour of a found crease."""
    red, green, blue = (picture[:, :, channel] for channel in range(3))
    return int(((red > 0.65) & (green < 0.4) & (blue < 0.25)).sum())

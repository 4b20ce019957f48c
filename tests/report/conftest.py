"""Records to make pages of, a real one from a file and one of a target that cannot be reached; and a real browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from drawn_once import DRAWN, drawn_once

from reluctant.audit import not_opened
from reluctant.audit.record import AuditRecord
from reluctant.errors import TargetError
from reluctant.report import audit_page

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium")
SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
DESK = {"width": 1280, "height": 900}
HOSTILE = [
    "<script>document.title='ran'</script>",
    "<img src=x onerror=\"document.title='ran'\">",
    '"><svg onload="document.title=\'ran\'">',
    "' autofocus onfocus='document.title=1",
    "{{ 7 * 7 }}{% raw %}",
    "</title></style><script>document.title='ran'</script>",
    "$\\frac{1}{",
    "&lt;b&gt;",
]


@pytest.fixture(scope="session", autouse=True)
def pictures_once() -> Iterator[None]:
    """Records that differ in a word have the same pictures."""
    with drawn_once():
        yield


@pytest.fixture
def drawn_anew() -> None:
    """No picture is known yet."""
    DRAWN.clear()


@pytest.fixture(scope="session")
def written_record() -> dict[str, Any]:
    """What the command wrote for the bundled model."""
    return json.loads((HERE / "example-audit.json").read_text("utf-8"))


@pytest.fixture
def record(written_record) -> dict[str, Any]:
    return deepcopy(written_record)


@pytest.fixture
def unreachable() -> dict[str, Any]:
    address = "http://localhost:9/v2/models/digits"
    error = TargetError(f"{address}: Connection refused")
    return not_opened(address, error, seed=0, budget=1000, repeat=f"reluctant audit {address}").record.to_dict()


@cache
def _page_of(record: str) -> str:
    return audit_page(AuditRecord.from_dict(json.loads(record)))


@pytest.fixture(scope="session")
def page_of() -> Callable[[dict[str, Any]], str]:
    """The page of a record; the same record is drawn once."""
    return lambda record: _page_of(json.dumps(record))


@pytest.fixture
def write_report(tmp_path: Path, record, page_of) -> Callable[..., Path]:
    """Write the page of a record, give back its path."""

    def write(data: dict[str, Any] | None = None) -> Path:
        (tmp_path / "report.html").write_text(page_of(data or record), encoding="utf-8")
        return tmp_path / "report.html"

    return write


@pytest.fixture(scope="session")
def hostile_record(written_record) -> dict[str, Any]:
    """Every text of the record that somebody else may have written, replaced."""
    record = deepcopy(written_record)
    record["target"] |= {"name": HOSTILE[0], "identity": HOSTILE[1], "kind": HOSTILE[2]}
    record["target"]["classes"] = (HOSTILE * 2)[:10]
    record["limits"] = [{"slug": "step-failed", "fields": {"message": text}, "remedies": []} for text in HOSTILE]
    record["verdict"]["reasons"] = [{"diagnosis": {"slug": HOSTILE[5], "fields": {}, "remedies": []}, "step": "span"}]
    record["repeat"] |= {"command": f"reluctant audit {HOSTILE[5]}", "record": HOSTILE[2], "page": HOSTILE[3]}
    record["price"] = {"per_thousand": 1.0, "currency": HOSTILE[1], "cost": 3.0}
    failed = {"slug": "step-failed", "fields": {"error": HOSTILE[1], "message": HOSTILE[2]}, "remedies": []}
    record["steps"][0] |= {"diagnosis": failed, "step": HOSTILE[0]}
    record["names"][0] |= {"name": HOSTILE[1], "source": HOSTILE[2]}
    record["queries"]["by_stage"] = {name: {"asked": 3, "sent": 3, "replayed": 0} for name in HOSTILE}
    record["defenses"]["rows"][1]["defense"] = HOSTILE[0]
    record["defenses"]["failed"] = [{"defense": HOSTILE[1], "error": HOSTILE[5], "message": HOSTILE[2]}]
    record["truth"] |= {"file": HOSTILE[0]}
    return record


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no browser: install the Debian package chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: install the extra dev")
    with playwright.sync_playwright() as p:
        opened = p.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield opened
        opened.close()


@pytest.fixture
def heard() -> Iterator[list[str]]:
    """Requests besides the page itself, and everything said to the console: none of it is wanted."""
    sounds: list[str] = []
    yield sounds
    assert sounds == []


@pytest.fixture
def visit(browser, heard) -> Iterator[Callable[..., Any]]:
    """Open a page without a network."""
    contexts = []

    def open_page(path: Path, **settings: Any) -> Any:
        context = browser.new_context(**{"viewport": DESK, "offline": True, "reduced_motion": "reduce"} | settings)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: heard.append(request.url) if _loads(request.url, path) else None)
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


def _loads(url: str, path: Path) -> bool:
    return url.partition("#")[0] != path.as_uri() and not url.startswith("data:image/png")

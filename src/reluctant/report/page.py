"""Write the page: a jinja2 template with autoescape, filled from a record."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from reluctant.health import Health
from reluctant.optional import require
from reluctant.report.pictures import LineProfile, profile_svg
from reluctant.report.search import search_svg
from reluctant.results import Result
from reluctant.runs import Record

__all__ = ["write_page"]


def write_page(
    path: Path, record: Record, health: Health, profile: LineProfile, repeat: str, extraction: Result | None = None
) -> None:
    """Write what a query interface gives away as one self-contained HTML file.

    Arguments:
        path: where to write.
        record: the run.
        health: its health check.
        profile: answers along a line, for the picture.
        repeat: the command that repeats the run.
        extraction: its result, if one was tried.
    """
    jinja2 = require("jinja2", extra="report", purpose="A report")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(resources.files("reluctant.report").joinpath("page.html").read_text("utf-8"))
    html = template.render(
        record=record.to_dict(),
        health=health,
        picture=profile_svg(profile, extraction.network if extraction else None),
        film=_film(extraction),
        extraction=extraction,
        repeat=repeat,
        verdict=_verdict(health, extraction),
    )
    path.write_text(html, encoding="utf-8")


def _film(extraction: Result | None) -> str | None:
    """The search for creases as it went, if there was one."""
    search = extraction.evidence.get("line search") if extraction else None
    return None if search is None else search_svg(search)


def _verdict(health: Health, extraction: Result | None) -> str:
    if extraction is not None and extraction.ok and extraction.network is not None:
        network = extraction.network
        return (
            f"The whole network can be taken from this interface: {'-'.join(map(str, network.widths))}, "
            f"{network.parameters} parameters, in {extraction.queries} queries."
        )
    if extraction is not None:
        return f"The network was not recovered. {extraction.outcome}"
    if health.refusal is not None:
        return f"Exact methods do not apply to this interface. {health.refusal}"
    digits = health.number_format if health.decimals is None else f"{health.decimals} decimals"
    return (
        f"This interface answers {health.answers} of a {health.shape} function in {digits}, "
        f"{'the same every time' if health.deterministic else 'with fresh noise'}: "
        "what a ReLU network hides can be asked out of it."
    )

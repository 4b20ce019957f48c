"""Report: a record becomes a page that can be opened: one HTML file, no network, light and dark."""

from reluctant.report.audit import audit_page, write_audit_page
from reluctant.report.page import write_page
from reluctant.report.pictures import LineProfile, ask_profile
from reluctant.report.rendering import render
from reluctant.report.search import search_svg
from reluctant.report.summary import three_figures

__all__ = [
    "LineProfile",
    "ask_profile",
    "audit_page",
    "render",
    "search_svg",
    "three_figures",
    "write_audit_page",
    "write_page",
]

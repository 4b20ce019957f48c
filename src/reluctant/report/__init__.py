"""Report: a record becomes a page that can be opened: one HTML file, no network, light and dark."""

from reluctant._verb import callable_as
from reluctant.report.audit import audit_page, is_page_of_a_failure, report, write_audit_page
from reluctant.report.reading import check_audit, read_audit
from reluctant.report.rendering import render
from reluctant.report.search import search_svg
from reluctant.report.summary import three_figures

__all__ = [
    "audit_page",
    "check_audit",
    "is_page_of_a_failure",
    "read_audit",
    "render",
    "report",
    "search_svg",
    "three_figures",
    "write_audit_page",
]

callable_as(__name__, report)

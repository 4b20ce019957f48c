"""Report: a record becomes a page that can be opened: one HTML file, no network, light and dark."""

from reluctant._verb import callable_as
from reluctant.report.film import search_svg
from reluctant.report.overview import three_figures
from reluctant.report.page import (
    audit_page,
    check_audit,
    is_page_of_a_failure,
    read_audit,
    render,
    report,
    write_audit_page,
)

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

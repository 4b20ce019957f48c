"""Report: the page of an audit, one HTML file made from its record alone."""

from reluctant._verb import callable_as
from reluctant.report.film import search_svg
from reluctant.report.overview import three_figures, verdict_sentence
from reluctant.report.page import audit_page, is_page_of_a_failure, render, report

__all__ = [
    "audit_page",
    "is_page_of_a_failure",
    "render",
    "report",
    "search_svg",
    "three_figures",
    "verdict_sentence",
]

callable_as(__name__, report)

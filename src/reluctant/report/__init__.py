"""Report: an audit as one HTML page, JSON, SARIF or JUnit XML, made from its record alone."""

from reluctant._verb import callable_as
from reluctant.report.film import search_svg
from reluctant.report.junit import junit_text
from reluctant.report.overview import three_figures, verdict_sentence
from reluctant.report.page import ReportFormat, audit_page, is_page_of_a_failure, render, report
from reluctant.report.sarif import sarif_log

__all__ = [
    "ReportFormat",
    "audit_page",
    "is_page_of_a_failure",
    "junit_text",
    "render",
    "report",
    "sarif_log",
    "search_svg",
    "three_figures",
    "verdict_sentence",
]

callable_as(__name__, report)

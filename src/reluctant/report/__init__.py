"""Report: a record becomes a page that can be opened: one HTML file, no network, light and dark."""

from reluctant.report.page import write_page
from reluctant.report.pictures import LineProfile, ask_profile
from reluctant.report.search import search_svg

__all__ = ["LineProfile", "ask_profile", "search_svg", "write_page"]

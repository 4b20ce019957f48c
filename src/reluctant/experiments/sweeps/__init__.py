"""One run of a method on a planted network, with the truth beside it: shared by experiments and benchmarks."""

from reluctant.experiments.sweeps.exact import ExactRun, exact_run
from reluctant.experiments.sweeps.learned import Case, LearnRun, learned
from reluctant.experiments.sweeps.paper_bump import PaperRun, paper_run
from reluctant.experiments.sweeps.spans import SpanRun, span_run
from reluctant.experiments.sweeps.timed import Timed

__all__ = [
    "Case",
    "ExactRun",
    "LearnRun",
    "PaperRun",
    "SpanRun",
    "Timed",
    "exact_run",
    "learned",
    "paper_run",
    "span_run",
]

"""The last step: the sweep of defenses on a local copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reluctant.audit.budget import STUDENTS, TIMES
from reluctant.audit.copies import copy_error
from reluctant.audit.defense_result import NO_DEFENSE, DefenseResult, Rebuilt
from reluctant.audit.defense_sweep import StandIn, digits_given, digits_served, format_served, noise_served, sweep
from reluctant.audit.defense_trial import METHODS
from reluctant.audit.findings import Findings, Skip
from reluctant.audit.sweep_facts import StandsFor
from reluctant.defenses import HonestCost, defend
from reluctant.defenses.registry import FEWER_DIGITS, split_last_defenses
from reluctant.domains import Domain
from reluctant.oracles import Counting, NetworkOracle, Oracle, open_oracle
from reluctant.oracles.adapters.dispatch import LINK_FUNCTIONS
from reluctant.oracles.links import AnswerLink, PlainProbabilities
from reluctant.results import Outcome, Result

ONE_HIDDEN = 2  # layers of weights


def try_defenses(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """Every default defense on the recovered network, or on the local file. The target is asked nothing."""
    copy, yardstick, last, on = _copy(known, oracle.facts.domain)
    served = known.served
    try:
        model = StandIn(
            copy, on, known.given.inputs, known.given.sampled, _link(known),
            spread=1.0 if served is None else served.spread, digits=digits_given(served), yardstick=yardstick,
            last=last,
        )  # fmt: skip
        found = sweep(
            model, undefended=None if on is StandsFor.TRAINED else _undefended(known), methods=_methods(known),
            seconds=(TIMES["defenses"] + STUDENTS) * known.given.seconds, rng=seed, watch=known.given.watch,
            engine=known.given.engine,
        )  # fmt: skip
    finally:
        copy.close()
        yardstick.close()
    return {"sweep": found}


def _methods(known: Findings) -> Sequence[str]:
    """What may still succeed: learning with one hidden layer; the span and training where nothing was rebuilt."""
    if known.network is None or known.copy is known.training:
        return "span", "train"
    return METHODS if known.network.depth <= ONE_HIDDEN else tuple(name for name in METHODS if name != "learn")


def _link(known: Findings) -> AnswerLink:
    """What undoes the copy's answers."""
    return "identity" if known.given.output is not None else known.link


def _undefended(known: Findings) -> DefenseResult | None:
    """The audit's own runs: nothing that was found on the target is looked for again.

    None where its rows ran out: other rows of the table have a budget of their own, and would not compare.
    """
    runs = (known.span, known.extraction, known.learning)
    if known.extraction is None or any(run is not None and run.outcome is Outcome.OUT_OF_BUDGET for run in runs):
        return None
    rows = len(known.given.inputs)
    extracted = _as_rebuilt("extract", known.extraction, "extraction" in known.timed_out)
    learned = None if known.learning is None else _as_rebuilt("learn", known.learning, "learning" in known.timed_out)
    cut = not (known.settled("extraction") and known.settled("learning"))
    return DefenseResult(NO_DEFENSE, HonestCost(0.0, 0.0, 1.0, rows), known.span, extracted, learned, cut)


def _as_rebuilt(name: str, run: Result, timed_out: bool) -> Rebuilt:
    found = copy_error(run)
    own = found.own  # as in the rows beside it, whose copies are held against a model without noise
    return Rebuilt(name, run, found.typical if own is None else own, found.largest, undecided=timed_out)


def _copy(known: Findings, domain: Domain) -> tuple[Oracle, Oracle, tuple[str, ...], StandsFor]:
    """What stands for the model, the same without noise, what cuts the digits of both, and what it is called.

    The file only where extraction gave no network.
    """
    extraction, file, network = known.extraction, known.given.file, known.network
    if known.without and known.given.file is not None:
        raise Skip("outputs-left-out")
    if known.given.output is not None and known.linked:
        raise Skip("output-behind-link")
    if network is not None and (file is None or (extraction is not None and extraction.ok)):
        whole = NetworkOracle(network.before_link(known.written_link))
        noisy = defend(whole, *noise_served(known.served))
        on = StandsFor.TRAINED if known.copy is known.training else StandsFor.RECOVERED
        return open_oracle(noisy, domain=domain), open_oracle(whole, domain=domain), digits_served(known.served), on
    if file is None:
        raise Skip("no-local-copy")
    # Of percentages digits are cut before they are divided by 100, and stay where they are.
    before, last = (
        split_last_defenses(known.given.defense, FEWER_DIGITS) if known.written is None else (known.given.defense, ())
    )
    yardstick = _behind(known, _links(before), domain)
    return _behind(known, before, domain), yardstick, last or format_served(known.served), StandsFor.FILE


def _behind(known: Findings, defense: Sequence[str], domain: Domain) -> Oracle:
    """The file behind these defenses."""
    assert known.given.file is not None
    bare: Oracle = open_oracle(known.given.file, precision=known.given.precision, percent=known.given.percent)
    defended = defend(bare, *defense)
    as_read = defended if known.written is None else PlainProbabilities(defended, known.written)
    return open_oracle(as_read, domain=domain, output=known.given.output)


def _links(defense: Sequence[str]) -> list[str]:
    """Of these defenses the ones that make probabilities of values, and take no digits away."""
    return [name for name in defense if name in LINK_FUNCTIONS]

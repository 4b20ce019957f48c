"""Words that several commands end with: what happened, what was spent, how to lose nothing next time."""

from __future__ import annotations

from pathlib import Path

from reluctant.cli.advice import as_command, next_command
from reluctant.cli.next_step import to_try
from reluctant.cli.targets import TargetOptions
from reluctant.health import Health
from reluctant.health.words import TRAIN
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.results import Ended, Outcome, Result
from reluctant.run_record import ANSWERED, Record

__all__ = ["advise", "advise_next", "answered_range", "ending", "shown_network", "spent"]

KEPT_WITH_A_TRANSCRIPT = {Outcome.OUT_OF_BUDGET, Outcome.TARGET_FAILED}


def ending(found: Ended, record: Record) -> list[str]:
    """The outcome, as exactly as its reason is known, the stage and error it ended with, and the range to give."""
    error, where = found.evidence.get("error"), f"Stage {found.stage}: " if found.stage else ""
    ended = [_reason(found), *([f"{where}{error}"] if error else [])]
    return [*ended, *(line for line in answered_range(record) if line not in str(error))]


def _reason(found: Ended) -> str:
    return _more_exact(found) or found.diagnosis.text(as_command)


def _more_exact(found: Ended) -> str:
    health = found.evidence.get("health")
    of_health = health.why(found.outcome) if isinstance(health, Health) else ""
    of_health = "" if of_health == str(found.outcome) else of_health
    return str(of_health or found.evidence.get("reason") or _of_labels(found) or "")


def answered_range(record: Record) -> list[str]:
    """The range to give, where the target failed on larger inputs than it answers."""
    return [str(record.findings[ANSWERED])] if ANSWERED in record.findings else []


def _of_labels(found: Ended) -> str:
    """Why no boundary between labels could be followed; empty where that was not asked."""
    changed = found.evidence.get("changed labels")
    if found.outcome is not Outcome.TOO_NOISY or changed is None:
        return ""
    how = (
        f"{changed} labels changed when they were asked for again" if changed else "Labels flicker near their boundary"
    )
    return f"{how}: it cannot be followed through their noise. {TRAIN}"


def shown_network(found: Result, link: str) -> list[str]:
    """The network as it is written, and what its values are where they could be taken for others; nothing of none."""
    if found.network is None:
        return []
    written = found.as_written(link)
    ratios = "Its values are log-ratios to the first class, whose own is 0: the link makes them the target's answers."
    return [repr(written), *([ratios] if written.link not in ELEMENTWISE_LINKS else [])]


def spent(record: Record, written: Path | None) -> str:
    """How many queries, how many of them were not paid again, and the file that came of it."""
    sent = sum(rows.sent for rows in record.rows.values())
    replayed = f" {record.queries - sent} of them from the transcript." if sent < record.queries else ""
    return f"{record.queries} queries.{replayed}" + (f" Written: {written}" if written else "")


def advise_next(said: str, outcome: Outcome | None, record: Record, target: str, options: TargetOptions) -> None:
    """Say the command to run next, whole, where the reason that was told names one."""
    command = to_try(said, outcome, record, target, options)
    if command is not None:
        options.say(f"To try next: {command}")


def advise(found: Ended, record: Record, target: str, options: TargetOptions) -> None:
    """Say what to run next, and that a run which stopped half-way could have been kept."""
    if not found.ok and not _more_exact(found) and ANSWERED not in record.findings:
        command = next_command(found.diagnosis, record.command, target, options)
        options.say(f"To try next: {command}") if command is not None else None
    elif not found.ok:
        advise_next(_reason(found), found.outcome, record, target, options)
    if not found.ok and options.transcript is None and found.outcome in KEPT_WITH_A_TRANSCRIPT:
        options.say("No transcript was kept; next time give --transcript DIR, so that nothing is paid twice.")

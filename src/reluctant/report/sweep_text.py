"""The section on defenses: the table of defenses (its columns and cells) and the sentence below the leak curve."""

from __future__ import annotations

from collections.abc import Iterable

from reluctant.audit.record import (
    NO_DEFENSE,
    AuditRecord,
    DefenseRow,
    FailedDefense,
    LeakKind,
    RowSpan,
    StandsFor,
    SweepFacts,
    Trial,
)
from reluctant.defenses import DefenseSpec
from reluctant.report.tables import Cell, Column, Table
from reluctant.report.text import UNKNOWN, answers_labels, count, defense_words, duration, percent, size
from reluctant.results import Outcome

EXACT_COPY = 1e-8  # relative error of a copy that has half the digits of float64 or more
NO_METHOD = "no network from labels by these methods"
NOT_TRAINED = "Training a copy on the defended answers was not tried, and may well succeed."
METHODS = {"extract": "extraction", "learn": "learning"}
ON = {
    StandsFor.RECOVERED: "the recovered network",
    StandsFor.FILE: "the model in the file",
}


# ---- the sentence


def sweep_sentence(sweep: SweepFacts) -> str:
    """What follows from the sweep: the cheapest defense that stops a copy, its cost to users, what it leaves."""
    if not sweep.rows:
        return "No defense could be tried."
    if sweep.open is not True:
        settled = "Nothing was rebuilt even without a defense, so none can be said to stop that."
        unsettled = "Whether the network can be rebuilt without a defense is not settled."
        return f"{unsettled if sweep.open is None else settled} {NOT_TRAINED}"
    undecided = _by_ending(row for row in sweep.rows if row.stopped is None)
    open_ = f" Not decided: {undecided}." if undecided else ""
    open_ = f"{_from_labels(sweep)}{_explanations(sweep)}{open_}"
    row = sweep.cheapest_row
    if row is None:
        return f"None of the defenses tried is known to stop exact recovery.{open_} {NOT_TRAINED}"
    others = _by_ending(
        each for each in sweep.rows if each.stopped and each.defense != NO_DEFENSE and each.defense != row.defense
    )
    too = f" Others that stopped it: {others}." if others else ""
    return (
        f"The cheapest defense that stopped exact recovery is {_by_ending([row])}. {_users(row)}.{_span_left(row)}"
        f" {NOT_TRAINED}{too}{open_}"
    )


def owner_actions(record: AuditRecord) -> list[str]:
    """What the owner can do, in order: delay a copy, take digits from it, settle open questions, watch releases."""
    recovered, sweep, verdict = record.recovered, record.defenses, record.verdict
    row = None if sweep is None else sweep.cheapest_row
    actions: list[str] = []
    if recovered is not None:
        actions.append(
            f"Allow a user well below {count(recovered.queries)} queries: the copy took so many. Several accounts "
            "together get past a limit, so count their queries together."
        )
        actions.append("Say in your terms that answers must not train or rebuild a model, and keep a log of queries.")
    if recovered is not None and sweep is not None and row is not None:
        left = _from_labels(sweep) or " A copy trained on such answers was not tried, and may succeed."
        actions.append(
            f"Against exact recovery alone: put {defense_words(row.defense)} before the model. {_users(row)}.{left}"
        )
    if LeakKind.FLIPPABLE in verdict.leaks:
        actions.append("Check inputs before you act on an answer: a small change flips some decisions.")
    if verdict.unsettled:
        actions.append(f"Settle open questions ({', '.join(verdict.unsettled)}): the first screen says what to try.")
    actions.append("Audit the next release too, and compare both records: reluctant compare-audits OLD NEW.")
    return actions


def _from_labels(sweep: SweepFacts) -> str:
    """What the label alone gives, and how long limits of rate would delay that."""
    rows = [row.rebuilt for row in sweep.rows if row.defense == "labels"]
    if not rows or rows[0] is None or not rows[0].ok:
        return ""
    labels = rows[0].queries
    return (
        f" The label alone is no defense: {count(labels)} labels gave the whole decision boundary, which "
        f"{rate_delays(labels)}."
    )


def rate_delays(queries: int) -> str:
    """What limits of rate would mean for so many queries, in time."""
    slow, fast = (duration(queries / rate) for rate in (1.0, 100.0))
    return f"would take {slow} at one a second, {fast} at a hundred"


def _explanations(sweep: SweepFacts) -> str:
    """What gradients save, and which defenses of them take that away; empty where the target answers none."""
    if sweep.explanations is None:
        return ""
    of_gradients = [row for row in sweep.rows if DefenseSpec.read(row.defense).of_gradients]
    stopping, idle = ([row for row in of_gradients if sweep.takes_saving(row) is stops] for stops in (True, False))
    named = [
        f" The difference {verb} with {', '.join(defense_words(row.defense) for row in rows)}."
        for rows, verb in ((stopping, "is gone"), (idle, "stays"))
        if rows
    ]
    with_them, without = map(count, sweep.explanations)
    return (
        f" With explanations a copy takes {with_them} queries, without them {without}.{''.join(named)} No defense of"
        " gradients stops a copy from values."
    )


def _by_ending(rows: Iterable[DefenseRow]) -> str:
    """Defenses, grouped by how their trials ended."""
    alike: dict[str, list[str]] = {}
    for row in rows:
        ending = ", ".join([*map(_ending, row.tried), *(["not all was tried to its end"] if row.cut else [])])
        alike.setdefault(NO_METHOD if row.no_method else ending or "not tried", []).append(defense_words(row.defense))
    return "; ".join(f"{', '.join(names)} ({ending})" for ending, names in alike.items())


def _ending(trial: Trial) -> str:
    ended = "time over" if trial.undecided else trial.outcome.replace("-", " ")
    vain = " (few digits tried in vain)" if trial.in_vain and not trial.undecided else ""
    return f"{METHODS.get(trial.method, trial.method)}: {ended}{vain}"


def _users(row: DefenseRow) -> str:
    error, kept = row.honest.rms_error, percent(row.honest.labels_kept)
    if error is None:
        return f"Honest users get other answers than before, and keep {kept} of labels"
    if error == 0:
        return "Honest users lose no digit"
    return f"Honest users see an error of {size(error)} of the answers' deviation, and keep {kept} of labels"


def _span_left(row: DefenseRow) -> str:
    """What it leaves of the span, where that is less than all directions."""
    span = row.span
    if span is None or not span.ok or span.rank >= span.inputs:
        return ""
    shown = "its labels show" if span.from_labels else "it leaves"
    return f" Of the span {shown} {count(span.rank)} of {count(span.inputs)} directions."


def one_label(record: AuditRecord) -> str:
    """What the label of one output is; empty where there are several, or labels."""
    target = record.target
    if target.outputs != 1 or answers_labels(record):
        return ""
    linked = target.link == "sigmoid" or target.kind == "probabilities"
    return f"The label of one output: whether it is {'above one half' if linked else 'positive'}."


def failure_words(failed: FailedDefense) -> str:
    """A defense that could not be tried, and why."""
    return f"{defense_words(failed.defense)} ({failed.error}: {failed.message})"


# ---- the table

COLUMNS = (
    Column("defense"),
    Column("users' error", numeric=True),
    Column("labels kept", numeric=True),
    Column("directions", numeric=True),
    Column("copy"),
    Column("copy's error", numeric=True),
    Column("queries", numeric=True),
)
NONE = Cell(UNKNOWN, "")


def defense_table(sweep: SweepFacts) -> Table:
    """A row for each defense: the loss of honest users, and what an attacker still gets."""
    allowed = f" with up to {count(sweep.budget)} rows for each method" if sweep.budget else ""
    caption = f"Each defense tried on {ON[sweep.on]}{allowed}; the model itself was not asked"
    return Table(caption, COLUMNS, [_cells(row) for row in sweep.rows])


def _cells(row: DefenseRow) -> list[Cell]:
    honest, rebuilt = row.honest, row.rebuilt
    error, kept = honest.rms_error, honest.labels_kept
    return [
        Cell(defense_words(row.defense)),
        Cell("other answers", "") if error is None else Cell(size(error), error),
        NONE if kept is None else Cell(percent(kept), kept),
        _span(row.span),
        _copy(row),
        NONE if rebuilt is None or rebuilt.error is None else Cell(size(rebuilt.error), rebuilt.error),
        NONE if rebuilt is None else Cell(count(rebuilt.queries), rebuilt.queries),
    ]


def _span(span: RowSpan | None) -> Cell:
    if span is None:
        return NONE
    return Cell(count(span.rank), span.rank) if span.ok else Cell("not clear", -1)


def _copy(row: DefenseRow) -> Cell:
    rebuilt, labels = row.rebuilt, "labels" in row.kinds
    if labels and (rebuilt is None or rebuilt.outcome == Outcome.PIECEWISE_CONSTANT.slug):
        return Cell(NO_METHOD, "6", "calm")
    if rebuilt is None:
        return Cell("not tried", "6", "calm")
    if row.is_open:
        return Cell("not decided", "5", "calm")
    if rebuilt.ok and labels:
        return Cell("its boundary, to the last digits", "1", "bad")
    if rebuilt.ok:
        error = rebuilt.error
        if error is not None and not rebuilt.is_close:
            return Cell("rough", "3", "warn")
        if rebuilt.method != "extract":
            return Cell("close", "2", "bad")
        exact = error is not None and error <= EXACT_COPY
        return Cell("exact", "0", "bad") if exact else Cell("every digit given", "1", "bad")
    return Cell("close, not verified", "3", "warn") if rebuilt.is_close else Cell("none by these methods", "4", "calm")

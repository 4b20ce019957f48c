"""The section on defenses: the table of defenses (its columns and cells) and the sentence below the leak curve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reluctant.audit.record import (
    AuditRecord,
    DefenseRow,
    FailedDefense,
    RowSpan,
    StandsFor,
    Student,
    SweepFacts,
    Trial,
)
from reluctant.defenses.registry import defense_words
from reluctant.report.numbers import UNKNOWN, count, percent, size, size_beside
from reluctant.report.tables import Cell, Column, Table
from reluctant.report.text import answers_labels, several
from reluctant.results import UNSETTLED, Outcome

CLOSE = 0.01  # of the answers' deviation, root mean square: a copy this good counts as one, verified or not
EXACT_COPY = 1e-8  # relative error of a copy that has half the digits of float64 or more
MOST_NAMED = 2  # in a sentence, of defenses that leave different copies
NO_METHOD = "no exact method here takes labels"
NOT_TRAINED = "Training a copy on the answers was not tried, and may well succeed."
METHODS = {"extract": "extraction", "learn": "learning", "train": "training"}
ON = {
    StandsFor.RECOVERED: "the recovered network",
    StandsFor.TRAINED: "the trained network",
    StandsFor.FILE: "the model in the file",
}


def is_close(trial: Trial | Student | None) -> bool:
    """True if a copy was measured to be close, verified or not."""
    return trial is not None and trial.error is not None and trial.error <= CLOSE


def is_open(row: DefenseRow) -> bool:
    """True if a copy was tried and not made, and that says nothing: the methods did not come to their end."""
    rebuilt = row.rebuilt
    return rebuilt is not None and row.stopped is None and not (rebuilt.ok or is_close(rebuilt))


# ---- the sentence


def sweep_sentence(sweep: SweepFacts) -> str:
    """What follows from the sweep."""
    if not sweep.rows:
        return "No defense could be tried."
    if sweep.open is not True:
        return _nothing_to_stop(sweep)
    undecided = _by_ending(row for row in sweep.rows if row.stopped is None)
    open_ = f" Not decided: {undecided}." if undecided else ""
    row = next((row for row in sweep.rows if row.defense == sweep.cheapest), None)
    if row is None:
        return f"None of the defenses tried is known to stop exact recovery.{open_} {_training(sweep, None)}"
    others = _by_ending(
        each for each in sweep.rows if each.stopped and each.defense != "none" and each.defense != row.defense
    )
    too = f" Others that stopped it: {others}." if others else ""
    ending = NO_METHOD if row.no_method else "; ".join(_ending_in_full(each) for each in row.tried)
    return (
        f"The cheapest defense that stopped exact recovery is {defense_words(row.defense)} ({ending}). {_users(row)}."
        f"{_span_left(row)} {_training(sweep, row)}{too}{open_}"
    )


def _nothing_to_stop(sweep: SweepFacts) -> str:
    """Without a copy no defense can be seen to stop one."""
    if sweep.on is StandsFor.TRAINED:
        first = (
            "The audit tried on the trained network what each defense leaves of the span, and of another network "
            "trained on the answers. What stops exact recovery cannot be seen there."
        )
        return f"{first} {_training(sweep, None)}"
    first = "Nothing was rebuilt even without a defense"
    if sweep.open is None:
        first = "Whether the network can be rebuilt without a defense is not settled"
    defended = [row for row in sweep.rows if row.defense != "none"]
    if any(row.tried for row in defended):
        return f"{first}, so no defense can be said to stop that. {_training(sweep, None)}"
    also = ", and of a network trained on the answers," if any(row.trained for row in defended) else ""
    return f"{first}. Only what each leaves of the span{also} was tried. {_training(sweep, None)}"


def _by_ending(rows: Iterable[DefenseRow]) -> str:
    """Defenses, those that ended alike together."""
    alike: dict[str, list[str]] = {}
    for row in rows:
        alike.setdefault(_row_ending(row), []).append(defense_words(row.defense))
    return "; ".join(f"{', '.join(names)} ({ending})" for ending, names in alike.items())


def _row_ending(row: DefenseRow) -> str:
    if row.no_method:
        return NO_METHOD
    return ", ".join([*map(_ending, row.tried), *(["not all was tried to its end"] if row.cut else [])]) or "not tried"


def _ending(trial: Trial) -> str:
    ended = "time over" if trial.undecided else trial.outcome.replace("-", " ")
    vain = " (few digits tried in vain)" if trial.in_vain and not trial.undecided else ""
    return f"{METHODS.get(trial.method, trial.method)}: {ended}{vain}"


def _ending_in_full(trial: Trial) -> str:
    after = "refused after a look at" if trial.refused else "after"
    return f"{_ending(trial)}, {after} {several(trial.queries, 'answer')}"


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
    directions = f"{count(span.rank)} of {count(span.inputs)} directions"
    if span.from_labels and "labels" not in row.defense:
        return f" It leaves what labels show of the span: {directions}. Values may show more."
    return f" It leaves the span: {directions} are all that count."


def _training(sweep: SweepFacts, cheapest: DefenseRow | None) -> str:
    """What training reaches behind the cheapest defense, and behind all of them."""
    behind = [
        (defense_words(row.defense), row.trained)
        for row in sweep.rows
        if row.defense != "none" and row.trained is not None
    ]
    if not behind:
        return NOT_TRAINED
    first = "" if cheapest is None or cheapest.trained is None else f"{_despite(cheapest.trained, sweep)} "
    far = [(name, _student_words(student, sweep)) for name, student in behind if not is_close(student)]
    close = f"{len(behind) - len(far)} of {len(behind)} defenses" if len(far) < len(behind) else "none of the defenses"
    alike = {text: ", ".join(name for name, other in far if other == text) for _, text in far}
    named = "".join(f" Behind {names} it {text}." for text, names in list(alike.items())[:MOST_NAMED])
    rest = " The table has the others." if len(alike) > MOST_NAMED else ""
    alone = next((f" ({text.capitalize()}.)" for _, student in behind if (text := _alone(student))), "")
    return f"{first}A trained copy is within {CLOSE:.0%} of {_model(sweep)} behind {close}.{named}{rest}{alone}"


def _model(sweep: SweepFacts) -> str:
    return ON[StandsFor.TRAINED] if sweep.on is StandsFor.TRAINED else "the model"


def _despite(student: Student, sweep: SweepFacts) -> str:
    stops = "That does not stop training" if is_close(student) else "It leaves this to training"
    return f"{stops}: a network trained on {count(student.queries)} of its answers {_student_words(student, sweep)}."


def _student_words(student: Student, sweep: SweepFacts | None = None) -> str:
    """How far off it is, how often it gives the same label, and whether it might have done better."""
    error, labels, drawn = student.error, student.labels_kept, student.held_out_labels
    if error is None and labels is None:
        open_ = student.outcome in UNSETTLED
        return "was not made: rows or time ran out" if open_ else f"was not made ({student.outcome})"
    model = "the model" if sweep is None else _model(sweep)
    given = sweep is not None and not sweep.inputs.sampled
    off = "" if error is None else f"is within {size_beside(error, CLOSE)} of {model}"
    beside = f" ({percent(drawn)} of random ones)" if given and error is None and drawn is not None else ""
    same = "" if labels is None else f"gives the same label for {percent(labels)} of the inputs{beside}"
    cut = "; its training was cut short" if student.cut_short else ""
    reused = ", as without the defense, whose answers hardly differ" if student.as_undefended else ""
    return f"{' and '.join(part for part in (off, same) if part)}{reused}{cut}"


def _alone(student: Student) -> str:
    """To read beside equal labels: the share of the commonest one; empty without labels."""
    hidden = student.commonest is None or student.labels_kept is None
    return "" if hidden else f"one label alone: {percent(student.commonest)}"


def trained_note(row: DefenseRow) -> str:
    """What training on the defended answers reaches, in a few words; empty where it was not tried."""
    student = row.trained
    if student is None or (student.error is None and student.labels_kept is None):
        return ""
    alone = _alone(student)
    return f"a network trained on its answers {_student_words(student)}{f' ({alone})' if alone else ''}"


def label_alone(sweep: SweepFacts | None) -> str:
    """To read beside the labels of all trained networks: that of one label alone, once for all rows."""
    rows: Sequence[DefenseRow] = () if sweep is None else sweep.rows
    return next((text for row in rows if row.trained is not None and (text := _alone(row.trained))), "")


def stand_in(record: AuditRecord) -> str:
    """Against what errors are measured where a trained network stands for the model."""
    if record.defenses is None or record.defenses.on is not StandsFor.TRAINED:
        return ""
    off = None if record.recovered is None else record.recovered.error.typical
    own = "" if off is None else f" That network is itself off by {size(off)} of the answers' deviation."
    return (
        "The network trained on the answers stands for the model here: errors and labels are those of copies beside "
        f"it, not beside the model.{own}"
    )


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
    Column("trained copy's error", numeric=True),
    Column("its labels", numeric=True),
)
NONE = Cell(UNKNOWN, "")


def defense_table(sweep: SweepFacts) -> Table:
    """A row for each defense: what honest users lose, what one who asks still gets."""
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
        *_trained(row.trained),
    ]


def _span(span: RowSpan | None) -> Cell:
    if span is None:
        return NONE
    return Cell(count(span.rank), span.rank) if span.ok else Cell("not clear", -1)


def _copy(row: DefenseRow) -> Cell:
    rebuilt = row.rebuilt
    if "labels" in row.defense and (rebuilt is None or rebuilt.outcome == Outcome.PIECEWISE_CONSTANT.slug):
        return Cell(NO_METHOD, "6", "calm")
    if rebuilt is None:
        return Cell("not tried", "6", "calm")
    if is_open(row):
        return Cell("not decided", "5", "calm")
    if rebuilt.ok:
        return _verified(rebuilt)
    return Cell("close, not verified", "3", "warn") if is_close(rebuilt) else Cell("none by these methods", "4", "calm")


def _verified(rebuilt: Trial) -> Cell:
    """Exact; else to all the digits that answers give, which an owner calls exact too; else close, or not even that."""
    error = rebuilt.error
    if error is not None and not is_close(rebuilt):
        return Cell("rough", "3", "warn")
    if rebuilt.method != "extract":
        return Cell("close", "2", "bad")
    exact = error is not None and error <= EXACT_COPY
    return Cell("exact", "0", "bad") if exact else Cell("every digit given", "1", "bad")


def _trained(student: Student | None) -> list[Cell]:
    """Error and equal labels of a network trained on the answers, and how far the training went."""
    if student is None:
        return [NONE, NONE]
    error, labels, tone = student.error, student.labels_kept, "bad" if is_close(student) else ""
    note = f"{', as without it' if student.as_undefended else ''}{', cut short' if student.cut_short else ''}"
    return [
        NONE if error is None else Cell(size(error), error, tone),
        NONE if labels is None else Cell(percent(labels) + note, labels, tone),
    ]

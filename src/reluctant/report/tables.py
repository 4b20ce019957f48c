"""Tables of a page: captions, columns, cells with their sort keys, and the parts of a record as rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reluctant.audit.closeness import is_close as is_near
from reluctant.audit.leak import NO_METHOD
from reluctant.audit.states import State, state_of
from reluctant.audit.sweep import TRAINED
from reluctant.audit.trained import alone_words, is_made, trained_words
from reluctant.defenses.registry import defense_words
from reluctant.interface.digits import rounded_to
from reluctant.report.numbers import UNKNOWN, count, duration, money, percent, powers, size
from reluctant.report.text import answers_labels, shape_words
from reluctant.results import Outcome

__all__ = [
    "Cell",
    "Column",
    "Table",
    "defense_table",
    "interface_facts",
    "is_close",
    "is_measured",
    "is_open",
    "is_trained",
    "label_alone",
    "name_table",
    "one_label",
    "query_table",
    "recovered_facts",
    "stand_in",
    "step_table",
    "trained_note",
    "truth_facts",
]


@dataclass(frozen=True)
class Cell:
    """Text, the number or word it is sorted by if that is another one, and a tone: good, bad, warn, calm."""

    text: str
    key: Any = None
    tone: str = ""

    @property
    def sort_key(self) -> Any:
        """What a browser sorts by."""
        return self.text if self.key is None else self.key


@dataclass(frozen=True)
class Column:
    """A heading; numbers stand to the right, sentences get room."""

    name: str
    numeric: bool = False
    prose: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns. Plain strings are cells too. The first cell names its row."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | str]]

    def cells(self) -> list[list[Cell]]:
        """All cells, strings included, as cells."""
        return [[cell if isinstance(cell, Cell) else Cell(str(cell)) for cell in row] for row in self.rows]


Data = Mapping[str, Any]
Facts = list[tuple[str, str]]

TRAINED_METHOD = "training on the answers"
MEASURED_METHODS = ("learning", TRAINED_METHOD)  # methods whose networks are never verified
TONES = {
    State.DONE: "good",
    State.SKIPPED: "calm",
    State.FAILED: "bad",
    State.STOPPED: "warn",
    State.NOT_BEGUN: "calm",
}


def recovered_facts(record: Data) -> Facts:
    """What was recovered, how exactly, and what it cost."""
    recovered = record["recovered"]
    error = recovered.get("error") or {}
    rows = [
        ("Method", recovered.get("method")),
        ("Verified", _verified(recovered)),
        ("Parameters", _parameters(recovered)),
        ("Answers through", None if recovered.get("link", "identity") == "identity" else recovered["link"]),
        ("Largest error seen", _largest_error(error)),
        ("Typical error (root mean square)", _error(error.get("typical"), error.get("inside"))),
        ("Its own error, without the noise of the answers", _own_error(error)),
        ("In words", _first_capital(error.get("words"))),
        ("Queries", _queries_per_parameter(recovered)),
        ("Cost", _price_paid(recovered, record.get("price"))),
        ("Time", _seconds(recovered)),
        ("What an attack would cost", _expected_cost(record.get("expected"), record.get("price"))),
    ]
    return [(name, str(value)) for name, value in rows if value is not None]


def _verified(recovered: Data) -> str:
    if recovered["verified"]:
        return "yes"
    return "no: measured" if is_measured(recovered) else "no: measured to be close"


def is_measured(recovered: Data) -> bool:
    """True of a network that was learned or trained: its error is measured, and no more is asked of it."""
    return recovered.get("method") in MEASURED_METHODS


def is_trained(recovered: Data) -> bool:
    """True of a network that was trained: its parameters are its own."""
    return recovered.get("method") == TRAINED_METHOD


def _parameters(recovered: Data) -> str:
    if is_trained(recovered):
        return f"{count(recovered['parameters'])} of its own: none of the model's was copied"
    linear = ", with those of a linear part from input to output" if recovered.get("linear part") else ""
    return count(recovered["parameters"]) + linear


def _first_capital(text: str | None) -> str | None:
    return powers(text[:1].upper() + text[1:]) if text else None


def _largest_error(error: Data) -> str | None:
    said, inputs = _error(error.get("largest"), error.get("inside")), error.get("inputs")
    return f"{said}, at {count(inputs)} inputs" if said and inputs else said


def _error(value: Any, inside: str | None = None) -> str | None:
    where = f" in {inside}" if inside else ""
    return None if value is None else f"{size(value)} of the output's standard deviation{where}"


def _own_error(error: Data) -> str | None:
    said = _error(error.get("own"), error.get("inside"))
    return said and f"at most {said}, root mean square, with 95% confidence"


def _queries_per_parameter(recovered: Data) -> str:
    rates = (("queries", recovered.get("queries per parameter")), ("answers", recovered.get("answers per parameter")))
    known = [f"{size(rate)} {name}" for name, rate in rates if rate is not None and not is_trained(recovered)]
    return count(recovered["queries"]) + (f"; {' or '.join(known)} for each parameter" if known else "")


def _seconds(recovered: Data) -> str | None:
    """For the queries that it took."""
    seconds = recovered.get("seconds")
    return None if seconds is None else f"{duration(seconds)} for these queries, at the rate given"


def _price_paid(recovered: Data, price: Data | None) -> str | None:
    if not price or recovered.get("cost") is None:
        return None
    currency = str(price.get("currency") or "")
    return f"{money(recovered['cost'], currency)} at {money(price['per thousand'], currency)} for a thousand queries"


def _expected_cost(expected: Data | None, price: Data | None) -> str | None:
    """What such a shape is expected to take, by the cost model; None in a record that does not say."""
    if not expected:
        return None
    if not expected.get("queries"):
        return expected.get("reason") or None
    currency = str((price or {}).get("currency") or "")
    figures = [f"{_between(expected['queries'], count)} queries for {expected['shape']}"]
    figures += [_between(expected["cost"], lambda value: money(value, currency))] if expected.get("cost") else []
    figures += [f"{_between(expected['seconds'], duration)} at the rate given"] if expected.get("seconds") else []
    return f"{'; '.join(figures)}. {expected['trust']}"


def _between(value: Data, written: Callable[[float], str]) -> str:
    return f"{written(value['expected'])} ({written(value['low'])} to {written(value['high'])})"


def truth_facts(truth: Data) -> Facts:
    """The comparison with the file itself."""
    rows = [
        ("File", truth.get("file")),
        ("True network", _true_shape(truth)),
        ("Neurons found", _neurons_found(truth)),
        ("Largest error of an output", _error(truth.get("largest error"))),
        ("Largest error of a weight", _weight_error(truth.get("largest weight error"))),
    ]
    return [(name, str(value)) for name, value in rows if value is not None]


def _true_shape(truth: Data) -> str | None:
    widths = truth.get("widths")
    return f"{'-'.join(map(str, widths))}, {count(truth.get('parameters'))} parameters" if widths else None


def _neurons_found(truth: Data) -> str | None:
    found, whole, which = truth.get("neurons found"), truth.get("neurons"), truth.get("neurons of")
    if found is None:
        return None
    return count(found) + (f" of {count(whole)}" if whole is not None else "") + (f", {which}" if which else "")


def _weight_error(value: Any) -> str | None:
    return None if value is None else f"{size(value)}, after neurons are put in the same order and scale"


def query_table(record: Data) -> Table:
    """Rows by stage."""
    columns = (Column("stage"), *(Column(name, numeric=True) for name in ("asked", "sent", "replayed")))
    by_stage = record["queries"]["by stage"]
    rows = [
        [stage, *(Cell(count(rows[name]), rows[name]) for name in ("asked", "sent", "replayed"))]
        for stage, rows in by_stage.items()
    ]
    return Table(_spent(record), columns, rows)


def _spent(record: Data) -> str:
    budget, price = record.get("budget"), record.get("price") or {}
    allowed = f", of a budget of {count(budget)}" if budget else ""
    paid = f", for {money(price['cost'], price.get('currency') or '')}" if price.get("cost") is not None else ""
    return f"{count(record['queries']['total'])} queries reached the target{allowed}{paid}"


def step_table(record: Data) -> Table:
    """Steps with their state and reason."""
    columns = (
        Column("step"),
        Column("state"),
        Column("why", prose=True),
        Column("queries", True),
        Column("time", True),
    )
    steps = record["steps"]
    if steps and steps[0]["step"] == "open" and state_of(steps[0]) is State.FAILED:
        skipped = Cell(State.SKIPPED, tone=TONES[State.SKIPPED])
        rest: list[Cell | str] = [f"{len(steps) - 1} others", skipped, "The target is not open.", "", ""]
        return Table("What the audit did, in order", columns, [_step_row(steps[0]), rest])
    return Table("What the audit did, in order", columns, [_step_row(step) for step in steps])


def _step_row(step: Data) -> list[Cell | str]:
    queries, seconds, state = step.get("queries"), step.get("seconds"), state_of(step)
    return [
        step["step"],
        Cell(state, tone=TONES[state]),
        step.get("why") or "",
        Cell(
            _rows_of(queries, None if state is State.SKIPPED else step.get("allowed")),
            "" if queries is None else queries,
        ),
        Cell(duration(seconds), "" if seconds is None else seconds),
    ]


def _rows_of(queries: Any, allowed: Any) -> str:
    """Rows that a step asked, of those it might have asked."""
    return count(queries) + (f" of {count(allowed)}" if allowed is not None else "")


def name_table(record: Data) -> Table:
    """The findings under the names that readers know."""
    columns = (Column("id"), Column("name"), Column("source"), Column("finding", prose=True))
    rows = [[name["id"], name["name"], name["source"], name.get("finding") or ""] for name in record["names"]]
    return Table("The same findings in the catalogues of MITRE, NIST and OWASP", columns, rows)


ANSWERS_BEHIND = {"log-softmax": "log-probabilities", "tanh": "values of a tanh"}  # behind other links probabilities


def interface_facts(record: Data) -> Facts:
    """What the target says of itself, and what the health check saw."""
    target, health, served = record["target"], record.get("health"), record.get("served")
    rows = [
        ("Inputs", _if_known(target.get("inputs"), count)),
        ("Outputs", _if_known(target.get("outputs"), count)),
        ("Answers", _answers_seen(record)),
        ("Number format", _number_format(record)),
        ("Read through", _link_of(target)),
        ("Domain", None if target.get("answers only in") else target.get("domain")),
        ("Answers only in", _range_found(target.get("answers only in"))),
        ("Identity", target.get("identity")),
    ]
    linked, labels = _link_of(target) is not None, answers_labels(record)
    rows += _of_answers(_seen_by_health(served, labels, None)) if served and linked else []
    seen = _seen_by_health(health, labels, shape_words(record, health)) if health else []
    rows += _of_values(seen) if linked else seen
    return [(name, str(value)) for name, value in rows if value]


def _number_format(record: Data) -> str | None:
    """As the target says; a function says nothing, and labels have none."""
    target = record["target"]
    return None if answers_labels(record) or not target.get("identity") else target.get("number format")


def _answers_seen(record: Data) -> str | None:
    """What they are: as the audit saw them, where the target says nothing better."""
    target, health = record["target"], record.get("health") or {}
    kind, link = target.get("kind"), _link_of(target)
    if target.get("look like"):
        return f"{target['look like']}, as the audit saw"
    if answers_labels(record):
        seen = "labels"
    elif link is not None or health.get("answers") == "probabilities":
        seen = ANSWERS_BEHIND.get(str(target.get("link")), "probabilities")
    elif target.get("may be sigmoids"):
        return f"{kind} between 0 and 1, which may be probabilities"
    else:
        return kind
    told = link is not None and not target.get("link found")
    return seen if seen == kind else f"{seen}, as the audit {'was told' if told else 'saw'}"


def _link_of(target: Data) -> str | None:
    link = target.get("link")
    if not link or link == "identity":
        return None
    return f"{link}, found by the audit" if target.get("link found") else str(link)


def _range_found(place: str | None) -> str | None:
    return f"{place}, found by the audit; it may be somewhat wider" if place else None


def _if_known(value: Any, words: Any) -> str | None:
    return None if value is None else words(value)


def _seen_by_health(health: Data, labels: bool, shape: str | None) -> list[tuple[str, str | None]]:
    """What the check saw."""
    fresh, far = size(health.get("fresh_noise")), health.get("largest_scale")
    missing, largest = health.get("nonfinite"), None if far is None else f"size {size(far, 1)}"
    return [
        ("Shape at small scale", shape),
        ("The same every time", "yes" if health.get("deterministic") else f"no: fresh noise of {fresh}"),
        *([] if labels else _digits_and_noise(health)),
        ("Rows without a number", count(missing) if missing else None),
        ("Largest inputs answered", largest),
    ]


# Behind a link some is told of the answers, some of the values that were read from them, under names of their own.
OF_VALUES = {
    "Shape at small scale": "Shape of the values read, at small scale",
    "Spread of the answers": "Spread of the values read",
    "Rows without a number": "Rows whose answers tell no value",
    "Largest inputs answered": "Largest inputs that tell values",
}


def _of_answers(told: Sequence[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """All but their shape: their curves are those of their link."""
    return [(name, value) for name, value in told if name != "Shape at small scale"]


def _of_values(told: Sequence[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    return [(OF_VALUES[name], value) for name, value in told if name in OF_VALUES]


def _digits_and_noise(health: Data) -> list[tuple[str, str | None]]:
    """Digits, noise and spread, which labels do not have."""
    noise, constant = health.get("noise") or {}, health.get("constant_beyond")
    return [
        ("Digits seen", f"{health.get('number_format')}, {_rounding(health.get('decimals'))}"),
        ("Noise", f"{size(noise.get('absolute'))} absolute, {size(noise.get('relative'))} relative"),
        ("Spread of the answers", size(health.get("spread"))),
        ("No change beyond", None if constant is None else f"size {size(constant, 1)}"),
    ]


def _rounding(decimals: Any) -> str:
    return "not rounded" if decimals is None else rounded_to(decimals)


DEFENSE_COLUMNS = (
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
EXACT_COPY = 1e-8  # relative error of a copy that has half the digits of float64 or more


def defense_table(defenses: Data) -> Table:
    """A row for each defense: what honest users lose, what one who asks still gets."""
    budget = defenses.get("budget")
    allowed = f" with up to {count(budget)} rows for each method" if budget else ""
    caption = f"Each defense tried on {defenses['on']}{allowed}; the model itself was not asked"
    return Table(caption, DEFENSE_COLUMNS, [_defense_row(row) for row in defenses["rows"]])


def stand_in(record: Data) -> str:
    """What errors are told of where a trained network stands for the model, whose own error is not among them."""
    if (record.get("defenses") or {}).get("on") != TRAINED:
        return ""
    off = ((record.get("recovered") or {}).get("error") or {}).get("typical")
    own = "" if off is None else f", from which that network is off by {size(off)} of the answers' deviation itself"
    held = "errors and labels are those of copies held against it, and not against the model"
    return f"The network that was trained on the answers stands for the model here: {held}{own}."


def one_label(record: Data) -> str:
    """What the label of one output is; empty where there are several, or labels."""
    target = record["target"]
    if target.get("outputs") != 1 or answers_labels(record):
        return ""
    linked = target.get("link") == "sigmoid" or target.get("kind") == "probabilities"
    return f"The label of one output: whether it is {'above one half' if linked else 'positive'}."


def _defense_row(row: Data) -> list[Cell]:
    honest, span, rebuilt = (row.get(part) or {} for part in ("honest", "span", "rebuilt"))
    return [
        Cell(defense_words(row["defense"])),
        _users_error(honest.get("error rms")),
        _number_cell(honest.get("labels kept"), percent),
        _span_cell(span),
        _copy_cell(row),
        _number_cell(rebuilt.get("error"), size),
        _number_cell(rebuilt.get("queries"), count),
        *_trained_cells(row.get("trained") or {}),
    ]


def _users_error(error: float | None) -> Cell:
    """Errors are told between answers of the same kind; a label or a probability is another answer than a value."""
    return Cell("other answers", "") if error is None else Cell(size(error), error)


def _trained_cells(trained: Data) -> list[Cell]:
    """Error and equal labels of a network trained on the answers."""
    error, labels = trained.get("error"), trained.get("labels kept")
    tone = "bad" if is_close(trained) else ""
    return [
        Cell(UNKNOWN, "") if error is None else Cell(size(error), error, tone),
        Cell(UNKNOWN, "") if labels is None else Cell(percent(labels) + _training_note(trained), labels, tone),
    ]


def _training_note(trained: Data) -> str:
    """How far the training went."""
    cut = ", cut short" if trained.get("cut short") else ""
    return f"{', as without it' if trained.get('as undefended') else ''}{cut}"


def label_alone(defenses: Data | None) -> str:
    """What to read beside the labels of all trained networks: that of one label alone, once for all rows."""
    students = (row.get("trained") or {} for row in (defenses or {}).get("rows", ()))
    return next((words for student in students if (words := alone_words(student))), "")


def trained_note(row: Data) -> str:
    """What training on the defended answers reaches, in a few words; empty where it was not tried."""
    student = row.get("trained") or {}
    if not is_made(student):
        return ""
    alone = alone_words(student)
    return f"a network trained on its answers {powers(trained_words(student))}{f' ({alone})' if alone else ''}"


def _number_cell(value: Any, words: Any) -> Cell:
    return Cell(UNKNOWN, "") if value is None else Cell(words(value), value)


def _span_cell(span: Data) -> Cell:
    if not span:
        return Cell(UNKNOWN, "")
    return Cell(count(span["rank"]), span["rank"]) if span["ok"] else Cell("not clear", -1)


def is_close(rebuilt: Data) -> bool:
    """True if a copy was measured to be close, verified or not."""
    return is_near(rebuilt.get("error"))


def is_open(row: Data) -> bool:
    """True if a copy was tried and not made, and that says nothing: what was tried did not come to its end."""
    rebuilt = row["rebuilt"]
    return bool(rebuilt) and row["stopped"] is None and not (rebuilt["ok"] or is_close(rebuilt))


def _copy_cell(row: Data) -> Cell:
    rebuilt = row["rebuilt"]
    if "labels" in row["defense"] and (not rebuilt or rebuilt["outcome"] == Outcome.PIECEWISE_CONSTANT.slug):
        return Cell(NO_METHOD, "6", "calm")
    if not rebuilt:
        return Cell("not tried", "6", "calm")
    if is_open(row):
        return Cell("not decided", "5", "calm")
    if rebuilt["ok"]:
        return _verified_copy_cell(rebuilt)
    if is_close(rebuilt):
        return Cell("close, not verified", "3", "warn")
    return Cell("none by these methods", "4", "calm")


def _verified_copy_cell(rebuilt: Data) -> Cell:
    """Exact; else to all the digits that answers give, which an owner calls exact too; else close, or not even that."""
    error = rebuilt.get("error")
    if error is not None and not is_near(error):
        return Cell("rough", "3", "warn")
    if rebuilt["method"] != "extract":
        return Cell("close", "2", "bad")
    return (
        Cell("exact", "0", "bad")
        if error is not None and error <= EXACT_COPY
        else Cell("every digit given", "1", "bad")
    )

"""Parts of a record as the rows and tables that a page shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reluctant.audit.states import State, state_of
from reluctant.report.tables import Cell, Column, Table
from reluctant.report.words import count, duration, money, powers, size

__all__ = [
    "is_measured",
    "is_trained",
    "name_table",
    "query_table",
    "recovered_facts",
    "step_table",
    "truth_facts",
]

Data = Mapping[str, Any]
Facts = list[tuple[str, str]]

TRAINED = "training on the answers"
MEASURED = ("learning", TRAINED)  # methods whose networks are never verified
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
        ("Largest error seen", _seen(error)),
        ("Typical error (root mean square)", _error(error.get("typical"), error.get("inside"))),
        ("Its own error, without the noise of the answers", _own(error)),
        ("In words", _first_capital(error.get("words"))),
        ("Queries", _queries(recovered)),
        ("Cost", _cost(recovered, record.get("price"))),
        ("Time", _time(recovered)),
        ("What an attack would cost", _expected(record.get("expected"), record.get("price"))),
    ]
    return [(name, str(value)) for name, value in rows if value is not None]


def _verified(recovered: Data) -> str:
    if recovered["verified"]:
        return "yes"
    return "no: measured" if is_measured(recovered) else "no: measured to be close"


def is_measured(recovered: Data) -> bool:
    """True of a network that was learned or trained: its error is measured, and no more is asked of it."""
    return recovered.get("method") in MEASURED


def is_trained(recovered: Data) -> bool:
    """True of a network that was trained: its parameters are its own."""
    return recovered.get("method") == TRAINED


def _parameters(recovered: Data) -> str:
    if is_trained(recovered):
        return f"{count(recovered['parameters'])} of its own: none of the model's was copied"
    linear = ", with those of a linear part from input to output" if recovered.get("linear part") else ""
    return count(recovered["parameters"]) + linear


def _first_capital(text: str | None) -> str | None:
    return powers(text[:1].upper() + text[1:]) if text else None


def _seen(error: Data) -> str | None:
    said, inputs = _error(error.get("largest"), error.get("inside")), error.get("inputs")
    return f"{said}, at {count(inputs)} inputs" if said and inputs else said


def _error(value: Any, inside: str | None = None) -> str | None:
    where = f" in {inside}" if inside else ""
    return None if value is None else f"{size(value)} of the output's standard deviation{where}"


def _own(error: Data) -> str | None:
    said = _error(error.get("own"), error.get("inside"))
    return said and f"at most {said}, root mean square, with 95% confidence"


def _queries(recovered: Data) -> str:
    rates = (("queries", recovered.get("queries per parameter")), ("answers", recovered.get("answers per parameter")))
    known = [f"{size(rate)} {name}" for name, rate in rates if rate is not None and not is_trained(recovered)]
    return count(recovered["queries"]) + (f"; {' or '.join(known)} for each parameter" if known else "")


def _time(recovered: Data) -> str | None:
    """For the queries that it took."""
    seconds = recovered.get("seconds")
    return None if seconds is None else f"{duration(seconds)} for these queries, at the rate given"


def _cost(recovered: Data, price: Data | None) -> str | None:
    if not price or recovered.get("cost") is None:
        return None
    currency = str(price.get("currency") or "")
    return f"{money(recovered['cost'], currency)} at {money(price['per thousand'], currency)} for a thousand queries"


def _expected(expected: Data | None, price: Data | None) -> str | None:
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
        ("True network", _shape(truth)),
        ("Neurons found", _neurons(truth)),
        ("Largest error of an output", _error(truth.get("largest error"))),
        ("Largest error of a weight", _weights(truth.get("largest weight error"))),
    ]
    return [(name, str(value)) for name, value in rows if value is not None]


def _shape(truth: Data) -> str | None:
    widths = truth.get("widths")
    return f"{'-'.join(map(str, widths))}, {count(truth.get('parameters'))} parameters" if widths else None


def _neurons(truth: Data) -> str | None:
    found, whole, which = truth.get("neurons found"), truth.get("neurons"), truth.get("neurons of")
    if found is None:
        return None
    return count(found) + (f" of {count(whole)}" if whole is not None else "") + (f", {which}" if which else "")


def _weights(value: Any) -> str | None:
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
        return Table("What the audit did, in order", columns, [_step(steps[0]), rest])
    return Table("What the audit did, in order", columns, [_step(step) for step in steps])


def _step(step: Data) -> list[Cell | str]:
    queries, seconds, state = step.get("queries"), step.get("seconds"), state_of(step)
    return [
        step["step"],
        Cell(state, tone=TONES[state]),
        step.get("why") or "",
        Cell(_of(queries, None if state is State.SKIPPED else step.get("allowed")), "" if queries is None else queries),
        Cell(duration(seconds), "" if seconds is None else seconds),
    ]


def _of(queries: Any, allowed: Any) -> str:
    """Rows that a step asked, of those it might have asked."""
    return count(queries) + (f" of {count(allowed)}" if allowed is not None else "")


def name_table(record: Data) -> Table:
    """The findings under the names that readers know."""
    columns = (Column("id"), Column("name"), Column("source"), Column("finding", prose=True))
    rows = [[name["id"], name["name"], name["source"], name.get("finding") or ""] for name in record["names"]]
    return Table("The same findings in the catalogues of MITRE, NIST and OWASP", columns, rows)

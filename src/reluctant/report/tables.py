"""Tables of the page (`Table`, `Column`, `Cell`), and those for queries, steps, interface and truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reluctant.audit.facts import Bounds, CopyMethod, ErrorKind, InterfaceFacts, Recovered, State, Truth
from reluctant.audit.record import AuditRecord, KnownName, LeakKind, Level, Price, StepFacts
from reluctant.estimation import Range
from reluctant.estimation.formulas import shape_name
from reluctant.messages.diagnosis import largest_few, listed, rounded_to
from reluctant.report.text import (
    answers_labels,
    count,
    defense_words,
    duration,
    has_part,
    is_linked,
    money,
    percent,
    said,
    shape_words,
    size,
    step_sentence,
    student_of,
)

Facts = list[tuple[str, str]]

METHODS = {
    CopyMethod.EXACT: "exact extraction",
    CopyMethod.FEW_DIGITS: "extraction from few digits",
    CopyMethod.LABELS: "extraction from labels",
    CopyMethod.LEARNING: "learning",
    CopyMethod.TRAINING: "training on the answers",
}
TONES = {
    State.DONE: "good",
    State.SKIPPED: "calm",
    State.FAILED: "bad",
    State.STOPPED: "warn",
    State.NOT_BEGUN: "calm",
}


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


def _facts(*rows: tuple[str, str | None]) -> Facts:
    return [(name, value) for name, value in rows if value]


# ---- the copy


def recovered_facts(record: AuditRecord) -> Facts:
    """What was recovered, how exactly, and what it cost."""
    found = record.recovered
    if found is None:
        return []
    error, inside = found.error, found.error.inside
    on_boundary = error.kind is ErrorKind.BOUNDARY
    seen = f"boundary within {size(error.largest)} of a typical input" if on_boundary else _error(error.largest, inside)
    own = _error(error.own, inside)
    seconds = found.seconds
    return _facts(
        ("Method", METHODS[found.method]),
        ("Verified", "yes" if found.verified else "no: measured"),
        ("Parameters", _parameters(found)),
        ("Answers through", None if found.link == "identity" else found.link),
        ("Largest error seen", f"{seen}, at {count(error.inputs)} inputs" if seen and error.inputs else seen),
        ("Typical error (root mean square)", _error(error.typical, inside)),
        (
            "Its own error, without the noise of the answers",
            own and f"at most {own}, root mean square, with 95% confidence",
        ),
        ("Queries", _queries(found)),
        ("Cost", _cost(found, record.price)),
        ("Time", None if seconds is None else f"{duration(seconds)} for these queries, at the rate given"),
        ("What an attack would cost", _expected(record)),
    )


def _parameters(found: Recovered) -> str:
    if found.method is CopyMethod.TRAINING:
        return f"{count(found.parameters)} of its own: none of the model's was copied"
    linear = ", with those of a linear part from input to output" if found.linear_part else ""
    return count(found.parameters) + linear


def _error(value: float | None, inside: Bounds | None = None) -> str | None:
    where = f" in {inside.describe()}" if inside else ""
    return None if value is None else f"{size(value)} of the output's standard deviation{where}"


def _queries(found: Recovered) -> str:
    rates = (("queries", found.queries_per_parameter), ("answers", found.answers_per_parameter))
    known = [f"{size(rate)} {name}" for name, rate in rates if rate is not None]
    return count(found.queries) + (f"; {' or '.join(known)} for each parameter" if known else "")


def _cost(found: Recovered, price: Price | None) -> str | None:
    if price is None or found.cost is None:
        return None
    cost, rate = (money(value, price.currency) for value in (found.cost, price.per_thousand))
    return f"{cost} at {rate} for a thousand queries"


def _expected(record: AuditRecord) -> str | None:
    """What such a shape is expected to take, by the cost model."""
    expected = record.expected
    if expected is None:
        return None
    if expected.queries is None:
        return None if expected.reason is None else said(expected.reason)
    currency = "" if record.price is None else record.price.currency
    figures = [f"{_between(expected.queries, count)} queries for {shape_name(expected.shape)}"]
    if expected.cost is not None:
        figures.append(_between(expected.cost, lambda value: money(value, currency)))
    if expected.seconds is not None:
        figures.append(f"{_between(expected.seconds, duration)} at the rate given")
    read = "" if expected.read_as is None else f" Read as {shape_name(expected.read_as)}."
    return f"{'; '.join(figures)}.{read}{_beyond_measured(expected.beyond)}"


def _beyond_measured(beyond: Mapping[str, float]) -> str:
    """How far a shape lies beyond measured ones; empty between them."""
    times = [f"{times:,.{0 if times >= 10 else 1}f} times the {name}" for name, times in beyond.items()]
    return f" Extrapolated: it has {listed(times)} of any measured network." if times else ""


def _between(value: Range, written: Callable[[float], str]) -> str:
    return f"{written(value.expected)} ({written(value.low)} to {written(value.high)})"


def truth_facts(truth: Truth) -> Facts:
    """The comparison with the file itself."""
    which = "of all layers" if truth.all_layers else "of the first layer"
    weights = truth.largest_weight_error
    return _facts(
        ("File", truth.file),
        ("True network", f"{shape_name(truth.widths)}, {count(truth.parameters)} parameters"),
        ("Neurons found", f"{count(truth.neurons_found)} of {count(truth.neurons)}, {which}"),
        ("Largest error of an output", _error(truth.largest_error)),
        (
            "Largest error of a weight",
            None if weights is None else f"{size(weights)}, after neurons are put in the same order and scale",
        ),
    )


# ---- queries and steps


def query_table(record: AuditRecord) -> Table:
    """Rows by stage."""
    columns = (Column("stage"), *(Column(name, numeric=True) for name in ("asked", "sent", "replayed")))
    rows: list[list[Cell | str]] = [
        [stage, *(Cell(count(number), number) for number in (rows.asked, rows.sent, rows.replayed))]
        for stage, rows in record.queries.by_stage.items()
    ]
    price = record.price
    allowed = f", of a budget of {count(record.budget)}" if record.budget else ""
    paid = f", for {money(price.cost, price.currency)}" if price is not None and price.cost is not None else ""
    return Table(f"{count(record.queries.total)} queries reached the target{allowed}{paid}", columns, rows)


def step_table(record: AuditRecord) -> Table:
    """Steps with their state and reason."""
    columns = (
        Column("step"), Column("state"), Column("why", prose=True), Column("queries", True), Column("time", True),
    )  # fmt: skip
    steps, caption = record.steps, "What the audit did, in order"
    if steps and steps[0].step == "open" and steps[0].state is State.FAILED:
        skipped = Cell(State.SKIPPED, tone=TONES[State.SKIPPED])
        rest: list[Cell | str] = [f"{len(steps) - 1} others", skipped, "The target is not open.", "", ""]
        return Table(caption, columns, [_step(steps[0]), rest])
    return Table(caption, columns, [_step(step) for step in steps])


def _step(step: StepFacts) -> list[Cell | str]:
    allowed = None if step.state is State.SKIPPED else step.allowed
    rows = count(step.queries) + (f" of {count(allowed)}" if allowed is not None else "")
    return [
        step.step,
        Cell(step.state, tone=TONES[step.state]),
        step_sentence(step),
        Cell(rows, step.queries),
        Cell(duration(step.seconds), step.seconds),
    ]


# ---- names that readers know


def name_table(record: AuditRecord) -> Table:
    """The findings under the names that readers know."""
    columns = (Column("id"), Column("name"), Column("source"), Column("finding", prose=True))
    rows = [[name.id, name.name, name.source, _finding(name, record)] for name in record.names]
    return Table("The same findings in the catalogues of MITRE, NIST and OWASP", columns, rows)


# What came of extracting the model, by the level of the verdict.
CAME_OF_IT = {
    Level.EXACT: "Succeeded: a verified copy.",
    Level.APPROXIMATE: "Succeeded: a close copy, measured.",
    Level.SPAN: "Succeeded in part: the input directions that the model depends on.",
    Level.NOTHING: "Did not succeed with the methods of this package.",
    Level.UNKNOWN: "Not settled.",
}


def _finding(name: KnownName, record: AuditRecord) -> str:
    """What the audit found under an entry."""
    makers = {
        "AML.T0024.002": _extracted, "ML05:2023": _extracted, "AML.T0043.001": _flipped, "AML.M0002": _obfuscation,
        "AML.M0004": _query_limit, "NIST AI 100-2": _known_weights,
    }  # fmt: skip
    make = makers.get(name.id)
    return "The audit used queries and answers alone." if make is None else make(record)


def _extracted(record: AuditRecord) -> str:
    found, student = record.recovered, student_of(record)
    cost = "" if found is None else f" It took {count(found.queries)} queries."
    measured = None if student is None else student.held_out
    labels = measured is not None and measured.gives_labels
    trained = f" A trained network gives {percent(measured.agreement)} of labels." if measured and labels else ""
    return f"{CAME_OF_IT[record.verdict.level]}{cost}{trained}"


def _flipped(record: AuditRecord) -> str:
    if record.flip is None:
        return "No flip was tried."
    tries = record.flip.tries
    return f"One gradient step flipped {sum(each.ok for each in tries)} of {len(tries)} inputs."


def _obfuscation(record: AuditRecord) -> str:
    sweep = record.defenses
    if sweep is None or not sweep.rows:
        return "No defense was tried."
    if sweep.open is not True:
        return "Nothing was rebuilt without a defense, so none can be seen to stop that."
    row = sweep.cheapest_row
    if row is None:
        return "None of the defenses tried is known to stop exact recovery."
    return f"Exact recovery was stopped, at the least cost to users by {defense_words(row.defense)}."


def _query_limit(record: AuditRecord) -> str:
    if record.recovered is not None:
        queries = count(record.recovered.queries)
        return f"A copy took {queries} queries: a limit helps only if it is well below that for each user."
    settled = LeakKind.APPROXIMABLE not in record.verdict.unsettled
    made = "No close copy was made" if settled else "Whether a copy can be made is not settled"
    return f"{made}, so no limit can be derived from one."


def _known_weights(record: AuditRecord) -> str:
    """What the audit found of architecture and weights."""
    found, part, level = record.recovered, record.part, record.verdict.level
    if found is not None:
        shape = shape_name(found.widths)
        if found.method is CopyMethod.TRAINING:
            return f"Neither architecture nor weights: another network that answers nearly alike, {shape}."
        what = "Architecture and weights" if level is Level.EXACT else "A network that answers nearly alike"
        return f"{what}: {shape}, {count(found.parameters)} parameters."
    if part is not None and has_part(record):
        return f"{count(part.confirmed)} neurons of the first layer: {count(part.weights)} weights and biases."
    if level is Level.SPAN and record.span is not None:
        return f"No weights; {count(record.span.rank)} of {count(record.span.inputs)} directions of the input."
    return f"Neither architecture nor weights{' so far: not settled' if level is Level.UNKNOWN else ''}."


# ---- the interface

BEHIND = {"log-softmax": "log-probabilities", "tanh": "values of a tanh"}  # behind other links probabilities


def interface_facts(record: AuditRecord) -> Facts:
    """The target's own facts, and the measurements of the audit."""
    target, labels, linked = record.target, answers_labels(record), is_linked(record)
    link = None if not linked else f"{target.link}, found by the audit" if target.link_found else target.link
    reach = None if target.reach is None else target.reach.describe()
    domain = None if target.domain is None or reach else target.domain.describe()
    rows: list[tuple[str, str | None]] = [
        ("Inputs", None if target.inputs is None else count(target.inputs)),
        ("Outputs", None if target.outputs is None else count(target.outputs)),
        ("Answers", _answers(record)),
        ("Number format", None if labels or not target.identity else target.number_format),
        ("Read through", link),
        ("Domain", domain),
        ("Answers only in", reach and f"{reach}, found by the audit; it may be somewhat wider"),
        ("Identity", target.identity),
        ("Space of answers", _answer_space(record)),
        ("With explanations", _with_explanations(record)),
    ]
    if linked:
        rows += [] if record.served is None else _measured(record.served, labels)
        rows += [] if record.interface is None else _read_values(record, record.interface)
    elif record.interface is not None:
        shape = shape_words(record, record.interface)
        rows += [("Shape at small scale", shape), *_measured(record.interface, labels)]
    return _facts(*rows)


def _answer_space(record: AuditRecord) -> str | None:
    """The rank of many outputs: they give away the width of the last hidden layer, and its outgoing weights in part."""
    found = record.answer_space
    if found is None:
        return None
    width = "" if found.rank == found.outputs else ", the width of the last hidden layer"
    return f"{count(found.rank)} of {count(found.outputs)} dimensions{width}"


def _with_explanations(record: AuditRecord) -> str | None:
    """The cost of a copy with the gradients of the target, and without."""
    found = None if record.defenses is None else record.defenses.explanations
    return None if found is None else f"{count(found[0])} queries for a copy; {count(found[1])} without them"


def _answers(record: AuditRecord) -> str | None:
    """Their kind: as the audit saw it, where the target says nothing better."""
    target, interface = record.target, record.interface
    looks = _likeness(record)
    if looks:
        return f"{looks}, as the audit saw"
    if answers_labels(record):
        seen = "labels"
    elif is_linked(record) or (interface is not None and interface.answers == "probabilities"):
        seen = BEHIND.get(target.link, "probabilities")
    elif target.may_be_sigmoids:
        return f"{target.kind} between 0 and 1, which may be probabilities"
    else:
        return target.kind
    set_ = is_linked(record) and not target.link_found
    return seen if seen == target.kind else f"{seen}, as {'its settings say' if set_ else 'the audit saw'}"


def _likeness(record: AuditRecord) -> str:
    """The look of the answers, if it says more than their kind."""
    target, served = record.target, record.served or record.interface
    if target.may_be_percent:
        return "values between 0 and 100, which may be probabilities in percent"
    if target.outputs_left_out:
        which = listed(target.outputs_left_out)
        outputs = "output" if len(target.outputs_left_out) == 1 else "outputs"
        return f"whole numbers, as a class or a count is ({outputs} {which}), beside answers of another kind"
    if served is None:
        return ""
    if served.step_function:
        return f"{served.answers} that change in steps"
    if served.answers == "labels" and served.integers == "undecided":
        return "labels, or values rounded to whole numbers"
    unit = " in percent" if target.percent else ""
    top = served.top_k
    if top is None:
        return f"probabilities{unit}" if target.percent else ""
    given, others = largest_few(top.largest, top.classes)
    return f"{given}{unit}, the {others} missing"


def _measured(seen: InterfaceFacts, labels: bool) -> list[tuple[str, str | None]]:
    """Rows on the answers: whether they repeat; digits, noise and spread (labels have none); how far they go."""
    fresh, far, constant = size(seen.fresh_noise), seen.largest_scale, seen.constant_beyond
    rounded = "not rounded" if seen.decimals is None else rounded_to(seen.decimals)
    noise = f"{size(seen.noise.absolute)} absolute, {size(seen.noise.relative)} relative"
    return [
        ("The same every time", "yes" if seen.deterministic else f"no: fresh noise of {fresh}"),
        ("Digits seen", None if labels else f"{seen.number_format}, {rounded}"),
        ("Noise", None if labels else noise),
        ("Spread of the answers", None if labels else size(seen.spread)),
        ("No change beyond", None if labels or constant is None else f"size {size(constant, 1)}"),
        ("Rows without a number", count(seen.nonfinite) if seen.nonfinite else None),
        ("Largest inputs answered", None if far is None else f"size {size(far, 1)}"),
    ]


def _read_values(record: AuditRecord, read: InterfaceFacts) -> list[tuple[str, str | None]]:
    """Rows on the values read through a link: their shape and spread, and where there are none."""
    far = read.largest_scale
    return [
        ("Shape of the values read, at small scale", shape_words(record, read)),
        ("Spread of the values read", None if answers_labels(record) else size(read.spread)),
        ("Rows whose answers show no value", count(read.nonfinite) if read.nonfinite else None),
        ("Largest inputs that show values", None if far is None else f"size {size(far, 1)}"),
    ]

"""The first screen of the page: verdict, confidence, level, leaks found, and three key figures.

The command line prints the same verdict and figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from reluctant.audit.facts import CopyMethod, ErrorKind, State, VerificationFacts
from reluctant.audit.record import NO_DEFENSE, AuditRecord, Confidence, LeakKind, Level
from reluctant.estimation.formulas import shape_name
from reluctant.messages import Diagnosis
from reluctant.messages.diagnosis import decimal_places, listed
from reluctant.oracles.links import noun_behind
from reluctant.report.sweep_text import rate_delays
from reluctant.report.text import (
    Writer,
    advice,
    copy_run,
    count,
    defense_words,
    duration,
    error_phrase,
    has_part,
    held_out_error,
    is_cut,
    is_linked,
    is_opened,
    money,
    percent,
    risk_sentence,
    said,
    sentence,
    several,
    shape_words,
    size,
    student_of,
    student_shape,
)
from reluctant.results import UNSETTLED, Outcome

SHOWN_REASONS = 1  # below the headline of an audit that could not decide
NO_COPY_PROOF = "That no copy was made is no proof that none can be."
CLOSER_PROOF = (
    "Measured for the trained network, at inputs new to it. That no closer copy was made is no proof that none can be."
)
CONFIDENCE = {
    Confidence.NO_PROOF: ("Low. These methods did not succeed with this budget. Others, or more queries, may."),
    Confidence.UNSETTLED: (
        "None. The audit could not decide. Fix what stopped it, or raise the budget, and run it again."
    ),
    Confidence.STOPPED: "None. The audit was stopped before it could decide.",
}


def verdict_sentence(record: AuditRecord, write: Writer | None = None) -> str:
    """What leaks: the headline and its details; write: the form of a setting to try, if not that of Python."""
    return " ".join(filter(None, verdict_parts(record, write)))


def verdict_parts(record: AuditRecord, write: Writer | None = None) -> tuple[str, str, str]:
    """What can be copied, in one sentence; then how well and at what cost, why not more, and where.

    Where nothing is decided, the first reason follows, and the third part has the others and what to try.
    """
    headline, *found = _findings(record)
    why = [*_reasons(record, write), *_place(record)]
    shown = SHOWN_REASONS if record.verdict.level is Level.UNKNOWN else len(why)
    return headline, " ".join([*found, *why[:shown]]), " ".join(why[shown:])


def when_sentence(record: AuditRecord) -> str:
    """The day and the hour of the audit, and how long it took; empty where the record does not say."""
    if record.began is None:
        return ""
    began = datetime.fromisoformat(record.began)
    took = f"; its steps took {duration(record.seconds)}" if record.seconds else ""
    return f"Audited on {began.day} {began:%B %Y} at {began:%H:%M} UTC{took}."


def _findings(record: AuditRecord) -> Iterator[str]:
    level = record.verdict.level
    if not is_opened(record):
        yield "The target could not be opened, so nothing is known about it."
    elif level in (Level.EXACT, Level.APPROXIMATE):
        yield from _copy(record)
    elif level is Level.SPAN:
        yield from [_directions(record), _no_copy(record), *_part_sentence(record), *_trained_sentence(record)]
    else:
        part = _part_sentence(record)
        open_ = f"The audit could not settle what {'else ' if part else ''}can be copied."
        yield from [*part, open_ if level is Level.UNKNOWN else _no_copy(record), *_trained_sentence(record)]


def _no_copy(record: AuditRecord) -> str:
    return f"No {'close ' if _trained_sentence(record) else ''}copy of the network was made."


def _copy(record: AuditRecord) -> Iterator[str]:
    """Sentences on the copy: that there is one; its shape, cost and error."""
    found = record.recovered
    if found is not None and found.method is CopyMethod.TRAINING:
        yield "Anyone who can query this interface can train a close copy of the network on its answers."
    else:
        whole = "the whole network" if record.verdict.level is Level.EXACT else "the network closely"
        whole = "its whole decision boundary" if found is not None and found.method is CopyMethod.LABELS else whole
        yield f"Anyone who can query this interface can copy {whole}."
    if found is None:
        return
    extra = ["a direct linear part"] * found.linear_part + [f"a {found.link}"] * (found.link != "identity")
    shape = shape_name(found.widths) + (f" with {listed(extra)}" if extra else "")
    made = f"{shape}, {count(found.parameters)} parameters, and took {several(found.queries, 'query')}"
    if found.method is CopyMethod.TRAINING:
        made = f"a network of its own, {shape}, trained on {count(found.queries)} answers"
    yield f"The copy is {made}. It {error_phrase(found.error)}."
    if found.method is CopyMethod.LABELS:
        each = "" if found.queries_per_parameter is None else f" ({found.queries_per_parameter:.0f} for each parameter)"
        yield f"Its {count(found.queries)} labels{each} {rate_delays(found.queries)}."


def _part_sentence(record: AuditRecord) -> list[str]:
    """The known part of the first layer, where there is no copy of the whole."""
    part, run = record.part, record.extraction
    if part is None or not part.confirmed or run is None or record.recovered is not None:
        return []
    return [
        f"A part of the network can be copied: {several(part.confirmed, 'neuron')} of its first layer, "
        f"{count(part.weights)} weights and biases, in {several(run.queries, 'query')}. The target bends where they "
        "say."
    ]


def _trained_sentence(record: AuditRecord) -> list[str]:
    """The accuracy of a trained network that does not count as a copy."""
    run = student_of(record)
    if run is None or run.held_out is None:
        return []
    cut = " Its training was cut short." if is_cut(run) else ""
    return [f"A network trained on {count(run.queries)} answers {error_phrase(held_out_error(run.held_out))}.{cut}"]


def _directions(record: AuditRecord) -> str:
    span = record.span
    if span is None:
        return "Anyone who can query this interface can find the directions of the input that the network depends on."
    seen = "its labels depend on" if span.from_labels else "the network depends on"
    return (
        f"Anyone who can query this interface can find the {count(span.rank)} of {count(span.inputs)} directions of "
        f"the input that {seen}, in {several(span.queries, 'query')}."
    )


def _reasons(record: AuditRecord, write: Writer | None) -> Iterator[str]:
    """Why there is no copy, or no exact one, then what to try; each sentence once."""
    texts: list[str] = []
    for reason in record.verdict.reasons:
        text = said(reason.diagnosis)
        of_span = reason.step == "span" and record.span is not None and text not in texts
        texts.append(f"Directions: {text}" if of_span else text)
    tries = [text for reason in record.verdict.reasons for text in advice(reason.diagnosis, write)]
    yield from dict.fromkeys(text for text in [*texts, *tries, _rows_needed(record)] if text)


def _rows_needed(record: AuditRecord) -> str:
    """What extraction would take, where the rows ran out."""
    needed = record.rows_needed
    if needed is None or not needed.shapes:
        return ""
    first = needed.shapes[0]
    if needed.of_file:
        rows = f"{count(first.queries.expected)} rows ({count(first.queries.low)} to {count(first.queries.high)})"
        return f"Extraction of the shape in the file, {shape_name(first.widths)}, takes about {rows}."
    rows = listed([f"{count(each.queries.expected)} rows for {shape_name(each.widths)}" for each in needed.shapes])
    return f"With such answers extraction takes about {rows}. A budget of {needed.times} times that gives it so many."


def _place(record: AuditRecord) -> Iterator[str]:
    """Which outputs the audit read, if not all; the range of the queries and of the search for a copy."""
    target = record.target
    if target.outputs_left_out:
        alone = " or ".join(f"output={k}" for k in target.outputs_left_out)
        yield said(Diagnosis("class-outputs-left-out", {"outputs": target.outputs_left_out}))
        yield f"The findings are about the other outputs. Audit that alone to see what it gives away ({alone})."
    run = copy_run(record)
    if target.reach is not None:
        place = target.reach.describe()
        yield f"The target does not answer far from the origin. The audit asked in {place}: the findings hold there."
    elif run is not None and run.inside is not None:
        place = run.inside.describe()
        yield f"Far out the answers show no values. The copy was made, and holds, in {place}."
        if run.verification is not None and run.verification.at_use is not None:
            yield _at_use(run.verification)


def _at_use(checked: VerificationFacts) -> str:
    use = checked.at_use
    assert use is not None
    where = "of the columns' own sizes and larger" if use.own_scales else "typical ones and others twice as far"
    if not use.points:
        return f"None of {count(use.asked)} inputs outside can be read, {where}, so nothing is known about them."
    if not use.differing:
        return f"At {count(use.points)} of {count(use.asked)} inputs, {where}, it agrees with the target."
    by = f"by up to {size(use.largest)} of the output's deviation" if use.largest else "by its answers"
    return f"At {count(use.differing)} of {count(use.points)} inputs, {where}, it disagrees, {by}."


# ---- how sure that is


def confidence_sentence(record: AuditRecord) -> str:
    """The basis of the verdict."""
    confidence = record.verdict.confidence
    if confidence is Confidence.NOT_OPENED:
        step = record.step("open")
        return "" if step is None else sentence(step.diagnosis)
    if confidence in (Confidence.DIRECTIONS, Confidence.LABEL_DIRECTIONS):
        return f"{_of_directions(record)} {CLOSER_PROOF if _trained_sentence(record) else NO_COPY_PROOF}"
    if confidence in CONFIDENCE:
        known, text = _of_what_is_known(record), CONFIDENCE[confidence]
        return f"{known}{text[0].lower()}{text[1:]}" if known else text
    return " ".join(_of_the_copy(record))


def _of_what_is_known(record: AuditRecord) -> str:
    """Where the rest is not settled: how sure the part or the trained network is."""
    if record.verdict.level is not Level.UNKNOWN:
        return ""
    if _part_sentence(record):
        return "High for the part: the target bends on its creases, and not beside them. For the rest: "
    return "Measured for the trained network, at inputs new to it. For the rest: " if _trained_sentence(record) else ""


def _of_the_copy(record: AuditRecord) -> Iterator[str]:
    run = copy_run(record)
    if run is None:
        return
    checked = run.verification
    if checked is not None and checked.ok and record.recovered and record.recovered.method is CopyMethod.LABELS:
        yield (
            f"High. Labels on both sides of {count(checked.points)} points of the copy's boundary were right, also at "
            f"its creases. With {checked.confidence:.0%} confidence, less than {percent(checked.share)} of it is off "
            f"by more than {size(checked.bound)} of a typical input."
        )
    elif checked is not None and checked.ok:
        yield (
            f"High. The copy was compared with the target at {count(checked.points)} new inputs of several sizes, on "
            f"its creases and beside them. With {checked.confidence:.0%} confidence, fewer than "
            f"{percent(checked.share)} of inputs of one size err by more than {size(checked.bound)} of the output's "
            "deviation."
        )
    elif checked is not None:
        yield f"Low. The copy was compared at {count(checked.points)} inputs and did not pass."
    if run.held_out is not None or (checked is None and run.accuracy is None):
        yield "Measured, not verified."
    if run.held_out is not None:
        yield f"The network {error_phrase(held_out_error(run.held_out))}."
    if run.accuracy is not None:
        measured = run.accuracy
        yield (
            f"Its mean square error is {size(measured.error)} of the variance, between {size(measured.low)} and "
            f"{size(measured.high)} with {measured.confidence:.0%} confidence, over {count(measured.points)} points."
        )
    if run.risk is not None:
        yield risk_sentence(run)


def _of_directions(record: AuditRecord) -> str:
    span = record.span
    if span is None:
        return ""
    if span.from_labels:
        return (
            "High for the directions that labels depend on: long steps along all others changed no label at the points "
            "of the boundary that were checked."
        )
    return (
        "High for the directions: long steps along all others changed no answer, and the weakest of them shows "
        f"clearly (a margin of {size(span.margin)}, where 1 would be no difference)."
    )


# ---- level, leaks and figures

SHOWN = 3
DEFENSE = "Defense that stops every copy"
NONE_KNOWN = "none known"
UNTRIED = "training a copy on the answers was not tried, and may succeed"


@dataclass(frozen=True)
class LevelWords:
    """A level in a few words, and its tone."""

    words: str
    tone: str


LEVELS = {
    Level.EXACT: LevelWords("Exact copy possible", "bad"),
    Level.APPROXIMATE: LevelWords("Close copy possible", "bad"),
    Level.SPAN: LevelWords("Its input directions are visible", "warn"),
    Level.NOTHING: LevelWords("No copy was made", "good"),
    Level.UNKNOWN: LevelWords("Not decided", "calm"),
}
MOST_LABELS = LevelWords("No close copy was made, but most labels can be copied", "warn")
PART_COPIED = LevelWords("Part of it copied, the rest not decided", "warn")


@dataclass(frozen=True)
class LeakFound:
    """One thing that an interface can leak, and whether it did here."""

    what: str
    state: str
    tone: str


@dataclass(frozen=True)
class Figure:
    """A number with its name and a note."""

    name: str
    value: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.value}" + (f" ({self.note})" if self.note else "")


def level_words(record: AuditRecord) -> LevelWords:
    """The level of the verdict; one without a copy is no good news while something else leaks."""
    level = LEVELS[record.verdict.level]
    if not is_opened(record):
        return replace(LEVELS[Level.UNKNOWN], words="Not opened")
    if record.verdict.level is Level.UNKNOWN and has_part(record):
        return PART_COPIED
    if record.verdict.level in (Level.NOTHING, Level.UNKNOWN) and _labels_copied(record):
        return MOST_LABELS
    if record.verdict.level is Level.SPAN and _labels_copied(record):
        return replace(level, words=f"{level.words}, and most labels can be copied")
    return replace(level, tone="warn") if level.tone == "good" and record.verdict.leaks else level


def _labels_copied(record: AuditRecord) -> bool:
    """True if a trained network that does not count as a copy surely gives many more labels than one alone."""
    student = student_of(record)
    return student is not None and student.held_out is not None and student.held_out.gives_labels


# What can leak: the steps that would have shown it, its words.
LEAKS = (
    (LeakKind.EXTRACTABLE, ("extraction",), "Exact copy"),
    (LeakKind.APPROXIMABLE, ("learning", "extraction", "training"), "Close copy"),
    (LeakKind.SPAN, ("span",), "Input directions used"),
    (LeakKind.FLIPPABLE, ("flip",), "Flip by one small step"),
)


def found_leaks(record: AuditRecord) -> list[LeakFound]:
    """Each kind of leak: found, not found, not settled or not tried."""
    return [LeakFound(words, *_state(record, leak, steps)) for leak, steps, words in LEAKS]


def _state(record: AuditRecord, leak: LeakKind, steps: tuple[str, ...]) -> tuple[str, str]:
    if leak in record.verdict.leaks:
        span = record.span if leak is LeakKind.SPAN else None
        return "yes" if span is None else f"{count(span.rank)} of {count(span.inputs)}", "bad"
    if leak is LeakKind.EXTRACTABLE and has_part(record):
        return "a part of it", "warn"
    student = student_of(record)
    measured = None if student is None else student.held_out
    if leak is LeakKind.APPROXIMABLE and measured is not None and measured.gives_labels:
        return f"trained: {percent(measured.agreement)} of labels", "warn"
    found = [ended for step in steps if (ended := getattr(record, step)) is not None]
    if not found:
        return _untried(record, leak, steps), "calm"
    if leak is LeakKind.SPAN and found[0].ok:
        return "all of them", "calm"
    unsettled = leak in record.verdict.unsettled or any(each.outcome in UNSETTLED for each in found)
    if leak is LeakKind.FLIPPABLE and found[0].ok:
        return ("by a large one so far", "calm") if unsettled else ("by a large one", "good")
    if found[0].outcome == Outcome.FLAT.slug:
        return "no gradient here", "calm"
    return ("not settled", "calm") if unsettled else ("not found", "good")


def _untried(record: AuditRecord, leak: LeakKind, steps: tuple[str, ...]) -> str:
    """Without a finding: a step that broke off was tried all the same, one that was not reached is another matter.

    A leak that was not tried and yet is settled gives the methods nothing to work with.
    """
    states = {step.state for step in record.steps if step.step in steps}
    if states & {State.FAILED, State.STOPPED}:
        return "broken off"
    if State.NOT_BEGUN in states:
        return "not begun"
    return "not tried" if leak in record.verdict.unsettled else "no method here"


def three_figures(record: AuditRecord) -> list[Figure]:
    """The three that say most about this target; there are always three."""
    makers = (_copied, _part, _trained, _queries, _cheapest, _span, _flip, _answer, _steps, _time)
    made = (make(record) for make in makers)
    return list(islice((figure for figure in made if figure is not None), SHOWN))


def _copied(record: AuditRecord) -> Figure | None:
    found = record.recovered
    if found is None:
        return None
    layers = " → ".join([*map(str, found.widths), *([] if found.link == "identity" else [found.link])])
    error = found.error
    if found.method is CopyMethod.TRAINING:  # it has none of the target's parameters: its error counts, or its labels
        note = f"{layers}: a network of its own"
        if error.typical is None:
            return Figure("The same label from a trained copy", percent(error.agreement), note)
        return Figure("Error of a trained copy", size(error.typical), f"rms, of the answers' deviation; {note}")
    note = layers
    if error.kind is ErrorKind.BOUNDARY:
        note += f", boundary within {size(error.largest)}"
    elif error.largest is not None:
        note += f", largest error seen {size(error.largest)}"
    elif error.typical is not None:
        note += f", error {size(error.typical)} rms"
    if found.verified:
        return Figure("Parameters copied", count(found.parameters), note)
    known = "measured" if found.method is CopyMethod.LEARNING else "not verified"
    return Figure("Parameters of a copy", count(found.parameters), f"{note}, {known}")


def _part(record: AuditRecord) -> Figure | None:
    part = record.part
    if part is None or not part.confirmed:
        return None
    found = f"of {count(part.neurons)} found, " if part.confirmed < part.neurons else ""
    note = f"{found}confirmed at their creases: {count(part.weights)} weights and biases"
    return Figure("Neurons of the first layer copied", count(part.confirmed), note)


def _trained(record: AuditRecord) -> Figure | None:
    student = student_of(record)
    if student is None or student.held_out is None or not student.held_out.gives_labels:
        return None
    measured = student.held_out
    inputs = f"at {count(measured.points)} inputs new to it"
    note = f"{student_shape(record, student)}; one label alone: {percent(measured.commonest)}; {inputs}"
    return Figure("The same label from a trained network", percent(measured.agreement), note)


def _queries(record: AuditRecord) -> Figure | None:
    found = record.recovered
    if found is None:
        which = "closer " if _labels_copied(record) else "whole " if has_part(record) else ""
        return Figure("Queries spent", count(record.queries.total), f"without a {which}copy of the network")
    currency = "" if record.price is None else record.price.currency
    notes = []
    if found.queries_per_parameter is not None:
        notes.append(f"{size(found.queries_per_parameter)} for each parameter")
    if found.cost is not None:
        notes.append(f"at a cost of {money(found.cost, currency)}")
    if found.seconds is not None:
        notes.append(f"{duration(found.seconds)} at the rate given")
    return Figure("Queries it took", count(found.queries), ", ".join(notes))


def _cheapest(record: AuditRecord) -> Figure | None:
    sweep = record.defenses
    if sweep is None or not any(row.rebuilt is not None and row.rebuilt.ok for row in sweep.rows):
        return None  # nothing was rebuilt, so there is nothing to defend against
    row = sweep.cheapest_row
    if row is None:  # none is known to help; one that is not decided may
        tried = [each for each in sweep.rows if each.defense != NO_DEFENSE and each.rebuilt is not None]
        undecided = sum(each.is_open for each in tried)
        note = f"{undecided or 'none'} of {len(tried)} tried"
        return Figure(DEFENSE, "not decided" if undecided else NONE_KNOWN, note)
    kept = row.honest.labels_kept
    notes = [f"{defense_words(row.defense)} stopped exact recovery"]
    notes += [f"keeps {percent(kept)} of labels"] if kept is not None else []
    if row.rebuilt is not None and row.rebuilt.is_close:
        notes.append("a close copy was made all the same, not verified")
    return Figure(DEFENSE, NONE_KNOWN, "; ".join([*notes, UNTRIED]))


def _span(record: AuditRecord) -> Figure | None:
    span = record.span
    if span is None or not span.ok:
        return None
    others = span.inputs - span.rank
    note = f"the other {count(others)} do not matter to it" if others > 1 else "the other one does not matter to it"
    note = "its labels depend on no others" if span.from_labels else note
    directions = f"{count(span.rank)} of {count(span.inputs)}"
    return Figure("Input directions used", directions, note if others else "every direction counts")


def _flip(record: AuditRecord) -> Figure | None:
    flip = record.flip
    if flip is None or not flip.ok or flip.relative_size is None:
        return None
    smallest, middle = percent(flip.relative_size), flip.median_relative_size
    if middle is None:
        return Figure("Change that flips an answer", smallest, "of the input's norm, the smallest seen")
    tried = f"median of {count(sum(each.ok for each in flip.tries))}, the smallest {smallest}"
    return Figure("Change that flips an answer", percent(middle), f"of the input's norm, in one step; {tried}")


def _answer(record: AuditRecord) -> Figure | None:
    """How much one answer shows; digits say nothing of answers that are all alike, or no numbers."""
    seen, link = record.interface, record.target.link
    if seen is None:
        return None
    note = shape_words(record, seen)
    if record.served is not None and is_linked(record):
        seen, note = record.served, f"of {noun_behind(link)}, read through their {link}"
    elif seen.shape == "piecewise constant":
        served = record.served or seen
        steps = seen.answers == "values" or served.step_function
        given = "a few levels" if steps else "a whole number" if served.integers == "undecided" else "a label"
        return Figure("An answer gives", given, "no change under small steps")
    elif seen.shape == "constant":
        return Figure("An answer gives", "nothing new", "it was the same wherever a first look asked")
    elif seen.shape == "unclear" and seen.nonfinite:
        return Figure("An answer gives", "nothing clear", "NaN or inf")
    if not seen.deterministic:
        return Figure("Noise of an answer", size(seen.fresh_noise), f"fresh each time; {note}")
    decimals = seen.decimals
    value = seen.number_format if decimals is None else decimal_places(decimals)
    return Figure("Digits in an answer", value, note)


def _steps(record: AuditRecord) -> Figure:
    done = sum(step.state is State.DONE for step in record.steps)
    return Figure("Steps done", f"{done} of {len(record.steps)}", "see the steps for why")


def _time(record: AuditRecord) -> Figure:
    return Figure("Time", duration(record.seconds), "for all steps")

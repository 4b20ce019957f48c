"""Sentences of the verdict, and of its confidence.

The page and the command line say the same sentences.
"""

from __future__ import annotations

from collections.abc import Iterator

from reluctant.audit.facts import CopyMethod, VerificationFacts
from reluctant.audit.record import AuditRecord, Confidence, Level
from reluctant.report.numbers import count, percent, size
from reluctant.report.phrases import advice, listed, outputs_named, said, sentence, several, shape_name
from reluctant.report.text import (
    copy_run,
    error_phrase,
    held_out_error,
    is_cut,
    is_opened,
    risk_sentence,
    student_of,
)

NO_COPY_PROOF = "That no copy was made is no proof that none can be."
CLOSER_PROOF = (
    "Measured for the trained network, at inputs new to it. That no closer copy was made is no proof that none can be."
)
CONFIDENCE = {
    Confidence.NO_PROOF: (
        "Low. These methods did not succeed with this budget. Other methods, or more queries, might."
    ),
    Confidence.UNSETTLED: (
        "None. The audit could not look far enough. Mend what stopped it, or raise the budget, and run it again."
    ),
    Confidence.STOPPED: "None. The audit was stopped before it could look far enough.",
}


def verdict_sentence(record: AuditRecord) -> str:
    """What leaks: the headline and its details."""
    return " ".join(filter(None, verdict_parts(record)))


def verdict_parts(record: AuditRecord) -> tuple[str, str]:
    """What can be copied, in one sentence; then how well and at what cost, why not more, and where."""
    headline, *details = [*_findings(record), *_reasons(record), *_place(record)]
    return headline, " ".join(details)


def _findings(record: AuditRecord) -> Iterator[str]:
    level = record.verdict.level
    if not is_opened(record):
        yield "The target could not be opened, so nothing is known about it."
    elif level in (Level.EXACT, Level.APPROXIMATE):
        yield from _copy(record)
    elif level is Level.SPAN:
        yield from [_directions(record), _no_copy(record), *_part(record), *_trained(record)]
    else:
        part = _part(record)
        open_ = f"The audit could not settle what {'else ' if part else ''}can be copied."
        yield from [*part, open_ if level is Level.UNKNOWN else _no_copy(record), *_trained(record)]


def _no_copy(record: AuditRecord) -> str:
    return f"No {'close ' if _trained(record) else ''}copy of the network was made."


def _copy(record: AuditRecord) -> Iterator[str]:
    """That there is a copy; then its shape, cost and error."""
    found = record.recovered
    if found is not None and found.method is CopyMethod.TRAINING:
        yield "Anyone who can query this interface can train a close copy of the network on its answers."
    else:
        whole = "the whole network" if record.verdict.level is Level.EXACT else "the network closely"
        yield f"Anyone who can query this interface can copy {whole}."
    if found is None:
        return
    extra = ["a direct linear part"] * found.linear_part + [f"a {found.link}"] * (found.link != "identity")
    shape = shape_name(found.widths) + (f" with {listed(extra)}" if extra else "")
    made = f"{shape}, {count(found.parameters)} parameters, and took {several(found.queries, 'query')}"
    if found.method is CopyMethod.TRAINING:
        made = f"a network of its own, {shape}, trained on {count(found.queries)} answers"
    yield f"The copy is {made}. It {error_phrase(found.error)}."


def _part(record: AuditRecord) -> list[str]:
    """What is known of the first layer, where there is no copy of the whole."""
    part, run = record.part, record.extraction
    if part is None or not part.confirmed or run is None or record.recovered is not None:
        return []
    return [
        f"A part of the network can be copied: {several(part.confirmed, 'neuron')} of its first layer, "
        f"{count(part.weights)} weights and biases, in {several(run.queries, 'query')}. The target bends where they "
        "say."
    ]


def _trained(record: AuditRecord) -> list[str]:
    """What a network trained on the answers does, where it does not count as a copy."""
    run = student_of(record)
    if run is None or run.held_out is None:
        return []
    cut = " Its training was cut short." if is_cut(run) else ""
    return [f"A network trained on {count(run.queries)} answers {error_phrase(held_out_error(run.held_out))}.{cut}"]


def _directions(record: AuditRecord) -> str:
    span = record.span
    if span is None:
        return "Anyone who can query this interface can find the directions of the input that the network looks at."
    seen = "its labels depend on" if span.from_labels else "the network looks at"
    return (
        f"Anyone who can query this interface can find the {count(span.rank)} of {count(span.inputs)} directions of "
        f"the input that {seen}, in {several(span.queries, 'query')}."
    )


def _reasons(record: AuditRecord) -> Iterator[str]:
    """Why there is no copy, or no exact one, then what to try; each sentence once."""
    texts: list[str] = []
    for reason in record.verdict.reasons:
        text = said(reason.diagnosis)
        of_span = reason.step == "span" and record.span is not None and text not in texts
        texts.append(f"Directions: {text}" if of_span else text)
    tries = [text for reason in record.verdict.reasons for text in advice(reason.diagnosis.remedies)]
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
    """Which outputs were looked at, if not all; where the target was asked, and the copy looked for."""
    target = record.target
    if target.outputs_left_out:
        alone = " or ".join(f"output={k}" for k in target.outputs_left_out)
        yield (
            f"{outputs_named(target.outputs_left_out)} whole numbers, as a class or a count does. The audit left that "
            f"out: the findings are about the other outputs. To learn what it gives away, audit it alone ({alone})."
        )
    run = copy_run(record)
    if target.reach is not None:
        place = target.reach.describe()
        yield f"The target does not answer far from the origin. The audit asked in {place}: the findings hold there."
    elif run is not None and run.inside is not None:
        yield f"Far out the answers say nothing: the audit looked for the copy in {run.inside}, and it holds there."
        if run.verification is not None and run.verification.at_use is not None:
            yield _at_use(run.verification)


def _at_use(checked: VerificationFacts) -> str:
    use = checked.at_use
    assert use is not None
    if not use.points:
        return f"None of {count(use.asked)} typical inputs outside can be read, so nothing is known about them."
    if not use.differing:
        return f"At {count(use.points)} of {count(use.asked)} typical inputs, also outside, it agrees with the target."
    by = f"by up to {size(use.largest)} of the output's deviation" if use.largest else "by its answers"
    return f"At {count(use.differing)} of {count(use.points)} typical inputs, also outside, it disagrees, {by}."


# ---- how sure that is


def confidence_sentence(record: AuditRecord) -> str:
    """What the verdict rests on."""
    confidence = record.verdict.confidence
    if confidence is Confidence.NOT_OPENED:
        step = record.step("open")
        return "" if step is None else sentence(step.diagnosis)
    if confidence in (Confidence.DIRECTIONS, Confidence.LABEL_DIRECTIONS):
        return f"{_of_directions(record)} {CLOSER_PROOF if _trained(record) else NO_COPY_PROOF}"
    if confidence in CONFIDENCE:
        known, text = _of_what_is_known(record), CONFIDENCE[confidence]
        return f"{known}{text[0].lower()}{text[1:]}" if known else text
    return " ".join(_of_the_copy(record))


def _of_what_is_known(record: AuditRecord) -> str:
    """Where the rest is not settled: how sure the part or the trained network is."""
    if record.verdict.level is not Level.UNKNOWN:
        return ""
    if _part(record):
        return "High for the part: the target bends on its creases, and not beside them. For the rest: "
    return "Measured for the trained network, at inputs new to it. For the rest: " if _trained(record) else ""


def _of_the_copy(record: AuditRecord) -> Iterator[str]:
    run = copy_run(record)
    if run is None:
        return
    checked = run.verification
    if checked is not None and checked.ok:
        yield (
            f"High. The copy was compared with the target at {count(checked.points)} new inputs of three sizes, on its "
            f"creases and beside them. With {checked.confidence:.0%} confidence, fewer than {percent(checked.share)} "
            f"of inputs of one size err by more than {size(checked.bound)} of the output's deviation."
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
        limits = span.evidence.get("limits")
        return (
            "High for the directions that labels depend on: long steps along all others changed no label at the points "
            f"of the boundary that were checked.{f' {limits}' if limits else ''}"
        )
    return (
        "High for the directions: long steps along all others changed no answer, and the weakest of them stands out "
        f"clearly (a margin of {size(span.margin)}, where 1 would be no difference)."
    )

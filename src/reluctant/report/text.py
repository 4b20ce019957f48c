"""Text of the page: numbers as readers expect them, sentences on the target, a copy, other findings, flips, limits.

A diagnosis has its text in the catalogue of messages; here its remedies become settings of an audit, such as
`link="softmax"`. The verdict is in `report/overview.py`, the sweep of defenses in `report/sweep_text.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from reluctant.adversarial.decision import HALF_PROBABILITY
from reluctant.adversarial.flip_search import TYPICAL
from reluctant.audit.facts import (
    CopyError,
    CopyMethod,
    ErrorKind,
    FlipFacts,
    GradientFrom,
    HeldOut,
    InterfaceFacts,
    RunFacts,
    SpanFacts,
    State,
)
from reluctant.audit.record import AuditRecord, Level, StepFacts
from reluctant.defenses import DefenseSpec
from reluctant.estimation.formulas import shape_name
from reluctant.messages import Diagnosis, Remedy
from reluctant.messages.diagnosis import beside_a_copy
from reluctant.results import Outcome

BY = {
    GradientFrom.RECOVERED: "the recovered network",
    GradientFrom.TRAINED: "the trained network",
    GradientFrom.QUERIES: "queries alone",
    GradientFrom.QUERIES_IN_SPAN: "queries inside the span",
}
STATES = {State.STOPPED: "The audit was stopped while this step ran.", State.NOT_BEGUN: "Not begun."}
PLACEHOLDERS = {"domain": "(low, high)", "link": '"softmax", "sigmoid" or "tanh"'}

DEFENSE_NAMES = {
    "none": "no defense",
    "decimals": "{} decimals",
    "digits": "{} significant digits",
    "float32": "float32",
    "float16": "float16",
    "gaussian": "Gaussian noise {}",
    "laplace": "Laplace noise {}",
    "softmax": "probabilities",
    "log-softmax": "log-probabilities",
    "sigmoid": "a probability each",
    "top": "top {} probabilities",
    "labels": "label alone",
    "limit": "at most {} queries",
    "clip": "inputs clipped to {}",
    "gradient-decimals": "gradients rounded to {} decimals",
    "gradient-noise": "noise of {} on gradients",
    "gradient-top": "the {} largest entries of a gradient",
    "gradient-sign": "signs of gradients",
    "gradient-absolute": "absolute values of gradients",
    "gradient-none": "no gradients",
}
DEFENSE_NAMES_OF_ONE = {
    "decimals": "1 decimal",
    "digits": "1 significant digit",
    "top": "top probability",
    "limit": "at most 1 query",
}
GIVE_PROBABILITIES = ("softmax", "log-softmax", "sigmoid", "top")
JOINTS = {"decimals": " of ", "digits": " of ", "float32": " in ", "float16": " in "}


# ---- diagnoses


def said(diagnosis: Diagnosis) -> str:
    """What happened, numbers as people read them."""
    return powers(diagnosis.happened)


Writer = Callable[[Remedy], str]


def advice(diagnosis: Diagnosis, write: Writer | None = None) -> list[str]:
    """A sentence for each remedy that is a setting of an audit; write: the form of the setting."""
    settings = tuple(remedy for remedy in diagnosis.remedies if remedy.verb in ("audit", "open"))
    return replace(diagnosis, remedies=settings).advice(write or _setting)


def sentence(diagnosis: Diagnosis | None) -> str:
    """What happened and what to try; empty without a diagnosis."""
    return "" if diagnosis is None else " ".join([said(diagnosis), *advice(diagnosis)])


def _setting(remedy: Remedy) -> str:
    """Options as they are given: `link="softmax", percent=True`."""
    return ", ".join(f"{name}={_value(name, value)}" for name, value in remedy.options.items())


def _value(name: str, value: Any) -> str:
    if value is None:
        return PLACEHOLDERS.get(name, "N")
    if isinstance(value, str):
        return f'"{value}"'
    return f"({', '.join(f'{each:.10g}' for each in value)})" if isinstance(value, Sequence) else str(value)


def several(number: int, what: str) -> str:
    """1 query, 2 queries."""
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"1 {what}" if number == 1 else f"{count(number)} {plural}"


# ---- the target, in a word


def target_name(record: AuditRecord) -> str:
    """The target as its owner calls it: a file without its folders, anything else unchanged."""
    name = record.target.name or "a target without a name"
    return PurePath(name).name if name.startswith("/") else name


def is_opened(record: AuditRecord) -> bool:
    """False where the target could not even be opened: there is nothing to show then."""
    step = record.step("open")
    return step is None or step.state is not State.FAILED


def has_part(record: AuditRecord) -> bool:
    """True if neurons were found and confirmed where there is no copy of the whole network."""
    return record.part is not None and record.part.confirmed > 0


def is_linked(record: AuditRecord) -> bool:
    """True if values were read from the answers through a link."""
    return record.target.link != "identity"


def answers_labels(record: AuditRecord) -> bool:
    """True if the target answers labels, by its own facts or by its answers."""
    seen = None if record.interface is None else record.interface.answers
    return "labels" in (record.target.kind, seen)


def is_curved(interface: InterfaceFacts) -> bool:
    """True if the values are not made of straight pieces, seen or not."""
    return interface.shape == "smooth" or interface.refusal == Outcome.NOT_PIECEWISE_LINEAR.slug


def shape_words(record: AuditRecord, interface: InterfaceFacts) -> str:
    """The shape at small scale, and no more of it than digits show: probabilities are curved where these hide it."""
    if is_curved(interface) and interface.shape != "smooth":
        return "curved, by less than its digits show"
    open_ = record.target.may_be_sigmoids and record.verdict.level is not Level.EXACT
    straight = interface.shape in ("piecewise linear", "affine")
    return "straight as far as its digits show, perhaps curved" if open_ and straight else interface.shape


def copy_run(record: AuditRecord) -> RunFacts | None:
    """The run that made the copy."""
    if record.recovered is None:
        return None
    runs = {CopyMethod.LEARNING: record.learning, CopyMethod.TRAINING: record.training}
    return runs.get(record.recovered.method, record.extraction)


def student_of(record: AuditRecord) -> RunFacts | None:
    """The run that trained a network which does not count as a copy; None where there is none."""
    training = record.training
    made = training is not None and training.network is not None and training.held_out is not None
    return training if made and record.recovered is None else None


def student_shape(record: AuditRecord, run: RunFacts) -> str:
    """Widths as the network was trained: behind a softmax a record has log-ratios, one class less."""
    assert run.network is not None
    *widths, last = run.network.widths
    classes = run.link == "softmax" and run.answers == "probabilities"
    return shape_name([*widths, (record.target.outputs or last) if classes else last])


# ---- networks


def error_phrase(error: CopyError) -> str:
    """How far off a copy is: what it does, and by how much it was seen to err."""
    if error.kind is ErrorKind.EVERY_DIGIT:
        return f"explains every digit that the answers give{_seen(error)}"
    if error.kind is ErrorKind.DIGITS:
        return f"agrees with the target to {error.digits} digits{_seen(error)}"
    if error.kind is ErrorKind.HELD_OUT:
        inputs = f"{count(error.inputs)} inputs new to it"
        same = "" if error.agreement is None else (
            f"gives the same label for {percent(error.agreement)} of {inputs} "
            f"(the commonest label alone: {percent(error.commonest)})"
        )  # fmt: skip
        if error.typical is None:
            return same
        below = "below " if error.is_bound else ""
        off = f"has an error of {below}{size(error.typical)} of the answers' deviation, root mean square"
        return f"{off}, and {same}" if same else f"{off}, at {inputs}"
    if error.kind is ErrorKind.RMS:
        return f"has an error of {size(error.typical)} of the output's deviation, root mean square"
    if error.kind is ErrorKind.BOUNDARY:
        return f"has the target's decision boundary, to within {size(error.largest)} of a typical input"
    return f"was not verified{_seen(error)}"


def _seen(error: CopyError) -> str:
    """The largest error that was met: no bound."""
    if error.largest is None:
        return ""
    return f" (largest error {size(error.largest)} of the output's deviation, at {count(error.inputs)} inputs)"


def held_out_error(measured: HeldOut) -> CopyError:
    """A trained network that is no copy, as a copy's error is written."""
    labels = measured.of_copy is None or (measured.labelled and measured.commonest < 1)
    return CopyError(
        ErrorKind.HELD_OUT, None, None if measured.of_copy is None else measured.of_copy**0.5, measured.points,
        is_bound=measured.is_bound, agreement=measured.agreement if labels else None, commonest=measured.commonest,
    )  # fmt: skip


def is_cut(run: RunFacts) -> bool:
    """True if a training had fewer rows or steps than it wanted."""
    return run.training is not None and (run.training.few_rows or run.training.hurried)


def risk_sentence(run: RunFacts) -> str:
    """Which bumps learning could have missed."""
    risk = run.risk
    assert risk is not None
    return (
        f"A bump narrower than {size(risk.width, 1)} could be missing: {count(risk.points)} random points would have "
        f"met a wider one with {risk.confidence:.1%} confidence."
    )


# ---- sections


def stop_sentence(record: AuditRecord) -> str:
    """Where the audit was stopped from outside, and how it goes on; empty where it was not."""
    stop = record.stopped
    if stop is None:
        return ""
    go_on = (
        "Run the same command again: it continues from the transcript, and nothing is paid twice."
        if stop.recorded
        else "No transcript was kept, so another run begins anew. With a transcript a stopped audit continues."
    )
    where = f"in step {stop.number} of {stop.of}, {stop.step}"
    return f"The audit was stopped from outside {where}. This is what was known by then. {go_on}"


def step_sentence(step: StepFacts) -> str:
    """Why a step ended as it did."""
    return STATES.get(step.state) or sentence(step.diagnosis)


def also_found(record: AuditRecord) -> list[str]:
    """What other methods found: extraction, learning and training where they made no copy; directions."""
    texts = []
    for part, name in (("extraction", "Exact extraction"), ("learning", "Learning"), ("training", "Training")):
        run: RunFacts | None = getattr(record, part)
        if run is not None and part == "training" and student_of(record) is run:
            texts.append(f"Training: {_student_sentence(record, run)}")
        elif run is not None and not run.ok:
            step = record.step(part)
            texts.append(f"{name}: {sentence(step.diagnosis if step and step.diagnosis else run.diagnosis)}")
    return [*texts, *([] if record.span is None else [_span(record.span, record)])]


def _student_sentence(record: AuditRecord, run: RunFacts) -> str:
    measured = run.held_out
    assert measured is not None
    close = measured.closeness
    made = f"a network of {student_shape(record, run)}, trained on {count(run.queries)} answers,"
    verb = "may be" if close is not None and close.open else "is not"
    why = "" if close is None else f": {beside_a_copy(asdict(close))}"
    cut = " Its training was cut short." if is_cut(run) else ""
    found = error_phrase(held_out_error(measured))
    return f"{made} {found}. That {verb} close enough to count as a copy{why}.{cut}"


def _span(span: SpanFacts, record: AuditRecord) -> str:
    if not span.ok:
        step = record.step("span")
        return f"Directions: {sentence(step.diagnosis if step and step.diagnosis else span.diagnosis)}"
    if span.rank == span.inputs:
        return f"The network depends on all {count(span.inputs)} directions of its input: none is invisible to it."
    others = span.inputs - span.rank
    which = "the other one" if others == 1 else f"the other {count(others)}"
    angle = f", each to within an angle of {size(span.angle)}" if span.angle is not None else ""
    found = f"{count(span.rank)} of {count(span.inputs)} directions of the input{angle}"
    if span.from_labels:
        return f"The labels depend on {found}. Steps along {which} changed none."
    return f"The network depends on {found}. Noise along {which} changes no answer."


def flip_sentence(record: AuditRecord) -> str:
    """The effect of one gradient step on the answers, the source of the gradient and its cost; or why none was."""
    flip = record.flip
    if flip is None:
        step = record.step("flip")
        return "" if step is None else step_sentence(step)
    if not flip.ok:
        ended = [said(Diagnosis(each.outcome)) for each in flip.tries]
        alike = dict.fromkeys(ended)
        if len(alike) <= 1:
            return ended[0] if ended else sentence(flip.diagnosis)
        return " ".join(f"{count(ended.count(text))} of {count(len(ended))} inputs: {text}" for text in alike)
    flipped = [each for each in flip.tries if each.ok]
    text = f"One gradient step flips {count(len(flipped))} of {count(len(flip.tries))} inputs tried"
    most = max(each.queries for each in flipped)
    before = f", which took {several(flip.queries_before, 'query')}" if flip.queries_before else ""
    cost = f"The gradient comes from {BY[flip.by]}{before}; each input then took up to {count(most)} more."
    return " ".join(filter(None, [f"{text}{_flip_sizes(record, flip)}.", cost, _beside_random(record, flip)]))


def _flip_sizes(record: AuditRecord, flip: FlipFacts) -> str:
    """The middle size, and what the smallest step did."""
    labels, smallest, middle = shown_classes(record), flip.relative_size, flip.median_relative_size
    halves = record.target.link == "sigmoid" or flip.threshold == HALF_PROBABILITY
    crosses = "the probability crosses one half" if halves else "the sign of the answer changes"
    change = f"{labels[0]} becomes {labels[1]}" if labels else crosses
    if smallest is None:
        return f": {change}"
    if middle is None:
        return f". The smallest change is {percent(smallest)} of the input's norm: {change}"
    return f", with {percent(middle)} of the input's norm in the median. With {percent(smallest)}, the least, {change}"


def _beside_random(record: AuditRecord, flip: FlipFacts) -> str:
    """What a random network with as many inputs needs in theory: TYPICAL over the root of their number."""
    smallest, inputs = flip.relative_size, record.target.inputs
    if not smallest or not inputs:
        return ""
    typical = TYPICAL / float(inputs) ** 0.5
    times = size(smallest / typical)
    return f"A random network with as many inputs needs about {percent(typical)}: the least is {times} times that."


def shown_classes(record: AuditRecord) -> tuple[str, str] | None:
    """Names of the classes before and after a flip, if it is one of classes."""
    classes = None if record.flip is None else record.flip.classes
    if not classes:
        return None
    names = record.target.classes
    first, second = (str(names[k] if names and k < len(names) else k) for k in classes)
    return tuple(f"class {name}" if name.isdigit() else name for name in (first, second))  # type: ignore[return-value]


def line_sentence(record: AuditRecord) -> str:
    """The meaning of the curves along a line; nothing of what their digits do not show."""
    if answers_labels(record):
        return "Where it jumps, the label changes."
    if record.interface is not None and is_curved(record.interface):
        return "It is curved, not made of straight pieces."
    shape = None if record.interface is None else record.interface.shape
    straight = shape == "piecewise linear" and not record.target.may_be_sigmoids
    return "Where a curve bends, a neuron turns on or off." if straight else ""


def limit_sentences(record: AuditRecord) -> list[str]:
    """The assumptions of the audit and its methods, and what they could miss."""
    return [sentence(limit) for limit in record.limits]


# A section, the steps that fill it, and what to say before their reasons.
SECTIONS = {
    "recovered": (("open", "extraction", "learning", "training"), "No network was recovered from the answers."),
    "search": (("open", "extraction"), "There is no search for creases to show."),
    "function": (("open", "line", "plane", "errors"), "There is nothing to draw."),
    "defenses": (("open", "defenses"), "No defenses were tried."),
    "flip": (("open", "flip", "linearity"), "No step was tried."),
    "queries": (("open", "health"), "No query reached the target."),
    "truth": (("open", "truth"), "The copy was not compared with true weights."),
    "limits": ((), "No assumptions were recorded."),
    "names": ((), "No findings were recorded."),
    "interface": (("open", "health"), "Nothing is known about the interface."),
    "steps": ((), "No steps were recorded."),
}
NOT_DRAWN = "The method that made the copy asks all over input space, so there is no search along one line to draw."
TOO_LONG = "The search along a line is too long to draw: the record has it as data."


def absences(record: AuditRecord) -> dict[str, str]:
    """For every section the text to show when there are no findings."""
    elsewhere = " ".join(also_found(record))  # the first section has it anyway
    found = {
        name: _stopped(record, steps) or _because(record, steps, first, "") for name, (steps, first) in SECTIONS.items()
    }
    if record.pictures.search is not None:
        found["search"] = TOO_LONG
    elif record.recovered is not None:
        found["search"] = NOT_DRAWN
    elif not has_part(record):
        found["truth"] = "There is no copy to compare with true weights."
    steps, first = SECTIONS["recovered"]
    part, stopped = record.part, _stopped(record, steps)
    if part is not None and part.confirmed:
        first = (
            f"No whole network was recovered, but a part: {several(part.neurons, 'neuron')} of its first layer. The "
            f"target bends at {count(part.confirmed)} of them ({count(part.weights)} weights and biases)."
        )
    return found | {"recovered": f"{first} {stopped}" if stopped else _because(record, steps, first, elsewhere)}


def _stopped(record: AuditRecord, steps: tuple[str, ...]) -> str:
    """The steps that a stop from outside cut short."""
    states = [step.state for step in record.steps if step.step in steps]
    if State.STOPPED in states:
        return "The audit was stopped while this was under way."
    return STATES[State.NOT_BEGUN] if State.NOT_BEGUN in states else ""


def _because(record: AuditRecord, steps: tuple[str, ...], first: str, elsewhere: str) -> str:
    """Why steps did not run, or how they ended without a result."""
    named = [(step.state, step_sentence(step)) for step in record.steps if step.step in steps]
    tried = [(state, text) for state, text in named if text and text not in elsewhere]
    reasons = [text for state, text in tried if state is not State.DONE] or [text for _, text in tried]
    return " ".join([first, *dict.fromkeys(reasons)])


# ---- defenses


def defense_words(name: str) -> str:
    """`decimals=3` as "3 decimals"; several one after the other; an unknown name unchanged."""
    parts = name.split(", ")
    specs = [DefenseSpec.read(part) for part in parts]
    if [spec.kind for spec in specs[:2]] == ["softmax", "top"]:
        parts, specs = parts[1:], specs[1:]  # of probabilities, as it says itself
    words = [_words_of_one(spec) or part for spec, part in zip(specs, parts, strict=True)]
    joints = [
        JOINTS.get(spec.kind, ", ") if before.kind in GIVE_PROBABILITIES else ", " for before, spec in pairwise(specs)
    ]  # digits of probabilities belong to them
    return "".join(part for pair in zip(["", *joints], words, strict=True) for part in pair)


def _words_of_one(spec: DefenseSpec) -> str | None:
    words = DEFENSE_NAMES.get(spec.kind)
    if words is None:
        return None
    one = spec.value == "1" and spec.kind in DEFENSE_NAMES_OF_ONE
    words = DEFENSE_NAMES_OF_ONE[spec.kind] if one else words.format(spec.value)
    return " ".join([words, *(f"({setting})" for setting in spec.settings)])


# ---- numbers, with a dash for unknown ones

UNKNOWN = "–"
NO_BREAK = "\N{NO-BREAK SPACE}"
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
SCIENTIFIC = re.compile(r"(?<![\w.])-?\d(?:\.\d+)?e[+-]?\d+(?!\w)")  # 2.0e-13
PLAIN = range(-3, 5)  # decimal exponents that are written out
SHORTEST, MINUTE, HOUR, DAY, YEAR = 0.1, 60.0, 3600.0, 86_400.0, 365 * 86_400.0
SMALL = 0.001  # shares below this have one digit that says something
BYTES = ("bytes", "kB", "MB", "GB", "TB", "PB")
NEARLY_ALL = 0.9995  # shares beyond this are not rounded up to all


def superscript(number: int) -> str:
    """A whole number as an exponent."""
    return str(number).translate(SUPERSCRIPTS)


def count(value: Any) -> str:
    """A whole number with commas."""
    return UNKNOWN if value is None else f"{value:,.0f}".replace("-", "−")


def size(value: Any, digits: int = 2) -> str:
    """A number of any size to a few significant digits: 0.031, 3.1 × 10⁻¹³."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    if int(exponent) in PLAIN:
        decimals = max(digits - 1 - int(exponent), 0)
        return f"{float(f'{mantissa}e{exponent}'):,.{decimals}f}".replace("-", "−")
    return f"{mantissa}{NO_BREAK}×{NO_BREAK}10{superscript(int(exponent))}".replace("-", "−")


def percent(value: Any) -> str:
    """A share as a percentage; one that is not whole is never written as 100%."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if NEARLY_ALL <= value < 1:
        return "> 99.9%"
    if 0 < value < SMALL:
        return f"{size(100 * value, 1)}%"
    return f"{100 * value:.1f}%" if 0 < value < 1 else f"{100 * value:.0f}%"


def duration(seconds: Any) -> str:
    """Seconds, minutes or hours; days and years where it is many of them."""
    if seconds is None:
        return UNKNOWN
    if seconds < SHORTEST:
        return "0 s" if seconds == 0 else f"< {SHORTEST} s"
    if seconds < MINUTE:
        return f"{seconds:.1f} s" if seconds < MINUTE / 6 else f"{seconds:.0f} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.1f} min"
    if seconds < 2 * DAY:
        return f"{seconds / HOUR:.1f} h"
    return f"{seconds / DAY:,.1f} days" if seconds < YEAR else f"{seconds / YEAR:,.1f} years"


def bytes_(value: Any) -> str:
    """A size on disk."""
    if value is None:
        return UNKNOWN
    power = min(int(math.log(max(value, 1), 1000)), len(BYTES) - 1)
    return f"{value / 1000**power:.{1 if power else 0}f} {BYTES[power]}"


def money(value: Any, currency: str = "") -> str:
    """An amount, with at least two digits that say something."""
    if value is None:
        return UNKNOWN
    decimals = 2 if value >= 0.1 or value == 0 else 1 - math.floor(math.log10(value))
    return f"{value:,.{decimals}f} {currency}".strip()


def powers(text: str) -> str:
    """A sentence with its numbers as people read them: 2.0e-13 becomes 2.0 × 10⁻¹³."""
    return SCIENTIFIC.sub(lambda found: size(float(found[0]), _digits_of(found[0])), text)


def _digits_of(number: str) -> int:
    """Significant digits that a number is written with."""
    return sum(character.isdigit() for character in number.partition("e")[0])

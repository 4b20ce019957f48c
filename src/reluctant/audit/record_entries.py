"""`make_record`: the record, part by part, from the findings of an audit."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reluctant._files import as_plain
from reluctant._version import __version__
from reluctant.audit.budget import expected_cost, money
from reluctant.audit.facts import (
    AnswerSpaceFacts,
    AtUseFacts,
    Bounds,
    CertificateFacts,
    FlipFacts,
    FlipTry,
    HeldOut,
    InterfaceFacts,
    LearnedAccuracy,
    NetworkShape,
    NoiseFacts,
    NoiseReadingFacts,
    PartFacts,
    PrecisionFacts,
    RawFacts,
    Recovered,
    RunFacts,
    SpanFacts,
    State,
    TopClasses,
    TrainingFacts,
    VerificationFacts,
    finite,
    mirror,
)
from reluctant.audit.findings import (
    Findings,
    closeness,
    copy_error,
    gives_labels,
    is_trained,
    method_of,
)
from reluctant.audit.record import (
    AuditRecord,
    KnownName,
    LeakKind,
    Pictures,
    Price,
    Queries,
    Repeat,
    SearchPicture,
    StageRows,
    StepFacts,
    Stop,
    Target,
    Versions,
)
from reluctant.audit.steps.probe_steps import first_layer, gradient_from, rounded
from reluctant.audit.verdict import ending_of, judge, smallest_flip
from reluctant.evidence import COPY_DIRECTIONS, OWN_LINK, Measured
from reluctant.extraction.method import Certificate
from reluctant.geometry import LineSearch
from reluctant.interface import Interface
from reluctant.learning.student_losses import HeldOutError
from reluctant.messages import Diagnosis
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.numerics import FloatArray
from reluctant.oracles import Facts
from reluctant.results import Ended, Outcome, Result
from reluctant.span import Span
from reluctant.verification import Verification
from reluctant.verification.label_check import LabelVerification

SMALL_INPUT = 4096  # numbers of an input that is written into the record
ATLAS, NIST, OWASP = "MITRE ATLAS", "NIST AI 100-2", "OWASP Machine Learning Security Top 10"

KNOWN_NAMES = (
    KnownName("AML.T0040", "AI Model Inference API Access", ATLAS),
    KnownName("AML.T0024.002", "Extract AI Model", ATLAS, LeakKind.EXTRACTABLE),
    KnownName("AML.T0043.001", "Black-Box Optimization", ATLAS, LeakKind.FLIPPABLE),
    KnownName("AML.M0002", "Passive AI Output Obfuscation", ATLAS),
    KnownName("AML.M0004", "Restrict Number of AI Model Queries", ATLAS, LeakKind.APPROXIMABLE),
    KnownName("NIST AI 100-2", "Model extraction", NIST, LeakKind.EXTRACTABLE),
    KnownName("ML05:2023", "Model Theft", OWASP, LeakKind.APPROXIMABLE),
)

# Evidence that has fields of its own in the record, or pictures.
TYPED = (
    "health", "verification", "precision", "accuracy", "certificate", "risk", "training", "inside", "answers", "link",
    OWN_LINK, "limits", "reason", "error", "labels", COPY_DIRECTIONS,
)  # fmt: skip


def make_record(audit: Any) -> AuditRecord:
    """The record of an `Audit`."""
    known: Findings = audit.known
    facts, served, health = audit.facts, known.target.served, known.target.health
    return AuditRecord(
        seed=audit.seed,
        ok=audit.ok,
        versions=Versions(__version__, np.__version__, platform.python_version()),
        target=replace(_target(known, facts, audit.name, audit.classes), location=audit.location),
        queries=Queries(
            audit.queries, {name: StageRows(row.asked, row.sent, row.replayed) for name, row in audit.rows.items()}
        ),
        budget=audit.budget,
        verdict=judge(known),
        steps=audit.steps,
        repeat=Repeat(audit.repeat, audit.seed, audit.written.get("record"), audit.written.get("page")),
        price=_price(audit.price, audit.queries),
        stopped=_stop(audit.steps, audit.recorded),
        interface=None if health is None else interface_facts(health),
        served=None if served is health or served is None else interface_facts(served),
        span=None if known.span is None else span_facts(known.span, known),
        answer_space=_answer_space(known),
        extraction=run_facts(known.extraction, known, "extraction"),
        part=None if known.part is None else PartFacts(known.part.neurons, known.part.confirmed, known.part.weights),
        learning=run_facts(known.learning, known, "learning"),
        training=run_facts(known.training, known, "training"),
        flip=_flip(known),
        linearity=known.linearity,
        recovered=_recovered(known, audit.outputs, audit.price, audit.rate),
        expected=None if facts is None else expected_cost(known, facts, audit.price, audit.rate),
        rows_needed=known.needed_rows,
        truth=known.truth,
        defenses=known.sweep,
        pictures=_pictures(known),
        limits=tuple(_limits(known, facts, audit.queries, audit.budget)),
        names=KNOWN_NAMES,
        gates=tuple(audit.gates),
        began=audit.began,
    )


def _target(known: Findings, facts: Facts | None, name: str, classes: tuple[str, ...]) -> Target:
    if facts is None:
        return Target(name)
    found, served, written = known.target, known.target.served, known.target.written
    return Target(
        facts.name, facts.dim, facts.outputs, str(facts.dtype), str(facts.kind), Bounds.of(facts.domain),
        facts.identity, tuple(classes) if classes and not found.without else None, found.link,
        found.link != known.given.link, None if found.reach is None else Bounds.of(found.reach),
        None if known.clipped is None else Bounds.of(known.clipped),
        percent=written is not None and written.percent, among_nan=written is not None and written.among_nan,
        outputs_left_out=found.without, output=known.given.output, noisy=found.noisy,
        may_be_sigmoids=found.may_be_sigmoids,
        may_be_percent=served is not None and served.percent and found.may_be_sigmoids,
        may_be_clipped=found.may_be_clipped, may_be_numbers=known.perhaps_numbers, squashed=found.unexplained,
    )  # fmt: skip


def _answer_space(known: Findings) -> AnswerSpaceFacts | None:
    found = known.answer_space
    return AnswerSpaceFacts(found.rank, found.basis.shape[1], found.margin) if found is not None and found.ok else None


def _price(price: Mapping[str, Any] | None, queries: int) -> Price | None:
    if price is None:
        return None
    return Price(float(price["per thousand"]), str(price.get("currency") or ""), money(queries, dict(price)))


def _stop(steps: Sequence[StepFacts], recorded: bool) -> Stop | None:
    at = next((k for k, step in enumerate(steps) if step.state is State.STOPPED), None)
    return None if at is None else Stop(steps[at].step, at + 1, len(steps), recorded)


def interface_facts(health: Interface) -> InterfaceFacts:
    """The measurements of an interface."""
    return mirror(
        InterfaceFacts,
        health,
        noise=mirror(NoiseFacts, health.noise),
        readings=tuple(mirror(NoiseReadingFacts, each) for each in health.readings),
        refusal=None if health.refusal is None else health.refusal.slug,
        raw=None if health.raw is None else mirror(RawFacts, health.raw),
        top_k=None if health.top_k is None else mirror(TopClasses, health.top_k),
        of_a_link=health.are_of_a_link,
    )


def _ending(run: Ended, known: Findings) -> dict[str, Any]:
    rest = {
        name.replace(" ", "_"): value.to_dict() if hasattr(value, "to_dict") else value
        for name, value in run.evidence.items()
        if name not in TYPED and not isinstance(value, LineSearch)
    }
    return {
        "outcome": run.outcome.slug, "ok": run.ok, "stage": run.stage, "queries": run.queries,
        "diagnosis": ending_of(run, known), "evidence": as_plain(rest),
    }  # fmt: skip


def span_facts(span: Span, known: Findings) -> SpanFacts:
    """What span recovery ended with."""
    measured = Measured.of(span)
    return SpanFacts(
        **_ending(span, known), rank=span.rank, inputs=span.subspace.dim,
        invisible_share=finite(span.subspace.invisible_share), margin=finite(span.margin), angle=finite(span.angle),
        from_labels=measured.from_labels, of_the_copy=measured.copy_directions,
    )  # fmt: skip


def run_facts(run: Result | None, known: Findings, step: str) -> RunFacts | None:
    """How a run that searches for a network ended; None without one."""
    if run is None:
        return None
    measured, network = Measured.of(run), run.network
    accuracy, training = measured.accuracy, measured.training
    return RunFacts(
        **_ending(run, known),
        network=None if network is None else NetworkShape(
            tuple(network.widths), network.parameters, bool(network.skips)
        ),
        verification=_verification(measured.verification),
        precision=None if measured.precision is None else mirror(PrecisionFacts, measured.precision),
        accuracy=None if accuracy is None else mirror(LearnedAccuracy, accuracy),
        held_out=None if measured.held_out is None else _held_out(measured.held_out),
        certificate=None if measured.certificate is None else _certificate(measured.certificate),
        risk=measured.risk,
        training=None if training is None else TrainingFacts(
            tuple(training.hidden), training.rows, training.steps, bool(training.short), training.hurried
        ),
        inside=Bounds.of_box(measured.inside), answers=None if measured.answers is None else measured.answers.value,
        link=measured.link, own_link=measured.own_link,
        timed_out=step in known.timed_out,
    )  # fmt: skip


def _verification(checked: Verification | LabelVerification | None) -> VerificationFacts | None:
    if checked is None:
        return None
    if isinstance(checked, LabelVerification):
        return VerificationFacts(
            checked.ok, checked.points, None, None, checked.tol, finite(checked.boundary_error), checked.share,
            checked.confidence, checked.untested, checked.undecided > 0,
        )  # fmt: skip
    at_use = None if checked.at_use is None else mirror(AtUseFacts, checked.at_use)
    return mirror(VerificationFacts, checked, at_use=at_use)


def _certificate(found: Certificate) -> CertificateFacts:
    largest = finite(found.weight_errors.max()) if found.width else None
    resolution = finite(found.resolution) if found.width else None
    return mirror(CertificateFacts, found, largest_weight_error=largest, resolution=resolution)


def _held_out(measured: HeldOutError) -> HeldOut:
    return mirror(HeldOut, measured, gives_labels=gives_labels(measured), closeness=closeness(measured))


def _flip(known: Findings) -> FlipFacts | None:
    """The smallest flip, with its inputs where they are small; how every try went, and by what."""
    best = smallest_flip(known)
    if best is None:
        return None
    small = len(best.start) <= SMALL_INPUT
    by, before = gradient_from(known)
    sizes = [flip.relative_size for flip in known.flips if flip.ok]
    return FlipFacts(
        **_ending(best, known), size=finite(best.size), relative_size=finite(best.relative_size),
        scaled_size=finite(best.scaled_size), classes=best.classes,
        margins=None if best.margins is None else (finite(best.margins[0]), finite(best.margins[1])),
        threshold=finite(Measured.of(best).threshold),
        start=_own_input(best.start, known) if small else None,
        x=_own_input(best.x, known) if small and best.x is not None else None,
        tries=tuple(mirror(FlipTry, flip, outcome=flip.outcome.slug) for flip in known.flips),
        median_relative_size=finite(np.median(sizes)) if sizes else None,
        by=by, queries_before=before,
    )  # fmt: skip


def _own_input(row: FloatArray, known: Findings) -> tuple[float, ...]:
    """An input in the target's own units."""
    units = known.given.units
    return tuple((row if units is None else units.rows(row)).tolist())


def _recovered(known: Findings, outputs: int, price: Any, rate: float | None) -> Recovered | None:
    """The copy with the link it is written with: a classifier has its classes back."""
    run = known.copy
    if run is None or run.network is None:
        return None
    network, trained = run.as_written(known.written_link), is_trained(run)
    return Recovered(
        method_of(run), run.outcome is Outcome.RECOVERED, network.link, tuple(network.widths),
        bool(network.skips), network.parameters, copy_error(run), run.queries,
        None if trained else run.queries / network.parameters,
        None if trained else run.queries * outputs / network.parameters,
        money(run.queries, price), None if rate is None else run.queries / rate,
    )  # fmt: skip


def _pictures(known: Findings) -> Pictures:
    search = None if known.extraction is None else Measured.of(known.extraction).line_search
    return Pictures(
        known.line, known.plane, first_layer(known.network, known.given.shape), known.errors,
        None if search is None else SearchPicture(
            search.scale, rounded(search.t), tuple(tuple(map(finite, rounded(row))) for row in search.answers),
            tuple(search.round.tolist()), tuple(search.known.tolist()), rounded(search.creases),
            tuple(search.found_in.tolist()),
        ),
    )  # fmt: skip


def _limits(known: Findings, facts: Facts | None, queries: int, budget: int) -> Iterator[Diagnosis]:
    """Assumptions, and what the audit could miss: the range of its queries, its reading of answers, parts left out."""
    if facts is None:
        yield Diagnosis("nothing-asked")
        return
    target = known.target
    inside = None if known.extraction is None else Measured.of(known.extraction).inside
    stayed = None if inside is None else str(inside)
    place = (target.reach or facts.domain).describe()
    yield Diagnosis("asked", {"queries": queries, "budget": budget, "domain": place, "inside": stayed})
    if known.given.units is not None:
        yield Diagnosis("input-units")
    columns, values = known.given.held
    if columns:
        yield Diagnosis("columns-held", {"columns": columns, "values": values, "others": facts.dim})
    whole = known.given.whole_columns
    if whole:
        yield Diagnosis("real-numbers-asked", {"columns": whole, "inputs": facts.dim})
    yield Diagnosis("relu-methods")
    yield Diagnosis("training-not-tried" if known.training is None else "one-recipe")
    yield Diagnosis("no-proof")
    if target.without:
        yield Diagnosis("class-outputs-left-out", {"outputs": target.without})
    if target.reach is not None:
        yield Diagnosis("range-found", {"domain": target.reach.describe()})
    if target.written is not None and target.written.percent:
        yield Diagnosis("in-percent")
    if target.written is not None and target.written.among_nan:
        yield Diagnosis("among-nan")
    if target.linked:
        yield Diagnosis(
            "read-through-link", {"link": target.link, "all": target.refusal is None, "noisy": target.noisy}
        )
    if known.network is not None and known.written_link not in ELEMENTWISE_LINKS:
        yield Diagnosis("first-class-zero")
    for run in (known.span, known.extraction, known.learning, known.training):
        if run is not None:
            measured = Measured.of(run)
            yield from measured.limits.entries
            for found in (measured.certificate, measured.risk):
                yield from () if found is None else found.notes.entries
    yield from (Diagnosis("rows-left-out", {"picture": name, "rows": rows}) for name, rows in known.left_out.items())
    if known.flips:
        yield Diagnosis("one-gradient-step")
    if known.sweep is not None:
        yield Diagnosis("sweep-inputs", {"sampled": known.sweep.inputs.sampled, "inputs": known.sweep.inputs.count})
    if known.truth is not None:
        yield Diagnosis("truth-apart")

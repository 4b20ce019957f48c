"""What can be taken, in words: a copy of the whole, a part, directions, a network trained on the answers."""

from __future__ import annotations

from reluctant.audit.closeness import closeness, is_near
from reluctant.audit.known import Known
from reluctant.audit.recovered import accuracy_of, is_trained, shape_of
from reluctant.interface.diagnoses import class_numbers

__all__ = ["copied", "part_taken", "perhaps_a_copy", "span_confidence", "trained_on", "verified", "where"]

ANOTHER_SEED = "Another seed (--seed) may settle it."
MEASURED_ALONE = "Measured, not verified."
VERIFIED = (
    "High: compared with the target at {0.points:,} new inputs of three sizes, on its creases and beside them. With "
    "{0.confidence:.0%} confidence fewer than {0.share:.1%} of inputs of one size err by more than {0.bound:.1e} of "
    "that deviation."
)
MEASURED = (
    "Measured for the trained network, at inputs that it had not seen. That no closer copy was made is no proof that "
    "none can be."
)
LEFT_OUT = (
    ", and was left out: all that is said is of the other outputs. What it gives away is left open; for that audit it "
    "alone ({})."
)
ALL_LEFT_OUT = (
    ", and were left out: all that is said is of the other outputs. What they give away is left open; for that audit "
    "each alone ({})."
)
NO_COPY = "That no copy was made is no proof that none can be."


def copied(known: Known, can_be_taken: str) -> str:
    """What the copy is, and what it took."""
    run = known.copy
    assert run is not None
    assert run.network is not None
    network, words = run.as_written(known.written_link), accuracy_of(run)["words"]
    copy = f"{shape_of(network)}, {network.parameters:,} parameters, in {run.queries:,} queries"
    if is_trained(run):
        copy = f"by a network of its own, {shape_of(network)}, trained on {run.queries:,} of them"
    return f"{can_be_taken} through this interface: {copy}, {words}.{where(known)}"


def part_taken(known: Known) -> str:
    """What is known of the first layer, where there is no copy of the whole."""
    part, run = known.part, known.extraction
    if part is None or not part.confirmed or run is None:
        return ""
    neurons = "one neuron" if part.confirmed == 1 else f"{part.confirmed:,} neurons"
    return (
        f"A part of the network can be taken: {neurons} of its first layer, {part.weights:,} weights and biases, in "
        f"{run.queries:,} queries; the target bends where they say. "
    )


def trained_on(known: Known) -> str:
    """What a network trained on the answers gives, where it is not close enough to be a copy."""
    run = known.training
    if run is None or run.network is None or run is known.copy:
        return ""
    said, training = str(accuracy_of(run)["words"]), run.evidence.get("training")
    gives = said.replace("with", "gives", 1) if said.startswith("with") else f"comes {said}"
    cut = "; its training was cut short" if training is not None and training.cut else ""
    return f"A network trained on {run.queries:,} answers {gives}{cut}. "


def perhaps_a_copy(known: Known) -> str:
    """Of a trained network that is close enough as measured: what chance leaves open."""
    run = known.training
    found = closeness(run.evidence["accuracy"].to_dict()) if run is not None and is_near(run) else None
    return "" if found is None else f"That may be close enough to be called a copy: {found.lacks}. {ANOTHER_SEED}"


def where(known: Known) -> str:
    """Which outputs were looked at, if not all; where the target was asked, and the copy looked for."""
    return f"{_left_out(known)}{_place(known)}"


def _left_out(known: Known) -> str:
    if not known.without:
        return ""
    left_out = LEFT_OUT if len(known.without) == 1 else ALL_LEFT_OUT
    return f" {class_numbers(known.without)}{left_out.format(', '.join(f'--output {k}' for k in known.without))}"


def _place(known: Known) -> str:
    if known.reach is not None:
        place = known.reach.describe()
        return f" It does not answer far from the origin: it was asked in {place}, and what is said holds there."
    if known.inside is not None:
        return f" Far out answers say nothing: the copy was looked for in {known.inside}{_beyond(known)}"
    return ""


def _beyond(known: Known) -> str:
    checked = None if known.copy is None else known.copy.evidence.get("verification")
    beyond = None if checked is None else checked.at_use
    return ", and holds there." if beyond is None else f", and holds there. {beyond}"


def verified(known: Known) -> str:
    """How the copy was checked; what was seen of its error stands in the sentence."""
    run = known.copy
    assert run is not None
    checked, accuracy, risk = (run.evidence.get(name) for name in ("verification", "accuracy", "risk"))
    said = [f"{MEASURED_ALONE} {accuracy}" if is_trained(run) else accuracy, risk]
    if checked is not None:
        said.insert(
            0, VERIFIED.format(checked) if checked.ok else f"Low: it was compared at {checked.points:,} inputs."
        )
    return " ".join(str(part) for part in said if part) or MEASURED_ALONE


OF_LABELS = (
    "High for the directions that labels depend on, and for no others: long steps along those changed no label at the "
    "points of the boundary that were checked."
)


def span_confidence(known: Known) -> str:
    """How sure directions are, where they are all that was taken."""
    span = known.span
    assert span is not None
    said = (
        "High for the directions: long steps along all others changed no answer, and the weakest of them stands out "
        f"clearly (a margin of {span.margin:.1e}, where 1 would be no difference)."
    )
    if "labels" in span.evidence:
        said = f"{OF_LABELS} {span.evidence.get('limits', '')}".strip()
    return f"{said} {MEASURED if trained_on(known) else NO_COPY}"

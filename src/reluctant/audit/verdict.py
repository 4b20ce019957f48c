"""The verdict: what leaks, in one sentence, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reluctant.adversarial import Flip
from reluctant.audit.clipping import clipped_words
from reluctant.audit.closeness import closeness, is_near
from reluctant.audit.known import OF_CREASES, Known
from reluctant.audit.owner import (
    GIVE_DOMAIN,
    GIVE_PERCENT,
    GIVE_SIGMOID,
    UNEXPLAINED,
    coarse,
    happened,
    is_unlucky,
    reason,
)
from reluctant.audit.recovered import accuracy_of, is_trained, shape_of
from reluctant.audit.stopped import STOPS, is_stopped, left_by_a_stop, listed
from reluctant.results import Ended, Outcome, Result

__all__ = ["LEAKS", "NEEDS", "SMALL_FLIP", "Verdict", "judge", "smallest_flip"]

LEAKS = ("extractable", "approximable", "span", "flippable")
SMALL_FLIP = 0.1  # of the input's norm: a step this small that flips the target counts as a leak

# The steps that must have come to their end before a leak that was not found may be called absent.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "extractable": ("extraction",),
    "approximable": ("extraction", "learning", "training"),
    "span": ("span",),
    "flippable": ("flip",),
}


@dataclass(frozen=True)
class Verdict:
    """How much leaks: level "exact", "approximate", "span", "nothing" or "unknown".

    leaks: those that were found; unsettled: those that were neither found nor looked for to the end.
    """

    level: str
    sentence: str
    confidence: str
    leaks: tuple[str, ...]
    unsettled: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "level": self.level,
            "sentence": self.sentence,
            "confidence": self.confidence,
            "leaks": list(self.leaks),
            "unsettled": list(self.unsettled),
        }


def judge(known: Known) -> Verdict:
    """From what the steps found."""
    leaks = tuple(name for name, leaking in zip(LEAKS, _leaking(known), strict=True) if leaking)
    level = next((level for leak, level in LEVELS.items() if leak in leaks), None)
    unsettled = tuple(leak for leak in LEAKS if leak not in leaks and _open_steps(known, leak))
    if level is None:
        level = "unknown" if known.health is None or set(unsettled) & set(LEVELS) else "nothing"
    return Verdict(level, _sentence(known, level), _confidence(known, level), leaks, unsettled)


# What a leak makes of the level, the worst first.
LEVELS = {"extractable": "exact", "approximable": "approximate", "span": "span"}


def _open_steps(known: Known, leak: str) -> list[str]:
    """The steps that leave open whether this leaks."""
    return [step for step in NEEDS[leak] if not known.settled(step)]


def _sentence(known: Known, level: str) -> str:
    if level == "exact":
        return _copied(known, "The whole network can be taken")
    if level == "approximate":
        trained = known.copy is known.training
        said = _copied(known, f"A close copy of the network can be {'trained on its answers' if trained else 'taken'}")
        more = [*([f"{RAN_OUT} {known.needed}"] if known.needed else []), *_unlucky(known), *_elsewhere(known)]
        return " ".join([said, *more])
    if level == "span":
        return _span_sentence(known)
    if "open" in known.said:
        return "The target could not be opened: nothing is known of it."
    known_of_it = f"{_part(known)}{_trained(known)}"
    said = "No closer copy was made." if _trained(known) else "No copy of the network was made."
    if level == "unknown":
        said = f"What {'else ' if known_of_it else ''}can be taken could not be settled."
    return f"{known_of_it}{said} {_why_not(known)}{_where(known)}".strip()


def _confidence(known: Known, level: str) -> str:
    if level in ("exact", "approximate"):
        return _verified(known)
    if "open" in known.said:
        return known.said["open"]
    if level == "span":
        return _span_confidence(known)
    if level == "unknown":
        unsettled = CUT_SHORT if is_stopped(known) else UNSETTLED
        first = OF_THE_PART if _part(known) else OF_THE_STUDENT if _trained(known) else ""
        return f"{first} {unsettled}".strip()
    return NO_PROOF


RAN_OUT = "Exact extraction ran out of rows."
OF_THE_PART = "High for the part: the target was seen to bend on its creases, and not beside them. For the rest:"
OF_THE_STUDENT = "Measured for the trained network, at inputs that it had not seen. For the rest:"
UNSETTLED = "None: the audit could not look far enough. Mend what stopped it, or raise the budget, and run it again."
CUT_SHORT = "None: the audit was stopped before it could look far enough."
LONGEST_QUOTE = 300  # characters of what a target says
NO_PROOF = (
    "Low: these methods did not succeed with this budget; that is no proof that others would not, or with more queries."
)


def _leaking(known: Known) -> tuple[bool, ...]:
    copy, flip = known.copy, smallest_flip(known)
    return (
        copy is not None and copy.outcome is Outcome.RECOVERED,
        copy is not None,
        known.span is not None and known.span.outcome is Outcome.SPAN_RECOVERED,
        flip is not None and flip.ok and flip.relative_size <= SMALL_FLIP,
    )


def smallest_flip(known: Known) -> Flip | None:
    """The flip with the smallest step; one that failed if none succeeded."""
    flips = [flip for flip in known.flips if flip.ok] or list(known.flips)
    return min(flips, key=lambda flip: flip.relative_size if flip.ok else 0.0, default=None)


def _copied(known: Known, can_be_taken: str) -> str:
    run = known.copy
    assert run is not None
    assert run.network is not None
    network, words = run.as_written(known.written_link), accuracy_of(run)["words"]
    copy = f"{shape_of(network)}, {network.parameters:,} parameters, in {run.queries:,} queries"
    if is_trained(run):
        copy = f"by a network of its own, {shape_of(network)}, trained on {run.queries:,} of them"
    return f"{can_be_taken} through this interface: {copy}, {words}.{_where(known)}"


def _part(known: Known) -> str:
    """What is known of the first layer, where there is no copy of the whole."""
    part, run = known.part, known.extraction
    if part is None or not part.confirmed or run is None:
        return ""
    neurons = "one neuron" if part.confirmed == 1 else f"{part.confirmed:,} neurons"
    return (
        f"A part of the network can be taken: {neurons} of its first layer, {part.weights:,} weights and biases, in "
        f"{run.queries:,} queries; the target bends where they say. "
    )


def _trained(known: Known) -> str:
    """What a network trained on the answers gives, where it is not close enough to be a copy."""
    run = known.training
    if run is None or run.network is None or run is known.copy:
        return ""
    said, training = str(accuracy_of(run)["words"]), run.evidence.get("training")
    gives = said.replace("with", "gives", 1) if said.startswith("with") else f"comes {said}"
    cut = "; its training was cut short" if training is not None and training.cut else ""
    return f"A network trained on {run.queries:,} answers {gives}{cut}. "


def _perhaps(known: Known) -> str:
    """Of a trained network that is close enough as measured: what chance leaves open."""
    run = known.training
    found = closeness(run.evidence["accuracy"].to_dict()) if run is not None and is_near(run) else None
    return "" if found is None else f"That may be close enough to be called a copy: {found.lacks}. {ANOTHER_SEED}"


ANOTHER_SEED = "Another seed (--seed) may settle it."


def _where(known: Known) -> str:
    """Where the target was asked, and the copy looked for, if not everywhere."""
    if known.reach is not None:
        place = known.reach.describe()
        return f" It does not answer far from the origin: it was asked in {place}, and what is said holds there."
    if known.inside is not None:
        return f" Far out probabilities say nothing: the copy was looked for in {known.inside}, and holds there."
    return ""


def _verified(known: Known) -> str:
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


MEASURED_ALONE = "Measured, not verified."
VERIFIED = (
    "High: compared with the target at {0.points:,} new inputs of three sizes, on its creases and beside them. With "
    "{0.confidence:.0%} confidence fewer than {0.share:.1%} of inputs of one size err by more than {0.tol:.1e} of that "
    "deviation."
)


def _span_sentence(known: Known) -> str:
    assert known.span is not None
    trained = _trained(known)
    no_copy = f". {trained}No closer copy was made." if trained else "; no copy of the network was made."
    return (
        f"The {known.span.rank} of {known.span.subspace.dim} directions that the network looks at can be taken in "
        f"{known.span.queries:,} queries{no_copy} {_part(known)}{_why_not(known)}{_where(known)}"
    ).strip()


def _span_confidence(known: Known) -> str:
    assert known.span is not None
    return (
        "High for the directions: long steps along all others changed no answer, and the weakest of them stands out "
        f"clearly (a margin of {known.span.margin:.1e}, where 1 would be no difference). "
        f"{MEASURED if _trained(known) else NO_COPY}"
    )


MEASURED = (
    "Measured for the trained network, at inputs that it had not seen. That no closer copy was made is no proof that "
    "none can be."
)
NO_COPY = "That no copy was made is no proof that none can be."


def _why_not(known: Known) -> str:
    """Why there is no copy, and what else was left open."""
    stopped = left_by_a_stop(known, REBUILDING)
    if known.health is None:
        return stopped or known.said.get("health", "")
    told = [step for step in REBUILDING if known.states.get(step) not in STOPS and step not in known.short_of_rows]
    ended = [_how_it_ended(known, step) for step in ("extraction", "learning", "training") if step in told]
    ended += [_of_span(known, ended) for step in _open_steps(known, "span") if step in told]
    ended += [f"The rows for {listed(known.short_of_rows)} ran out."] if known.short_of_rows else []
    more = (stopped, known.needed, *_elsewhere(known))
    return " ".join(dict.fromkeys(said for said in (*ended, *more) if said))


def _unlucky(known: Known) -> list[str]:
    """Beside a close copy: whether there is an exact one."""
    run = known.extraction
    return [coarse(run)] if run is not None and is_unlucky(run) else []


def _elsewhere(known: Known) -> list[str]:
    """Where more would be seen: inside the range of clipped inputs, behind a link that nobody gave."""
    clipped = [] if known.clipped is None else [clipped_words(known.clipped)]
    percent = known.health is not None and known.health.percent
    give = GIVE_PERCENT if percent else GIVE_SIGMOID
    return [*clipped, *([give] if known.unread else [UNEXPLAINED] if known.unexplained else [])]


def _of_span(known: Known, before: list[str]) -> str:
    """Why directions are open: under their name, where no other step has the same reason."""
    said = _how_it_ended(known, "span")
    own = known.span is not None and bool(said) and said not in before
    return f"Directions it looks at: {said}" if own else said


REBUILDING = ("health", "span", "extraction", "learning", "training")  # steps that say what can be taken


def _more(known: Known, run: Ended) -> str:
    """What the target said itself, or what would help."""
    if run.outcome is Outcome.NOT_ACCURATE and isinstance(run, Result):
        typical = accuracy_of(run)["typical"]
        return "" if typical is None else f" The best one is off by {typical:.1e} of the output's deviation, rms."
    if run.outcome is Outcome.TARGET_FAILED and run.evidence.get("error"):
        return f" {str(run.evidence['error'])[:LONGEST_QUOTE]}"
    return f" {GIVE_DOMAIN}" if run.outcome is Outcome.OUT_OF_REACH and not known.linked else ""


def _how_it_ended(known: Known, step: str) -> str:
    if step == "training" and _trained(known):
        return _perhaps(known)  # the rest is told before
    run: Ended | None = {
        "extraction": known.extraction, "learning": known.learning, "training": known.training, "span": known.span,
    }[step]  # fmt: skip
    if known.clipped is not None and step in OF_CREASES:
        return ""  # for a reason that is told of all of them
    if step in known.timed_out:
        return f"The time for {step} ran out."
    if run is not None:
        told = run.outcome is Outcome.PARTIAL and _part(known)
        said = coarse(run, known.health) or happened(run.outcome, saturates=known.linked)
        return "" if told else f"{said}{_more(known, run)}"
    if known.health is not None and known.refusal is not None:
        return reason(known.health, saturates=known.linked)
    if known.settled(step):
        return known.said.get(step, "") if step == "extraction" else ""
    return f"{step.capitalize()} did not come to its end: {known.said.get(step) or 'it was not tried.'}"

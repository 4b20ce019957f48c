"""The verdict as facts: which leaks there are, what stays open, and why.

Reasons are diagnoses: slugs with fields and remedies. Remedies are for the one who audits: nobody is advised to ask for
values instead of labels. The text of every slug is the report's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reluctant.adversarial import Flip
from reluctant.audit.facts import State
from reluctant.audit.findings import OF_CREASES, Findings, closeness, copy_error, falls_short, is_near, is_unlucky
from reluctant.audit.record import LEAKS, Confidence, LeakKind, Level, Reason, VerdictFacts
from reluctant.domains import Domain
from reluctant.errors import ReluctantError
from reluctant.evidence import Measured
from reluctant.interface import Interface
from reluctant.interface.diagnoses import NOISIEST_READ, digits_limit, labels_slug, steps_slug
from reluctant.interface.kinds import IntegerKind
from reluctant.interface.noise import ENOUGH_DECIMALS
from reluctant.messages import Diagnosis, Remedy
from reluctant.oracles import Kind
from reluctant.results import Ended, Outcome, Result

SMALL_FLIP = 0.1  # of the input's norm: a step this small that flips the target counts as a leak

# The steps that must have come to their end before a leak that was not found may be called absent.
NEEDS: Mapping[str, tuple[str, ...]] = {
    LeakKind.EXTRACTABLE: ("extraction",),
    LeakKind.APPROXIMABLE: ("extraction", "learning", "training"),
    LeakKind.SPAN: ("span",),
    LeakKind.FLIPPABLE: ("flip",),
}

# What a leak makes of the level, the worst first.
LEVELS = {LeakKind.EXTRACTABLE: Level.EXACT, LeakKind.APPROXIMABLE: Level.APPROXIMATE, LeakKind.SPAN: Level.SPAN}


def judge(known: Findings) -> VerdictFacts:
    """The leaks, from the findings of the steps."""
    copy, flip = known.copy, smallest_flip(known)
    leaking = {
        LeakKind.EXTRACTABLE: copy is not None and copy.outcome is Outcome.RECOVERED,
        LeakKind.APPROXIMABLE: copy is not None,
        LeakKind.SPAN: known.span is not None and known.span.outcome is Outcome.SPAN_RECOVERED,
        LeakKind.FLIPPABLE: flip is not None and flip.ok and flip.relative_size <= SMALL_FLIP,
    }
    leaks = tuple(leak for leak in LEAKS if leaking[leak])
    # With the number of a class left out, nothing was looked for to the end.
    without = known.target.without
    unsettled = tuple(leak for leak in LEAKS if not leaking[leak] and (without or _open_steps(known, leak)))
    level = next((level for leak, level in LEVELS.items() if leaking[leak]), None)
    if level is None:
        level = Level.UNKNOWN if known.target.health is None or set(unsettled) & set(LEVELS) else Level.NOTHING
    return VerdictFacts(level, _rests_on(known, level), leaks, unsettled, _copy_reasons(known, level))


def _open_steps(known: Findings, leak: LeakKind) -> list[str]:
    """The steps that leave open whether this leaks."""
    # One output had the same sign at every input, and none flipped: another threshold may be what decides.
    one_sided = {Measured.of(flip).above for flip in known.flips if not flip.ok} in ({True}, {False})
    return [step for step in NEEDS[leak] if not known.settled(step) or (step == "flip" and one_sided)]


def smallest_flip(known: Findings) -> Flip | None:
    """The flip with the smallest step; one that failed if none succeeded."""
    flips = [flip for flip in known.flips if flip.ok] or list(known.flips)
    return min(flips, key=lambda flip: flip.relative_size if flip.ok else 0.0, default=None)


def _rests_on(known: Findings, level: Level) -> Confidence:
    if level in (Level.EXACT, Level.APPROXIMATE):
        checked = None if known.copy is None else Measured.of(known.copy).verification
        if checked is None:
            return Confidence.MEASURED
        return Confidence.VERIFIED if checked.ok else Confidence.DISPUTED
    if "open" in known.ended:
        return Confidence.NOT_OPENED
    if level is Level.SPAN:
        of_labels = known.span is not None and Measured.of(known.span).from_labels
        return Confidence.LABEL_DIRECTIONS if of_labels else Confidence.DIRECTIONS
    if level is Level.UNKNOWN:
        return Confidence.STOPPED if State.STOPPED in known.states.values() else Confidence.UNSETTLED
    return Confidence.NO_PROOF


LONGEST_QUOTE = 300  # characters of what a target says
COPY_STEPS = ("health", "span", "extraction", "learning", "training")  # steps on the way to a copy
STOPS = (State.STOPPED, State.NOT_BEGUN)
OF_DIGITS = (Outcome.LOW_PRECISION, Outcome.RANK_UNCLEAR)  # outcomes that more digits would change

SATURATING = (Outcome.OUT_OF_REACH, Outcome.NON_FINITE)  # where a link reads answers, it is their values that end

ANOTHER_SEED = Remedy("another-seed", "audit", {"rng": None})
GIVE_DOMAIN = Remedy("give-domain", "audit", {"domain": None})
GIVE_INPUTS = Remedy("give-inputs", "audit", {"inputs": None})
ROWS_OF_USE = Remedy("rows-of-use", "audit", {"inputs": None})
MORE_BUDGET = Remedy("more-budget", "audit", {"budget": None})
READ_LINK = Remedy("read-link", "audit", {"link": None})
MORE_DIGITS = Remedy("more-digits", "audit", {"precision": "float64"})

REMEDIES: dict[Outcome, tuple[Remedy, ...]] = {
    Outcome.OUT_OF_BUDGET: (MORE_BUDGET,),
    Outcome.UNVERIFIED: (ANOTHER_SEED,),
    Outcome.SPAN_PARTIAL: (ANOTHER_SEED, GIVE_DOMAIN),
    Outcome.CONSTANT: (GIVE_DOMAIN, GIVE_INPUTS),
    Outcome.ONE_LABEL: (GIVE_DOMAIN,),
    Outcome.NON_FINITE: (GIVE_DOMAIN,),
    Outcome.OUT_OF_REACH: (GIVE_DOMAIN, GIVE_INPUTS),
    Outcome.NOT_PIECEWISE_LINEAR: (READ_LINK,),
    Outcome.WRONG_LINK: (READ_LINK,),
}


def ending_of(run: Ended, known: Findings) -> Diagnosis:
    """How the method of a step ended, for the owner of the model."""
    measured = Measured.of(run)
    if measured.training is not None:
        return _of_training(run)
    if measured.copy_directions:
        return Diagnosis("span-with-copy", {"directions": measured.copy_directions})
    health = measured.health
    said = _of_few_digits(run, known.target.health) or _of_outcome(run, known)
    more_digits = run.outcome in OF_DIGITS and health is not None and health.more_digits
    return Diagnosis(said.slug, said.fields, (*said.remedies, MORE_DIGITS)) if more_digits else said


def _of_training(run: Ended) -> Diagnosis:
    """Whether a network trained on the answers is a copy."""
    if run.outcome is Outcome.LEARNED:
        return Diagnosis("trained-copy")
    if run.outcome is Outcome.NOT_ACCURATE and is_near(run):
        measured = Measured.of(run).held_out
        found = None if measured is None else closeness(measured)
        assert found is not None
        fields = {"seen": found.seen, "most": found.most, "allowed": found.allowed, "labels": found.labels}
        fields |= {} if found.alone is None else {"alone": found.alone}
        return Diagnosis("trained-perhaps-a-copy", fields, (ANOTHER_SEED,))
    if run.outcome is Outcome.NOT_ACCURATE:
        return Diagnosis("trained-short-of-a-copy" if falls_short(run) else "trained-no-copy")
    if run.outcome is Outcome.OUT_OF_BUDGET:
        return Diagnosis("trained-on-fewer-rows", remedies=(MORE_BUDGET,))
    return Diagnosis(run.outcome.slug)


def _of_outcome(run: Ended, known: Findings) -> Diagnosis:
    """The outcome itself, with what the target said or how far off the best network is."""
    if known.target.of_labels and run is known.extraction and run.reason is not None:
        return Diagnosis(run.reason.slug, run.reason.fields)
    saturates = known.target.linked and run.outcome in SATURATING
    fields: dict[str, Any] = {"saturates": True} if saturates else {}
    typical = copy_error(run).typical if isinstance(run, Result) else None
    if run.outcome is Outcome.NOT_ACCURATE and typical is not None:
        fields["typical_error"] = typical
    if run.outcome is Outcome.TARGET_FAILED and run.error:
        fields["message"] = run.error[:LONGEST_QUOTE]
    return Diagnosis(run.outcome.slug, fields, () if saturates else REMEDIES.get(run.outcome, ()))


def _of_few_digits(run: Ended, interface: Interface | None) -> Diagnosis | None:
    """Why answers with few digits gave nothing, refused or tried; None where it was not that.

    interface: its numbers are given where it is refused for the same, so that every step gives the same ones.
    """
    if is_unlucky(run):
        return Diagnosis("few-digits-in-vain", remedies=(ANOTHER_SEED,))
    health = Measured.of(run).health
    if run.outcome is Outcome.TOO_NOISY and health is not None:
        refused = interface is not None and interface.refusal is Outcome.TOO_NOISY
        return _too_much_noise(interface if interface is not None and refused else health)
    if run.outcome is not Outcome.LOW_PRECISION or health is None:
        return None
    if health.raw is not None and health.raw.too_coarse:
        return _unreadable(health.raw.link, health.raw.decimals, health.raw.number_format)
    return Diagnosis("too-few-digits", digits_limit(health) | _noise_inside_bounds(health))


def _unreadable(link: str | None, decimals: int | None, number_format: str) -> Diagnosis:
    return Diagnosis("values-unreadable", {"link": link, "decimals": decimals, "number_format": number_format})


def _too_much_noise(health: Interface) -> Diagnosis | None:
    """What hides the structure of answers: noise, or few decimals; None where it is neither."""
    if not health.deterministic:
        return Diagnosis("answers-too-noisy", {"noise": health.fresh_noise})
    return None if health.decimals is None else Diagnosis("answers-too-coarse", {"decimals": health.decimals})


def _noise_inside_bounds(health: Interface) -> dict[str, Any]:
    """Inside bounds: how much noise lines are read with, and how much there is, both of the answers' deviation."""
    noise = health.noise.at(health.spread) / health.spread if health.spread > 0 else 0.0
    if health.largest_scale is not None or noise <= NOISIEST_READ:
        return {}
    return {"most_noise": NOISIEST_READ, "relative_noise": noise}


def interface_reason(health: Interface, *, saturates: bool = False) -> Diagnosis | None:
    """Why an interface is refused; None where it is not."""
    refusal = health.refusal
    if refusal is None:
        return None
    if refusal is Outcome.PIECEWISE_CONSTANT and health.answers is Kind.LABELS:
        return Diagnosis(labels_slug(health))
    if health.step_function:
        return Diagnosis(steps_slug(health))
    if refusal is Outcome.CONSTANT:
        slug = "same-near" if health.varies_far_out else "all-the-same"
        return Diagnosis(slug, remedies=(GIVE_DOMAIN, GIVE_INPUTS))
    of_a_link = refusal is Outcome.NOT_PIECEWISE_LINEAR and health.are_of_a_link
    if of_a_link and health.decimals is not None and health.decimals < ENOUGH_DECIMALS:
        return _unreadable("tanh" if health.tanh else None, health.decimals, health.number_format)
    noisy = _too_much_noise(health) if refusal is Outcome.TOO_NOISY else None
    return noisy or Diagnosis(refusal.slug, {"saturates": True} if saturates and refusal in SATURATING else {})


def clipped_inputs(box: Domain) -> Diagnosis:
    """Inputs that the target clips: inside their bounds there is more to find."""
    low, high = float(box.low), float(box.high)
    return Diagnosis(
        "clipped-inputs", {"low": low, "high": high}, (Remedy("give-domain", "audit", {"domain": (low, high)}),)
    )


def error_diagnosis(error: Exception) -> Diagnosis:
    """The error of a failed step: the slug of an error of this package, or the type of any other, and what it says."""
    slug = error.slug if isinstance(error, ReluctantError) else type(error).__name__
    return Diagnosis("step-failed", {"error": slug, "message": str(error)})


def _copy_reasons(known: Findings, level: Level) -> tuple[Reason, ...]:
    """Why there is no copy; beside a close one, why there is no exact one."""
    found: list[Reason] = []
    if level is Level.EXACT or "open" in known.ended:
        return ()
    if level is Level.APPROXIMATE:
        run = known.extraction
        found += (
            [Reason(Diagnosis("rows-ran-out", {"steps": ("extraction",)}), "extraction")] if known.needed_rows else []
        )
        few = None if run is None or run.outcome is not Outcome.LOW_PRECISION else _of_few_digits(run, None)
        found += [] if few is None else [Reason(few, "extraction")]
    else:
        found += [*map(Reason, _elsewhere_by_columns(known)), *_why_not(known)]
    found += [Reason(each) for each in _elsewhere(known)]
    said = [reason.diagnosis for reason in found]  # a reason that several steps have is given once
    return tuple(reason for k, reason in enumerate(found) if reason.diagnosis not in said[:k])


def _why_not(known: Findings) -> list[Reason]:
    stopped = [
        Reason(Diagnosis(slug, {"steps": steps}))
        for slug, state in (("steps-broken-off", State.STOPPED), ("steps-not-begun", State.NOT_BEGUN))
        if (steps := tuple(step for step in COPY_STEPS if known.states.get(step) is state))
    ]
    if known.target.health is None:
        failed = known.ended.get("health")
        return stopped or ([] if failed is None else [Reason(failed, "health")])
    ended = [step for step in COPY_STEPS if known.states.get(step) not in STOPS and step not in known.short_of_rows]
    asked = ["extraction", "learning", "training", *_open_steps(known, LeakKind.SPAN)]
    found = [Reason(said, step) for step in asked if step in ended and (said := _how_it_ended(known, step)) is not None]
    short = Diagnosis("rows-ran-out", {"steps": known.short_of_rows}, (MORE_BUDGET,))
    return [*found, *([Reason(short)] if known.short_of_rows else []), *stopped]


def _how_it_ended(known: Findings, step: str) -> Diagnosis | None:
    run = known.run(step)
    if step == "training" and isinstance(run, Result) and run.network is not None and run is not known.copy:
        return _of_training(run) if is_near(run) or falls_short(run) else None  # the rest is said of the network itself
    if known.clipped is not None and step in OF_CREASES:
        return None  # for a reason that is given for all of them
    if step in known.timed_out:
        return Diagnosis("time-ran-out", {"step": step})
    if run is not None:
        part = known.part is not None and known.part.confirmed > 0
        if run.outcome is Outcome.PARTIAL and part:
            return None
        return _of_few_digits(run, known.target.health) or _of_outcome(run, known)
    target = known.target
    if target.health is not None and target.refusal is not None:
        if known.changes:
            return Diagnosis("rare-labels", remedies=(ANOTHER_SEED, GIVE_DOMAIN))
        if target.certain:
            return None  # for a reason of its own
        return interface_reason(target.health, saturates=target.linked)
    ended = known.ended.get(step)
    if known.settled(step):
        return ended if step == "extraction" else None
    why, remedies = (None, ()) if ended is None else (ended.to_dict(), ended.remedies)
    return Diagnosis("step-not-ended", {"step": step, "why": why}, remedies)


def _elsewhere_by_columns(known: Findings) -> Iterator[Diagnosis]:
    """The signs that typical inputs lie elsewhere, if the user gave none: only there more would be seen."""
    shown = None if known.extraction is None else Measured.of(known.extraction).elsewhere
    if not known.given.sampled:
        return
    if shown is not None:
        yield Diagnosis(shown.slug, shown.fields, (ROWS_OF_USE,))
    elif known.target.certain:
        yield Diagnosis("certain-near-origin", remedies=(ROWS_OF_USE,))


def _elsewhere(known: Findings) -> Iterator[Diagnosis]:
    """Where more would be seen: inside the range of clipped inputs, behind a link that nobody gave."""
    target, health = known.target, known.target.health
    if known.clipped is not None:
        yield clipped_inputs(known.clipped)
    elif target.may_be_clipped:
        yield Diagnosis("may-be-clipped", remedies=(GIVE_DOMAIN,))
    if known.perhaps_numbers:
        yield Diagnosis("rounded-numbers" if known.whole is IntegerKind.SCORES else "maybe-rounded-numbers")
    if target.unread:
        percent = health is not None and health.percent and not target.before_a_tanh
        options: dict[str, Any] = {"link": "tanh" if target.before_a_tanh else "sigmoid"}
        options |= {"percent": True} if percent else {}
        yield Diagnosis("unread-link", dict(options), (Remedy("read-link", "audit", options),))
    elif target.unexplained:
        ends = health is not None and health.constant_beyond is not None
        yield Diagnosis("squashed-far-out" if ends else "curved-inside", remedies=(READ_LINK,) if ends else ())

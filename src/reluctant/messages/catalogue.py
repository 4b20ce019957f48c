"""The one catalogue of text: what each diagnosis says, and what each remedy is for.

Entries are plain English, active voice, one idea a sentence. A text is a template over the fields of its diagnosis.
The text of a remedy has `{call}`, which the edge fills with a Python call, a command line or a form for the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reluctant.messages.diagnosis import Diagnosis, Remedy

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["OUTCOMES", "PURPOSES", "TEXTS", "Entry", "happened", "of_outcome", "render"]


@dataclass(frozen=True)
class Entry:
    """The text of one slug.

    says: what happened, a template over the fields. hint: advice that no call expresses. more: what the page of
    messages adds. remedies: what to try where nothing more exact is known. example: fields that the page shows.
    """

    says: str
    hint: str = ""
    more: str = ""
    remedies: tuple[Remedy, ...] = ()
    example: Mapping[str, Any] | None = None


TRAIN = Remedy("train", "train")
TRAIN_WITHOUT_LINK = Remedy("train", "train", {"link": "identity"})
SPAN_FROM_LABELS = Remedy("span-from-labels", "span", {"labels": True})
FLOAT64 = Remedy("more-digits", "open", {"precision": "float64"})
GIVE_DOMAIN = Remedy("give-domain", "open", {"domain": None})
TARGET = {"what": "target"}  # or the network that stands for it

OUTCOMES: Mapping[str, Entry] = {
    "recovered": Entry("The network was recovered and passed verification."),
    "learned": Entry("A network was learned to the accuracy asked for."),
    "not-accurate-enough": Entry(
        "No network reached the accuracy asked for. The best one is kept, with its error.",
        "More rows may help. More digits may help where the target answers values or probabilities.",
        "Of labels, one in a hundred may differ: the share of equal labels is all that can be measured.",
        (Remedy("larger-error", "learn", {"eps": None}),),
    ),
    "unverified": Entry(
        "A network was found, but it disagrees with the target at some of the points checked.",
        "The evidence says which check failed.",
        remedies=(
            Remedy("another-seed", "extract", {"rng": None}),
            Remedy("more-attempts", "extract", {"attempts": None}),
        ),
    ),
    "partial": Entry(
        "Only a part of the network was recovered.",
        "It is probably deeper or wider than the method can follow, or has neurons too close to each other. "
        "The evidence lists what failed.",
        "If the target clips its inputs to a range, `extract` and `learn` name that range.",
    ),
    "span-recovered": Entry(
        "Every direction that changes the answers was found: long steps along all others change nothing.",
        more="The margin says how clear the rank is.",
    ),
    "full-rank": Entry(
        "Every direction of the input changes the answers: no part of the input is invisible.",
        more="There is no null space, so inputs cannot be obfuscated.",
    ),
    "span-partial": Entry(
        "Some directions that change the answers are missing, or some that were found do not change them.",
        "Nothing here was verified. Answers with more digits may help.",
        "From values, gradients at random inputs are only known to bring half of the directions (Theorem 3.4 of the "
        "span paper). From labels, a crease or flicker can look like a direction.",
        (Remedy("another-seed", "span", {"rng": None}), Remedy("own-inputs", "span", {"inputs": None})),
    ),
    "rank-unclear": Entry(
        "The number of directions that change the answers is unclear: noise hides the weakest of them.",
        "Answers with more digits may help.",
        remedies=(FLOAT64,),
    ),
    "one-label": Entry(
        "The target gave the same label everywhere it was asked.",
        more="Labels that do not change say nothing about directions.",
        remedies=(
            GIVE_DOMAIN,
            Remedy("own-inputs", "span", {"inputs": None}),
            Remedy("threshold", "span", {"threshold": None}),
        ),
    ),
    "constant": Entry(
        "The target gave the same answer everywhere it was asked.",
        "Its inputs may belong to another range.",
        remedies=(GIVE_DOMAIN,),
    ),
    "not-piecewise-linear": Entry(
        "The answers are curved at small scale, as probabilities are: they are not the values of a ReLU network.",
        more="Rounding hides the curves of probabilities. Their sums and their log-odds still give them away, and the "
        "diagnosis then names the link and the digits.",
        remedies=(
            Remedy("train", "train", {"link": "identity", "percent": False}),
            Remedy("read-any-link", "extract", {"link": None}),
            SPAN_FROM_LABELS,
        ),
    ),
    "piecewise-constant": Entry(
        "The answers do not change under small steps: they are labels, or rounded so coarsely that they look like it.",
        "They hold no weights and no gradients.",
        "The diagnosis says whether they are labels, whole numbers, or steps of a tree.",
        (TRAIN, SPAN_FROM_LABELS),
    ),
    "low-precision": Entry(
        "The answers have too few digits to recover the network, also for the method for few digits.",
        more="The diagnosis names what limits the digits: decimals, noise, float32 or float16.",
        remedies=(FLOAT64,),
    ),
    "out-of-reach": Entry(
        "The method looks far from the origin, and there the target gives no answers that it can read.",
        "The range of its inputs may end before, its answers may saturate, or it may leave some out.",
        "Behind a link, `extract` looks inside a box in which answers do not saturate, if they have all their digits.",
        (TRAIN_WITHOUT_LINK, GIVE_DOMAIN, SPAN_FROM_LABELS),
    ),
    "too-noisy": Entry(
        "The answers are too noisy or too coarse to show structure, or labels change when asked for again.",
        "Average repeated answers if they are noisy. Answer with more digits if they are rounded.",
    ),
    "non-finite": Entry(
        "The target answered NaN or inf.",
        remedies=(GIVE_DOMAIN,),
    ),
    "out-of-budget": Entry("The query budget ran out.", remedies=(Remedy("more-budget", "open", {"budget": None}),)),
    "target-failed": Entry(
        "The target stopped answering properly.",
        "The evidence has its error. With a transcript, another run goes on where this one stopped.",
        remedies=(GIVE_DOMAIN, Remedy("fewer-rows", "open", {"batch": None})),
    ),
    "wrong-link": Entry(
        "The answers do not fit this link.",
        "The evidence shows one of them.",
        "They are of another kind, or noise has moved probabilities below 0, above 1 or off their sum. Percentages "
        "need `percent=True` besides.",
        (Remedy("other-link", "open", {"link": None}),),
    ),
    "flipped": Entry("A change of the input flips the {what}.", example=TARGET),
    "not-flipped": Entry(
        "One gradient step did not flip the {what}, as far as it was followed.",
        "Another input may flip.",
        "The ray is followed 16 times as far as a linear function would need.",
        (Remedy("more-steps", "flip", {"steps": 3}),),
        TARGET,
    ),
    "on-boundary": Entry(
        "The {what} is undecided at this input: noise or rounding is larger than its margin.",
        "Start from an input that is clearly on one side.",
        example=TARGET,
    ),
    "flat": Entry(
        "The {what} does not change around this input, so there is no gradient to follow.",
        "Start from another input.",
        example=TARGET,
    ),
}

TEXTS: Mapping[str, Entry] = {**OUTCOMES}

PURPOSES: Mapping[str, str] = {
    "read-link": "Read the answers through their link: {call}.",
    "read-any-link": "If a softmax, sigmoid or tanh made the answers and they have all their digits, name it: {call}.",
    "other-link": "Give the link that the target has, or none if it answers values or labels: {call}.",
    "more-digits": "Open the model in float64: {call}.",
    "give-domain": "Give the range of inputs that the target expects: {call}.",
    "fewer-rows": "If it takes only so many rows at once, say so: {call}.",
    "train": "Train a network on the answers: {call}.",
    "span-from-labels": "Recover the span from labels alone: {call}.",
    "another-seed": "Try another seed: {call}.",
    "more-attempts": "Allow more attempts: {call}.",
    "more-steps": "Allow more steps, each from where the last one led: {call}.",
    "more-budget": "Raise the budget: {call}. With a transcript no answer is paid for twice.",
    "larger-error": "Allow a larger error: {call}.",
    "own-inputs": "Give inputs of the target's own kind: {call}.",
    "threshold": "Give another threshold: {call}.",
    "one-output": "Look at one output alone: {call}.",
}


def of_outcome(slug: str) -> Diagnosis:
    """The diagnosis of a run that ended so, where nothing more exact is known."""
    entry = OUTCOMES[slug]
    return Diagnosis(slug, entry.example or {}, entry.remedies)


def happened(diagnosis: Diagnosis) -> str:
    """What happened."""
    return TEXTS[diagnosis.slug].says.format(**diagnosis.fields)


def render(diagnosis: Diagnosis, write: Callable[[Remedy], str]) -> str:
    """What happened, what no call expresses, then a sentence for each remedy."""
    return _joined([happened(diagnosis), TEXTS[diagnosis.slug].hint, *map(_sentence(write), diagnosis.remedies)])


def _sentence(write: Callable[[Remedy], str]) -> Callable[[Remedy], str]:
    return lambda remedy: PURPOSES[remedy.purpose].format(call=write(remedy))


def _joined(sentences: Sequence[str]) -> str:
    return " ".join(filter(None, sentences))

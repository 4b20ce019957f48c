"""The catalogue of text: one entry for each outcome, diagnosis and remedy.

Entries are plain English, active voice, one idea a sentence. A text is a template over the fields of its diagnosis.
The text of a remedy has `{call}`, which the edge fills with a Python call, a command line or a form for the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reluctant.messages.diagnosis import Diagnosis, Remedy


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
TRAIN_AS_ANSWERED = Remedy("train", "train", {"link": "identity", "percent": False})
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
            TRAIN_AS_ANSWERED,
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

# What limits the digits of answers: read by the phrase {digits}.
ROUNDED = {"link": None, "limit": "decimals", "decimals": 3}
SOFTMAX = {"kind": "softmax", "percent": False}

INTERFACES: Mapping[str, Entry] = {
    "answers-of-link": Entry(
        "The answers are {likeness}, which are curved{hidden_curves}.",
        "Where they saturate, `extract` finds a box in which they do not.",
        example=SOFTMAX | {"hidden": False},
    ),
    "link-few-digits": Entry(
        "The answers are {likeness} {written}. With so few digits extraction through their link may fail.",
        example=SOFTMAX | {"decimals": 8, "number_format": "float64"},
    ),
    "link-too-coarse": Entry(
        "The answers are {likeness} {written}. The values before the link cannot be read from so few digits: they "
        "would change in steps, and be infinite where rounding leaves one answer certain.",
        example=SOFTMAX | {"decimals": 3, "number_format": "float64"},
    ),
    "link-too-noisy": Entry(
        "The answers are {likeness} with noise of {noise:.1e}. The values before the link cannot be read from them.",
        example=SOFTMAX | {"noise": 1e-3},
    ),
    "top-k-incomplete": Entry(
        "The answers are {likeness}. No value can be read where more than one probability is missing.",
        example={"kind": "top-k", "largest": 3, "classes": 10, "percent": False},
    ),
    "may-be-sigmoid": Entry(
        "The answers are curved and lie between 0 and {top:g}. Each may be the probability of a sigmoid{in_percent}.",
        example={"top": 1.0, "percent": False},
    ),
    "missing-is-nan": Entry(
        "The answers look like {likeness}, written as NaN.",
        "The target can answer 0 there instead.",
        example={"kind": "top-k", "largest": 3, "classes": 10, "percent": False},
    ),
    "answers-are-labels": Entry(
        "The answers are labels, which do not change under small steps.",
        "They hold no weights and no gradients.",
    ),
    "labels-or-numbers": Entry(
        "The answers are whole numbers, which do not change under small steps. They may be classes or rounded values.",
        "They hold no weights and no gradients.",
    ),
    "answers-in-steps": Entry(
        "The answers change in steps, as those of trees, of quantised numbers, or of rounded inputs do.",
        "They hold no weights and no gradients.",
    ),
    "same-near": Entry(
        "The target gave the same answer everywhere near the origin, and others far out. Methods begin near it.",
    ),
    "values-unreadable": Entry(
        "The {noun} behind the link are {written}. The values before the link cannot be read from so few digits: they "
        "would change in steps, and be infinite where rounding leaves one answer certain.",
        example={"link": "softmax", "decimals": 3, "number_format": "float64"},
    ),
    "nothing-behind-link": Entry(
        "All {noun} behind the link were exactly {ends}. Labels are like that, and no link can read them.",
        example={"link": "softmax"},
    ),
    "certain-behind-link": Entry(
        "Some {noun} behind the link are exactly {ends}, so no value can be read from them.",
        "`extract` looks for a box in which none is.",
        example={"link": "softmax"},
    ),
    "structure-hidden": Entry(
        "{digits}. Against a spread of {spread:.2g} that hides all structure.", example=ROUNDED | {"spread": 0.01}
    ),
    "too-few-digits": Entry(
        "{digits}: too few digits for exact extraction, and {few_digits_failed}.", example=ROUNDED | {"tried": True}
    ),
    "link-in-steps": Entry(
        "The answers behind the link change in steps: they are rounded. The values before the link cannot be read.",
    ),
    "clipped-inputs": Entry(
        "{ended}Inputs seem to be clipped{clipped_to}: farther out nothing changes, and what bends at these bounds is "
        "no neuron.",
        example={"low": 0.0, "high": 1.0},
    ),
}

# Lines of the text of an interface, each on its own.
FINDINGS: Mapping[str, Entry] = {
    "shape": Entry("At small scale the answers look {shape}.", example={"shape": "piecewise linear"}),
    "deterministic": Entry("The same inputs get the same answers."),
    "fresh-noise": Entry("Repeated answers differ: fresh noise of {noise:.1e}.", example={"noise": 1e-3}),
    "digits": Entry(
        "The answers fit {number_format}, {rounding}.", example={"number_format": "float64", "decimals": None}
    ),
    "digits-behind-link": Entry(
        "Values were read from {noun} {written}.",
        example={"link": "softmax", "decimals": None, "number_format": "float32"},
    ),
    "noise-floor": Entry(
        "The noise floor is {absolute:.1e} absolute and {relative:.1e} relative. The answers spread by {spread:.2g}.",
        example={"absolute": 1e-16, "relative": 1e-16, "spread": 1.5},
    ),
    "likeness": Entry("The answers look like {likeness}.", example=SOFTMAX),
    "class-beside-values": Entry(
        "{columns_are} whole numbers, as the number of a class is, or a count, beside answers of another kind.",
        example={"columns": (0,)},
    ),
    "whole-in-order": Entry(
        "The answers are whole numbers that change in order: rounded values, or levels of a score."
    ),
    "non-finite-rows": Entry(
        "{rows} of {queries} rows were answered with NaN or inf{why_non_finite}.",
        example={"rows": 3, "queries": 102, "link": None},
    ),
    "unanswered-beyond": Entry(
        "Inputs beyond scale {scale:g} {get_no_answer}.", example={"scale": 100.0, "linked": False}
    ),
    "constant-beyond": Entry(
        "Answers no longer change beyond scale {scale:g}: {why_constant}.", example={"scale": 1e4, "why": "clipped"}
    ),
    "ends-at-0-and-1": Entry(
        "Far out the answers are 0 or {top:g}: they may be probabilities of a sigmoid{in_percent}, or clipped values.",
        example={"top": 1.0, "percent": False},
    ),
    "would-refuse": Entry("Exact extraction would refuse this target."),
    "inside-a-box": Entry("Far out the answers saturate: `extract` looks inside a box in which they do not."),
    "with-few-digits": Entry(
        "There are too few digits for exact extraction: `extract` uses its method for few digits, which recovers one "
        "hidden layer as exactly as the answers are."
    ),
}

RUNS: Mapping[str, Entry] = {
    "answered-range": Entry(
        "All calls that failed have larger numbers (from {failed:.3g} in size) than all that was answered (up to "
        "{largest:.3g}).",
        example={"failed": 10.0, "largest": 5.0},
    ),
    "saturates-in-space": Entry(
        "`learn` looks everywhere, and far out answers saturate: no values can be read from them there.",
    ),
    "span-beyond-box": Entry(
        "Directions were found in {box}, where answers can be read. There are more: at {share:.0%} of typical inputs a "
        "step along the others changes the answer.",
        example={"box": "[-4, 4]", "share": 0.2},
    ),
    "labels-changed": Entry(
        "{changed} labels changed when asked for again: their boundary cannot be followed through noise.",
        example={"changed": 3},
    ),
    "labels-flicker": Entry("Labels flicker near their boundary: it cannot be followed through noise."),
    "labels-without-gradient": Entry("The answers do not change under small steps, as labels: they have no gradient."),
    "constant-or-labels": Entry("The target gave the same answer everywhere it was asked. It may answer labels."),
    "certain-answers": Entry("The answers are certain around this input, and do not change: there is no gradient."),
    "gradient-hidden": Entry("{digits}: not enough for a gradient here.", example=ROUNDED),
    "margin-within-noise": Entry(
        "On the way from this input answers pass the boundary by no more than their noise or rounding. {digits}.",
        example=ROUNDED,
    ),
    "not-flipped-in-steps": Entry(
        "Up to {steps} gradient steps did not flip the {what}, as far as they were followed.",
        "Another input may flip.",
        example={"steps": 3, "what": "target"},
    ),
    "certain-answer-unreadable": Entry(
        "An answer is exactly {ends} where the target was asked, and its link cannot read it.",
        example={"link": "sigmoid"},
    ),
    "copy-not-flipped": Entry("{on_the_copy} The target was not asked.", example={"outcome": "flat", "steps": 1}),
    "copy-unconfirmed": Entry(
        "The step found on the network does not flip the target: they are not the same function."
    ),
    "copy-opposed": Entry(
        "At this input the network is on another side than the target: they are not the same function."
    ),
    "flip-within-noise": Entry(
        "Asked again, the flipped input was not clearly beyond the boundary: the answers are too noisy.",
    ),
}

TEXTS: Mapping[str, Entry] = {**OUTCOMES, **INTERFACES, **FINDINGS, **RUNS}

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
    "one-output": "Look at one kind of them alone: {call}.",
    "read-if-sigmoid": "If a sigmoid made them, read them through it: {call}.",
    "try-link": "Extraction through the link can be tried: {call}.",
    "no-link": "Leave the link out: {call}.",
    "nearer-domain": "Ask nearer to the origin: {call}.",
    "fill-missing": "The audit reads NaN as 0: {call}.",
    "answered-range": "If it takes no larger ones, give a range that was answered: {call}.",
    "inside-range": "Look inside that range: {call}.",
    "use-extract": "Extraction looks inside a box in which answers do not saturate: {call}.",
    "on-a-copy": "Find the step on a network that was recovered or trained: {call}.",
    "if-numbers": "If they are numbers, say where they change side: {call}.",
    "half-threshold": "If the answers are probabilities, one half is their boundary: {call}.",
    "own-threshold": "An output that does not change side at 0 has a threshold of its own: {call}.",
    "read-probabilities": "The answers look like probabilities, which their link reads: {call}.",
    "before-sigmoid": "If the network gives the values before a sigmoid, read the answers through it: {call}.",
    "copy-half": "If the network gives probabilities, one half is their boundary: {call}.",
}


def of_outcome(slug: str) -> Diagnosis:
    """The diagnosis of a run that ended so, where nothing more exact is known."""
    entry = OUTCOMES[slug]
    return Diagnosis(slug, entry.example or {}, entry.remedies)

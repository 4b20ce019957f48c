"""The catalogue of text: one entry for each outcome, diagnosis and remedy.

Entries are plain English, active voice, one idea a sentence. A text is a template over the fields of its diagnosis.
The text of a remedy has `{call}`, which the edge fills with a Python call, a command line or a form for the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reluctant.messages.diagnosis import Remedy


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
SPAN_FROM_LABELS_WITHOUT_LINK = Remedy("span-from-labels", "span", {"labels": True, "link": "identity"})
FLOAT64 = Remedy("more-digits", "open", {"precision": "float64"})
ROWS_OF_USE = Remedy("rows-of-use", "open", {"inputs": None})
GIVE_DOMAIN = Remedy("give-domain", "open", {"domain": None})
GIVE_INPUTS = Remedy("give-inputs", "open", {"inputs": None})
TARGET = {"what": "target"}  # or the network in its place

OUTCOMES: Mapping[str, Entry] = {
    "recovered": Entry("The network was recovered and passed verification."),
    "learned": Entry("A network was learned to the accuracy asked for."),
    "not-accurate-enough": Entry(
        "No network reached the accuracy asked for.{best_error}",
        "More rows may help. More digits may help where the target answers values or probabilities.",
        "From labels, the accuracy is the share of equal labels: one in a hundred may differ.",
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
        "The network is probably deeper or wider than the method can follow, or has neurons too close to each other. "
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
    "output-space": Entry(
        "The answers lie in an affine space with fewer dimensions than there are outputs.",
        more="Its rank is the width of the last hidden layer, if its neurons were on where it was asked. Its basis "
        "is the last matrix up to a square factor.",
    ),
    "outputs-full": Entry(
        "The answers fill all dimensions of the output.",
        more="The last hidden layer has at least as many neurons as there are outputs, or a curve follows it.",
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
        remedies=(GIVE_DOMAIN, GIVE_INPUTS),
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
        "The answers have too few digits to recover the network, even by the methods for few digits.",
        more="The diagnosis names what limits the digits: decimals, noise, float32 or float16.",
        remedies=(FLOAT64,),
    ),
    "out-of-reach": Entry(
        "The method needs answers far from the origin, and the target gives none there that it can read{saturation}.",
        "The target may limit its inputs, its answers may saturate, or it may leave some of them out.",
        "Behind a link, `extract` works inside a box in which answers do not saturate, if they have all their digits.",
        (TRAIN_WITHOUT_LINK, GIVE_DOMAIN, GIVE_INPUTS, SPAN_FROM_LABELS_WITHOUT_LINK),
    ),
    "too-noisy": Entry(
        "The answers are too noisy or too coarse to show structure, or equal inputs get different labels.",
        "Average repeated answers if they are noisy. Answer with more digits if they are rounded.",
    ),
    "non-finite": Entry(
        "The target answered NaN or inf{saturation}.",
        remedies=(GIVE_DOMAIN,),
    ),
    "out-of-budget": Entry("The query budget ran out.", remedies=(Remedy("more-budget", "open", {"budget": None}),)),
    "target-failed": Entry(
        "The target stopped answering properly.{reported}",
        "The evidence has its error. With a transcript, another run continues where this one stopped.",
        remedies=(GIVE_DOMAIN, Remedy("fewer-rows", "open", {"batch": None})),
    ),
    "wrong-link": Entry(
        "The answers do not fit this link.",
        "The evidence shows one of them.",
        "They are of another kind, or noise has moved probabilities below 0, above 1 or off their sum.",
        (Remedy("other-link", "open", {"link": None}), Remedy("percentages", "open", {"percent": True})),
    ),
    "flipped": Entry("A change of the input flips the {what}.", example=TARGET),
    "not-flipped": Entry(
        "One gradient step did not flip the {what}, within the length searched.",
        "Another input may flip.",
        "The search goes 16 times as far as a linear function would need.",
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
GRADIENTS_WRONG = {"agreeing": 0, "points": 4}

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
        "The answers are {likeness} {written}. So few digits hide the values before the link: they would change in "
        "steps, and be infinite where rounding puts an answer at an end of its range.",
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
        "They hold no gradients. Their boundary holds the weights, up to what labels can tell.",
    ),
    "labels-or-numbers": Entry(
        "The answers are whole numbers, which do not change under small steps. They may be classes or rounded values.",
        "They hold no weights and no gradients.",
    ),
    "answers-in-steps": Entry(
        "The answers change in steps, as those of trees, of quantised numbers, or of rounded inputs do.",
        "They hold no weights and no gradients.",
    ),
    "answers-of-trees": Entry(
        "The answers are piecewise constant, and each step depends on one input alone: they are those of a tree, a "
        "forest or boosted trees, and not of a ReLU network.",
        "They hold no weights and no gradients.",
    ),
    "same-near": Entry(
        "The target gave one answer everywhere near the origin, where methods begin, and other answers far out.",
    ),
    "same-at-inputs": Entry(
        "The target gave the same answer at all inputs like those of inputs=.",
        "Check these rows: the order of their columns, their units, and columns that hold one number.",
    ),
    "values-unreadable": Entry(
        "The {noun} behind the link are {written}. So few digits hide the values before the link: they would change in "
        "steps, and be infinite where rounding puts an answer at an end of its range.",
        example={"link": "softmax", "decimals": 3, "number_format": "float64"},
    ),
    "nothing-behind-link": Entry(
        "All {noun} behind the link were exactly {ends}. They look like labels, and a link cannot read labels.",
        example={"link": "softmax"},
    ),
    "curved-behind-link": Entry(
        "The values before the {link} of the answers are curved too: smooth neurons made them, and no ReLU network.",
        example={"link": "softmax"},
    ),
    "certain-behind-link": Entry(
        "Some {noun} behind the link are exactly {ends}, so no value can be read from them.",
        "`extract` searches for a box in which none is.",
        example={"link": "softmax"},
    ),
    "structure-hidden": Entry(
        "{digits}. They spread by {spread:.2g} only, so this hides all structure.", example=ROUNDED | {"spread": 0.01}
    ),
    "too-few-digits": Entry(
        "{digits}: too few digits for exact extraction, and {few_digits_failed}.{inside_bounds}",
        example=ROUNDED | {"tried": True},
    ),
    "link-in-steps": Entry(
        "The answers behind the link change in steps: they are rounded. The values before the link cannot be read.",
    ),
    "explanation-times-input": Entry(
        "The gradients are those of input × gradient: divided by the inputs they agree with differences of values.",
        example=GRADIENTS_WRONG,
    ),
    "explanation-absolute": Entry(
        "The gradients are absolute values: their sizes agree with differences of values, their signs are gone.",
        "Values alone were used. The largest entries still name the inputs that matter most.",
        example=GRADIENTS_WRONG,
    ),
    "explanation-sign": Entry(
        "The gradients are signs alone, with no sizes.",
        "Values alone were used.",
        example=GRADIENTS_WRONG,
    ),
    "explanation-scaled": Entry(
        "The gradients have the right directions and the wrong lengths: they are scaled.",
        "Values alone were used. Directions are enough for a span, if the target is opened without its scaling.",
        example=GRADIENTS_WRONG,
    ),
    "explanation-integrated": Entry(
        "The gradients add up to the change of the answer from the origin, as integrated gradients do.",
        "Values alone were used.",
        example=GRADIENTS_WRONG,
    ),
    "explanation-smoothed": Entry(
        "The gradients are close to differences of values and not equal to them: averages around the input, as of "
        "SmoothGrad.",
        "Values alone were used.",
        example=GRADIENTS_WRONG,
    ),
    "explanation-noisy": Entry(
        "The gradients are close to differences of values, and differ when they are asked for again: noise was added, "
        "or the gradients are random averages, as SmoothGrad gives.",
        "Values alone were used.",
        example=GRADIENTS_WRONG,
    ),
    "explanation-rounded": Entry(
        "The gradients are close to differences of values, and rounded: to decimals, or to a shorter number format.",
        "Values alone were used: they have more digits.",
        example=GRADIENTS_WRONG,
    ),
    "explanation-invalid": Entry(
        "The gradients cannot be used: got {got}, expected {expected}.",
        "Values alone were used. The order is rows, outputs, inputs.",
        example={"got": "an answer of shape (4, 20) for 4 rows", "expected": "(4, 3, 20)"},
    ),
    "explanation-not-finite": Entry(
        "Among four inputs at each of three scales some answers or gradients are NaN or infinite.",
        "Values alone were used. Check the function that computes them.",
        example=GRADIENTS_WRONG,
    ),
    "explanation-undefined": Entry(
        "Gradients are NaN or infinite at {bad} of {asked} inputs, as they may be where a function bends.",
        "Values alone were used. Let gradients have one-sided values there, as autograd does.",
        example={"bad": 1, "asked": 20},
    ),
    "explanation-other": Entry(
        "The gradients are those of another function: they agree with differences of values at {agreeing} of {points} "
        "inputs.",
        "Values alone were used. Check that gradients and answers are of one model and in one order of outputs.",
        example=GRADIENTS_WRONG,
    ),
    "clipped-inputs": Entry(
        "{ended}The target seems to clip its inputs{clipped_to}: farther out nothing changes, and the bend at these "
        "bounds is no neuron.",
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
        "{columns_are} whole numbers, like a class number or a count, beside answers of another kind.",
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
    "exact-weights": Entry("`extract` can recover exact weights."),
    "from-labels": Entry(
        "`extract` uses labels alone: it recovers one hidden layer, and from two labels sometimes two."
    ),
    "would-refuse": Entry("Exact extraction would refuse this target."),
    "fits-probabilities": Entry(
        "So few digits hide kinks on a line: `extract` fits one hidden layer to the probabilities themselves."
    ),
    "inside-a-box": Entry("Far out the answers saturate: `extract` works inside a box in which they do not."),
    "with-few-digits": Entry(
        "There are too few digits for exact extraction: `extract` uses its methods for few digits, which recover one "
        "hidden layer or two to the precision of the answers."
    ),
}

RUNS: Mapping[str, Entry] = {
    "link-found": Entry(
        "The answers look like {behind_link}{in_percent}: values were read through a {link}, found automatically.",
        example={"link": "softmax", "percent": False},
    ),
    "units-found": Entry(
        "Columns of the input differ in size by a factor of up to {ratio:.2g}. {by} gave their scales, and "
        "verification compared {around}.",
        example={"ratio": 3.1e6, "middle": False},
        remedies=(ROWS_OF_USE,),
    ),
    "constant-columns": Entry(
        "{whole_columns} one number in every row of the inputs given, so the scale is unknown. The median scale of the "
        "other columns replaced it.",
        example={"columns": (2,), "inputs": None},
    ),
    "compared-at-own-scales": Entry(
        "Columns of the input differ in size by a factor of up to {ratio:.2g}. Network and target also agree at rows "
        "of these sizes, {around}.",
        example={"ratio": 2.4e3, "middle": True},
        remedies=(ROWS_OF_USE,),
    ),
    "agrees-near-origin": Entry(
        "The network found agrees with the target near the origin alone. It differs at rows of the columns' own sizes, "
        "{around}. These sizes differ by a factor of up to {ratio:.2g}.",
        example={"ratio": 2.4e3, "middle": True},
        remedies=(ROWS_OF_USE,),
    ),
    "certain-near-origin": Entry(
        "Near the origin the answers saturate and hold no values. Typical inputs are probably elsewhere.",
        remedies=(ROWS_OF_USE,),
    ),
    "columns-unlike": Entry(
        "{ended}Slopes of the columns differ by a factor of up to {ratio:.2g}. Typical inputs are probably not of "
        "size 1, as the queries were.",
        example={"ratio": 5.2e4},
        remedies=(ROWS_OF_USE,),
    ),
    "out-of-time": Entry("The processor time given, {seconds:g} s, ran out.", example={"seconds": 60.0}),
    "answered-range": Entry(
        "Every call that failed had a number of size {failed:.3g} or more. Every answered one had none above "
        "{largest:.3g}.",
        example={"failed": 10.0, "largest": 5.0},
    ),
    "saturates-inside": Entry(
        "Inside the bounds given some answers saturate, and these hold no values.",
    ),
    "saturates-in-space": Entry(
        "`learn` needs all of space, and far out the answers saturate: they hold no values there.",
    ),
    "span-beyond-box": Entry(
        "Directions were found in {box}, where answers can be read. There are more: at {share:.0%} of typical inputs a "
        "step along the others changes the answer.",
        example={"box": "[-4, 4]", "share": 0.2},
    ),
    "labels-changed": Entry(
        "{changed} inputs got another label when they were asked again. Such noise hides the boundary.",
        example={"changed": 3},
    ),
    "labels-flicker": Entry("Labels flicker near their boundary. Such noise hides it."),
    "boundary-resolution": Entry(
        "Labels flicker within {resolution:.0e} of a typical input from their boundary: too wide to follow it.",
        example={"resolution": 1e-3},
    ),
    "boundary-in-steps": Entry(
        "The boundary is made of steps along single inputs, {resolution:.0e} of a typical input long: inputs are"
        " rounded, as to whole numbers, or the target is a tree. No weights can be read from it.",
        example={"resolution": 1e-3},
    ),
    "first-layer-from-labels": Entry(
        "Labels gave the {neurons} neurons of the first hidden layer. The layers above it were not recovered.",
        example={"neurons": 10},
    ),
    "curved-boundary": Entry("The boundary between the labels is curved: it is not that of a ReLU network."),
    "labels-without-gradient": Entry("The answers do not change under small steps, as labels: they have no gradient."),
    "constant-or-labels": Entry("The target gave the same answer everywhere it was asked. It may answer labels."),
    "certain-answers": Entry("The answers are certain around this input, and do not change: there is no gradient."),
    "gradient-hidden": Entry("{digits}: not enough for a gradient here.", example=ROUNDED),
    "margin-within-noise": Entry(
        "On the way from this input answers pass the boundary by no more than their noise or rounding. {digits}.",
        example=ROUNDED,
    ),
    "not-flipped-in-steps": Entry(
        "Up to {steps} gradient steps did not flip the {what}, within the length searched.",
        "Another input may flip.",
        example={"steps": 3, "what": "target"},
    ),
    "flipped-far-out": Entry(
        "The target changes only at {times:.1e} times the size of the input: too far for a change of this input.",
        "Another input may flip.",
        example={"times": 2e7},
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
    "error-of-noise": Entry(
        "The noise of the answers alone is a relative square error of about {floor:.0e}.", example={"floor": 3e-9}
    ),
    "narrow-missing": Entry(
        "{narrow} of {points} random points have large errors: something narrow is missing. A smaller eps searches "
        "for it.",
        example={"narrow": 2, "points": 2855},
    ),
    "maybe-several-layers": Entry(
        "If the target may have several hidden layers, use extract: it follows creases that bend."
    ),
    "more-rows-than-neurons": Entry(
        "`learn` stopped after {rows:,.0f} rows, more than one hidden layer with the neurons found takes. If the "
        "target may have several layers, use extract.",
        example={"rows": 300_000},
    ),
    "trained-not-verified": Entry(
        "The network was trained, not verified. Its error is known only for inputs like those of the training."
    ),
    "flip-within-noise": Entry(
        "A second query did not put the flipped input clearly beyond the boundary: the answers are too noisy.",
    ),
    "asked-inside": Entry(
        "Far out the answers saturate, so all queries stayed inside {box}.", example={"box": "[-4, 4]"}
    ),
    # What a run knows of what it found, and what it could have missed.
    "neurons-found": Entry(
        "The network has {neuron_count}{in_layer} up to equivalence, {weights_known}. On the lines searched, a neuron "
        "that bends the function by less than {resolution:.1e}{farther_out} could be missing. Verification states what "
        "could be missing elsewhere.",
        example={
            "width": 32,
            "layer": "",
            "error": 2e-13,
            "estimated": False,
            "resolution": 1e-12,
            "radius": 1e6,
        },
    ),
    "no-neuron-found": Entry(
        "No neuron was found{in_layer}. A neuron could be missing that bends the function by less than the noise of "
        "the answers{farther_out} or only where no query was.",
        example={"layer": "", "radius": None},
    ),
    "sums-of-neurons": Entry(
        "{sums} more units are sums of neurons that are always active; no answer shows which.",
        example={"sums": 2},
    ),
    "ill-conditioned": Entry(
        "The first layer's weights have condition number {condition:.1e}, which limits the digits.",
        example={"condition": 1e5},
    ),
    "layers-where-met": Entry(
        "Layers after the first are known where their creases were met. Answers were checked out to ten times the "
        "scale of use; farther out, or on a few inputs in a thousand, a neuron may be missing. Neurons with the "
        "same effect on all answers may appear more than once, so layers may be wider than the target's."
    ),
    "scale-of-labels": Entry(
        "Labels leave open the scale of each neuron and of the output, and a function added to all classes. A "
        "neuron whose crease never meets the boundary shows in no label; it is part of the affine term."
    ),
    "span-asked": Entry(
        "The span comes from {span_inputs}, and from steps of {reach:g} times their norm.",
        example={"domain": "all of space", "scale": 1.0, "given": None, "reach": 10.0},
    ),
    "missed-direction": Entry(
        "A direction could be missing if it matters at less than about {share:.0%} of such inputs, or makes less than "
        "{weakest:.0e} of a gradient.",
        example={"share": 0.01, "weakest": 1e-9},
    ),
    "missed-label-direction": Entry(
        "A region of another label could be missing if it holds less than {region:.1%} of such inputs. A direction "
        "could be missing if it matters on less than {boundary:.0%} of the boundary, or makes less than {weakest:.0e} "
        "of its normals.",
        example={"region": 0.003, "boundary": 0.05, "weakest": 1e-6},
    ),
    "learned-accuracy": Entry(
        "Relative square error {error:.1e} (between {low:.1e} and {high:.1e} with {confidence:.0%} confidence), from "
        "{points} points, those near creases included.",
        example={"error": 3e-9, "low": 1e-9, "high": 5e-9, "confidence": 0.95, "points": 4000},
    ),
    "creases-followed": Entry(
        "{straight} of {creases} creases of a line go straight on: {layers_seen}.",
        example={"straight": 12, "creases": 12, "one_layer": True},
    ),
    "line-unresolved": Entry(
        "{unresolved} stretches of a line did not resolve into linear pieces.",
        example={"unresolved": 40},
    ),
    "honest-cost": Entry(
        "Honest users see an error of {rms_error:.1e} rms, {max_error:.1e} at most, of the output's deviation; "
        "{agreement:.1%} of {rows} labels are kept.",
        example={"rms_error": 3e-4, "max_error": 5e-4, "agreement": 0.99, "rows": 100},
    ),
    "other-answers": Entry(
        "Honest users get other answers; {agreement:.1%} of {rows} labels are kept.",
        example={"agreement": 0.99, "rows": 100},
    ),
    "obfuscation": Entry(
        "{same_label:.2%} of {rows} obfuscated inputs keep their label; answers change by at most {largest_change:.1e} "
        "of {size:.2g}. {invisible_share:.1%} of the directions are invisible.",
        example={"same_label": 1.0, "rows": 100, "largest_change": 1e-12, "size": 3.0, "invisible_share": 0.6},
    ),
    "estimated-cost": Entry(
        "{shape} from {precision}: {expected:,.0f} queries ({low:,.0f} to {high:,.0f}) for {gives}, by {method}. "
        "{ok} of {networks} measured networks of this kind were recovered.",
        example={
            "method": "exact extraction, one hidden layer",
            "shape": "784-128-1",
            "precision": "float64",
            "expected": 104608.0,
            "low": 103849.0,
            "high": 105258.0,
            "gives": "an exact copy",
            "ok": 172,
            "networks": 172,
        },
    ),
    "local-linearity": Entry(
        "At {radius:.2g} of the input's norm the gradient has changed by {random:.2g} of its size in random "
        "directions, by {along:.2g} along itself.",
        example={"radius": 0.1, "random": 0.2, "along": 0.3},
    ),
    "missed-bump": Entry(
        "A bump narrower than {width:.1g} could be missing. With {confidence:.1%} confidence {points:,} random points "
        "meet every wider one up to distance {near:g} from the origin. At distance {far:g} it must be wider than "
        "{far_width:.1g}.{steep_bump}",
        example={
            "width": 0.01,
            "points": 2855,
            "near": 1.0,
            "confidence": 0.99,
            "far": 3.0,
            "far_width": 0.55,
            "added": None,
        },
    ),
}

IN_A_BOX = {"domain": "[-2, 2]"}

AUDITS: Mapping[str, Entry] = {
    # How a step ended.
    "trained-copy": Entry("A network trained on the answers is close enough to count as a copy."),
    "trained-no-copy": Entry("A network trained on the answers is not close enough to count as a copy."),
    "trained-short-of-a-copy": Entry(
        "The network trained on the answers falls short of a copy. A larger network or more answers may make one."
    ),
    "trained-perhaps-a-copy": Entry(
        "The trained network may count as a copy: {beside_a_copy}.",
        example={"most": 0.012, "allowed": 0.01, "labels": True, "alone": 0.9},
    ),
    "trained-on-fewer-rows": Entry(
        "The rows for training ran out. The network trained on the answers so far is not close enough to count as a "
        "copy."
    ),
    "few-digits-in-vain": Entry(
        "The answers have too few digits for exact extraction, and the method for few digits did not succeed."
    ),
    "span-with-copy": Entry(
        "Random inputs missed {directions:,} of the directions, because few inputs show them. The recovered network "
        "has them all.",
        example={"directions": 2},
    ),
    "step-failed": Entry("{error_message}", example={"message": "The target raised KeyError."}),
    "rows-ran-out": Entry("The rows for {step_list} ran out.", example={"steps": ("span", "extraction")}),
    "time-ran-out": Entry("The time for {step} ran out.", example={"step": "extraction"}),
    "steps-broken-off": Entry("The audit was stopped during {step_list}.", example={"steps": ("span",)}),
    "steps-not-begun": Entry("The audit was stopped before {step_list}.", example={"steps": ("training",)}),
    "step-not-ended": Entry(
        "{step_name} did not finish: {because}", example={"step": "span", "why": {"slug": "time-over"}}
    ),
    # What the answers are like.
    "all-the-same": Entry(
        "The first queries all got the same answer. Other answers, if there are any, are rare or elsewhere."
    ),
    "rare-labels": Entry("The first queries all got the same answer. Other answers are rare, and came later."),
    "may-be-clipped": Entry("Far out the answers no longer change, as if the target clipped its inputs or answers."),
    "answers-too-noisy": Entry(
        "The answers have noise of {noise:.1e}: too much against their spread to show structure.",
        example={"noise": 1e-3},
    ),
    "answers-too-coarse": Entry(
        "The answers are {rounding}: too coarse against their spread to show structure.", example={"decimals": 1}
    ),
    "rounded-numbers": Entry(
        "The answers are whole numbers that change in order, as rounded values or levels of a score do. With more "
        "digits, methods for values may find more."
    ),
    "maybe-rounded-numbers": Entry(
        "The answers are whole numbers: classes, or perhaps rounded values. With more digits, methods for values may "
        "find more."
    ),
    "unread-link": Entry("The answers look like {behind_link}{in_percent}.", example={"link": "sigmoid"}),
    "squashed-far-out": Entry(
        "Far out the answers stop changing, as if an unknown function followed the values. If they are probabilities "
        "in another form, audit them as numbers between 0 and 1, one for each class."
    ),
    "curved-inside": Entry(
        "The answers are curved in this range: the neurons are smooth, or an unknown function follows the values. "
        "Audit the values before that function, if you have them."
    ),
    # Why a step had nothing to do.
    "nothing-to-find": Entry("{useless_answers} have {not_there}.", example={"gives": "labels", "missing": "gradient"}),
    "splits-of-trees": Entry(
        "Each step of trees depends on one input, and {rows} rows did not show which inputs matter.",
        example={"rows": 10_000},
    ),
    "left-out": Entry("The settings of the audit leave this step out."),
    "no-rows-left": Entry("No rows of the budget were left for this step."),
    "unusable-answers": Entry("No step can use the answers: see the step {step}.", example={"step": "health"}),
    "time-over": Entry("The time for this step ran out."),
    "target-not-open": Entry("The target is not open."),
    "outputs-left-out": Entry("Some outputs were left out, and defenses act on the answers with all of them."),
    "output-behind-link": Entry("The audit read one output behind a link, and defenses act on all outputs."),
    "labels-left-alone": Entry("The target answers labels alone: no defense is tried that leaves less than a label."),
    "no-local-copy": Entry("There is no local copy: the network was not recovered, and the target is not a file."),
    "copy-apart": Entry("The trained network and the target answer in different forms."),
    "no-copy": Entry("There is no copy to compare with the target."),
    "no-finite-answers": Entry("The target answers NaN or inf almost everywhere here. Its answers may be certain."),
    "few-inputs": Entry("This step needs {inputs} different inputs.", example={"inputs": 2}),
    "one-input": Entry("The target has one input, so there is no plane."),
    "no-sign": Entry("One answer that may be a probability has no sign that could flip."),
    "only-the-origin": Entry("Every input is the origin, and distances are in units of an input's norm."),
    "flat-target": Entry("The target is flat or undecided around the input tried."),
    "flat-network": Entry("The network is flat around every input tried."),
    "recovered-exactly": Entry("The network was recovered exactly."),
    "copy-exists": Entry("There is a copy of the whole network."),
    "interface-unknown": Entry("Nothing is known about the interface."),
    "bounded-domain": Entry("Learning needs Gaussian inputs, and the domain is {domain}.", example=IN_A_BOX),
    "bounded-reach": Entry(
        "Learning needs Gaussian inputs, and the target answers only in {domain}.", example=IN_A_BOX
    ),
    "several-layers": Entry(
        "Learning is for one hidden layer. {straight} of {creases} creases on a line go straight on: there are more.",
        example={"straight": 5, "creases": 12},
    ),
    "no-part": Entry("No part of a network was found."),
    "not-a-file": Entry("The target is not a file, so its weights are unknown here."),
    "no-network": Entry("There is no network to compare."),
    "unreadable-file": Entry(
        "The weights in the file cannot be read ({error}).", example={"error": "unsupported-model"}
    ),
    "file-differs": Entry("The file and the target differ in inputs or outputs."),
    # What an audit assumed, and what it could miss.
    "nothing-asked": Entry("The audit asked nothing: the target could not be opened."),
    "asked": Entry(
        "The audit asked {queries:,} rows of a budget of {budget:,}, in {domain}.{kept_inside}",
        example={"queries": 90_000, "budget": 100_000, "domain": "all of space"},
    ),
    "input-units": Entry(
        "Every step worked in units of the inputs given: bounds and steps count deviations of each column from its "
        "middle."
    ),
    "real-numbers-asked": Entry(
        "{whole_columns} whole numbers alone in the inputs given, and the audit asked real numbers there. An interface "
        "that refuses these leaks less: name such columns to see what remains (integers=COLUMNS).",
        example={"columns": (0, 4), "inputs": 8},
    ),
    "columns-held": Entry(
        "{held_columns}, and asked real numbers in the other {others}. The findings are about these. Each other "
        "value of a held column has a copy of its own, which takes at most as many queries again.",
        example={"columns": (0, 4), "values": (3.0, 17.0), "others": 6},
    ),
    "relu-methods": Entry("The methods are for fully connected ReLU networks. Other models may leak to other methods."),
    "one-recipe": Entry(
        "The audit trained networks by one recipe: small ones, for seconds. Larger networks, longer training or inputs "
        "like those of real users may do better."
    ),
    "training-not-tried": Entry(
        "The audit did not train a network on the answers. Training may give a close copy where these methods do not."
    ),
    "no-proof": Entry("A method that failed here may succeed with a larger budget, another seed or more digits."),
    "class-outputs-left-out": Entry(
        "{outputs_are} whole numbers, like a class number or a count, beside answers of another kind. The audit left "
        "them out.",
        example={"outputs": (3,)},
    ),
    "range-found": Entry(
        "Beyond {domain} the target does not answer every query. The audit found that range itself, and the findings "
        "hold inside it. If you know the true range, give it.",
        example=IN_A_BOX,
    ),
    "in-percent": Entry(
        "The answers are probabilities in percent. The audit divided them by 100: digits, errors and the copy are "
        "those of numbers between 0 and 1."
    ),
    "among-nan": Entry("Missing probabilities are NaN. The audit took them as 0."),
    "read-through-link": Entry(
        "The audit read {read_values} before the {read_link} of the answers.{noise_removed}",
        example={"link": "softmax", "all": True, "noisy": False},
    ),
    "first-class-zero": Entry(
        "Probabilities do not show a value that is added to every class alike, so the copy gives the first class 0."
    ),
    # Why there is no estimate of the cost.
    "link-not-measured": Entry(
        "Not measured: answers behind a {link}. Where they saturate, extraction works inside a box, at several times "
        "the rows. There are numbers for values without a link.",
        example={"link": "softmax"},
    ),
    "decimals-not-measured": Entry(
        "Not measured: answers rounded to {decimals} decimals. Attempts on them sometimes fail. There are numbers for "
        "fewer decimals, and for answers that are not rounded.",
        example={"decimals": 11},
    ),
    "float16-refused": Entry("Answers in float16 have three digits: extraction refuses them (low-precision)."),
    "depth-not-measured": Entry(
        "Not measured: {hidden} hidden layers. Extraction tries any depth; no measured network has more than {most}.",
        example={"hidden": 4, "most": 3},
    ),
    "deep-few-digits-not-measured": Entry(
        "Not measured: {hidden} hidden layers with few digits. Extraction from few digits tries one hidden layer and "
        "two; there are numbers for one.",
        example={"hidden": 2},
    ),
    "range-not-measured": Entry("There is no estimate: costs inside a range of inputs were measured for few shapes."),
    "range-behind-link-not-measured": Entry(
        "There is no estimate: behind a link extraction works inside a range, and costs there were measured for few "
        "shapes."
    ),
    "rows-left-out": Entry(
        'The picture "{picture}" leaves out {rows} rows without a finite answer.',
        example={"picture": "line", "rows": 3},
    ),
    "one-gradient-step": Entry(
        "Flips are steps along one gradient, and smaller ones may exist. Sizes are Euclidean norms."
    ),
    "sweep-inputs": Entry(
        "Costs to users and errors behind defenses are over {inputs:,} {sweep_inputs}.",
        example={"inputs": 1000, "sampled": True},
    ),
    "truth-apart": Entry("The comparison with the file is for the owner alone. No method has seen the file."),
}

LEAKS: Mapping[str, Entry] = {
    "extractable": Entry(
        "Anyone who can query this interface can copy the whole network: {parameters:,} parameters in {queries:,} "
        "queries.",
        more="The answers give the whole network away. Fewer digits give less away; labels alone make a copy slower.",
        example={"parameters": 2410, "queries": 1183},
    ),
    "approximable": Entry(
        "Anyone who can query this interface can make a close copy of the network in {queries:,} queries.",
        more="The answers are enough for a close copy. A limit on the queries of each user makes a copy slower.",
        example={"queries": 40_000},
    ),
    "span": Entry(
        "Anyone who can query this interface can find the {rank:,} of {inputs:,} directions of the input that the "
        "network depends on.",
        more="The answers show which input directions matter. Changes along all others change no answer.",
        example={"rank": 32, "inputs": 64},
    ),
    "flippable": Entry(
        "One gradient step of {relative_size:.1%} of an input's norm changes the answer.",
        more="A small step changes the answer. Training against such steps makes them larger.",
        example={"relative_size": 0.021},
    ),
    "leak-not-settled": Entry(
        "The audit could not settle whether the model is {leak}.",
        more="A step did not finish, so this does not count as passed. The reasons say what to try.",
        example={"leak": "extractable"},
    ),
    "cheapest-defense": Entry(
        "Of the defenses tried, {defense} stopped exact recovery at the least cost to honest users.",
        example={"defense": "float16"},
    ),
}

CHANGES: Mapping[str, Entry] = {
    "leak-changed": Entry(
        "{leak_name}: {before} before, {after} now.",
        example={"leak": "extractable", "before": "not settled", "after": "found"},
    ),
    "copy-queries-changed": Entry(
        "A copy took {before:,} queries, and takes {after:,} now.", example={"before": 1200, "after": 17_050}
    ),
    "copy-error-changed": Entry(
        "The typical error of a copy was {before:.1e} of the output's deviation, and is {after:.1e} now.",
        example={"before": 1e-12, "after": 1e-6},
    ),
    "flip-size-changed": Entry(
        "The smallest flip was {before:.1%} of an input's norm, and is {after:.1%} now.",
        example={"before": 0.021, "after": 0.05},
    ),
    "labels-copied-changed": Entry(
        "A trained network gave {before:.1%} of labels, and gives {after:.1%} now.",
        example={"before": 0.9, "after": 0.97},
    ),
    "other-shape": Entry("The two targets differ in inputs or outputs, so compare the figures with care."),
    "nothing-changed": Entry("No leak changed, and no figure changed by much."),
}

_COMPARED = {
    "max_error": 2e-9, "rms_error": 3e-10, "points": 900, "tol": 1.5e-8, "inside": "", "fewer": False,
    "exceeded": None,
}  # fmt: skip
_BESIDE = {
    "wrong_inputs": 0, "inputs": 500, "confidence": 0.95, "share": 0.01, "input_share": 0.012, "boundary_error": 1e-9,
    "points": 300,
}  # fmt: skip
_HELD_OUT = {"residual": 1e-6, "noise": 1e-6, "ratio": 1.02, "error": 2e-7, "cost": 6.5}
CHECKS: Mapping[str, Entry] = {
    # A network beside values.
    "noise-too-large": Entry(
        "The noise of the target is too large to compare: a tolerance of {tol:.1e} decides nothing.",
        example={"tol": 0.5},
    ),
    "values-agree": Entry("The network agrees with the target: {value_errors}.", example=_COMPARED),
    "values-differ": Entry(
        "The network does NOT agree with the target: {value_errors}.", example=_COMPARED | {"max_error": 0.2}
    ),
    "values-agree-inside": Entry(
        "The network does NOT agree with the target everywhere. In a part it does: {value_errors}.",
        example=_COMPARED | {"inside": "[-2, 2] in every coordinate"},
    ),
    "share-unseen": Entry(
        "With {confidence:.0%} confidence the network errs by more{than_bound} at fewer than {share:.1%} of typical "
        "inputs. A ridge through their middle may be missing if it is narrower than {narrowest:.2g} of an input's "
        "deviation.",
        example={"confidence": 0.95, "share": 0.01, "bound": None, "narrowest": 0.025},
    ),
    "slopes-compared": Entry(
        "Gradients differ by at most {slope_error:.1e} of the largest.", example={"slope_error": 1e-12}
    ),
    "creases-untested": Entry(
        "{untested_neurons} no crease where random points look for one.", example={"untested": 1}
    ),
    "creases-farther-out": Entry("Neurons whose creases lie farther out may be missing."),
    "typical-unread": Entry(
        "At none of {asked} inputs{outside_box}, {sizes_asked}, can the answer be read: nothing is known there.",
        example={"asked": 256, "own_scales": False},
    ),
    "typical-agree": Entry(
        "At {points} of {asked} inputs, {sizes_asked}, it agrees with the target.",
        example={"points": 250, "asked": 256, "own_scales": False},
    ),
    "typical-differ": Entry(
        "At {differing} of {points} inputs{compared_alone}, {sizes_asked}, it does NOT agree with the target, "
        "{differing_by}.",
        example={"differing": 9, "points": 250, "asked": 256, "largest": 0.2, "own_scales": False},
    ),
    # A network beside labels.
    "labels-agree": Entry("The network agrees with the target's labels: {boundary_points}", example=_BESIDE),
    "labels-differ": Entry(
        "The network does NOT agree with the target's labels: {boundary_points}",
        example=_BESIDE | {"boundary_error": None, "wrong": 12},
    ),
    "pairs-meet": Entry("{pairs} pairs of classes meet there.", example={"pairs": 3}),
    "creases-off-boundary": Entry("{untested} creases were not seen to meet the boundary.", example={"untested": 2}),
    "points-undecided": Entry("{undecided} more points are too close to another boundary.", example={"undecided": 4}),
    # A network beside answers of few digits.
    "noise-explains": Entry(
        "The network predicts held-out answers as well as their noise allows: {residuals_beside_noise}",
        example=_HELD_OUT,
    ),
    "noise-exceeded": Entry(
        "The network does NOT predict held-out answers as well as their noise allows: {residuals_beside_noise}",
        example=_HELD_OUT,
    ),
    # A network beside another.
    "networks-differ-by": Entry(
        "Outputs differ by {output_error:.1e} of their standard deviation at most, parameters by "
        "{parameter_error:.1e}.",
        example={"output_error": 1e-9, "parameter_error": 1e-10},
    ),
    "widths-differ": Entry(
        "Outputs differ by {output_error:.1e} of their standard deviation at most; the widths differ: {widths} beside "
        "{true_widths}.",
        example={"output_error": 0.1, "widths": (8, 5, 1), "true_widths": (8, 6, 1)},
    ),
    # A flip.
    "flip-by-step": Entry(
        "{change_of_side} with a step of {size:.3g}{step_unit}.",
        example={"classes": None, "threshold": None, "size": 0.1},
    ),
    "flip-by-share": Entry(
        "{change_of_side} with {relative_size:.2%} of {norm_of}, which is {scaled_size:.2f}/√d; random networks "
        "flip at about {typical:.2f}/√d.",
        example={
            "classes": (3, 8),
            "threshold": None,
            "relative_size": 0.02,
            "scaled_size": 0.9,
            "typical": 0.67,
        },
    ),
}

TEXTS: Mapping[str, Entry] = {**OUTCOMES, **INTERFACES, **FINDINGS, **RUNS, **CHECKS, **AUDITS, **LEAKS, **CHANGES}

PURPOSES: Mapping[str, str] = {
    "read-link": "Read the answers through their link: {call}.",
    "read-any-link": "If a softmax, sigmoid or tanh made the answers and they have all their digits, name it: {call}.",
    "other-link": "Give the link that the target has, or none if it answers values or labels: {call}.",
    "percentages": "If the answers are percentages, say so: {call}.",
    "rows-of-use": "Give typical inputs, so that queries stay where the target is used: {call}.",
    "more-digits": "Open the model in float64: {call}.",
    "give-domain": "Give the range of inputs that the target expects: {call}.",
    "narrower-domain": "Give narrower bounds, such as one deviation to each side of the inputs' middle: {call}.",
    "give-inputs": "Or give typical inputs, so that queries stay near them, in the units of their columns: {call}.",
    "divide-by-input": "Divide by the inputs: {call}.",
    "fewer-rows": "If the target limits the rows of a request, say so: {call}.",
    "train": "Train a network on the answers: {call}.",
    "span-from-labels": "Recover the span from labels alone: {call}.",
    "another-seed": "Try another seed: {call}.",
    "more-attempts": "Allow more attempts: {call}.",
    "more-steps": "Allow more steps, each from where the last one led: {call}.",
    "more-budget": "Raise the budget: {call}. With a transcript no answer is paid for twice.",
    "more-time": "Allow more time: {call}. With a transcript no answer is paid for twice.",
    "larger-error": "Allow a larger error: {call}.",
    "own-inputs": "Give typical inputs: {call}.",
    "threshold": "Give another threshold: {call}.",
    "one-output": "Use one of these outputs alone: {call}.",
    "read-if-sigmoid": "If a sigmoid made the answers, read the answers through it: {call}.",
    "try-link": "Extraction through the link can be tried: {call}.",
    "no-link": "Leave the link out: {call}.",
    "nearer-domain": "Stay nearer to the origin: {call}.",
    "fill-missing": "The audit reads NaN as 0: {call}.",
    "answered-range": "If the target takes no larger numbers, give a range that was answered: {call}.",
    "inside-range": "Stay inside that range: {call}.",
    "use-extract": "Extraction works inside a box in which answers do not saturate: {call}.",
    "on-a-copy": "Find the step on a network that was recovered or trained: {call}.",
    "if-numbers": "If the answers are numbers, give the value that separates the two sides: {call}.",
    "half-threshold": "If the answers are probabilities, one half is their boundary: {call}.",
    "own-threshold": "If the output decides at another value than 0, give that threshold: {call}.",
    "read-probabilities": "The answers look like probabilities. Read them through their link: {call}.",
    "before-sigmoid": "If the network gives the values before a sigmoid, read the answers through it: {call}.",
    "copy-half": "If the network gives probabilities, one half is their boundary: {call}.",
}

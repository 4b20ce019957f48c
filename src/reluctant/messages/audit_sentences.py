"""Sentences of an audit: how its steps ended, why they had nothing to do, what it assumed.

Their slugs are in the record of an audit. Slugs whose sentence depends on several fields are in `reluctant.report`.
"""

from __future__ import annotations

from collections.abc import Mapping

STRAIGHT_ON = "{straight} of {creases} creases on a line go straight on, so there is more than one hidden layer."

AUDIT_SENTENCES: Mapping[str, str] = {
    # How a method ended, where an owner needs other words than one who calls it.
    "trained-copy": "A network trained on the answers is close enough to count as a copy.",
    "trained-no-copy": "A network trained on the answers is not close enough to count as a copy.",
    "trained-on-fewer-rows": (
        "The rows for training ran out. The network trained on the answers so far is not close enough to count as a "
        "copy."
    ),
    "few-digits-in-vain": (
        "The answers have too few digits for exact extraction, and the method for few digits did not succeed."
    ),
    # What an interface gives.
    "all-the-same": (
        "The first look met the same answer everywhere. Other answers, if there are any, are rare or elsewhere."
    ),
    "rare-labels": "The first look met the same answer everywhere. Other answers are rare, and came later.",
    "may-be-clipped": "Far out the answers no longer change, as if the target clipped its inputs or answers.",
    "rounded-numbers": (
        "The answers are whole numbers that change in order, as rounded values or levels of a score do. More digits "
        "may show more to methods for values."
    ),
    "maybe-rounded-numbers": (
        "The answers are whole numbers: classes, or perhaps rounded values. More digits may show more to methods for "
        "values."
    ),
    "squashed-far-out": (
        "The answers end far out, as if something stood after the values that no link here undoes. If they are "
        "probabilities in another form, audit them as numbers between 0 and 1, one for each class."
    ),
    "curved-inside": (
        "The answers are curved in this range: the neurons are smooth, or something after the values bends them that "
        "no link here undoes. Audit the values before it, if you have them."
    ),
    # Why a step had nothing to do.
    "left-out": "The settings of the audit leave this step out.",
    "no-rows-left": "No rows of the budget were left for this step.",
    "unusable-answers": "No step can use the answers: see the step {step}.",
    "time-over": "The time for this step ran out.",
    "target-not-open": "The target is not open.",
    "outputs-left-out": "Some outputs were left out, and defenses act on the answers with all of them.",
    "output-behind-link": "The audit looked at one output behind a link, and defenses act on all outputs.",
    "no-local-copy": "There is no local copy: the network was not recovered, and the target is not a file.",
    "copy-apart": "The trained network answers in another form than the target was read in.",
    "no-copy": "There is no copy to compare with the target.",
    "no-finite-answers": "The target answers NaN or inf almost everywhere here. Its answers may be certain.",
    "few-inputs": "This step needs {inputs} different inputs.",
    "one-input": "The target has one input, so there is no plane.",
    "no-sign": "One answer that may be a probability has no sign that could flip.",
    "only-the-origin": "Every input is the origin, and distances are in units of an input's norm.",
    "flat-target": "The target is flat or undecided around the input tried.",
    "flat-network": "The network is flat around every input tried.",
    "recovered-exactly": "The network was recovered exactly.",
    "copy-exists": "There is a copy of the whole network.",
    "interface-unknown": "Nothing is known about the interface.",
    "bounded-domain": "Learning needs Gaussian inputs, and the domain is {domain}.",
    "bounded-reach": "Learning needs Gaussian inputs, and the target answers only in {domain}.",
    "several-layers": f"Learning is for one hidden layer. {STRAIGHT_ON}",
    "no-part": "No part of a network was found.",
    "not-a-file": "The target is not a file, so its weights are unknown here.",
    "no-network": "There is no network to compare.",
    "unreadable-file": "The weights in the file cannot be read ({error}).",
    "file-differs": "The file and the target differ in inputs or outputs.",
    # What an audit assumed, and what it could miss.
    "nothing-asked": "The audit asked nothing: the target could not be opened.",
    "relu-methods": "The methods are for fully connected ReLU networks. Other models may leak to other methods.",
    "one-recipe": (
        "The audit trained networks by one recipe: small ones, for seconds. Larger networks, longer training or inputs "
        "like those of real users may do better."
    ),
    "training-not-tried": (
        "The audit did not train a network on the answers. Training may give a close copy where these methods do not."
    ),
    "no-proof": "A method that failed here may succeed with a larger budget, another seed or more digits.",
    "in-percent": (
        "The answers are probabilities in percent. The audit divided them by 100: digits, errors and the copy are "
        "those of numbers between 0 and 1."
    ),
    "among-nan": "Missing probabilities are NaN. The audit took them as 0.",
    "first-class-zero": (
        "Probabilities do not show a value that is added to every class alike, so the copy gives the first class 0."
    ),
    "one-gradient-step": "Flips are steps along one gradient, and smaller ones may exist. Sizes are Euclidean norms.",
    "truth-apart": "The comparison with the file is for the owner alone. No method has seen the file.",
    "range-found": (
        "Beyond {domain} the target does not answer every question. The audit found that range itself, and the "
        "findings hold inside it. If you know the true range, give it."
    ),
    # Why there is no estimate of the cost.
    "link-not-measured": (
        "Not measured: answers behind a {link}. Where they saturate, values are read inside a box, which takes some "
        "times as many rows. Without a link there are numbers for the values."
    ),
    "decimals-not-measured": (
        "Not measured: answers rounded to {decimals} decimals. Attempts on them fail at times. There are numbers for "
        "fewer decimals, and for answers that are not rounded."
    ),
    "float16-refused": "float16 has three digits: extraction refuses such answers (low-precision).",
    "depth-not-measured": (
        "Not measured: {hidden} hidden layers. Extraction tries any depth, but no measured network has more than "
        "{most}."
    ),
    "deep-few-digits-refused": (
        "With {hidden} hidden layers and few digits extraction refuses (low-precision): only one hidden layer has been "
        "recovered from such answers."
    ),
    "range-not-measured": "There is no estimate: costs inside a range of inputs were measured for few shapes.",
    "range-behind-link-not-measured": (
        "There is no estimate: behind a link answers show values inside a range alone, and costs there were measured "
        "for few shapes."
    ),
    "rows-left-out": 'The picture "{picture}" leaves out {rows} rows without a finite answer.',
}

"""Names that readers know: findings under the entries of MITRE ATLAS, NIST AI 100-2 and OWASP.

The verdict stands at the head of a report; here each entry has a short sentence of its own.
"""

from __future__ import annotations

from typing import Any

from reluctant.audit.known import Known
from reluctant.audit.leaks import open_leaks
from reluctant.audit.recovered import is_trained
from reluctant.audit.sweep import Sweep
from reluctant.audit.trained import gives_labels
from reluctant.audit.verdict import Verdict
from reluctant.defenses.registry import defense_words
from reluctant.percentages import percentage

__all__ = ["names"]

ATLAS, NIST, OWASP = "MITRE ATLAS", "NIST AI 100-2", "OWASP Machine Learning Security Top 10"

# What came of extracting the model, by the level of the verdict.
CAME_OF_IT = {
    "exact": "Succeeded: a verified copy.",
    "approximate": "Succeeded: a close copy, measured.",
    "span": "Succeeded in part: the directions of the input that the model looks at.",
    "nothing": "Did not succeed with the methods of this package.",
    "unknown": "Not settled.",
}
COPIED = ("exact", "approximate")


def names(known: Known, verdict: Verdict) -> list[dict[str, Any]]:
    """Each entry with what the audit found under it."""
    entries = [
        ("AML.T0040", "AI Model Inference API Access", ATLAS, "What the audit used: questions and answers alone."),
        ("AML.T0024.002", "Extract AI Model", ATLAS, CAME_OF_IT[verdict.level] + _trained(known)),
    ]
    if known.flips:
        flipped = sum(flip.ok for flip in known.flips)
        said = f"One gradient step flipped {flipped} of {len(known.flips)} inputs."
        entries.append(("AML.T0043.001", "Black-Box Optimization", ATLAS, said))
    entries += [
        ("AML.M0002", "Passive AI Output Obfuscation", ATLAS, _obfuscation(known.sweep)),
        ("AML.M0004", "Restrict Number of AI Model Queries", ATLAS, _limit(known)),
        ("NIST AI 100-2", "Model extraction", NIST, _what_is_known(known, verdict)),
        ("ML05:2023", "Model Theft", OWASP, _theft(known, verdict)),
    ]
    return [dict(zip(("id", "name", "source", "finding"), entry, strict=True)) for entry in entries]


def _labels(known: Known) -> float | None:
    """How often a network that was trained on the answers gives their label, where it is no copy and that says much."""
    run = known.training
    measured = None if run is None or run is known.copy or run.network is None else run.evidence.get("accuracy")
    return float(measured.agreement) if measured is not None and gives_labels(measured.to_dict()) else None


def _trained(known: Known) -> str:
    labels = _labels(known)
    return "" if labels is None else f" A trained network gives {percentage(labels)} of labels."


def _what_is_known(known: Known, verdict: Verdict) -> str:
    """Of architecture and weights."""
    run = known.copy
    if run is not None and run.network is not None:
        network = run.as_written(known.written_link)
        shape = "-".join(map(str, network.widths))
        if is_trained(run):
            return f"Neither architecture nor weights: another network that answers nearly alike, {shape}."
        what = "Architecture and weights" if verdict.level == "exact" else "A network that answers nearly alike"
        return f"{what}: {shape}, {network.parameters:,} parameters."
    if known.part is not None and known.part.confirmed:
        return f"{known.part.confirmed:,} neurons of the first layer: {known.part.weights:,} weights and biases."
    if verdict.level == "span" and known.span is not None:
        return f"No weights; {known.span.rank} of {known.span.subspace.dim} directions of the input."
    settled = "" if verdict.level != "unknown" else " so far: not settled"
    return f"Neither architecture nor weights{settled}."


def _theft(known: Known, verdict: Verdict) -> str:
    if known.copy is not None and verdict.level in COPIED:
        return f"A copy costs {known.copy.queries:,} queries."
    if "approximable" in verdict.unsettled:
        return "Whether a copy can be taken is not settled."
    labels = _labels(known)
    copied = "No close copy was made; training copied"
    return "No copy was made." if labels is None else f"{copied} {percentage(labels)} of labels."


def _obfuscation(sweep: Sweep | None) -> str:
    if sweep is None or not sweep.rows:
        return "No defense was tried."
    if sweep.open is not True:
        return "Nothing was rebuilt without a defense, so none can be seen to stop that."
    if sweep.cheapest is None:
        return "None of those that were tried is known to stop exact recovery."
    trained = sweep.cheapest.trained
    despite = "; a close copy could be trained all the same" if trained is not None and trained.copied else ""
    name = defense_words(sweep.cheapest.defense)
    return f"Exact recovery was stopped, at the least cost to users by {name}{despite}."


def _limit(known: Known) -> str:
    if known.copy is None:
        settled = "approximable" not in open_leaks(known)
        made = "No close copy was made" if settled else "Whether a copy can be made was not settled"
        return f"{made}, so no limit can be derived from one."
    return f"A copy took {known.copy.queries:,} queries: a limit helps only if it is well below that for each user."

"""Names that readers know: findings under the entries of MITRE ATLAS, NIST AI 100-2 and OWASP."""

from __future__ import annotations

from typing import Any

from reluctant.audit.known import Known
from reluctant.audit.verdict import NEEDS, Verdict

__all__ = ["names"]

ATLAS, NIST, OWASP = "MITRE ATLAS", "NIST AI 100-2", "OWASP Machine Learning Security Top 10"


def names(known: Known, verdict: Verdict) -> list[dict[str, Any]]:
    """Each entry with what the audit found under it."""
    entries = [
        ("AML.T0040", "AI Model Inference API Access", ATLAS, "What the audit used: questions and answers alone."),
        ("AML.T0024.002", "Extract AI Model", ATLAS, verdict.sentence),
    ]
    if known.flips:
        flipped = sum(flip.ok for flip in known.flips)
        said = f"One gradient step flipped {flipped} of {len(known.flips)} inputs."
        entries.append(("AML.T0043.001", "Black-Box Optimization", ATLAS, said))
    swept = "No defense was tried." if known.sweep is None else known.sweep.sentence
    entries += [
        ("AML.M0002", "Passive AI Output Obfuscation", ATLAS, swept),
        ("AML.M0004", "Restrict Number of AI Model Queries", ATLAS, _limit(known)),
        ("NIST AI 100-2", "Model extraction", NIST, verdict.sentence),
        ("ML05:2023", "Model Theft", OWASP, verdict.sentence),
    ]
    return [dict(zip(("id", "name", "source", "finding"), entry, strict=True)) for entry in entries]


def _limit(known: Known) -> str:
    if known.copy is None:
        settled = all(known.settled(step) for step in NEEDS["approximable"])
        made = "No copy was made" if settled else "Whether a copy can be made was not settled"
        return f"{made}, so no limit can be derived from one."
    return f"A copy took {known.copy.queries:,} queries: a limit helps only if it is well below that for each user."

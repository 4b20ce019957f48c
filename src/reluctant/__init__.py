"""reluctant: model extraction for ReLU networks, from their answers to queries.

The names below are all a user needs; each is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reluctant._version import __version__

if TYPE_CHECKING:
    from reluctant.adversarial import Flip, LocalLinearity, flip_sign, local_linearity
    from reluctant.audit import Audit, audit
    from reluctant.defenses import (
        ClippedInputs,
        Decimals,
        Defense,
        Digits,
        GaussianNoise,
        GradientDecimals,
        GradientNoise,
        GradientNone,
        GradientSign,
        GradientSize,
        GradientTop,
        HonestCost,
        LabelsOnly,
        LaplaceNoise,
        NumberFormat,
        Probabilities,
        QueryLimit,
        TopProbabilities,
        defend,
        honest_cost,
    )
    from reluctant.domains import Domain
    from reluctant.errors import ReluctantError
    from reluctant.estimation import Estimate, estimate
    from reluctant.extraction import (
        AnyDepth,
        AnyPosition,
        Candidate,
        DepthThree,
        DepthTwo,
        FewDigits,
        FewDigitsDeep,
        FromLabels,
        GradientLayers,
        Method,
        RoundedProbabilities,
        StageFailed,
        extract,
        verify_labels,
    )
    from reluctant.interface import Interface, check_health
    from reluctant.learning import learn, train_student
    from reluctant.networks import ReLUNetwork, equivalent
    from reluctant.oracles import Facts, Oracle, Reading, Recording, Serving, Wrapper, open_oracle
    from reluctant.papers.random_networks import random_network
    from reluctant.progress import show_progress
    from reluctant.report import report
    from reluctant.results import Outcome, Result
    from reluctant.span import (
        OutputSpace,
        Span,
        SpanGradients,
        Subspace,
        check_obfuscation,
        obfuscate,
        output_space,
        recover_span,
    )
    from reluctant.verification import Verification, verify
    from reluctant.verification.alignment import compare

__all__ = [
    "AnyDepth",
    "AnyPosition",
    "Audit",
    "Candidate",
    "ClippedInputs",
    "Decimals",
    "Defense",
    "DepthThree",
    "DepthTwo",
    "Digits",
    "Domain",
    "Estimate",
    "Facts",
    "FewDigits",
    "FewDigitsDeep",
    "Flip",
    "FromLabels",
    "GaussianNoise",
    "GradientDecimals",
    "GradientLayers",
    "GradientNoise",
    "GradientNone",
    "GradientSign",
    "GradientSize",
    "GradientTop",
    "HonestCost",
    "Interface",
    "LabelsOnly",
    "LaplaceNoise",
    "LocalLinearity",
    "Method",
    "NumberFormat",
    "Oracle",
    "Outcome",
    "OutputSpace",
    "Probabilities",
    "QueryLimit",
    "ReLUNetwork",
    "Reading",
    "Recording",
    "ReluctantError",
    "Result",
    "RoundedProbabilities",
    "Serving",
    "Span",
    "SpanGradients",
    "StageFailed",
    "Subspace",
    "TopProbabilities",
    "Verification",
    "Wrapper",
    "__version__",
    "audit",
    "check_health",
    "check_obfuscation",
    "compare",
    "defend",
    "equivalent",
    "estimate",
    "extract",
    "flip_sign",
    "honest_cost",
    "learn",
    "local_linearity",
    "obfuscate",
    "open_oracle",
    "output_space",
    "random_network",
    "recover_span",
    "report",
    "show_progress",
    "train_student",
    "verify",
    "verify_labels",
]

_HOMES = {
    "AnyDepth": "extraction",
    "AnyPosition": "extraction",
    "Audit": "audit",
    "Candidate": "extraction",
    "ClippedInputs": "defenses",
    "Decimals": "defenses",
    "Defense": "defenses",
    "DepthThree": "extraction",
    "DepthTwo": "extraction",
    "Digits": "defenses",
    "Domain": "domains",
    "Estimate": "estimation",
    "Facts": "oracles",
    "FewDigits": "extraction",
    "FewDigitsDeep": "extraction",
    "Flip": "adversarial",
    "FromLabels": "extraction",
    "GaussianNoise": "defenses",
    "GradientDecimals": "defenses",
    "GradientLayers": "extraction",
    "GradientNoise": "defenses",
    "GradientNone": "defenses",
    "GradientSign": "defenses",
    "GradientSize": "defenses",
    "GradientTop": "defenses",
    "HonestCost": "defenses",
    "Interface": "interface",
    "LabelsOnly": "defenses",
    "LaplaceNoise": "defenses",
    "LocalLinearity": "adversarial",
    "Method": "extraction",
    "NumberFormat": "defenses",
    "Oracle": "oracles",
    "Outcome": "results",
    "OutputSpace": "span",
    "Probabilities": "defenses",
    "QueryLimit": "defenses",
    "ReLUNetwork": "networks",
    "Reading": "oracles",
    "Recording": "oracles",
    "ReluctantError": "errors",
    "Result": "results",
    "RoundedProbabilities": "extraction",
    "Serving": "oracles",
    "Span": "span",
    "SpanGradients": "span",
    "StageFailed": "extraction",
    "Subspace": "span",
    "TopProbabilities": "defenses",
    "Verification": "verification",
    "Wrapper": "oracles",
    "audit": "audit",
    "check_health": "interface",
    "check_obfuscation": "span",
    "compare": "verification.alignment",
    "defend": "defenses",
    "equivalent": "networks",
    "estimate": "estimation",
    "extract": "extraction",
    "flip_sign": "adversarial",
    "honest_cost": "defenses",
    "learn": "learning",
    "local_linearity": "adversarial",
    "obfuscate": "span",
    "open_oracle": "oracles",
    "output_space": "span",
    "random_network": "papers.random_networks",
    "recover_span": "span",
    "report": "report",
    "show_progress": "progress",
    "train_student": "learning",
    "verify": "verification",
    "verify_labels": "extraction",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'reluctant' has no attribute '{name}'")
    home = import_module(f"reluctant.{_HOMES[name]}")
    value = home if _HOMES[name] == name else getattr(home, name)  # audit and report are packages that can be called
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

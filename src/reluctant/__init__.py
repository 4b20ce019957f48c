"""reluctant: looks at a ReLU network through its answers alone and gets back what it hides.

The names below are all a user needs; each is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reluctant._version import __version__

if TYPE_CHECKING:
    from reluctant.adversarial import Flip, LocalLinearity, flip_sign, local_linearity
    from reluctant.defenses import HonestCost, defend, honest_cost
    from reluctant.domains import Domain
    from reluctant.errors import ReluctantError
    from reluctant.estimation import Estimate, estimate
    from reluctant.extraction import AnyDepth, DepthThree, DepthTwo, FewDigits, extract
    from reluctant.health import Health, check_health
    from reluctant.learning import learn, train_student
    from reluctant.networks import ReLUNetwork, equivalent
    from reluctant.oracles import Facts, Oracle, Wrapper, open_oracle
    from reluctant.papers.random_networks import random_network
    from reluctant.results import Outcome, Result
    from reluctant.span import Span, SpanGradients, Subspace, check_obfuscation, obfuscate, recover_span
    from reluctant.verification import Verification, verify
    from reluctant.verification.alignment import compare

__all__ = [
    "AnyDepth",
    "DepthThree",
    "DepthTwo",
    "Domain",
    "Estimate",
    "Facts",
    "FewDigits",
    "Flip",
    "Health",
    "HonestCost",
    "LocalLinearity",
    "Oracle",
    "Outcome",
    "ReLUNetwork",
    "ReluctantError",
    "Result",
    "Span",
    "SpanGradients",
    "Subspace",
    "Verification",
    "Wrapper",
    "__version__",
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
    "random_network",
    "recover_span",
    "train_student",
    "verify",
]

_HOMES = {
    "AnyDepth": "extraction",
    "DepthThree": "extraction",
    "DepthTwo": "extraction",
    "Domain": "domains",
    "Estimate": "estimation",
    "Facts": "oracles",
    "FewDigits": "extraction",
    "Flip": "adversarial",
    "Health": "health",
    "HonestCost": "defenses",
    "LocalLinearity": "adversarial",
    "Oracle": "oracles",
    "Outcome": "results",
    "ReLUNetwork": "networks",
    "ReluctantError": "errors",
    "Result": "results",
    "Span": "span",
    "SpanGradients": "span",
    "Subspace": "span",
    "Verification": "verification",
    "Wrapper": "oracles",
    "check_health": "health",
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
    "random_network": "papers.random_networks",
    "recover_span": "span",
    "train_student": "learning",
    "verify": "verification",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'reluctant' has no attribute '{name}'")
    value = getattr(import_module(f"reluctant.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

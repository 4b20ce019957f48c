"""What a comparison of a target with a network found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from reluctant.numerics import FloatArray
from reluctant.verification.at_use import AtUse

__all__ = ["GroupError", "HeldOut", "Verification"]

FEWER_DIGITS = ", more where answers have fewer digits"
MISSING = "Neurons whose creases lie farther out may be missing."


@dataclass(frozen=True)
class GroupError:
    """Errors over one group of points, relative to the standard deviation of the target's output."""

    name: str
    points: int
    max_error: float
    rms_error: float


@dataclass(frozen=True)
class HeldOut:
    """Rows on the creases of a network that were asked before and kept to verify it."""

    rows: FloatArray
    answers: FloatArray


@dataclass(frozen=True)
class Verification:
    """Comparison of a target with a network.

    Errors are relative to the standard deviation of each output at the scale of use (scale 1), or at the
    scale of the points where that is larger. `tol` is the tolerance at the scale of use; where the answers
    are larger, and their noise with them, as much more is allowed. `untested` counts neurons whose crease
    does not pass the scale of use. If `ok`, `share` is the largest part of inputs of one scale that may err by
    more than `tol` and not have been met, with the stated confidence. `inside` is where alone it was compared, if
    probabilities saturate elsewhere; `at_use` what typical inputs outside it say, and `only_inside` that these alone
    speak against it. `undecided` says that errors are within the noise, and it is too large to decide.
    """

    ok: bool
    max_error: float
    rms_error: float
    tol: float
    points: int
    groups: tuple[GroupError, ...]
    untested: int
    share: float
    confidence: float
    queries: int
    inside: str = ""
    undecided: bool = False
    at_use: AtUse | None = None
    only_inside: bool = False

    def beside(self, at_use: AtUse | None) -> Verification:
        """The same with what typical inputs say, which must agree too."""
        if at_use is None:
            return self
        both, only_inside = self.ok and at_use.ok, self.ok and not at_use.ok
        return replace(self, ok=both, only_inside=only_inside, at_use=at_use, queries=self.queries + at_use.asked)

    @property
    def bound(self) -> float:
        """Error that no point went beyond: the tolerance, or what was seen where answers have fewer digits."""
        return max(self.tol, self.max_error)

    def __str__(self) -> str:
        if self.undecided:
            return f"The noise of the target is too large to compare: a tolerance of {self.tol:.1e} decides nothing."
        fewer_digits = self.ok and self.max_error > self.tol
        than, where_fewer = (f" than {self.bound:.1e}", FEWER_DIGITS) if fewer_digits else ("", "")
        unseen = (
            f" With {self.confidence:.0%} confidence fewer than {self.share:.1%} of inputs of one scale err by "
            f"more{than}."
        )
        have = "neuron has" if self.untested == 1 else "neurons have"
        untested = f" {self.untested} {have} no crease where random points look for one."
        return (
            f"{self._verdict}: error {self.max_error:.1e} at most, {self.rms_error:.1e} rms, of the output's standard "
            f"deviation, over {self.points} points{self._where} (tolerance {self.tol:.1e}{where_fewer})."
            + (unseen if self.ok else "")
            + (untested if self.untested else "")
            + (f" {self.at_use}" if self.at_use is not None else "")
            + (f" {MISSING}" if self.only_inside else "")
        )

    @property
    def _verdict(self) -> str:
        if self.only_inside:
            return "The network does NOT agree with the target everywhere. In a part it does"
        return f"The network {'agrees' if self.ok else 'does NOT agree'} with the target"

    @property
    def _where(self) -> str:
        return f" inside {self.inside}, where answers do not saturate" if self.inside else ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `inside` and `at_use` only where there is such a box."""
        data = asdict(self)
        del data["undecided"], data["only_inside"]  # `ok` and the numbers say it
        return {name: value for name, value in data.items() if name not in ("inside", "at_use") or value}

"""The ladder: which methods `extract` tries on a target, when it goes on to the next, and what they have found.

`LADDER` is the table. Each rung names a method, what it needs of the target (`Need`), and what sends the search on:
findings of a failed stage (`Shows`), or a condition on what earlier attempts left (`Standing`). `walk` goes through
it. The cheapest method that may do comes first: one hidden layer costs about a query a parameter, two cost ten, more
cost twenty and up; few digits cost some five times as much.

`Attempts` lists what was tried. `SearchFindings` are what a search decides by, each under a name and a type; the
evidence of a result is written from them at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from enum import Enum, auto
from typing import Any, TypeAlias

import numpy as np

from reluctant.domains import Domain
from reluctant.extraction.any_depth import AnyDepth, Completion, DeepInBounds, DeepInBox, LayerLimits
from reluctant.extraction.any_position import AnyPosition
from reluctant.extraction.candidate_check import CheckedNetwork
from reluctant.extraction.crease_depth import CreaseKinds
from reluctant.extraction.deep_few_digits import FewDigitsDeep
from reluctant.extraction.deep_gradients import GradientLayers
from reluctant.extraction.depth_three import DepthThree
from reluctant.extraction.depth_two import DepthTwo, JumpLines
from reluctant.extraction.few_digits import FewDigits
from reluctant.extraction.method import Method, OrientedHyperplanes, Shows, StageFailed
from reluctant.extraction.rounded_probabilities import RoundedProbabilities
from reluctant.geometry.jumps import SearchedLine
from reluctant.interface import Interface
from reluctant.interface.reach import ClippedRange, ReadTarget
from reluctant.messages import Diagnosis
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles.input_units import Box
from reluctant.results import Run
from reluctant.verification.own_scales import OwnScales


class Need(Enum):
    """What a rung may need of the target and of the place where it is asked.

    GRADIENTS: it answers them, and they are gradients; VALUES: it does not. DIGITS: all those of float64, as far as
    exact methods can tell; FEW_DIGITS: fewer, and enough to work with; NOISE: all of them, with a noise that shows.
    ROUNDED: probabilities of so few decimals that no line can be read. SPACE: it is asked everywhere; BOUNDS: within
    bounds; OWN_BOX: within bounds that the search has chosen. ONE_INPUT, MORE_INPUTS.
    """

    GRADIENTS = auto()
    VALUES = auto()
    DIGITS = auto()
    FEW_DIGITS = auto()
    NOISE = auto()
    ROUNDED = auto()
    SPACE = auto()
    BOUNDS = auto()
    OWN_BOX = auto()
    ONE_INPUT = auto()
    MORE_INPUTS = auto()


@dataclass(frozen=True)
class Standing:
    """What the attempts so far leave to the next one.

    shows: of the last attempt that failed in a stage.
    lines: that this attempt searched.
    first: the first layer that it found.
    part: the part of the network that is known.
    whole: a whole network was found, and is in doubt.
    against: rows (n, d) that spoke against such networks.
    stages: in which rows were asked.
    layers: follows creases of a line, at the first call, to tell how deep it is.
    """

    domain: Domain
    shows: Shows
    lines: tuple[SearchedLine, ...]
    first: OrientedHyperplanes | None
    part: ReLUNetwork | None
    whole: bool
    against: list[FloatArray]
    stages: Collection[str]
    layers: Callable[[], CreaseKinds]


Choice: TypeAlias = Callable[[Standing], Method | None]
Condition: TypeAlias = Callable[[Standing], bool]
AGAIN = None  # as often as there are attempts


@dataclass(frozen=True)
class Rung:
    """One or more attempts by one method.

    method: as a function of the standing; None passes the rung.
    needs: all of these.
    unless: findings of the last failure that make it vain.
    unless_twice: the same of findings that two of its own attempts have shown.
    when: asked before each attempt.
    times: most attempts.
    last_if: asked after the last one; if true the ladder ends here.
    """

    method: Choice
    needs: frozenset[Need]
    unless: frozenset[Shows] = frozenset()
    unless_twice: frozenset[Shows] = frozenset()
    when: Condition = lambda _: True
    times: int | None = 1
    last_if: Condition = lambda _: False


def walk(rungs: Collection[Rung], has: frozenset[Need], standing: Callable[[], Standing]) -> Iterator[Method]:
    """The methods for a target that has all this, one for each attempt, by what earlier ones have shown."""
    for rung in rungs:
        if not rung.needs <= has:
            continue
        shown: list[Shows] = []
        while rung.times is AGAIN or len(shown) < rung.times:
            now = standing()
            vain = now.shows in rung.unless or any(shown.count(each) > 1 for each in rung.unless_twice)
            method = None if vain or not rung.when(now) else rung.method(now)
            if method is None:
                break
            yield method
            shown.append(standing().shows)
        if shown and rung.last_if(standing()):
            return


def again_and_again(method: Method) -> tuple[Rung, ...]:
    """The ladder of a method that was asked for."""
    return (Rung(_always(method), frozenset(), times=AGAIN),)


def _always(method: Method) -> Choice:
    return lambda _: method


def _through_counterexamples(now: Standing) -> Method | None:
    rows = [row for row in now.against if now.domain.contains(row[None])]
    return DepthTwo(by_gradients=JumpLines(through=np.array(rows))) if rows else None


def _is_crowded(now: Standing) -> bool:
    """True if a line has so many creases that some are too close to each other."""
    return now.part is not None and now.part.depth == 2 and now.part.widths[1] >= DepthTwo.crowd


def _bends(now: Standing) -> bool:
    """True if creases bend, or several layers were looked for before."""
    return now.shows is Shows.BENT_CREASES or "layer 1" in now.stages


def _lacks_digits_alone(now: Standing) -> bool:
    """True if one hidden layer explains the lines."""
    return DepthTwo.depth_known_from in now.stages and now.shows is not Shows.WITNESSES


def _needs(*needs: Need) -> frozenset[Need]:
    return frozenset(needs)


FEW_FOLLOWED, FEW_FOLLOWED_EACH = 500, 10  # creases, in all and for each neuron: networks that are found need fewer
HIDDEN_SHARE = 0.7  # of a neuron's crossings of lines, where units that are off hide the others
_SHORT = LayerLimits(followed=FEW_FOLLOWED, followed_each=FEW_FOLLOWED_EACH)
_IN_PART = replace(_SHORT, seen_share=HIDDEN_SHARE, in_part=True)
_ONE_LAYER, _ROUNDED = _always(DepthTwo()), _needs(Need.ROUNDED)
_BY_GRADIENTS = _needs(Need.GRADIENTS, Need.SPACE, Need.DIGITS, Need.MORE_INPUTS)
_FEW, _FEW_INSIDE = _needs(Need.FEW_DIGITS, Need.SPACE), _needs(Need.FEW_DIGITS, Need.BOUNDS)
_DIGITS, _OWN_BOX = _needs(Need.DIGITS), _needs(Need.DIGITS, Need.OWN_BOX)
_DEEPER = frozenset({Shows.BENT_CREASES, Shows.OTHER_CREASES})

LADDER = (
    # Probabilities of a few decimals: one fit, then fits to more rows.
    Rung(_always(RoundedProbabilities()), _ROUNDED),
    Rung(_always(RoundedProbabilities(answers_each=8.0, fewest_rows=2400)), _ROUNDED, times=AGAIN),
    # Gradients: one hidden layer, again through inputs that spoke against it; then more layers.
    Rung(_ONE_LAYER, _needs(Need.GRADIENTS)),
    Rung(_through_counterexamples, _needs(Need.GRADIENTS, Need.SPACE)),
    Rung(_through_counterexamples, _needs(Need.GRADIENTS, Need.BOUNDS), times=3),  # bounds hide neurons of a corner
    Rung(lambda now: GradientLayers(begun=now.lines), _BY_GRADIENTS),
    Rung(lambda now: GradientLayers(through=np.array(now.against)), _BY_GRADIENTS, when=lambda now: now.whole),
    Rung(_always(FewDigits()), _needs(Need.NOISE)),
    # Few digits inside bounds: more lines meet more creases; two hidden layers where lines do not share them.
    Rung(_always(FewDigits(3)), _FEW_INSIDE, unless=_DEEPER),
    Rung(_always(FewDigits(6)), _FEW_INSIDE, unless=_DEEPER),
    Rung(_always(FewDigits(12)), _FEW_INSIDE, unless=_DEEPER),
    Rung(_always(FewDigitsDeep()), _FEW_INSIDE, unless=frozenset({Shows.WIDE_LAYER}), times=AGAIN),
    # Few digits: one hidden layer until there seem to be more (one line may miss a neuron, two rarely do); then two.
    Rung(_always(FewDigits()), _FEW, unless=_DEEPER, unless_twice=frozenset({Shows.SUBSPACE}), times=AGAIN),
    Rung(_always(FewDigitsDeep()), _FEW, unless=frozenset({Shows.WIDE_LAYER}), times=AGAIN),
    # All digits: one hidden layer; in a crowd again, as what follows costs far more there.
    Rung(_ONE_LAYER, _needs(Need.DIGITS, Need.VALUES)),
    Rung(_ONE_LAYER, _DIGITS, when=_is_crowded, last_if=_lacks_digits_alone),
    # Within bounds of its own: one hidden layer again, then several; within a user's, several where creases bend.
    Rung(_ONE_LAYER, _OWN_BOX, unless=frozenset({Shows.BENT_CREASES})),
    Rung(_always(DeepInBox()), _OWN_BOX, times=AGAIN),
    Rung(_always(DeepInBounds()), _needs(Need.DIGITS, Need.BOUNDS), when=_bends, times=2),
    Rung(_ONE_LAYER, _needs(Need.DIGITS, Need.BOUNDS), times=AGAIN),
    Rung(_ONE_LAYER, _needs(Need.DIGITS, Need.ONE_INPUT), times=AGAIN),
    # Everywhere: by what creases look like, unless no exact method could work with them.
    Rung(_always(DepthThree()), _DIGITS, when=lambda now: now.layers().may_be_deeper),
    Rung(_ONE_LAYER, _DIGITS, when=lambda now: now.layers().may_be_one_layer and now.layers().one_layer),
    Rung(
        lambda now: AnyPosition(  # a few lines do not show all neurons apart
            fewest_neurons=now.layers().creases, through=np.array(now.against) if now.against else None
        ),
        _DIGITS,
        when=lambda now: now.layers().may_be_one_layer,
    ),
    Rung(
        lambda now: AnyDepth(first=now.first, search=_SHORT),
        _DIGITS,
        when=lambda now: now.first is not None,
    ),
    Rung(  # a line may show no bent crease
        lambda now: AnyDepth(search=_SHORT, through=np.array(now.against) if now.against else None),
        _DIGITS,
        when=lambda now: not now.layers().hopeless,
    ),
    Rung(
        _always(AnyDepth(search=_IN_PART, completion=Completion(rounds=6, fruitless=2))),
        _DIGITS,
        when=lambda now: not now.layers().hopeless,
        times=AGAIN,
    ),
)  # fmt: skip


# ---- what was tried and found


@dataclass(frozen=True)
class Attempt:
    """One run of a method: its name, its rows, its last stage, and the number that ended it.

    raised: type of the exception, where its arithmetic failed.
    """

    method: str
    rows: int
    stage: str
    number: float | None = None
    limit: float | None = None
    raised: str = ""

    def __str__(self) -> str:
        why = "" if self.number is None or self.limit is None else f" ({self.number:.2g}, limit {self.limit:.2g})"
        return f"{self.method}: {self.rows} rows, last stage {self.stage or 'start'}{why}"


@dataclass
class Attempts:
    """What was tried, in order."""

    entries: list[Attempt] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(map(str, self.entries))

    @contextmanager
    def entry(self, method: Method, run: Run[Any]) -> Iterator[None]:
        """Enter one attempt, however it ends."""
        before, number, limit, stage, raised = run.rows.asked, None, None, "", ""
        try:
            yield
        except StageFailed as failure:
            number, limit, stage, raised = failure.number, failure.limit, failure.stage, failure.raised
            raise
        finally:
            rows = run.rows.asked - before
            self.entries.append(Attempt(type(method).__name__, rows, stage or run.stage, number, limit, raised))

    def last_was_cheap(self, attempts: int, *, however: bool = False) -> bool:
        """True if the last method has had fewer attempts, with less than half of all rows, or however many."""
        same = [entry.rows for entry in self.entries if entry.method == self.entries[-1].method]
        return len(same) < attempts and (however or 2 * sum(same) <= sum(entry.rows for entry in self.entries))

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain data for JSON."""
        return [asdict(entry) for entry in self.entries]


@dataclass
class SearchFindings:
    """What one search has found, for the result; None of what it did not look at.

    health: of the place that was asked last.
    inside: the box of that place.
    link: through which answers were read.
    gradients: why those of the target were not used.
    failures: why attempts ended, in order.
    layers: creases of a line that were followed.
    network: the last whole one, with its checks.
    own_scales: its comparison at the columns' own sizes.
    unit_ratio: of the largest unit of an input to the smallest, where the search found them.
    elsewhere: what shows that inputs are not where questions were asked.
    reason: why the search ended.
    """

    health: Interface | None = None
    inside: Box | None = None
    link: ReadTarget | None = None
    gradients: Diagnosis | None = None
    failures: list[str] | None = None
    layers: CreaseKinds | None = None
    network: CheckedNetwork | None = None
    own_scales: OwnScales | None = None
    clipped: ClippedRange | None = None
    unit_ratio: float | None = None
    elsewhere: Diagnosis | None = None
    reason: Diagnosis | None = None

    @property
    def interface(self) -> Interface:
        """The health of the target, which every search looks at first."""
        assert self.health is not None
        return self.health

    def enter(self, health: Interface, inside: Box | None) -> None:
        """Note how the target answers where it is asked from now on, and the box of that place if it is one."""
        self.health, self.inside = health, inside or self.inside

    def fail(self, reason: str) -> None:
        """Note why an attempt ended."""
        self.failures = [*(self.failures or []), reason]

    def evidence(self) -> dict[str, Any]:
        """As the result shows it."""
        found: dict[str, Any] = {"health": self.health, "inside": self.inside}
        found |= {} if self.link is None else self.link.evidence() | {"health": self.health}
        found |= {"gradients": self.gradients, "failures": self.failures, "layers": self.layers}
        found |= {} if self.network is None else self.network.evidence()
        found |= {"own scales": self.own_scales}
        found |= {} if self.clipped is None else self.clipped.evidence()
        found |= {"reason": self.reason, "found units": self.unit_ratio, "elsewhere": self.elsewhere}
        return {name: value for name, value in found.items() if value is not None or name == "certificate"}

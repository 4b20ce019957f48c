"""`verify`: a network compared with a target, as a verb, and `examine`, the same as a stage of a larger run.

`points` says where they are compared, `comparison` by which tolerance. Probabilities are compared inside a box in which
their link can read them, and at typical inputs outside it. Network against network, weights in hand, is in
`reluctant.verification.alignment`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from reluctant._notebook import html_table
from reluctant.domains import Domain
from reluctant.errors import InvalidInput, NonFiniteAnswer
from reluctant.interface.kinds import USABLE_NOISE
from reluctant.interface.noise import RawDigits, format_noise, measure_noise, noise_model, refuse_labels, rounding_noise
from reluctant.interface.reach import FARTHEST, smaller, unsaturated_box
from reluctant.messages import Diagnosis, Notes
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Noise, Rng, as_generator
from reluctant.oracles.input_units import Box
from reluctant.oracles.keywords import InputsKeywords
from reluctant.oracles.ledger import Counting
from reluctant.oracles.links import raw_answers
from reluctant.oracles.open import Target, in_units, opened_target
from reluctant.verification.comparison import (
    AcceptedError,
    AtUse,
    compare_answers,
    compare_at_use,
    slope_errors,
)
from reluctant.verification.points import SCALES, PointCounts, PointGroup, comparison_points


@dataclass(frozen=True)
class GroupError:
    """Errors over one group of points, relative to the standard deviation of the target's output."""

    name: str
    points: int
    max_error: float
    rms_error: float


@dataclass(frozen=True)
class HeldOutRows:
    """Rows with their answers, and gradients where there are some, asked before and kept to verify a network.

    instead: of new points on creases; else beside them.
    """

    rows: FloatArray
    answers: FloatArray
    gradients: FloatArray | None = None  # (n, m, d)
    name: str = "on creases"
    instead: bool = True


@dataclass(frozen=True)
class AskedRows:
    """Groups of points, the scales first, that were asked before and kept to verify a network; and their answers.

    raw: the answers of the target itself behind its link.
    """

    groups: Sequence[PointGroup]
    answers: FloatArray
    raw: tuple[FloatArray, ...] = ()


@dataclass(frozen=True)
class Verification:
    """Comparison of a target with a network.

    Errors are relative to the standard deviation of each output at the scale of use (scale 1), or at the scale of the
    points where that is larger.

    tol: the tolerance at the scale of use; it grows with answers and their noise.
    untested: neurons without a crease at the scale of use.
    share: if `ok`, the largest share of inputs of the scale of use that may err by more than `tol` unseen, at this
        confidence.
    inside: the box of the comparison, if probabilities saturate elsewhere.
    at_use: the comparison at typical inputs outside it.
    only_inside: it alone failed.
    undecided: the noise is too large to decide.
    counterexamples: the rows with the largest errors, if not `ok`.
    slope_error: the largest error of a gradient, relative to the largest gradient, if the target answers gradients.
    exceeded: the error that is farthest beyond its own tolerance, and that tolerance, where no error is beyond `tol`:
        far out, where outputs are large, the same noise is a smaller part of them.
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
    slope_error: float | None = None
    exceeded: tuple[float, float] | None = None
    counterexamples: HeldOutRows | None = field(default=None, compare=False, repr=False)

    def beside(self, at_use: AtUse | None) -> Verification:
        """The verification together with the comparison at typical inputs, which must agree too."""
        if at_use is None:
            return self
        both, only_inside = self.ok and at_use.ok, self.ok and not at_use.ok
        return replace(self, ok=both, only_inside=only_inside, at_use=at_use, queries=self.queries + at_use.asked)

    @property
    def bound(self) -> float:
        """Error that no point went beyond: the tolerance, or what was seen where answers have fewer digits."""
        return max(self.tol, self.max_error)

    @property
    def narrowest(self) -> float:
        """Width of a ridge through the middle of typical inputs that holds `share` of them, in deviations of an input.

        A narrower one may have been missed. A Gaussian's density in its middle is 1/√(2π).
        """
        return float(self.share * np.sqrt(2 * np.pi))

    @property
    def notes(self) -> Notes:
        """The comparison, its result and what it may have missed, as diagnoses."""
        if self.undecided:
            return Notes((Diagnosis("noise-too-large", {"tol": self.tol}),))
        fewer = self.ok and self.max_error > self.tol
        slug = "values-agree-inside" if self.only_inside else "values-agree" if self.ok else "values-differ"
        errors = {"max_error": self.max_error, "rms_error": self.rms_error, "points": self.points, "tol": self.tol}
        where = {"inside": self.inside, "fewer": fewer, "exceeded": self.exceeded}
        found = [Diagnosis(slug, errors | where)]
        if self.ok:
            unseen = {"confidence": self.confidence, "share": self.share, "narrowest": self.narrowest}
            found.append(Diagnosis("share-unseen", unseen | {"bound": self.bound if fewer else None}))
        if self.slope_error is not None:
            found.append(Diagnosis("slopes-compared", {"slope_error": self.slope_error}))
        if self.untested:
            found.append(Diagnosis("creases-untested", {"untested": self.untested}))
        if self.at_use is not None:
            found.append(self.at_use.diagnosis)
        if self.only_inside:
            found.append(Diagnosis("creases-farther-out"))
        return Notes(tuple(found))

    def __str__(self) -> str:
        return str(self.notes)

    def _repr_html_(self) -> str:
        errors = {"largest error": self.max_error, "typical error": self.rms_error, "tolerance": self.tol}
        asked = {"points": self.points, "queries": self.queries, "what happened": str(self)}
        return html_table(f"Verification: {'passed' if self.ok else 'failed'}", {**errors, **asked})

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `inside` and `at_use` only where there is such a box."""
        data = asdict(replace(self, counterexamples=None))
        del data["undecided"], data["only_inside"]  # `ok` and the numbers say it
        del data["exceeded"], data["counterexamples"]
        data["narrowest"] = self.narrowest
        return {name: value for name, value in data.items() if name not in SOMETIMES or value not in (None, "")}


SOMETIMES = ("inside", "at_use", "slope_error")  # of the fields: in a record only where they say something


CONFIDENCE = 0.95


def verify(
    oracle: Target, network: ReLUNetwork, *, rng: Rng = 1, tol: float | None = None, noise: Noise | None = None,
    points: int = 64, per_neuron: int = 2, **opening: Unpack[InputsKeywords],
) -> Verification:  # fmt: skip
    """Compare a network with a target: at four scales, on its creases and beside them, and along lines.

    Arguments:
        oracle: the target: an oracle, or anything that `open_oracle` takes.
        network: the network to compare.
        rng: seed of the points. Use another one than for the extraction.
        tol: largest error to accept, relative to the output's standard deviation. By default half the digits of
            float64, or as many as the noise of the target allows.
        noise: noise of the target, if a health check has measured it.
        points: random points at each of the scales 0.1, 1, 3 and 10.
        per_neuron: points beside each neuron's crease, besides the one on it.
        opening: keywords of `open_oracle`, for this call: dim, budget, link, ...

    Cost: 4·points + (1 + per_neuron)·neurons rows, 64 on two lines, where neurons are rarely on and at extremes. About
    60 more to measure the noise if neither tol nor noise is given. Behind a link without a domain 120 more, to find
    where probabilities do not saturate, and 420 if typical inputs lie outside.
    """
    counts, accepted = PointCounts(points=points, per_neuron=per_neuron), AcceptedError(tol, noise)
    comparison = partial(examine, counts=counts, accepted=accepted)
    with opened_target(oracle, opening) as opened:
        target, units = in_units(opened)
        network = _in_gauge(network, opened)
        return _verify(target, network if units is None else units.reduced_network(network), rng, comparison)


def _verify(opened: Counting, network: ReLUNetwork, rng: Rng, comparison: Callable[..., Verification]) -> Verification:
    generator = as_generator(rng)
    opened.begin("verify", rng)
    with raw_answers(opened) as raw:
        compare = partial(comparison, network=network, rng=generator, raw=raw)
        box = _readable_box(opened, generator, raw)
        if box is None:
            return compare(opened)
        found, box = _compare_inside(opened, box, compare)
        at_use = compare_at_use(opened, network, box, found.tol, generator)
    return replace(found.beside(at_use), inside=str(Box.of(opened, box)))


def _compare_inside(
    oracle: Counting, box: Domain, compare: Callable[[Counting], Verification]
) -> tuple[Verification, Domain]:
    """The comparison inside a box, or inside a smaller one where probabilities saturate in it after all."""
    for _ in range(2):
        try:
            return compare(Counting(oracle.inner, oracle.ledger, box)), box
        except NonFiniteAnswer:
            box = smaller(box)
    return compare(Counting(oracle.inner, oracle.ledger, box)), box


def _readable_box(oracle: Counting, rng: np.random.Generator, raw: list[FloatArray]) -> Domain | None:
    """A box in which probabilities behind a link do not saturate; None if there is none, or it holds random points."""
    if not (oracle.facts.saturates and oracle.facts.domain.is_space):
        return None
    box = unsaturated_box(oracle, rng)
    if box is not None:
        return box if np.max(box.high) < FARTHEST * SCALES[-1] else None
    refuse_labels(oracle)
    behind = RawDigits.last_of(oracle, raw)
    if behind is not None and behind.too_coarse:
        raise InvalidInput.about(
            "oracle", got=f"{behind.noun} {behind.digits_text}, some of which are certain everywhere",
            expected="digits that a link can read",
            fix="How close a network comes to such answers, train_student and audit measure.",
        )  # fmt: skip
    return None


def examine(
    oracle: Counting,
    network: ReLUNetwork,
    rng: np.random.Generator,
    counts: PointCounts,
    accepted: AcceptedError,
    *,
    held_out: HeldOutRows | None = None,
    counterexamples: Sequence[HeldOutRows] = (),
    asked: AskedRows | None = None,
    gradients: bool = False,
    raw: Sequence[FloatArray] = (),
) -> Verification:
    """The comparison as a stage of a larger run.

    held_out: rows with their answers, asked before. counterexamples: of
    earlier networks, with their answers. asked: all points, asked before, of a network without hidden neurons: then
    nothing is asked. gradients: compare those that the target answers, too, at points beside creases in place of points
    on them. raw: the answers of the target itself behind its link, before and from now on.
    """
    before, slopes, creases = oracle.queries, None, held_out is None or not held_out.instead
    if asked is None:
        with oracle.stage("verify"):
            groups, untested = comparison_points(
                network, oracle.facts.domain, rng, counts, creases=creases, on_creases=not gradients,
                extremes=oracle.facts.domain.is_space and not oracle.facts.saturates,
                samples=oracle.facts.samples, arrays=oracle.arrays,
            )  # fmt: skip
            rows = np.concatenate([group.rows for group in groups])
            if gradients:
                found = oracle.query_gradients(rows)
                answers, slopes = found.values, found.gradients
            else:
                answers = oracle.query(rows)
            if accepted.is_open:
                accepted = replace(accepted, noise=_measure_noise(oracle, rng, answers, raw))
    else:
        groups, untested, answers, raw = [*asked.groups], 0, asked.answers, asked.raw
    if held_out is not None:
        groups.append(PointGroup(held_out.name, held_out.rows))
        answers = np.concatenate([answers, held_out.answers])
        if slopes is not None and held_out.gradients is not None:
            rows, slopes = np.concatenate([rows, held_out.rows]), np.concatenate([slopes, held_out.gradients])
    for number, each in enumerate(counterexamples, 1):
        groups.append(PointGroup(f"counterexamples {number}", each.rows))
        answers = np.concatenate([answers, each.answers])
    compared = compare_answers(network, oracle, groups, answers, raw)
    tolerances = compared.tolerances(accepted)
    typical = float(np.median(tolerances[compared.at_use].min(axis=1)))
    within, off = bool(np.all(compared.errors <= tolerances)), None
    if slopes is not None:
        off = np.zeros(len(answers))
        off[: len(slopes)] = slope_errors(network, rows, slopes)
        within &= bool(np.all(off <= typical))
    decisive, exceeded = accepted.decides(typical), None
    if (compared.errors > tolerances).any() and compared.errors.max() <= typical:
        worst = np.unravel_index(np.argmax(compared.errors / tolerances), tolerances.shape)
        exceeded = float(compared.errors[worst]), float(tolerances[worst])
    summary = _summarise(compared.largest(), within and decisive, typical, untested, oracle.queries - before)
    against = None
    if not within:
        excess = (compared.errors / tolerances).max(axis=1)
        against = _counterexamples(groups, answers, excess if off is None else np.maximum(excess, off / typical))
    slope_error = None if off is None else float(off.max())
    return replace(
        summary, undecided=within and not decisive, slope_error=slope_error, exceeded=exceeded, counterexamples=against
    )


def examine_by_gradients(
    oracle: Counting,
    network: ReLUNetwork,
    rng: np.random.Generator,
    *,
    noise: Noise,
    held_out: HeldOutRows | None = None,
    counterexamples: Sequence[HeldOutRows] = (),
) -> Verification:
    """Several hidden layers beside values and gradients: d + 1 numbers a row, so far fewer rows than values take.

    held_out: rows where units that a layer may lack would be on, if they were asked before. Lines go far out: a unit
    that the network lacks changes the gradient of the target in some piece of a line that meets its crease.
    """
    few_neurons, two_hidden, covering = 32, 3, 64  # layers of weights; rows a layer, at most
    small = network.depth > two_hidden or sum(network.widths[1:-1]) <= few_neurons  # units that few inputs switch on
    counts = PointCounts(points=48, per_neuron=1, at_use=256, alone=32, whole_lines=128)
    if not small:
        counts = PointCounts(points=6, per_neuron=0, at_use=40, on_lines=0, whole_lines=18)
    if small or held_out is None or not held_out.instead:
        counts = replace(counts, covering=covering, far_cells=True)
    return examine(
        oracle, network, rng, counts, AcceptedError(noise=noise),
        held_out=held_out, counterexamples=counterexamples, gradients=True,
    )  # fmt: skip


def _counterexamples(groups: Sequence[PointGroup], answers: FloatArray, excess: FloatArray) -> HeldOutRows:
    """The rows at which the network errs most, beyond the tolerance."""
    most = 8
    worst = np.argsort(-excess)[:most]
    worst = worst[excess[worst] > 1]
    return HeldOutRows(np.concatenate([group.rows for group in groups])[worst], answers[worst])


def _measure_noise(oracle: Counting, rng: np.random.Generator, answers: FloatArray, raw: Sequence[FloatArray]) -> Noise:
    near, far = measure_noise(oracle, rng), measure_noise(oracle, rng, SCALES[-1])
    noise = Noise(0.0, 0.0) if near is None else noise_model(near, far)
    if far is not None and noise.relative > USABLE_NOISE:  # answers that are nothing but noise are no measure of it
        noise = Noise(max(noise.absolute, far.sd), 0.0)
    behind = RawDigits.last_of(oracle, raw)
    rounding = max(rounding_noise(answers), 0.0 if behind is None else behind.noise)
    return Noise(max(noise.absolute, rounding), max(noise.relative, format_noise(answers)))


def _in_gauge(network: ReLUNetwork, oracle: Counting) -> ReLUNetwork:
    """The network in the form the oracle answers: log-ratios where a softmax is seen through its link."""
    ratios = oracle.facts.reference or network.link in ("softmax", "log-softmax")
    if ratios and network.outputs == oracle.outputs + 1:
        network = network.log_ratios()
    if (network.dim, network.outputs) != (oracle.dim, oracle.outputs):
        raise InvalidInput.about(
            "network", got=f"{network.dim} inputs and {network.outputs} outputs",
            expected=f"{oracle.dim} inputs and {oracle.outputs} outputs, as the target has",
        )  # fmt: skip
    return network


def _summarise(errors: dict[str, FloatArray], ok: bool, tol: float, untested: int, queries: int) -> Verification:
    groups = tuple(
        GroupError(name, len(e), float(e.max()), float(np.sqrt(np.mean(e**2)))) for name, e in errors.items()
    )
    everything = np.concatenate(list(errors.values()))
    share = _unseen_share(groups[SCALES.index(1.0)].points)
    return Verification(
        ok=ok,
        max_error=float(everything.max()),
        rms_error=float(np.sqrt(np.mean(everything**2))),
        tol=tol,
        points=len(everything),
        groups=groups,
        untested=untested,
        share=share,
        confidence=CONFIDENCE,
        queries=queries,
    )


def _unseen_share(points: int) -> float:
    """1 - (1 - confidence)^(1/n): a larger share of the inputs would have been met by one of n points."""
    return float(1 - (1 - CONFIDENCE) ** (1 / points))

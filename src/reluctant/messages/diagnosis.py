"""`Diagnosis` and `Remedy`: a slug with fields, a verb with options, and their text from the catalogue.

Every layer passes diagnoses on, and no layer decides by their text. `reluctant.messages.catalogue` holds a template for
each slug. A field of a diagnosis fills its place in the template; a phrase that several fields make together is one of
`PHRASES`. An edge (Python, the command line, the page of an audit) writes each remedy in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self

NOTHING: Mapping[str, Any] = MappingProxyType({})
UNKNOWN = "–"  # for a field that a record does not have


@dataclass(frozen=True)
class Remedy:
    """One thing to try.

    purpose: its entry in the catalogue ("read-link", "train", "more-digits", ...). verb: the function to call, "open"
    for opening the target in another way. options: keywords of that call with their values, those of opening included;
    None means a value that only the user knows, such as the range of the inputs.
    """

    purpose: str
    verb: str
    options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"purpose": self.purpose, "verb": self.verb, "options": dict(self.options)}


@dataclass(frozen=True)
class Diagnosis:
    """The cause of an ending, or one measurement: the slug of a catalogue entry, its numbers and names, what to try."""

    slug: str
    fields: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    remedies: tuple[Remedy, ...] = ()

    @property
    def happened(self) -> str:
        """What happened, without anything to try; a slug that the catalogue lacks is read out with its fields."""
        from reluctant.messages.catalogue import TEXTS

        if self.slug in TEXTS:
            return TEXTS[self.slug].says.format_map(_Words(self.fields))
        fields = ", ".join(f"{name}: {value}" for name, value in self.fields.items())
        return self.slug.replace("-", " ").capitalize() + (f" ({fields})." if fields else ".")

    def advice(self, write: Callable[[Remedy], str]) -> list[str]:
        """A sentence for each remedy, which `write` writes down."""
        from reluctant.messages.catalogue import PURPOSES

        return [PURPOSES[remedy.purpose].format(call=write(remedy)) for remedy in self.remedies]

    def to_try(self, write: Callable[[Remedy], str] | None = None) -> str:
        """What no call expresses, then a sentence for each remedy (by default as a Python call)."""
        from reluctant.messages.catalogue import TEXTS

        hint = TEXTS[self.slug].hint if self.slug in TEXTS else ""
        return " ".join(filter(None, [hint, *self.advice(write or as_python)]))

    def text(self, write: Callable[[Remedy], str] | None = None) -> str:
        """What happened, and what to try."""
        return " ".join(filter(None, [self.happened, self.to_try(write)]))

    def __str__(self) -> str:
        return self.text()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The diagnosis in plain data."""
        return cls(
            data["slug"], data.get("fields", NOTHING), tuple(Remedy(**each) for each in data.get("remedies", ()))
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        remedies = [remedy.to_dict() for remedy in self.remedies]
        return {"slug": self.slug, "fields": dict(self.fields), "remedies": remedies}


@dataclass(frozen=True)
class Notes:
    """Several diagnoses, such as the limits of a finding; `slug in notes` asks for one of them."""

    entries: tuple[Diagnosis, ...] = ()

    def __contains__(self, slug: object) -> bool:
        return any(entry.slug == slug for entry in self.entries)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def __str__(self) -> str:
        return " ".join(map(str, self.entries))

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain data for JSON."""
        return [entry.to_dict() for entry in self.entries]


VERBS = {
    "open": "rl.open_oracle", "extract": "rl.extract", "learn": "rl.learn", "train": "rl.train_student",
    "span": "rl.recover_span", "audit": "rl.audit", "flip": "rl.flip_sign", "verify": "rl.verify",
}  # fmt: skip


def as_python(remedy: Remedy) -> str:
    """A remedy as a call: `rl.open_oracle(..., link='softmax')`."""
    options = [
        f"{name}={'...' if value is None else repr(value)}"
        for name, value in remedy.options.items()
        if value is not False
    ]
    return f"{VERBS[remedy.verb]}({', '.join(['...', *options])})"


# ---- phrases that several fields make together

Fields = Mapping[str, Any]

LEAST_DECIMAL = 0.001  # the smallest share that a percentage of one decimal shows
NEARLY_ALL = 0.999  # the largest share that is written as less than all
MOST_DECIMALS = 17


def decimal_places(decimals: int) -> str:
    """Digits after the point, in words."""
    return "whole numbers" if decimals == 0 else f"{decimals} decimal{'s' * (decimals != 1)}"


def rounded_to(decimals: int) -> str:
    """The rounding of answers with so many digits after the point."""
    return f"rounded to {decimal_places(decimals)}"


def listed(names: Sequence[Any]) -> str:
    """a, b and c."""
    *first, last = map(str, names)
    return f"{', '.join(first)} and {last}" if first else last


def percentage(part: float) -> str:
    """A share of one with a decimal; "100.0%" is all of it."""
    return f"{min(part, NEARLY_ALL) if part < 1 else part:.1%}"


def distinct_percentages(part: float, other: float) -> tuple[str, str]:
    """Two shares in as few decimals as show a difference: 1.02% and 1%."""
    for decimals in range(1, MOST_DECIMALS):
        texts = [f"{100 * each:.{decimals}f}".rstrip("0").rstrip(".") + "%" for each in (part, other)]
        if texts[0] != texts[1]:
            break
    return texts[0], texts[1]


def beside_a_copy(fields: Fields) -> str:
    """How far off a trained network may be, beside what counts as a copy."""
    most, allowed = distinct_percentages(fields["most"], fields["allowed"])
    if not fields["labels"]:
        return f"its error may be as large as {most} of the answers' deviation, and a copy may have {allowed}"
    alone = fields.get("alone")
    one = "" if alone is None else f", since one label alone is right for {percentage(alone)}"
    return f"as many as {most} of labels may differ, and in a copy {allowed} may{one}"


def _noun(fields: Fields) -> str:
    return "answers" if fields["link"] == "tanh" else "probabilities"


def _ends(fields: Fields) -> str:
    return "-1 or 1" if fields["link"] == "tanh" else "0 or 1"


def _written(fields: Fields) -> str:
    decimals = fields.get("decimals")
    return f"in {fields['number_format']}" if decimals is None else rounded_to(decimals)


def _digits(fields: Fields) -> str:
    """What limits the digits: decimals, the number format, noise, or noise that is new in each answer."""
    linked, limit = fields.get("link") is not None, fields["limit"]
    read = "The values read through the link" if linked else "The answers"
    if limit == "fresh-noise":
        return f"{read} change by {fields['noise']:.1e} when asked for again"
    if limit == "noise":
        return f"{read} have noise of {fields['noise']:.1e}"
    given = f"The {_noun(fields)} behind the link" if linked else "The answers"
    return f"{given} are {rounded_to(fields['decimals']) if limit == 'decimals' else 'in ' + fields['number_format']}"


def _value_errors(fields: Fields) -> str:
    """Errors of a network beside a target's values, and the tolerance they were held against."""
    where = f" inside {fields['inside']}, where answers do not saturate" if fields["inside"] else ""
    fewer = ", more where answers have fewer digits" if fields["fewer"] else ""
    if fields["exceeded"] is not None:  # no error is beyond the tolerance of typical inputs
        error, tol = fields["exceeded"]
        fewer = f" at typical inputs; elsewhere an error of {error:.1e} is beyond its own, {tol:.1e}"
    return (
        f"error {fields['max_error']:.1e} at most, {fields['rms_error']:.1e} rms, of the output's standard deviation, "
        f"over {fields['points']} points{where} (tolerance {fields['tol']:.1e}{fewer})"
    )


def _bound_on_share(part: float) -> str:
    """A share of one that is never written as 0: a small one in one significant digit."""
    return f"{part:.1%}" if part >= LEAST_DECIMAL else f"{100 * part:.1g}%"


def _boundary_points(fields: Fields) -> str:
    """Labels on both sides of a predicted boundary, and at random inputs."""
    error, points = fields["boundary_error"], fields["points"]
    within = (
        f"labels beside the boundary are wrong at {fields['wrong']} of {points} points"
        if error is None
        else f"the boundary is within {error:.0e} of a typical input at all {points} points"
    )
    return (
        f"{within}, and {fields['wrong_inputs']} of {fields['inputs']} random inputs have another label. With "
        f"{fields['confidence']:.0%} confidence less than {_bound_on_share(fields['share'])} of the boundary is off by "
        f"more, and less than {_bound_on_share(fields['input_share'])} of the inputs of one scale have another label."
    )


def _residuals_beside_noise(fields: Fields) -> str:
    return (
        f"it errs by {fields['residual']:.1e} of the output's standard deviation, and the noise is "
        f"{fields['noise']:.1e} (ratio at most {fields['ratio']:.2f}). Its own error is at most {fields['error']:.1e}, "
        f"root mean square. The run asked {fields['cost']:.1f} answers for each parameter; "
        "with all digits one would do."
    )


def change_of_side(fields: Fields) -> str:
    """What a flip does to classes, or to one output beside its threshold."""
    if fields["classes"] is not None:
        return "Class {} becomes class {}".format(*fields["classes"])
    threshold = fields["threshold"]
    return "The sign changes" if threshold is None else f"The answer crosses {threshold:g}"


LIKENESSES = {
    "values": "values",
    "labels": "labels",
    "labels-or-numbers": "labels, or values rounded to whole numbers",
    "softmax": "probabilities",
    "sigmoid": "probabilities of a sigmoid",
    "log-softmax": "logarithms of probabilities",
    "top-k": "the largest probabilities",
    "tanh": "values of a tanh",
}


def _likeness(fields: Fields) -> str:
    unit = _in_percent(fields)
    if fields["kind"] != "top-k":
        return f"{LIKENESSES[fields['kind']]}{unit}"
    given, others = largest_few(fields["largest"], fields["classes"])
    return f"{given}{unit}, without the {others}"


def largest_few(largest: int, classes: int) -> tuple[str, str]:
    """The name of the largest few class probabilities, and that of the rest."""
    given = "largest probability" if largest == 1 else f"{largest} largest probabilities"
    return f"the {given} of {classes} classes", "other" if largest == classes - 1 else "others"


def _in_percent(fields: Fields) -> str:
    return " in percent" if fields.get("percent") else ""


def _outputs_are(outputs: Sequence[int]) -> str:
    return f"Output {outputs[0]} answers" if len(outputs) == 1 else f"Outputs {listed(outputs)} answer"


def _whole_columns(fields: Fields) -> str:
    columns, most_named = fields["columns"], 8
    if len(columns) == 1:
        return f"Column {columns[0]} holds"
    many = f"{len(columns)} columns" if fields["inputs"] is None else f"{len(columns)} of {fields['inputs']} columns"
    named = f"Columns {listed(columns)}" if len(columns) <= most_named else many
    return f"{named} hold"


def _held_columns(fields: Fields) -> str:
    columns, values = fields["columns"], [f"{value:g}" for value in fields["values"]]
    which = f"column {columns[0]}" if len(columns) == 1 else f"columns {listed(columns)}"
    return f"The interface takes whole numbers alone in {which}, so the audit left them at {listed(values)}"


def _why_non_finite(fields: Fields) -> str:
    if fields["link"] is None:
        return ""
    given = "an answer" if fields["link"] == "tanh" else "a probability"
    return f": {given} there is exactly {_ends(fields)}, or missing"


def _on_the_copy(fields: Fields) -> str:
    several = fields["outcome"] == "not-flipped" and fields["steps"] > 1
    slug = "not-flipped-in-steps" if several else fields["outcome"]
    return Diagnosis(slug, {"steps": fields["steps"], "what": "network"}).happened


def _clipped_to(fields: Fields) -> str:
    return f" to [{fields['low']:.10g}, {fields['high']:.10g}]" if "low" in fields else ""


def _weights_known(fields: Fields) -> str:
    if not fields["estimated"]:
        return f"weights to {fields['error']:.1e} at worst"
    return (
        f"weights to a standard error of {fields['error']:.1e} (some may be off by tens of times that), biases to "
        "about the noise of an answer"
    )


def _span_inputs(fields: Fields) -> str:
    kinds = "of several kinds (even, near corners, sparse, of one level, smooth) " if fields["scale"] is None else ""
    drawn = f"random inputs {kinds}in {fields['domain']}"
    drawn += "" if fields["scale"] is None else f", of deviation {fields['scale']:.2g} in each coordinate"
    return drawn if fields["given"] is None else f"{drawn}, and as many like the {fields['given']} given"


def _steep_bump(fields: Fields) -> str:
    if fields["added"] is None:
        return ""
    return (
        f" One of that width would add {fields['added']:.0e} to the error if it were as steep as the steepest neuron "
        "found, which nobody measured; a steeper one adds more."
    )


def _farther_out(fields: Fields) -> str:
    return "" if fields["radius"] is None else f", or farther out than {fields['radius']:.1e},"


def _inside_bounds(fields: Fields) -> str:
    if fields.get("most_noise") is None:
        return ""
    most, noise = fields["most_noise"], fields["relative_noise"]
    return f" Inside bounds it needs noise of at most {most:.0e} of the answers' deviation, and here it is {noise:.1e}."


def _best_error(fields: Fields) -> str:
    error = fields.get("typical_error")
    return " The best one is kept, with its error." if error is None else (
        f" The best one is off by {error:.1e} of the output's deviation, root mean square."
    )  # fmt: skip


def _error_message(fields: Fields) -> str:
    """The message of an error, and its slug where that says more than the message."""
    message, error = str(fields.get("message") or ""), str(fields.get("error") or "")
    return message if error in ("", "target-failed") else f"{message} [{error}]".strip()


def _because(fields: Fields) -> str:
    why = fields.get("why")
    return "it was not tried." if why is None else Diagnosis.from_dict(why).happened


def _useless_answers(fields: Fields) -> str:
    if fields["gives"] == "rounded-link":
        return f"{str(fields['noun']).capitalize()} {rounded_to(fields['decimals'])}"
    return USELESS_ANSWERS.get(fields["gives"], "Such answers")


USELESS_ANSWERS = {
    "alike": "Answers that are nearly all alike",
    "certain": "Answers that are certain",
    "labels": "Labels",
    "labels-or-numbers": "Whole numbers that may be labels",
    "coarse": "Answers so coarse",
    "constant": "Answers that are all the same",
    "non-finite": "Answers that are NaN or inf",
    "not-piecewise-linear": "Curved answers",
    "piecewise-constant": "Answers that do not change under small steps",
    "too-noisy": "Answers with so much noise",
}
NOT_THERE = {
    "anything": "nothing that this step could work with",
    "creases": "no creases to find",
    "gradient": "no gradient to follow",
    "directions": "no directions to tell apart",
}
WHY_CONSTANT = {
    "saturated": "they saturate",
    "clipped": "inputs or answers may be clipped",
    "saturated-or-clipped": "they saturate, or inputs or answers are clipped",
}

PHRASES: Mapping[str, Callable[[Fields], str]] = {
    "what": lambda _: "target",
    "clipped_to": _clipped_to,
    "digits": _digits,
    "likeness": _likeness,
    "in_percent": _in_percent,
    "written": _written,
    "rounding": lambda fields: "not rounded" if fields["decimals"] is None else rounded_to(fields["decimals"]),
    "noun": _noun,
    "ends": _ends,
    "columns_are": lambda fields: _outputs_are(fields["columns"]),
    "outputs_are": lambda fields: _outputs_are(fields["outputs"]),
    "held_columns": _held_columns,
    "whole_columns": _whole_columns,
    "why_non_finite": _why_non_finite,
    "on_the_copy": _on_the_copy,
    "why_constant": lambda fields: WHY_CONSTANT[fields["why"]],
    "get_no_answer": lambda fields: "have no values to read" if fields["linked"] else "get no answer",
    "hidden_curves": lambda fields: ", by less than their noise at small scale" if fields["hidden"] else "",
    "step_unit": lambda fields: " deviations of the inputs" if fields.get("in_units") else "",
    "norm_of": lambda fields: (
        "the input's distance from the middle, in deviations of the inputs"
        if fields.get("in_units")
        else "the input's norm"
    ),
    "by": lambda fields: "The first network" if fields["middle"] else "Queries",
    "around": lambda fields: f"around the {'middle of its hyperplanes' if fields['middle'] else 'origin'}",
    "ended": lambda fields: Diagnosis(fields["outcome"]).happened + " " if "outcome" in fields else "",
    "few_digits_failed": lambda fields: (
        "the methods for them, of one to three hidden layers, did not succeed"
        if fields.get("tried")
        else "for the method for few digits"
    ),
    "neuron_count": lambda fields: f"{fields['width']} neuron{'s' * (fields['width'] != 1)}",
    "in_layer": lambda fields: f" in the {fields['layer']} layer" if fields["layer"] else "",
    "weights_known": _weights_known,
    "farther_out": _farther_out,
    "span_inputs": _span_inputs,
    "steep_bump": _steep_bump,
    "layers_seen": lambda fields: "one hidden layer" if fields["one_layer"] else "more than one hidden layer",
    # of comparisons and flips
    "value_errors": _value_errors,
    "than_bound": lambda fields: "" if fields["bound"] is None else f" than {fields['bound']:.1e}",
    "untested_neurons": lambda fields: f"{fields['untested']} neuron{' has' if fields['untested'] == 1 else 's have'}",
    "compared_alone": lambda fields: "" if fields["points"] == fields["asked"] else " that can be compared",
    "outside_box": lambda fields: "" if fields["own_scales"] else " outside",
    "sizes_asked": lambda fields: (
        "of the columns' own sizes and larger" if fields["own_scales"] else "typical ones and others twice as far"
    ),
    "differing_by": lambda fields: (
        f"by up to {fields['largest']:.1e} of the output's deviation" if fields["largest"] else "by its answers"
    ),
    "boundary_points": _boundary_points,
    "residuals_beside_noise": _residuals_beside_noise,
    "change_of_side": change_of_side,
    # of audits
    "saturation": lambda fields: ": its answers are certain there" if fields.get("saturates") else "",
    "inside_bounds": _inside_bounds,
    "best_error": _best_error,
    "reported": lambda fields: f" {fields['message']}" if fields.get("message") else "",
    "error_message": _error_message,
    "beside_a_copy": beside_a_copy,
    "step_list": lambda fields: listed(fields["steps"]),
    "leak_name": lambda fields: str(fields["leak"]).capitalize(),
    "step_name": lambda fields: str(fields["step"]).capitalize(),
    "because": _because,
    "useless_answers": _useless_answers,
    "not_there": lambda fields: NOT_THERE.get(fields["missing"], NOT_THERE["anything"]),
    "behind_link": lambda fields: LIKENESSES[fields["link"]],
    "read_values": lambda fields: "the values" if fields["all"] else "some of the values",
    "read_link": lambda fields: "softmax" if fields["link"] == "top-k" else fields["link"],
    "noise_removed": lambda fields: (
        " It removed their noise first: none below 0, a sum of 1." if fields["noisy"] else ""
    ),
    "kept_inside": lambda fields: (
        f" Extraction stayed in {fields['inside']}: farther out the answers saturate." if fields.get("inside") else ""
    ),
    "sweep_inputs": lambda fields: "random inputs" if fields["sampled"] else "inputs given",
}


class _Words(dict[str, Any]):
    """Fields of a diagnosis, and the phrases made of them."""

    def __missing__(self, name: str) -> str:
        return PHRASES[name](self) if name in PHRASES else UNKNOWN

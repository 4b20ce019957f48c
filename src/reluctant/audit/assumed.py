"""What an audit assumed and what it could miss, in sentences."""

from __future__ import annotations

from reluctant.audit.known import Known
from reluctant.audit.training import training_limits
from reluctant.interface.diagnoses import OTHER_ANSWERS, class_numbers
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.oracles import Facts

__all__ = ["assumed"]

IN_PERCENT = (
    "The answers are probabilities in percent. They were divided by 100: digits, errors and the copy are those of "
    "numbers between 0 and 1."
)
AMONG_NAN = "Probabilities that are not told are NaN; they were taken as 0."
FROM_THE_OTHERS = "softmax, the one that is not told from the others"


def assumed(known: Known, facts: Facts | None, queries: int, budget: int) -> list[str]:
    """Of the whole audit: how far it asked, its methods, how answers were read, what its parts leave out."""
    if facts is None:
        return ["Nothing was asked: the target could not be opened."]
    return [
        f"The target was asked {queries:,} rows of a budget of {budget:,}, in {_place(known, facts)}.",
        "The methods are for fully connected ReLU networks; other models may leak to other methods.",
        training_limits(known),
        "A method that did not succeed here may succeed with a larger budget, another seed or more digits.",
        *_of_classes(known),
        *_of_range(known),
        *_of_links(known),
        *_of_runs(known),
        *_of_other_steps(known),
    ]


def _place(known: Known, facts: Facts) -> str:
    """Where the target was asked; extraction may have kept to a part of that."""
    place = (known.reach or facts.domain).describe()
    inside = None if known.extraction is None else known.extraction.evidence.get("inside")
    return place if inside is None else f"{place}; extraction kept to {inside}, for answers saturate far out"


def _of_classes(known: Known) -> list[str]:
    them = "it" if len(known.without) == 1 else "them"
    said = f"{class_numbers(known.without)}, beside {OTHER_ANSWERS}: no step has looked at {them}."
    return [said] if known.without else []


def _of_range(known: Known) -> list[str]:
    if known.reach is None:
        return []
    return [
        f"Beyond {known.reach.describe()} the target does not answer every question; the audit found that range "
        "itself, and what is said holds inside it. It may answer somewhat farther: where the true range is known, "
        "give it (--domain LOW,HIGH)."
    ]


def _of_links(known: Known) -> list[str]:
    written = known.written
    said = [] if written is None else [IN_PERCENT] * written.percent + [AMONG_NAN] * written.among_nan
    if known.linked:
        read = "they were read" if known.refusal is None else "not all of them could be read"
        through = FROM_THE_OTHERS if known.link == "top-k" else known.link
        told = "those of a tanh" if known.link == "tanh" else "probabilities"
        said.append(f"The answers are {told}; {read} back through their {through}.{_put_right(known)}")
    if known.network is not None and known.written_link not in ELEMENTWISE_LINKS:
        said.append("Probabilities do not tell a value added to every class alike: the first class is taken as 0.")
    return said


def _put_right(known: Known) -> str:
    return " Their noise was put right before: none below 0, and a sum of 1." if known.noisy else ""


def _of_runs(known: Known) -> list[str]:
    """What the methods say of themselves."""
    evidence = [run.evidence for _, run in known.runs if run is not None]
    return [str(each[part]) for each in evidence for part in ("limits", "certificate", "risk") if each.get(part)]


def _of_other_steps(known: Known) -> list[str]:
    said = [
        f'In the picture "{picture}" {rows} rows are left out: they have no finite answer.'
        for picture, rows in known.left_out.items()
    ]
    if known.flips:
        said.append("Flips are steps of one gradient: smaller ones may exist. Sizes are of the input's Euclidean norm.")
    if known.sweep is not None:
        said.append(f"Costs to honest users and errors of copies in the defense sweep are over {known.sweep.inputs}.")
    if known.truth is not None:
        said.append("The comparison with the file is for the owner alone: no method has seen it.")
    return said

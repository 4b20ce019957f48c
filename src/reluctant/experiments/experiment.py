"""An experiment before it is run: which claim of which paper it measures, how, and in which two sizes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from reluctant.errors import InvalidInput
from reluctant.experiments.finding import Finding
from reluctant.experiments.papers import Paper
from reluctant.numerics import Rng

__all__ = ["SIZES", "Experiment", "Size"]

Size = Literal["quick", "full"]
SIZES: tuple[Size, ...] = ("quick", "full")


@dataclass(frozen=True)
class Experiment:
    """A function that measures, with its place in a paper. Calling it gives a `Finding`.

    Arguments:
        name: as the command line knows it.
        paper, where: whose claim it is, and its number there.
        measure: takes rng= and numbers as keywords; those with mnist_folder= can use MNIST.
        quick: numbers for a first look; the function's own defaults are the full size.
    """

    name: str
    paper: Paper
    where: str
    measure: Callable[..., Finding]
    quick: Mapping[str, Any]

    @property
    def about(self) -> str:
        """What is measured, in one line."""
        return (self.measure.__doc__ or "").strip().splitlines()[0]

    @property
    def takes_images(self) -> bool:
        """Whether a folder with MNIST is of use."""
        return "mnist_folder" in inspect.signature(self.measure).parameters

    def __call__(
        self, *, size: Size = "full", mnist_folder: str | Path | None = None, rng: Rng = 0, **numbers: Any
    ) -> Finding:
        """Run it, at a named size or with numbers of one's own."""
        if size not in SIZES:
            raise InvalidInput.about("size", got=repr(size), expected=" or ".join(SIZES))
        settings = {**(self.quick if size == "quick" else {}), **numbers}
        if self.takes_images:
            settings["mnist_folder"] = mnist_folder
        finding = self.measure(rng=rng, **settings)
        return replace(finding, name=self.name, paper=self.paper, where=self.where)

    def unknown(self) -> dict[str, Any]:
        """In the place of a finding's data, where there is none."""
        nothing = Finding(self.name, self.about, "", (), (), lambda figure: None, paper=self.paper, where=self.where)
        return {**nothing.to_dict(), "ok": False}

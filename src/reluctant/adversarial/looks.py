"""Answers at steps along a ray, from long to short, and which of the steps a slope is best taken over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluctant.numerics import FloatArray

__all__ = ["Looks"]

SHORT = 3  # of the steps, at which noise is read
CREASED = 5.0  # times the median there: noise seldom bends more
SMALL = 1e-3  # of the slope: noise that a gradient does not feel
ALIKE = 0.5  # of it: slopes that differ by more, and not for noise, are not those of one linear piece
TELLING = 20.0  # times the noise: a change of answers that a slope can be taken from, if nothing better is there


@dataclass(frozen=True)
class Looks:
    """Answers on the ray: here (m,), and one and two steps (s,) away, (s, m) each; steps from long to short."""

    here: FloatArray
    steps: FloatArray
    near: FloatArray
    far: FloatArray

    def after(self, steps: FloatArray, answers: FloatArray) -> Looks:
        """With longer steps in front, those of them that have numbers."""
        near, far = np.split(answers, 2)
        told = np.isfinite(near).all(axis=1) & np.isfinite(far).all(axis=1)
        parts = ((steps[told], self.steps), (near[told], self.near), (far[told], self.far))
        return Looks(self.here, *(np.concatenate(part) for part in parts))

    @property
    def answers(self) -> FloatArray:
        """All of them (2s + 1, m), the first at the input."""
        return np.concatenate([self.here[None], self.near, self.far])

    @property
    def bends(self) -> FloatArray:
        """Second differences (s,), of the output that has the largest."""
        return np.asarray(np.abs(self.here - 2 * self.near + self.far).max(axis=1))

    @property
    def bend(self) -> float:
        """What noise bends three answers by: root mean square at the shortest steps, and at all that bend no more."""
        bends = self.bends
        alike = bends[bends <= CREASED * np.median(bends[-SHORT:])]
        with np.errstate(over="ignore"):  # answers close to the largest number: infinite noise
            return float(np.sqrt(np.mean(alike**2)))

    @property
    def slopes(self) -> FloatArray:
        """Slopes (s,) over each step, of the output that has the largest."""
        return np.asarray(np.abs(self.near - self.here).max(axis=1) / self.steps)

    def best(self, sd: float) -> int:
        """The step that errs least."""
        return int(np.argmin(np.maximum(self.bends, sd) / self.steps))

    def fine(self, sd: float) -> NDArray[np.intp]:
        """Steps whose noise is small beside the slope; none if shorter ones do not show it: answers are rounded."""
        best, slopes = self.best(sd), self.slopes
        slope, shorter = slopes[best], slice(best, None)
        off = np.abs(slopes[shorter] - slope)
        hidden = (off > ALIKE * slope + TELLING * sd / self.steps[shorter]).any()
        return np.flatnonzero((sd / self.steps <= SMALL * slope) & ~hidden)

    def telling(self, sd: float) -> NDArray[np.bool_]:
        """Which steps show a change that is clearly more than noise."""
        changes = np.maximum(np.abs(self.near - self.here), np.abs(self.far - self.here)).max(axis=1)
        return np.asarray(changes >= TELLING * sd)

    def step(self, sd: float) -> float:
        """The shortest that is fine; if there is none, the one that errs least."""
        best, fine = self.best(sd), self.fine(sd)
        return float(self.steps[max(best, fine[-1])] if len(fine) else self.steps[best])

    def telling_step(self, sd: float) -> float:
        """The shortest that shows a change beyond noise, as the next longer one does; if none does, the longest."""
        telling = self.telling(sd)
        both = np.flatnonzero(telling & np.append(True, telling[:-1]))
        return float(self.steps[both[-1] if len(both) else 0])

"""`Asked`: a view of the target that keeps every answer, in deviations of its noise.

Noise of an answer at x is hypot(near, growth · |x|), one at typical inputs. Answers are fitted again and again, so the
coordinates of rows that lie in a frame are worked out once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from reluctant.extraction.few_digits.scaled_view import View
from reluctant.geometry import Frame
from reluctant.geometry.lines import BoolArray, around_lines
from reluctant.numerics import FloatArray

GROWS_FROM = 0.3  # of the noise at typical inputs: noise that grows by less is the same everywhere


class Asked:
    """Answers so far. `unit` (m,) is the noise of an answer of the view at typical inputs."""

    def __init__(self, view: View, rng: np.random.Generator) -> None:
        self.view, self.rng = view, rng
        self.unit = np.full(view.outputs, view.usual_noise)
        self.growth = min(view.noise.growth * view.size / view.usual_noise, 1.0)
        self.near = float(np.sqrt(max(1 - self.growth**2, 0.02)))
        self._rows: list[FloatArray] = []
        self._answers: list[FloatArray] = []
        self._framed: list[tuple[BoolArray, FloatArray]] = []
        self._frame: Frame | None = None

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return len(self.unit)

    @property
    def answers_a_row(self) -> float:
        """How many answers a row is worth: outputs tell much the same of the weights below."""
        return float(np.sqrt(self.outputs))

    @property
    def grows(self) -> bool:
        """True if noise grows with the answers, as that of float32 does."""
        return self.growth >= GROWS_FROM

    def __len__(self) -> int:
        return sum(map(len, self._rows))

    def sd(self, rows: FloatArray) -> FloatArray:
        """Noise (n,) of answers there, in units of that at typical inputs."""
        return np.hypot(self.near, self.growth * np.linalg.norm(rows, axis=1) / self.view.size)

    def ask(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Answers (n, m) in units of their noise, with its deviation (n,); both are kept."""
        asked, answers = self.fresh(rows)
        self.keep(asked, answers)
        return answers / self.unit, self.sd(rows)

    def fresh(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rows as they were asked, and answers of the view; nothing is kept."""
        return self.view.ask(rows)

    def keep(self, rows: FloatArray, answers: FloatArray) -> None:
        """Add rows with their answers of the view."""
        self._rows.append(rows)
        self._answers.append(answers)

    def everything(self) -> tuple[FloatArray, FloatArray]:
        """All rows (n, d) and answers (n, m) in units of noise."""
        return np.concatenate(self._rows), np.concatenate(self._answers) / self.unit

    def in_frame(self, frame: Frame) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coordinates (n, k), answers (n, m) and rows (n, d) of all that was asked in the frame."""
        beside = 3e-7  # of the length of a row: what rounding to float32 moves it out of the frame
        if self._frame is not frame:
            self._frame, self._framed = frame, []
        whole = len(frame.basis) == len(frame.origin)
        for rows in self._rows[len(self._framed) :]:
            y = (rows - frame.origin) @ frame.basis.T
            off = np.linalg.norm(rows - frame.points(y), axis=1)
            inside = (off < beside * np.linalg.norm(rows, axis=1)) | whole
            self._framed.append((inside, y[inside]))
        answers = [f[inside] for f, (inside, _) in zip(self._answers, self._framed, strict=True)]
        asked = [rows[inside] for rows, (inside, _) in zip(self._rows, self._framed, strict=True)]
        return np.concatenate([y for _, y in self._framed]), np.concatenate(answers) / self.unit, np.concatenate(asked)

    def calibrate(self, squares: list[FloatArray]) -> FloatArray:
        """Noise over the length of a piece, from mean squares (m,) that straight runs leave; returns its factors.

        Errors of rounding are alike over short steps, so that short lines measure too little of them.
        """
        fewest_runs, quantile = 8, 0.95
        if len(squares) < fewest_runs:
            return np.ones(self.outputs)
        kept = np.sort(np.array(squares), axis=0)[: int(quantile * len(squares)) + 1]
        factors = np.sqrt(np.maximum(kept.mean(axis=0), 1.0))
        self.unit = self.unit * factors
        return factors


def steps_both_ways(view: View, points: FloatArray, directions: FloatArray, steps: FloatArray) -> FloatArray:
    """Steps (n, k) to both sides of points (n, d) along directions (k, d), shorter where it may not be asked."""
    room = np.stack([np.minimum(view.room(point, directions), view.room(point, -directions)) for point in points])
    return np.minimum(steps, room)


AskRows: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]  # rows to answers (n, m), noise (n,)


def scatter(asked: Asked, points: FloatArray, ways: FloatArray) -> FloatArray:
    """Noise (n, m) of answers around short lines from points (n, d) along ways (n, d). Cost: 8 rows a point."""
    count, spacing, jitter = 8, 1e-3, 0.3  # samples of a line, apart by this much of a way
    places = spacing * (np.arange(count) + asked.rng.uniform(-jitter, jitter, (len(points), count)))
    with asked.view.oracle.stage("noise"):
        rows, answers = asked.fresh((points[:, None] + places[:, :, None] * ways[:, None]).reshape(-1, points.shape[1]))
    moved = rows.reshape(len(points), count, -1) - points[:, None]
    t = (moved @ ways[:, :, None])[:, :, 0] / (ways**2).sum(axis=1)[:, None]
    left = around_lines(t, (answers / asked.unit).reshape(len(points), count, -1))
    return np.asarray(np.sqrt((left**2).sum(axis=1) / (count - 2)))


def central_gradients(
    ask: AskRows, points: FloatArray, directions: FloatArray, steps: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Slopes (n, k, m) at points (n, d) along directions (k, d), with deviations (n, k).

    steps: (n, 1) or (n, k) lengths to begin with; where the function bends within one it is shortened. Deviations are
    infinite where none was straight. Cost: 2k + 1 rows a point, and 2 for every step shortened.
    """
    straight, shorter, tries = 4.5, 3.0, 6
    n, k = len(points), len(directions)
    steps = np.array(np.broadcast_to(steps, (n, k)))
    middle, middle_sd = ask(points)
    slopes, sds, open_ = np.zeros((n, k, middle.shape[1])), np.full((n, k), np.inf), np.ones((n, k), dtype=bool)
    for _ in range(tries):
        i, j = np.nonzero(open_)
        if not len(i):
            break
        step = steps[i, j]
        moves = step[:, None] * directions[j]
        f, sd = ask(np.concatenate([points[i] + moves, points[i] - moves]))
        (ahead, behind), (sd_ahead, sd_behind) = np.split(f, 2), np.split(sd, 2)
        bend_sd = np.sqrt(sd_ahead**2 + sd_behind**2 + 4 * middle_sd[i] ** 2)
        good = np.abs(ahead + behind - 2 * middle[i]).max(axis=1) < straight * bend_sd
        slopes[i[good], j[good]] = ((ahead - behind) / (2 * step[:, None]))[good]
        sds[i[good], j[good]] = (np.hypot(sd_ahead, sd_behind) / (2 * step))[good]
        open_[i[good], j[good]] = False
        steps[i[~good], j[~good]] /= shorter
    return slopes, sds

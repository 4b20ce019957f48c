"""The film of a search for creases, as SVG that moves.

Across goes the angle arctan(t / scale); up goes the answer less its trend, divided by the distance from the middle.
Straight pieces become gentle arcs that stay in sight however far out they are, and every crease is a kink. Without
motion (in print, or where the reader wants none) the SVG is the finished picture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.geometry import LineSearch
from reluctant.geometry.lines import BoolArray, IntArray
from reluctant.numerics import FloatArray
from reluctant.report.drawings import COLOURS


@dataclass(frozen=True)
class Heights:
    """Heights over the angle: all outputs between 0 and 1, in one common range."""

    search: LineSearch
    trend: FloatArray  # (2, m): the part subtracted, of the cosine and of the sine
    low: float
    high: float

    @classmethod
    def of(cls, search: LineSearch) -> Heights:
        """The trend is that of the first round alone, so that it stays while a search goes on."""
        first = search.round == 0
        basis, answers = _basis(search.angles), search.answers
        scaled = basis[:, :1] * answers
        trend = np.linalg.lstsq(basis[first], scaled[first], rcond=None)[0]
        heights = scaled - basis @ trend
        return cls(search, trend, float(heights.min()), float(heights.max()))

    def at(self, angles: FloatArray) -> FloatArray:
        """Heights (n, m) at these angles, straight in t between samples."""
        s = self.search
        t, basis = s.scale * np.tan(angles), _basis(angles)
        answers = np.column_stack([np.interp(t, s.t, output) for output in s.answers.T])
        room = self.high - self.low
        return (basis[:, :1] * answers - basis @ self.trend - self.low) / (room if room > 0 else 1.0)

    @staticmethod
    def known(search: LineSearch, angles: FloatArray) -> BoolArray:
        """Whether a search knows the function at these angles."""
        edge = np.searchsorted(search.t, search.scale * np.tan(angles), side="right") - 1
        return np.append(search.known, search.known[-1:])[np.clip(edge, 0, None)]


def _basis(angles: FloatArray) -> FloatArray:
    """An affine function of t, divided by the distance, is a combination of these."""
    return np.column_stack([np.cos(angles), np.sin(angles)])


WIDTH, HEIGHT = 720, 286
LEFT, RIGHT, TOP, BOTTOM = 12.0, 708.0, 36.0, 226.0  # of the curves
RUG_TOP, RUG_BOTTOM = 232.0, 244.0  # of the marks below them
WORDS, LABELS, UNITS = 20.0, 260.0, 279.0  # baselines
MOST_CURVES = 10
POINTS_ACROSS = 360  # of a curve, besides the creases
TICKS = (-3, -1, 0, 1, 3)  # in units of the scale
LONGEST_ROUND, LONGEST = 0.7, 9.0  # seconds
DOT, FAINT, MANY = 3.0, 0.4, 150  # size of a dot, opacity of a crease, and how many of them are many

STYLE = """\
.search { color: #1c1c1e; font: 12px system-ui, sans-serif; --found: #b5461c; }
@media screen and (prefers-color-scheme: dark) { .search { color: #ececf0; --found: #f0a376; } }
.search text { fill: currentColor; }
.search path { fill: none; }
.search .axis { stroke: currentColor; opacity: .3; }
.search .curve { stroke-width: 1.6; stroke-linejoin: round; }
.search .asked { stroke: currentColor; stroke-width: var(--dot); stroke-linecap: round; opacity: .4; }
.search .crease { stroke: var(--found); opacity: var(--faint); }
.search .rug { stroke: var(--found); stroke-width: 1.6; }
.search .during { opacity: 0; }
@media screen and (prefers-reduced-motion: no-preference) {
.search .curve, .search .end { animation: search-appear .4s ease-out backwards; animation-delay: var(--at); }
.search .asked { animation: search-ask 1s ease-out backwards; animation-delay: calc(var(--at) - .3s); }
.search .crease, .search .rug { animation: search-find 1.2s ease-out backwards; animation-delay: var(--at); }
.search .during { animation: search-say var(--step); animation-delay: var(--at); }
}
@keyframes search-appear { from { opacity: 0; } }
@keyframes search-ask { from { opacity: 0; } 30% { opacity: 1; } }
@keyframes search-find { from { opacity: 0; } 20% { opacity: 1; stroke-width: 2.5; } }
@keyframes search-say { from, to { opacity: 1; } }
"""


def search_svg(search: LineSearch) -> str:
    """The search as SVG, moving; `search_summary` in words."""
    film = _SvgFilm.of(search)
    rounds = [part for number in range(search.rounds) for part in film.round(number)]
    lines = [*film.axis(), *film.curves(), *rounds, film.words(search_summary(search), search.rounds, "end")]
    return (
        f'<svg class="search" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{search_summary(search)}" style="{film.style()}">\n<style>\n{STYLE}</style>\n'
        + "\n".join(lines)
        + "\n</svg>"
    )


def search_summary(search: LineSearch) -> str:
    """What a search found, at what cost."""
    return f"{_crease_count(len(search.creases))} found in {search.rounds} rounds with {len(search.t)} rows."


@dataclass(frozen=True)
class _SvgFilm:
    """Everything to draw, and when: `first` and `last` are the angles of the picture's edges."""

    search: LineSearch
    heights: Heights
    found_in: IntArray
    first: float
    last: float
    step: float  # seconds a round

    @classmethod
    def of(cls, search: LineSearch) -> _SvgFilm:
        step = min(LONGEST_ROUND, LONGEST / search.rounds)
        return cls(search, Heights.of(search), search.found_in, search.angles[0], search.angles[-1], step)

    def x(self, angles: FloatArray) -> FloatArray:
        return LEFT + (RIGHT - LEFT) * (angles - self.first) / (self.last - self.first)

    def y(self, heights: FloatArray) -> FloatArray:
        return BOTTOM - (BOTTOM - TOP) * heights

    def at(self, number: int) -> str:
        return f'style="--at: {self.step * (number + 1):.2f}s"'

    def style(self) -> str:
        """Seconds a round; many dots are smaller, many creases fainter."""
        dot = np.clip(DOT * np.sqrt(MANY / len(self.search.t)), DOT / 2, DOT)
        faint = np.clip(FAINT * np.sqrt(MANY / max(len(self.search.creases), 1)) / 2, FAINT / 3, FAINT)
        return f"--step: {self.step:.2f}s; --dot: {dot:.1f}; --faint: {faint:.2f}"

    # ---- one round: what was asked, what was found, in words

    def round(self, number: int) -> list[str]:
        now = self.search.round == number
        found = self.search.creases[self.found_in == number]
        until = int((self.found_in <= number).sum())
        said = f"Round {number + 1}: {now.sum()} rows asked, {_crease_count(len(found))} found, {until} in all."
        x = self.x(np.arctan(found / self.search.scale))
        return [
            self.path("asked", number, self.dots(now)),
            self.path("crease", number, "".join(f"M{each:.1f} {TOP:.0f}V{BOTTOM:.0f}" for each in x)),
            self.path("rug", number, "".join(f"M{each:.1f} {RUG_TOP:.0f}V{RUG_BOTTOM:.0f}" for each in x)),
            self.words(said, number, "during"),
        ]

    def dots(self, which: BoolArray) -> str:
        angles = self.search.angles[which]
        points = zip(self.x(angles), self.y(self.heights.at(angles)[:, 0]), strict=True)
        return "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)

    def path(self, kind: str, number: int, data: str, colour: str = "") -> str:
        stroke = f' stroke="{colour}"' if colour else ""
        return f'<path class="{kind}" {self.at(number)}{stroke} d="{data}"/>' if data else ""

    def words(self, text: str, number: int, kind: str) -> str:
        return f'<text class="{kind}" {self.at(number)} x="{LEFT:.0f}" y="{WORDS:.0f}">{text}</text>'

    # ---- curves: each stretch appears in the round after which it is known

    def curves(self) -> list[str]:
        creases = np.arctan(self.search.creases / self.search.scale)
        knots = np.union1d(np.linspace(self.first, self.last, POINTS_ACROSS), creases)
        known_in = self.known_in((knots[1:] + knots[:-1]) / 2)
        points = self.x(knots), self.y(self.heights.at(knots)[:, :MOST_CURVES])
        return [
            self.path("curve", number, _stretches(points[0], y, known_in == number), colour)
            for number in range(self.search.rounds)
            for y, colour in zip(points[1].T, COLOURS, strict=False)
        ]

    def known_in(self, angles: FloatArray) -> IntArray:
        """The round after which the function is known at each angle; one beyond the last if never."""
        after = [Heights.known(self.search.at(number), angles) for number in range(self.search.rounds)]
        return np.argmax([*after, np.ones(len(angles), dtype=bool)], axis=0)

    def axis(self) -> list[str]:
        """Distances that are inside the picture, and what they are measured in."""
        angles = np.arctan(np.array(TICKS, dtype=float))
        inside = (angles >= self.first) & (angles <= self.last)
        labels = [
            f'<text x="{x:.1f}" y="{LABELS:.0f}" text-anchor="middle">{f"{tick}".replace("-", "−")}</text>'
            for x, tick in zip(self.x(angles[inside]), np.array(TICKS)[inside], strict=True)
        ]
        units = "position on the line, in sizes of a typical input; far out at both edges"
        middle = (LEFT + RIGHT) / 2
        return [
            f'<path class="axis" d="M{LEFT:.0f} {RUG_BOTTOM:.0f}H{RIGHT:.0f}"/>',
            *labels,
            f'<text x="{middle:.0f}" y="{UNITS:.0f}" text-anchor="middle" opacity=".7">{units}</text>',
        ]


def _crease_count(number: int) -> str:
    return "1 crease" if number == 1 else f"{number} creases"


def _stretches(x: FloatArray, y: FloatArray, drawn: BoolArray) -> str:
    """A path over the cells between points that are to be drawn, broken where one is not."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], drawn.astype(int), [0]])))
    runs = zip(edges[::2], edges[1::2] + 1, strict=True)
    return "".join("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x[i:j], y[i:j], strict=True)) for i, j in runs)

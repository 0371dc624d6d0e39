"""Draws pictures as SVG from plain values: bars, lanes and cells, with their axes.

Each value has one element of the class ``mark``, in the order of the values. Colours are classes, which the page's
style sets for light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import accumulate, pairwise

from ..words.text import size_text
from .escaping import in_html

WIDTH = 720
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 16, 12, 40
_HEIGHT = 240
_TEXT = 11
_LANE = 13
_CELL = 11
# So many characters of a label fit beside a chart of rows.
_LABEL = 30
_LONGEST = 80
_LABEL_WIDTH = 230
STEPS = 6

Text = Callable[[float], str]


class Unit(Enum):
    """What the numbers of a picture count; it decides where the axis has marks, and their texts."""

    COUNT = auto()
    BYTES = auto()
    SECONDS = auto()

    def text(self, value: float) -> str:
        """Return a value with its unit."""
        if self is Unit.BYTES:
            return size_text(int(value))
        if self is Unit.SECONDS:
            return f"{value:g} s"
        return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


@dataclass(frozen=True, slots=True)
class Scale:
    """Brings values from ``low`` to ``high`` to coordinates between ``start`` and ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = 0.0 if self.high == self.low else (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of one or more parts, each of the class ``part0``, ``part1`` and so on."""

    label: str
    parts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TimeBar:
    """A bar in time; an open end is drawn dashed."""

    lane: str
    start: float
    end: float
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a grid; None is drawn as unknown."""

    row: int
    column: int
    value: float | None


@dataclass(frozen=True, slots=True)
class Drawing:
    """What a picture shows, and how high it is."""

    height: float
    content: str

    def svg(self, title: str) -> str:
        """Return the picture; its title, which screen readers read out, must be no text from a table."""
        return (
            f'<svg viewBox="0 0 {WIDTH} {self.height:.0f}" role="img" tabindex="0" aria-label="{title}" '
            f'font-size="{_TEXT}">{self.content}</svg>'
        )


def ticks(high: float, unit: Unit, count: int = 4) -> list[float]:
    """Return about ``count`` + 1 round values at equal distances, from 0 to at least ``high``."""
    rough = high / count if high > 0 else 1.0
    if unit is Unit.BYTES:
        step = 2.0 ** math.ceil(math.log2(max(rough, 1)))
    else:
        power = 10.0 ** math.floor(math.log10(rough))
        # A product of floats may be a little less than the same number as a quotient.
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999999)
        step = max(1.0, step) if unit is Unit.COUNT else step
    return [step * number for number in range(max(1, math.ceil(high / step - 1e-9)) + 1)]


def columns(bars: Sequence[Bar], unit: Unit, line: tuple[float, str] | None = None) -> Drawing:
    """Return a drawing of upright bars.

    ``line`` is an upright line with its label, at a position among the bars, such as 2.5.
    """
    marks = ticks(max((sum(bar.parts) for bar in bars), default=0), unit)
    y_scale = Scale(0, marks[-1], _HEIGHT - _BOTTOM, _TOP)
    x_scale = Scale(0, max(len(bars), 1), _LEFT, WIDTH - _RIGHT)
    drawn = [_axis(y_scale, marks, unit.text)]
    # Of a hundred bars or more, a gap beside each would take all visible width.
    width = (x_scale(1) - x_scale(0)) * (0.8 if len(bars) < 100 else 1)
    width = min(width, 64.0)
    # Only so many bars get a label that the labels fit beside each other.
    label_step = max(1, math.ceil(len(bars) * max((len(bar.label) for bar in bars), default=1) * 6.5 / (WIDTH - _LEFT)))
    for number, bar in enumerate(bars):
        middle = x_scale(number + 0.5)
        left, edges = middle - width / 2, _edges(bar)
        drawn.append(_bar_svg((left, y_scale(high), width, y_scale(low) - y_scale(high)) for low, high in edges))
        if number % label_step == 0:
            drawn.append(_label(middle, _HEIGHT - _BOTTOM + 16, bar.label, "middle"))
    if line is not None:
        x = min(max(x_scale(line[0]), _LEFT), WIDTH - _RIGHT)
        anchor = "end" if x > WIDTH * 0.6 else "start"
        drawn.append(f'<path class="target" d="M{_number(x)} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
        drawn.append(_label(x + (-5 if anchor == "end" else 5), _TOP + 10, line[1], anchor))
    return Drawing(_HEIGHT, "".join(drawn))


def rows(bars: Sequence[Bar], unit: Unit) -> Drawing:
    """Return a drawing of bars below each other, with their labels at the left."""
    step, start = 20, _TOP
    height = start + step * max(len(bars), 1) + 28
    marks = ticks(max((sum(bar.parts) for bar in bars), default=0), unit)
    x_scale = Scale(0, marks[-1], _LABEL_WIDTH, WIDTH - 40)
    drawn = []
    for mark in marks:
        drawn.append(f'<path class="grid" d="M{_number(x_scale(mark))} {start}V{height - 28}"/>')
        drawn.append(_label(x_scale(mark), height - 12, unit.text(mark), "middle"))
    for number, bar in enumerate(bars):
        y = start + step * number
        drawn.append(_label(_LABEL_WIDTH - 8, y + 13, _cut(bar.label), "end"))
        drawn.append(
            _bar_svg((x_scale(low), y + 2, x_scale(high) - x_scale(low), step - 5) for low, high in _edges(bar))
        )
    return Drawing(height, "".join(drawn))


def lanes(spans: Sequence[TimeBar], text: Text) -> Drawing:
    """Return a drawing of bars in time: a lane for each name, and more lanes if bars of a name overlap in time.

    `text` returns the label of a time on the axis. Of more than six lanes of a name, the last takes the rest, so that
    its bars may cover each other.
    """
    most = 6
    names = sorted({span.lane for span in spans})
    low, high = min((span.start for span in spans), default=0), max((span.end for span in spans), default=1)
    x_scale = Scale(low, max(high, low + 1), _LEFT + 30, WIDTH - _RIGHT)
    ends: dict[str, list[float]] = {name: [] for name in names}
    lane_numbers: dict[int, int] = {}
    for number in sorted(range(len(spans)), key=lambda at: (spans[at].start, at)):
        span, lane_ends = spans[number], ends[spans[number].lane]
        start, end = x_scale(span.start), max(x_scale(span.end), x_scale(span.start) + 2)
        lane = next((at for at, until in enumerate(lane_ends) if until < start), len(lane_ends))
        if lane == len(lane_ends) and lane < most:
            lane_ends.append(end)
        lane = min(lane, most - 1)
        lane_ends[lane] = max(lane_ends[lane], end)
        lane_numbers[number] = lane
    tops, y = {}, float(_TOP)
    drawn = []
    for name in names:
        tops[name] = y
        drawn.append(_label(_LEFT + 22, y + 10, _cut(name, 18), "end"))
        y += _LANE * len(ends[name]) + 6
    for number in range(3):
        x = _LEFT + 30 + number * (WIDTH - _RIGHT - _LEFT - 30) / 2
        value = low + number * (max(high, low + 1) - low) / 2
        drawn.append(f'<path class="grid" d="M{_number(x)} {_TOP}V{_number(y)}"/>')
        anchor = "start" if number == 0 else "end" if number == 2 else "middle"
        drawn.append(_label(x, y + 16, text(value), anchor))
    for number, span in enumerate(spans):
        x, top = x_scale(span.start), tops[span.lane] + _LANE * lane_numbers[number]
        css_class = "mark open" if span.is_open else "mark"
        width = max(x_scale(span.end) - x, 2)
        drawn.append(
            f'<rect class="{css_class}" x="{_number(x)}" y="{_number(top)}" width="{_number(width)}" '
            f'height="{_LANE - 2}"/>'
        )
    return Drawing(math.ceil(y) + 26, "".join(drawn))


def cells(row_count: int, column_count: int, valued_cells: Sequence[Cell]) -> Drawing:
    """Return a drawing of a grid whose cells are darker for greater values, in steps of equal size.

    The grid has so many rows and columns, which ``valued_cells`` count from 0; other cells stay empty. A cell whose
    value is None is drawn as unknown.
    """
    most = greatest(valued_cells)
    left = 36
    width = min(34.0, (WIDTH - left - 10) / max(column_count, 1))
    height = _TOP + _CELL * max(row_count, 1) + 8
    # Of many rows only each fifth gets its number, so that the numbers stay apart.
    drawn = [
        _label(left - 6, _TOP + _CELL * row + 9, f"{row + 1}", "end")
        for row in range(0, row_count, 1 if row_count < 20 else 5)
    ]
    size = _number(width - 1)
    for cell in valued_cells:
        css_class = "unknown" if cell.value is None else f"s{step_of(cell.value, most)}"
        corner = f"M{_number(left + width * cell.column)} {_TOP + _CELL * cell.row}"
        drawn.append(f'<path class="mark {css_class}" d="{corner}h{size}v{_CELL - 1}h-{size}z"/>')
    return Drawing(height, "".join(drawn))


def greatest(valued_cells: Sequence[Cell]) -> float:
    """Return the greatest value of cells; 0 if no cell has a value."""
    return max((cell.value for cell in valued_cells if cell.value is not None), default=0.0)


def step_of(value: float, most: float) -> int:
    """Return the shade of a value, a number below `STEPS`: 0 for nothing, then equal parts of the greatest value."""
    return 0 if value <= 0 or most <= 0 else min(STEPS - 1, math.ceil(value / most * (STEPS - 1)))


def _edges(bar: Bar) -> list[tuple[float, float]]:
    """Return the values at which each part of a bar begins and ends, as the parts follow each other."""
    ends = [0.0, *accumulate(bar.parts)]
    return [*pairwise(ends)]


def _bar_svg(rectangles: Iterable[tuple[float, float, float, float]]) -> str:
    """Return a bar as SVG from the rectangles of its parts, each as left, top, width and height.

    An empty part is not drawn.
    """
    boxes = [*rectangles]
    if not any(width and height for _, _, width, height in boxes):
        # A bar of zero is drawn as a hairline on the axis, so that a pointer finds its row.
        x, y, width, height = boxes[0]
        place = f'x="{_number(x)}" y="{_number(y - (not height))}"'
        return f'<g class="mark"><rect class="nothing" {place} {_width_and_height(width, height)}/></g>'
    drawn = (
        f'<rect class="part{number}" x="{_number(x)}" y="{_number(y)}" {_width_and_height(width, height)}/>'
        for number, (x, y, width, height) in enumerate(boxes)
        if width and height
    )
    return f'<g class="mark">{"".join(drawn)}</g>'


def _width_and_height(width: float, height: float) -> str:
    """Return the attributes of a rectangle's size, each at least 1, so that small values stay visible."""
    return f'width="{_number(max(width, 1))}" height="{_number(max(height, 1))}"'


def _axis(y_scale: Scale, marks: Sequence[float], text: Text) -> str:
    """Return a line across the picture at each value of ``marks``, with the value's text at the left."""
    lines = [
        f'<path class="grid" d="M{_LEFT} {_number(y_scale(mark))}H{WIDTH - _RIGHT}"/>'
        + _label(_LEFT - 8, y_scale(mark) + 4, text(mark), "end")
        for mark in marks
    ]
    return "".join(lines)


def _label(x: float, y: float, text: str, anchor: str) -> str:
    """Return a text at a point; ``anchor`` says whether the point is its "start", "middle" or "end"."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{in_html(text[:_LONGEST])}</text>'


def _cut(text: str, most: int = _LABEL) -> str:
    """Return a label, cut to ``most`` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _number(value: float) -> str:
    """Return a number for SVG with at most one digit after the point."""
    return f"{value:.1f}".removesuffix(".0")

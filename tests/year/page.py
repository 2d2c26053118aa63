"""The figures of a year as a picture, and as the page that shows it."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Sequence
from xml.sax.saxutils import escape

from tests.year.calendar import Calendar
from tests.year.measures import MEASURES, Day, Measure, growth

_WIDTH, _HEIGHT, _COLUMNS = 300, 120, 3
_STYLE = """
text{font:11px sans-serif;fill:#333}.t{font-weight:bold}.g{fill:#777}
path{fill:none;stroke:#2a6fb0;stroke-width:1.2}line{stroke:#ccc}
@media(prefers-color-scheme:dark){text{fill:#ddd}.g{fill:#999}path{stroke:#7db8ee}line{stroke:#444}}
"""

_ABOUT = """
`make soak` wrote this page: {days} days of a job with a simulated store and clock, in one process.
The job loads {loads} times a day, with late files, broken documents and fields that change each
month. Each day it upserts, updates and deletes rows, drops those older than {keep} days, compacts
and vacuums. Each week it erases a person and clusters. Each month it restores the version before a
mistake, names a version and chooses other columns. In the first half of the year it switches on
deletion vectors, the change feed, in-commit timestamps, v2 checkpoints and column mapping.

A plain model checks all rows of the newest version and of yesterday's each week. The command fails
if a figure grows by more than its limit in the second half of the year. Growth is the median slope
of weekly medians. CPU times are held against those of fixed work on the same day.
"""
_COSTS = """
The costs are those of S3 Standard (requests and storage) and of a CPU hour at $0.0425. The requests
of a query include opening the table in a new process.
""".strip()


def picture(days: Sequence[Day]) -> str:
    """An SVG with a panel for each measure, for light and dark pages."""
    rows = -(-len(MEASURES) // _COLUMNS)
    width, height = _COLUMNS * _WIDTH, rows * _HEIGHT
    panels = "".join(
        f'<g transform="translate({at % _COLUMNS * _WIDTH},{at // _COLUMNS * _HEIGHT})">'
        f"{_panel(days, measure)}</g>"
        for at, measure in enumerate(MEASURES)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}"><style>{_STYLE}</style>{panels}</svg>\n'
    )


def _panel(days: Sequence[Day], measure: Measure) -> str:
    values = [day[measure.name] for day in days]
    top = max(values) or 1.0
    left, right, bottom = 8, _WIDTH - 12, _HEIGHT - 16
    step = (right - left) / max(len(values) - 1, 1)
    points = " ".join(
        f"{'L' if at else 'M'}{left + at * step:.1f},{bottom - value / top * 70:.1f}"
        for at, value in enumerate(values)
    )
    said = f"half a year: {growth(days, measure):+.1%} of {measure.limit:+.0%} allowed"
    return (
        f'<text class="t" x="{left}" y="14">{escape(measure.title)}</text>'
        f'<text class="g" x="{left}" y="28">up to {shown(top, measure.unit)}; {said}</text>'
        f'<line x1="{left}" y1="{bottom}" x2="{right}" y2="{bottom}"/><path d="{points}"/>'
    )


def shown(value: float, unit: str) -> str:
    """A figure in its unit, for people."""
    if unit == "bytes":
        return f"{value / 1e6:,.2f} MB"
    if unit == "$":
        return f"${value:.4f}"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:,.1f} {unit}"


def page(calendar: Calendar, days: Sequence[Day]) -> str:
    """The page of the documentation, in Markdown."""
    about = _ABOUT.format(days=calendar.days, loads=calendar.loads, keep=calendar.keep)
    lines = [
        "# A year in the life of a table",
        *("\n" + textwrap.fill(each, 120) for each in about.strip().split("\n\n")),
        "",
        "![Figures by day](../assets/year.svg)",
        "",
        "| Figure | First quarter | Last quarter | Growth in half a year | Limit |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    quarter = max(len(days) // 4, 1)
    for measure in MEASURES:
        first, last = (
            shown(statistics.median(day[measure.name] for day in some), measure.unit)
            for some in (days[:quarter], days[-quarter:])
        )
        by = f"{growth(days, measure):+.1%}" + (" by rows" if measure.by_rows else "")
        lines.append(f"| {measure.title} | {first} | {last} | {by} | {measure.limit:+.0%} |")
    lines += ["", textwrap.fill(_COSTS, 120), ""]
    return "\n".join(lines)

"""Pictures of figures as SVG text: light and dark by the reader's own choice, 480 units wide.

At this width letters are readable on a narrow page too; no page shows it wider.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from benchmarks.report import Runs, Section

WIDTH, LEFT, RIGHT = 480, 16, 464
LETTER = 7.4
"""Width of a letter of 13 units, rather too much than too little."""
_LIGHT = ("#0b63ce", "#c2410c", "#15803d", "#7e22ce", "#a16207", "#be123c")
_DARK = ("#7db4ff", "#ff9e64", "#7fd6a0", "#d0a5ff", "#e6c35c", "#ff8fa6")
_SHAPES = (
    "m-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0",
    "m-4.5 -4.5h9v9h-9z",
    "m0 -6l5.5 10h-11z",
    "m0 -6.5l6 6.5l-6 6.5l-6 -6.5z",
    "m0 6l5.5 -10h-11z",
    "m-5.5 -2h3.5v-3.5h4v3.5h3.5v4h-3.5v3.5h-4v-3.5h-3.5z",
)


def _style() -> str:
    def colours(chosen: Sequence[str]) -> str:
        marks = (f".c{n} {{ fill: {c}; stroke: {c}; }}" for n, c in enumerate(chosen))
        return " ".join(marks)

    return (
        f"<style>text {{ fill: #1c2430; stroke: none; }} .soft {{ fill: #4d5967; }} "
        f".head {{ font-weight: 600; }} .grid {{ stroke: #c3cbd6; }} .back {{ fill: #ffffff; }} "
        f".line {{ fill: none; stroke-width: 2; }} {colours(_LIGHT)} "
        f"@media (prefers-color-scheme: dark) {{ text {{ fill: #e6eaf0; }} .soft {{ fill: #b4bfcc; "
        f"}} .grid {{ stroke: #465261; }} .back {{ fill: #14181f; }} {colours(_DARK)} }}</style>"
    )


def _svg(title: str, about: str, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-labelledby="title text" '
        f'font-family="system-ui, sans-serif" font-size="13">\n'
        f'<title id="title">{escape(title)}</title>\n<desc id="text">{escape(about)}</desc>\n'
        f'{_style()}\n<rect class="back" width="{WIDTH}" height="{height:.0f}" rx="6"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _text(x: float, y: float, text: str, *, kind: str = "", anchor: str = "start") -> str:
    classes = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{classes} text-anchor="{anchor}">{escape(text)}</text>'


def _mark(x: float, y: float, number: int) -> str:
    return f'<path class="c{number}" d="M{x:.1f} {y:.1f}{_SHAPES[number]}"/>'


def _legend(names: Sequence[str], top: float) -> tuple[list[str], float]:
    """Marks and names in as many lines as they need, and where they end."""
    parts, x, y = [], float(LEFT), top
    for number, name in enumerate(names):
        width = 24 + len(name) * LETTER
        if x > LEFT and x + width > RIGHT:
            x, y = float(LEFT), y + 20
        parts += [_mark(x + 6, y - 4, number), _text(x + 16, y, name)]
        x += width
    return parts, y + 12


def seconds_text(seconds: float) -> str:
    """1 ms, 10 ms, 1 s."""
    return f"{seconds * 1000:g} ms" if seconds < 0.999 else f"{seconds:g} s"


def dots(title: str, rows: Mapping[str, Mapping[str, Runs]], columns: Sequence[str]) -> str:
    """A mark for each engine's median and a line from its least to its greatest, logarithmic."""
    values = [v for cells in rows.values() for runs in cells.values() for v in runs.values]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)

    def at(value: float) -> float:
        return LEFT + 14 + (math.log10(value) - low) / (high - low) * (RIGHT - LEFT - 44)

    legend, top = _legend(columns, 50)
    bottom = top + 36 * len(rows) + 4
    parts = [_text(LEFT, 24, title, kind="head"), *legend]
    for power in range(low, high + 1):
        x = at(10.0**power)
        parts.append(f'<path class="grid" d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>')
        parts.append(_text(x, bottom + 16, seconds_text(10.0**power), kind="soft", anchor="middle"))
    parts.append(_text(LEFT, bottom + 36, "seconds, logarithmic: left is faster", kind="soft"))
    for place, (name, cells) in enumerate(rows.items()):
        y = top + 36 * place
        parts.append(_text(LEFT, y + 12, name))
        for number, column in reversed(list(enumerate(columns))):
            runs = cells.get(column, Runs())
            if runs.values:
                line = f"M{at(min(runs.values)):.1f} {y + 25:.1f}H{at(max(runs.values)):.1f}"
                parts.append(f'<path class="c{number}" d="{line}"/>')
                parts.append(_mark(at(runs.median), y + 25, number))
    about = "; ".join(_in_words(rows, columns))
    return _svg(
        title, f"Medians, with a line from the least to the greatest. {about}.", bottom + 48, parts
    )


def _in_words(rows: Mapping[str, Mapping[str, Runs]], columns: Sequence[str]) -> Iterator[str]:
    for name, cells in rows.items():
        answered = [column for column in columns if cells.get(column, Runs()).values]
        shown = ", ".join(f"{column} {_rounded(cells[column].median)}" for column in answered)
        yield f"{name}: {shown}"


def _rounded(seconds: float) -> str:
    return seconds_text(float(f"{seconds:.2g}"))


def growth(section: Section) -> str:
    """For each work a line: times its cost at 1× over times the work, both logarithmic."""
    lines: dict[str, dict[int, float]] = {}
    for row, cells in section.rows.items():
        name, _, size = row.removesuffix("×").rpartition(", ")
        lines.setdefault(name, {})[int(size)] = cells[section.columns[0]].median
    factors = sorted(next(iter(lines.values())))
    ratios = [cost / costs[1] for costs in lines.values() for cost in costs.values()]
    low = min(0, math.floor(math.log2(min(ratios))))
    high = max(3, math.ceil(math.log2(max(ratios))))
    names = [f"{name} ({_rounded(costs[1])} at 1×)" for name, costs in lines.items()]
    legend, top = _legend(names, 50)
    top += 12
    bottom = top + 200

    def across(factor: float) -> float:
        return 56 + math.log2(factor) / math.log2(factors[-1]) * (RIGHT - 80)

    def down(ratio: float) -> float:
        return bottom - (math.log2(ratio) - low) / (high - low) * (bottom - top)

    title = "Cost by size, on two cores"
    parts = [_text(LEFT, 24, title, kind="head"), *legend]
    for power in range(low, high + 1):
        y = down(2.0**power)
        parts.append(f'<path class="grid" d="M{across(1):.1f} {y:.1f}H{across(factors[-1]):.1f}"/>')
        parts.append(_text(48, y + 4, f"{2.0**power:g}×", kind="soft", anchor="end"))
    parts += [
        _text(across(each), bottom + 18, f"{each}×", kind="soft", anchor="middle")
        for each in factors
    ]
    parts.append(
        f'<path class="grid line" stroke-dasharray="5 4" d="M{across(1):.1f} {down(1):.1f}'
        f'L{across(factors[-1]):.1f} {down(factors[-1]):.1f}"/>'
    )
    for number, costs in enumerate(lines.values()):
        points = [(across(f), down(costs[f] / costs[1])) for f in factors]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(f'<path class="c{number} line" style="fill:none" d="M{path}"/>')
        parts += [_mark(x, y, number) for x, y in points]
    parts.append(
        _text(LEFT, bottom + 40, "across: size; up: time; dashed: in proportion", kind="soft")
    )
    words = (
        f"{name}: " + ", ".join(f"{_rounded(costs[f])} at {f}×" for f in factors)
        for name, costs in lines.items()
    )
    return _svg(title, "; ".join(words) + ".", bottom + 52, parts)

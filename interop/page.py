"""Make docs/interop.md from the results of a run."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

from interop.engines import ENGINES, REPOSITORY, Engine
from interop.kinds import KINDS
from interop.run import Cell

RESULTS = Path(__file__).with_name("results.json")
PAGE = REPOSITORY / "docs" / "interop.md"
TURNS = {
    "written-file": "a file with VARIANT that the engine wrote, read by us",
    "turns-plain-ours": "a plain table that we made, changed in turn",
    "turns-plain-theirs": "a plain table that it made, changed in turn",
    "turns-variant-ours": "a table with VARIANT that we made, changed in turn",
    "turns-variant-theirs": "a table with VARIANT that it made, changed in turn",
}
"""The actions of engines that write, by the names of the cells."""

_HEAD = """\
# What other engines read

`make interop` makes this page. It installs each engine in an environment of its own, and lets it
read small tables that we wrote, each of which has one thing that a reader must know. It compares
the rows with those that were written. Engines that write also change tables in turn with us:
appends, deletes and updates in random order. At the end both must read the same rows as a plain
list says. Nothing on this page is typed by hand. It was made on {date}.

| a cell | means |
|---|---|
| yes | the same rows, with equal values |
| columns | the columns of a shredded VARIANT as the file has them: the user assembles the values |
| refuses | an error, and no rows |
| **wrong** | other rows, or other values |
| **dies** | the process ends |
| – | not asked: the engine does not do this, or a part of it cannot be installed here |
"""

_BEHIND = """\
## What the engines said

Whose fault it is follows from who else reads the same table. To try a cell again, run
`python -m interop ENGINE --kinds KIND`. The table stays in `.work/interop/tables/KIND`; it has a
few rows, so you can send it with a report.
"""


def render(date: str, cells: list[Cell]) -> str:
    """The page's text."""
    parts = [_HEAD.format(date=date)]
    by_place = {(cell.kind, cell.engine): cell for cell in cells}
    for title, names in (
        ("Tables that we wrote", {kind.name: kind.about for kind in KINDS if not kind.files_only}),
        (
            "Parquet files that we wrote",
            {kind.name: kind.about for kind in KINDS if kind.files_only},
        ),
        ("Files and tables that others wrote, alone or in turn with us", TURNS),
    ):
        parts.append(f"## {title}\n\n{_table(names, by_place)}")
    parts.append(_BEHIND)
    parts.extend(_words(engine, cells) for engine in ENGINES if _words(engine, cells))
    return "\n".join(parts)


def write_page() -> None:
    """Write the page of the results that the repository has."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    cells = [Cell(**entry) for entry in results["cells"]]
    PAGE.write_text(render(results["date"], cells), encoding="utf-8")


def _table(names: dict[str, str], by_place: dict[tuple[str, str], Cell]) -> str:
    asked = [
        engine
        for engine in ENGINES
        if any(by_place.get((name, engine.name), _UNASKED).outcome != "not run" for name in names)
    ]
    lines = [
        f"| | {' | '.join(engine.title for engine in asked)} |",
        f"|---|{'---|' * len(asked)}",
    ]
    for name, about in names.items():
        row = [_mark(by_place.get((name, engine.name), _UNASKED)) for engine in asked]
        lines.append(f"| {about} (`{name}`) | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


_UNASKED = Cell("", "", "not run")


def _mark(cell: Cell) -> str:
    match cell.outcome:
        case "equal":
            return "yes"
        case "not run":
            return "–"
        case "wrong" | "dies":
            return f"**{cell.outcome}**"
    return cell.outcome


def _words(engine: Engine, cells: list[Cell]) -> str:
    """A section for the engine: its errors, and the kinds of tables with each."""
    told = [cell for cell in cells if cell.engine == engine.name and cell.reason]
    if not told:
        return ""
    lines = [f"### {engine.title}", "", "| kinds | outcome | what was said | whose fault |"]
    lines.append("|---|---|---|---|")
    told.sort(key=lambda cell: (cell.outcome, cell.reason))
    for (outcome, reason), group in groupby(told, lambda cell: (cell.outcome, cell.reason)):
        alike = list(group)
        kinds = ", ".join(f"`{cell.kind}`" for cell in alike)
        shown = reason.replace("|", "\\|").replace("<", "&lt;").replace("{", "&#123;")
        lines.append(f"| {kinds} | {outcome} | {shown} | {_fault(alike[0], cells)} |")
    return "\n".join(lines) + "\n"


def _fault(cell: Cell, cells: list[Cell]) -> str:
    if cell.outcome == "not run":
        return "nobody's: this machine cannot have it"
    if cell.outcome == "we refuse":
        return "ours"
    others = [
        engine.title
        for engine in ENGINES
        for other in cells
        if other.engine == engine.name != cell.engine
        and other.kind == cell.kind
        and other.outcome == "equal"
    ]
    if cell.kind in TURNS:
        return "not settled" if not others else f"its own: {others[0]} does it with us"
    return (
        f"its own: {' and '.join(others[:2])} read it" if others else "not settled: only we read it"
    )

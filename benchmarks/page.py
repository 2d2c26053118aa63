"""Make the blocks and pictures of the performance pages from benchmarks/results.json.

A block stands between `<!-- benchmark: NAME -->` and `<!-- end of benchmark -->`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.pictures import dots, growth
from benchmarks.report import Runs, Section, table

RESULTS = Path(__file__).with_name("results.json")
DOCS = RESULTS.parents[1] / "docs"
PAGES = (DOCS / "performance.md", DOCS / "maintainers" / "measurements.md")
PICTURES = DOCS / "assets" / "performance"
OURS = "Variantlake"
_BLOCK = re.compile(r"(<!-- benchmark: (.*?) -->\n).*?(<!-- end of benchmark -->)", re.DOTALL)
_OF_LOADS = ": load NDJSON"


def read_results() -> dict[str, Any]:
    """The results of the last runs."""
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def render(page: str, results: Mapping[str, Any]) -> str:
    """A page's text with new blocks. Raises KeyError for an unknown block."""

    def block(match: re.Match[str]) -> str:
        kind, _, name = match[2].partition(" of ")
        return f"{match[1]}{_BLOCKS[kind](results, name)}\n{match[3]}"

    return _BLOCK.sub(block, page)


def pictures(results: Mapping[str, Any]) -> dict[str, str]:
    """The text of each SVG by its file name."""
    sections = {name: Section.from_dict(each) for name, each in results["sections"].items()}
    made = {}
    for file, name, title, suffix in (
        ("load.svg", "load", "Loading NDJSON into a table", _OF_LOADS),
        ("queries.svg", "queries", "Queries on Spark", ""),
        ("rule.svg", "rule", "Ordinary Spark code", ""),
        ("local-queries.svg", "local-queries", "Queries without Spark", ""),
        ("compaction.svg", "compaction", "Compaction of small files", ""),
    ):
        if name in sections:
            section = sections[name]
            rows = {
                row.removesuffix(suffix): cells
                for row, cells in section.rows.items()
                if row.endswith(suffix) and not row.endswith((": read", ": CPU"))
            }
            made[file] = dots(title, rows, section.columns)
    if "growth" in sections:
        made["growth.svg"] = growth(sections["growth"])
    return made


def write_pages() -> None:
    """Write the blocks and the pictures of the results that the repository has."""
    results = read_results()
    for page in PAGES:
        page.write_text(render(page.read_text(encoding="utf-8"), results), encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    for name, text in pictures(results).items():
        (PICTURES / name).write_text(text, encoding="utf-8")


def _machine(results: Mapping[str, Any], _: str) -> str:
    machine, versions = results["machine"], results["versions"]
    sections = results["sections"].values()
    sizes = ", ".join(sorted({each["size"] for each in sections}))
    loads = [load for each in sections for load in each["load_average"]]
    dates = sorted(each["date"][:10] for each in sections)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    lines = [
        f"Measured on {when} with `SIZE={sizes}` on {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_gib']:.0f} GiB, {machine['system']}: "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + "."
    ]
    if max(loads) > machine["cores"] + 1:
        lines.append(
            f"**The machine was busy** (load average {min(loads):.0f} to {max(loads):.0f} on "
            f"{machine['cores']} cores): the figures below are no measure of speed. They show "
            "what the command writes."
        )
    return "\n\n".join(lines)


def _rows(results: Mapping[str, Any]) -> Iterator[tuple[str, str, Section, dict[str, Runs]]]:
    for name, each in results["sections"].items():
        section = Section.from_dict(each)
        if section.compares == "engines":
            for row, cells in section.rows.items():
                yield name, row, section, cells


def _others(section: Section, cells: Mapping[str, Runs]) -> dict[str, Runs]:
    """The other engines that answered."""
    return {
        name: cells[name]
        for name in section.columns
        if not name.startswith(OURS) and name in cells and cells[name].values
    }


def _table(results: Mapping[str, Any], _: str) -> str:
    """One line per workload: ours, Delta Spark's, the best of the others."""
    delta = "Delta Spark"
    lines = []
    for name, row, section, cells in _rows(results):
        ours = cells.get(OURS)
        if ours is None or not ours.values or row.endswith(": CPU"):
            continue
        others = _others(section, cells)
        theirs = others.pop(delta, Runs())
        best = min(others, key=lambda each: others[each].median, default="")
        shown = f"{best}: {others[best].text(ours)}" if best else "–"
        lines.append([f"{name}: {row}", ours.text(), theirs.text(ours), shown])
    return table(["work", OURS, delta, "the best of the others"], lines)


def _losses(results: Mapping[str, Any], _: str) -> str:
    """Every workload in which another engine is better."""
    lines = []
    for name, row, section, cells in _rows(results):
        ours = cells.get(OURS)
        if ours is None or not ours.values:
            continue
        for other, runs in _others(section, cells).items():
            if runs.median < ours.median:
                ratio = ours.median / runs.median
                lines.append(
                    f"- {name}, {row}: {other} has {runs.text()}, we have {ours.text()} "
                    f"({ratio:.1f} times as much)."
                )
    return "\n".join(lines) or "In no row of this run."


def _settings(results: Mapping[str, Any], _: str) -> str:
    return "\n".join(f"- {name}: {text}." for name, text in results["settings"].items())


def _section(results: Mapping[str, Any], name: str) -> str:
    each = results["sections"].get(name)
    if each is None:
        return "Not measured yet."
    about = (
        f"`{each['command']}`, {each['date']}, commit {each['commit']}, {each['rounds']} rounds, "
        f"{each['seconds']} s, load average {each['load_average'][0]} before and "
        f"{each['load_average'][1]} after."
    )
    inputs = "".join(f"- {one}\n" for one in each["inputs"])
    return f"{about}\n\n{inputs}\n{Section.from_dict(each).table()}"


def _picture(results: Mapping[str, Any], name: str) -> str:
    made = pictures(results).get(name)
    if made is None:
        return "Not measured yet."
    title = made.partition('<title id="title">')[2].partition("</title>")[0]
    return f"![{title}: medians of each row, in words in the picture.](assets/performance/{name})"


_BLOCKS = {
    "picture": _picture,
    "machine": _machine,
    "table": _table,
    "losses": _losses,
    "settings": _settings,
    "figures": _section,
}

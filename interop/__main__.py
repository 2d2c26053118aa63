"""`python -m interop [ENGINE …]`: ask the engines, and write docs/interop.md.

Each engine gets an environment of its own under `.work/interop`, and the tables stay there, each of
a few rows: a fault can be reported with its table. Engines that are not named keep the results of
the run before.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json

from interop.engines import ENGINES, PLACE
from interop.kinds import KINDS
from interop.page import RESULTS, write_page
from interop.run import Cell, build, cells, report


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(prog="python -m interop", description=__doc__)
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help="some of the engines")
    parser.add_argument("--kinds", help="some of the kinds, with commas; nothing is kept of this")
    options = parser.parse_args()
    known = [engine.name for engine in ENGINES]
    for name in set(options.engines) - set(known):
        parser.error(f"no engine {name}; there are {', '.join(known)}")
    names = options.kinds.split(",") if options.kinds else [kind.name for kind in KINDS]
    place = PLACE / "tables"
    place.mkdir(parents=True, exist_ok=True)
    expected = build(place, [kind for kind in KINDS if kind.name in names])
    results = _earlier()
    for engine in ENGINES:
        if options.engines and engine.name not in options.engines:
            continue
        results[engine.name] = []
        for cell in cells(engine, place, expected):
            report(cell)
            results[engine.name].append(cell)
        if not options.kinds:
            _keep([cell for each in ENGINES for cell in results.get(each.name, ())])


def _earlier() -> dict[str, list[Cell]]:
    results: dict[str, list[Cell]] = {}
    if RESULTS.exists():
        for entry in json.loads(RESULTS.read_text(encoding="utf-8"))["cells"]:
            results.setdefault(entry["engine"], []).append(Cell(**entry))
    return results


def _keep(cells: list[Cell]) -> None:
    """Write the page, and the results, a line for each cell: a later run changes few lines.

    It is done after each engine: who ends the run keeps those that are done.
    """
    lines = ",\n".join(json.dumps(cell.to_dict(), ensure_ascii=False) for cell in cells)
    today = dt.datetime.now(dt.UTC).date().isoformat()
    text = f'{{"date": "{today}", "cells": [\n{lines}\n]}}\n'
    RESULTS.write_text(text, encoding="utf-8")
    write_page()


if __name__ == "__main__":
    main()

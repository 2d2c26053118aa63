"""`python -m interop.comparison [ENGINE …]`: probe features, write docs/comparison.md's table.

Engines that are not named keep the results of the run before, in features.json.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interop.engines import ENGINES, PLACE, REPOSITORY, Died, Engine, Refused, Worker, environment
from interop.features import FEATURES, Feature
from interop.run import Cell
from variantlake.errors import VariantLakeError

RESULTS = Path(__file__).with_name("features.json")
PAGE = REPOSITORY / "docs" / "comparison.md"
NO_CALL = "no call"
_OURS = "variantlake"
_ASKED = ("spark-4.2", "pysail", "deltalake", "datafusion", "polars", "daft", "chdb", "duckdb")
_MARKS = {
    "equal": "yes",
    "refuses": "no",
    "wrong": "no",
    "dies": "no",
    NO_CALL: "–",
    "not run": "?",
}
_START, _END = "<!-- features -->\n", "<!-- end of features -->"


def engines() -> Iterator[Engine | None]:
    """Those of the table; None is ourselves."""
    yield None
    by_name = {engine.name: engine for engine in ENGINES}
    yield from (by_name[name] for name in _ASKED)


def name_of(engine: Engine | None) -> str:
    """As the results have it."""
    return _OURS if engine is None else engine.name


def worker_of(engine: Engine | None) -> Worker:
    """Start its process. Raises Died if a package cannot be installed."""
    module = "interop.workers.features"
    if engine is None:
        return Worker(sys.executable, [module, _OURS])
    package = engine.worker[1:] if engine.name.startswith("spark") else ()
    kind = "spark" if engine.name.startswith("spark") else engine.name
    return Worker(environment(engine), [module, kind, *package])


def probed(engine: Engine | None, features: tuple[Feature, ...] = FEATURES) -> Iterator[Cell]:
    """A cell for each feature."""
    name = name_of(engine)
    try:
        worker = worker_of(engine)
        offers = worker.ask("offers")
    except (Died, Refused) as error:
        yield from (Cell(name, feature.name, "not run", str(error)) for feature in features)
        return
    try:
        for feature in features:
            if feature.name not in offers:
                yield Cell(name, feature.name, NO_CALL)
            else:
                yield _probe(name, feature, worker)
    finally:
        worker.close()


def _probe(engine: str, feature: Feature, worker: Worker) -> Cell:
    place = PLACE / "features" / feature.name
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    feature.prepare(place)
    try:
        answer = worker.ask(feature.name, path=str(place))
        wrong = feature.check(place, answer)
    except Died as error:
        return Cell(engine, feature.name, "dies", _words(error))
    except Refused as error:
        if str(error).startswith("Absent: "):
            return Cell(engine, feature.name, "not run", str(error).removeprefix("Absent: "))
        return Cell(engine, feature.name, "refuses", _words(error))
    except (VariantLakeError, OSError, KeyError) as error:
        return Cell(engine, feature.name, "wrong", _words(error))
    return Cell(engine, feature.name, "wrong" if wrong else "equal", wrong)


def _words(error: Exception) -> str:
    # Engines write the path in many ways, and it differs between checkouts.
    text = re.sub(r"\S*\.work/interop", "…", str(error))
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "…", text)
    return text[:200]


def block(results: dict[str, Any]) -> str:
    """The table of the page, and the engines' errors."""
    cells = {(each["engine"], each["kind"]): Cell(**each) for each in results["cells"]}
    shown = [each for each in engines() if any(key[0] == name_of(each) for key in cells)]
    titles = ["Variantlake" if each is None else each.title.replace(",", "") for each in shown]
    lines = [
        f"Probed on {results['date']}.",
        "",
        f"| | {' | '.join(titles)} |",
        f"|---|{'---|' * len(titles)}",
    ]
    for feature in FEATURES:
        marks = [_MARKS[cells[name_of(each), feature.name].outcome] for each in shown]
        lines.append(f"| {feature.about} (`{feature.name}`) | {' | '.join(marks)} |")
    lines += ["", "What was said where the table has `no` or `?`:", ""]
    for each, title in zip(shown, titles, strict=True):
        reasons: dict[str, list[str]] = {}
        for feature in FEATURES:
            cell = cells[name_of(each), feature.name]
            if cell.reason:
                reasons.setdefault(cell.reason, []).append(f"`{feature.name}`")
        for reason, names in reasons.items():
            said = reason.replace("`", "'")
            lines.append(f"- {title}, {', '.join(names)}: `{said}`")
    return "\n".join(lines) + "\n"


def render(page: str, results: dict[str, Any]) -> str:
    """The page with a new block."""
    head, _, rest = page.partition(_START)
    return f"{head}{_START}{block(results)}{_END}{rest.partition(_END)[2]}"


def main() -> None:
    """Probe the engines, and keep what they did."""
    names = sys.argv[1:]
    kept: dict[str, list[dict[str, Any]]] = {}
    if RESULTS.exists():
        for entry in json.loads(RESULTS.read_text(encoding="utf-8"))["cells"]:
            kept.setdefault(entry["engine"], []).append(entry)
    for engine in engines():
        if names and name_of(engine) not in names:
            continue
        kept[name_of(engine)] = []
        for cell in probed(engine):
            print(cell.engine, cell.kind, cell.outcome, cell.reason[:100], flush=True)
            kept[name_of(engine)].append(cell.to_dict())
        _keep(kept)


def _keep(kept: dict[str, list[dict[str, Any]]]) -> None:
    """Store the results, and write the page: who ends the run keeps the engines that are done."""
    entries = [each for engine in engines() for each in kept.get(name_of(engine), ())]
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in entries)
    today = dt.datetime.now(dt.UTC).date().isoformat()
    RESULTS.write_text(f'{{"date": "{today}", "cells": [\n{lines}\n]}}\n', encoding="utf-8")
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


if __name__ == "__main__":
    main()

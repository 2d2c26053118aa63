"""Ask every engine for every kind of table, and record the outcome."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import variantlake as vl
from interop.compare import Columns, Rows, difference
from interop.engines import PLACE, Died, Engine, Refused, Worker, environment
from interop.kinds import DOCUMENTS, KINDS, Kind
from interop.turns import Game
from variantlake.errors import VariantLakeError

SEEDS = (1, 2)


@dataclass(frozen=True, slots=True)
class Cell:
    """The outcome for one engine and one kind of table.

    `outcome` is `equal`, `columns` (a shredded VARIANT as the columns of its file), `refuses`,
    `wrong`, `dies` or `not run`; `reason` is what the engine or the comparison said.
    """

    engine: str
    kind: str
    outcome: str
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As the results have it."""
        return asdict(self)


def build(place: Path, kinds: list[Kind]) -> dict[str, Rows]:
    """Create the tables, and check that we read them; returns their rows by kind."""
    expected = {}
    for kind in kinds:
        folder = place / kind.name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(folder.with_name(folder.name + ".source"), ignore_errors=True)
        expected[kind.name] = kind.build(folder)
        sys.stderr.write(f"built the table {kind.name}\n")
    return expected


def cells(engine: Engine, place: Path, expected: dict[str, Rows]) -> Iterator[Cell]:
    """All cells of an engine; `place` has the tables."""
    kinds = [kind for kind in KINDS if kind.name in expected]
    asked = [kind for kind in kinds if (engine.files if kind.files_only else engine.tables)]
    try:
        worker = Worker(environment(engine), engine.worker)
    except Died as error:
        yield from (Cell(engine.name, kind.name, "not run", str(error)) for kind in asked)
        return
    try:
        for kind in asked:
            yield _read(engine, kind, worker, place, expected[kind.name])
        if "write_files" in worker.ask("offers"):
            yield _written(engine, worker)
        if engine.writes:
            yield from _turns(engine, worker)
    finally:
        worker.close()


def _read(engine: Engine, kind: Kind, worker: Worker, place: Path, expected: Rows) -> Cell:
    action = "read_files" if kind.files_only else "read_table"
    try:
        wrong = difference(expected, worker.ask(action, path=str(place / kind.name)))
    except _OUTCOMES as error:
        return _failed(engine, kind.name, error)
    return Cell(engine.name, kind.name, "wrong" if wrong else "equal", wrong)


_OUTCOMES = (Refused, Died, Columns, VariantLakeError)


def _failed(engine: Engine, kind: str, error: Exception) -> Cell:
    text = str(error).replace(str(PLACE), "…")
    match error:
        case Columns():
            return Cell(engine.name, kind, "columns")
        case Died():
            return Cell(engine.name, kind, "dies", text)
        case Refused() if text.startswith("Absent: "):
            return Cell(engine.name, kind, "not run", text.removeprefix("Absent: "))
        case Refused():
            return Cell(engine.name, kind, "refuses", text)
    return Cell(engine.name, kind, "we refuse", f"{type(error).__name__}: {text}"[:300])


def _written(engine: Engine, worker: Worker) -> Cell:
    """The cell of a VARIANT file that the engine writes and we read."""
    rows = [{"id": n, "event": json.dumps(document)} for n, document in enumerate(DOCUMENTS)]
    expected = [{"id": n, "event": {"variant": one}} for n, one in enumerate(DOCUMENTS)]
    with tempfile.TemporaryDirectory(prefix="variantlake-files-") as name:
        try:
            worker.ask("write_files", path=name, rows=rows)
            (path,) = Path(name).glob("*.parquet")
            table = vl.parquet.read_table(path).sort_by("id")
            texts = vl.to_json(table["event"]).to_pylist()
        except _OUTCOMES as error:
            return _failed(engine, "written-file", error)
    read = [{"id": n, "event": {"variant": text}} for n, text in enumerate(texts)]
    wrong = difference(expected, read)
    return Cell(engine.name, "written-file", "wrong" if wrong else "equal", wrong)


def _turns(engine: Engine, worker: Worker) -> Iterator[Cell]:
    for first in ("ours", "theirs"):
        for variants in (False, True) if engine.variants else (False,):
            kind = f"turns-{'variant' if variants else 'plain'}-{first}"
            games = (Game(worker, first=first, variants=variants, seed=seed) for seed in SEEDS)
            outcomes = [_play(engine, kind, game) for game in games]
            yield next((cell for cell in outcomes if cell.outcome != "equal"), outcomes[0])


def _play(engine: Engine, kind: str, game: Game) -> Cell:
    with tempfile.TemporaryDirectory(prefix="variantlake-turns-") as name:
        try:
            rows = game.play(Path(name) / "table")
            for reader, read in (("we read", game.read_ours()), ("it reads", game.read_theirs())):
                wrong = difference(rows, read)
                if wrong:
                    return Cell(engine.name, kind, "wrong", f"{reader} {wrong} ({game})")
        except _OUTCOMES as error:
            return _failed(engine, kind, error)
    return Cell(engine.name, kind, "equal")


def report(cell: Cell) -> None:
    """Print a line of progress."""
    sys.stderr.write(f"{cell.engine:12} {cell.kind:22} {cell.outcome:8} {cell.reason[:140]}\n")

"""Our changes of rows among Delta Spark's upkeep of the same table, and several at once."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.dml.changed import VECTORS
from tests.spark.layouts import UNADAPTED, changed, rows
from variantlake.errors import CommitConflict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

STEPS = 16
KEPT = {
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.vacuum.parallelDelete.enabled": "false",
}
Rows = dict[int, tuple[int | None, int]]
"""By id: the column n, and the x of the document."""


@dataclass
class History:
    """A table, the rows that it must have, and those of its versions that can be restored."""

    spark: SparkSession
    lake: vl.spark.Lake
    table: vl.Table
    chance: random.Random
    rows: Rows = field(default_factory=dict)
    versions: dict[int, Rows] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"delta.`{self.table.uri}`"

    def step(self) -> None:
        chosen = self.chance.choice(_STEPS)
        self.told.append(chosen.__name__)
        chosen(self)
        self.table = self.table.refresh()
        self.versions[self.table.version] = dict(self.rows)
        found = self.table.scan("id, n, event:x::int AS x").to_arrow().to_pylist()
        assert sorted((r["id"], r["n"], r["x"]) for r in found) == self.expected(), self.told

    def expected(self) -> list[tuple[Any, ...]]:
        return sorted((key, *row) for key, row in self.rows.items())

    def change(self, where: Callable[[int, Any, int], Any], new: Callable[..., Any] | None) -> None:
        for key, (n, x) in list(self.rows.items()):
            if where(key, n, x):
                if new is None:
                    del self.rows[key]
                else:
                    self.rows[key] = new(key, n, x)

    def number(self) -> int:
        return self.chance.randrange(40)


def _append(it: History) -> None:
    first = max(it.rows, default=-1) + 1
    new = {first + i: (it.number(), it.number()) for i in range(it.chance.randint(1, 12))}
    it.rows |= new
    columns = {
        "id": pa.array(list(new), pa.int32()),
        "n": pa.array([n for n, _ in new.values()], pa.int32()),
        "event": [json.dumps({"x": x, "pad": "p" * (x % 5)}) for _, x in new.values()],
    }
    it.table.append(pa.table(columns), json_columns=["event"], max_rows_per_file=5)


def _insert(it: History) -> None:
    key = max(it.rows, default=-1) + 1
    it.rows[key] = (None, 7)
    it.spark.sql(f"INSERT INTO {it.name} VALUES ({key}, NULL, parse_json('{{\"x\": 7}}'))")


def _delete_here(it: History) -> None:
    x = it.number()
    it.change(lambda _k, _n, own: own in (x, x + 1), None)
    it.table.delete(f"event:x::int IN ({x}, {x + 1})")


def _delete(it: History) -> None:
    rest = it.chance.randrange(5)
    it.change(lambda key, _n, _x: key % 5 == rest and key < 40, None)
    it.lake.sql(f"DELETE FROM {it.name} WHERE id % 5 = {rest} AND id + 0 < 40")


def _update_here(it: History) -> None:
    x = it.number()
    it.change(lambda _k, n, own: own >= x and n is not None, lambda _k, n, own: (n + 1, own))
    it.table.update({"n": vl.expr("n + 1")}, f"event:x::int >= {x} AND n IS NOT NULL")


def _update(it: History) -> None:
    rest = it.chance.randrange(4)
    it.change(lambda key, _n, _x: key % 4 == rest, lambda key, n, _x: (n, key + 100))
    it.lake.sql(
        f"UPDATE {it.name} SET event = parse_json(concat('{{\"x\":', id + 100, '}}')) "
        f"WHERE id % 4 = {rest}"
    )


def _merge(it: History) -> None:
    first, count = it.number(), it.chance.randint(1, 30)
    for key in range(first, first + count):
        x = it.rows.get(key, (None, 0))[1]
        if key not in it.rows:
            it.rows[key] = (key, -1)
        elif x % 3 == 0:
            del it.rows[key]
        else:
            it.rows[key] = (-key, x)
    it.lake.sql(
        f"""MERGE INTO {it.name} t USING (SELECT int(id) AS id FROM range({first}, {first + count}))
        s ON t.id = s.id WHEN MATCHED AND t.event:x::int % 3 = 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET n = -s.id
        WHEN NOT MATCHED THEN INSERT (id, n, event) VALUES (id, id, parse_json('{{"x":-1}}'))"""
    )


def _rewrite(it: History) -> None:
    it.table.optimize()


def _of_delta(text: str) -> Callable[[History], None]:
    def run(it: History) -> None:
        with changed(it.spark, UNADAPTED):
            it.spark.sql(text.format(t=it.name)).collect()
        if text.startswith("VACUUM"):
            it.versions.clear()

    run.__name__ = text
    return run


def _delta_delete(it: History) -> None:
    rest = it.chance.randrange(7)
    it.change(lambda key, _n, _x: key % 7 == rest, None)
    it.spark.sql(f"DELETE FROM {it.name} WHERE id % 7 = {rest}")


def _restore(it: History) -> None:
    if it.versions:
        version = it.chance.choice(list(it.versions))
        it.rows = dict(it.versions[version])
        it.spark.sql(f"RESTORE TABLE {it.name} TO VERSION AS OF {version}").collect()


_STEPS = (
    *(_append, _append, _insert, _delete_here, _delete, _update_here, _update, _merge, _merge),
    *(_rewrite, _delta_delete, _restore, _restore),
    *map(_of_delta, ("OPTIMIZE {t}", "OPTIMIZE {t} ZORDER BY (id)", "VACUUM {t} RETAIN 0 HOURS")),
    *map(_of_delta, ("REORG TABLE {t} APPLY (PURGE)",)),
)


@pytest.mark.parametrize(("seed", "properties"), [(1, VECTORS), (2, {})])
def test_our_changes_among_delta_sparks_upkeep(
    spark: SparkSession, tmp_path: Path, seed: int, properties: dict[str, str]
) -> None:
    table = vl.Table.create(tmp_path / "t", "id INT, n INT, event VARIANT", properties=properties)
    it = History(spark, vl.spark.connect(spark), table, random.Random(seed))
    with changed(spark, KEPT):
        _append(it)
        for _ in range(STEPS):
            it.step()
    for frame in (spark.read.format("delta").load(table.uri), it.lake.read(table.uri)):
        found = frame.selectExpr("id", "n", "event:x::int AS x").collect()
        assert sorted(map(tuple, found)) == it.expected(), it.told


def at_once(*runs: Callable[[], object]) -> list[bool]:
    """Whether each of them was committed, and did not lose against another."""

    def one(run: Callable[[], object]) -> bool:
        try:
            run()
        except CommitConflict:
            return False
        return True

    with ThreadPoolExecutor(len(runs)) as pool:
        return list(pool.map(one, runs))


def upsert(lake: vl.spark.Lake, table: vl.Table, number: int, keys: str) -> Callable[[], object]:
    source = f"(SELECT int(id) AS id, {number} AS n FROM {keys})"
    return lambda: lake.merge(table.uri, source, "t.id = s.id")


@pytest.mark.parametrize("properties", [VECTORS, {}])
def test_merges_at_once(spark: SparkSession, tmp_path: Path, properties: dict[str, str]) -> None:
    lake = vl.spark.connect(spark)
    table = vl.Table.create(tmp_path / "t", "id INT, n INT", properties=properties)
    rows_of = pa.table({name: pa.array([0, 1, 2, 3], pa.int32()) for name in ("id", "n")})
    table.append(rows_of, max_rows_per_file=2)

    def found() -> list[tuple[int, int]]:
        return sorted((r["id"], r["n"]) for r in table.refresh().scan().to_arrow().to_pylist())

    # Each its own keys: row i is updated, row i + 10 is new.
    own = [upsert(lake, table, 100 + i, f"VALUES ({i}), ({i + 10}) AS q(id)") for i in range(4)]
    while own:
        done = at_once(*own)
        assert any(done)
        own = [run for run, committed in zip(own, done, strict=True) if not committed]
    assert found() == [(i + more, 100 + i) for more in (0, 10) for i in range(4)]
    # All the same keys: the rows are those of one merge.
    done = at_once(*(upsert(lake, table, 200 + i, "range(8, 16)") for i in range(4)))
    assert any(done)
    kept = {n for key, n in found() if 8 <= key < 16}
    assert kept <= {200 + i for i, committed in enumerate(done) if committed}
    assert len(kept) == 1
    assert [key for key, _ in found()] == [0, 1, 2, 3, *range(8, 16)]
    # Merges that only insert, of the same new keys.
    insert = "WHEN NOT MATCHED THEN INSERT *"
    source = "(SELECT int(id) AS id, 5 AS n FROM range(20, 24))"
    done = at_once(*[lambda: lake.merge(table.uri, source, "t.id = s.id", insert)] * 3)
    assert any(done)
    assert [key for key, _ in found()] == [0, 1, 2, 3, *range(8, 16), *range(20, 24)]


def test_merges_beside_delta_sparks(spark: SparkSession, tmp_path: Path) -> None:
    lake = vl.spark.connect(spark)
    table = vl.Table.create(tmp_path / "t", "id INT, n INT", properties=VECTORS)
    name = f"delta.`{table.uri}`"
    merge = (
        f"MERGE INTO {name} t USING (SELECT int(id) AS id, int(id) AS n FROM range(6)) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n + 1 WHEN NOT MATCHED THEN INSERT *"
    )
    commits = 0

    def theirs() -> None:
        try:
            spark.sql(merge).collect()
        except Exception as error:
            if "DELTA_CONCURRENT" not in str(error):
                raise
            raise CommitConflict("theirs lost") from error

    for _ in range(2):
        commits += sum(at_once(theirs, lambda: lake.sql(merge)))
    assert commits
    right = [(key, key + commits - 1) for key in range(6)]
    assert sorted(map(tuple, lake.read(table.uri).collect())) == right
    assert rows(spark.sql(f"SELECT * FROM {name}")) == rows(lake.read(table.uri))

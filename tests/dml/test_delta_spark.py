"""Delta Spark as the judge: we and it take turns on one table, and all read the same rows."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import variantlake as vl
from tests.dml.changed import FEED, VECTORS, arrow, documents, new_table, text
from tests.dml.tracked import TRACKED, tracked_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

ROWS = 60
Holds = Callable[[int], bool]


def read_by_spark(spark: SparkSession, table: vl.Table) -> dict[int, str]:
    rows = spark.sql(f"SELECT id, to_json(event) AS text FROM delta.`{table.uri}`").collect()
    return {row["id"]: row["text"] for row in rows}


@dataclass
class Turns:
    """A table that everybody changes, and `model`: its documents by their ids."""

    spark: SparkSession
    table: vl.Table
    source: random.Random
    rows: int = ROWS
    model: dict[int, str] = field(default_factory=lambda: {n: text(n) for n in range(ROWS)})

    @property
    def name(self) -> str:
        return f"delta.`{self.table.uri}`"

    def step(self) -> str:
        """One change by somebody; says which."""
        condition, holds = self._condition()
        who = self.source.choice([self._here, self._by_us, self._by_delta])
        what = self.source.choice(["DELETE", "UPDATE", "MERGE", "APPEND"])
        who(what, condition)
        if what == "APPEND":
            self.model |= {n: text(n) for n in range(self.rows, self.rows + 9)}
            self.rows += 9
        elif what == "MERGE":
            self.model |= {n: f'{{"m":{n}}}' for n in range(self.rows - 3, self.rows + 2)}
            self.rows += 2
        else:
            for number in [each for each in self.model if holds(each)]:
                if what == "DELETE":
                    del self.model[number]
                else:
                    self.model[number] = '{"u":1}'
        return f"{who.__name__} {what} {condition}"

    def _here(self, what: str, condition: str) -> None:
        if what == "DELETE":
            self.table.delete(condition)
        elif what == "UPDATE":
            self.table.update({"event": {"u": 1}}, condition)
        elif what == "APPEND":
            self.table.append(arrow(range(self.rows, self.rows + 9)))
        else:
            self._by_us(what, condition)

    def _by_us(self, what: str, condition: str) -> None:
        lake = vl.spark.connect(self.spark)
        if what == "APPEND":
            self._here(what, condition)
        else:
            lake.sql(self._statement(what, condition)).collect()

    def _by_delta(self, what: str, condition: str) -> None:
        if what == "APPEND":
            self._here(what, condition)
        else:
            self.spark.sql(self._statement(what, condition))

    def _statement(self, what: str, condition: str) -> str:
        if what == "DELETE":
            return f"DELETE FROM {self.name} WHERE {condition}"
        if what == "UPDATE":
            return f"""UPDATE {self.name} SET event = parse_json('{{"u":1}}') WHERE {condition}"""
        return f"""MERGE INTO {self.name} t USING (
                SELECT id, 'm' AS day, parse_json(concat('{{"m":', id, '}}')) AS event
                FROM range({self.rows - 3}, {self.rows + 2})) s
            ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""

    def _condition(self) -> tuple[str, Holds]:
        low = self.source.randrange(self.rows)
        high = low + self.source.choice([0, 3, 20])
        by_id = f"id BETWEEN {low} AND {high}", lambda n: low <= n <= high

        def reads(key: str) -> Holds:
            return lambda n: f'"{key}":' in self.model[n] and n >= low

        paths = ("u", "m")
        key = self.source.choice(paths)
        by_path = f"variant_get(event, '$.{key}', 'int') >= 0 AND id >= {low}", reads(key)
        return self.source.choice([by_id, by_id, by_path])


@pytest.mark.parametrize(
    ("properties", "seed"), [({**VECTORS, **FEED}, 1), ({}, 4)], ids=["vectors", "rewritten"]
)
def test_any_sequence_leaves_the_same_rows(
    delta_spark: SparkSession, tmp_path: Path, properties: dict[str, str], seed: int
) -> None:
    check_sequence(delta_spark, tmp_path / "t", properties, seed, steps=7)


def test_rows_that_we_change_keep_their_ids_for_delta_spark(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, rows=20, per_file=8, properties={**VECTORS, **FEED, **TRACKED})
    table.update({"day": "x"}, "id in (3, 9)")
    table.upsert(arrow([9, 30]), "id")
    table.delete("id = 1")
    delta_spark.sql(f"UPDATE delta.`{tmp_path}` SET day = 'y' WHERE id in (2, 3)")
    table.refresh().update({"day": "z"}, "id = 3")
    table.erase("id = 12")
    query = "SELECT id, _metadata.row_id AS i, _metadata.row_commit_version AS c FROM delta.`{}`"
    rows = delta_spark.sql(query.format(tmp_path)).collect()
    found = {row["id"]: (row["i"], row["c"]) for row in rows}
    assert found == tracked_rows(table)
    assert found[3] == (3, 6)
    assert {n: row_id for n, (row_id, _) in found.items() if n < 20} == {
        n: n for n in range(20) if n not in (1, 12)
    }


def check_sequence(
    spark: SparkSession, folder: Path, properties: dict[str, str], seed: int, *, steps: int
) -> None:
    """Change a table in turns, and compare what is read with the model."""
    table = new_table(folder, rows=ROWS, per_file=12, properties=properties)
    turns = Turns(spark, table, random.Random(seed))
    done = []
    for _ in range(steps):
        done.append(turns.step())
        assert documents(table) == turns.model, done
    assert read_by_spark(spark, table) == turns.model, done
    if "delta.enableChangeDataFeed" in properties:
        check_feed(spark, table.refresh(), done)


def check_feed(spark: SparkSession, table: vl.Table, done: list[str]) -> None:
    """The change feed adds up to the rows, for Delta Spark and for us."""
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    rows = feed.option("startingVersion", 1).load(table.uri).select("id", "_change_type").collect()
    theirs = [(row["id"], row["_change_type"]) for row in rows]
    ours = [
        (row["id"], row["_change_type"])
        for row in table.changes(1, select="id, _change_type").to_arrow().to_pylist()
    ]
    assert sorted(ours) == sorted(theirs), done
    left: dict[int, int] = {}
    for number, kind in ours:
        sign = 1 if kind in ("insert", "update_postimage") else -1
        left[number] = left.get(number, 0) + sign
    assert {n for n, count in left.items() if count} == set(documents(table)), done


def test_a_vector_in_a_file_and_its_history_are_read(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path / "t", rows=3000, per_file=3000)
    name = f"delta.`{table.uri}`"
    table.delete("variant_get(event, '$.user', 'string') = 'u1'")
    assert list((tmp_path / "t").glob("deletion_vector_*.bin"))
    assert read_by_spark(delta_spark, table) == documents(table)
    delta_spark.sql(f"DELETE FROM {name} WHERE id < 500")
    ours = table.delete("id >= 2500")
    assert read_by_spark(delta_spark, table) == documents(table)
    theirs = delta_spark.sql(f"DESCRIBE HISTORY {name}").collect()
    assert theirs[0]["operation"] == "DELETE"
    assert theirs[0]["operationMetrics"]["numDeletedRows"] == str(ours.rows_deleted)
    assert set(theirs[1]["operationMetrics"]) <= set(theirs[0]["operationMetrics"])


def main() -> None:
    """Many long sequences: `python -m tests.dml.test_delta_spark`."""
    import tempfile

    from tests.sessions import delta_session

    with tempfile.TemporaryDirectory() as folder:
        spark = delta_session(Path(folder))
        for seed in range(1000):
            properties = [{}, VECTORS, {**VECTORS, **FEED}, FEED][seed % 4]
            check_sequence(spark, Path(folder) / str(seed), properties, seed, steps=25)
            sys.stdout.write(f"sequence {seed}: all read the same\n")


if __name__ == "__main__":
    main()

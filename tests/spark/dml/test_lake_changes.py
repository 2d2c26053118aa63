"""DELETE, UPDATE and MERGE through a Lake, with Spark's own conditions and expressions."""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.dml.changed import FEED, VECTORS, documents, ids, new_table, text
from tests.spark.layouts import changed
from variantlake.delta.actions.actions import AddCdcFile
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.reconciliation import read_commit
from variantlake.dml.files.new_files import NewFiles
from variantlake.dml.result import ChangeResult
from variantlake.dml.row_change import RowChange
from variantlake.errors import CommitConflict, InvalidQuery, InvalidValue, UnsupportedFeature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


def days(table: vl.Table) -> dict[int, str]:
    found = table.refresh().scan("id, day").to_arrow().to_pylist()
    return {row["id"]: row["day"] for row in found}


def changes(table: vl.Table, version: int) -> list[tuple[int, str, str]]:
    """The rows of a version's change files."""
    actions = read_commit(table.snapshot.store, commit_path(version))
    files = [each.path for each in actions if isinstance(each, AddCdcFile)]
    rows = [
        row for path in files for row in vl.parquet.read_table(Path(table.uri) / path).to_pylist()
    ]
    return sorted((row["id"], row["_change_type"], row["day"]) for row in rows)


def test_delete_by_any_condition(spark: SparkSession, tmp_path: Path) -> None:
    lake = vl.spark.connect(spark)
    table = new_table(tmp_path / "t")
    name = f"delta.`{table.uri}`"
    answer = lake.sql(f"DELETE FROM {name} AS x WHERE length(x.day) = 2 AND x.event:n::int % 4 = 1")
    assert [tuple(row) for row in answer.collect()] == [(10,)]
    assert ids(table) == [n for n in range(40) if n % 4 != 1]
    done = lake.delete(table.uri, "id IN (SELECT id + 2 FROM range(3))")
    assert (done.rows_deleted, done.files_marked, done.files_written) == (3, 1, 0)
    done = lake.delete(table.uri, "event:user::string = 'u2'")
    gone = {n for n in range(40) if n % 4 == 1} | {2, 3, 4}
    gone |= {n for n in range(40) if n % 5 == 2 and n % 7}
    assert documents(table) == {n: text(n) for n in range(40) if n not in gone}
    assert lake.delete(table.uri, "id < 0", dry_run=True).rows_changed == 0


def test_conditions_of_methods_have_no_name_for_the_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = vl.spark.connect(spark)
    table = vl.Table.create(tmp_path, "x INT, t STRUCT<x: INT>")
    rows = "VALUES (1, named_struct('x', 2)), (2, named_struct('x', 1)), (3, named_struct('x', 3))"
    lake.append(table.uri, spark.sql(f"SELECT col1 AS x, col2 AS t FROM {rows}"))
    assert [row.x for row in lake.table(table.uri).where("t.x = 1").select("x").collect()] == [2]
    lake.delete(table.uri, "t.x = 1")
    lake.update(table.uri, {"x": vl.expr("t.x + 10")}, "t.x + 0 = 2")
    assert sorted(row.x for row in lake.read(table.uri).collect()) == [3, 12]


def test_an_update_sets_paths_of_variants(spark: SparkSession, tmp_path: Path) -> None:
    """What Table.update does, by text and by constants; MERGE sets them too."""
    lake = vl.spark.connect(spark)
    texts = ['{"user":{"name":"a","n":1},"kind":"x"}', '{"kind":null}', None, "{}", '{"user":{}}']
    rows = pa.table({"id": range(5), "event": texts})
    tables = [
        vl.Table.create(tmp_path / name, "id INT, n INT, event VARIANT", properties=VECTORS)
        for name in ("here", "there")
    ]
    for table in tables:
        table.append(rows, json_columns=["event"])
    here, there = tables
    name = f"delta.`{there.uri}`"

    def agree(sets: dict[str, Any], where: str | None = None) -> None:
        here.update(set=sets, where=where)
        lake.update(there.uri, sets, where)
        agreed()

    def agreed() -> None:
        shown = [each.refresh().scan("id, n, event").as_json() for each in tables]
        found = [each.to_arrow().to_pylist() for each in shown]
        assert sorted(found[0], key=lambda row: row["id"]) == sorted(
            found[1], key=lambda row: row["id"]
        )

    agree({"event:user.name": "Ada", "event:seen": True, "n": 7}, "id <> 4")
    agree({"event:user.name": vl.expr("upper(event:kind::string)"), "event:`o'x`": 1.5})
    agree({"event:tags": ["x", {"y": None}], "event:kind": None, "EVENT:`a b`": vl.expr("n + 1")})
    for sets in (
        "event:user = 3, event:then = event:user.name::string",
        "event:kind = NULL",
    ):
        lake.sql(f"UPDATE {name} AS x SET {sets} WHERE id > 0")
        pairs = dict(each.split(" = ") for each in sets.split(", "))
        here.update({key: vl.expr(value) for key, value in pairs.items()}, "id > 0")
        agreed()
    source = pa.table({"id": [1, 2], "v": ["p", None]})
    clause = "WHEN MATCHED THEN UPDATE SET t.event:from.source = s.v, n = 9"
    here.merge(source, "t.id = s.id", clause)
    lake.merge(there.uri, spark.createDataFrame(source.to_pandas()), "t.id = s.id", clause)
    agreed()
    for wrong, message in (
        ({"event:a": 1, "event": None}, "as a whole and at a path"),
        ({"event:a::int": 1}, "no path to assign to"),
        ({"event:a": vl.expr("DEFAULT")}, "no default"),
        ({"n:a": 1}, "n"),
    ):
        with pytest.raises(InvalidQuery, match=message):
            lake.update(there.uri, wrong)


def test_an_update_sets_fields_of_structs(spark: SparkSession, tmp_path: Path) -> None:
    """As Table.update does; a column whose name has a dot is that column."""
    lake = vl.spark.connect(spark)
    table = vl.Table.create(
        tmp_path,
        "`a.b` INT, st STRUCT<a: INT, b: STRUCT<x: DOUBLE, y: INT>>, event VARIANT",
        properties={"delta.columnMapping.mode": "name"},
    )
    table.append([{"a.b": 1, "st": {"a": 1, "b": {"x": 1.0, "y": 2}}}])
    lake.update(table.uri, {"a.b": 5, "st.b.y": 7, "ST.a": vl.expr("length('abc')")})
    row = {"a.b": 5, "st": {"a": 3, "b": {"x": 1.0, "y": 7}}, "event": None}
    assert table.refresh().to_pylist() == [row]
    lake.update(table.uri, {"event:n": 1})
    assert table.refresh().scan("event").as_json().to_pylist() == [{"event": None}]


def files_of(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.is_file())


def test_a_dry_run_counts_the_same_rows_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = vl.spark.connect(spark)
    table = new_table(tmp_path / "t", properties={**VECTORS, **FEED})
    before = files_of(tmp_path)
    touched = (tmp_path / "t").stat().st_mtime_ns
    source = spark.sql("SELECT 3L AS id, 'x' AS day UNION ALL SELECT 99L, 'x'")
    clauses = (
        "WHEN MATCHED THEN UPDATE SET day = s.day",
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    )
    calls: list[Callable[[bool], ChangeResult]] = [
        lambda dry: lake.delete(table.uri, "length(day) = 2 AND id % 4 = 1", dry_run=dry),
        lambda dry: lake.update(table.uri, {"day": "new"}, "length(day) = 2", dry_run=dry),
        lambda dry: lake.merge(table.uri, source, "t.id = s.id", *clauses, dry_run=dry),
    ]
    planned = [call(True) for call in calls]
    assert files_of(tmp_path) == before
    assert (tmp_path / "t").stat().st_mtime_ns == touched  # nor was a file there for a while
    assert all(each.dry_run and each.version is None for each in planned)
    for plan, call in zip(planned, calls, strict=True):
        table.refresh().restore(1)
        done = call(False)
        for name in ("rows_deleted", "rows_updated", "rows_inserted", "files_touched"):
            assert getattr(plan, name) == getattr(done, name), name
    assert [len(lake.history(table, 2)), lake.files(table).num_rows > 0] == [2, True]
    assert lake.scan(table.uri, "id", "id = 7").to_arrow()["id"].to_pylist() == [7]
    assert (
        lake.set_properties(table.uri, {"owner": "me"}).version == lake.history(table, 1)[0].version
    )
    assert lake.analyze(table.uri, dry_run=True).dry_run
    assert lake.open(table.uri).properties["owner"] == "me"
    assert "owner" not in lake.open(table.uri, 0).properties
    at = lake.history(table, 1)[0].time
    assert lake.read(table.uri, timestamp=at).count() == lake.open(table.uri).scan().count()
    with pytest.raises(InvalidValue, match="version is 1 and timestamp"):
        lake.read(table.uri, 1, timestamp=at)


def test_an_unknown_keyword_is_refused_before_any_work(spark: SparkSession, tmp_path: Path) -> None:
    lake: Any = vl.spark.connect(spark)
    table = new_table(tmp_path / "t")
    (tmp_path / "a.ndjson").write_text("{}\n")
    vl.parquet.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    rows = spark.range(1)
    calls: dict[str, tuple[Any, ...]] = {
        "append": (rows,),
        "overwrite": (rows,),
        "stage": (rows,),
        "write_batch": (rows, 0),
        "ingest": (tmp_path / "a.ndjson",),
        "autoload": (tmp_path,),
        "convert": (tmp_path / "a.parquet",),
    }
    takes_options = {
        name
        for name, verb in vars(type(lake)).items()
        if not name.startswith("_")
        and callable(verb)
        and any(each.kind is each.VAR_KEYWORD for each in signature(verb).parameters.values())
    }
    assert takes_options == calls.keys()
    for name, given in calls.items():
        named = {"query": "q"} if name == "write_batch" else {}
        with pytest.raises(InvalidValue, match="moed") as caught:
            getattr(lake, name)(table.uri, *given, **named, moed="strict")
        assert caught.value.hint, name
    for name in ("update", "delete", "merge", "optimize", "vacuum", "clone", "restore"):
        with pytest.raises(TypeError, match="unexpected keyword argument 'moed'"):
            getattr(lake, name)(table.uri, moed="strict")
    assert vl.Table.open(table.uri).version == table.version


@pytest.mark.parametrize("condition", ['a = "b"', 'a = "b" AND length(a) = 1'])
def test_double_quotes_hold_names_where_the_session_says_so(
    spark: SparkSession, tmp_path: Path, condition: str
) -> None:
    lake = vl.spark.connect(spark)
    table = vl.Table.create(tmp_path, "a STRING, b STRING")
    lake.append(table.uri, spark.sql("VALUES ('b', 'z'), ('z', 'z')").toDF("a", "b"))
    with changed(spark, {"spark.sql.ansi.doubleQuotedIdentifiers": "true"}):
        assert lake.delete(table.uri, condition, dry_run=True).rows_deleted == 1
        assert lake.delete(table.uri, condition).rows_deleted == 1
    assert [tuple(row) for row in lake.read(table.uri).collect()] == [("b", "z")]
    assert lake.delete(table.uri, condition).rows_deleted == 1


def test_a_session_that_keeps_escapes_reads_no_text_of_ours_wrongly(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = vl.spark.connect(spark)
    table = vl.Table.create(tmp_path, "event VARIANT, n INT")
    lines = [json.dumps({"s": text}) for text in ("a\\b", "a\\\\b", "it's")]
    table.append(
        pa.table({"event": lines, "n": pa.array([0, 1, 2], pa.int32())}), json_columns=["event"]
    )
    path: Any = vl.path("event", "$.s").string()
    kept = {"spark.sql.parser.escapedStringLiterals": "true"}
    for value in ("a\\b", "it's"):
        assert lake.table(table.uri).where(path == value).count() == 1
        with changed(spark, kept):
            for call in (
                lambda wanted: lake.table(table.uri).where(wanted),
                lambda wanted: lake.delete(table.uri, wanted),
                lambda wanted: lake.update(table.uri, {"n": 7}, wanted),
            ):
                with pytest.raises(UnsupportedFeature, match="escapedStringLiterals"):
                    call(path == value)
    query = f"SELECT n FROM delta.`{table.uri}` WHERE event:s::string = 'a\\b'"
    with changed(spark, kept):
        assert [tuple(row) for row in lake.sql(query).collect()] == [(0,)]


def test_a_session_that_pads_no_chars_deletes_what_it_finds(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = vl.spark.connect(spark)
    table = vl.Table.create(tmp_path, "id INT, c CHAR(5)")
    table.append(pa.table({"id": pa.array([1, 2], pa.int32()), "c": ["ab   ", "cd   "]}))
    with changed(spark, {"spark.sql.legacy.charVarcharAsString": "true"}):
        assert lake.table(table.uri).where("c = 'ab'").count() == 0
        assert lake.delete(table.uri, "c = 'ab'").rows_deleted == 0
        assert lake.delete(table.uri, "c = 'cd   '").rows_deleted == 1
    assert lake.delete(table.uri, "c = 'ab'").rows_deleted == 1


@pytest.mark.parametrize(
    ("column", "value"),
    [("id", "id + 3000000000"), ("small", "small + 300"), ("id", "text"), ("id", "'1' || text")],
)
def test_no_value_is_stored_that_does_not_fit(
    spark: SparkSession, tmp_path: Path, column: str, value: str
) -> None:
    lake = vl.spark.connect(spark)
    table = vl.Table.create(tmp_path, "id INT, small TINYINT, text STRING")
    lake.append(table.uri, spark.sql("SELECT 1 AS id, 2Y AS small, 'x' AS text"))
    merge = f"MERGE INTO delta.`{table.uri}` t USING (SELECT 1 AS k) s ON t.id = s.k "
    with changed(spark, {"spark.sql.ansi.enabled": "false"}):
        with pytest.raises(InvalidValue, match=f"does not fit column '{column}'"):
            lake.update(table.uri, {column: vl.expr(value)})
        with pytest.raises(InvalidValue, match=f"does not fit column '{column}'"):
            lake.sql(f"{merge}WHEN MATCHED THEN UPDATE SET {column} = {value}")
        lake.update(table.uri, {"id": " 12 ", "text": vl.expr("id"), "small": None})
    assert [tuple(row) for row in lake.read(table.uri).collect()] == [(12, None, "1")]


def test_update_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = vl.spark.connect(spark)
    for folder, properties in (("v", {**VECTORS, **FEED}), ("c", {})):
        table = new_table(tmp_path / folder, rows=20, properties=properties)
        answer = lake.sql(
            f"UPDATE delta.`{table.uri}` t SET day = concat('x', t.id), "
            "event = parse_json(concat('{\"n\":', id, '}')) WHERE event:n::int IN (3, 4)"
        )
        assert answer.collect()[0]["num_affected_rows"] == 2
        expected = {n: text(n) for n in range(20)} | {3: '{"n":3}', 4: '{"n":4}'}
        assert documents(table) == expected
        assert days(table)[3] == "x3"
        newest = table.refresh()
        info = newest.history(1)[0].info
        assert (info["operation"], info["operationMetrics"]["numUpdatedRows"]) == ("UPDATE", "2")
        if properties:
            assert changes(newest, newest.version) == [
                (3, "update_postimage", "x3"),
                (3, "update_preimage", "d1"),
                (4, "update_postimage", "x4"),
                (4, "update_preimage", "d0"),
            ]
        done = lake.update(table.uri, {"day": vl.path("event", "$.n").string(), "id": 100}, "id=4")
        assert (done.rows_updated, days(table)[100]) == (1, "4")


def test_merge_all_clauses(spark: SparkSession, tmp_path: Path) -> None:
    lake = vl.spark.connect(spark)
    for folder, properties in (("v", {**VECTORS, **FEED}), ("c", {})):
        table = new_table(tmp_path / folder, rows=20, properties=properties)
        answer = lake.sql(
            f"""MERGE INTO delta.`{table.uri}` AS t
            USING (SELECT id + 15 AS id, concat('s', id) AS day FROM range(8)) AS s
            ON t.event:n::bigint = s.id
            WHEN MATCHED AND t.id = 15 THEN DELETE
            WHEN MATCHED AND t.id < 19 THEN UPDATE SET day = s.day
            WHEN NOT MATCHED AND s.id < 22 THEN INSERT (id, day, event)
                VALUES (s.id, s.day, parse_json(concat('{{"n":', s.id, '}}')))
            WHEN NOT MATCHED BY SOURCE AND t.id = 0 THEN UPDATE SET day = 'none'
            WHEN NOT MATCHED BY SOURCE AND t.id < 3 THEN DELETE"""
        )
        assert answer.collect()[0].asDict() == {
            "num_affected_rows": 9,
            "num_updated_rows": 4,
            "num_deleted_rows": 3,
            "num_inserted_rows": 2,
        }
        expected = {n: text(n) for n in range(20) if n not in (1, 2, 15)}
        expected |= {n: f'{{"n":{n}}}' for n in (20, 21)}
        assert documents(table) == expected
        found = days(table)
        assert {n: found[n] for n in (0, 3, 16, 18, 19, 20)} == {
            0: "none", 3: "d1", 16: "s1", 18: "s3", 19: "d1", 20: "s5",
        }  # fmt: skip
        if properties:
            newest = table.refresh()
            kinds = [kind for _, kind, _ in changes(newest, newest.version)]
            assert {kind: kinds.count(kind) for kind in kinds} == {
                "delete": 3, "insert": 2, "update_preimage": 4, "update_postimage": 4,
            }  # fmt: skip


def test_merge_a_frame(spark: SparkSession, tmp_path: Path) -> None:
    lake = vl.spark.connect(spark)
    table = new_table(tmp_path / "t", rows=10)
    frame = spark.sql(
        "SELECT id, 'new' AS day, parse_json(concat('[', id, ']')) AS event FROM range(8, 12)"
    )
    done = lake.merge(table.uri, frame, "t.id = s.id")
    assert (done.rows_updated, done.rows_inserted, done.rows_deleted) == (2, 2, 0)
    assert documents(table) == {n: text(n) for n in range(8)} | {n: f"[{n}]" for n in range(8, 12)}
    with pytest.raises(InvalidQuery, match="MULTIPLE_SOURCE_ROW"):
        lake.merge(table.uri, frame, "t.id <= s.id")
    done = lake.merge(table.uri, frame, "t.id <= s.id", "WHEN MATCHED THEN DELETE")
    assert (done.rows_deleted, ids(table)) == (12, [])


def test_what_a_table_demands(spark: SparkSession, tmp_path: Path) -> None:
    lake = vl.spark.connect(spark)
    name = f"delta.`{tmp_path / 't'}`"
    spark.sql(
        f"""CREATE TABLE {name} (id BIGINT NOT NULL, twice BIGINT GENERATED ALWAYS AS (id * 2),
            kind STRING DEFAULT 'none') USING delta
            TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported',
                           'delta.enableDeletionVectors' = 'true')"""
    )
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT small CHECK (id < 100)")
    spark.sql(f"INSERT INTO {name} (id, kind) VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    lake.sql(f"UPDATE {name} SET id = id + 10 WHERE kind <> 'a'")
    for statement in (
        f"UPDATE {name} SET id = 100 WHERE id = 1",
        f"UPDATE {name} SET id = NULL WHERE id = 1",
        f"UPDATE {name} SET twice = 5 WHERE id = 1",
    ):
        with pytest.raises(InvalidValue):
            lake.sql(statement)
    lake.sql(
        f"""MERGE INTO {name} t USING (SELECT 11 AS key UNION SELECT 12 UNION SELECT 13) s
            ON t.id = s.key WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (key)
            WHEN NOT MATCHED BY SOURCE THEN UPDATE SET kind = 'left'"""
    )
    rows = spark.sql(f"SELECT id, twice, kind FROM {name} ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(1, 2, "left"), (11, 22, "none")]


def test_another_writer_in_between(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = vl.spark.connect(spark)
    table = new_table(tmp_path / "t")
    name = f"delta.`{table.uri}`"
    commit = RowChange.commit

    def after(other: Callable[[], object], statement: str) -> int:
        """The rows that a statement changes, where another writer is faster than its commit."""

        def late(change: RowChange, files: NewFiles) -> ChangeResult:
            monkeypatch.setattr(RowChange, "commit", commit)
            other()
            return commit(change, files)

        monkeypatch.setattr(RowChange, "commit", late)
        return int(lake.sql(statement).collect()[0][0])

    merge = f"""MERGE INTO {name} t USING (SELECT * FROM range(8, 12)) s ON t.id = s.id
        WHEN MATCHED AND t.id = 9 THEN UPDATE SET day = 'new'
        WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"""
    assert after(lambda: table.delete("id = 12"), merge) == 1
    with pytest.raises(CommitConflict, match="a row of file"):
        after(lambda: table.delete("id = 8"), merge)  # it only matched the row
    # The file of row 9 goes with it: decided anew, the merge inserts both.
    assert after(lambda: table.delete("id = 9"), merge) == 2
    itself = f"DELETE FROM {name} WHERE id = (SELECT max(id) FROM {name})"
    with pytest.raises(CommitConflict):
        after(lambda: table.delete("id = 39"), itself)
    moved = after(table.optimize, f"DELETE FROM {name} WHERE abs(id) = 30")
    assert moved == 1
    assert ids(table) == [n for n in range(39) if n not in (12, 30)]


def test_what_is_not_done_is_said(spark: SparkSession, tmp_path: Path) -> None:
    lake = vl.spark.connect(spark)
    table = new_table(tmp_path / "t", rows=4, properties={"delta.appendOnly": "true"})
    with pytest.raises(UnsupportedFeature, match="append-only"):
        lake.update(table.uri, {"id": 1})
    tracked = new_table(
        tmp_path / "r", rows=4, properties={**VECTORS, "delta.enableRowTracking": "true"}
    )
    assert lake.update(tracked.uri, {"day": "x"}, "id > 1").rows_updated == 2
    assert tracked.refresh().history(1)[0].info["engineInfo"].startswith("variantlake")
    other = new_table(tmp_path / "o", rows=4)
    with pytest.raises(InvalidQuery, match="no column"):
        lake.update(other.uri, {"nope": 1})
    with pytest.raises(InvalidQuery, match="UNRESOLVED") as caught:
        lake.sql(f"DELETE FROM delta.`{other.uri}` WHERE nope = 1")
    assert "__vl_" not in caught.value.message
    with pytest.raises(InvalidQuery, match="not a clause"):
        lake.merge(other.uri, "range(3)", "t.id = s.id", "WHEN MATCHED THEN DROP")
    assert ids(other) == [0, 1, 2, 3]
    assert not list(Path(other.uri).glob("*.bin"))

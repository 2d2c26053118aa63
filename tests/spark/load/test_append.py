"""DataFrames into tables, and all ways of loading side by side with Spark's `parse_json`."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.ingest import bad_input
from tests.ingest.test_bad_rows import LINES, quarantined
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import (
    CommitConflict,
    InvalidJson,
    InvalidSchema,
    InvalidValue,
    TableReplaced,
)
from variantlake.spark.load.ingest import ingest
from variantlake.spark.session.jobs import run_over

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


def append(spark: SparkSession, frame: DataFrame, table: Path, **options: Any) -> Any:
    return vl.spark.connect(spark).append(table, frame, **options)


def json_of(frame: DataFrame, column: str = "event") -> list[str | None]:
    rows = frame.selectExpr("n", f"to_json({column}) AS j").collect()
    return [row.j for row in sorted(rows, key=lambda row: row.n)]


def hostile_documents(seed: int) -> Iterator[str]:
    """Documents of odd keys, numbers, escapes, depth and width; row `n` has the field `n`."""
    rng = random.Random(seed)
    keys = ["a", "A", "", " ", "a.b", "a b", "$", "value", "typed_value", "metadata", "list", "é"]
    keys += ["\U0001f600", "\ufffd", "\u0000", "k" * 300, "`", "'", '"', "[0]", "\\"]
    numbers = ["0", "-0", "-0.0", "1e5", "1E-400", "0.10", "123456789012345678", "1e400"]
    numbers += ["9223372036854775807", "9223372036854775808", "-9223372036854775809"]
    numbers += ["12345678901234567890123456789012345678.9", "0.1234567890123456789", "1.50"]
    numbers += ["1" * 39, "5e-324", "2.5", "3", "-7"]
    texts = ['""', '"\\u0000"', '"\\ud83d\\ude00"', '"é\U0001f600"', '"\\/\\b\\f\\n\\r\\t\\"\\\\"']
    texts += ['"' + "x" * 5000 + '"', '"2024-01-01"', '"1"', "true", "false", "null"]

    def value(depth: int) -> str:
        kind = rng.random()
        if depth == 0 or kind < 0.5:
            return rng.choice(numbers + texts)
        if kind < 0.65:
            return "[" + ", ".join(value(depth - 1) for _ in range(rng.randint(0, 4))) + "]"
        chosen = rng.sample(keys, rng.randint(0, 5))
        return "{" + ",".join(f"{json.dumps(k)}:{value(depth - 1)}" for k in chosen) + "}"

    for n in range(250):
        fields = [f'"{name}": {value(3)}' for name in ("x", "y", "z") if rng.random() < 0.7]
        # Most rows share what becomes columns, so that values meet columns they do not fit.
        fields += [
            f'"tags": ["a", {rng.choice(texts)}]',
            f'"num": {rng.choice(numbers)}',
            f'"obj": {{"s": {rng.choice(texts)}}}',
        ]
        yield f'{{"n": {n}, {", ".join(fields)}}}'
    yield '{"n": 250, "deep": ' + "[" * 900 + "]" * 900 + "}"
    yield '{"n": 251, "wide": {' + ", ".join(f'"k{i}": {i}' for i in range(1000)) + "}}"


@pytest.mark.parametrize("arrays", [False, True], ids=["whole-arrays", "shredded-arrays"])
def test_every_way_of_loading_gives_what_parse_json_gives(
    spark: SparkSession, tmp_path: Path, arrays: bool
) -> None:
    texts = list(hostile_documents(seed=5 + arrays))
    source = tmp_path / "a.ndjson"
    source.write_text("\n".join(texts))
    (tmp_path / "a.json").write_text("[\n" + ",\n".join(texts) + "]")
    strings = spark.createDataFrame([(text,) for text in texts], "event STRING").repartition(3)
    tables = {name: tmp_path / name for name in ("ingest", "array", "local", "text", "variant")}
    for name in ("local", "text", "variant"):
        vl.Table.create(tables[name], "event VARIANT")
    ingest(spark, source, tables["ingest"], arrays=arrays)
    ingest(spark, vl.json_array(tmp_path / "a.json"), tables["array"], arrays=arrays)
    vl.Table.open(tables["local"]).append(vl.ndjson(source), arrays=arrays)
    append(spark, strings, tables["text"], json_columns=["event"], arrays=arrays)
    parsed = strings.selectExpr("parse_json(event) AS event")
    append(spark, parsed, tables["variant"], arrays=arrays, order_by="$.n")
    expected = json_of(parsed.selectExpr("event:n::int AS n", "event"))
    shreddings = set()
    for name, table in tables.items():
        snapshot = Snapshot.read(table)
        shreddings.add(snapshot.properties["variantlake.shredding.event"])
        # Numbers of 39 digits and more are double, of which Spark and we write the same text.
        found = spark.read.format("delta").load(str(table)).selectExpr("event:n::int AS n", "event")
        assert json_of(found) == expected, name
    assert all("num" in ddl for ddl in shreddings)
    assert any("ARRAY<" in ddl for ddl in shreddings) == arrays


def test_all_columns_are_written_with_partitions_and_nulls(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    vl.Table.create(
        table,
        "n BIGINT NOT NULL, event VARIANT, other VARIANT, at TIMESTAMP, price DECIMAL(10, 2), "
        "tags ARRAY<STRING>, info STRUCT<a: INT, b: STRING>, m MAP<STRING, INT>, note STRING, "
        "day DATE, kind STRING",
        partition_by=["day", "kind"],
    )
    frame = spark.sql(
        """SELECT cast(id AS int) AS n, concat('{"a": ', id, '}') AS event,
             IF(id % 3 = 0, NULL, parse_json(concat('[', id, ']'))) AS other,
             timestamp_micros(1700000000123456 + id) AS at, cast(id / 4 AS decimal(8, 2)) AS price,
             array('x', cast(id AS string)) AS tags,
             named_struct('a', cast(id AS int), 'b', 'y') AS info, map('k', cast(id AS int)) AS m,
             date_add(DATE '2026-01-01', cast(id % 2 AS int)) AS day,
             IF(id % 4 = 3, NULL, 'a b/ü%') AS kind
           FROM range(0, 40, 1, 2)"""
    )
    result = append(spark, frame, table, json_columns=["event"])
    assert (result.version, result.rows_written, result.rows_bad) == (1, 40, 0)
    found = spark.read.format("delta").load(str(table))
    columns = ["n", "at", "price", "tags", "info", "m", "note", "day", "kind"]
    texts = ["to_json(event) AS event", "to_json(other) AS other"]
    wanted = frame.selectExpr("*", "CAST(NULL AS STRING) AS note").selectExpr(
        *columns, "replace(event, ' ', '') AS event", "to_json(other) AS other"
    )
    key = lambda row: row.n
    mine = sorted(found.selectExpr(*columns, *texts).collect(), key=key)
    theirs = sorted(wanted.collect(), key=key)
    assert [row.asDict() for row in mine] == [row.asDict() for row in theirs]
    assert mine[5].price == Decimal("1.25")
    assert found.where("day = DATE '2026-01-02' AND kind IS NULL").count() == 20 // 2
    snapshot = Snapshot.read(table)
    assert {tuple(add.partition_values.values()) for add in snapshot.add_files()} == {
        ("2026-01-01", "a b/ü%"),
        ("2026-01-02", "a b/ü%"),
        ("2026-01-02", None),
    }


def test_batches_go_by_bytes_and_the_users_settings_stay(spark: SparkSession) -> None:
    names = [f"spark.sql.execution.arrow.max{what}PerBatch" for what in ("Records", "Bytes")]
    before = [spark.conf.get(name) for name in names]
    frame = spark.range(0, 300_000, 1, 1).selectExpr("id", "parse_json(string(id)) AS event")
    sizes = lambda batches: [b" ".join(str(b.num_rows).encode() for b in batches)]
    (found,) = run_over(spark, frame, sizes, description="batches")
    rows = list(map(int, found.split()))
    assert sum(rows) == 300_000
    assert 20_000 < max(rows) <= 100_000
    assert [spark.conf.get(name) for name in names] == before


def test_columns_left_out_get_their_default(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    spark.sql(
        f"CREATE TABLE delta.`{table}` (event VARIANT, k INT DEFAULT 6 * 7, s STRING) USING DELTA "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    append(spark, spark.sql("SELECT parse_json('1') AS event"), table)
    append(spark, spark.sql("SELECT parse_json('1') AS event, 7 AS k"), table)
    rows = spark.read.format("delta").load(str(table)).select("k", "s").collect()
    assert sorted(tuple(row) for row in rows) == [(7, None), (42, None)]


def test_bad_documents_of_a_frame_in_every_mode(spark: SparkSession, tmp_path: Path) -> None:
    bad = '{"a": 1, "a": 2}'
    frame = spark.createDataFrame(
        [(i, bad if i % 5 == 2 else "1") for i in range(20)], "n INT, event STRING"
    )
    frame = frame.repartition(2)
    for name in ("strict", "quarantine", "null"):
        vl.Table.create(tmp_path / name, "n INT, event VARIANT")
    with pytest.raises(InvalidJson, match="column 'event'") as caught:
        append(spark, frame, tmp_path / "strict", json_columns=["event"])
    assert caught.value.row is not None
    assert [path.name for path in (tmp_path / "strict").iterdir()] == ["_delta_log"]
    result = append(
        spark, frame, tmp_path / "quarantine", json_columns=["event"], mode="quarantine"
    )
    assert (result.rows_written, result.rows_bad) == (16, 4)
    records = quarantined(result.quarantine)
    assert sorted(record["values"]["n"] for record in records) == [2, 7, 12, 17]
    assert {record["values"]["event"] for record in records} == {bad}
    result = append(spark, frame, tmp_path / "null", json_columns=["event"], mode="null")
    assert (result.rows_written, result.rows_bad) == (20, 4)
    found = json_of(spark.read.format("delta").load(str(tmp_path / "null")))
    assert found == [None if i % 5 == 2 else "1" for i in range(20)]


def test_bad_lines_of_files_in_every_mode(spark: SparkSession, tmp_path: Path) -> None:
    lines = [b"\xef\xbb\xbf1", *LINES.values(), b"", b"2"]
    (tmp_path / "a").write_bytes(b"\r\n".join(lines))
    result = ingest(spark, tmp_path / "a", tmp_path / "t", mode="quarantine", load_id="x")
    assert (result.rows_written, result.rows_bad) == (2, len(LINES))
    records = quarantined(result.quarantine)
    assert [record["line"] for record in records] == list(range(2, 2 + len(LINES)))
    result = ingest(spark, tmp_path / "a", tmp_path / "u", mode="null")
    assert (result.rows_written, result.rows_bad) == (2 + len(LINES), len(LINES))
    found = spark.read.format("delta").load(str(tmp_path / "u"))
    assert found.where("event IS NULL").count() == len(LINES)
    assert ingest(spark, tmp_path / "a", tmp_path / "t", load_id="x").already_loaded
    # No reader takes the quarantine for data.
    assert spark.read.format("delta").load(str(tmp_path / "t")).count() == 2


def test_an_append_with_an_id_is_made_once(spark: SparkSession, tmp_path: Path) -> None:
    vl.Table.create(tmp_path / "t", "event VARIANT")
    frame = spark.sql("SELECT parse_json('1') AS event")
    first = append(spark, frame, tmp_path / "t", load_id="x")
    again = append(spark, frame, tmp_path / "t", load_id="x")
    assert (first.version, again.version, again.already_loaded) == (1, 1, True)
    empty = append(spark, frame.limit(0), tmp_path / "t")
    assert (empty.version, empty.rows_written) == (1, 0)


def test_what_does_not_fit_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    vl.Table.create(table, "id INT NOT NULL, event VARIANT")
    before = bad_input.listing(table)
    cases: dict[str, tuple[type[Exception], str]] = {
        "SELECT 1 AS id, 'x' AS event": (InvalidJson, "expected a value"),
        "SELECT 1 AS id, 2 AS nope": (InvalidSchema, "no column 'nope'"),
        "SELECT parse_json('1') AS event": (InvalidSchema, "'id', which is NOT NULL"),
        "SELECT CAST(NULL AS INT) AS id": (InvalidValue, "'id' is NOT NULL"),
        "SELECT 1.5 AS id": (InvalidSchema, "'id' is integer"),
    }
    for query, (error, message) in cases.items():
        with pytest.raises(error, match=message):
            append(spark, spark.sql(query), table)
    assert bad_input.listing(table) == before


def test_frames_and_documents_take_the_place_of_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake, path = vl.spark.connect(spark), tmp_path / "t"
    table = vl.Table.create(path, "event VARIANT, n INT, day STRING", partition_by=["day"])

    def frame(*pairs: tuple[int, str]) -> DataFrame:
        return spark.createDataFrame(pairs, "n INT, day STRING").selectExpr(
            "parse_json(concat('{\"a\":', n, '}')) AS event", "*"
        )

    def numbers() -> list[int]:
        return sorted(row.n for row in lake.read(path).select("n").collect())

    lake.append(path, frame((1, "a"), (2, "b"), (3, "c")))
    lake.overwrite(path, frame((4, "b")), where="day > 'a' AND day < 'c'")
    assert numbers() == [1, 3, 4]
    lake.overwrite(path, frame((5, "c")), partitions=True)
    assert numbers() == [1, 4, 5]
    with pytest.raises(InvalidValue, match="outside the overwritten partitions"):
        lake.overwrite(path, frame((6, "c")), where={"day": "a"})
    lake.overwrite(path, frame((7, "x")).limit(0))
    assert numbers() == []
    assert table.refresh().version == 4
    (tmp_path / "a.ndjson").write_text('{"a": 1}\n')
    plain = tmp_path / "plain"
    for _ in range(2):
        lake.overwrite(plain, vl.ndjson(tmp_path / "a.ndjson"))
    assert lake.read(plain).count() == 1


def test_what_was_read_of_a_table_does_not_replace_what_came_later(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake, path = vl.spark.connect(spark), tmp_path / "a table"
    table = vl.Table.create(path, "event VARIANT, n INT", shredding={"event": "a BIGINT"})
    other = vl.Table.create(tmp_path / "other", "event VARIANT, n INT")

    def append(*numbers: int) -> None:
        table.append(
            pa.table({"event": ['{"a": 1}'] * len(numbers), "n": pa.array(numbers, pa.int32())}),
            json_columns=["event"],
        )

    def numbers() -> list[int]:
        return sorted(row.n for row in lake.read(path).select("n").collect())

    append(1, 2, 3)
    at = f"delta.`{path}`"
    ways: list[Callable[[], DataFrame]] = [
        lambda: lake.read(path),
        lambda: lake.table(path).where("event:a::int = 1"),
        lambda: lake.sql(f"SELECT b.event, b.n FROM {at} a JOIN {at} b USING (n)"),
        lambda: lake.sql("SELECT * FROM t", tables={"t": path}).where("n > 1").limit(9),
        lambda: lake.read(path).cache(),
        lambda: lake.read(other.uri).union(lake.read(path)),
    ]
    frames = [way() for way in ways]
    lake.read(path).where("n < 3").createOrReplaceTempView("kept")
    frames.append(spark.table("kept"))
    append(4)
    for frame in frames:
        with pytest.raises(CommitConflict, match="added file"):
            lake.overwrite(path, frame)
    assert numbers() == [1, 2, 3, 4]
    # Another table, an older version that was asked for, and what the caller says.
    lake.overwrite(other.uri, lake.read(path))
    lake.overwrite(path, frames[0], expected_version=table.refresh().version)
    assert numbers() == [1, 2, 3]
    lake.overwrite(path, lake.read(path, 1).where("n = 1"))
    assert numbers() == [1]
    lake.overwrite(path, lake.read(path).selectExpr("event", "n + 1 AS n"))
    assert numbers() == [2]
    frame = lake.read(path)
    shutil.rmtree(path)
    table = vl.Table.create(path, "event VARIANT, n INT")
    with pytest.raises(TableReplaced):
        lake.overwrite(path, frame.limit(0))
    lake.overwrite(path, lake.read(path))
    assert numbers() == []


@pytest.mark.parametrize("way", ["scanned", "computed"])
def test_columns_may_have_any_name_that_a_table_can(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    lake = vl.spark.connect(spark)
    names = ["a.b", "a`b", "`", "é", "ID", "c0"]
    texts = ", ".join(f"'{n}' AS `{name.replace('`', '``')}`" for n, name in enumerate(names))
    spark.sql(f"SELECT {texts}").write.parquet(str(tmp_path / "source"))
    frame = spark.read.parquet(str(tmp_path / "source"))
    assert frame.columns == names
    table = tmp_path / "table"
    ddl = ", ".join(f"`{name.replace('`', '``')}` STRING" for name in reversed(names[1:]))
    vl.Table.create(table, f"`a.b` VARIANT, {ddl}")
    lake.append(table, frame.distinct() if way == "computed" else frame, json_columns=["a.b"])
    (found,) = (
        lake.read(table)
        .selectExpr("to_json(`a.b`)", *(f"`{n.replace('`', '``')}`" for n in names[1:]))
        .collect()
    )
    assert list(found) == ["0", "1", "2", "3", "4", "5"]

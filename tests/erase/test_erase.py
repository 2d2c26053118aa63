"""Erase: what is gone from the table, and, after a purge, from every byte below its folder."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pytest

import variantlake as vl
from tests.dml.changed import FEED, VECTORS, documents, ids, new_table, text
from tests.erase.remains import holders, readings
from variantlake.errors import InvalidQuery, MalformedVariant, UnsupportedFeature
from variantlake.parquet.write.file_writer import FileWriter
from variantlake.shredding.layout import VARIANT_TYPE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOTH = pytest.mark.parametrize("properties", [VECTORS, {}], ids=["vectors", "rewritten"])
SECRET = "zyxwv-secret"  # noqa: S105 - a value to search for


@BOTH
def test_rows_go_from_the_table_and_from_its_files(tmp_path: Path, properties: Any) -> None:
    table = new_table(tmp_path / "t", properties=properties)
    table.delete("id = 8")
    gone = [number for number in range(40) if number % 5 == 3 and number % 7]
    planned = table.refresh().erase("event:user::string = 'u3'", dry_run=True)
    # Row 8 is of this user too: it was deleted, and where a vector hides it, it is still there.
    hidden = 1 if properties else 0
    assert (planned.rows_erased, planned.rows_hidden) == (len(gone) - 1, hidden)
    before = table.refresh().version
    done = table.erase(vl.path("event", "$.user").string() == "u3")
    assert (done.rows_erased, done.rows_hidden, done.version) == (len(gone) - 1, hidden, before + 1)
    assert (planned.dry_run, done.purged) == (True, False)
    kept = [number for number in range(40) if number not in gone]
    assert documents(table) == {number: text(number) for number in kept}
    newest = table.refresh()
    assert newest.history(1)[0].operation == "DELETE"
    for path in newest.files()["path"].to_pylist():
        assert b"u3" not in b"".join(readings(tmp_path / "t" / str(path)))
    again = table.erase("event:user::string = 'u3'")
    assert (again.rows_erased, again.rows_hidden, again.version) == (0, 0, done.version)


def test_the_result_says_when_nothing_is_left(tmp_path: Path) -> None:
    table = new_table(
        tmp_path / "t",
        properties={
            "delta.deletedFileRetentionDuration": "interval 2 days",
            "delta.enableExpiredLogCleanup": "false",
        },
    )
    done = table.erase("id = 1")
    assert done.vacuum_after is not None
    left = done.vacuum_after - dt.datetime.now(dt.UTC)
    assert dt.timedelta(days=1) < left <= dt.timedelta(days=2)
    assert done.log_until is None
    assert orjson.dumps(done.to_dict())


def secret_table(folder: Path, properties: dict[str, str]) -> vl.Table:
    """Rows of two users; the secret is in values, keys, residuals and a plain column."""
    table = vl.Table.create(
        folder,
        "id BIGINT, note STRING, event VARIANT",
        properties=properties,
        shredding={"event": "user STRING, n BIGINT"},
    )
    for start in (0, 10):
        values = [
            vl.Variant.of(
                {"user": SECRET, "n": n, f"{SECRET}-key": [{"deep": SECRET}]}
                if n % 5 == 2
                else {"user": f"u{n}", "n": n, "rest": [None]}
            )
            for n in range(start, start + 10)
        ]
        columns: list[Any] = [
            pa.array(range(start, start + 10), pa.int64()),
            pa.array([SECRET if n % 5 == 2 else "plain" for n in range(start, start + 10)]),
            pa.array([{"metadata": v.metadata, "value": v.value} for v in values], VARIANT_TYPE),
        ]
        table.append(pa.table(columns, names=["id", "note", "event"]))
    return table.refresh()


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {**FEED, **VECTORS, "delta.checkpointInterval": "3"},
        {**FEED, "delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"},
    ],
    ids=["plain", "vectors", "checkpoints"],
)
def test_after_a_purge_no_byte_is_left(tmp_path: Path, properties: dict[str, str]) -> None:
    table = secret_table(tmp_path / "t", properties)
    table.delete("id = 7")  # hidden, if there are vectors
    table.delete(f"note = '{SECRET}' AND id = 17")  # which the log says
    bad = tmp_path / "bad.ndjson"
    bad.write_text(f'{{"user":"ok","n":1}}\n{{"{SECRET}\n')
    table.refresh().append(vl.ndjson(bad), mode="quarantine")
    assert len(holders(tmp_path / "t", SECRET)) > 4
    done = table.refresh().erase(f"event:user::string = '{SECRET}'", purge=True)
    assert done.purged
    assert done.rows_erased == 2
    assert done.files_purged > 0
    assert done.log_files_purged > 0
    assert holders(tmp_path / "t", SECRET) == set()
    reopened = vl.Table.open(tmp_path / "t")
    kept = sorted(n for n in range(20) if n % 5 != 2)
    found = reopened.scan("id", where="id IS NOT NULL").to_arrow()["id"].to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, kept))
    reopened.delete("id = 0")
    assert len(reopened.refresh().history()) == 2


@pytest.mark.spark
def test_delta_spark_reads_and_writes_on_after_a_purge(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=10, properties=VECTORS)
    table.erase("id < 3", purge=True)
    frame = spark.read.format("delta").load(table.uri)
    assert sorted(row.id for row in frame.select("id").collect()) == list(range(3, 10))
    spark.sql(f"DELETE FROM delta.`{table.uri}` WHERE id = 4")
    assert ids(table) == [3, 5, 6, 7, 8, 9]


def test_old_files_and_the_log_go_with_time(tmp_path: Path) -> None:
    """Without a purge: a vacuum takes the files, and the log is said to hold bounds until then."""
    table = secret_table(tmp_path / "t", dict(FEED))
    table.erase(f"event:user::string = '{SECRET}'")
    newest = vl.Table.open(tmp_path / "t")
    commit = tmp_path / "t" / "_delta_log" / f"{newest.version:020d}.json"
    assert not any(SECRET.encode() in each for each in readings(commit))
    newest.vacuum(0, force=True)
    left = holders(tmp_path / "t", SECRET)
    assert all(name.startswith("_delta_log/") for name in left)


def test_the_change_feed_tells_of_it_until_a_vacuum(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=10, properties={**FEED, **VECTORS})
    table.delete("id = 3")
    done = table.refresh().erase("id IN (3, 4)")
    assert (done.rows_erased, done.rows_hidden) == (1, 1)
    rows = table.refresh().changes(done.version).to_arrow().to_pylist()
    assert [(row["id"], row["_change_type"]) for row in rows] == [(4, "delete")]
    # A file with hidden rows alone is written anew, which changes no row.
    table.delete("id = 5")
    hidden = table.refresh().erase("id = 5")
    assert (hidden.rows_erased, hidden.rows_hidden) == (0, 1)
    assert table.refresh().changes(hidden.version).count() == 0
    assert ids(table) == [0, 1, 2, 6, 7, 8, 9]


def test_whole_partitions_go(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", partition_by="day")
    done = table.erase("day = 'd1'", purge=True)
    assert (done.rows_erased, done.files_rewritten) == (20, 0)
    assert not list((tmp_path / "t").glob("day=d1"))
    assert ids(table) == list(range(0, 40, 2))


def test_what_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=4)
    nothing: Any = None
    for where in ("", "  ", nothing):
        with pytest.raises(InvalidQuery, match="needs a condition"):
            table.erase(where)
    only = new_table(tmp_path / "only", rows=4, properties={"delta.appendOnly": "true"})
    with pytest.raises(UnsupportedFeature, match="append-only"):
        only.erase("id = 1")
    nested = vl.Table.create(tmp_path / "nested", "id INT, s STRUCT<v: VARIANT>")
    with pytest.raises(UnsupportedFeature, match="inside of a struct"):
        nested.erase("id = 1")


def test_an_error_names_the_row_of_the_file(tmp_path: Path) -> None:
    good = vl.parse_json('{"a": 1}')
    rows = [{"metadata": good.metadata, "value": good.value} for _ in range(20)]
    rows[7]["value"] = b"\x02\x05\x00"  # an object that is cut off
    table = pa.table({"id": pa.array(range(20), pa.int64()), "event": pa.array(rows, VARIANT_TYPE)})
    with FileWriter(tmp_path / "f.parquet", table.schema, variant_columns=[("event",)]) as writer:
        writer.write(table.combine_chunks().to_batches()[0])
    vl.convert(tmp_path, tmp_path)
    with pytest.raises(MalformedVariant) as caught:
        vl.Table.open(tmp_path).erase("id = 1")
    assert (caught.value.row, caught.value.file) == (7, str(tmp_path / "f.parquet"))
    # Nobody knows which keys a row uses that does not read, wherever the erased rows are.
    with pytest.raises(MalformedVariant) as caught:
        vl.Table.open(tmp_path).erase("id = 99")
    assert caught.value.row == 7
    assert "delete the row first" in caught.value.hint
    vl.Table.open(tmp_path).delete("id = 7")
    assert vl.Table.open(tmp_path).erase("id = 1").rows_erased == 1


def test_rows_that_stay_keep_their_numbers(tmp_path: Path) -> None:
    columns = "id BIGINT GENERATED ALWAYS AS IDENTITY, n INT"
    table = vl.Table.create(tmp_path, columns)
    table.append([{"n": n} for n in range(4)])
    table.erase("n = 1")
    table.append([{"n": 9}])
    found = sorted((row["id"], row["n"]) for row in table.refresh().to_pylist())
    assert found == [(1, 0), (3, 2), (4, 3), (5, 9)]

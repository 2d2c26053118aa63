"""Tables whose newest checkpoint is damaged: a query has the rows, or the error, of Delta Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException

import variantlake as vl
from tests.spark.layouts import PUSHDOWN, changed
from tests.spark.rule.door import accelerated
from tests.spark.rule.test_rule import FILES, OFF, files_read, make, rows_of
from variantlake.delta.log import snapshot_state
from variantlake.delta.log.checkpoint_reader import read_checkpoint
from variantlake.spark.lake import Lake, connect
from variantlake.spark.rule.accelerate import planner_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("interpreted", "rule"),
    pytest.mark.filterwarnings("ignore:a query is left as Spark runs it"),
]

V2 = {"delta.checkpointPolicy": "v2", "delta.feature.v2Checkpoint": "supported"}
Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def rule(spark: SparkSession) -> Iterator[None]:
    with changed(spark, {PUSHDOWN: "false"}), accelerated(spark):
        yield


@pytest.fixture
def lake(spark: SparkSession) -> Lake:
    return connect(spark)


@pytest.fixture
def reasons(spark: SparkSession) -> Iterator[dict[str, None]]:
    """Why queries are left to Spark; empty after the test, whose reasons others may not expect."""
    planner = planner_of(spark)
    assert planner is not None
    planner._warned.clear()
    yield planner._warned
    planner._warned.clear()


def query(spark: SparkSession, log: Path) -> DataFrame:
    frame = spark.read.format("delta").load(str(log.parent))
    return frame.where("event:n::int > 25").select("id")


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.collect())


def error_of(frame: DataFrame) -> str:
    with pytest.raises((Py4JJavaError, IllegalArgumentException)) as caught:
        frame.collect()
    error = caught.value
    text = error.java_exception.toString() if isinstance(error, Py4JJavaError) else error
    return str(text).partition("\n")[0]


def damaged(folder: Path, damage: Damage, *, v2: bool = False) -> Path:
    """The log of a table with a commit after its damaged checkpoint, and all commits before it."""
    table = vl.Table.open(make(folder, properties=V2 if v2 else {}))
    table.checkpoint()
    table.append(rows_of(FILES), json_columns=["event"])
    log = folder / "_delta_log"
    damage(log)
    return log


def checkpoint_of(log: Path) -> Path:
    (found,) = log.glob("*.checkpoint.*parquet")
    return found


def sidecar_of(log: Path) -> Path:
    (found,) = (log / "_sidecars").iterdir()
    return found


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def drop_sizes(file: Path) -> None:
    table = pq.read_table(file)
    add: Any = table["add"].combine_chunks()
    fields = [each for each in add.type if each.name != "size"]
    columns = [add.field(each.name) for each in fields]
    without = pa.StructArray.from_arrays(columns, fields=fields, mask=add.is_null())
    pq.write_table(table.set_column(table.column_names.index("add"), "add", without), file)


def drop_adds(log: Path) -> None:
    """Without checksums, nothing else tells that files are missing."""
    file = sidecar_of(log)
    pq.write_table(pq.read_table(file).drop_columns(["add"]), file)
    for checksum in log.glob("*.crc"):
        checksum.unlink()


def lose_a_part(log: Path) -> None:
    file = checkpoint_of(log)
    file.rename(str(file).replace("parquet", f"{1:010d}.{2:010d}.parquet"))


def truncate_without_checksums(log: Path) -> None:
    """Delta Spark then reads the checkpoint at once, and takes an older one if it cannot."""
    truncate(checkpoint_of(log))
    for file in log.glob("*.crc"):
        file.unlink()


FAIL: dict[str, tuple[bool, Damage]] = {
    "truncated": (False, lambda log: truncate(checkpoint_of(log))),
    "no sidecar": (True, lambda log: sidecar_of(log).unlink()),
    "sidecar truncated": (True, lambda log: truncate(sidecar_of(log))),
    "sidecar without sizes": (True, lambda log: drop_sizes(sidecar_of(log))),
    "sidecar without adds": (True, drop_adds),
}


@pytest.mark.rule(41)
@pytest.mark.parametrize("damage", FAIL)
def test_a_query_that_fails_without_the_rule_fails_with_it(
    spark: SparkSession, lake: Lake, reasons: dict[str, None], tmp_path: Path, damage: str
) -> None:
    v2, done = FAIL[damage]
    log = damaged(tmp_path / "t", done, v2=v2)
    with changed(spark, OFF):
        error = error_of(query(spark, log))
    assert not reasons
    assert error_of(query(spark, log)) == error
    (reason,) = reasons
    assert reason.startswith("MalformedLog: ")
    assert str(log) in reason
    assert vl.Table.open(log.parent).version == FILES + 1
    assert ids(lake.table(str(log.parent)).where("id > 47").select("id")) == [48, 49]


def empty_json(log: Path) -> None:
    checkpoint_of(log).rename(checkpoint_of(log).with_suffix(".json")).write_bytes(b"")


PASS: dict[str, tuple[bool, Damage]] = {
    "empty": (False, lambda log: checkpoint_of(log).write_bytes(b"")),
    "empty JSON": (True, empty_json),
    "a part of two": (False, lose_a_part),
    "hint to none": (
        False,
        lambda log: (log / "_last_checkpoint").write_text('{"version":77,"size":9}'),
    ),
    "truncated, no checksums": (False, truncate_without_checksums),
}


@pytest.mark.parametrize("damage", PASS)
def test_what_delta_spark_passes_over_leaves_the_query_accelerated(
    spark: SparkSession, lake: Lake, reasons: dict[str, None], tmp_path: Path, damage: str
) -> None:
    v2, done = PASS[damage]
    log = damaged(tmp_path / "t", done, v2=v2)
    with changed(spark, OFF):
        rows = ids(query(spark, log))
    assert ids(query(spark, log)) == rows
    assert len(rows) == 21
    assert files_read(lake, query(spark, log)) == 3
    assert not reasons


@pytest.mark.rule(41)
def test_a_checkpoint_that_comes_while_a_session_reads_its_table_is_checked_once(
    spark: SparkSession,
    lake: Lake,
    reasons: dict[str, None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = vl.Table.open(make(tmp_path / "t"))
    log = tmp_path / "t/_delta_log"
    assert len(ids(query(spark, log))) == 12
    table.checkpoint()
    table.append(rows_of(FILES), json_columns=["event"])
    usual = mock.Mock(wraps=read_checkpoint)
    monkeypatch.setattr(snapshot_state, "read_checkpoint", usual)
    for _ in range(2):
        assert files_read(lake, query(spark, log)) == 3
    assert usual.call_count == 1
    table.refresh().checkpoint()
    table.refresh().append(rows_of(FILES), json_columns=["event"])
    truncate(max(log.glob("*.checkpoint.parquet")))
    assert "00005.checkpoint.parquet" in error_of(query(spark, log))
    assert len(reasons) == 1

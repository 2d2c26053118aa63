"""Delta tables of other projects: their rows where the suite has them, else rows or an error.

What is refused stands here by name, with the reason.
"""

from __future__ import annotations

import datetime as dt
import io
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests import corpora
from tests.suites.tables import geometries
from variantlake.delta.schema.table_schema import StructType
from variantlake.errors import VariantLakeError

GOLDEN = corpora.place("suites/kernel-rs-golden")
KERNEL = corpora.place("suites/kernel-rs-data")
DELTA_RS = corpora.place("suites/delta-rs-data")
DAT = corpora.place("suites/dat-2022-12-01")
UNITY = corpora.place("suites/unitycatalog-tables")

WITH_ROWS = sorted(
    expected.parent
    for expected in GOLDEN.glob("golden_data/*/expected")
    if any(expected.rglob("*.parquet"))
)
LARGE = ("300k-add-files-100-col-partitioned",)
"""Not for reading rows: a log for planning."""

MUST_FAIL = {
    "deltalog-invalid-protocol-version": "reader version 99",
    "deltalog-state-reconstruction-without-protocol": "no commit .* has a protocol action",
    "deltalog-state-reconstruction-without-metadata": "no commit .* has a metaData action",
    "deltalog-state-reconstruction-from-checkpoint-missing-protocol": "has no protocol action",
    "deltalog-state-reconstruction-from-checkpoint-missing-metadata": "has no metaData action",
    "no-delta-log-folder": "not a Delta table",
    "versions-not-contiguous": "the log has a hole: version 1 is missing",
}

REFUSED = {
    # Files that the suite does not have.
    "canonicalized-paths-normal-a": "no such file",
    "canonicalized-paths-normal-b": "no such file",
    "canonicalized-paths-special-a": "no such file",
    "canonicalized-paths-special-b": "no such file",
    "checkpoint": "no such file",
    "delete-re-add-same-file-different-transactions": "no such file",
    "log-replay-special-characters-b": "no such file",
    "deltalog-commit-info": "no such file",
    "update-deleted-directory": "no such file",
    "checkpoint_with_partitions": "no such file",
    "checkpoints": "no such file",
    "checkpoints_vacuumed": "no such file",
    "latest_not_checkpointed": "no such file",
    "spark-variant-stable-feature-checkpoint": "no such file",
    "table-with-domain-metadata": "no such file",
    "with_checkpoint_no_last_checkpoint": "no such file",
    "app-txn-with-last-updated": "no such file",
    "table_a": "no such file",
    "table_b": "no such file",
    "table_g": "no such file",
    # Logs that are wrong on purpose, or have no version 0.
    "data-reader-absolute-paths-escaped-chars": "has a metaData action",
    "crc-full": "disagree about the number of files",
    "crc-malformed": "not a Delta table",
    "table_c": "the log has a hole: version 12 is missing",
    # What the protocol lets nobody read without knowing it.
    "simple_table_features": "reader version 5",
    "catalog_managed_0": "catalogManaged",
    **dict.fromkeys(("table_d", "table_e", "table_f", "table_h", "table_i"), "catalogOwned"),
}
PACKED = sorted(KERNEL.rglob("*.tar.zst"))
"""The same tables as those of the golden folders."""


def _tables(*roots: Path) -> list[Path]:
    found = {log.parent for root in roots for log in root.rglob("_delta_log")}
    return sorted(each for each in found if each.name not in LARGE)


def _name(table: Path) -> str:
    return table.parent.name if table.name == "delta" else table.name


def _sorted(rows: pa.Table) -> list[str]:
    """The rows in one order, as text: instants in UTC, and floats by every digit."""
    return sorted(map(repr, rows.to_pylist()))


def _instants(rows: pa.Table) -> pa.Table:
    """Timestamps as table readers give them: in microseconds, instants in UTC."""
    fields = []
    for field in rows.schema:
        kind: Any = field.type
        is_time = pa.types.is_timestamp(kind)
        fields.append(field.with_type(pa.timestamp("us", kind.tz)) if is_time else field)
    return rows.cast(pa.schema(fields))


@pytest.mark.corpus(GOLDEN)
def test_the_golden_tables_are_there() -> None:
    assert len(WITH_ROWS) >= 71


@pytest.mark.corpus(GOLDEN)
@pytest.mark.parametrize("folder", WITH_ROWS, ids=lambda folder: folder.name)
def test_golden_tables_have_the_rows_of_their_suite(folder: Path) -> None:
    expected = [pq.read_table(each) for each in sorted((folder / "expected").rglob("*.parquet"))]
    wanted = _instants(pa.concat_tables(expected, promote_options="permissive"))
    found = vl.Table.open(folder / "delta").scan(wanted.column_names).to_arrow()
    assert set(wanted.column_names) == set(vl.Table.open(folder / "delta").schema.to_arrow().names)
    if folder.name == "data-reader-partition-values":
        # The suite's own answer was written in another time zone.
        found, wanted = (each.drop_columns(["as_timestamp"]) for each in (found, wanted))
    if len(wanted) > 10_000:
        order: Any = [(name, "ascending") for name in wanted.column_names]
        assert found.cast(wanted.schema).sort_by(order).equals(wanted.sort_by(order))
    else:
        assert _sorted(found) == _sorted(wanted)


@pytest.mark.corpus(GOLDEN)
@pytest.mark.parametrize("name", MUST_FAIL)
def test_golden_tables_that_must_fail(name: str) -> None:
    with pytest.raises(VariantLakeError, match=MUST_FAIL[name]):
        vl.Table.open(GOLDEN / "golden_data" / name / "delta").scan().to_arrow()


@pytest.mark.corpus(GOLDEN, KERNEL, DELTA_RS, UNITY)
@pytest.mark.parametrize("table", _tables(GOLDEN, KERNEL, DELTA_RS, UNITY), ids=_name)
def test_tables_of_others_have_rows_or_an_error_by_name(table: Path) -> None:
    name = _name(table)
    refused = REFUSED.get(name) or MUST_FAIL.get(name)
    if refused:
        with pytest.raises(VariantLakeError, match=refused):
            vl.Table.open(table).scan().to_arrow()
        return
    opened = vl.Table.open(table)
    rows = opened.scan().to_arrow()
    for line in opened.history():
        assert line.version <= opened.version
    counted = opened.sql("SELECT count(*) AS n FROM t").to_arrow()["n"].to_pylist()
    assert counted == [rows.num_rows]


@pytest.mark.corpus(KERNEL, GOLDEN)
def test_packed_tables_are_those_that_lie_open(tmp_path: Path) -> None:
    assert len(PACKED) > 100
    for archive in PACKED:
        name = archive.name.removesuffix(".tar.zst")
        is_large = archive.stat().st_size > 20_000
        if is_large or REFUSED.get(name) or MUST_FAIL.get(name):
            continue
        with pa.CompressedInputStream(str(archive), "zstd") as unpacked:
            content = io.BytesIO(unpacked.read())
        with tarfile.open(fileobj=content) as files:
            files.extractall(tmp_path / name, filter="data")
        for log in (tmp_path / name).rglob("_delta_log"):
            place = log.parent.relative_to(tmp_path / name)
            twins = [GOLDEN / part / place for part in ("golden_data", "data")]
            (twin,) = (each for each in twins if each.exists())
            assert vl.Table.open(log.parent).digest() == vl.Table.open(twin).digest(), place


def test_a_table_of_geometries_and_intervals_is_read_as_its_files_hold_them(tmp_path: Path) -> None:
    """RFCs "Geospatial types" and "Interval Types"."""
    table = vl.Table.open(geometries(tmp_path))
    rows = table.scan().to_arrow()
    assert rows.schema.types == [pa.int32(), pa.binary(), pa.int32(), pa.duration("us")]
    assert rows.to_pylist()[1] == {"id": 2, "shape": None, "months": None, "span": None}
    assert rows["span"].to_pylist()[0] == dt.timedelta(days=1, microseconds=22)
    assert table.scan(["id"], where="shape IS NULL").to_arrow().to_pylist() == [{"id": 2}]
    assert StructType.from_json(table.schema.to_json()) == table.schema
    with pytest.raises(VariantLakeError, match=r"feature geospatial, .*cannot be written"):
        table.append(pa.table({"id": pa.array([3], pa.int32())}))


DAT_VERSIONS = sorted(
    path for path in DAT.glob("out/reader_tests/generated/*/expected/v*") if path.is_dir()
)


@pytest.mark.corpus(DAT)
@pytest.mark.parametrize("folder", DAT_VERSIONS, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_every_version_of_the_acceptance_tables(folder: Path) -> None:
    version = int(folder.name[1:])
    table = vl.Table.open(folder.parents[1] / "delta", version)
    (facts,) = folder.glob("*.json")
    stated = vl.parse_json(facts.read_text()).to_python()
    protocol = table.snapshot.protocol
    assert stated["min_reader_version"] == protocol.min_reader_version
    assert stated["min_writer_version"] == protocol.min_writer_version
    assert stated["version"] == version
    expected = [pq.read_table(each) for each in sorted(folder.rglob("*.parquet"))]
    wanted = _instants(pa.concat_tables(expected, promote_options="permissive"))
    assert _sorted(table.scan(wanted.column_names).to_arrow()) == _sorted(wanted)


FEEDS = [table for table in _tables(GOLDEN, DELTA_RS) if table.name.startswith(("cdf-", "cdc_"))]
ODD_FEEDS = {
    # Changes that their writer made up, without the rows or with types of its own.
    "cdf-table-simple": None,
    "cdf-table-update-ops": None,
    "cdf-table-with-dv": "of version 5: not Z85: a group is above 32 bits",
    # The feed was switched on later.
    "cdf-column-mapping-id-mode": "version 0 recorded no changes",
    "cdf-column-mapping-name-mode": "version 0 recorded no changes",
    "cdf-column-mapping-name-mode-3-7": "version 0 recorded no changes",
}


@pytest.mark.corpus(GOLDEN, DELTA_RS)
@pytest.mark.parametrize("table", FEEDS, ids=_name)
def test_the_feed_of_a_table_adds_up_to_its_rows(table: Path) -> None:
    opened = vl.Table.open(table)
    refused = ODD_FEEDS.get(table.name)
    if refused:
        with pytest.raises(VariantLakeError, match=refused):
            opened.changes(0).to_arrow()
        return
    kinds = opened.changes(0).to_arrow()["_change_type"].to_pylist()
    signs = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
    if table.name not in ODD_FEEDS:
        assert sum(signs[str(kind)] for kind in kinds) == opened.scan().to_arrow().num_rows

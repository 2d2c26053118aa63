"""Shredding a table anew, and not at all: which files are rewritten, and that no row changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.delta.protocol.cluster_paths import PROPERTY
from variantlake.delta.protocol.known_properties import SCHEMA_PREFIX, SHREDDING_PROPERTY
from variantlake.delta.stats.file_facts import FactsReader
from variantlake.errors import InvalidSchema, InvalidValue, UnsupportedFeature, VariantLakeError
from variantlake.shredding.ddl import format_ddl

OLD = [{"kind": "a", "ts": n, "odd": {"x": n}} for n in range(60)]
NEW = [{"kind": "a", "ts": str(n), "price": n % 10} for n in range(60)]


def append(table: vl.Table, docs: list[dict[str, Any]]) -> None:
    numbers = pa.array(range(len(docs)), pa.int32())
    rows = pa.table({"event": [json.dumps(doc) for doc in docs], "n": numbers})
    table.append(rows, json_columns=["event"])


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    """One file of old documents, then two of new ones, in the layout of the first."""
    table = vl.Table.create(tmp_path / "t", "event VARIANT, n INT")
    for docs in (OLD, NEW, NEW):
        append(table, docs)
    return table.refresh()


def documents(table: vl.Table) -> list[str]:
    events = table.scan("event").to_arrow()["event"].combine_chunks()
    return sorted(str(each.as_py()) for each in vl.to_json(events))


def layouts(table: vl.Table) -> list[str]:
    reader = FactsReader(table.schema)
    known = [reader.read_facts(add) for add in table.snapshot.add_files()]
    return sorted(format_ddl(each.variants[0].schema) for each in known if each is not None)


def test_only_files_in_which_a_value_moves_are_rewritten(table: vl.Table) -> None:
    before = documents(table)
    ddl = "kind STRING, odd STRUCT<x: BIGINT>, price BIGINT, ts BIGINT"
    planned = table.reshred(ddl, dry_run=True)
    assert (planned.files_checked, planned.files_read, planned.changed) == (3, 2, True)
    assert table.refresh().version == table.version
    done = table.reshred({"event": ddl})
    assert (done.files_read, done.rows_rewritten, len(done.versions)) == (2, 120, 2)
    after = table.refresh()
    assert after.properties[SCHEMA_PREFIX + "event"] == ddl
    assert layouts(after) == [
        "kind STRING, odd STRUCT<x: BIGINT>, price BIGINT, ts BIGINT",
        "kind STRING, odd STRUCT<x: BIGINT>, price BIGINT, ts BIGINT",
        "kind STRING, odd STRUCT<x: BIGINT>, ts BIGINT",
    ]
    assert documents(after) == before
    again = after.reshred(ddl)
    assert (again.files_read, again.versions, again.changed) == (0, (), False)
    assert documents(vl.Table.open(table.uri, table.version)) == before


def test_the_schema_is_learned_over_the_whole_table(table: vl.Table) -> None:
    before = documents(table)
    done = table.reshred()
    assert done.shredding["event"] == "kind STRING, odd STRUCT<x: BIGINT>, price BIGINT, ts STRING"
    after = table.refresh()
    assert documents(after) == before
    assert after.drift().columns[0].new_columns == ()
    assert after.reshred().versions == ()


def test_of_an_empty_table_nothing_is_learned(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT, other VARIANT")
    done = table.reshred()
    assert (done.changed, done.versions, table.refresh().version) == (False, (), 0)


def test_a_path_that_orders_the_rows_stays_a_column(table: vl.Table) -> None:
    table.set_clustering("event:ts::bigint")
    with pytest.raises(InvalidSchema, match="cannot cluster by 'event:ts::bigint'"):
        table.reshred("kind STRING")
    done = table.refresh().reshred(dry_run=True)
    assert "ts BIGINT" in done.shredding["event"]


def test_a_path_that_orders_no_row_stays_a_column(tmp_path: Path) -> None:
    table = vl.Table.create(
        tmp_path / "t", "event VARIANT, n BIGINT", cluster_by="event:ts::bigint"
    )
    append(table, [{"kind": "a", "z": n} for n in range(20)])
    done = table.refresh().reshred()
    assert done.shredding["event"] == "kind STRING, ts BIGINT, z BIGINT"
    assert table.refresh().properties[PROPERTY] == "event:ts::bigint"
    untyped = vl.Table.create(tmp_path / "u", "event VARIANT, n BIGINT", cluster_by="event:ts")
    append(untyped, [{"kind": "a"}])
    assert untyped.refresh().reshred().shredding["event"] == "kind STRING"


def test_where_limits_the_files(table: vl.Table) -> None:
    done = table.reshred("kind STRING, ts STRING", where="event:odd.x::bigint >= 0")
    assert done.files_read < 3


def test_unshred_leaves_no_shredded_file(table: vl.Table) -> None:
    before = documents(table)
    table.set_clustering("event:kind, n")
    assert table.unshred(dry_run=True).files_read == 3
    done = table.unshred()
    assert (done.files_read, len(done.versions)) == (3, 2)
    after = table.refresh()
    assert layouts(after) == ["VARIANT"] * 3
    assert documents(after) == before
    assert after.properties[SHREDDING_PROPERTY] == "false"
    assert PROPERTY not in after.properties
    assert SCHEMA_PREFIX + "event" not in after.properties
    append(after, NEW)
    assert layouts(after.refresh()) == ["VARIANT"] * 4
    assert after.refresh().unshred().versions == ()
    with pytest.raises(UnsupportedFeature, match="forbids shredding"):
        after.reshred()


@pytest.mark.parametrize(
    ("shredding", "error", "sentence"),
    [
        ("kind NUMBER", InvalidSchema, "NUMBER"),
        ({"other": "kind STRING"}, InvalidSchema, "no VARIANT column 'other'"),
        ({"n": "kind STRING"}, InvalidSchema, "no VARIANT column 'n'"),
        (5, InvalidValue, "shredding is 5"),
        ("a STRING, A STRING", VariantLakeError, "A"),
    ],
)
def test_bad_schemas_are_named(
    table: vl.Table, shredding: Any, error: type[VariantLakeError], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        table.reshred(shredding)
    assert table.refresh().version == table.version


def test_a_table_without_variants_is_refused(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "n INT")
    with pytest.raises(InvalidSchema, match="no VARIANT column"):
        table.reshred()

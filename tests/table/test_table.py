"""The façade: create, open, append in this process, history."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.cli.tables.cat import batches
from variantlake.cli.terminal.rows import json_lines
from variantlake.delta.protocol.clustering import clustering_columns
from variantlake.encoding.variant import Variant
from variantlake.errors import (
    CommitConflict,
    InvalidJson,
    InvalidSchema,
    InvalidValue,
    MalformedVariant,
    MissingSource,
    NotADeltaTable,
    TableReplaced,
    UnsupportedFeature,
)
from variantlake.shredding.layout import VARIANT_TYPE


def rows(table: Path) -> list[dict[str, Any]]:
    """Every row as JSON, in the order of the log."""
    return [json.loads(line) for batch in batches(str(table)) for line in json_lines(batch)]


def variants(*texts: str | None) -> pa.Array[Any]:
    values = [None if text is None else vl.parse_json(text) for text in texts]
    return pa.array(
        [None if v is None else {"metadata": v.metadata, "value": v.value} for v in values],
        VARIANT_TYPE,
    )


def files(table: Path) -> list[str]:
    return sorted(path.name for path in table.glob("*") if path.name != "_delta_log")


def test_a_schema_may_be_one_of_arrow(tmp_path: Path) -> None:
    fields: list[pa.Field[Any]] = [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("day", pa.date32()),
        pa.field("event", pa.struct([("metadata", pa.binary()), ("value", pa.binary())])),
    ]
    made = vl.Table.create(tmp_path / "t", pa.schema(fields), partition_by="day")
    text = vl.Table.create(tmp_path / "u", "id BIGINT NOT NULL, day DATE, event VARIANT")
    assert made.schema == text.schema
    names = {"id": "BIGINT NOT NULL", "day": "DATE", "event": "VARIANT"}
    assert vl.Table.create(tmp_path / "w", names).schema == text.schema
    assert text.schema.names == list(names)
    with pytest.raises(InvalidValue, match="a list is not a schema"):
        vl.Table.create(tmp_path / "v", [("id", "BIGINT")])  # type: ignore[arg-type]
    with pytest.raises(InvalidSchema):
        vl.Table.create(tmp_path / "v", pa.schema([("m", pa.month_day_nano_interval())]))


def test_a_table_that_is_there_is_opened_on_request(tmp_path: Path) -> None:
    made = vl.Table.create(tmp_path, "id INT")
    made.append(pa.table({"id": pa.array([1], pa.int32())}))
    with pytest.raises(CommitConflict):
        vl.Table.create(tmp_path, "id INT")
    made.add_column("note STRING")
    again = vl.Table.create(tmp_path, "ID int", exist_ok=True)
    assert (again.version, again.schema) == (2, made.schema)


def test_a_table_has_a_column_of_documents_by_default(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t")
    table.append({"n": 1})
    assert table.to_pylist() == [{"event": {"n": 1}}]


@pytest.mark.parametrize(
    ("schema", "partition_by", "said"),
    [
        ("id INT, event VARIANT, other STRING", "id", "the column 'other' is missing"),
        ("id BIGINT, event STRING", "id", "'id' is INT, not BIGINT; 'event' is VARIANT, not"),
        ("id INT NOT NULL, event VARIANT", "id", "'id' may be NULL"),
        ("id INT, event VARIANT", [], "it is partitioned by id"),
    ],
)
def test_exist_ok_takes_no_other_table(
    tmp_path: Path, schema: str, partition_by: Any, said: str
) -> None:
    made = vl.Table.create(tmp_path, "id INT, event VARIANT", partition_by="id")
    with pytest.raises(InvalidSchema, match=said):
        vl.Table.create(tmp_path, schema, exist_ok=True, partition_by=partition_by)
    assert made.refresh().version == 0


def test_a_table_is_created_opened_and_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = vl.Table.create(path, "event VARIANT", shredding={"event": "a BIGINT"})
    assert (table.version, table.files().num_rows) == (0, 0)
    assert table.properties["variantlake.shredding.event"] == "a BIGINT"
    (tmp_path / "a.ndjson").write_text('{"a": 1}\n{"a": 2}\n')
    assert table.append(vl.ndjson(tmp_path / "a.ndjson")).version == 1
    assert table.append(vl.ndjson(tmp_path / "a.ndjson")).version == 2
    assert table.version == 2
    assert vl.Table.open(path, version=1).files().num_rows == 1
    assert [entry.operation for entry in table.refresh().history()] == [
        "WRITE",
        "WRITE",
        "CREATE TABLE",
    ]
    assert rows(path) == [{"event": {"a": 1}}, {"event": {"a": 2}}] * 2
    assert table.protocol.min_reader_version == 3


def test_creating_twice_and_opening_nothing_are_refused(tmp_path: Path) -> None:
    vl.Table.create(tmp_path / "t", "event VARIANT")
    with pytest.raises(CommitConflict):
        vl.Table.create(tmp_path / "t", "event VARIANT")
    with pytest.raises(NotADeltaTable):
        vl.Table.open(tmp_path / "nowhere")
    with pytest.raises(MissingSource):
        vl.Table.open(tmp_path / "t", version=7)
    with pytest.raises(InvalidSchema, match="'day' is not a VARIANT"):
        vl.Table.create(tmp_path / "u", "event VARIANT, day DATE", shredding={"day": "a INT"})


def test_arrow_rows_are_appended_with_all_columns(tmp_path: Path) -> None:
    path = tmp_path / "t"
    vl.Table.create(path, "id BIGINT NOT NULL, event VARIANT, at TIMESTAMP, note STRING")
    at = dt.datetime(2026, 11, 21, 9, 30, tzinfo=dt.UTC)
    data = pa.table(
        {
            "event": variants('{"a": 1}', None, '{"a": "x", "b": [1.5]}', "null"),
            "id": pa.array([1, 2, 3, 4], pa.int32()),
            "at": pa.array([at, None, at, at], pa.timestamp("ms", "Europe/Berlin")),
        }
    )
    table = vl.Table.open(path)
    assert table.append(data).version == 1
    assert rows(path) == [
        {"id": 1, "event": {"a": 1}, "at": str(at), "note": None},
        {"id": 2, "event": None, "at": None, "note": None},
        {"id": 3, "event": {"a": "x", "b": [1.5]}, "at": str(at), "note": None},
        {"id": 4, "event": None, "at": str(at), "note": None},
    ]
    assert table.append(data.slice(0, 1).to_reader()).version == 2
    assert table.append(data.to_batches()[0]).version == 3


def test_json_text_becomes_a_variant(tmp_path: Path) -> None:
    path = tmp_path / "t"
    vl.Table.create(path, "event VARIANT")
    text = pa.array(['skipped: {"', '{"a": 1}', None, "[1, 2]", '"é"'])[1:]
    vl.Table.open(path).append(pa.table({"event": text}), json_columns=["event"])
    assert [row["event"] for row in rows(path)] == [{"a": 1}, None, [1, 2], "é"]


@pytest.mark.parametrize(
    ("given", "columns"), [(None, ()), ((), ()), ("day", ("day",)), (["n", "day"], ("n", "day"))]
)
def test_partition_and_cluster_columns_are_one_name_or_several_or_none(
    tmp_path: Path, given: str | list[str] | None, columns: tuple[str, ...]
) -> None:
    schema = "event VARIANT, n INT, day DATE"
    split = vl.Table.create(tmp_path / "split", schema, partition_by=given)
    assert split.snapshot.partition_columns == columns
    clustered = vl.Table.create(tmp_path / "clustered", schema, cluster_by=given)
    found = clustering_columns(clustered.snapshot.domains)
    assert found == tuple((name,) for name in columns)


def test_rows_are_divided_by_partition(tmp_path: Path) -> None:
    path = tmp_path / "t"
    vl.Table.create(path, "event VARIANT, day DATE, kind STRING", partition_by=["day", "kind"])
    day = dt.date(2026, 11, 21)
    data = pa.table(
        {
            "event": variants("1", "2", "3", "4"),
            "day": [day, None, day, day],
            "kind": ["a b", "x", "", "a b"],
        }
    )
    table = vl.Table.open(path)
    table.append(data)
    adds = list(table.refresh().snapshot.add_files())
    assert [dict(add.partition_values) for add in adds] == [
        {"day": "2026-11-21", "kind": "a b"},
        {"day": None, "kind": "x"},
        {"day": "2026-11-21", "kind": None},
    ]
    found = {row["event"]: (row["day"], row["kind"]) for row in rows(path)}
    text = day.isoformat()
    assert found == {1: (text, "a b"), 2: (None, "x"), 3: (text, None), 4: (text, "a b")}


def test_no_rows_make_no_version(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    assert table.append(pa.table({"event": variants()})).version == 0


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "unknown column": ({"nope": [1]}, InvalidSchema, "no column 'nope'"),
    "no required column": ({"event": variants("1")}, InvalidSchema, "'id', which is NOT NULL"),
    "null in a required column": (
        {"id": pa.array([1, None], pa.int64())},
        InvalidValue,
        "'id' is NOT NULL",
    ),
    "a value that does not fit": ({"id": [1.5]}, InvalidSchema, "'id' is long"),
    "another type": ({"id": [1], "event": ["x"]}, InvalidJson, "column 'event'"),
    "a broken Variant": (
        {
            "id": [1, 2],
            "event": pa.array(
                [
                    {"metadata": b"\x01\x00\x00", "value": b"\x00"},
                    {"metadata": b"\x01\x00\x00", "value": b"\x02\x01"},
                ],
                VARIANT_TYPE,
            ),
        },
        MalformedVariant,
        "column 'event'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arrow_data_commit_nothing(tmp_path: Path, name: str) -> None:
    columns, error, text = BAD[name]
    table = vl.Table.create(tmp_path / "t", "id BIGINT NOT NULL, event VARIANT")
    with pytest.raises(error, match=text):
        table.append(pa.table(columns))
    assert table.refresh().version == 0
    assert files(tmp_path / "t") == []


def test_bad_json_text_is_reported_with_its_row(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    data = pa.chunked_array([["1", "2"], ["3", '{"a": 1, "a": 2}']])
    with pytest.raises(InvalidJson, match="column 'event'") as caught:
        table.append(pa.table({"event": data}), json_columns=["event"])
    assert caught.value.row == 3
    assert files(tmp_path / "t") == []


def test_what_documents_cannot_fill_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    data = vl.ndjson(tmp_path / "a")
    table = vl.Table.create(tmp_path / "two", "a VARIANT, b VARIANT")
    with pytest.raises(InvalidSchema, match="2 VARIANT columns"):
        table.append(data)
    assert table.append(data, column="b").version == 1
    table = vl.Table.create(tmp_path / "required", "event VARIANT, id INT NOT NULL")
    with pytest.raises(InvalidSchema, match="'id' is NOT NULL"):
        table.append(data)
    table = vl.Table.create(tmp_path / "split", "event VARIANT, d DATE", partition_by=["d"])
    with pytest.raises(InvalidSchema, match="'d' is a partition column"):
        table.append(data)
    table = vl.Table.create(tmp_path / "nested", "s STRUCT<v: VARIANT>")
    with pytest.raises(InvalidSchema, match="0 VARIANT columns"):
        table.append(data)


def test_an_unshredded_table_gets_unshredded_files(tmp_path: Path) -> None:
    path = tmp_path / "t"
    properties = {"delta.enableVariantShredding": "false"}
    table = vl.Table.create(path, "event VARIANT", properties=properties)
    table.append(pa.table({"event": variants('{"a": 1}')}))
    (tmp_path / "a").write_text('{"a": 2}\n')
    table.append(vl.ndjson(tmp_path / "a"))
    for file in path.glob("*.parquet"):
        (view,) = vl.parquet.inspect_file(file).variants
        assert view.ddl == "VARIANT"
    assert rows(path) == [{"event": {"a": 1}}, {"event": {"a": 2}}]


def test_every_public_name_is_there() -> None:
    for name in vl.__all__:
        assert getattr(vl, name) is not None
    assert set(vl.__all__) <= set(dir(vl))
    assert vl.Variant is Variant
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = vl.nope


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda table: table.restore(True), "version is True"),
        (lambda table: table.restore(timestamp="noon"), "timestamp 'noon' is not a time"),
        (lambda table: type(table).open(table.uri, timestamp=dt.date(2026, 1, 1)), "a date"),
        (lambda table: table.changes("0"), "version is '0', a str"),
        (lambda table: table.changes(0, 0.5), "version is 0.5"),
        (lambda table: table.changes(starting_timestamp=0), "timestamp is 0, an int"),
        (lambda table: table.check_rewrite("a"), "version is 'a'"),
        (lambda table: table.drift(5), "no VARIANT column 5"),
        (lambda table: table.reshred({"event": 5}), "the shredding of 'event' is 5"),
        (lambda table: table.set_clustering(5), "clustering path is 5"),
        (lambda table: table.update(None), "a dict of values"),
        (lambda table: table.update({5: 1}), "named by text, not by an int"),
    ],
)
def test_arguments_of_another_type_are_refused_in_a_sentence(
    tmp_path: Path, call: Callable[[Any], object], said: str
) -> None:
    table = vl.Table.create(
        tmp_path / "t", "event VARIANT", properties={"delta.enableVariantShredding": "true"}
    )
    with pytest.raises(vl.VariantLakeError, match=said):
        call(table)
    assert table.refresh().version == 0


def test_a_table_replaces_the_one_that_is_there(tmp_path: Path) -> None:
    old = vl.Table.create(tmp_path / "t", "a INT, p STRING", partition_by="p", description="old")
    old.append([{"a": 1, "p": "x"}])
    new = vl.Table.create(tmp_path / "t", "b VARIANT", replace=True, properties={"x.y": "1"})
    assert (new.version, new.scan().count(), new.properties["x.y"]) == (2, 0, "1")
    assert new.snapshot.partition_columns == ()
    assert new.snapshot.metadata.description is None
    entry = new.history(1)[0]
    assert entry.operation == "CREATE OR REPLACE TABLE"
    new.append([{"b": {"k": 1}}])
    assert new.sql("SELECT b:k::int AS k FROM t").to_arrow().to_pylist() == [{"k": 1}]
    first = vl.Table.open(tmp_path / "t", version=1)
    assert first.scan().to_arrow().to_pylist() == [{"a": 1, "p": "x"}]
    with pytest.raises(TableReplaced):
        old.append([{"a": 1, "p": "x"}])
    made = vl.Table.create(tmp_path / "u", "b INT", replace=True)
    assert made.history(1)[0].operation == "CREATE OR REPLACE TABLE"
    with pytest.raises(InvalidValue, match="exist_ok"):
        vl.Table.create(tmp_path / "u", "b INT", replace=True, exist_ok=True)


def test_an_append_only_table_is_not_replaced(tmp_path: Path) -> None:
    properties = {"delta.appendOnly": "true"}
    vl.Table.create(tmp_path, "a INT", properties=properties).append([{"a": 1}])
    with pytest.raises(UnsupportedFeature, match="append-only"):
        vl.Table.create(tmp_path, "b INT", replace=True)


def test_a_table_gives_all_its_rows_as_a_frame_does(tmp_path: Path) -> None:
    t = vl.Table.create(tmp_path / "t", "id BIGINT, event VARIANT")
    t.append([{"id": n, "event": {"n": n}} for n in range(20)])
    wanted = t.scan().to_pylist()
    assert t.count() == 20 == pa.table(t).num_rows == t.to_arrow().num_rows
    assert t.head(3).num_rows == 3
    assert t.to_pylist() == list(t) == wanted
    assert t.to_pandas().to_dict("records") == wanted
    assert t.to_polars()["id"].to_list() == list(range(20))
    assert vl.Table.open(t, version=0).count() == 0


def test_a_notebook_shows_results_findings_profiles_and_explanations(tmp_path: Path) -> None:
    t = vl.Table.create(tmp_path / "t", "event VARIANT")
    done = t.append([{"k": "<b>", "n": 1}])._repr_html_()
    assert "<td>rows_written</td><td>1</td>" in done
    assert "<th>what helps</th>" in t.health()._repr_html_()
    profile = vl.profile(t)._repr_html_()
    assert "<td>$.k</td>" in profile
    assert "<b>" not in profile
    assert "&lt;b&gt;" in profile
    plan = t.scan("event:k::string AS k").explain()
    assert plan._repr_html_().startswith("<pre>files: 1 of 1 read")
    assert "<td>event</td><td>variant</td>" in t._repr_html_()
    assert "<th>k</th></tr><tr><td>&lt;b&gt;</td>" in t.scan("event:k::string AS k")._repr_html_()


def test_calling_the_class_names_open(tmp_path: Path) -> None:
    with pytest.raises(vl.InvalidValue, match=r"vl\.Table\.open"):
        vl.Table(str(tmp_path))  # type: ignore[arg-type]


def test_a_schema_shows_its_columns(tmp_path: Path) -> None:
    t = vl.Table.create(tmp_path / "t", "id BIGINT NOT NULL, event VARIANT")
    assert repr(t.schema) == "StructType(id long NOT NULL, event variant)"


def test_what_lists_give_becomes_json(tmp_path: Path) -> None:
    """Lines of the history and tags: a time is text that `Table.open` takes."""
    table = vl.Table.create(tmp_path / "t", "n INT")
    table.append([{"n": 1}], commit_properties={"job": "nightly"})
    table.tag("audit")
    line, tag = table.history()[1].to_dict(), table.tags()[0].to_dict()
    assert json.loads(json.dumps([line, tag])) == [line, tag]
    assert (line["version"], line["operation"], tag["name"], tag["version"]) == (
        1,
        "WRITE",
        "audit",
        1,
    )
    assert vl.Table.open(tmp_path / "t", timestamp=line["timestamp"]).version == 1
    assert tag["created"].endswith("+00:00")

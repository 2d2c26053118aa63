"""`append` takes what people have: rows of Python, files, bytes, and tables of other libraries."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import gzip
import io
import json
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variantlake as vl
from variantlake.errors import InvalidValue
from variantlake.ingest import inputs
from variantlake.parquet import variants, write_table

DOCUMENTS: list[Any] = [{"kind": "a", "n": 1}, {"kind": "b", "tags": ["x", None], "in": {"y": 2.5}}]
LINES = "".join(json.dumps(each) + "\n" for each in DOCUMENTS)


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    return vl.Table.create(tmp_path / "t", "id BIGINT, event VARIANT")


def events(table: vl.Table) -> list[Any]:
    texts = vl.to_json(table.scan("event").to_arrow()["event"]).to_pylist()
    return [None if text is None else json.loads(text) for text in texts]


def test_rows_have_variants_in_structs_arrays_and_maps(tmp_path: Path) -> None:
    table = vl.Table.create(
        tmp_path, "s STRUCT<x: INT, v: VARIANT>, l ARRAY<VARIANT>, m MAP<STRING, VARIANT>"
    )
    first = {"s": {"x": 1, "v": {"k": [1, None]}}, "l": [1, "a", None], "m": {"a": {"b": 2.5}}}
    second = {"s": {"x": 2, "v": None}, "l": None, "m": {}}
    table.append([first, second, {"s": None, "l": [], "m": None}])
    found = table.scan().to_pylist()
    assert found[0] == {**first, "m": [("a", {"b": 2.5})]} or found[0] == first
    assert (found[1]["s"], found[1]["l"], found[2]["l"]) == (second["s"], None, [])
    with pytest.raises(InvalidValue, match="column 's'") as error:
        table.append([first, {"s": {"x": 1, "v": object()}}])
    assert error.value.row == 1
    with pytest.raises(InvalidValue, match="column 's'"):
        table.append([{"s": 3}])


@dataclasses.dataclass
class Inner:
    n: int


@dataclasses.dataclass
class Event:
    kind: str
    inner: Inner


class Model:
    """As Pydantic's models are."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self) -> dict[str, Any]:
        return self.fields


Pair = collections.namedtuple("Pair", ["id", "event"])  # noqa: PYI024 - as people write them


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (DOCUMENTS, DOCUMENTS),
        (DOCUMENTS[0], DOCUMENTS[:1]),
        ((each for each in DOCUMENTS), DOCUMENTS),
        ([Event("a", Inner(3))], [{"kind": "a", "inner": {"n": 3}}]),
        (Event("a", Inner(3)), [{"kind": "a", "inner": {"n": 3}}]),
        ([Model(kind="a")], [{"kind": "a"}]),
        ([{"inner": [Inner(1), Model(x=2)]}], [{"inner": [{"n": 1}, {"x": 2}]}]),
        ([{}, {"a": 1}], [{}, {"a": 1}]),
    ],
    ids=["list", "dict", "generator", "dataclasses", "dataclass", "models", "inside", "empty"],
)
def test_rows_that_are_no_columns_are_documents(
    table: vl.Table, rows: Any, expected: list[Any]
) -> None:
    done = table.append(rows)
    assert done.rows_written == len(expected)
    assert events(table) == expected


def test_rows_go_by_the_names_of_columns(tmp_path: Path) -> None:
    table = vl.Table.create(
        tmp_path / "t",
        "id BIGINT, event VARIANT, day DATE, price DECIMAL(9, 2), tags ARRAY<STRING>",
        partition_by="day",
    )
    day = dt.date(2026, 1, 31)
    table.append(
        [
            {"id": 1, "event": {"at": dt.datetime(2026, 1, 31, tzinfo=dt.UTC)}, "day": day},
            {"id": 2, "price": Decimal("1.25"), "tags": ["x"]},
            {"event": [1, "two"]},
        ]
    )
    table.append([Pair(4, vl.Variant.of(7)), Pair(5, None)])
    rows = table.scan("id, day, price, tags").to_arrow().to_pylist()
    assert {row["id"]: row["day"] for row in rows} == dict.fromkeys([2, 4, 5, None]) | {1: day}
    assert {row["id"]: row["price"] for row in rows}[2] == Decimal("1.25")
    at = table.scan("event:at::timestamp AS at", where="id = 1").to_arrow()["at"].to_pylist()
    assert at == [dt.datetime(2026, 1, 31, tzinfo=dt.UTC)]
    assert [each for each in events(table) if not isinstance(each, dict)].count(None) == 2


def test_column_says_that_rows_are_documents(table: vl.Table) -> None:
    table.append([{"id": 7, "more": 1}], column="event")
    assert events(table) == [{"id": 7, "more": 1}]
    with pytest.raises(vl.InvalidValue, match="'more'") as caught:
        vl.Table.open(table).append([{"id": 7}] * inputs._ROWS + [{"id": 7, "more": 1}])
    assert caught.value.row == inputs._ROWS
    assert "column=" in caught.value.hint


@pytest.mark.parametrize("rows", [[{"ID": 7}], [{"id": 7, "Event": {}}, {"EVENT": {}}]])
def test_names_of_columns_have_no_case(
    table: vl.Table, rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Delta Spark's appends, and in MERGE."""
    monkeypatch.setattr(inputs, "_ROWS", 1)
    assert table.append(rows).rows_written == len(rows)
    assert table.scan("id").to_pylist()[0] == {"id": 7}
    table.append(pa.Table.from_pylist([{"ID": 8}]))
    table.append(pl.DataFrame({"iD": [9], "EVENT": ["{}"]}), json_columns="Event")
    table.append(pa.Table.from_pylist([{"Id": 10, "note": 1}]).to_batches(), merge_schema=True)
    assert {row["id"] for row in table.scan("id").to_pylist()} >= {7, 8, 9, 10}
    assert table.schema.names[-1] == "note"
    assert table.append(rows, column="event").rows_written == len(rows)


def test_columns_that_differ_in_case_alone_are_refused(table: vl.Table) -> None:
    with pytest.raises(vl.InvalidValue, match="differ in case alone: \\['ID', 'id'\\]"):
        table.append([{"id": 1, "ID": 2}])
    with pytest.raises(vl.InvalidSchema, match="no column 'ID', but 'id'"):
        table.append(pa.table({"id": [1], "ID": [2]}))
    assert table.version == 0


def test_several_bytes_are_documents(table: vl.Table) -> None:
    """Such as the values of messages."""
    table.append([b'{"n": 1}', b'{"n": 2}\n{"n": 3}'])
    assert sorted(each["n"] for each in events(table)) == [1, 2, 3]
    with pytest.raises(vl.InvalidValue, match="an int is neither") as caught:
        table.append([b"{}", 5])
    assert caught.value.row == 1


def test_rows_come_in_many_batches(table: vl.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_ROWS", 3)
    assert table.append({"n": n} for n in range(10)).rows_written == 10
    assert sorted(each["n"] for each in events(table)) == list(range(10))
    assert table.append(iter(())).rows_written == 0


@pytest.mark.parametrize(
    ("rows", "row", "said"),
    [
        ([{"id": 1}, {"id": "x"}], 1, "column 'id' cannot hold 'x'"),
        ([{"event": 1}, {"event": object()}], 1, "column 'event'"),
        ([{"id": 1}, 5], 1, "an int is neither a row"),
        ([{"id": 2**70}], 0, "column 'id'"),
    ],
)
def test_a_row_that_does_not_fit_is_named(
    table: vl.Table, rows: list[Any], row: int, said: str
) -> None:
    with pytest.raises(vl.InvalidValue, match=said) as caught:
        table.append(rows)
    assert caught.value.row == row
    assert table.version == 0


def test_merge_schema_adds_the_columns_of_rows(table: vl.Table) -> None:
    with pytest.raises(vl.InvalidSchema, match="no column 'note'"):
        table.append([{"id": 1, "note": "new"}])
    table.append([{"id": 1, "note": "new"}], merge_schema=True)
    assert table.scan("note").to_arrow()["note"].to_pylist() == ["new"]


def test_columns_that_data_add_may_be_null(table: vl.Table) -> None:
    """Also those that are required in the data: rows of before have no value."""
    table.append([{"id": 1}])
    point = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    items = pa.list_(pa.field("element", pa.int32(), nullable=False))
    fields = [("id", pa.int64()), ("p", point), ("l", items), ("m", pa.map_(pa.string(), point))]
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields])
    row = {"id": 2, "p": {"x": 1}, "l": [1], "m": [("k", {"x": 1})]}
    added = pa.Table.from_pylist([row], schema=schema)
    table.append(added, merge_schema=True)
    assert "NOT NULL" not in repr(table.schema)
    assert '"nullable":false' not in table.schema.to_json()
    assert '"containsNull":false' not in table.schema.to_json()
    assert table.scan("id, p, l, m", "id = 2").to_arrow().to_pylist() == [row]
    assert table.scan("p", "id = 1").to_pylist() == [{"p": None}]


@pytest.mark.parametrize("form", ["path", "text", "glob", "several", "bytes", "file", "gzip"])
def test_files_and_bytes_of_json(table: vl.Table, tmp_path: Path, form: str) -> None:
    file = tmp_path / "a.ndjson"
    file.write_text(LINES)
    data: Any = {
        "path": file,
        "text": str(file),
        "glob": str(tmp_path / "*.ndjson"),
        "several": [file],
        "bytes": LINES.encode(),
        "file": io.StringIO(LINES),
        "gzip": io.BytesIO(gzip.compress(LINES.encode())),
    }[form]
    assert table.append(data).rows_written == 2
    assert events(table) == DOCUMENTS


def test_a_bad_line_of_bytes_is_named(table: vl.Table) -> None:
    with pytest.raises(vl.InvalidJson, match=r"the given bytes, line 2") as caught:
        table.append(b'{"a": 1}\n{"a": \n')
    assert caught.value.line == 2
    closed = io.BytesIO()
    closed.close()
    with pytest.raises(vl.InvalidValue, match="cannot be read"):
        table.append(closed)


def test_parquet_files_go_by_their_names(table: vl.Table, tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    events_of = pa.array([json.dumps(each) for each in DOCUMENTS])
    write_table(pa.table({"id": [1, 2], "event": events_of}), file)
    assert table.append(file).rows_written == 2
    assert events(table) == DOCUMENTS
    (tmp_path / "b.ndjson").write_text(LINES)
    with pytest.raises(vl.InvalidValue, match="together"):
        table.append([file, tmp_path / "b.ndjson"])


def test_tables_of_other_libraries(table: vl.Table, tmp_path: Path) -> None:
    given = pa.table({"id": [1, 2], "event": pa.array(DOCUMENTS)})
    stream = SimpleNamespace(__arrow_c_stream__=given.__arrow_c_stream__)
    for data in (given, given.to_reader(), given.to_batches()[0], given.to_batches(), stream):
        table.append(data)
    assert table.scan().to_arrow().num_rows == 10
    copy = vl.Table.create(tmp_path / "copy", "id BIGINT, event VARIANT")
    copy.append(table.scan(where="id = 1"))
    copy.append(table)
    assert copy.scan().to_arrow().num_rows == 15


def test_text_and_structs_become_variants(table: vl.Table) -> None:
    table.append(pa.table({"event": ['{"a": 1}', None, "[2]"]}))
    table.append(pa.table({"event": pa.array([{"a": 1, "b": None}, None])}))
    table.append(pa.table({"event": pa.array([[1, 2]])}))
    table.append(pa.table({"event": pa.array([2.5])}))
    assert events(table) == [{"a": 1}, None, [2], {"a": 1, "b": None}, None, [1, 2], 2.5]
    with pytest.raises(vl.InvalidJson) as caught:
        table.append(pa.table({"event": ["1", "{"]}))
    assert caught.value.row == 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_of_python_is_what_variant_of_makes_of_it(value: Any) -> None:
    made = inputs._variants("event", [value], 0)
    expected = None if value is None else vl.Variant.of(value)
    assert variants(made) == [expected]


@pytest.mark.parametrize("data", [5, None, object(), [5], [[1]], ["a.ndjson", 5], dict, b"\xff"])
def test_what_is_neither_is_refused_in_a_sentence(table: vl.Table, data: Any) -> None:
    with pytest.raises(vl.VariantLakeError) as caught:
        table.append(data)
    assert not isinstance(caught.value, AttributeError)
    assert table.version == 0


def test_a_key_that_a_struct_does_not_have_is_refused(tmp_path: Path) -> None:
    schema = "id INT, st STRUCT<a: INT>, items ARRAY<STRUCT<a: INT>>, m MAP<STRING, STRUCT<a: INT>>"
    table = vl.Table.create(tmp_path / "t", schema)
    table.append([{"id": 1, "st": {"a": 1}, "items": [{"a": 2}, {}], "m": {"k": {"a": 3}}}])
    deep = {"a": 1, "zz": 2}
    for row in ({"st": deep}, {"items": [deep]}, {"m": {"k": deep}}):
        with pytest.raises(InvalidValue, match=r"row 1.*'zz', which is not a field") as error:
            table.append([{"id": 2}, row])
        assert f"column {next(iter(row))!r}" in str(error.value)
    assert table.scan().to_pylist() == [
        {"id": 1, "st": {"a": 1}, "items": [{"a": 2}, {"a": None}], "m": [("k", {"a": 3})]}
    ]


def test_rows_of_arrow_are_documents_of_the_column_that_is_named(table: vl.Table) -> None:
    data = pa.table({"kind": ["a", "b"], "n": [1, None]})
    table.append(data, column="event")
    table.append(pa.table({"id": [7], "event": ['{"kind": "c"}']}), column="event")
    assert table.scan("id, event").to_pylist() == [
        {"id": None, "event": {"kind": "a", "n": 1}},
        {"id": None, "event": {"kind": "b", "n": None}},
        {"id": 7, "event": {"kind": "c"}},
    ]
    with pytest.raises(vl.InvalidSchema, match="no VARIANT column 'id'"):
        table.append(pa.table({"kind": ["a"]}), column="id")
    with pytest.raises(vl.InvalidSchema, match="no column 'kind'") as raised:
        table.append(pa.table({"kind": ["a"]}))
    assert "column= names the VARIANT column" in str(raised.value)


@pytest.mark.parametrize("text", ['{"n": 1}', '["a"]'])
def test_text_of_json_is_no_path(table: vl.Table, text: str) -> None:
    with pytest.raises(vl.MissingSource, match=r"append\(text.encode\(\)\)"):
        table.append(text)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "A.CSV"])
def test_files_are_of_the_form_of_their_names(tmp_path: Path, table: vl.Table, name: str) -> None:
    text = b"id,price\n007,1.10\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    table.append(path)
    with path.open("rb") as file:
        table.append(file)
    assert events(table) == [{"id": "007", "price": 1.1}] * 2


def test_files_of_several_forms_are_refused(tmp_path: Path, table: vl.Table) -> None:
    for name in ("a.csv", "b.avro", "c.ndjson"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(vl.InvalidValue, match=r"several forms are given.*: avro, csv, ndjson"):
        table.append([tmp_path / "a.csv", tmp_path / "b.avro", tmp_path / "c.ndjson"])


def test_unsigned_integers_are_of_the_next_wider_type(tmp_path: Path) -> None:
    """Polars counts with them. Only a DECIMAL holds all of 64 bits; a BIGINT takes what fits."""
    frame = pl.DataFrame(
        {"k": ["a"], "n": pl.Series([2**32 - 1], dtype=pl.UInt32)},
    ).with_columns(pl.Series("l", [[255]], dtype=pl.List(pl.UInt8)))
    table = vl.Table.create(tmp_path / "t", frame.to_arrow().schema)
    assert [str(each.type) for each in table.schema.fields] == ["string", "long", "array<short>"]
    table.append(frame)
    more = frame.with_columns(z=pl.lit(65535, dtype=pl.UInt16))
    table.append(more, merge_schema=True)
    assert table.upsert(more, "k").rows_updated == 2
    row = {"k": "a", "n": 2**32 - 1, "l": [255], "z": 65535}
    assert table.to_pylist() == [row, row]
    large = frame.with_columns(
        y=pl.lit(2**64 - 1, dtype=pl.UInt64), n=pl.lit(7, dtype=pl.UInt64), k=pl.lit("b")
    )
    table.append(large, merge_schema=True)
    assert str(table.schema.fields[-1].type) == "decimal(20,0)"
    (found,) = table.scan("n, y", "k = 'b'").to_pylist()
    assert found == {"n": 7, "y": 2**64 - 1}
    with pytest.raises(vl.InvalidSchema, match="'n' is long"):
        table.append(large.with_columns(n=pl.lit(2**63, dtype=pl.UInt64)))

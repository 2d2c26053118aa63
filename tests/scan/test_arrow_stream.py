"""Variants go through other libraries as Variants, and come back as what they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.shredding.layout import VARIANT_TYPE

SCHEMA = "id BIGINT, event VARIANT, parts ARRAY<STRUCT<v: VARIANT>>, named MAP<STRING, VARIANT>"
TEXTS = ['{"a":1.50,"b":[null,true]}', "null", '"ü"', "12345678901234567890"]


def rows(texts: Sequence[str | None]) -> pa.Table:
    events = vl.parquet.variant_array(
        None if text is None else vl.parse_json(text) for text in texts
    )
    count = len(texts)
    lists = pa.StructArray.from_arrays([events], ["v"])
    offsets: Any = pa.array(range(count + 1), pa.int32())
    keys: Any = pa.array(["k"] * count)
    items: Any = events
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "event": events,
            "parts": pa.ListArray.from_arrays(offsets, lists),
            "named": pa.MapArray.from_arrays(offsets, keys, items),
        }
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    made = vl.Table.create(tmp_path_factory.mktemp("stream") / "t", SCHEMA)
    made.append(rows([*TEXTS, None]))
    return made.refresh()


def marks(field: Any) -> Iterator[str]:
    """The path of each field below one that is marked as a Variant."""
    if (field.metadata or {}).get(b"ARROW:extension:name") == b"arrow.parquet.variant":
        assert field.metadata[b"ARROW:extension:metadata"] == b""
        yield field.name
        return
    for place in range(field.type.num_fields):
        yield from (f"{field.name}.{each}" for each in marks(field.type.field(place)))


def test_every_stream_marks_its_variants(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, SCHEMA, properties={"delta.enableChangeDataFeed": "true"})
    table.append(rows(TEXTS))
    everywhere = ["event", "parts.element.v", "named.entries.value"]
    for stream in (
        table.scan(),
        table.sql("SELECT * FROM t"),
        table.changes(1),
    ):
        for found in (stream.schema, pa.table(stream).schema, stream.to_arrow().schema):
            assert [path for field in found for path in marks(field)] == everywhere
    path = table.scan("event:a.b AS b, id")
    assert [list(marks(field)) for field in path.schema] == [["b"], []]
    assert path.to_arrow()["b"].type == VARIANT_TYPE


def test_duckdb_has_them_as_variants_and_gives_them_back(table: vl.Table, tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("scan", table.scan("id, event"))
        types = connection.execute("SELECT DISTINCT typeof(event) FROM scan").fetchall()
        prices = connection.execute("SELECT event.a::DOUBLE FROM scan WHERE id = 0").fetchall()
        back = connection.sql("SELECT id, event FROM scan ORDER BY id").to_arrow_table()
    assert (types, prices) == ([("VARIANT",)], [(1.5,)])
    assert texts_after(back, tmp_path) == [*TEXTS_IN_SPARK, None]


TEXTS_IN_SPARK = ['{"a":1.5,"b":[null,true]}', *TEXTS[1:]]


def test_polars_keeps_them(table: vl.Table, tmp_path: Path) -> None:
    frame = pl.DataFrame(table.scan()).filter(pl.col("id") < 4)
    assert "arrow.parquet.variant" in str(frame.schema["event"])
    found = pa.table(frame)
    assert list(marks(found.schema.field("event"))) == ["event"]
    assert texts_after(frame, tmp_path) == TEXTS_IN_SPARK


def texts_after(data: Any, folder: Path) -> list[str | None]:
    """The events of the rows after they were appended to a table."""
    made = vl.Table.create(folder / "back", SCHEMA)
    made.append(data)
    return made.refresh().scan("event").as_json().to_arrow()["event"].to_pylist()


def test_a_program_may_have_the_extension_as_a_type(tmp_path: Path) -> None:
    class Registered(pa.ExtensionType):
        def __init__(self) -> None:
            super().__init__(VARIANT_TYPE, "arrow.parquet.variant")

        def __arrow_ext_serialize__(self) -> bytes:
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, _kind: Any, _text: bytes) -> Registered:
            return cls()

    events = pa.ExtensionArray.from_storage(
        Registered(), vl.parquet.variant_array(map(vl.parse_json, TEXTS))
    )
    assert texts_after(pa.table({"event": events}), tmp_path) == TEXTS_IN_SPARK


def test_as_json_gives_text_at_every_depth(table: vl.Table) -> None:
    stream = table.scan(where="id < 2").as_json()
    expected = [
        {"id": n, "event": text, "parts": [{"v": text}], "named": [("k", text)]}
        for n, text in enumerate(TEXTS_IN_SPARK[:2])
    ]
    assert stream.to_arrow().to_pylist() == expected
    assert pa.table(stream).schema == stream.schema
    assert pl.DataFrame(stream)["event"].to_list() == TEXTS_IN_SPARK[:2]

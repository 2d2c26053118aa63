"""Forms of Arrow data that other libraries hand over are loaded as the plain ones are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.ingest.encode.plain_arrays import plain_array, plain_batch, plain_schema

TEXTS: Any = pa.array(['{"a": 1}', None, "[2]", '"' + "long" * 9 + '"'])

FORMS: dict[str, Any] = {
    "large": TEXTS.cast(pa.large_string()),
    "view": TEXTS.cast(pa.string_view()),
    "dictionary": TEXTS.dictionary_encode(),
    "json": pa.ExtensionArray.from_storage(pa.json_(), TEXTS),
    "json-view": pa.ExtensionArray.from_storage(
        pa.json_(pa.string_view()), TEXTS.cast(pa.string_view())
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_json_text_comes_in_every_form_of_strings(tmp_path: Path, form: str) -> None:
    table = vl.Table.create(tmp_path, "event VARIANT, text STRING")
    data = pa.table({"event": FORMS[form], "text": plain_array(FORMS[form])})
    table.append(data.slice(1), json_columns=["event"])
    found = table.refresh().scan().to_arrow()
    shown = [
        value and value.to_json()
        for chunk in found["event"].chunks
        for value in vl.parquet.variants(chunk)
    ]
    assert shown == found["text"].to_pylist() == TEXTS.to_pylist()[1:]


def test_text_that_is_null_in_every_row_needs_no_type(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "event VARIANT")
    table.append(pa.table({"event": pa.nulls(2)}), json_columns=["event"])
    assert table.refresh().scan().to_arrow()["event"].null_count == 2


@pytest.mark.parametrize(("mode", "rows"), [("null", 3), ("quarantine", 2)])
def test_a_polars_frame_is_loaded_and_its_bad_documents_are_parted(
    tmp_path: Path, mode: Any, rows: int
) -> None:
    frame: Any = pl.DataFrame(
        {
            "event": ['{"a": 1}', "{", None],
            "kind": pl.Series(["x", None, "y"], dtype=pl.Categorical),
            "inside": [{"tags": ["t"], "raw": b"r"}] * 3,
        }
    )
    ddl = "event VARIANT, kind STRING, inside STRUCT<tags: ARRAY<STRING>, raw: BINARY>"
    table = vl.Table.create(tmp_path, ddl)
    table.append(frame, json_columns=["event"], mode=mode)
    found = table.refresh().scan(["event:a::int AS a", "kind", "inside"]).to_arrow().to_pylist()
    assert len(found) == rows
    assert [found[0], found[-1]] == [
        {"a": a, "kind": kind, "inside": {"tags": ["t"], "raw": b"r"}}
        for a, kind in ((1, "x"), (None, "y"))
    ]


def test_plain_forms_keep_values_at_every_depth() -> None:
    values = [{"m": [("k", ["v"])], "d": "x"}, None, {"m": None, "d": None}]
    view, words = pa.string_view(), pa.dictionary(pa.int8(), pa.string())
    given = pa.struct([("m", pa.map_(view, pa.large_list(view))), ("d", words)])
    batch = pa.record_batch({"s": pa.array(values, given)})
    schema = plain_schema(batch.schema)
    text = pa.large_string()
    assert schema.field("s").type == pa.struct(
        [("m", pa.map_(text, pa.list_(text))), ("d", pa.string())]
    )
    assert plain_batch(batch, schema).to_pylist() == batch.to_pylist()


def test_lists_of_categories_are_lists_of_texts(tmp_path: Path) -> None:
    """Polars has them as dictionaries of views, which no cast of a list knows."""
    values: Any = [["x", "y"], None, [], [None, "x"]]
    frame: Any = pl.DataFrame({"tags": pl.Series(values, dtype=pl.List(pl.Categorical))})
    table = vl.Table.create(tmp_path, "tags ARRAY<STRING>")
    table.append(frame)
    assert table.refresh().scan().to_arrow()["tags"].to_pylist() == values


def test_parts_of_nested_arrays_are_their_own_rows() -> None:
    words: Any = pa.DictionaryArray.from_arrays(
        pa.array([0, None, 1, 0], pa.int8()), pa.array(["a", "b"], pa.string_view())
    )
    ends: Any = pa.array([0, 2, None, 2, 4], pa.int32())
    views: Any = pa.array(["k", "l", "m", "n"], pa.string_view())
    every: Any = pa.array(range(5), pa.int32())
    rows = pa.StructArray.from_arrays([words, views], ["w", "v"])
    given: list[Any] = [
        pa.ListArray.from_arrays(ends, words),
        pa.LargeListArray.from_arrays(ends.cast(pa.int64()), rows),
        pa.MapArray.from_arrays(ends, views, pa.ListArray.from_arrays(every, words)),
    ]
    for array in given:
        for part in (array, array.slice(1), array.slice(3, 1), array.slice(0, 0)):
            plain: Any = plain_array(part)
            plain.validate(full=True)
            assert plain.to_pylist() == part.to_pylist()
            assert plain.type == plain_schema(pa.schema([("c", part.type)])).field("c").type

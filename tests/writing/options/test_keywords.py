"""Options of wrong types are refused by name, and nothing is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.errors import InvalidValue
from variantlake.ingest.local_run import ingest_here

WRONG: list[tuple[str, Any, str]] = [
    ("load_id", 5, "text"),
    ("order_by", 5, "list of texts"),
    ("order_by", [5], "list of texts"),
    ("max_rows_per_file", "a", "whole number"),
    ("max_rows_per_file", True, "whole number"),
    ("target_file_size", 1.5, "a number of bytes, 64MB"),
    ("arrays", "yes", "True or False"),
    ("skip_empty", "no", "True or False"),
    ("merge_schema", 1, "True or False"),
    ("truncate_timestamps", "no", "True or False"),
    ("partition_by", 5, "list of texts"),
    ("file_column", 5, "text"),
    ("loaded_at_column", 5, "text"),
    ("column", 5, "VARIANT column"),
    ("column", 5, "text"),
    ("load_id", "\ud800", "text"),
    ("shredding", {"event": "a INT"}, "text"),
    ("properties", "x", "mapping"),
    ("progress", 5, "function"),
]


@pytest.mark.parametrize(("name", "value", "hint"), WRONG, ids=str)
def test_loads_of_documents(name: str, value: Any, hint: str, tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"a": 1}\n')
    with pytest.raises(InvalidValue, match=f"{name} is ") as caught:
        ingest_here(tmp_path / "a.ndjson", tmp_path / "t", **{name: value})
    assert hint in caught.value.hint
    assert not (tmp_path / "t").exists()


def test_truncation_is_for_data_with_timestamps(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"a": 1}\n')
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    with pytest.raises(InvalidValue, match="documents have no timestamps"):
        table.append(vl.ndjson(tmp_path / "a.ndjson"), truncate_timestamps=True)
    table.append(vl.ndjson(tmp_path / "a.ndjson"), truncate_timestamps=False)


def test_one_column_of_json_needs_no_list(tmp_path: Path) -> None:
    table, data = vl.Table.create(tmp_path / "t", "event VARIANT"), pa.table({"event": ["[1]"]})
    assert table.append(data, json_columns="event").version == 1
    wrong: Any = 5
    with pytest.raises(InvalidValue, match="json_columns is 5"):
        table.append(data, json_columns=wrong)


def test_a_list_of_paths_is_told_how_it_is_given(tmp_path: Path) -> None:
    paths: Any = [tmp_path / "a.ndjson"]
    with pytest.raises(InvalidValue, match="cannot contain a list") as caught:
        vl.ndjson(paths)
    assert "vl.ndjson(*paths)" in caught.value.hint
    nothing: Any = [None]
    with pytest.raises(InvalidValue, match="not by None"):
        ingest_here(nothing, tmp_path / "t")

"""Names that the change data feed gives its own columns: where the feed is on they are refused."""

from __future__ import annotations

from pathlib import Path

import orjson
import pyarrow as pa
import pytest

import variantlake as vl
from tests.dml.changed import FEED, arrow, new_table
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.protocol.change_feed import CHANGE_COLUMNS, reserved_column
from variantlake.delta.schema.column_mapping import NAME_KEY
from variantlake.delta.schema.table_schema import PrimitiveType, StructField, StructType
from variantlake.errors import InvalidSchema, UnsupportedFeature


@pytest.mark.parametrize("name", [*CHANGE_COLUMNS, "_Change_Type"])
def test_the_names_are_refused_where_the_feed_is_on(tmp_path: Path, name: str) -> None:
    for mapped in ({}, {"delta.columnMapping.mode": "name"}):
        with pytest.raises(InvalidSchema, match=f"cannot have the column '{name}'") as refused:
            vl.Table.create(tmp_path / "t", f"id INT, {name} INT", properties={**FEED, **mapped})
        assert "choose another name" in refused.value.hint
    table = vl.Table.create(tmp_path / "on", "id INT", properties=FEED)
    with pytest.raises(InvalidSchema, match=f"cannot have the column {name!r}"):
        table.add_column(f"{name} STRING")
    with pytest.raises(InvalidSchema, match=f"cannot have the column {name!r}"):
        table.append(pa.table({"id": [1], name: ["x"]}), merge_schema=True)
    assert table.refresh().version == 0
    off = vl.Table.create(tmp_path / "off", f"id INT, {name} STRING")
    off.append(pa.table({"id": pa.array([1], pa.int32()), name: ["x"]}))
    with pytest.raises(InvalidSchema, match=f"cannot have the column {name!r}"):
        off.set_properties(FEED)
    assert off.set_properties({"delta.enableChangeDataFeed": "false"}).version == 2


def test_names_in_files_and_fields_of_structs(tmp_path: Path) -> None:
    """A change file has both columns by their names in files; what is inside of a struct is not."""
    column = StructField("x", PrimitiveType("string"), metadata={NAME_KEY: "_change_type"})
    assert reserved_column(StructType((column,))) == "x"
    table = vl.Table.create(tmp_path / "t", "id INT, s STRUCT<_change_type: INT>", properties=FEED)
    assert table.version == 0


def test_a_table_that_has_both_already(tmp_path: Path) -> None:
    """Another writer made it: a change that needs change files says what is wrong."""
    table = new_table(tmp_path / "t", rows=2, properties={})
    table.add_column("_change_type STRING")
    path = tmp_path / "t" / commit_path(2)
    actions = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] |= FEED
    path.write_bytes(b"\n".join(map(orjson.dumps, actions)))
    path.with_suffix(".crc").unlink()
    table = vl.Table.open(tmp_path / "t")
    table.append(arrow([7]))
    with pytest.raises(InvalidSchema, match="cannot have the column '_change_type'"):
        table.refresh().delete("id = 1")
    with pytest.raises(UnsupportedFeature, match="has a column '_change_type' itself") as refused:
        table.refresh().changes(3)
    assert "before it had the column" in refused.value.hint

"""What `inspect` shows of a file."""

from __future__ import annotations

import uuid
from pathlib import Path as FilePath

import pyarrow as pa
import pytest

from tests.parquet.write.test_table_writer import of
from variantlake.errors import InvalidPath
from variantlake.parquet.read.inspect import NodeView, inspect_file, why
from variantlake.parquet.write.file_writer import WriteOptions
from variantlake.parquet.write.table_writer import write_table
from variantlake.paths import Path
from variantlake.shredding.inference.infer import InferenceOptions


@pytest.fixture
def file(tmp_path: FilePath) -> FilePath:
    values = of(
        {"a": 1, "o": {"t": "x"}, "l": ["p", 2]},
        {"a": "one", "o": {"t": None}, "z": 1},
        {"a": None, "o": 5},
        "no object",
        None,
    )
    table = pa.table({"v": values, "n": [1, 2, 3, 4, 5]})
    path = tmp_path / "t.parquet"
    ddl = "a BIGINT, o STRUCT<t: STRING>, l ARRAY<STRING>"
    write_table(table, path, shredding=ddl, options=WriteOptions(row_group_rows=2))
    return path


def nodes(file: FilePath) -> dict[Path, NodeView]:
    (variant,) = inspect_file(file).variants
    return {node.path: node for node in variant.root.walk()}


def test_a_file_and_its_variant_columns(file: FilePath) -> None:
    view = inspect_file(file)
    assert (view.num_rows, view.row_groups) == (5, 3)
    (variant,) = view.variants
    assert variant.column == ("v",)
    assert variant.annotated
    assert variant.ddl == "a BIGINT, o STRUCT<t: STRING>, l ARRAY<STRING>"
    assert variant.nulls == 1
    assert variant.metadata_size.compressed > 0


def test_types_and_shares_of_every_node(file: FilePath) -> None:
    found = {str(path): (node.type, node.typed, node.share) for path, node in nodes(file).items()}
    assert found == {
        "$": ("STRUCT", 3, 0.6),
        "$['a']": ("BIGINT", 1, 0.2),
        "$['o']": ("STRUCT", 2, 0.4),
        "$['o']['t']": ("STRING", 1, 0.2),
        "$['l']": ("ARRAY", 1, 0.2),
        "$['l'][0]": ("STRING", None, None),
    }


def test_residuals_and_variant_nulls_are_counted_apart(file: FilePath) -> None:
    a = nodes(file)[Path.of("a")]
    assert (a.nulls, a.residuals) == (1, 1)
    assert a.parquet_type == "INT64"


def test_bounds_are_json(file: FilePath, tmp_path: FilePath) -> None:
    assert nodes(file)[Path.of("a")].minimum == "1"
    assert nodes(file)[Path.of("o", "t")].maximum == '"x"'
    ids = tmp_path / "ids"
    write_table(pa.table({"v": of(uuid.UUID(int=5))}), ids, shredding="UUID")
    assert nodes(ids)[Path()].minimum == '"00000000-0000-0000-0000-000000000005"'


def test_sizes_are_of_columns_that_exist(file: FilePath) -> None:
    found = nodes(file)
    assert found[Path.of("a")].typed_value_size is not None
    assert found[Path.of("o")].typed_value_size is None
    assert found[Path.of("o")].value_size is not None


def test_why_gives_a_reason_for_every_path(file: FilePath) -> None:
    inference = why(file, "v", inference=InferenceOptions(min_share=0.5))
    taken = {str(path): (is_taken, text) for path, is_taken, text in inference.reasons}
    assert taken["$['a']"] == (False, "exact numeric in 25.0% of the rows, fewer than 50.0%")
    assert taken["$['o']"][0] is False
    with pytest.raises(InvalidPath):
        why(file, "n")

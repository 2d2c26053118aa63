"""Files of the older layout, written by pyarrow alone: found, read, checked, inspected, skipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.planning.builders import may_match
from tests.shredding.legacy_columns import EXAMPLE, NESTED, column, leaf, untyped
from variantlake.errors import InvalidPath, InvalidValue, MalformedFile, VariantLakeError
from variantlake.expressions.tree import Compare, Literal, Ref
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.stats.facts import UNKNOWN, FileFacts, row_group_facts
from variantlake.paths import Path as VariantPath
from variantlake.planning.exact.readings import Native, PhysicalColumn, Reader
from variantlake.planning.stats.skipping import Skipper
from variantlake.shredding.layout import VARIANT_TYPE

BIGINT: Any = leaf(pa.int64())
FIELDS: Any = EXAMPLE
"""Their fields: the stubs do not know that a struct is iterable."""
ROWS: list[Any] = [
    {"object": {"a": {"typed_value": 123}, "b": {"object": {"c": {"typed_value": "hello"}}}}},
    {"object": {"a": {"untyped_value": untyped("x")}, "b": {"untyped_value": untyped([1, 2])}}},
    {"untyped_value": untyped({"d": {"e": 5}}), "object": {"a": {"typed_value": 7}}},
    {"untyped_value": untyped([{"a": 1}])},
    None,
]


def written(path: Path, columns: dict[str, Any], **options: Any) -> str:
    file = str(path / "legacy.parquet")
    pq.write_table(pa.table(columns), file, **options)
    return file


def rows(file: str, name: str = "v", **options: Any) -> list[Any]:
    table = vl.parquet.read_table(file, **options)
    assert table.schema.field(name).type == VARIANT_TYPE
    values = vl.parquet.variants(table.column(name))
    return [None if value is None else value.to_python() for value in values]


@pytest.fixture
def example(tmp_path: Path) -> str:
    return written(tmp_path, {"i": range(len(ROWS)), "v": column(EXAMPLE, ROWS)})


EXPECTED = [
    {"a": 123, "b": {"c": "hello"}},
    {"a": "x", "b": [1, 2]},
    {"a": 7, "d": {"e": 5}},
    [{"a": 1}],
    None,
]


def test_a_legacy_column_is_found_without_being_named(example: str) -> None:
    assert rows(example) == EXPECTED
    assert rows(example, variant_columns=["v"]) == EXPECTED
    assert list(vl.parquet.check_file(example)) == []


@pytest.mark.parametrize(
    ("arrow", "row", "value"),
    [
        (pa.struct([("typed_value", pa.int64())]), {"typed_value": 7}, 7),
        (pa.struct([("untyped_value", pa.binary())]), {"untyped_value": untyped("x")}, "x"),
        (
            pa.struct([("object", pa.struct([("a", BIGINT)]))]),
            {"object": {"a": {"typed_value": 7}}},
            {"a": 7},
        ),
        (
            pa.struct([("array", pa.list_(pa.field("element", BIGINT)))]),
            {"array": [{"typed_value": 7}]},
            [7],
        ),
        (
            pa.struct([("untyped_value", pa.binary()), ("_x", pa.int64())]),
            {"untyped_value": untyped("x")},
            "x",
        ),
    ],
    ids=str,
)
def test_members_may_be_left_out_of_the_file(
    tmp_path: Path, arrow: pa.DataType, row: Any, value: Any
) -> None:
    assert rows(written(tmp_path, {"v": column(arrow, [row, None])})) == [value, None]


@pytest.mark.parametrize(
    "arrow",
    [
        pa.struct([("object", pa.string())]),
        pa.struct([("object", pa.struct([("a", pa.int64())])), ("array", pa.list_(pa.int64()))]),
        pa.struct([("array", pa.list_(pa.struct([("a", pa.int64())])))]),
        pa.struct([("typed_value", pa.int64()), ("kind", pa.string())]),
        pa.struct([("untyped_value", pa.string()), ("kind", pa.string())]),
    ],
    ids=str,
)
def test_structs_with_such_names_are_left_alone(tmp_path: Path, arrow: pa.DataType) -> None:
    file = written(tmp_path, {"v": pa.array([None], arrow)})
    assert vl.parquet.read_table(file).equals(pq.read_table(file))


@pytest.mark.parametrize(
    ("arrow", "message"),
    [
        (pa.struct([*FIELDS, ("extra", pa.int64())]), "unknown field 'extra'"),
        (pa.struct([*FIELDS, ("metadata", pa.binary())]), "unknown field 'metadata'"),
        (leaf(pa.uint32()), "typed_value is INT32 INT"),
        (leaf(pa.list_(pa.int64())), "'typed_value' is a group"),
        (pa.struct([("untyped_value", pa.string()), ("typed_value", pa.int64())]), "binary"),
        (pa.struct([("untyped_value", pa.binary()), ("object", pa.int64())]), "expected a group"),
        (
            pa.struct([("untyped_value", pa.binary()), ("object", pa.struct([("a", pa.int64())]))]),
            "expected a group",
        ),
        (
            pa.struct([("untyped_value", pa.binary()), ("array", pa.struct([("a", BIGINT)]))]),
            "expected LIST",
        ),
        (
            pa.struct([("untyped_value", pa.binary()), ("array", pa.list_(pa.int64()))]),
            "expected a group",
        ),
        (
            pa.struct(
                [
                    ("untyped_value", pa.binary()),
                    ("object", pa.struct([("a", pa.struct([*BIGINT, ("x", pa.int64())]))])),
                ]
            ),
            "unknown field 'x'",
        ),
        (
            pa.struct([("object", pa.struct([("a", BIGINT)])), ("extra", pa.int64())]),
            "unknown field 'extra'",
        ),
    ],
    ids=str,
)
def test_a_schema_that_is_no_legacy_group_is_refused(
    tmp_path: Path, arrow: pa.DataType, message: str
) -> None:
    file = written(tmp_path, {"v": pa.array([None], arrow)})
    with pytest.raises(MalformedFile, match=message) as error:
        vl.parquet.read_table(file)
    assert error.value.file == file
    (finding,) = vl.parquet.check_file(file)
    assert message in finding.message


def test_a_required_group_with_nothing_set_is_null_in_a_nullable_column(tmp_path: Path) -> None:
    groups = pa.array([{"typed_value": 1}, {}], BIGINT)
    inner = pa.field("w", BIGINT, nullable=False)
    structs = pa.StructArray.from_arrays([groups], fields=[inner])
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), groups, type=pa.list_(inner.with_name("element"))
    )
    schema = pa.schema(
        [inner.with_name("v"), pa.field("s", structs.type), pa.field("l", lists.type)]
    )
    file = str(tmp_path / "required.parquet")
    pq.write_table(pa.table([groups, structs, lists], schema=schema), file)
    table = vl.parquet.read_table(file)
    assert rows(file) == [1, None]
    assert table.schema.field("v").nullable
    assert table.schema.field("s").type.field("w").nullable
    assert table.schema.field("l").type.value_field.nullable
    assert table.column("s").to_pylist()[1] == {"w": None}
    assert table.column("l").to_pylist()[1] == [None]


def test_a_named_column_with_such_members_is_judged_by_the_legacy_layout(tmp_path: Path) -> None:
    broken = pa.struct([("object", pa.struct([("a", pa.struct([("x", pa.int64())]))]))])
    file = written(tmp_path, {"v": pa.array([None], broken)})
    with pytest.raises(MalformedFile, match="unknown field 'x'") as error:
        vl.parquet.read_table(file, variant_columns=["v"])
    assert error.value.path == "$['a']"
    assert vl.parquet.read_table(file).schema.field("v").type == broken


@pytest.mark.parametrize(
    "bad",
    [
        {"typed_value": 1, "untyped_value": untyped(1)},
        {"typed_value": 1, "object": {}},
        {"array": [], "object": {}},
        {"array": [], "untyped_value": untyped(None)},
        {"object": {}, "untyped_value": untyped(1)},
        {"untyped_value": b"\x01\x00"},
    ],
)
def test_a_bad_row_is_refused_with_file_and_row(tmp_path: Path, bad: Any) -> None:
    arrow = pa.struct(
        [
            *BIGINT,
            ("object", pa.struct([("a", BIGINT)])),
            ("array", pa.list_(pa.field("element", BIGINT))),
        ]
    )
    data = [{"typed_value": 1}] * 5 + [bad]
    file = written(tmp_path, {"v": column(arrow, data)}, row_group_size=4)
    with pytest.raises(VariantLakeError) as error:
        vl.parquet.read_table(file)
    assert (error.value.file, error.value.row) == (file, 5)
    assert "'v'" in error.value.message
    findings = list(vl.parquet.check_file(file))
    assert {(finding.row, finding.column, finding.path) for finding in findings} == {(5, "v", "$")}


def test_legacy_columns_inside_of_structs_lists_and_maps(tmp_path: Path) -> None:
    inner = column(EXAMPLE, ROWS)
    struct = pa.StructArray.from_arrays([inner], names=["x"])
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 5], pa.int32()), inner)
    file = written(tmp_path, {"s": struct.slice(0, 2), "l": lists})
    table = vl.parquet.read_table(file)
    structs: Any = table.column("s").combine_chunks()
    found = vl.parquet.variants(structs.field("x"))
    assert [value and value.to_python() for value in found] == EXPECTED[:2]
    elements: Any = table.column("l").combine_chunks()
    found = vl.parquet.variants(elements.values)
    assert [value and value.to_python() for value in found] == EXPECTED


# --- Paths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("v:a::bigint", [123, None, 7, None, None]),
        ("v:a::string", [None, "x", None, None, None]),
        ("v:b.c", ["hello", None, None, None, None]),
        ("v:b[1]::int", [None, 2, None, None, None]),
        ("v:d.e::int", [None, None, 5, None, None]),
        ("v:[0].a::int", [None, None, None, 1, None]),
        ("v:nowhere::int", [None] * 5),
    ],
)
def test_paths_are_found_wherever_their_value_stands(
    example: str, path: str, expected: list[Any]
) -> None:
    found = vl.parquet.read_paths(example, {"x": path}, on_mismatch="null")
    assert found.column("x").to_pylist() == expected


def test_a_path_as_a_variant(example: str) -> None:
    found = vl.parquet.variants(vl.parquet.read_paths(example, {"x": "v:b"}).column("x"))
    assert [value and value.to_python() for value in found] == [
        {"c": "hello"},
        [1, 2],
        None,
        None,
        None,
    ]


def test_a_mismatch_names_file_row_and_path(example: str) -> None:
    with pytest.raises(InvalidValue) as error:
        vl.parquet.read_paths(example, {"x": "v:a::bigint"})
    assert (error.value.file, error.value.row, error.value.path) == (example, 1, "$['a']")
    with pytest.raises(InvalidPath):
        vl.parquet.read_paths(example, {"x": "nothing:a"})


def test_a_leaf_of_a_clean_path_reads_its_own_column_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data: list[Any] = [
        {"object": {"a": {"typed_value": 1}}},
        None,
        {"object": {"b": {"object": {}}}},
    ]
    file = written(tmp_path, {"v": column(EXAMPLE, data)})
    monkeypatch.delattr("variantlake.parquet.read.path_values.unshred_legacy")
    found = vl.parquet.read_paths(file, {"a": "v:a", "c": "v:b.c", "n": "v:a::decimal(9,2)"})
    assert found.to_pylist() == [
        {"a": 1, "c": None, "n": 1},
        {"a": None, "c": None, "n": None},
        {"a": None, "c": None, "n": None},
    ]


def test_elements_of_arrays_and_several_forms(tmp_path: Path) -> None:
    array = [{"array": [{"object": {"a": {"array": [{"typed_value": 4}]}}}]}, {}]
    file = written(tmp_path, {"v": column(NESTED, array)})
    found = vl.parquet.read_paths(file, {"x": "v:[0].a[0]"})
    assert found.column("x").to_pylist() == [4, None]
    several = pa.struct([*BIGINT, ("object", pa.struct([("a", BIGINT)]))])
    data = [{"typed_value": 1}, {"object": {"a": {"typed_value": 2}}}]
    file = written(tmp_path, {"v": column(several, data)})
    found = vl.parquet.read_paths(file, {"x": "v:a::bigint", "y": "v::variant"})
    assert found.column("x").to_pylist() == [None, 2]
    assert [value and value.to_python() for value in vl.parquet.variants(found.column("y"))] == [
        1,
        {"a": 2},
    ]


# --- What a footer tells --------------------------------------------------------------------------


def facts(file: str) -> tuple[FileFacts, ...]:
    return row_group_facts(read_footer(file), [("v",)])


def clustered(tmp_path: Path) -> str:
    """Row groups of 10 rows; the third has a leftover, the fourth another value of `a`."""
    data: list[Any] = [{"object": {"a": {"typed_value": i}}} for i in range(40)]
    data[25]["untyped_value"] = untyped({"z": 1})
    data[35]["object"]["a"] = {"untyped_value": untyped("30")}
    return written(tmp_path, {"v": column(EXAMPLE, data)}, row_group_size=10)


def test_row_groups_are_skipped_only_where_all_residuals_are_null(tmp_path: Path) -> None:
    groups = facts(clustered(tmp_path))
    ref = Ref(("v",), VariantPath.parse("$.a"), "bigint")
    skipper = Skipper(Compare(">=", ref, Literal(30, "bigint")))
    kept = [may_match(skipper, group) for group in groups]
    assert kept == [False, False, True, True]


def test_a_clean_path_is_read_from_its_column(tmp_path: Path) -> None:
    groups = facts(clustered(tmp_path))
    reader = Reader(Ref(("v",), VariantPath.parse("$.a"), "bigint"))
    readings = [reader.read(group) for group in groups]
    assert isinstance(readings[0], PhysicalColumn)
    assert readings[0].steps == ("object", "a", "typed_value")
    assert [type(reading) for reading in readings[2:]] == [Native, Native]
    nulls = [group.variants[0].nulls for group in groups]
    assert nulls == [UNKNOWN] * 4, "a group with nothing set is SQL NULL too"


def test_inspect_shows_the_tree(example: str) -> None:
    (view,) = vl.parquet.inspect_file(example).variants
    assert (view.legacy, view.annotated, view.ddl) == (True, False, "a BIGINT, b STRUCT<c: STRING>")
    assert [
        (str(node.path), node.type, node.typed, node.residuals) for node in view.root.walk()
    ] == [
        ("$", "STRUCT", None, 2),
        ("$['a']", "BIGINT", 2, 1),
        ("$['b']", "STRUCT", None, 1),
        ("$['b']['c']", "STRING", 1, 0),
    ]


def test_check_names_lists_of_other_levels(tmp_path: Path) -> None:
    lists = pa.struct([("array", pa.list_(pa.field("item", BIGINT)))])
    data = pa.array([{"array": [{"typed_value": 1}]}], lists)
    file = written(tmp_path, {"v": data}, use_compliant_nested_type=False)
    assert rows(file) == [[1]]
    (finding,) = vl.parquet.check_file(file)
    assert "'item'" in finding.message


# --- Writing --------------------------------------------------------------------------------------

VALUES: list[Any] = [
    {"a": 123, "b": {"c": "hello", "d": [1]}},
    {"a": "x", "z": {"y": None}},
    None,
    [{"a": 1}],
]


def table() -> pa.Table:
    variants = [*map(vl.Variant.of, VALUES[:2]), None, vl.Variant.of(VALUES[3])]
    return pa.table({"i": range(4), "v": vl.parquet.variant_array(variants)})


@pytest.mark.parametrize(
    "shredding", [None, "infer", "a BIGINT, b STRUCT<c: STRING, d: ARRAY<INT>>", "ARRAY<VARIANT>"]
)
def test_what_is_written_is_read_again(tmp_path: Path, shredding: str | None) -> None:
    file = tmp_path / "x.parquet"
    found = vl.parquet.write_table(table(), file, shredding=shredding, layout="legacy")
    assert rows(str(file)) == VALUES
    assert list(vl.parquet.check_file(file)) == []
    assert found.facts.variants[0].is_legacy
    node = read_footer(file).schema.named("v")
    assert node is not None
    assert node.logical is None, "the annotation means the published layout"
    assert vl.parquet.read_table(file).column("i").to_pylist() == [0, 1, 2, 3]


def test_the_columns_of_a_written_file_are_those_of_the_specification(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    ddl = "a BIGINT, b STRUCT<c: STRING>"
    vl.parquet.write_table(table(), file, shredding={"v": ddl}, layout="legacy")
    stored = pq.read_table(file).column("v")
    assert stored.type == EXAMPLE
    assert stored.to_pylist()[0] == {
        "untyped_value": None,
        "object": {
            "a": {"untyped_value": None, "typed_value": 123},
            "b": {
                "untyped_value": untyped({"d": [1]}),
                "object": {"c": {"untyped_value": None, "typed_value": "hello"}},
            },
        },
    }
    assert stored.to_pylist()[2] is None


def test_an_unknown_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="no layout"):
        vl.parquet.write_table(table(), tmp_path / "x.parquet", layout="older")  # type: ignore[arg-type]

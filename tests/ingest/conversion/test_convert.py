"""Parquet files into a table: which stay as they are, which are rewritten, and all or nothing."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.shredding.legacy_columns import column, leaf, untyped
from variantlake.errors import (
    InvalidJson,
    InvalidSchema,
    InvalidValue,
    LimitExceeded,
    MalformedFile,
    MalformedVariant,
    MissingSource,
    NotADeltaTable,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.ingest.conversion.plan import Action
from variantlake.parquet.metadata.annotate import annotate
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.variant.variant_group import variant_groups

DOCUMENTS: list[Any] = [
    {"kind": "a", "n": 1},
    {"kind": "b", "n": "x", "rest": {"deep": [1, None]}},
    None,
    [1, 2],
]
DDL = "kind STRING, n BIGINT"


def rows(start: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(start, start + len(DOCUMENTS)), pa.int64()),
            "event": vl.parquet.variant_array(DOCUMENTS),
        }
    )


def legacy(path: Path, start: int = 0) -> Path:
    vl.parquet.write_table(rows(start), path, shredding=DDL, layout="legacy")
    return path


def final(path: Path, start: int = 0, shredding: str | None = DDL) -> Path:
    vl.parquet.write_table(rows(start), path, shredding=shredding)
    return path


def stored(table: Path) -> list[Path]:
    paths: Any = vl.Table.open(table).files().column("path").to_pylist()
    return [table / path for path in paths]


def content(table: Path, name: str = "event") -> list[Any]:
    found: list[Any] = []
    for file in stored(table):
        values = vl.parquet.variants(vl.parquet.read_table(file).column(name))
        found += [None if value is None else value.to_python() for value in values]
    return found


def actions(result: Any) -> list[Action]:
    return [step.action for step in result.steps]


def test_legacy_files_become_a_shredded_table(tmp_path: Path) -> None:
    files = [legacy(tmp_path / f"{i}.parquet", 10 * i) for i in range(2)]
    table = tmp_path / "table"
    result = vl.convert(table, files)
    assert actions(result) == [Action.REWRITE] * 2
    assert (result.version, result.rows_written, result.shredding) == (0, 8, {"event": DDL})
    assert content(table) == DOCUMENTS * 2
    for file in stored(table):
        (group,) = variant_groups(read_footer(str(file)))
        assert group.annotated
        assert [name for name, _ in group.root.fields] == ["kind", "n"]
    assert vl.Table.open(table).properties["variantlake.shredding.event"] == DDL


@pytest.mark.parametrize("shredding", [DDL, None])
def test_files_in_the_published_layout_are_copied_byte_for_byte(
    tmp_path: Path, shredding: str | None
) -> None:
    file = final(tmp_path / "x.parquet", shredding=shredding)
    table = tmp_path / "table"
    result = vl.convert(table, file)
    assert actions(result) == [Action.COPY]
    (copied,) = stored(table)
    assert copied.read_bytes() == file.read_bytes()
    assert content(table) == DOCUMENTS


def test_files_below_the_table_are_added_where_they_lie(tmp_path: Path) -> None:
    (tmp_path / "more files").mkdir()
    files = [final(tmp_path / "x.parquet"), final(tmp_path / "more files" / "y.parquet", 10)]
    result = vl.convert(tmp_path, tmp_path)
    assert actions(result) == [Action.ADD] * 2
    assert {step.inside for step in result.steps} == {"x.parquet", "more files/y.parquet"}
    table = vl.Table.open(tmp_path)
    assert all(file.exists() for file in files)
    texts: Any = table.files().column("stats").to_pylist()
    statistics = [orjson.loads(text) for text in texts]
    assert {stats["maxValues"]["id"] for stats in statistics} == {3, 13}
    assert all("event" in stats["minValues"] for stats in statistics)
    again = vl.convert(tmp_path, files)
    assert (again.version, actions(again)) == (0, [Action.SKIP] * 2)


def test_a_folder_with_other_files_is_no_place_for_a_table(tmp_path: Path) -> None:
    source = legacy(tmp_path / "x.parquet")
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("")
    with pytest.raises(NotADeltaTable):
        vl.convert(other, source)


def test_a_table_that_allows_no_shredding_gets_none(tmp_path: Path) -> None:
    table = tmp_path / "table"
    vl.Table.create(
        table, "id BIGINT, event VARIANT", properties={"delta.enableVariantShredding": "false"}
    )
    result = vl.convert(table, final(tmp_path / "x.parquet"))
    assert actions(result) == [Action.REWRITE]
    (file,) = stored(table)
    (group,) = variant_groups(read_footer(str(file)))
    assert not group.root.fields
    assert content(table) == DOCUMENTS
    with pytest.raises(InvalidSchema, match="shredded"):
        vl.convert(table, legacy(tmp_path / "y.parquet"), shredding=DDL)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_table_with_column_mapping_gets_its_own_names(tmp_path: Path, mode: str) -> None:
    table = tmp_path / "table"
    vl.Table.create(
        table, "id BIGINT, event VARIANT", properties={"delta.columnMapping.mode": mode}
    )
    result = vl.convert(table, final(tmp_path / "x.parquet"))
    assert actions(result) == [Action.REWRITE]
    physical = [field.physical_name for field in vl.Table.open(table).schema.fields]
    (file,) = stored(table)
    assert pq.read_schema(file).names == physical
    assert content(table, physical[1]) == DOCUMENTS


def test_json_text_becomes_variants(tmp_path: Path) -> None:
    text = [None if each is None else json.dumps(each) for each in DOCUMENTS]
    source = tmp_path / "x.parquet"
    pq.write_table(pa.table({"event": text, "plain": text}), source)
    table = tmp_path / "table"
    result = vl.convert(table, source, json_columns=["event"])
    assert "JSON text" in result.steps[0].reason
    assert content(table) == DOCUMENTS
    assert str(vl.Table.open(table).schema.fields[1].type) == "string"


def test_variants_without_a_mark_are_rewritten(tmp_path: Path) -> None:
    source = tmp_path / "x.parquet"
    pq.write_table(rows(), source)
    table = tmp_path / "table"
    result = vl.convert(table, source, shredding={"event": "n INT"})
    assert actions(result) == [Action.REWRITE]
    assert content(table) == DOCUMENTS
    assert result.shredding == {"event": "n INT"}


def test_variants_beside_other_columns_of_their_group_are_rewritten(tmp_path: Path) -> None:
    """Readers skip what starts with `_`, but for Spark, which refuses the whole group."""
    event = vl.parquet.variant_array(DOCUMENTS)
    members = {name: event.field(name) for name in ("metadata", "value")}
    more = pa.StructArray.from_arrays(
        [*members.values(), pa.array(range(len(event)))],
        names=[*members, "_length"],
        mask=event.is_null(),
    )
    source, table = tmp_path / "x.parquet", tmp_path / "table"
    pq.write_table(pa.table({"event": more}), source)
    annotate(str(source), [("event",)])
    (step,) = vl.convert(table, source).steps
    assert (step.action, "do not belong to a Variant" in step.reason) == (Action.REWRITE, True)
    assert content(table) == DOCUMENTS


def test_rewriting_can_be_asked_for(tmp_path: Path) -> None:
    table = tmp_path / "table"
    source = final(tmp_path / "x.parquet", shredding=None)
    result = vl.convert(table, source, rewrite=True, shredding="n INT")
    assert actions(result) == [Action.REWRITE]
    assert content(table) == DOCUMENTS


def test_a_dry_run_does_nothing(tmp_path: Path) -> None:
    sources = [legacy(tmp_path / "l.parquet"), final(tmp_path / "f.parquet")]
    result = vl.convert(tmp_path / "table", sources, dry_run=True)
    assert result.dry_run
    assert actions(result) == [Action.REWRITE, Action.COPY]
    assert not (tmp_path / "table").exists()
    assert json.loads(json.dumps(result.to_dict()))["steps"][0]["action"] == "rewrite"


def test_files_may_lack_columns_and_rows(tmp_path: Path) -> None:
    sources = [legacy(tmp_path / "a.parquet")]
    for name, table in (("b", rows().select(["event"])), ("c", rows().slice(0, 0))):
        sources.append(tmp_path / f"{name}.parquet")
        vl.parquet.write_table(table, sources[-1], layout="legacy")
    table_path = tmp_path / "table"
    result = vl.convert(table_path, sources)
    assert actions(result) == [Action.REWRITE, Action.REWRITE, Action.SKIP]
    assert content(table_path) == DOCUMENTS * 2


def test_a_table_without_variants_needs_no_feature_of_theirs(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "x.parquet")
    assert actions(vl.convert(tmp_path / "table", tmp_path / "x.parquet")) == [Action.COPY]
    protocol = vl.Table.open(tmp_path / "table").protocol
    assert "variantType" not in str(protocol)
    assert "variantShredding" not in str(protocol)


def test_old_timestamps_are_rewritten_as_instants(tmp_path: Path) -> None:
    moment = dt.datetime(2020, 1, 2, 3, 4, 5, 678901)  # noqa: DTZ001 - INT96 has no zone
    source = tmp_path / "x.parquet"
    pq.write_table(
        pa.table({"at": pa.array([moment, None], pa.timestamp("us"))}),
        source,
        use_deprecated_int96_timestamps=True,
    )
    table = tmp_path / "table"
    result = vl.convert(table, source)
    assert actions(result) == [Action.REWRITE]
    (file,) = stored(table)
    assert pq.read_table(file).column("at").to_pylist() == [moment.replace(tzinfo=dt.UTC), None]


def test_a_dry_run_finds_years_beyond_microseconds(tmp_path: Path) -> None:
    source, table = tmp_path / "x.parquet", tmp_path / "table"
    options: Any = {"use_deprecated_int96_timestamps": True, "use_dictionary": False}
    times = pa.array([1_577_836_800_000_000, 1_577_923_200_000_000], pa.timestamp("us"))
    rows = pa.table({"n": [1, 2], "at": pa.StructArray.from_arrays([times], ["t"])})
    pq.write_table(rows, source, compression="none", **options)
    day = (2_440_588 + 18_263).to_bytes(4, "little")
    source.write_bytes(source.read_bytes().replace(day, (2**31 - 1).to_bytes(4, "little")))
    for dry_run in (True, False):
        with pytest.raises(LimitExceeded, match="beyond the years") as caught:
            vl.convert(table, source, dry_run=dry_run)
        assert (caught.value.file, caught.value.row) == (str(source), 1)


# --- What is wrong --------------------------------------------------------------------------------


def bad_row(path: Path) -> Path:
    data: list[Any] = [{"typed_value": 1}] * 3 + [{"typed_value": 1, "untyped_value": untyped(2)}]
    pq.write_table(pa.table({"event": column(leaf(pa.int64()), data)}), path)
    return path


def bad_bytes(path: Path) -> Path:
    data = [{"untyped_value": b"\x01\x00\x00"}]
    pq.write_table(pa.table({"event": column(leaf(pa.int64()), data)}), path)
    return path


def no_parquet(path: Path) -> Path:
    path.write_bytes(b"PAR1 and no more")
    return path


@pytest.mark.parametrize(
    ("make", "kind", "row"),
    [
        (bad_row, MalformedFile, 3),
        (bad_bytes, MalformedVariant, 0),
        (no_parquet, MalformedFile, None),
    ],
)
def test_a_bad_file_is_named_and_nothing_is_left(
    tmp_path: Path, make: Any, kind: type[VariantLakeError], row: int | None
) -> None:
    good = tmp_path / "a.parquet"
    vl.parquet.write_table(rows().select(["event"]), good, layout="legacy")
    bad = make(tmp_path / "b.parquet")
    table = tmp_path / "table"
    with pytest.raises(kind) as error:
        vl.convert(table, [good, bad], shredding="VARIANT")
    assert (error.value.file, error.value.row) == (str(bad), row)
    assert not table.exists()


def test_a_bad_document_is_named(tmp_path: Path) -> None:
    source = tmp_path / "x.parquet"
    pq.write_table(pa.table({"event": ["{}", "{"]}), source)
    with pytest.raises(InvalidJson) as error:
        vl.convert(tmp_path / "table", source, json_columns=["event"])
    assert (error.value.file, error.value.row) == (str(source), 1)


def test_columns_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "1.parquet", tmp_path / "2.parquet"
    pq.write_table(pa.table({"x": [1]}), one)
    pq.write_table(pa.table({"x": ["a"]}), other)
    with pytest.raises(InvalidSchema, match="'x' is") as error:
        vl.convert(tmp_path / "table", [one, other])
    assert error.value.file == str(other)
    vl.Table.create(tmp_path / "t", "y BIGINT")
    with pytest.raises(InvalidSchema, match="no column 'x'"):
        vl.convert(tmp_path / "t", one)
    vl.Table.create(tmp_path / "n", "x BIGINT, y BIGINT NOT NULL")
    with pytest.raises(InvalidSchema, match="NOT NULL"):
        vl.convert(tmp_path / "n", one)
    with pytest.raises(InvalidSchema, match="JSON text"):
        vl.convert(tmp_path / "j", one, json_columns=["z"])


def test_a_column_of_another_type_is_cast_where_nothing_is_lost(tmp_path: Path) -> None:
    source = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": pa.array([1, 2], pa.int32())}), source)
    table = tmp_path / "t"
    vl.Table.create(table, "x BIGINT")
    assert actions(vl.convert(table, source)) == [Action.REWRITE]
    assert pq.read_table(stored(table)[0]).schema.field("x").type == pa.int64()


def test_folders_that_cannot_be_converted(tmp_path: Path) -> None:
    with pytest.raises(MissingSource):
        vl.convert(tmp_path / "table", tmp_path / "nothing")
    table = tmp_path / "done"
    vl.convert(table, legacy(tmp_path / "x.parquet"))
    with pytest.raises(InvalidValue, match="Delta table"):
        vl.convert(tmp_path / "table", table)
    (tmp_path / "parts" / "day=1").mkdir(parents=True)
    final(tmp_path / "parts" / "day=1" / "x.parquet")
    with pytest.raises(UnsupportedFeature, match="partition"):
        vl.convert(tmp_path / "table", tmp_path / "parts")


def test_a_glob_takes_no_more_than_its_folder(tmp_path: Path) -> None:
    for day in ("day=1", "day=2"):
        (tmp_path / "parts" / day).mkdir(parents=True)
        final(tmp_path / "parts" / day / "x.parquet")
    with pytest.raises(UnsupportedFeature, match="partition"):
        vl.convert(tmp_path / "table", f"{tmp_path}/parts/*/*.parquet")
    done = vl.convert(tmp_path / "table", f"{tmp_path}/parts/day=1/*.parquet")
    assert done.files_written == 1
    with pytest.raises(InvalidValue, match="Delta table"):
        vl.convert(tmp_path / "other", f"{tmp_path}/table/*.parquet")


@pytest.mark.parametrize("form", ["p%2D1.parquet", "file://{}/p-1.parquet", "{}/p-1.parquet"])
def test_a_file_that_the_table_has_under_another_spelling_is_known(
    tmp_path: Path, form: str
) -> None:
    table = tmp_path / "t"
    table.mkdir()
    final(table / "p-1.parquet")
    vl.convert(table, table / "p-1.parquet")
    (log,) = (table / "_delta_log").glob("*.json")
    text = log.read_text().replace('"path":"p-1.parquet"', f'"path":"{form.format(table)}"')
    log.write_text(text)
    assert actions(vl.convert(table, table / "p-1.parquet")) == [Action.SKIP]


def test_options_of_wrong_types_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": ["1"]}), source)
    with pytest.raises(InvalidValue, match="dry_run"):
        vl.convert(tmp_path / "t", source, dry_run="no")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="json_columns"):
        vl.convert(tmp_path / "t", source, json_columns=[1])  # type: ignore[list-item]
    done = vl.convert(tmp_path / "t", source, json_columns="text", shredding={"text": "VARIANT"})
    assert done.shredding == {"text": "VARIANT"}


def test_partitioned_tables_and_nested_variants_are_refused(tmp_path: Path) -> None:
    source = legacy(tmp_path / "x.parquet")
    vl.Table.create(tmp_path / "t", "id BIGINT, event VARIANT", partition_by=["id"])
    with pytest.raises(UnsupportedFeature, match="partitioned"):
        vl.convert(tmp_path / "t", source)
    nested = pa.StructArray.from_arrays([rows().column("event").combine_chunks()], names=["v"])
    vl.parquet.write_table(pa.table({"s": nested}), tmp_path / "n.parquet", layout="legacy")
    with pytest.raises(UnsupportedFeature, match=r"'s\.v'"):
        vl.convert(tmp_path / "table", tmp_path / "n.parquet")


def test_files_of_no_bytes_are_skipped_and_counted(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    vl.parquet.write_table(rows(), tmp_path / "files/a.parquet")
    (tmp_path / "files/b.parquet").touch()
    assert vl.convert(tmp_path / "t", tmp_path / "files", dry_run=True).files_empty == 1
    result = vl.convert(tmp_path / "t", tmp_path / "files")
    assert (result.rows_written, result.files_empty) == (rows().num_rows, 1)
    with pytest.raises(MalformedFile, match="the file is empty"):
        vl.convert(tmp_path / "u", tmp_path / "files", skip_empty=False)
    with pytest.raises(MalformedFile, match="the file is empty"):
        vl.convert(tmp_path / "u", tmp_path / "files/b.parquet")
    assert not (tmp_path / "u").exists()

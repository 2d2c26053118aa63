"""Profiles of tables, files and documents."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.cli import command
from variantlake.errors import InvalidPath, InvalidSchema, InvalidValue, MissingSource
from variantlake.report.profile import MAX_SHOWN_PATHS, SourceProfile

ROWS = 200


def document(row: int) -> dict[str, object]:
    return {
        "kind": f"k{row % 3}",
        "n": row,
        "odd key": row % 2 == 0,
        "list": [{"x": row}, {"x": None}],
        "rare": {"deep": 1} if row == 0 else None,
        "mixed": row if row % 4 else str(row),
    }


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("documents") / "events.ndjson"
    path.write_text("".join(json.dumps(document(row)) + "\n" for row in range(ROWS)))
    return path


@pytest.fixture(scope="module")
def table(documents: Path, tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    made = vl.Table.create(tmp_path_factory.mktemp("profile") / "t", "event VARIANT, day INT")
    made.append(vl.ndjson(documents), max_rows_per_file=60)
    return made.refresh()


def by_path(found: SourceProfile) -> dict[str, dict[str, Any]]:
    return {each["path"]: each for each in found.to_dict()["paths"]}


def check(found: SourceProfile) -> None:
    assert found.rows == ROWS
    paths = by_path(found)
    assert paths["$.kind"]["share"] == 1
    assert paths["$.kind"]["types"] == {"string": 1.0}
    assert paths["$.kind"]["distinct"] == 3
    assert paths["$.kind"]["column"] == "STRING"
    assert paths["$.kind"]["examples"] == ['"k0"', '"k1"', '"k2"']
    assert paths["$['odd key']"]["types"] == {"boolean": 1.0}
    assert paths["$.mixed"]["types"] == {"integer": 0.75, "string": 0.25}
    assert paths["$.rare"]["types"] == {"null": 0.995, "object": 0.005}
    assert paths["$.rare.deep"]["share"] == 1 / ROWS
    assert paths["$.rare.deep"]["column"] is None
    assert paths["$.list[0].x"]["share"] is None
    assert paths["$.list[0].x"]["count"] == 2 * ROWS
    assert paths["$.list[0].x"]["types"] == {"integer": 0.5, "null": 0.5}
    assert next(iter(paths)) == "$"


def test_documents_a_table_and_a_file_have_the_same_profile(
    documents: Path, table: vl.Table
) -> None:
    check(vl.profile(documents))
    check(vl.profile(vl.ndjson(documents)))
    check(vl.profile(table.uri))
    parts = [vl.profile(Path(table.uri, str(name))) for name in table.files()["path"].to_pylist()]
    assert sum(part.rows for part in parts) == ROWS
    assert {each["path"] for part in parts for each in part.to_dict()["paths"]} == set(
        by_path(vl.profile(documents))
    )


def test_a_sample_of_a_table_is_bounded_and_comes_from_several_files(table: vl.Table) -> None:
    found = vl.profile(table.uri, sample_rows=40)
    assert found.rows == 40
    examples = by_path(vl.profile(table.uri, sample_rows=4))["$.n"]["examples"]
    assert examples == ["0", "60", "120"]  # one row of each of four files


def test_examples_can_be_left_out(table: vl.Table) -> None:
    assert all(not each.examples for each in vl.profile(table.uri, examples=False).paths)


def test_the_share_of_the_text_is_of_bytes(tmp_path: Path) -> None:
    path = tmp_path / "text.ndjson"
    path.write_text(json.dumps({"a": "\u00fc" * 1000}, ensure_ascii=False), encoding="utf-8")
    assert vl.profile(path).saved > 0.99


def test_a_column_of_a_file_is_the_one_of_just_that_name(tmp_path: Path) -> None:
    columns = {name: vl.parquet.variant_array([1]) for name in ("V", "v")}
    vl.parquet.write_table(pa.table(columns), tmp_path / "f.parquet")
    assert [vl.profile(tmp_path / "f.parquet", name).column for name in columns] == ["V", "v"]


def test_keys_that_are_ids_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "ids.ndjson"
    lines = [
        json.dumps({"common": 1, **{f"id{row}-{i}": i for i in range(20)}}) for row in range(600)
    ]
    path.write_text("\n".join(lines))
    found = vl.profile(path)
    assert len(found.paths) == MAX_SHOWN_PATHS
    assert found.more_paths == 600 * 20 + 2 - MAX_SHOWN_PATHS
    assert by_path(found)["$.common"]["share"] == 1


def test_the_view_names_each_column_once(tmp_path: Path) -> None:
    path = tmp_path / "names.ndjson"
    path.write_text('{"a": {"id": 1}, "b": {"id": 2, "ID": 3}, "a_id": 4, "it`s": "x"}\n' * 10)
    text = vl.profile(path).as_view("shop.v", "events")
    assert text.startswith("CREATE VIEW `shop`.`v` AS\nSELECT\n  try_variant_get(`event`, '$.")
    assert text.endswith("\nFROM events")
    names = [line.rpartition(" AS ")[2].rstrip(",") for line in text.splitlines()[2:-1]]
    assert len({name.lower() for name in names}) == len(names)
    assert "`it``s`" in names


def test_bad_input_is_named(table: vl.Table, tmp_path: Path) -> None:
    with pytest.raises(InvalidPath, match="no VARIANT column 'day'"):
        vl.profile(table.uri, "day")
    with pytest.raises(InvalidValue, match="sample_rows is 0"):
        vl.profile(table.uri, sample_rows=0)
    with pytest.raises(MissingSource):
        vl.profile(tmp_path / "none.ndjson")
    plain = vl.Table.create(tmp_path / "plain", "n INT")
    with pytest.raises(InvalidSchema, match="there are 0 VARIANT columns"):
        vl.profile(plain.uri)
    with pytest.raises(InvalidValue, match="no path would become a column"):
        vl.profile(vl.Table.create(tmp_path / "empty", "event VARIANT").uri).as_view("v")


def test_the_command_prints_a_table_json_or_a_view(
    documents: Path,
    table: vl.Table,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    run = partial(command.run, monkeypatch, capfd)
    shown = run("profile", documents)
    assert "$.kind" in shown.out
    assert "k0" in shown.out
    assert "k0" not in run("profile", documents, "--no-examples").out
    parsed = json.loads(run("profile", table.uri, "--json").out)
    assert parsed["rows"] == ROWS
    view = run("profile", table.uri, "--as-view", "v").out
    assert view.splitlines()[0] == "CREATE VIEW `v` AS"
    assert view.endswith(f"FROM delta.`{table.uri}`;\n")
    refused = run("profile", documents, "--as-view", "v")
    assert refused.code == 1
    assert "--over" in refused.err
    assert "FROM shop.t;" in run("profile", documents, "--as-view", "v", "--over", "shop.t").out

"""Bad calls of every public verb: each is an error of ours, in words of the surface."""

# ruff: noqa: ARG005 - not every call needs the place

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as untyped

vl: Any = untyped
"""Bad calls are what a type checker would refuse, so it sees none of them here."""


@dataclass(frozen=True)
class Place:
    """What the calls are about: a table, a handle of an old version, a file that is no table."""

    root: Path
    t: Any
    old: Any

    @property
    def table(self) -> Path:
        return self.root / "t"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("bad")
    (root / "file.txt").write_text("x")
    table = vl.Table.create(root / "t", "id BIGINT, kind STRING, event VARIANT")
    table.append([{"id": 1, "kind": "a", "event": {"a": 1}}])
    return Place(root, table, vl.Table.open(root / "t", 0))


CALLS: dict[str, Callable[[Place], object]] = {
    "create_no_columns": lambda p: vl.Table.create(p.root / "n1", pa.schema([])),
    "create_empty": lambda p: vl.Table.create(p.root / "n2", ""),
    "create_int": lambda p: vl.Table.create(p.root / "n3", 7),
    "create_loc_int": lambda p: vl.Table.create(7, "id INT"),
    "create_loc_none": lambda p: vl.Table.create(None, "id INT"),
    "create_in_file": lambda p: vl.Table.create(p.root / "file.txt", "id INT"),
    "create_again": lambda p: vl.Table.create(p.table, "id INT"),
    "create_part_unknown": lambda p: vl.Table.create(p.root / "n4", "id INT", partition_by="nope"),
    "create_part_int": lambda p: vl.Table.create(p.root / "n4", "id INT", partition_by=7),
    "create_props_list": lambda p: vl.Table.create(p.root / "n5", "id INT", properties=["a"]),
    "create_props_int": lambda p: vl.Table.create(p.root / "n5", "id INT", properties={"a": 1}),
    "create_shredding_str": lambda p: vl.Table.create(
        p.root / "n", "e VARIANT, f VARIANT", shredding="a INT"
    ),
    "create_shredding_int": lambda p: vl.Table.create(p.root / "n", "e VARIANT", shredding=7),
    "unset_nothing": lambda p: p.t.unset_properties(),
    "update_by_path": lambda p: p.t.update({vl.path("event:a"): 1}),
    "create_shredding": lambda p: vl.Table.create(p.root / "n", "e VARIANT", shredding={"f": "a"}),
    "create_cluster_int": lambda p: vl.Table.create(p.root / "n7", "event VARIANT", cluster_by=7),
    "create_name_int": lambda p: vl.Table.create(p.root / "n8", "event VARIANT", name=7),
    "open_missing": lambda p: vl.Table.open(p.root / "nope"),
    "open_file": lambda p: vl.Table.open(p.root / "file.txt"),
    "open_int": lambda p: vl.Table.open(7),
    "open_empty": lambda p: vl.Table.open(""),
    "open_version_str": lambda p: vl.Table.open(p.table, "3"),
    "open_version_neg": lambda p: vl.Table.open(p.table, -1),
    "open_version_big": lambda p: vl.Table.open(p.table, 99),
    "open_version_float": lambda p: vl.Table.open(p.table, 1.5),
    "open_time_int": lambda p: vl.Table.open(p.table, timestamp=7),
    "open_time_text": lambda p: vl.Table.open(p.table, timestamp="yesterday"),
    "open_both": lambda p: vl.Table.open(p.table, 0, timestamp="2026-01-01"),
    "open_scheme": lambda p: vl.Table.open("ftp://x/y"),
    "of_int": lambda p: vl.Table.of(7),
    "scan_unknown": lambda p: p.t.scan("nope"),
    "scan_int": lambda p: p.t.scan(7),
    "scan_list_int": lambda p: p.t.scan([7]),
    "scan_empty": lambda p: p.t.scan([]),
    "scan_where_int": lambda p: p.t.scan(where=7),
    "scan_where_empty": lambda p: p.t.scan(where=""),
    "scan_where_bool": lambda p: p.t.scan(where=True),
    "scan_where_bad": lambda p: p.t.scan(where="id ="),
    "scan_limit_neg": lambda p: p.t.scan(limit=-1),
    "scan_limit_str": lambda p: p.t.scan(limit="5"),
    "scan_limit_bool": lambda p: p.t.scan(limit=True),
    "scan_path_untyped": lambda p: p.t.scan(vl.path("event:a")),
    "sql_int": lambda p: p.t.sql(7),
    "sql_empty": lambda p: p.t.sql(""),
    "sql_engine": lambda p: p.t.sql("SELECT 1 FROM t", engine="dukdb"),
    "sql_tables": lambda p: p.t.sql("SELECT 1 FROM t", tables={"a": 7}, engine="duckdb"),
    "sql_unknown": lambda p: p.t.sql("SELECT nope FROM t"),
    "sql_table": lambda p: p.t.sql("SELECT id FROM other"),
    "changes_none": lambda p: p.t.changes(),
    "changes_str": lambda p: p.t.changes("a"),
    "changes_neg": lambda p: p.t.changes(-1),
    "changes_back": lambda p: p.t.changes(1,0),
    "append_int": lambda p: p.t.append(7),
    "append_none": lambda p: p.t.append(None),
    "append_missing": lambda p: p.t.append(p.root / "nope.ndjson"),
    "append_column": lambda p: p.t.append([{"a":1}], column="nope"),
    "append_mode": lambda p: p.t.append([{"a":1}], mode="strickt"),
    "append_option": lambda p: p.t.append([{"a":1}], moed="strict"),
    "append_json_columns": lambda p: p.t.append([{"id":1}], json_columns=["nope"]),
    "append_json_columns_int": lambda p: p.t.append([{"id":1}], json_columns=7),
    "append_max_bad": lambda p: p.t.append([{"id":1}], max_bad="many", mode="null"),
    "append_load_id": lambda p: p.t.append([{"id":1}], load_id=7),
    "append_size": lambda p: p.t.append([{"id":1}], target_file_size="64XB"),
    "append_rows": lambda p: p.t.append([{"id":1}], max_rows_per_file=-1),
    "append_order": lambda p: p.t.append([{"id":1}], order_by="nope"),
    "append_order_int": lambda p: p.t.append([{"id":1}], order_by=7),
    "append_type": lambda p: p.t.append([{"id":"x"}]),
    "append_fixed": lambda p: p.old.append([{"id":1}]),
    "overwrite_where": lambda p: p.t.overwrite([{"id":1}], where=7),
    "overwrite_where2": lambda p: p.t.overwrite([{"id":1}], where={"nope":1}),
    "overwrite_version": lambda p: p.t.overwrite([{"id":1}], expected_version="x"),
    "overwrite_both": lambda p: p.t.overwrite([{"id":1}], where="id=1", partitions=True),
    "delete_int": lambda p: p.t.delete(7),
    "delete_empty": lambda p: p.t.delete(""),
    "delete_unknown": lambda p: p.t.delete("nope = 1"),
    "update_none": lambda p: p.t.update(None),
    "update_empty": lambda p: p.t.update({}),
    "update_unknown": lambda p: p.t.update({"nope":1}),
    "update_obj": lambda p: p.t.update({"kind":object()}),
    "update_obj_variant": lambda p: p.t.update({"event":object()}),
    "update_where": lambda p: p.t.update({"kind":"x"}, 7),
    "update_str": lambda p: p.t.update("kind"),
    "merge_int": lambda p: p.t.merge(7, "t.id = s.id"),
    "merge_on": lambda p: p.t.merge([{"id":1}], 7),
    "merge_on_empty": lambda p: p.t.merge([{"id":1}], ""),
    "merge_clause": lambda p: p.t.merge([{"id":1}], "t.id=s.id", "WHEN"),
    "merge_clause_int": lambda p: p.t.merge([{"id":1}], "t.id=s.id", 7),
    "merge_alias": lambda p: p.t.merge([{"id":1}], "t.id=s.id", target_alias=7),
    "merge_builder": lambda p: p.t.merge_builder([{"id":1}], "t.id=s.id").execute(),
    "merge_builder2": lambda p: p.t.merge_builder([{"id":1}], "t.id=s.id").when_matched_update({}),
    "upsert_key": lambda p: p.t.upsert([{"id":1}], "nope"),
    "upsert_key_int": lambda p: p.t.upsert([{"id":1}], 7),
    "upsert_key_empty": lambda p: p.t.upsert([{"id":1}], []),
    "erase_none": lambda p: p.t.erase(None),
    "erase_int": lambda p: p.t.erase(7),
    "setp_none": lambda p: p.t.set_properties(None),
    "setp_list": lambda p: p.t.set_properties(["a"]),
    "setp_val": lambda p: p.t.set_properties({"delta.appendOnly": "perhaps"}),
    "setp_val_bool": lambda p: p.t.set_properties({"delta.appendOnly": True}),
    "setp_name": lambda p: p.t.set_properties({"delta.apendOnly": "true"}),
    "unset_int": lambda p: p.t.unset_properties(7),
    "cluster_none": lambda p: p.t.cluster(),
    "cluster_budget": lambda p: p.t.cluster(budget=-1),
    "set_clustering": lambda p: p.t.set_clustering("nope"),
    "set_clustering_int": lambda p: p.t.set_clustering(7),
    "set_contract": lambda p: p.t.set_contract({"oneOf": []}),
    "set_contract_int": lambda p: p.t.set_contract(7),
    "set_contract_file": lambda p: p.t.set_contract("nope.json"),
    "set_contract_column": lambda p: p.t.set_contract({}, column=7),
    "append_contract": lambda p: p.t.append([], contract=[1]),
    "check_contract": lambda p: p.t.check_contract(),
    "check_contract_int": lambda p: p.t.check_contract(7),
    "drop_constraint": lambda p: p.t.drop_constraint("nope"),
    "drop_constraint_int": lambda p: p.t.drop_constraint(7),
    "drop_not_null": lambda p: p.t.drop_not_null("nope"),
    "drop_not_null_int": lambda p: p.t.drop_not_null(7),
    "add_column": lambda p: p.t.add_column("id INT"),
    "add_column_int": lambda p: p.t.add_column(7),
    "alter_int": lambda p: p.t.alter(7),
    "alter_text": lambda p: p.t.alter("nonsense"),
    "rename_column": lambda p: p.t.rename_column("nope", "a"),
    "rename_column_int": lambda p: p.t.rename_column(7, "a"),
    "rename_column_to_int": lambda p: p.t.rename_column("id", 7),
    "drop_columns": lambda p: p.t.drop_columns("nope"),
    "drop_columns_int": lambda p: p.t.drop_columns(7),
    "drop_columns_none": lambda p: p.t.drop_columns(),
    "set_comment": lambda p: p.t.set_comment("x", "nope"),
    "set_comment_int": lambda p: p.t.set_comment(7),
    "move_column": lambda p: p.t.move_column("nope"),
    "move_column_int": lambda p: p.t.move_column(7),
    "move_column_after": lambda p: p.t.move_column("id", after=7),
    "change_type": lambda p: p.t.change_type("id", "INT"),
    "change_type_int": lambda p: p.t.change_type("id", 7),
    "set_default": lambda p: p.t.set_default("nope", "1"),
    "set_default_int": lambda p: p.t.set_default("id", 7),
    "add_constraint": lambda p: p.t.add_constraint("a", "nope > 1"),
    "add_constraint_int": lambda p: p.t.add_constraint("a", 7),
    "add_constraint_name": lambda p: p.t.add_constraint(7, "id > 0"),
    "set_not_null": lambda p: p.t.set_not_null("nope"),
    "set_not_null_int": lambda p: p.t.set_not_null(7),
    "tag_int": lambda p: p.t.tag(7),
    "tag_number": lambda p: p.t.tag("7"),
    "tag_version": lambda p: p.t.tag("a", 99),
    "untag": lambda p: p.t.untag("nope"),
    "untag_int": lambda p: p.t.untag(7),
    "stage_int": lambda p: p.t.stage(7),
    "stage_column": lambda p: p.t.stage([{"a": 1}], column="nope"),
    "clone_int": lambda p: p.t.clone(7),
    "clone_here": lambda p: p.t.clone(p.table),
    "clone_version": lambda p: p.t.clone(p.root / "n", version=99),
    "drift": lambda p: p.t.drift("nope"),
    "drift_int": lambda p: p.t.drift(7),
    "reshred": lambda p: p.t.reshred("a INTT"),
    "reshred_int": lambda p: p.t.reshred(7),
    "reshred_map": lambda p: p.t.reshred({"nope":"a INT"}),
    "reshred_where": lambda p: p.t.reshred(where=7),
    "drop_feature": lambda p: p.t.drop_feature("nope"),
    "drop_feature_int": lambda p: p.t.drop_feature(7),
    "digest": lambda p: p.t.digest(7),
    "check_rewrite": lambda p: p.t.check_rewrite("a"),
    "check_rewrite_neg": lambda p: p.t.check_rewrite(-1),
    "optimize_where": lambda p: p.t.optimize(where=7),
    "optimize_size": lambda p: p.t.optimize(target_file_size=-1),
    "optimize_size_s": lambda p: p.t.optimize(target_file_size="x"),
    "optimize_share": lambda p: p.t.optimize(max_deleted_share="x"),
    "vacuum": lambda p: p.t.vacuum(-1),
    "vacuum_s": lambda p: p.t.vacuum("soon"),
    "vacuum_zero": lambda p: p.t.vacuum(0),
    "restore": lambda p: p.t.restore(),
    "restore_s": lambda p: p.t.restore("a"),
    "restore_big": lambda p: p.t.restore(99),
    "restore_missing": lambda p: p.t.restore(0, missing="skipp"),
    "loads": lambda p: p.t.loads("nope"),
    "loads_state": lambda p: p.t.loads(state="lost"),
    "loads_limit": lambda p: p.t.loads(limit=-1),
    "retry": lambda p: p.t.retry_loads("nope"),
    "history": lambda p: p.t.history(-1),
    "history_s": lambda p: p.t.history("a"),
    "autoload": lambda p: vl.autoload(p.table, p.root / "nope"),
    "autoload_int": lambda p: vl.autoload(p.table, 7),
    "autoload_every": lambda p: vl.autoload(p.table, p.root, every="soon"),
    "autoload_neg": lambda p: vl.autoload(p.table, p.root, every=-1),
    "convert": lambda p: vl.convert(p.root / "c", p.root / "nope"),
    "convert_int": lambda p: vl.convert(p.root / "c", 7),
    "convert_json": lambda p: vl.convert(p.root / "c", p.root / "file.txt"),
    "profile": lambda p: vl.profile(p.root / "nope"),
    "profile_int": lambda p: vl.profile(7),
    "ndjson_int": lambda p: vl.ndjson(7),
    "ndjson_none": lambda p: vl.ndjson(),
    "parse_json": lambda p: vl.parse_json(7),
    "to_json": lambda p: vl.to_json("{}"),
    "parse_json_bad": lambda p: vl.parse_json("{"),
    "storage": lambda p: vl.set_storage_options(7),
    "storage2": lambda p: vl.set_storage_options({"a": 1}),
    "abs": lambda p: vl.set_absolute_paths(7),
    "variant_set": lambda p: vl.variant_set(7, "a", 1),
    "variant_set2": lambda p: vl.variant_set(vl.parse_json("{}"), 7, 1),
    "scan_polars": lambda p: vl.scan_polars(7),
    "duckdb": lambda p: vl.duckdb.attach(7, "t", p.t),
    "read_table": lambda p: vl.parquet.read_table(p.root / "nope"),
    "read_table_txt": lambda p: vl.parquet.read_table(p.root / "file.txt"),
    "export": lambda p: p.t.export(7),
    "export_form": lambda p: p.t.export(p.root / "x.txt"),
    "export_form2": lambda p: p.t.export(p.root / "x", "xml"),
    "export_where": lambda p: p.t.export(p.root / "x.csv", where=7),
    "head": lambda p: p.t.scan().head(-1),
    "head_s": lambda p: p.t.scan().head("a"),
}  # fmt: skip

INTERNAL = re.compile(
    r"object (has no attribute|is not)|NoneType|\bvariantlake\.(?!spark\.)\w+\.|\b_\w+\("
)


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_call_is_an_error_in_words_of_the_surface(place: Place, name: str) -> None:
    version = place.t.version
    with pytest.raises(vl.VariantLakeError) as caught:
        CALLS[name](place)
    assert caught.value.message
    assert not INTERNAL.search(str(caught.value)), str(caught.value)
    assert place.t.refresh().version == version
    assert sorted(path.name for path in place.root.iterdir()) == ["file.txt", "t"]


def test_every_verb_of_a_table_is_called_badly() -> None:
    verbs = {name for name, each in vars(untyped.Table).items() if not name.startswith("_")}
    verbs -= {name for name, each in vars(untyped.Table).items() if isinstance(each, property)}
    called = {verb for verb in verbs if f".{verb}(" in Path(__file__).read_text()}
    # Without arguments, or with flags alone: whatever is given is true or false.
    assert verbs - called == {
        "checkpoint",
        "analyze",
        "files",
        "health",
        "report",
        "unshred",
        "stages",
        "tags",
    }


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (lambda p: p.t.append(7), "an int is neither", "Table.append takes paths"),
        (lambda p: vl.Table.open(7), "not by an int", "give its location"),
        (lambda p: p.t.append(b"\xff\xfe"), "the given bytes: the file is text in UTF-16", "iconv"),
        (lambda p: vl.Table.create(p.table, "id INT"), "a table already", "exist_ok=True"),
        (lambda p: p.t.scan(where="event:a = 1"), "event:a is a Variant", "a type: event:a::int"),
        (lambda p: p.t.scan(where="event:a = 1.5"), "event:a is a Variant", "event:a::double"),
        (lambda p: p.t.scan(where="event:a::int = 'x'"), "which is int", "event:a::string = 'x'$"),
        (lambda p: p.t.scan("count(*)"), "columns and paths", "Table.sql"),
        (lambda p: p.t.scan(where="id ="), "does not parse: an operand is missing$", "a path is"),
        (
            lambda p: p.t.sql("SELECT 1 FROM t", tables={"a": pa.table({})}, engine="duckdb"),
            "the table 'a' is of the type Table, not a vl.Table$",
            "vl.duckdb.attach joins with frames",
        ),
        (
            lambda p: p.t.merge([{"id": 1}], "t.id = s.id"),
            r"UPDATE \* needs the column",
            "^merge_schema=True keeps what the source lacks",
        ),
        (
            lambda p: p.t.update({"event:a.x": 1}),
            "expected an object, found",
            "^set the parent first; .* NULL for the whole Variant",
        ),
        (lambda p: p.t.sql("SELECT FROM"), "table name but got the end$", "a path is"),
        (lambda p: p.t.sql("SELECT id FROM t t t"), "does not parse", "a path is"),
        (lambda p: p.t.sql("  "), "the query is empty", ""),
        (lambda p: p.t.sql("DELETE FROM t"), "DELETE is not supported", "^lake.sql.*Table.delete"),
        (
            lambda p: p.t.update({"id": "a"}),
            "'id' is BIGINT, and does not take a str, 'a'",
            r"vl.expr\('a'\) is SQL",
        ),
        (lambda p: p.t.set_default("id", "id +"), "'id [+]' does not parse", "a path is"),
        (lambda p: p.t.vacuum("soon"), "retention is 'soon'", "30s, 5m, 1h or 7d, or a timedelta"),
    ],
)
def test_a_bad_call_says_what_to_do(
    call: Callable[[Place], object], message: str, hint: str, place: Place
) -> None:
    with pytest.raises(vl.VariantLakeError) as caught:
        call(place)
    assert re.search(message, caught.value.sentence().split(", in '")[0])
    assert re.search(hint, caught.value.hint)
    assert "sqlglot" not in str(caught.value)
    assert "Token" not in str(caught.value)

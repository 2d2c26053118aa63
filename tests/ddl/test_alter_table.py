"""ALTER TABLE in this process: what changes in the log, what stays readable, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.table.test_table import rows
from variantlake.delta.protocol.clustering import clustering_names
from variantlake.delta.schema.references import references, speaks_of
from variantlake.errors import (
    InvalidQuery,
    InvalidSchema,
    InvalidValue,
    UnsupportedFeature,
)

MAPPED = {"delta.columnMapping.mode": "name"}


def _table(folder: Path, **how: Any) -> vl.Table:
    table = vl.Table.create(
        folder,
        "event VARIANT, n INT, s STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<q: INT, r: INT>>,"
        " p STRING",
        partition_by=["p"],
        **how,
    )
    table.append(_data(1), json_columns=["event"])
    return table


def _data(n: int) -> pa.Table:
    return pa.table(
        {
            "event": [f'{{"a": {n}, "k": "k{n}"}}'],
            "n": pa.array([n], pa.int32()),
            "s": pa.array(
                [{"x": n, "y": f"y{n}"}], pa.struct([("x", pa.int32()), ("y", pa.string())])
            ),
            "l": pa.array(
                [[{"q": n, "r": -n}]], pa.list_(pa.struct([("q", pa.int32()), ("r", pa.int32())]))
            ),
            "p": [f"p{n}"],
        }
    )


def _last(table: vl.Table) -> tuple[str | None, dict[str, Any]]:
    (entry,) = table.refresh().history(1)
    return entry.operation, entry.info["operationParameters"]


def test_columns_are_renamed_at_each_depth(tmp_path: Path) -> None:
    table = _table(tmp_path, properties=MAPPED)
    assert table.rename_column("event", "doc").version == 2
    assert _last(table) == ("RENAME COLUMN", {"oldColumnPath": "event", "newColumnPath": "doc"})
    table.rename_column("S.X", "xx")
    assert _last(table)[1] == {"oldColumnPath": "s.x", "newColumnPath": "s.xx"}
    table.alter("RENAME COLUMN l.element.q TO `a b`")
    table.rename_column("p", "part")
    more = _data(2).rename_columns(["doc", "n", "s", "l", "part"])
    inner = pa.array([{"xx": 2, "y": "y2"}], pa.struct([("xx", pa.int32()), ("y", pa.string())]))
    lists = pa.array(
        [[{"a b": 2, "r": -2}]], pa.list_(pa.struct([("a b", pa.int32()), ("r", pa.int32())]))
    )
    more = more.set_column(2, "s", inner).set_column(3, "l", lists)
    table.append(more, json_columns=["doc"])
    assert sorted(rows(tmp_path), key=lambda row: row["n"]) == [
        {
            "doc": {"a": n, "k": f"k{n}"},
            "n": n,
            "s": {"xx": n, "y": f"y{n}"},
            "l": [{"a b": n, "r": -n}],
            "part": f"p{n}",
        }
        for n in (1, 2)
    ]
    found = table.scan("doc:k::string AS k", "doc:a::int = 1 AND part = 'p1'")
    assert found.to_arrow().to_pylist() == [{"k": "k1"}]
    # The statistics of the Variant are still those of the column: nothing is read for the other.
    report = table.sql("SELECT n FROM t WHERE doc:a::int > 1").explain().to_dict()
    assert "doc" in json.dumps(report)
    assert vl.Table.open(tmp_path, version=1).schema.get("event") is not None


def test_what_names_a_column_goes_with_it(tmp_path: Path) -> None:
    table = vl.Table.create(
        tmp_path,
        "event VARIANT, n INT, s STRUCT<x: INT>",
        properties={
            **MAPPED,
            "delta.dataSkippingStatsColumns": "n,s.x",
            "variantlake.shredding.event": "kind STRING",
            "variantlake.hints.event": "kind STRING",
        },
    )
    table.set_clustering("event:kind::string", "n")
    physical = table.schema.fields[0].physical_name
    table.rename_column("event", "ev ent")
    table.rename_column("n", "m")
    table.rename_column("s", "t")
    found = table.refresh().properties
    assert found["variantlake.clusterBy"] == "`ev ent`:kind::string, m"
    assert found["delta.dataSkippingStatsColumns"] == "m,t.x"
    assert found[f"variantlake.shredding.{physical}"] == "kind STRING"
    for column in ("ev ent", "m"):
        with pytest.raises(InvalidSchema, match=r"clustered by `ev ent`:kind::string, m"):
            table.drop_columns(column)
    table.set_clustering()
    table.drop_columns("ev ent")
    assert not [key for key in table.refresh().properties if physical in key]
    table.drop_columns("t")
    assert table.refresh().properties["delta.dataSkippingStatsColumns"] == "m"


def test_dropped_columns_leave_their_files(tmp_path: Path) -> None:
    table = _table(tmp_path, properties=MAPPED)
    files = table.files()["path"].to_pylist()
    assert table.drop_columns("event", "s.x", "l.element.q").version == 2
    assert _last(table) == ("DROP COLUMNS", {"columns": '["event","s.x","l.element.q"]'})
    assert rows(tmp_path) == [{"n": 1, "s": {"y": "y1"}, "l": [{"r": -1}], "p": "p1"}]
    assert table.files()["path"].to_pylist() == files
    # A column of the same name is another one.
    table.add_column("event STRING")
    assert rows(tmp_path)[0]["event"] is None
    assert table.drop_columns("nothing", missing_ok=True).version == 3
    assert table.refresh().version == 3


def test_column_mapping_is_switched_on_only_where_asked_for(tmp_path: Path) -> None:
    table = _table(tmp_path)
    with pytest.raises(UnsupportedFeature, match="needs column mapping") as caught:
        table.rename_column("n", "m")
    assert "enable_column_mapping=True" in (caught.value.hint or "")
    with pytest.raises(UnsupportedFeature, match="needs column mapping"):
        table.alter("DROP COLUMN n")
    assert table.rename_column("n", "m", enable_column_mapping=True).version == 2
    newest = table.refresh()
    assert newest.properties["delta.columnMapping.mode"] == "name"
    assert "columnMapping" in (newest.protocol.reader_features or ())
    assert rows(tmp_path)[0]["m"] == 1


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ("RENAME COLUMN nope TO a", InvalidSchema, "no column 'nope'"),
        ("RENAME COLUMN s.z TO a", InvalidSchema, r"no column 's\.z'"),
        ("RENAME COLUMN n.z TO a", InvalidSchema, "n is integer, and has no 'z'"),
        ("RENAME COLUMN n TO S", InvalidSchema, "a column 's' already"),
        ("RENAME COLUMN n TO N", InvalidSchema, "a column 'n' already"),
        ("RENAME COLUMN s.x TO Y", InvalidSchema, r"a column 's\.y' already"),
        ("RENAME COLUMN l.element TO e", InvalidSchema, "part of an array"),
        ("DROP COLUMN nope", InvalidSchema, "no column 'nope'"),
        ("DROP COLUMN p", InvalidSchema, "partitioned by it"),
        ("DROP COLUMNS (s.x, s.y)", InvalidSchema, "only column of the struct s"),
        ("DROP COLUMNS (event, n, s, l)", InvalidSchema, "not partitioned by"),
        ("DROP COLUMNS (s, s.x)", InvalidSchema, "dropped twice"),
        ("ADD COLUMN N INT", InvalidSchema, "a column 'N' already"),
        ("ADD COLUMN m INT NOT NULL", InvalidSchema, "NOT NULL"),
        ("ADD COLUMN m INT DEFAULT 3", InvalidSchema, "existing rows would not get"),
        ("ADD COLUMN m INT GENERATED ALWAYS AS (n + 1)", InvalidSchema, "m is generated"),
        ("ADD COLUMN m BIGINT GENERATED ALWAYS AS IDENTITY", InvalidSchema, "m is generated"),
        ("ADD COLUMN m INT AFTER nope", InvalidSchema, "no column 'nope'"),
        ("ADD COLUMN n.m INT", InvalidSchema, "has no fields"),
        ("ALTER COLUMN n TYPE BIGINT", UnsupportedFeature, "needs type widening"),
        ("ALTER COLUMN n TYPE SMALLINT", InvalidSchema, "does not widen to short"),
        ("ALTER COLUMN n TYPE DECIMAL(9,0)", InvalidSchema, "does not widen"),
        ("ALTER COLUMN event TYPE STRING", InvalidSchema, "does not widen to string"),
        ("ALTER COLUMN n AFTER s.x", InvalidQuery, "does not change a table"),
        ("ALTER COLUMN n AFTER nope", InvalidSchema, "no column 'nope'"),
        ("ALTER COLUMN s.x SET DEFAULT 1", InvalidSchema, "field of a struct"),
        ("ALTER COLUMN s.x SET NOT NULL", UnsupportedFeature, "field of a struct"),
        ("ALTER COLUMN n SET DEFAULT n + 1", InvalidQuery, "n"),
        ("ALTER COLUMN n SET DEFAULT 'abc'", UnsupportedFeature, "store STRING values in"),
        ("ADD CONSTRAINT c CHECK (n > 1)", InvalidValue, "1 rows break"),
        ("ADD CONSTRAINT c CHECK (nope > 1)", InvalidQuery, "nope"),
        ("DROP CONSTRAINT c", InvalidValue, "no constraint 'c'"),
        ("UNSET TBLPROPERTIES ('a')", InvalidValue, "no property 'a'"),
        ("SET TBLPROPERTIES ('delta.nope' = 'x')", InvalidValue, "no property"),
        ("RENAME TO other", InvalidQuery, "does not change a table"),
        ("RENAME COLUMN n TO a.b", InvalidQuery, "does not change a table"),
    ],
    ids=str,
)
def test_a_change_that_cannot_be(
    tmp_path: Path, change: str, error: type[Exception], message: str
) -> None:
    table = _table(tmp_path, properties=MAPPED)
    with pytest.raises(error, match=message):
        table.alter(change)
    assert table.refresh().version == 1


def test_what_expressions_use_stays(tmp_path: Path) -> None:
    constraint = {"delta.constraints.c": "s.x > 0 AND n < 5"}
    columns = "n INT, s STRUCT<x: INT, y: STRING>"
    table = vl.Table.create(tmp_path, columns, properties={**MAPPED, **constraint})
    for change in ("RENAME COLUMN n TO m", "DROP COLUMN s", "RENAME COLUMN s.x TO z"):
        with pytest.raises(UnsupportedFeature, match=r"the constraint 'c' .* uses it") as caught:
            table.alter(change)
        assert "drop_constraint('c')" in (caught.value.hint or "")
    table.rename_column("s.y", "z")
    table.alter("DROP CONSTRAINT C")
    assert _last(table) == (
        "DROP CONSTRAINT",
        {"name": "C", "expr": "s.x > 0 AND n < 5", "existed": "true"},
    )
    table.alter("DROP CONSTRAINT IF EXISTS c")
    table.rename_column("n", "m")
    table.add_constraint("d", "m BETWEEN 1 AND 5")
    assert _last(table) == ("ADD CONSTRAINT", {"name": "d", "expr": "m BETWEEN 1 AND 5"})


def test_comments_places_and_nulls(tmp_path: Path) -> None:
    table = _table(tmp_path)
    table.alter("ALTER COLUMN s.x COMMENT 'it''s x'")
    operation, parameters = _last(table)
    assert operation == "CHANGE COLUMN"
    assert json.loads(parameters["column"]) == {
        "name": "s.x",
        "type": "integer",
        "nullable": True,
        "metadata": {"comment": "it's x"},
    }
    table.set_comment("what it is", "s")
    assert json.loads(_last(table)[1]["column"])["type"] == "struct"
    table.set_comment("the table")
    assert _last(table) == ("SET TBLPROPERTIES", {"properties": '{"comment":"the table"}'})
    assert table.refresh().snapshot.metadata.description == "the table"
    table.alter("UNSET TBLPROPERTIES ('comment')")
    assert table.refresh().snapshot.metadata.description is None
    table.move_column("p")
    assert _last(table)[1]["position"] == "FIRST"
    table.move_column("s.x", after="y")
    assert _last(table)[1]["position"] == "AFTER y"
    names = [field.name for field in table.refresh().schema.fields]
    assert names == ["p", "event", "n", "s", "l"]
    assert rows(tmp_path)[0]["s"] == {"y": "y1", "x": 1}
    table.set_not_null("n")
    with pytest.raises(InvalidValue):
        table.append(pa.table({"n": pa.nulls(1, pa.int32())}))
    table.drop_not_null("n")
    table.append(pa.table({"n": pa.nulls(1, pa.int32())}))
    with pytest.raises(InvalidValue, match="1 rows have NULL in column 'n'"):
        table.set_not_null("n")


def test_a_column_behind_itself_stays(tmp_path: Path) -> None:
    """As in Delta Spark."""
    table = _table(tmp_path)
    names = [field.name for field in table.schema.fields]
    table.alter("ALTER COLUMN n AFTER N")
    assert [field.name for field in table.refresh().schema.fields] == names


def test_paths_of_variants_cluster_a_table_in_the_place_of_columns(tmp_path: Path) -> None:
    table = vl.Table.create(
        tmp_path, "event VARIANT, n INT", shredding={"event": "a INT"}, cluster_by="n"
    )

    def clustering() -> tuple[object, object]:
        found = table.refresh()
        domains = clustering_names(found.schema, found.snapshot.domains)
        return found.properties.get("variantlake.clusterBy"), domains

    table.alter("CLUSTER BY (event:a::int, n)")
    assert clustering() == ("event:a::int, n", ())
    table.alter("CLUSTER BY (n)")
    assert clustering() == (None, (("n",),))
    table.alter("CLUSTER BY NONE")
    table.alter("CLUSTER BY (`event`:a::int)")
    table.alter("CLUSTER BY NONE")
    assert clustering() == (None, ())
    with pytest.raises(InvalidQuery, match="does not change a table"):
        table.alter("CLUSTER BY (n + 1)")


def test_paths_alone_end_with_none(tmp_path: Path) -> None:
    table = _table(tmp_path)
    table.alter("CLUSTER BY (event:a::bigint)")
    assert table.properties["variantlake.clusterBy"] == "event:a::bigint"
    table.alter("CLUSTER BY NONE")
    assert "variantlake.clusterBy" not in table.properties


def test_a_mapping_that_is_off_is_unset(tmp_path: Path) -> None:
    table = _table(tmp_path, properties={"delta.columnMapping.mode": "none"})
    table.alter("UNSET TBLPROPERTIES ('delta.columnMapping.mode')")
    assert "delta.columnMapping.mode" not in table.properties
    mapped = _table(tmp_path / "mapped", properties=MAPPED)
    with pytest.raises(InvalidValue, match="files depend on it"):
        mapped.unset_properties("delta.columnMapping.maxColumnId")


def test_a_default_of_a_variant_that_another_writer_set_stays(tmp_path: Path) -> None:
    """Delta Spark takes one; we set none."""
    vl.Table.create(tmp_path, "event VARIANT, n INT DEFAULT 1")
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (metadata,) = (each["metaData"] for each in actions if "metaData" in each)
    schema = json.loads(metadata["schemaString"])
    schema["fields"][0]["metadata"]["CURRENT_DEFAULT"] = "parse_json('1')"
    metadata["schemaString"] = json.dumps(schema)
    log.write_text("\n".join(map(json.dumps, actions)))
    for file in log.parent.glob("*.crc"):
        file.unlink()
    table = vl.Table.open(tmp_path)
    table.alter("ALTER COLUMN n COMMENT 'c'")
    table.alter("ADD COLUMN m INT")
    assert table.refresh().schema.fields[0].default == "parse_json('1')"
    with pytest.raises(InvalidSchema, match="whose default is NULL"):
        table.alter("ALTER COLUMN event SET DEFAULT parse_json('2')")
    table.alter("ALTER COLUMN event DROP DEFAULT")
    assert table.refresh().schema.fields[0].default is None


def test_several_columns_change_in_one_commit(tmp_path: Path) -> None:
    widened = {**MAPPED, "delta.enableTypeWidening": "true"}
    table = _table(tmp_path, properties=widened)
    assert table.alter("ALTER COLUMN n TYPE BIGINT, s.y COMMENT 'c', event AFTER n").version == 2
    assert [field.name for field in table.schema.fields] == ["n", "event", "s", "l", "p"]
    operation, parameters = _last(table)
    assert operation == "CHANGE COLUMNS"
    found = {each["name"]: each for each in json.loads(parameters["columns"])}
    assert found["n"]["type"] == "long"
    assert found["s.y"]["metadata"]["comment"] == "c"
    assert found["event"]["position"] == "AFTER n"
    table.alter("CHANGE COLUMN s.x x BIGINT COMMENT 'w' AFTER y")
    operation, parameters = _last(table)
    assert (operation, parameters["position"]) == ("CHANGE COLUMN", "AFTER y")
    assert table.scan(["s"]).to_arrow().to_pylist() == [{"s": {"y": "y1", "x": 1}}]
    version = table.version
    assert table.alter("CHANGE COLUMN n n BIGINT").version == version
    table.alter("ALTER COLUMN n SET NOT NULL, l COMMENT 'parts'")
    assert not table.schema.fields[0].nullable
    for change, error in (
        ("ALTER COLUMN n COMMENT 'x', nope COMMENT 'y'", InvalidSchema),
        ("ALTER COLUMN s COMMENT 'x', s.x FIRST", InvalidSchema),
        ("CHANGE COLUMN n m BIGINT", InvalidQuery),
        ("CHANGE COLUMN n n INT", InvalidSchema),
        ("ALTER COLUMN n, s FIRST", InvalidQuery),
        ("CLUSTER BY (n)", InvalidSchema),
    ):
        with pytest.raises(error):
            table.alter(change)
    assert table.refresh().version == version + 1


def test_columns_are_added_at_their_places(tmp_path: Path) -> None:
    table = _table(tmp_path)
    table.alter("ADD COLUMNS (a INT COMMENT 'c' FIRST, s.z BIGINT AFTER x, b MAP<STRING, INT>)")
    operation, parameters = _last(table)
    assert operation == "ADD COLUMNS"
    assert json.loads(parameters["columns"]) == [
        {
            "column": {
                "name": "a", "type": "integer", "nullable": True, "metadata": {"comment": "c"}
            },
            "position": "FIRST",
        },
        {
            "column": {"name": "s.z", "type": "long", "nullable": True, "metadata": {}},
            "position": "AFTER x",
        },
        {"column": {"name": "b", "type": "map", "nullable": True, "metadata": {}}},
    ]  # fmt: skip
    assert list(rows(tmp_path)[0]) == ["a", "event", "n", "s", "l", "p", "b"]
    assert rows(tmp_path)[0]["s"] == {"x": 1, "z": None, "y": "y1"}


def test_the_history_writes_declared_types_and_names_with_dots(tmp_path: Path) -> None:
    table = _table(tmp_path, properties=MAPPED)
    table.alter('ADD COLUMNS (`x.y` CHAR(4) COMMENT "it\'s", nothing VOID)')
    first, second = json.loads(_last(table)[1]["columns"])
    assert first["column"] == {
        "name": "`x.y`", "type": "char(4)", "nullable": True, "metadata": {"comment": "it's"}
    }  # fmt: skip
    assert second["column"]["type"] == "void"
    table.append(_data(2), json_columns=["event"])
    assert [row["nothing"] for row in rows(tmp_path)] == [None, None]
    table.rename_column("`x.y`", "y.z")
    assert _last(table)[1] == {"oldColumnPath": "`x.y`", "newColumnPath": "`y.z`"}
    table.drop_columns("`y.z`")
    assert json.loads(_last(table)[1]["columns"]) == ["`y.z`"]
    table.set_properties({"b": "1", "a": "2"})
    table.unset_properties("b", "a")
    assert json.loads(_last(table)[1]["properties"]) == ["b", "a"]


def test_defaults_are_for_rows_to_come(tmp_path: Path) -> None:
    table = _table(tmp_path)
    table.set_default("n", "2 + 3")
    column = json.loads(_last(table)[1]["column"])
    assert column["metadata"] == {"CURRENT_DEFAULT": "2 + 3"}
    assert "allowColumnDefaults" in (table.refresh().protocol.writer_features or ())
    assert rows(tmp_path)[0]["n"] == 1
    table.set_default("n", None)
    assert table.refresh().schema.fields[1].default is None


def test_a_variant_that_only_the_path_names_is_not_dropped(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "event VARIANT, n INT", properties=MAPPED)
    table.alter("SET TBLPROPERTIES ('variantlake.clusterBy' = '$.kind')")
    with pytest.raises(InvalidSchema, match="clustered by"):
        table.drop_columns("event")
    table.rename_column("event", "e")
    assert table.refresh().properties["variantlake.clusterBy"] == "$.kind"
    other = vl.Table.create(tmp_path / "o", "a INT, b INT", cluster_by=["a"], properties=MAPPED)
    with pytest.raises(InvalidSchema, match="clustered by it"):
        other.drop_columns("a")
    other.rename_column("a", "c")


def test_declared_lengths_go_with_renamed_fields(tmp_path: Path) -> None:
    table = vl.Table.create(
        tmp_path, "s STRUCT<a: CHAR(3), b: STRING, c: VARCHAR(2)>", properties=MAPPED
    )
    table.rename_column("s.c", "d")
    table.drop_columns("s.b")
    table.move_column("s.d")
    (field,) = table.refresh().schema.fields
    assert field.metadata["__CHAR_VARCHAR_TYPE_STRING"] == "struct<d:varchar(2),a:char(3)>"


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("a > 0 and B.c = 'x.y'", ["a", "and", "b.c"]),
        ("variant_get(`e v`, '$.k') = \"d\"", ["e v"]),
        ("event:kind.x::string IN (1)", ["event"]),
        ("l[0].q > m['k']", ["l", "m"]),
        ("a.b.c(1)", []),
        ("a.`b``c` .d", ["a.b`c.d"]),
        ("", []),
    ],
)
def test_names_in_expressions(expression: str, names: list[str]) -> None:
    found = {".".join(path) for path in references(expression)}
    assert set(names) <= found
    assert "x" not in found
    assert "q" not in found


def test_an_expression_speaks_of_what_is_in_and_around_a_column() -> None:
    assert speaks_of("s.x > 0", ("S",))
    assert speaks_of("s > 0", ("s", "x"))
    assert not speaks_of("s.y > 0", ("s", "x"))
    assert speaks_of("l[0].q > 0", ("l", "element", "q"))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("n INT, m INT DEFAULT n + 1", "the default of column 'm': .*no column 'n'"),
        ("n INT, m INT GENERATED ALWAYS AS (nope + 1)", "expression of column 'm': .*'nope'"),
        ("n INT, m INT GENERATED ALWAYS AS (m + 1)", "expression of column 'm': .*'m'"),
        ("n INT, m BIGINT GENERATED ALWAYS AS (count(n))", "expression of column 'm'"),
    ],
)
def test_a_new_table_has_no_expression_that_cannot_be(
    tmp_path: Path, columns: str, said: str
) -> None:
    with pytest.raises(InvalidQuery, match=said):
        vl.Table.create(tmp_path / "t", columns)
    assert not (tmp_path / "t").exists()


def test_a_new_table_may_have_expressions_that_only_spark_takes(tmp_path: Path) -> None:
    columns = """at TIMESTAMP DEFAULT current_timestamp(), n INT DEFAULT 2 + 3, k INT DEFAULT NULL,
        day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), event VARIANT,
        kind STRING GENERATED ALWAYS AS (upper(variant_get(event, '$.kind', 'string')))"""
    table = vl.Table.create(tmp_path / "t", columns)
    assert [field.name for field in table.schema.fields if field.default] == ["at", "n"]
    assert [field.name for field in table.schema.fields if field.generation] == ["day", "kind"]


def test_clustering_by_nothing_leaves_a_table_that_is_not_clustered(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "a INT")
    assert table.alter("CLUSTER BY NONE").version == 0
    table.alter("CLUSTER BY (a)")
    assert table.alter("CLUSTER BY NONE").version == 2


def test_forms_that_people_try_first(tmp_path: Path) -> None:
    table = vl.Table.create(
        tmp_path / "t",
        "a INT, b INT, c INT, d INT",
        properties={"delta.columnMapping.mode": "name"},
    )
    table.drop_columns(["a", "b"])
    table.drop_columns("c")
    table.add_column("e f", "STRING")
    assert table.schema.names == ["d", "e f"]
    with pytest.raises(InvalidQuery, match="is a whole statement") as caught:
        table.alter("ALTER TABLE t DROP COLUMN d")
    assert "leave out ALTER TABLE" in caught.value.hint

"""Schemas are learned again where recent files drift from them, whoever loads."""

from __future__ import annotations

import json
import logging
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.delta.protocol.learned_schemas import layout_name, learned_schemas
from variantlake.delta.transaction.alter import set_properties
from variantlake.delta.transaction.commit import commit
from variantlake.errors import InvalidSchema, InvalidValue
from variantlake.ingest.learning import relearn
from variantlake.shredding.ddl import parse_ddl

SCHEMA = "variantlake.shredding.event"
OLD = {"a": "text", "n": 1.5}
NEW = {"x": "text", "y": 1.5, "z": 7}


def documents(kind: dict[str, Any], rows: int = 100, seed: int = 0) -> list[str]:
    """Documents of the keys of `kind`, with values of its types that do not repeat."""
    chance = random.Random(seed)

    def other(value: object) -> object:
        if isinstance(value, str):
            return f"v{chance.random()}"
        return chance.getrandbits(40) if isinstance(value, int) else chance.random()

    return [json.dumps({key: other(value) for key, value in kind.items()}) for _ in range(rows)]


def now(table: vl.Table) -> vl.Table:
    return vl.Table.open(table.uri)


def append(table: vl.Table, kind: dict[str, Any], rows: int = 100) -> None:
    append_texts(table, documents(kind, rows, now(table).version))


def append_texts(table: vl.Table, texts: list[str]) -> None:
    now(table).append(pa.table({"event": texts}), json_columns=["event"])


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    return vl.Table.create(tmp_path / "t", "event VARIANT")


def ddl(table: vl.Table) -> str:
    return now(table).properties[SCHEMA]


def rows(table: vl.Table) -> int:
    return now(table).scan().count()


def paths(table: vl.Table) -> set[str]:
    return {str(path.steps[0]) for path, _ in parse_ddl(ddl(table)).nodes() if path.steps}


def test_new_files_get_the_columns_of_new_paths_and_old_ones_stay(table: vl.Table) -> None:
    for kind in (OLD, OLD, NEW, NEW, NEW):
        append(table, kind)
    assert paths(table) == {"a", "n", "x", "y", "z"}
    learned = learned_schemas(now(table).properties, "event")
    assert learned is not None
    assert [each.number for each in learned.schemas] == [1, 2]
    # The commit that carries the schema is that of the first files which have it.
    second = learned.schemas[1]
    before, after = (
        vl.Table.open(table.uri, version=second.version - step).properties[SCHEMA]
        for step in (1, 0)
    )
    assert before != after == ddl(table)
    layouts = [
        layout_name(parse_ddl(add.tags["variantlake.layout.event"] or ""))
        for add in now(table).snapshot.add_files()
        if add.tags is not None
    ]
    assert set(layouts) == {each.layout for each in learned.schemas}
    assert now(table).scan("event:x::string AS x, event:a::string AS a").to_arrow().num_rows == 500


def test_a_table_that_does_not_drift_is_never_changed(table: vl.Table) -> None:
    for _ in range(5):
        append(table, OLD)
    assert [change.operation for change in now(table).history()].count("WRITE") == 5
    log = Path(table.uri.removeprefix("file://")) / "_delta_log"
    assert sum("metaData" in each.read_text() for each in log.glob("*.json")) == 2


def test_what_cannot_be_a_column_is_looked_at_once(
    table: vl.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unique ids as keys: no schema helps, so none is sought again until there are many more."""
    sought = []
    better = relearn._better

    def counted(*given: Any) -> Any:
        sought.append(given)
        return better(*given)

    monkeypatch.setattr(relearn, "_better", counted)
    append(table, OLD)
    chance = random.Random(1)
    for _ in range(6):
        rows = [json.dumps({f"{chance.random()}": f"{chance.random()}"}) for _ in range(100)]
        append_texts(table, rows)
    assert paths(table) == {"a", "n"}
    assert 1 <= len(sought) <= 4
    learned = learned_schemas(now(table).properties, "event")
    assert learned is not None
    assert learned.residuals is not None
    assert learned.residuals > 0.5


def test_a_schema_that_was_given_stays(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT", shredding={"event": "a STRING"})
    for _ in range(3):
        append(table, NEW)
    assert ddl(table) == "a STRING"
    # Nor is one that is given to a table whose schema was learned.
    other = vl.Table.create(tmp_path / "u", "event VARIANT")
    append(other, OLD)
    now(other).set_properties({"variantlake.shredding.event": "a STRING"})
    for _ in range(3):
        append(other, NEW)
    assert ddl(other) == "a STRING"


def test_the_bound_is_a_property(table: vl.Table) -> None:
    with pytest.raises(InvalidValue):
        now(table).set_properties({"variantlake.maxResidualShare": "1.5"})
    now(table).set_properties({"variantlake.maxResidualShare": "1"})
    for kind in (OLD, NEW, NEW, NEW):
        append(table, kind)
    assert paths(table) == {"a", "n"}
    now(table).set_properties({"variantlake.maxResidualShare": "0.3"})
    append(table, NEW)
    assert paths(table) == {"a", "n", "x", "y", "z"}


def test_hints_stay_columns_also_when_a_schema_is_learned_again(table: vl.Table) -> None:
    with pytest.raises(InvalidSchema, match=r"variantlake\.hints\.event"):
        now(table).set_properties({"variantlake.hints.event": "a FOO"})
    now(table).set_properties(
        {"variantlake.hints.event": "n DOUBLE, never.seen DATE, output.* DOUBLE"}
    )
    append(table, OLD)
    assert ddl(table) == "a STRING, n DOUBLE, never STRUCT<seen: DATE>"
    rare = json.dumps({"output": {"m1": 0.5}})
    rows = [*documents(NEW, 199), rare]
    for _ in range(3):
        append_texts(table, rows)
    assert "n DOUBLE, never STRUCT<seen: DATE>, output STRUCT<m1: DOUBLE>, x STRING" in ddl(table)
    # A hint that comes later holds for the next files.
    now(table).set_properties({"variantlake.hints.event": "late TIMESTAMP"})
    append(table, NEW)
    assert "late TIMESTAMP" in ddl(table)


def test_loads_of_documents_take_hints(tmp_path: Path) -> None:
    source, target = tmp_path / "in.json", tmp_path / "t"
    source.write_text("\n".join(documents(OLD)))
    for name, hints, expected in (
        ("one", "n DOUBLE", "a STRING, n DOUBLE"),
        ("two", None, "a STRING, n DOUBLE"),
        ("three", "a.b INT", "a STRUCT<b: INT>, n DOUBLE"),
    ):
        assert vl.autoload(target, source, name=name, hints=hints, settle=0).rows_written == 100
        assert vl.Table.open(target).properties[SCHEMA] == expected
    table = vl.Table.open(target)
    assert table.properties["variantlake.hints.event"] == "a.b INT"
    # A schema that is given has them too.
    vl.autoload(target, source, name="four", shredding="n DOUBLE", hints="x.y INT", settle=0)
    assert now(table).properties[SCHEMA] == "n DOUBLE, x STRUCT<y: INT>"
    with pytest.raises(InvalidSchema):
        now(table).append(vl.ndjson(str(source)), hints="x FOO")


def test_an_autoload_goes_on_and_learns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source, target = tmp_path / "in", tmp_path / "t"
    source.mkdir()
    with caplog.at_level(logging.INFO, "variantlake.learning"):
        for number, kind in enumerate((OLD, NEW, NEW, NEW)):
            lines = documents(kind, seed=number)
            (source / f"{number}.json").write_text("\n".join(lines))
            assert vl.autoload(target, source, name="n", settle=0).rows_written == 100
    table = vl.Table.open(target)
    assert paths(table) == {"a", "n", "x", "y", "z"}
    assert "new files get another schema" in caplog.text


def test_who_learns_at_the_same_time_loses_no_row(table: vl.Table) -> None:
    """Two loads from one version both learn; the second adds its files to the first one's."""
    for kind in (OLD, NEW, NEW):
        append(table, kind)
    first, second = now(table), now(table)
    for each in (first, second):
        each.append(pa.table({"event": documents(NEW)}), json_columns=["event"])
    assert rows(table) == 500
    learned = learned_schemas(now(table).properties, "event")
    assert learned is not None
    assert len(learned.schemas) == 2


def test_what_goes_wrong_while_learning_stops_no_load(
    table: vl.Table, caplog: pytest.LogCaptureFixture
) -> None:
    for kind in (OLD, NEW):
        append(table, kind)
    folder = Path(table.uri.removeprefix("file://"))
    for file in folder.glob("*.parquet"):
        file.write_bytes(b"damaged")
    append(table, NEW)
    append(table, NEW)
    assert "no schema was learned" in caplog.text
    assert paths(table) == {"a", "n"}


def test_a_damaged_property_counts_as_none(table: vl.Table) -> None:
    append(table, OLD)
    snapshot = now(table).snapshot
    broken = {**snapshot.metadata.configuration, "variantlake.learned.event": '{"schemas": 3}'}
    changes = set_properties(snapshot, {"owner": "x"})
    commit(snapshot, replace(changes, metadata=replace(snapshot.metadata, configuration=broken)))
    for _ in range(3):
        append(table, NEW)
    assert paths(table) == {"a", "n"}

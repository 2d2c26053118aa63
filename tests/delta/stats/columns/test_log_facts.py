"""Facts of all files at once are those of each alone: the kernels against the plain readers."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import corpora
from tests.delta.tables import add as line
from tests.delta.tables import bounds, facts, facts_in_log, first_commit, remove, write_log
from tests.strategies import MORE
from variantlake import paths
from variantlake.delta.actions.actions import AddFile, DeletionVectorDescriptor
from variantlake.delta.log.files.logical_files import LogicalFiles, files_of
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.stats import z85
from variantlake.delta.stats.columns.log_facts import LogFacts
from variantlake.delta.stats.tags import FLAGS_LIMIT
from variantlake.delta.stats.variant_bounds import split
from variantlake.delta.transaction.new_actions import new_add
from variantlake.parquet.stats.bounds import Bounds
from variantlake.parquet.stats.fact_columns import FactColumns, RawColumn, RecordColumns
from variantlake.parquet.stats.facts import MAX_INSIDE, ColumnFacts, FileFacts
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.schema import Array, Leaf
from variantlake.shredding.values import ValueNotes
from variantlake.types import Kind

SCHEMA = parse_table_ddl(
    "event VARIANT, other STRUCT<v: VARIANT>, n INT, s STRING, d DECIMAL(20,2), f DOUBLE, "
    "t TIMESTAMP, day DATE, w LONG"
)
TYPES: dict[str, Any] = {
    "n": pa.int32(),
    "w": pa.int64(),
    "s": pa.string(),
    "d": pa.decimal128(20, 2),
    "f": pa.float64(),
    "t": pa.timestamp("us", "UTC"),
    "day": pa.date32(),
}
CONFORMANCE = [
    "spark-shredded-variant-preview-delta",
    "spark-variant-checkpoint",
    "variant-stats-no-checkpoint",
    "variant-stats-state-reconstruction",
]
VARIANTS = [("event",), ("other", "v")]
LAYOUTS = [
    "a BIGINT, s STRING",
    "s STRING, a INT, o STRUCT<x: DOUBLE, y: DATE>, l ARRAY<STRING>, u VARIANT",
    "a DECIMAL(18,2), s STRING, b BOOLEAN, f FLOAT, x BINARY, t TIMESTAMP, g UUID, `o'd` BIGINT",
    "a DECIMAL(38,4), s STRING",
]
STRINGS = ["", "a", "é", "long " * 30, "\U0001f600", "\\", '"', "\n"]
RAW: dict[Kind, list[Any]] = {
    Kind.INT32: [0, -1, 127, 128, 2**31 - 1],
    Kind.INT64: [0, -1, 2**40, 2**63 - 1, -(2**63)],
    Kind.DOUBLE: [0.0, -0.0, 1.5, float("inf"), -1e300],
    Kind.FLOAT: [0.0, 1.5, -2.0],
    Kind.DECIMAL: [Decimal("1.25"), Decimal(0), Decimal("-99999999999999.99"), Decimal("7.50")],
    Kind.STRING: STRINGS,
    Kind.BINARY: [b"", b"\x00\xff"],
    Kind.UUID: [bytes(16), b"\xff" * 16],
    Kind.DATE: [0, -1, 20_000],
    Kind.TIMESTAMP: [0, 1_732_206_349_123_456],
    Kind.BOOLEAN: [False, True],
}
COLUMNS: dict[str, list[Any]] = {
    "n": RAW[Kind.INT32],
    "w": RAW[Kind.INT64],
    "s": STRINGS,
    "d": [Decimal("1.25"), Decimal("123456789012345678.99"), Decimal(3)],
    "f": RAW[Kind.DOUBLE],
    "t": RAW[Kind.TIMESTAMP],
    "day": RAW[Kind.DATE],
}


NOTES = [
    None,
    ValueNotes(),
    ValueNotes(lacking=True),
    ValueNotes(integers=frozenset({paths.Path.of("a")})),
    ValueNotes(True, frozenset({paths.Path.of("a")}), frozenset({paths.Path.of("a")})),
    ValueNotes(integers=frozenset({paths.Path.of("a")}), padded=frozenset({paths.Path.of("a")})),
]


@st.composite
def file_facts(draw: st.DrawFn) -> FileFacts:
    """A file with two Variant columns and some ordinary ones."""
    made = []
    for column in VARIANTS:
        layout = draw(st.sampled_from(LAYOUTS))
        paths = {}
        for path, node in parse_ddl(layout).nodes():
            counts = draw(st.sampled_from([{}, {"nulls": 2}, {"residuals": 1}, {"typed": -1}]))
            own: dict[str, Any] = dict(counts)
            if isinstance(node, Leaf) and draw(st.integers(0, 4)):
                value = st.sampled_from(RAW[node.type.kind])
                low, high = sorted([draw(value), draw(value)])
                own |= bounds(low, high, plain_floats=draw(st.booleans()))
            if isinstance(node, Array):
                own["clean_inside"] = draw(st.sampled_from([0, 1, (1 << MAX_INSIDE) - 1]))
            paths[path.normalized()] = own
        made.append(facts(layout, column=column, paths=paths))
    names = draw(st.lists(st.sampled_from(list(COLUMNS)), unique=True))
    columns = []
    for name in names:
        value = st.sampled_from(COLUMNS[name])
        low, high = sorted([draw(value), draw(value)])
        known = Bounds(low, high)
        columns.append(ColumnFacts((name,), TYPES[name], draw(st.integers(-1, 5)), known))
    variants = tuple(replace(each.variants[0], notes=draw(st.sampled_from(NOTES))) for each in made)
    return replace(made[0], variants=variants, columns=tuple(columns))


def turned(text: str) -> str:
    """The same bounds with the value before the metadata."""
    metadata, value = split(z85.decode(text))
    return z85.encode(value + metadata)


@st.composite
def adds(draw: st.DrawFn) -> AddFile:
    """An add of ours, or what other writers make of one."""
    add = new_add("f.parquet", draw(file_facts()), schema=SCHEMA, properties={})
    stats = orjson.loads(add.stats or "{}")
    change = draw(st.integers(0, 13))
    if change == 1:
        return replace(add, tags=None)
    if change == 2:
        return replace(add, size=add.size + 1)
    if change == 3:
        return replace(add, stats=draw(st.sampled_from([None, "", "[]", "{", '{"numRecords":-1}'])))
    if change == 4:
        stats["tightBounds"] = draw(st.sampled_from([False, True, None]))
        return replace(add, stats=json.dumps(stats))
    if change == 5:
        vector = DeletionVectorDescriptor("i", "x", 1, 1)
        return replace(add, deletion_vector=vector)
    if change == 6 and "event" in stats["minValues"]:
        stats["minValues"]["event"] = turned(stats["minValues"]["event"])
        return replace(add, stats=json.dumps(stats))
    if change == 7 and "event" in stats["maxValues"]:
        # As Gson writes them: every character may be escaped.
        text = "".join(f"\\u{ord(c):04x}" for c in stats["maxValues"]["event"])
        stats["maxValues"]["event"] = "MARK"
        return replace(add, stats=json.dumps(stats).replace("MARK", text))
    if change == 8:
        side = draw(st.sampled_from(["minValues", "maxValues", "nullCount"]))
        column = draw(st.sampled_from(["event", "n", "s", "d", "f", "t", "day"]))
        odd: list[Any] = [
            None,
            1,
            "x",
            1.5,
            True,
            [],
            {"a": 1},
            2**70,
            "2020-01-01",
            -1,
            "k[%w1",
            "0" * 50,
        ]
        stats[side][column] = draw(st.sampled_from(odd))
        return replace(add, stats=json.dumps(stats))
    if change == 9:
        text = draw(
            st.sampled_from(["[]", "[[1,0,0,0]]", " [ [1 ,0,0, 0 ] ]", "x", "[[01,0,0,0]]"])
            | st.sampled_from([-1, FLAGS_LIMIT - 1, FLAGS_LIMIT, 10**17, 2**64]).map(
                lambda flags: f"[{','.join([f'[1,0,0,{flags}]'] * 3)}]"
            )
        )
        return replace(add, tags={**(add.tags or {}), "variantlake.facts.event": text})
    if change == 11:
        text = draw(st.sampled_from(["[0,[],[]]", "[1,[],[]]", "[0,[[]],[]]", "[2]", "x", "[]"]))
        return replace(add, tags={**(add.tags or {}), "variantlake.values.event": text})
    if change == 10:
        side = draw(st.sampled_from(["minValues", "maxValues"]))
        text = stats[side].get("event", "")
        stats[side]["event"] = text[: draw(st.integers(0, len(text)))]
        return replace(add, stats=json.dumps(stats))
    return add


def _same_bound(mine: RawColumn, plain: RawColumn) -> None:
    assert mine.valid.tolist() == plain.valid.tolist()
    left, right = mine.values[mine.valid].tolist(), plain.values[plain.valid].tolist()
    assert left == right


def check_same(mine: FactColumns, plain: FactColumns) -> None:
    """Every count and bound of every column, node by node."""
    assert mine.num_records.tolist() == plain.num_records.tolist()
    for column in VARIANTS:
        one, other = mine.variant(column), plain.variant(column)
        assert one is not None
        layout = [-1] * len(one.layout) if other is None else other.layout.tolist()
        for row, code in enumerate(layout):
            if other is None or code < 0:
                # The plain reader knows all Variant columns or none; changes are to the first.
                assert column != VARIANTS[0] or one.layout[row] < 0
                continue
            assert one.schemas[int(one.layout[row])] == other.schemas[code]
            assert one.nulls[row] == other.nulls[row]
            assert one.notes[row] == other.notes[row]
            for index, (_, node) in enumerate(other.schemas[code].nodes()):
                rows, nodes = np.array([row]), np.array([index])
                found, wanted = one.counts(rows, nodes), other.counts(rows, nodes)
                for name in ("typed", "nulls", "residuals", "clean_inside"):
                    assert getattr(found, name).tolist() == getattr(wanted, name).tolist()
                if isinstance(node, Leaf):
                    own, twin = (each.bounds(rows, nodes, node.type) for each in (one, other))
                    _same_bound(own.minimum, twin.minimum)
                    _same_bound(own.maximum, twin.maximum)
                    for name in ("minimum_exact", "maximum_exact", "plain_floats"):
                        assert getattr(own, name).tolist() == getattr(twin, name).tolist()
    for name in COLUMNS:
        ours, theirs = mine.column((name,)), plain.column((name,))
        assert ours is not None
        if theirs is None:
            continue
        rows = np.flatnonzero(theirs.type >= 0)
        (stored,) = ours.types
        assert stored is not None
        assert ours.nulls[rows].tolist() == theirs.nulls[rows].tolist()
        own, twin = ours.bounds(rows, stored), theirs.bounds(rows, stored)
        _same_bound(own.minimum, twin.minimum)
        _same_bound(own.maximum, twin.maximum)
        assert own.minimum_exact.tolist() == twin.minimum_exact.tolist()


def _plain(made: list[AddFile]) -> FactColumns:
    return RecordColumns([facts_in_log(add, SCHEMA) for add in made])


@settings(max_examples=30 * MORE, deadline=None)
@given(made=st.lists(adds(), min_size=1, max_size=5), cut=st.integers(0, 5))
def test_facts_of_all_files_are_those_of_each(made: list[AddFile], cut: int) -> None:
    table = LogicalFiles.joined([files_of(made[:cut]), files_of(made[cut:])])
    check_same(LogFacts(table, SCHEMA), _plain(made))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bounds_whose_text_was_cut_are_those_of_the_plain_reader(layout: str) -> None:
    known = {
        path.normalized(): bounds(*sorted(RAW[node.type.kind])[:2])
        for path, node in parse_ddl(layout).nodes()
        if isinstance(node, Leaf)
    }
    parts = [facts(layout, column=column, paths=known) for column in VARIANTS]
    whole = replace(parts[0], variants=tuple(part.variants[0] for part in parts))
    add = new_add("f", whole, schema=SCHEMA, properties={})
    stats = orjson.loads(add.stats or "")
    text = stats["minValues"]["event"]
    made = []
    for length in range(len(text) + 1):
        stats["minValues"]["event"] = text[:length]
        made.append(replace(add, stats=json.dumps(stats)))
    check_same(LogFacts(files_of(made), SCHEMA), _plain(made))


def test_a_newer_version_decodes_only_what_is_new() -> None:
    one = new_add("1", facts(paths={"$['a']": bounds(1, 9)}), schema=SCHEMA, properties={})
    two = new_add("2", facts(paths={"$['a']": bounds(5, 6)}), schema=SCHEMA, properties={})
    old_table = files_of([one])
    old = LogFacts(old_table, SCHEMA)
    new = LogFacts(LogicalFiles.joined([old_table, files_of([two])]), SCHEMA, old)
    assert new.parts[0] is old.parts[0]
    assert new.parts[1] is not old.parts[0]
    other_schema = parse_table_ddl("event VARIANT, n LONG")
    assert LogFacts(old_table, other_schema, old).parts[0] is not old.parts[0]


def test_a_refresh_keeps_in_memory_what_no_commit_touches(tmp_path: Path) -> None:
    location = write_log(tmp_path, first_commit(*(line(f"f{i}") for i in range(5))))
    old = Snapshot.read(location)
    facts_of_old = LogFacts(old.files, old.schema)
    write_log(tmp_path, [line("g")], start=1)
    added = old.refresh()
    assert LogFacts(added.files, added.schema, facts_of_old).parts[0] is facts_of_old.parts[0]
    write_log(tmp_path, [remove("f0")], start=2)
    removed = added.refresh()
    facts_of_fewer = LogFacts(removed.files, removed.schema, facts_of_old)
    assert facts_of_fewer.parts[0] is facts_of_old.parts[0]
    assert len(facts_of_fewer.num_records) == 5


@pytest.mark.rule(22)
@pytest.mark.parametrize("moment", ["2024-01-01T00:00:00.123Z", "2024-01-01T01:00:00.123+01:00"])
def test_rule_22_a_foreign_maximum_of_a_timestamp_may_be_cut(moment: str) -> None:
    stats = {"numRecords": 1, "maxValues": {"t": moment}, "minValues": {"t": moment}}
    add = AddFile("x", 1, 1, stats=json.dumps(stats))
    column = LogFacts(files_of([add]), SCHEMA).column(("t",))
    assert column is not None
    (stored,) = column.types
    assert stored is not None
    found = column.bounds(np.array([0]), stored)
    instant = dt.datetime.fromisoformat("2024-01-01T00:00:00.123+00:00").timestamp()
    assert found.maximum.raw(0) == round(instant * 1e6) + 1000
    assert found.minimum.raw(0) == round(instant * 1e6)


@pytest.mark.rule(23)
@pytest.mark.parametrize(
    ("tight", "counts", "expected"),
    [(True, [0, 3, 5], [0, 3, 5]), (False, [0, 3, 5], [0, -1, 5])],
)
def test_rule_23_null_counts_that_are_not_tight_inform_when_none_or_all(
    tight: bool, counts: list[int], expected: list[int]
) -> None:
    stats = {"numRecords": 5, "tightBounds": tight}
    made = [
        AddFile(f"{count}", 1, 1, stats=json.dumps(stats | {"nullCount": {"n": count}}))
        for count in counts
    ]
    column = LogFacts(files_of(made), SCHEMA).column(("n",))
    assert column is not None
    assert column.nulls.tolist() == expected


@pytest.mark.rule(25)
@pytest.mark.parametrize(
    "changes", [{"size": 101}, {"stats": '{"numRecords":6}'}, {"stats": None}, {"tags": {}}]
)
def test_rule_25_tags_of_another_file_among_many_are_not_believed(changes: dict[str, Any]) -> None:
    own = new_add("f.parquet", facts(column=("event",)), schema=SCHEMA, properties={})
    found = LogFacts(files_of([own, replace(own, path="g", **changes)]), SCHEMA)
    variant = found.variant(("event",))
    assert variant is not None
    assert variant.layout[0] >= 0
    assert variant.layout[1] < 0


@pytest.mark.corpus(corpora.DELTA_TABLES)
@pytest.mark.parametrize("name", CONFORMANCE)
def test_facts_of_other_writers_tables(name: str) -> None:
    root = corpora.DELTA_TABLES
    snapshot = Snapshot.read(root / name, applies=["columnMapping", "deletionVectors"])
    mine = LogFacts(snapshot.files, snapshot.schema)
    known = [facts_in_log(add, snapshot.schema) for add in snapshot.add_files()]
    plain = RecordColumns(known)
    assert mine.num_records.tolist() == plain.num_records.tolist()
    for column in {each.column for found in known for each in found.columns}:
        ours, theirs = mine.column(column), plain.column(column)
        assert ours is not None
        assert theirs is not None
        rows = np.flatnonzero(theirs.type >= 0)
        assert ours.nulls[rows].tolist() == theirs.nulls[rows].tolist()
        (stored,) = ours.types
        if stored is not None:
            own, twin = ours.bounds(rows, stored), theirs.bounds(rows, stored)
            _same_bound(own.minimum, twin.minimum)
            _same_bound(own.maximum, twin.maximum)

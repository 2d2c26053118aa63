"""Plans from `stats_parsed` are those from the texts, and a struct that errs is not believed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.delta.stats.columns.test_log_facts import COLUMNS, SCHEMA, adds, check_same, file_facts
from tests.delta.tables import create_table
from tests.strategies import MORE
from variantlake.delta.actions.actions import AddFile
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log.files import checkpoint_texts
from variantlake.delta.log.files.logical_files import LogicalFiles
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.stats import z85
from variantlake.delta.stats.columns.log_facts import LogFacts
from variantlake.delta.stats.columns.parsed_stats import find_in_variants
from variantlake.delta.stats.columns.path_bounds import field_ids
from variantlake.delta.stats.columns.text_stats import TextStats
from variantlake.delta.stats.variant_bounds import encode_bounds, plain_bounds, raw_of, split
from variantlake.delta.transaction.new_actions import new_add
from variantlake.encoding.scalar import Scalar
from variantlake.parquet.stats.fact_columns import RawColumn
from variantlake.paths import Path as VariantPath
from variantlake.storage.opening import open_store
from variantlake.types import Kind, Primitive, ShreddedType

CHECKPOINT = f"_delta_log/{0:020d}.checkpoint.parquet"
FORMS = ("writeStatsAsJson", "writeStatsAsStruct")


def _table(root: Path, made: list[AddFile], forms: tuple[str, ...] = FORMS) -> None:
    """A table whose log is a checkpoint of these files, with statistics in these forms."""
    files = [
        replace(add, path=f"f{number}", deletion_vector=None) for number, add in enumerate(made)
    ]
    store = open_store(root)
    properties = {f"delta.checkpoint.{name}": str(name in forms).lower() for name in FORMS}
    create_table(store, SCHEMA, adds=files, properties=properties)
    write_checkpoint(store)
    (root / f"_delta_log/{0:020d}.json").unlink()


def _read(root: Path, least_rows: int = 0) -> LogicalFiles:
    with patch.object(checkpoint_texts, "LEAST_ROWS", least_rows):
        return Snapshot.read(root, applies=["deletionVectors"]).files


def _plain(root: Path) -> LogFacts:
    return LogFacts(_read(root, 1 << 40), SCHEMA)


@settings(max_examples=15 * MORE, deadline=None)
@given(
    made=st.lists(file_facts(), min_size=1, max_size=4),
    forms=st.sampled_from([FORMS, FORMS[1:]]),
)
def test_facts_by_columns_are_those_by_texts(made: list[Any], forms: tuple[str, ...]) -> None:
    files = [new_add("f", facts, schema=SCHEMA, properties={}) for facts in made]
    with tempfile.TemporaryDirectory() as folder:
        _table(Path(folder), files, forms)
        with patch.object(TextStats, "_find", side_effect=AssertionError("texts were parsed")):
            check_same(by_columns := LogFacts(_read(Path(folder)), SCHEMA), by_columns)
        check_same(by_columns, _plain(Path(folder)))


@settings(max_examples=15 * MORE, deadline=None)
@given(
    # A null of JSON, for the text reader not tight, is nothing in a struct.
    made=st.lists(
        adds().filter(lambda add: '"tightBounds": null' not in (add.stats or "")),
        min_size=1,
        max_size=4,
    )
)
def test_odd_statistics_by_columns_say_no_more_than_their_texts(made: list[AddFile]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _table(Path(folder), made)
        mine, plain = LogFacts(_read(Path(folder)), SCHEMA), _plain(Path(folder))
        assert mine.num_records.tolist() == plain.num_records.tolist()
        rows = np.arange(len(made))
        for name in COLUMNS:
            ours, theirs = mine.column((name,)), plain.column((name,))
            assert ours is not None
            assert theirs is not None
            assert ours.nulls.tolist() == theirs.nulls.tolist()
            (stored,) = ours.types
            assert stored is not None
            found, wanted = ours.bounds(rows, stored), theirs.bounds(rows, stored)
            for side in ("minimum", "maximum"):
                _says_no_more(getattr(found, side), getattr(wanted, side))
            for side in ("minimum_exact", "maximum_exact"):
                assert (getattr(found, side) <= getattr(wanted, side)).all()


def _says_no_more(found: RawColumn, wanted: RawColumn) -> None:
    assert (found.valid <= wanted.valid).all()
    assert found.values[found.valid].tolist() == wanted.values[found.valid].tolist()


# --- Hostile checkpoints --------------------------------------------------------------------------


def _stats(number: int) -> str:
    sides = {side: {"n": number} for side in ("minValues", "maxValues")}
    return json.dumps({"numRecords": 9, **sides, "nullCount": {"n": 0}})


def _rewrite(root: Path, change: Callable[[Any], Any]) -> None:
    """Put what `change` makes of the structs in the place of `stats_parsed`."""
    path = root / CHECKPOINT
    table = pq.read_table(path)
    add: Any = table["add"].combine_chunks()
    names = [field.name for field in add.type]
    columns = dict(zip(names, add.flatten(), strict=True))
    columns["stats_parsed"] = change(columns["stats_parsed"])
    made = pa.StructArray.from_arrays(list(columns.values()), names=names, mask=pc.is_null(add))
    pq.write_table(table.set_column(table.column_names.index("add"), "add", made), path)


def _with(struct: Any, name: str, column: Any) -> Any:
    names = [field.name for field in struct.type]
    columns = dict(zip(names, struct.flatten(), strict=True)) | {name: column}
    return pa.StructArray.from_arrays(
        list(columns.values()), names=list(columns), mask=struct.is_null()
    )


def _nulls_in_one_row(struct: Any) -> Any:
    return pc.if_else(pa.array([n == len(struct) - 1 for n in range(len(struct))]), None, struct)


def _other_bounds(struct: Any) -> Any:
    low = pc.struct_field(struct, "minValues")
    return _with(struct, "minValues", _with(low, "n", pc.add(pc.struct_field(low, "n"), 100)))


def _other_counts(struct: Any) -> Any:
    return _with(struct, "numRecords", pc.add(pc.struct_field(struct, "numRecords"), 1))


def _counts_as_texts(struct: Any) -> Any:
    return _with(struct, "numRecords", pc.struct_field(struct, "numRecords").cast(pa.string()))


def _bounds_as_texts(struct: Any) -> Any:
    low = pc.struct_field(struct, "minValues")
    return _with(struct, "minValues", _with(low, "n", pc.struct_field(low, "n").cast(pa.string())))


def _no_bounds(struct: Any) -> Any:
    return pc.struct_field(struct, "numRecords").cast(pa.string())


def _no_side(struct: Any) -> Any:
    names = [field.name for field in struct.type if field.name != "minValues"]
    columns = [pc.struct_field(struct, name) for name in names]
    return pa.StructArray.from_arrays(columns, names=names, mask=struct.is_null())


@pytest.mark.parametrize(
    "change",
    [
        _nulls_in_one_row,
        _other_bounds,
        _other_counts,
        _counts_as_texts,
        _bounds_as_texts,
        _no_bounds,
        _no_side,
    ],
)
def test_a_struct_that_is_not_what_the_texts_say_gives_way_to_them(
    tmp_path: Path, change: Callable[[Any], Any]
) -> None:
    made = [AddFile("", 1, 1, stats=_stats(n)) for n in range(9)]
    _table(tmp_path, made)
    _rewrite(tmp_path, change)
    mine, plain = LogFacts(_read(tmp_path), SCHEMA), _plain(tmp_path)
    check_same(mine, plain)
    column = mine.column(("n",))
    assert column is not None
    (stored,) = column.types
    assert stored is not None
    bounds = column.bounds(np.arange(9), stored)
    assert bounds.minimum.values.tolist() == [*range(9)]
    assert bounds.minimum.valid.all()


def test_loose_bounds_are_noticed_where_the_struct_does_not_tell(tmp_path: Path) -> None:
    loose = _stats(1).replace("{", '{"tightBounds":false,', 1)
    _table(tmp_path, [AddFile("", 1, 1, stats=loose)] * 2)
    (part, *_) = LogFacts(_read(tmp_path), SCHEMA).parts
    assert not part.tight.any()


def test_bounds_of_files_before_their_column_was_widened_count(tmp_path: Path) -> None:
    _table(tmp_path, [AddFile("", 1, 1, stats=_stats(n)) for n in range(3)], FORMS[1:])

    def narrower(struct: Any) -> Any:
        for side in ("minValues", "maxValues"):
            values = pc.struct_field(struct, side)
            narrow = pc.struct_field(values, "n").cast(pa.int8())
            struct = _with(struct, side, _with(values, "n", narrow))
        return struct

    _rewrite(tmp_path, narrower)
    with patch.object(TextStats, "_find", side_effect=AssertionError("texts were parsed")):
        column = LogFacts(_read(tmp_path), SCHEMA).column(("n",))
        assert column is not None
        (stored,) = column.types
        assert stored is not None
        assert column.bounds(np.arange(3), stored).maximum.values.tolist() == [0, 1, 2]


# --- Variants -------------------------------------------------------------------------------------

LEAVES = {
    "i": (ShreddedType(Kind.INT64), Scalar(Primitive.INT64, -5)),
    "s": (ShreddedType(Kind.STRING), Scalar(Primitive.STRING, "é" * 40)),
    "t": (ShreddedType(Kind.STRING), Scalar(Primitive.STRING, "short")),
    "f": (ShreddedType(Kind.DOUBLE), Scalar(Primitive.DOUBLE, 1.5)),
}


@st.composite
def variants(draw: st.DrawFn) -> tuple[bytes, bytes] | None:
    """Metadata and value of bounds, some of them damaged; or None."""
    names = draw(st.lists(st.sampled_from(sorted(LEAVES)), unique=True, max_size=4))
    text = encode_bounds({VariantPath.of(name): LEAVES[name][1] for name in names})
    metadata, value = split(z85.decode(text))
    change = draw(st.integers(0, 5))
    if change == 0:
        return None
    if change == 1:
        value = value[: draw(st.integers(0, len(value)))]
    if change == 2:
        at = draw(st.integers(0, len(value) - 1))
        value = value[:at] + bytes([draw(st.integers(0, 255))]) + value[at + 1 :]
    if change == 3:
        value = draw(st.binary(max_size=12))
    return metadata, value


@settings(max_examples=300 * MORE, deadline=None)
@given(rows=st.lists(variants(), min_size=1, max_size=4), name=st.sampled_from(sorted(LEAVES)))
def test_a_bound_in_a_variant_is_that_of_the_plain_reader(rows: list[Any], name: str) -> None:
    leaf, path = LEAVES[name][0], VariantPath.of(name)
    metadata, value = (pa.array([row and row[at] for row in rows], pa.binary()) for at in (0, 1))
    found, there = find_in_variants(metadata, value, path, leaf)
    for number, row in enumerate(rows):
        bound = None if row is None else plain_bounds(z85.encode(row[0] + row[1])).get(path)
        if bound is not None:
            assert there[number]
            assert found.raw(number) == raw_of(leaf, bound)
        elif row is not None and path in field_ids(row[0]):
            # Lengths behind the value are of no interest to the kernel; it reads within its bytes.
            assert there[number] in (False, True)
        else:
            assert not there[number]

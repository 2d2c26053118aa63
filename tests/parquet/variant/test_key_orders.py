"""Rows as Spark takes them, and what files say of the order of their keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.parquet.write.test_table_writer import of
from variantlake.encoding.key_order import in_utf16_order
from variantlake.parquet.metadata.value_notes import joined_notes
from variantlake.parquet.variant.key_orders import in_spark_order
from variantlake.shredding.values import ValueNotes, decode_notes

BELOW, ABOVE = "\uff21", "\U0001f600"
ODD = {"a": 1, BELOW: 2, ABOVE: 3}


@pytest.mark.rule(40)
def test_rule_40_variants_at_any_depth_get_sparks_order() -> None:
    variants: Any = of(ODD, {"a": 1}, None, {"n": [ODD]})
    (first,) = variants.slice(0, 1).to_pylist()
    expected = in_utf16_order(first["metadata"], first["value"])
    assert expected != first["value"]
    found: Any = in_spark_order(variants)
    assert found.type == variants.type
    assert found.field("value")[0].as_py() == expected
    assert found.is_null().to_pylist() == [False, False, True, False]
    assert found.slice(1, 1).equals(variants.slice(1, 1))
    make_map: Any = pa.MapArray.from_arrays
    for nested in (
        pa.StructArray.from_arrays([variants], ["v"]),
        pa.ListArray.from_arrays([0, 1, 4], variants),
        make_map([0, 4], ["a", "b", "c", "d"], variants),
    ):
        changed: Any = in_spark_order(nested)
        assert changed.type == nested.type
        assert len(changed) == len(nested)
        assert repr(expected) in str(changed.to_pylist())
        assert repr(first["value"]) not in str(changed.to_pylist())
    plain = pa.array(["x", None])
    assert in_spark_order(plain) is plain


@pytest.mark.rule(40)
@pytest.mark.parametrize("shredding", [None, "a BIGINT"])
def test_rule_40_a_file_says_that_orders_may_differ(tmp_path: Path, shredding: str | None) -> None:
    for number, (documents, differ) in enumerate(
        [([{"a": 1}, ODD], True), ([{BELOW: 1}, {"a": 2}], False), ([{ABOVE: 1}], False)]
    ):
        file = tmp_path / f"{number}.parquet"
        written = vl.parquet.write_table(pa.table({"v": of(*documents)}), file, shredding=shredding)
        (variant,) = written.facts.variants
        assert (variant.notes is not None and variant.notes.reordered) is differ


@pytest.mark.rule(40)
def test_rule_40_notes_keep_the_order_where_nothing_else_is_known() -> None:
    noted = ValueNotes(reordered=True)
    assert decode_notes(noted.encode()) == noted
    assert decode_notes([4, [], [], []]) is None
    assert decode_notes([1.0, [], [], []]) is None
    assert ValueNotes().merge(noted).reordered
    column = ("v",)
    (joined,) = joined_notes([{column: (noted, frozenset())}, {}]).values()
    assert (joined.reordered, joined.lacking) == (True, True)
    assert not joined_notes([{column: (ValueNotes(), frozenset())}, {}])

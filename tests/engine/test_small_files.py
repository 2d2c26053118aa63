"""Groups, counts and ordered rows over many small files: those of one file after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variantlake as vl
from variantlake.errors import VariantLakeError
from variantlake.parquet.read import chunk_values
from variantlake.scan.files import several_files

FILES, ROWS = 9, 60
COLUMNS = {
    "n": "event:n::bigint",
    "kind": "event:kind::string",
    "name": "event:name::string",
    "size": "event:size::double",
    "none": "event:none::string",
    "p": "p",
}
CONDITIONS = (
    "event:kind::string = 'k1'",
    "event:kind::string IS NULL AND event:n::bigint > 100",
    "event:n::bigint >= 125",
    "event:n::bigint BETWEEN 55 AND 245 AND event:name::string > 'user00070'",
    "p = 2 OR event:kind::string IN ('k0', 'k2')",
    "event:none::string IS NULL",
    "event:name::string = 'nobody'",
)
AGGREGATES = (
    "count(*)",
    "count(event:name::string)",
    "count(DISTINCT event:kind::string)",
    "count(DISTINCT event:name::string)",
    "min(event:n::bigint)",
    "max(event:name::string)",
    "sum(event:n::bigint)",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with deleted rows, of two partitions; in the last one paths have other types."""
    place = tmp_path_factory.mktemp("small") / "t"
    table = vl.Table.create(
        place,
        "p INT, event VARIANT",
        partition_by=["p"],
        properties={"delta.enableDeletionVectors": "true"},
    )
    texts = [
        f'{{"n": {row}, "kind": "k{row % 3}", "name": "user{row:05}", "size": {row / 8}}}'
        if row % 7
        else f'{{"n": {row}}}'
        for row in range(FILES * ROWS)
    ]
    parts = [1 + (row > FILES * ROWS // 2) for row in range(len(texts))]
    rows = pa.table({"p": pa.array(parts, pa.int32()), "event": texts})
    table.append(rows, json_columns=["event"], max_rows_per_file=ROWS)
    table.refresh().delete("event:n::bigint IN (3, 200, 201)")
    table = table.refresh()
    table.set_properties({"variantlake.shredding.event": "STRUCT<kind: DOUBLE, n: STRING>"})
    other = pa.table({"p": pa.array([1] * 5, pa.int32()), "event": ['{"n": 7, "kind": "k1"}'] * 5})
    table.refresh().append(other, json_columns=["event"])
    return place


def answers(place: Path, text: str, short: int) -> list[dict[str, Any]] | str:
    with patch.object(several_files, "SHORT", short):
        try:
            return vl.Table.open(place).sql(text).to_arrow().to_pylist()
        except VariantLakeError as error:
            return type(error).__name__


wheres = st.none() | st.sampled_from(CONDITIONS)


@pytest.mark.rule(36)
@settings(deadline=None, max_examples=80)
@given(
    keys=st.lists(st.sampled_from(list(COLUMNS)), max_size=3, unique=True),
    aggregates=st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3, unique=True),
    where=wheres,
    repeated=st.sampled_from([0, 16]),
)
def test_groups_are_those_of_one_file_after_the_other(
    place: Path, keys: list[str], aggregates: list[str], where: str | None, repeated: int
) -> None:
    items = [f"{COLUMNS[key]} AS {key}" for key in keys]
    items += [f"{each} AS a{number}" for number, each in enumerate(aggregates)]
    text = f"SELECT {', '.join(items)} FROM t" + (f" WHERE {where}" if where else "")
    if keys:
        text += f" GROUP BY {', '.join(map(str, range(1, len(keys) + 1)))}"
    with patch.object(chunk_values, "_REPEATED", repeated):
        ours = answers(place, text, 1 << 15)
    assert sorted(map(str, ours)) == sorted(map(str, answers(place, text, -1)))


@pytest.mark.rule(36)
@settings(deadline=None, max_examples=60)
@given(
    order=st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=2, unique=True),
    down=st.booleans(),
    where=wheres,
    limit=st.none() | st.sampled_from([1, 5, ROWS + 3, 1000]),
)
def test_ordered_rows_are_those_of_one_file_after_the_other(
    place: Path, order: list[str], down: bool, where: str | None, limit: int | None
) -> None:
    items = ", ".join(f"{column} AS {name}" for name, column in COLUMNS.items())
    terms = [f"{each} {'DESC' if down else 'ASC'}" for each in order]
    text = f"SELECT {items} FROM t" + (f" WHERE {where}" if where else "")
    text += f" ORDER BY {', '.join([*terms, 'n', 'kind'])}"
    text += "" if limit is None else f" LIMIT {limit}"
    assert answers(place, text, 1 << 15) == answers(place, text, -1)


@pytest.mark.parametrize("short", [1 << 15, -1])
def test_a_damaged_file_among_small_ones_is_named(tmp_path: Path, short: int) -> None:
    place = tmp_path / "t"
    made = vl.Table.create(place, "event VARIANT")
    texts = [f'{{"n": {row}}}' for row in range(200)]
    made.append(pa.table({"event": texts}), json_columns=["event"], max_rows_per_file=50)
    opened = vl.Table.open(place)
    path = Path(list(opened.scan("event").choice.files)[1].path)
    data = path.read_bytes()
    path.write_bytes(data[:4] + bytes(len(data) // 3) + data[4 + len(data) // 3 :])
    with (
        patch.object(several_files, "SHORT", short),
        pytest.raises(VariantLakeError, match="row group 0") as raised,
    ):
        vl.Table.open(place).sql("SELECT max(event:n::bigint % 7) AS a FROM t").to_arrow()
    assert path.name in str(raised.value)

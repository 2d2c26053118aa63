"""Files that DuckDB wrote are read by us, and files of ours by DuckDB and pyarrow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.parquet.alike import write_alike
from variantlake.encoding.json import parse_json
from variantlake.encoding.variant import Variant
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.read.check import check_file
from variantlake.parquet.read.reader import read_table
from variantlake.parquet.read.single_paths import read_paths
from variantlake.parquet.variant.variant_arrays import variant_array
from variantlake.parquet.variant.variant_group import variant_groups
from variantlake.parquet.write.table_writer import write_table
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.shredding.schema import Untyped

DOCUMENTS = [
    '{"a": 1, "b": [1, "x"], "c": {"d": "s", "e": 1.5}}',
    '[1, 2, "x", null]',
    '{"a": "q", "z": null, "b": [], "c": {}}',
    '{"a": null, "b": ["p"], "c": {"d": null}, "\U0001f600": "\uffff"}',
    "{}",
    '"text"',
    "null",
    "1234567890123",
    "12.5",
    '{"b": "no list", "c": [{"d": 1}]}',
]


DUCKDB_TYPES = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT": "INTEGER",
    "BIGINT": "BIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "DECIMAL(9,2)": "DECIMAL(9,2)",
    "DECIMAL(18,4)": "DECIMAL(18,4)",
    "DECIMAL(38,10)": "DECIMAL(38,10)",
    "STRING": "VARCHAR",
    "BINARY": "BLOB",
    "DATE": "DATE",
    "TIME": "TIME",
    "TIMESTAMP_NTZ": "TIMESTAMP",
    "TIMESTAMP": "TIMESTAMPTZ",
    "TIMESTAMP_NTZ_NANOS": "TIMESTAMP_NS",
    "UUID": "UUID",
}
LITERALS = {
    "BOOLEAN": "true",
    "TINYINT": "-5",
    "SMALLINT": "300",
    "INTEGER": "70000",
    "BIGINT": "5000000000",
    "FLOAT": "1.5",
    "DOUBLE": "-2.25",
    "DECIMAL(9,2)": "12.34",
    "DECIMAL(18,4)": "-123456789.1234",
    "DECIMAL(38,10)": "1234567890123456789.0123456789",
    "VARCHAR": "'é'",
    "BLOB": "'ab'",
    "DATE": "'2024-02-29'",
    "TIME": "'12:34:56.789'",
    "TIMESTAMP": "'2024-02-29 12:34:56.789'",
    "TIMESTAMPTZ": "'2024-02-29 12:34:56.789+02'",
    "TIMESTAMP_NS": "'2024-02-29 12:34:56.789123456'",
    "UUID": "'f24f9b64-81fa-49d1-b74e-8c09a6e31c56'",
}


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connected:
        connected.execute("CREATE TABLE t (i INTEGER, v VARIANT)")
        for i, document in enumerate(DOCUMENTS):
            connected.execute("INSERT INTO t SELECT ?, ?::JSON::VARIANT", [i, document])
        yield connected


def copy(connection: duckdb.DuckDBPyConnection, file: Path, options: str = "") -> Path:
    connection.execute(f"COPY t TO '{file}' (FORMAT parquet{options})")
    return file


def documents(rows: list[Any]) -> list[Any]:
    return [None if row is None else json.loads(text_of(row)) for row in rows]


def text_of(row: dict[str, bytes]) -> str:
    return Variant(row["metadata"], row["value"]).to_json()


@pytest.mark.parametrize(
    "shredding",
    [
        "",
        ", SHREDDING {v: 'STRUCT(a INTEGER, b VARCHAR[], c STRUCT(d VARCHAR))'}",
        ", SHREDDING {v: 'VARCHAR[]'}",
        ", SHREDDING {v: 'BIGINT'}",
        ", SHREDDING {v: 'STRUCT(a STRUCT(x DOUBLE), b STRUCT(y DATE)[])'}",
    ],
    ids=["automatic", "object", "array", "leaf", "nothing-fits"],
)
def test_files_of_duckdb(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection, shredding: str
) -> None:
    file = copy(connection, tmp_path / "t.parquet", shredding)
    (group,) = variant_groups(read_footer(file))
    assert not isinstance(group.schema.root, Untyped)
    rows = read_table(file).column("v").to_pylist()
    assert documents(rows) == [json.loads(document) for document in DOCUMENTS]
    # DuckDB 2.0 leaves the fields of an object in the order of the text.
    assert [f for f in check_file(file) if "fields are ordered" not in f.message] == []


def test_every_type_of_duckdb(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    for name, literal in LITERALS.items():
        file = tmp_path / "t.parquet"
        query = f"SELECT ({literal})::{name} AS plain, ({literal})::{name}::VARIANT AS v"
        for options in ("", f", SHREDDING {{v: '{name}'}}"):
            connection.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet{options})")
            rows: list[Any] = read_table(file, ["v"]).column("v").to_pylist()
            (row,) = rows
            plain = pq.read_table(file, columns=["plain"]).column("plain")[0]
            assert Variant(row["metadata"], row["value"]) == Variant.of(plain), name
            assert list(check_file(file)) == []


def test_single_paths_of_a_file_of_duckdb(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    file = copy(
        connection, tmp_path / "t.parquet", ", SHREDDING {v: 'STRUCT(c STRUCT(d VARCHAR))'}"
    )
    table = read_paths(file, {"d": "v:c.d", "b": "v:b[0]::string"}, on_mismatch="null")
    assert table.column("d").to_pylist() == ["s", *[None] * 9]
    assert table.column("b").to_pylist() == [None, None, None, "p", *[None] * 6]


@pytest.mark.parametrize(
    "shredding",
    [None, "infer", "a BIGINT, b ARRAY<STRING>, c STRUCT<d: STRING>", "ARRAY<BIGINT>", "STRING"],
)
def test_files_of_ours_are_read_by_duckdb_and_pyarrow(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection, shredding: str | None
) -> None:
    rows: list[Any] = [None]
    for document in DOCUMENTS:
        variant = parse_json(document)
        rows.append({"metadata": variant.metadata, "value": variant.value})
    file = tmp_path / "t.parquet"
    write_table(pa.table({"v": pa.array(rows, VARIANT_TYPE)}), file, shredding=shredding)
    assert pq.read_table(file).num_rows == len(rows)
    found = connection.execute(f"SELECT v::JSON::VARCHAR FROM '{file}'").fetchall()
    assert [text and json.loads(text) for (text,) in found] == [
        None,
        *map(json.loads, DOCUMENTS),
    ]


@pytest.mark.parametrize("shredded", [False, True], ids=["unshredded", "shredded"])
@pytest.mark.parametrize(("ddl", "name"), DUCKDB_TYPES.items(), ids=list(DUCKDB_TYPES))
def test_duckdb_reads_every_type_of_ours(
    tmp_path: Path, ddl: str, name: str, shredded: bool
) -> None:
    file = tmp_path / "t.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT ({LITERALS[name]})::{name} AS p) TO '{file}'")
        plain = pq.read_table(file).column("p")[0]
        rows = variant_array([Variant.of(plain), None])
        write_table(pa.table({"v": rows}), file, shredding=ddl if shredded else None)
        query = f"SELECT v::{name} IS NOT DISTINCT FROM ({LITERALS[name]})::{name} FROM '{file}'"
        assert connection.execute(query).fetchall() == [(True,), (False,)]


def test_texts_written_without_what_they_share(tmp_path: Path) -> None:
    """DELTA_BYTE_ARRAY, over several pages, as DuckDB, pyarrow and we read it."""
    file = tmp_path / "x.parquet"
    ids = write_alike(file)
    query = f"SELECT number, id, event.id::VARCHAR FROM '{file}' ORDER BY number"
    expected = [(number, text, text) for number, text in enumerate(ids)]
    assert duckdb.execute(query).fetchall() == expected
    late = f"SELECT number, id, event.id::VARCHAR FROM '{file}' WHERE number = 3777"
    assert duckdb.execute(late).fetchall() == expected[3777:3778]
    assert pq.read_table(file, columns=["id"]).column(0).to_pylist() == ids
    assert read_paths(file, {"id": "event:id::string"}).column(0).to_pylist() == ids
    assert not list(check_file(file))

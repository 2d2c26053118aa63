"""`vl.duckdb`: tables in DuckDB's own SQL (`pip install variantlake[duckdb]`)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from variantlake.errors import InvalidValue, UnsupportedFeature
from variantlake.expressions.from_python import Expr
from variantlake.familiar_names import says_its_keywords
from variantlake.interop.pushed_scan import PushedScan
from variantlake.storage.options import reach_with
from variantlake.table import Table

if TYPE_CHECKING:
    import duckdb

__all__ = ["attach"]


@says_its_keywords
def attach(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    table: Table | str | os.PathLike[str],
    select: str | Expr | Sequence[str | Expr] = "*",
    where: str | Expr | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> None:
    """Register a table with a DuckDB connection, for SQL; paths become columns.

    After `vl.duckdb.attach(con, "events", table, ["id", "event:user::string AS user"])`,
    `con.sql("SELECT id FROM events WHERE user = 'x'")` reads what `Table.scan` would read: the
    columns that the query names, of files that may hold its rows. The scan takes over comparisons
    of columns with constants, IN, IS NULL, AND, OR and NOT; DuckDB evaluates the rest. DuckDB sees
    VARIANT columns as its own VARIANT type.

    Args:
        connection: A connection of DuckDB 2.
        name: The table's name in SQL; replaces another object of that name.
        table: A table or its location. Queries read this version; attach again for a newer one.
        select: Columns and paths, as for `Table.scan`.
        where: Only rows that fulfil this condition, as for `Table.scan`.
        storage_options: Options to access the table's bucket, as for `Table.open`.

    Raises:
        InvalidQuery: As `Table.scan`; two columns with one name.
        InvalidValue: `connection` is not a DuckDB connection, or `name` is not a name.
        UnsupportedFeature: As `Table.scan`; DuckDB is not installed, or too old.
    """
    try:
        from variantlake.interop.duckdb_source import DuckDBSource
    except ImportError as error:
        raise UnsupportedFeature(
            f"DuckDB 2 is not installed: {error}", hint="pip install 'variantlake[duckdb]'"
        ) from error
    reach_with(table, storage_options)
    pushed = PushedScan(Table.of(table).scan(select, where))
    if not hasattr(connection, "register"):
        raise InvalidValue(
            f"{connection!r:.60} is not a connection of DuckDB",
            hint="duckdb.connect(), or the con of a connection of Ibis",
            cli_hint="",
        )
    if not isinstance(name, str) or not name:
        raise InvalidValue(f"no table is called {name!r:.60}", hint="give it a name", cli_hint="")
    connection.register(name, DuckDBSource(pushed))

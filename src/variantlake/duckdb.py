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
    """Let SQL of a DuckDB connection call a table by a name; paths are columns of their own.

    `vl.duckdb.attach(con, "events", table, ["id", "event:user::string AS user"])`, and
    `con.sql("SELECT id FROM events WHERE user = 'x'")` reads what `Table.scan` would: the columns
    that the query names, of files that may hold its rows. Comparisons of columns with constants,
    IN, IS NULL, AND, OR and NOT are pushed; DuckDB does the rest. It has VARIANT columns as its own
    VARIANT.

    Args:
        connection: Of DuckDB 2.
        name: What SQL calls the table; another object of that name is replaced.
        table: A table or where it is: one version; attach a newer one again.
        select: Columns and paths, as for `Table.scan`.
        where: Only rows that fulfil this condition, as for `Table.scan`.
        storage_options: How the table's bucket is reached, as for `Table.open`.

    Raises:
        InvalidQuery: As `Table.scan`; two columns with one name.
        InvalidValue: What is no connection, or no name.
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

"""`vl.datafusion`: tables in DataFusion's SQL (`pip install variantlake[datafusion]`)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from variantlake.errors import InvalidValue
from variantlake.expressions.from_python import Expr
from variantlake.familiar_names import says_its_keywords
from variantlake.interop.pushed_scan import PushedScan
from variantlake.storage.options import reach_with
from variantlake.table import Table

if TYPE_CHECKING:
    import datafusion

__all__ = ["attach"]


@says_its_keywords
def attach(
    context: datafusion.SessionContext,
    name: str,
    table: Table | str | os.PathLike[str],
    select: str | Expr | Sequence[str | Expr] = "*",
    where: str | Expr | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> None:
    """Register a table with a DataFusion context, for SQL and frames; paths become columns.

    After `vl.datafusion.attach(ctx, "events", table, ["id", "event:user::string AS user"])`,
    `ctx.sql("SELECT id FROM events WHERE user = 'x'")` reads what `Table.scan` would read: the
    columns that the query names, of files that may hold its rows. Comparisons of columns with
    constants, IN, IS NULL, AND and OR skip files and rows.

    Args:
        context: A DataFusion SessionContext.
        name: The table's name in SQL; replaces another table of that name.
        table: A table or its location. Queries read this version; attach again for a newer one.
        select: Columns and paths, as for `Table.scan`.
        where: Only rows that fulfil this condition, as for `Table.scan`.
        storage_options: Options to access the table's bucket, as for `Table.open`.

    Raises:
        InvalidQuery: As `Table.scan`; two columns with one name.
        InvalidValue: `context` is not a DataFusion context.
        UnsupportedFeature: As `Table.scan`.
    """
    from variantlake.interop.datafusion_dataset import DataFusionDataset

    reach_with(table, storage_options)
    pushed = PushedScan(Table.of(table).scan(select, where))
    if not hasattr(context, "register_dataset"):
        raise InvalidValue(
            f"{context!r:.60} is not a context of DataFusion",
            hint="datafusion.SessionContext()",
            cli_hint="",
        )
    dataset = DataFusionDataset(pushed)
    if context.table_exist(name):
        context.deregister_table(name)
    context.register_dataset(name, dataset)

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
    """Let SQL and frames of a DataFusion context call a table by a name; paths are columns.

    `vl.datafusion.attach(ctx, "events", table, ["id", "event:user::string AS user"])`, and
    `ctx.sql("SELECT id FROM events WHERE user = 'x'")` reads what `Table.scan` would: the columns
    that the query names, of files that may hold its rows. Comparisons of columns with constants,
    IN, IS NULL, AND and OR skip files and rows.

    Args:
        context: A SessionContext of DataFusion.
        name: What SQL calls the table; another one of that name is replaced.
        table: A table or where it is: one version; attach a newer one again.
        select: Columns and paths, as for `Table.scan`.
        where: Only rows that fulfil this condition, as for `Table.scan`.
        storage_options: How the table's bucket is reached, as for `Table.open`.

    Raises:
        InvalidQuery: As `Table.scan`; two columns with one name.
        InvalidValue: `context` is none of DataFusion.
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

"""Keeping a table in shape: files that are rewritten, removed or brought back."""

from __future__ import annotations

from variantlake.table.alterations import TableAlterations


class TableMaintenance(TableAlterations):
    """The part of `Table` that keeps its files in shape; no row changes."""

    __slots__ = ()

"""A plugin of dbt-duckdb: sources whose rows are a scan of a Variantlake table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbt.adapters.duckdb.plugins import BasePlugin

import variantlake as vl

if TYPE_CHECKING:
    import pyarrow as pa
    from dbt.adapters.duckdb.utils import SourceConfig


class Plugin(BasePlugin):
    """`table` is the table's path or URL, `select` its columns and paths, `where` skips files."""

    def initialize(self, plugin_config: dict[str, Any]) -> None:
        """Nothing is to be set."""

    def load(self, source_config: SourceConfig) -> pa.Table:
        """The rows of one source."""
        table = vl.Table.open(source_config["table"], source_config.get("version"))
        return table.scan(source_config["select"], source_config.get("where")).to_arrow()

"""`variantlake.dbt`: tables as sources and models of dbt-duckdb (`pip install variantlake[dbt]`).

The dbt profile names the plugin: `plugins: [{module: variantlake.dbt, alias: variantlake}]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from variantlake.errors import InvalidValue
from variantlake.ingest.encode.rows import given_schema
from variantlake.interop.asset_table import asset_table
from variantlake.interop.duckdb_source import DuckDBSource
from variantlake.interop.pushed_scan import PushedScan
from variantlake.table import Table

try:
    from dbt.adapters.duckdb.plugins import BasePlugin
except ImportError as error:  # dbt expects this error of a plugin
    raise ImportError(
        f"dbt-duckdb is not installed ({error}): pip install 'variantlake[dbt]'"
    ) from error

if TYPE_CHECKING:
    from dbt.adapters.duckdb.utils import SourceConfig, TargetConfig

__all__ = ["Plugin"]


class Plugin(BasePlugin):  # type: ignore[misc]  # dbt ships no types
    """A source is a scan; an external model with `plugin: variantlake` replaces a table's rows."""

    def initialize(self, plugin_config: dict[str, Any]) -> None:
        """Do nothing: the plugin has no settings."""

    def load(self, source_config: SourceConfig) -> DuckDBSource:
        """Return the rows of a source: `table` is its path or URL, `select` its columns and paths.

        `where` and `version` are as for `Table.scan` and `Table.open`. With
        `materialization: view`, each query of the source reads only the columns and files that it
        needs.
        """
        table = Table.open(_location(source_config.get("table")), source_config.get("version"))
        select, where = source_config.get("select", "*"), source_config.get("where")
        return DuckDBSource(PushedScan(table.scan(select, where)))

    def store(self, target_config: TargetConfig) -> None:
        """Replace the rows of a table with those of a model; creates a missing table.

        The model's config `variantlake_table` is the table's path or URL, and
        `variantlake_json_columns` lists columns of JSON text that become Variants.
        """
        location = _location(target_config.config.get("variantlake_table"), "variantlake_table")
        json_columns = target_config.config.get("variantlake_json_columns") or []
        rows = pq.read_table(target_config.location.path)
        table = asset_table(location, given_schema(rows.schema, json_columns))
        table.overwrite(rows, json_columns=json_columns)


def _location(value: object, name: str = "table") -> str:
    if not isinstance(value, str) or not value:
        raise InvalidValue(
            f"a source or model of the plugin needs {name}: the table's path or URL", cli_hint=""
        )
    return value

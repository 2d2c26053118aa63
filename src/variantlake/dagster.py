"""`variantlake.dagster`: tables as assets of Dagster (`pip install variantlake[dagster]`)."""

from typing import Any  # no postponed annotations: Dagster reads those of its resources

import pyarrow as pa
from dagster import ConfigurableIOManager, InputContext, OutputContext

from variantlake.delta.schema.table_schema import StructType
from variantlake.errors import UnsupportedFeature
from variantlake.ingest.encode.rows import given_schema
from variantlake.ingest.frames import as_arrow
from variantlake.ingest.inputs import arrow_reader
from variantlake.interop.asset_table import asset_table
from variantlake.table import Table

__all__ = ["VariantLakeIOManager"]


class VariantLakeIOManager(ConfigurableIOManager):  # type: ignore[misc]  # absent in development
    """Each asset is a table in `folder`, a path or URL, called by the asset's key.

    `Definitions(assets=[…], resources={"io_manager": VariantLakeIOManager(folder="/lake")})`. What
    an asset gives replaces the table's rows in one commit: Arrow data and frames have the table's
    columns, anything else that `Table.append` takes are documents. An asset that depends on it gets
    a DataFrame of pandas or Polars or a table of pyarrow if its parameter says so, else the
    `Table`, to scan what it needs.
    """

    folder: str

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        """Replace the rows of an asset's table, which is made if need be; nothing for None."""
        if obj is None:
            return
        if context.has_partition_key:
            raise UnsupportedFeature(
                f"the IO manager does not take partitions of {context.asset_key.to_user_string()}"
            )
        reader = arrow_reader(as_arrow(obj, StructType(())))
        schema = "document VARIANT" if reader is None else given_schema(reader.schema, ())
        table = asset_table(self._place(context), schema)
        done = table.overwrite(obj if reader is None else reader)
        context.add_output_metadata({"version": done.version, "rows": done.rows_written})

    def load_input(self, context: InputContext) -> Any:
        """An asset's table, or its rows as the type of the parameter."""
        table = Table.open(self._place(context))
        wanted = context.dagster_type.typing_type
        library = getattr(wanted, "__module__", "").partition(".")[0]
        if getattr(wanted, "__name__", "") == "DataFrame" and library in ("pandas", "polars"):
            return table.scan().to_pandas() if library == "pandas" else table.scan().to_polars()
        return table.scan().to_arrow() if wanted is pa.Table else table

    def _place(self, context: InputContext | OutputContext) -> str:
        return "/".join([self.folder.rstrip("/"), *context.asset_key.path])

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
    """Stores each asset as a table in `folder`, a path or URL; the asset's key names the table.

    `Definitions(assets=[…], resources={"io_manager": VariantLakeIOManager(folder="/lake")})`. An
    asset's output replaces the table's rows in one commit. Arrow data and frames keep their
    columns; anything else that `Table.append` takes is loaded as documents. A downstream asset gets
    a pandas or Polars DataFrame or a pyarrow table if its parameter has that type, else the
    `Table`, which it can scan.
    """

    folder: str

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        """Replace the rows of an asset's table; creates a missing table. None writes nothing.

        Raises UnsupportedFeature for a partition of an asset.
        """
        if obj is None:
            return
        if context.has_partition_key:
            raise UnsupportedFeature(
                f"the IO manager does not take partitions of {context.asset_key.to_user_string()}"
            )
        reader = arrow_reader(as_arrow(obj, StructType(())))
        schema = "document VARIANT" if reader is None else given_schema(reader.schema, ())
        table = asset_table(self._location(context), schema)
        result = table.overwrite(obj if reader is None else reader)
        context.add_output_metadata({"version": result.version, "rows": result.rows_written})

    def load_input(self, context: InputContext) -> Any:
        """Return an asset's table, or its rows as the type of the parameter."""
        table = Table.open(self._location(context))
        wanted = context.dagster_type.typing_type
        library = getattr(wanted, "__module__", "").partition(".")[0]
        if getattr(wanted, "__name__", "") == "DataFrame" and library in ("pandas", "polars"):
            return table.scan().to_pandas() if library == "pandas" else table.scan().to_polars()
        return table.scan().to_arrow() if wanted is pa.Table else table

    def _location(self, context: InputContext | OutputContext) -> str:
        return "/".join([self.folder.rstrip("/"), *context.asset_key.path])

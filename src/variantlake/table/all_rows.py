"""Methods of a table that read all its rows, as DataFrames have them, based on `Table.scan`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from variantlake.familiar_names import says_its_keywords
from variantlake.shown import Shown

if TYPE_CHECKING:
    import pyarrow as pa

    from variantlake.scan.arrow_stream import HeadRows
    from variantlake.scan.table_scan import Scan


class AllRows(Shown):
    """Base class of a table: reads all rows of its version through `scan()`."""

    __slots__ = ()

    def scan(self) -> Scan:
        """Return a scan of all rows of the table's version."""
        raise NotImplementedError

    def count(self) -> int:
        """Count the rows, mostly from the log alone. Raises as `scan`.

        Examples:
            >>> t.count()
            2
        """
        return self.scan().count()

    def head(self, rows: int = 10) -> HeadRows:
        """Return the first rows, reading no more files than needed; a prompt shows them.

        Raises InvalidValue for an invalid number of rows, otherwise as `scan`.
        """
        return self.scan().head(rows)

    @says_its_keywords
    def to_arrow(self) -> pa.Table:
        """Return all rows as one Arrow table. Raises as `scan`."""
        return self.scan().to_arrow()

    @says_its_keywords
    def to_pandas(self) -> Any:
        """Return all rows as a pandas DataFrame, with Variants as Python values.

        Raises MissingDependency without pandas, otherwise as `scan`.
        """
        return self.scan().to_pandas()

    @says_its_keywords
    def to_polars(self) -> Any:
        """Return all rows as a Polars DataFrame, with Variants as JSON text.

        Raises MissingDependency without Polars, otherwise as `scan`. `vl.scan_polars` returns a
        LazyFrame, which reads only what a query needs.
        """
        return self.scan().to_polars()

    @says_its_keywords
    def to_pylist(self) -> list[dict[str, Any]]:
        """Return all rows as dicts, with Variants as Python values. Raises as `scan`.

        Examples:
            >>> t.to_pylist()[0]["event"]
            {'kind': 'a', 'n': 1}
        """
        return self.scan().to_pylist()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the rows, as dicts like those of `to_pylist`. Raises as `scan`."""
        return iter(self.scan())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return an Arrow C stream, so that DuckDB, Polars and pyarrow accept a table directly."""
        return self.scan().__arrow_c_stream__(requested_schema)

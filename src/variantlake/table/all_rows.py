"""All rows of a table without a word more: what every frame has, over `Table.scan`."""

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
    """Base of a table: what it gives are the rows of its version, as those of `scan()`."""

    __slots__ = ()

    def scan(self) -> Scan:
        """The rows of the table's version."""
        raise NotImplementedError

    def count(self) -> int:
        """The number of rows, mostly from the log alone. Raises as `scan`.

        Examples:
            >>> t.count()
            2
        """
        return self.scan().count()

    def head(self, rows: int = 10) -> HeadRows:
        """The first rows, without reading more files than they need; a prompt shows them.

        Raises InvalidValue for what is not a number of rows, else as `scan`.
        """
        return self.scan().head(rows)

    @says_its_keywords
    def to_arrow(self) -> pa.Table:
        """All rows as one table of Arrow. Raises as `scan`."""
        return self.scan().to_arrow()

    @says_its_keywords
    def to_pandas(self) -> Any:
        """All rows as a DataFrame of pandas, with Variants as values of Python.

        Raises MissingDependency without pandas, else as `scan`.
        """
        return self.scan().to_pandas()

    @says_its_keywords
    def to_polars(self) -> Any:
        """All rows as a DataFrame of Polars, with Variants as JSON text.

        Raises MissingDependency without Polars, else as `scan`. `vl.scan_polars` gives a
        LazyFrame, which reads what a query needs.
        """
        return self.scan().to_polars()

    @says_its_keywords
    def to_pylist(self) -> list[dict[str, Any]]:
        """All rows as dicts, with Variants as values of Python. Raises as `scan`.

        Examples:
            >>> t.to_pylist()[0]["event"]
            {'kind': 'a', 'n': 1}
        """
        return self.scan().to_pylist()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows as `to_pylist` gives them, one by one. Raises as `scan`."""
        return iter(self.scan())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow C stream interface: DuckDB, Polars and pyarrow take a table as it is."""
        return self.scan().__arrow_c_stream__(requested_schema)

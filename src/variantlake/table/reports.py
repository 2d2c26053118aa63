"""Looking at a table as a whole."""

from __future__ import annotations

import html

from variantlake.report.table_report import TableReport, report_table
from variantlake.shown import counted
from variantlake.table.change_feed import TableChangeFeed


class TableReports(TableChangeFeed):
    """The part of `Table` that shows what it is like."""

    __slots__ = ()

    def report(self, *, examples: bool = True) -> TableReport:
        """Files, paths, types, what filters skip, drift and advice, as one page and as JSON.

        The log says most of it; a sample of 10,000 rows of each VARIANT column and the footers of
        eight files say the rest.

        Args:
            examples: False leaves values of the data out: examples and bounds.

        `save("report.html")` writes the page, `to_dict()` gives the data; a notebook shows it.

        Raises as `scan` for a file that cannot be read.
        """
        return report_table(self.snapshot, examples=examples)

    def _repr_html_(self) -> str:
        """What a notebook shows of the table: where it is and its columns, without reading rows."""
        columns = "".join(
            f"<tr><td>{html.escape(item.name)}</td><td>{html.escape(str(item.type))}</td></tr>"
            for item in self.schema.fields
        )
        return (
            f"<p><b>{html.escape(self.uri)}</b>, version {self.version:,}, "
            f"{counted(self.snapshot.files.num_rows, 'file')}</p>"
            f"<table><tr><th>column</th><th>type</th></tr>{columns}</table>"
        )

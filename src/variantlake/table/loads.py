"""Continuous loading into a table, and what became of each file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Unpack

import pyarrow as pa

from variantlake.autoloading.autoloader import AutoloadResult
from variantlake.autoloading.batch import BatchReport
from variantlake.autoloading.loads import LOADS, list_loads, retry_failed
from variantlake.autoloading.options import Duration
from variantlake.autoloading.run import AutoloadOptionKeywords, autoload
from variantlake.delta.schema.table_schema import VariantType
from variantlake.errors import InvalidSchema
from variantlake.table.handle import check_limit
from variantlake.table.reports import TableReports


class TableLoads(TableReports):
    """The part of `Table` that loads what is new in a source."""

    __slots__ = ()

    def autoload(
        self,
        source: str | os.PathLike[str],
        *,
        name: str | None = None,
        every: Duration | None = None,
        stop: Callable[[], bool] | None = None,
        on_batch: Callable[[BatchReport], None] | None = None,
        metrics_file: str | os.PathLike[str] | None = None,
        format: str | None = None,  # noqa: A002 - the name that users know
        column: str | None = None,
        shredding: str | None = None,
        **options: Unpack[AutoloadOptionKeywords],
    ) -> AutoloadResult:
        """Load what is new in a folder or bucket, each file exactly once; see `vl.autoload`.

        `column` is the VARIANT column that takes the documents; the only one if None.
        """
        return autoload(
            source,
            self.uri,
            name=name,
            every=every,
            stop=stop,
            on_batch=on_batch,
            metrics_file=metrics_file,
            format=format,
            column=column or self._only_variant(),
            shredding=shredding,
            **options,
        )

    def loads(
        self,
        name: str | None = None,
        *,
        file: str | None = None,
        state: str | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """What the autoloads of the table did with each file, up to this version.

        The columns are name, file, state, rows, bad_rows, version, time, size and error, sorted by
        the names of autoload and file. The state is one of "loaded", "empty", "failed", "retry" and
        "skipped" (too old).

        Args:
            name: Of one autoload; None for all.
            file: A pattern of the file's path from the source's root, as in a glob: `**/*.gz`.
            state: Only files in this state.
            limit: At most this many rows.

        Raises InvalidValue for an autoload that the table does not know, an unknown state or a
        limit below 0, MalformedLog where what the log names is missing or damaged.
        """
        check_limit(limit)
        pieces = list_loads(self.snapshot, name=name, file=file, state=state)
        if limit is not None:
            pieces = _limited(pieces, limit)
        return pa.concat_tables([LOADS.empty_table(), *pieces])

    def retry_loads(self, name: str | None = None, *, file: str | None = None) -> int:
        """Have files tried again that could not be read, by the next round; how many.

        Args:
            name: Of one autoload; None for all.
            file: A pattern of the file's path from the source's root, as in a glob.

        Raises CommitConflict if the autoload committed a batch meanwhile, else as `loads`.
        """
        return retry_failed(self._newest(), name=name, file=file)

    def _only_variant(self) -> str:
        names = [f.name for f in self.schema.fields if isinstance(f.type, VariantType)]
        if len(names) != 1:
            raise InvalidSchema(
                f"the table has {len(names)} VARIANT columns",
                file=self.uri,
                hint="say with column= which one takes the documents",
            )
        return names[0]


def _limited(pieces: Iterator[pa.Table], limit: int) -> Iterator[pa.Table]:
    left = limit
    for piece in pieces:
        if left <= 0:
            return
        yield piece.slice(0, left)
        left -= piece.num_rows

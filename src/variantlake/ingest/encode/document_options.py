"""What a load of documents has beyond what every load has: see `LoadOptions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, Unpack, cast

from variantlake.errors import InvalidValue
from variantlake.ingest.encode.document_columns import PartitionBy, RequestedColumns
from variantlake.writing.keywords import check_keywords
from variantlake.writing.options import LoadKeywords, LoadOptions


class DocumentKeywords(LoadKeywords, total=False):
    """The keywords of a load of documents; their meaning is that of `DocumentOptions`."""

    skip_empty: bool
    partition_by: PartitionBy
    file_column: str | None
    loaded_at_column: str | None
    merge_schema: bool
    hints: str | None


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """How a load treats its sources, and what it fills beside the documents.

    load: What every load has.
    wanted: `partition_by` are the partition columns, each with a path of the documents and its type
        (`"day=event:ts::date"`), or alone, for the folders of the sources (`day=2026-01-31/`); one
        text, several, or a mapping. A new table is partitioned so; of one that is partitioned the
        columns that are left out come from folders. `file_column` takes the path or URL of the
        source, `loaded_at_column` the time of the load, the same in all of its rows.
    skip_empty: Files without a document are skipped and counted, else refused.
    merge_schema: The columns that are asked for and that the table does not have are added to it.
    hints: Paths of the documents that must be columns, as in `user.id BIGINT, output.* DOUBLE`; the
        table keeps them (`variantlake.hints.<column>`). None leaves those that it has.
    """

    load: LoadOptions
    wanted: RequestedColumns
    skip_empty: bool = True
    merge_schema: bool = False
    hints: str | None = None

    @classmethod
    def of(cls, **keywords: Unpack[DocumentKeywords]) -> Self:
        """The options as users give them.

        Raises InvalidValue for one that nobody knows, or that says nothing of documents.
        """
        known = DocumentKeywords.__annotations__.keys() | LoadKeywords.__annotations__.keys()
        check_keywords(keywords, known)
        if keywords.get("truncate_timestamps"):
            raise InvalidValue(
                "documents have no timestamps to truncate",
                hint="leave truncate_timestamps out: it is for Arrow data and DataFrames",
                cli_hint="",
            )
        shared: dict[str, Any] = {
            name: value for name, value in keywords.items() if name in LoadKeywords.__annotations__
        }
        wanted = RequestedColumns.of(
            keywords.get("partition_by") or (),
            keywords.get("file_column"),
            keywords.get("loaded_at_column"),
        )
        return cls(
            LoadOptions.of(**cast("LoadKeywords", shared)),
            wanted,
            keywords.get("skip_empty", True),
            keywords.get("merge_schema", False),
            keywords.get("hints"),
        )

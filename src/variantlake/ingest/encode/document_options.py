"""The options of a load of documents, beyond those of every load (`LoadOptions`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, Unpack, cast

from variantlake.delta.schema.table_schema import StructField, StructType, VariantType
from variantlake.errors import InvalidValue
from variantlake.ingest.encode.document_columns import PartitionBy, RequestedColumns
from variantlake.writing.options.keywords import check_keywords
from variantlake.writing.options.load_options import LoadKeywords, LoadOptions

DEFAULT_COLUMN = "event"
"""The default column for the documents of a new table."""


class DocumentKeywords(LoadKeywords, total=False):
    """The keywords of a load of documents; `DocumentOptions` explains them."""

    skip_empty: bool
    partition_by: PartitionBy
    file_column: str | None
    loaded_at_column: str | None
    merge_schema: bool
    hints: str | None
    format: str | None
    storage_options: Mapping[str, str] | None


class IngestKeywords(DocumentKeywords, total=False):
    """The keywords of a load that may create its table; see `DocumentOptions`."""

    column: str | None
    shredding: str | None
    properties: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """The options of a load for its sources, and for the columns that it fills.

    load: The options of every load.
    format: The format of files that are given by paths: `"ndjson"` (one document per line),
        `"array"` (one array of them), `"json"` (one document per file, on many lines); `"csv"`,
        `"avro"`, `"msgpack"` and `"bson"` are not JSON.
    column: The VARIANT column for the documents. None means the table's only one, or `event` in a
        new table. Other columns get NULL.
    shredding: The paths that become columns, as DDL (`"kind STRING, n BIGINT"`); `VARIANT` for
        none. None means the table's shredding; without one, it is learned from a sample and kept.
    properties: Table properties for a table that the load creates.
    wanted: `partition_by` are the partition columns, each with a path of the documents and its type
        (`"day=event:ts::date"`), or alone, for the folders of the sources (`day=2026-01-31/`); one
        text, several, or a mapping. It partitions a new table; in a partitioned table, columns that
        are left out come from folders. `file_column` gets the path or URL of the source,
        `loaded_at_column` the time of the load, the same in all of its rows.
    skip_empty: Skip and count files without a document; else refuse them.
    merge_schema: Add requested columns that the table lacks.
    hints: Paths of the documents that must be columns, as in `user.id BIGINT, output.* DOUBLE`; the
        table keeps them (`variantlake.hints.<column>`). None leaves the table's hints.
    """

    load: LoadOptions
    wanted: RequestedColumns
    skip_empty: bool = True
    merge_schema: bool = False
    hints: str | None = None
    format: str | None = None
    column: str | None = None
    shredding: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, **keywords: Unpack[IngestKeywords]) -> Self:
        """Make options of users' keywords.

        Raises InvalidValue for an unknown option, or one that does not concern documents.
        """
        check_keywords(keywords, IngestKeywords.__optional_keys__)
        if keywords.get("truncate_timestamps"):
            raise InvalidValue(
                "documents have no timestamps to truncate",
                hint="leave truncate_timestamps out: it is for Arrow data and DataFrames",
                cli_hint="",
            )
        names = LoadKeywords.__optional_keys__
        shared: dict[str, Any] = {key: value for key, value in keywords.items() if key in names}
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
            keywords.get("format"),
            keywords.get("column"),
            keywords.get("shredding"),
            keywords.get("properties") or {},
        )

    @property
    def new_columns(self) -> StructType:
        """The columns of a table that the load creates."""
        documents = StructField(self.column or DEFAULT_COLUMN, VariantType())
        return self.wanted.new_fields(documents)

    def column_in(self, schema: StructType) -> str:
        """Return the name of the column for the documents in a table."""
        if self.column is not None:
            return self.column
        names = [each.name for each in schema.fields if isinstance(each.type, VariantType)]
        return names[0] if len(names) == 1 else DEFAULT_COLUMN

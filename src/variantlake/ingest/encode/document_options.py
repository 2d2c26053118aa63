"""What a load of documents has beyond what every load has: see `LoadOptions`."""

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
"""Where the documents of a new table go unless the caller says otherwise."""


class DocumentKeywords(LoadKeywords, total=False):
    """The keywords of a load of documents; their meaning is that of `DocumentOptions`."""

    skip_empty: bool
    partition_by: PartitionBy
    file_column: str | None
    loaded_at_column: str | None
    merge_schema: bool
    hints: str | None
    format: str | None
    storage_options: Mapping[str, str] | None


class IngestKeywords(DocumentKeywords, total=False):
    """The keywords of a load that may make its table; see `DocumentOptions`."""

    column: str | None
    shredding: str | None
    properties: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """How a load treats its sources, and what it fills beside the documents.

    load: What every load has.
    format: How documents stand in files that are given by paths: `"ndjson"` (one a line), `"array"`
        (one array of them), `"json"` (one document a file, over many lines); `"csv"`, `"avro"`,
        `"msgpack"` and `"bson"` are not JSON.
    column: The VARIANT column that takes the documents; the table's only one for None, `event` in a
        new table. Other columns get NULL.
    shredding: Which paths become columns, as DDL (`"kind STRING, n BIGINT"`); `VARIANT` for none.
        None takes the table's own, or learns it from a sample and keeps it.
    properties: Table properties for a table that is made here.
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
    format: str | None = None
    column: str | None = None
    shredding: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, **keywords: Unpack[IngestKeywords]) -> Self:
        """The options as users give them.

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
        """The columns of a table that the load makes."""
        documents = StructField(self.column or DEFAULT_COLUMN, VariantType())
        return self.wanted.new_fields(documents)

    def column_in(self, schema: StructType) -> str:
        """The name of the column that takes the documents in a table."""
        if self.column is not None:
            return self.column
        names = [each.name for each in schema.fields if isinstance(each.type, VariantType)]
        return names[0] if len(names) == 1 else DEFAULT_COLUMN

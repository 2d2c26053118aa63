"""What `df.writeStream.format("variantlake")` is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from variantlake.spark.load.append_target import NewTable
from variantlake.spark.scan.source_options import flag, given_options, whole_number
from variantlake.writing.options import LoadOptions

_SPARK = ("checkpointLocation", "queryName")
"""Options of the query that Spark gives to the sink too."""

_NAMES = (
    "queryId",
    "jsonColumns",
    "partitionBy",
    "shredding",
    "createTable",
    "mergeSchema",
    "autoCompact",
    "metricsFile",
    "mode",
    "orderBy",
    "arrays",
    "maxRowsPerFile",
    "targetFileBytes",
)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """A table, and how batches are written to it.

    `query` is the name by which the table knows the query; empty for the stream's own id. `new` is
    what a table is like that the first batch makes; None makes none. `auto_compact` says whether
    small files are joined after a commit; None asks the table. `metrics_file` is one of
    the driver's; empty for none.
    """

    location: str
    query: str
    json_columns: tuple[str, ...]
    new: NewTable | None
    merge_schema: bool
    auto_compact: bool | None
    metrics_file: str
    load: LoadOptions

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """The options as Spark gives them, all of them text; names in any case.

        Raises InvalidQuery for an option that nobody knows, InvalidValue for one that cannot be.
        """
        given = given_options(options, _NAMES, "the sink", begin="start", also=_SPARK)
        new = NewTable.of(_list(given, "partitionBy"), given.get("shredding"), None)
        numbers = {
            "max_rows_per_file": whole_number(given, "maxRowsPerFile"),
            "target_file_bytes": whole_number(given, "targetFileBytes"),
        }
        load: dict[str, Any] = {name: value for name, value in numbers.items() if value is not None}
        if "mode" in given:
            load["mode"] = given["mode"]
        return cls(
            given["path"],
            given.get("queryId", ""),
            _list(given, "jsonColumns"),
            new if flag(given, "createTable", default=True) else None,
            flag(given, "mergeSchema", default=False),
            flag(given, "autoCompact", default=False) if "autoCompact" in given else None,
            given.get("metricsFile", ""),
            LoadOptions.of(
                order_by=_list(given, "orderBy"),
                arrays=flag(given, "arrays", default=False),
                **load,
            ),
        )


def _list(given: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(text for each in given.get(name, "").split(",") if (text := each.strip()))

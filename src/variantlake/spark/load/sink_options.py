"""Options of `df.write` and `df.writeStream` with `format("variantlake")`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from variantlake.errors import InvalidQuery, InvalidValue
from variantlake.ingest.overwrite import Overwrite
from variantlake.spark.load.append_target import NewTable
from variantlake.spark.scan.source_options import flag, given_options, whole_number
from variantlake.telemetry.prometheus import check_installed
from variantlake.writing.options.load_options import LoadOptions

_SPARK = ("checkpointLocation", "queryName")
"""Options of the query, which Spark also passes to the sink."""

_OF_STREAMS = ("queryId", "metricsFile")
_OF_BATCHES = ("loadId", "replaceWhere", "partitionOverwriteMode")
_NAMES = (
    "jsonColumns",
    "partitionBy",
    "shredding",
    "createTable",
    "mergeSchema",
    "autoCompact",
    "mode",
    "orderBy",
    "arrays",
    "maxRowsPerFile",
    "targetFileBytes",
    "userMetadata",
)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """A table, and how to write rows to it.

    `query` is the query's id in the table, empty for the stream's own id. `new` says how the first
    batch makes the table, None if it must not. `auto_compact` says whether to join small files
    after a commit, None if the table's properties decide. `metrics_file` is a file of the driver,
    empty for none. `overwrite` names the rows to replace. `user_metadata` goes into the history of
    the commits.
    """

    location: str
    query: str
    json_columns: tuple[str, ...]
    new: NewTable | None
    merge_schema: bool
    auto_compact: bool | None
    metrics_file: str
    load: LoadOptions
    overwrite: Overwrite | None = None
    user_metadata: str | None = None

    @classmethod
    def of_batch(cls, options: Mapping[str, str], *, overwrite: bool) -> Self:
        """Parse options of `df.write`; `overwrite` says that this is its mode. Raises as `of`.

        Raises InvalidQuery also for options of an overwrite in another mode.
        """
        given = given_options(options, (*_NAMES, *_OF_BATCHES), "the sink", begin="save")
        where, dynamic = given.get("replaceWhere"), _is_dynamic(given)
        if not overwrite and (where is not None or dynamic):
            raise InvalidQuery(
                "replaceWhere and partitionOverwriteMode are for the mode overwrite",
                hint='df.write.mode("overwrite") replaces those rows',
                cli_hint="",
            )
        chosen = cls._of(given)
        return replace(
            chosen,
            load=replace(chosen.load, load_id=given.get("loadId")),
            overwrite=Overwrite(where, dynamic) if overwrite else None,
        )

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """Parse a stream's options from Spark, which are all text; names may be in any case.

        Raises InvalidQuery for an unknown option, InvalidValue for a wrong value.
        """
        names = (*_NAMES, *_OF_STREAMS)
        return cls._of(given_options(options, names, "the sink", begin="start", also=_SPARK))

    @classmethod
    def _of(cls, given: Mapping[str, str]) -> Self:
        if given.get("metricsFile"):
            check_installed()
        new = NewTable.of(_list(given, "partitionBy"), given.get("shredding"), None)
        numbers = {
            "max_rows_per_file": whole_number(given, "maxRowsPerFile"),
            "target_file_size": whole_number(given, "targetFileBytes"),
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
            user_metadata=given.get("userMetadata"),
        )


def _list(given: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(text for each in given.get(name, "").split(",") if (text := each.strip()))


def _is_dynamic(given: Mapping[str, str]) -> bool:
    mode = given.get("partitionOverwriteMode", "static").lower()
    if mode not in ("static", "dynamic"):
        raise InvalidValue(
            f"partitionOverwriteMode is {mode!r}", hint="static, or dynamic", cli_hint=""
        )
    return mode == "dynamic"

"""Semi-structured data in Delta tables as shredded Variant columns.

`import variantlake as vl` loads no PySpark, and hardly anything else: the names below load when
touched, so that the command line can answer Ctrl-C from its first moment.
"""

from __future__ import annotations

import importlib

from variantlake.errors import (
    AbsolutePathRefused,
    CommitConflict,
    CommitLost,
    CommitUnknown,
    DuplicateKey,
    InvalidJson,
    InvalidPath,
    InvalidQuery,
    InvalidSchema,
    InvalidValue,
    LimitExceeded,
    LostCheckpoint,
    MalformedFile,
    MalformedLog,
    MalformedVariant,
    MissingDependency,
    MissingSource,
    NotADeltaTable,
    NotCompiled,
    PathTypeMismatch,
    StoreFailed,
    TableReplaced,
    UnknownVariantType,
    UnsupportedFeature,
    VariantLakeError,
)

TYPE_CHECKING = False  # type checkers take it for true; `typing` itself loads slowly
if TYPE_CHECKING:
    from typing import Any

    from variantlake import duckdb, parquet, spark
    from variantlake.autoloading.run import autoload
    from variantlake.delta.log.file_paths import set_absolute_paths
    from variantlake.delta.log.snapshot import HistoryEntry
    from variantlake.encoding.json import parse_json
    from variantlake.encoding.variant import Variant
    from variantlake.engine.run import LocalQuery
    from variantlake.expressions.from_python import path
    from variantlake.feed.scan import ChangeScan
    from variantlake.functions import (
        try_variant_array_append,
        try_variant_insert,
        try_variant_set,
        variant_array_append,
        variant_delete,
        variant_insert,
        variant_remove,
        variant_set,
    )
    from variantlake.ingest.conversion.convert import convert
    from variantlake.ingest.sources.sources import json_array, json_files, ndjson
    from variantlake.interop.polars_scan import scan_polars
    from variantlake.mirroring.mirror import mirror
    from variantlake.planning.explain import Explanation
    from variantlake.report.profile import profile
    from variantlake.scan.table_scan import Scan
    from variantlake.storage.options import set_storage_options
    from variantlake.table import Table

__all__ = [
    "AbsolutePathRefused",
    "ChangeScan",
    "CommitConflict",
    "CommitLost",
    "CommitUnknown",
    "DuplicateKey",
    "Explanation",
    "HistoryEntry",
    "InvalidJson",
    "InvalidPath",
    "InvalidQuery",
    "InvalidSchema",
    "InvalidValue",
    "LimitExceeded",
    "LocalQuery",
    "LostCheckpoint",
    "MalformedFile",
    "MalformedLog",
    "MalformedVariant",
    "MissingDependency",
    "MissingSource",
    "NotADeltaTable",
    "NotCompiled",
    "PathTypeMismatch",
    "Scan",
    "StoreFailed",
    "Table",
    "TableReplaced",
    "UnknownVariantType",
    "UnsupportedFeature",
    "Variant",
    "VariantLakeError",
    "__version__",
    "autoload",
    "convert",
    "duckdb",
    "json_array",
    "json_files",
    "mirror",
    "ndjson",
    "parquet",
    "parse_json",
    "path",
    "profile",
    "scan_polars",
    "set_absolute_paths",
    "set_storage_options",
    "spark",
    "try_variant_array_append",
    "try_variant_insert",
    "try_variant_set",
    "variant_array_append",
    "variant_delete",
    "variant_insert",
    "variant_remove",
    "variant_set",
]

_HOMES = {
    "ChangeScan": "variantlake.feed.scan",
    "Explanation": "variantlake.planning.explain",
    "HistoryEntry": "variantlake.delta.log.snapshot",
    "LocalQuery": "variantlake.engine.run",
    "Scan": "variantlake.scan.table_scan",
    "Table": "variantlake.table",
    "Variant": "variantlake.encoding.variant",
    "autoload": "variantlake.autoloading.run",
    "json_array": "variantlake.ingest.sources.sources",
    "json_files": "variantlake.ingest.sources.sources",
    "convert": "variantlake.ingest.conversion.convert",
    "mirror": "variantlake.mirroring.mirror",
    "ndjson": "variantlake.ingest.sources.sources",
    "parse_json": "variantlake.encoding.json",
    "set_absolute_paths": "variantlake.delta.log.file_paths",
    "path": "variantlake.expressions.from_python",
    "profile": "variantlake.report.profile",
    "scan_polars": "variantlake.interop.polars_scan",
    "set_storage_options": "variantlake.storage.options",
    "try_variant_array_append": "variantlake.functions",
    "try_variant_insert": "variantlake.functions",
    "try_variant_set": "variantlake.functions",
    "variant_array_append": "variantlake.functions",
    "variant_delete": "variantlake.functions",
    "variant_insert": "variantlake.functions",
    "variant_remove": "variantlake.functions",
    "variant_set": "variantlake.functions",
}
_MODULES = ("duckdb", "parquet", "spark")


def __getattr__(name: str) -> Any:
    """Load a public name from its home (PEP 562)."""
    if name == "__version__":
        # It takes longer to load than all else here.
        from importlib.metadata import version

        value: Any = version("variantlake")
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"variantlake.{name}")
    else:
        raise AttributeError(f"module 'variantlake' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

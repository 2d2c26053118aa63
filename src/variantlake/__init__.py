"""Semi-structured data in Delta tables as shredded Variant columns.

`import variantlake as vl` loads no PySpark, and hardly anything else: the names below load on first
use, so that the command line can react to Ctrl-C at once.
"""

from __future__ import annotations

from variantlake.errors import (
    AbsolutePathRefused,
    CommitConflict,
    CommitLost,
    CommitUnknown,
    ContractBroken,
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
    OutOfMemory,
    PathTypeMismatch,
    StoreFailed,
    TableReplaced,
    UnknownVariantType,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.loading import load

TYPE_CHECKING = False  # type checkers take it for true; `typing` itself loads slowly
if TYPE_CHECKING:
    from typing import Any

    from variantlake import datafusion, duckdb, parquet, spark
    from variantlake.autoloading.autoloader import AutoloadResult
    from variantlake.autoloading.batch import BatchReport
    from variantlake.autoloading.loads import RetryResult
    from variantlake.autoloading.run import autoload
    from variantlake.contracts.contract import Contract
    from variantlake.delta.log.files.file_paths import set_absolute_paths
    from variantlake.delta.log.snapshot import HistoryEntry
    from variantlake.delta.protocol.named_versions import NamedVersion
    from variantlake.delta.transaction.analyze import AnalyzeResult
    from variantlake.dml.merge.builder import MergeBuilder
    from variantlake.dml.result import ChangeResult
    from variantlake.encoding.variant import Variant
    from variantlake.engine.duckdb_query import DuckQuery
    from variantlake.engine.run import LocalQuery
    from variantlake.erase.erase import EraseResult
    from variantlake.export.export import ExportResult
    from variantlake.expressions.from_python import Expr, VariantPath, col, expr, path
    from variantlake.feed.scan import ChangeScan
    from variantlake.functions import (
        parse_json,
        to_json,
        try_variant_array_append,
        try_variant_insert,
        try_variant_set,
        variant_array_append,
        variant_delete,
        variant_insert,
        variant_remove,
        variant_set,
    )
    from variantlake.ingest.commit_load import LoadResult
    from variantlake.ingest.conversion.convert import convert
    from variantlake.ingest.conversion.result import ConvertResult
    from variantlake.ingest.sources.sources import json_array, json_files, ndjson
    from variantlake.ingest.stage import Stage
    from variantlake.interop.polars_scan import scan_polars
    from variantlake.kernels.digest.rows import Digest
    from variantlake.maintenance.cloning.clone import CloneResult
    from variantlake.maintenance.clustering.cluster import ClusterResult
    from variantlake.maintenance.compare_versions import VersionComparison
    from variantlake.maintenance.contract_check import ContractFinding, ContractReport
    from variantlake.maintenance.health_findings import Health, HealthFinding
    from variantlake.maintenance.optimize import OptimizeResult
    from variantlake.maintenance.reshredding.drift import Drift
    from variantlake.maintenance.reshredding.reshred import ReshredResult
    from variantlake.maintenance.restore import RestoreResult
    from variantlake.maintenance.vacuuming.vacuum import VacuumResult
    from variantlake.mirroring.mirror import MirrorResult, mirror
    from variantlake.planning.explain import Explanation
    from variantlake.progress import Progress
    from variantlake.report.profile import SourceProfile, profile
    from variantlake.report.table_report import TableReport
    from variantlake.scan.arrow_stream import HeadRows
    from variantlake.scan.table_scan import Scan
    from variantlake.shown import CommitResult, Result
    from variantlake.storage.options import set_storage_options
    from variantlake.table import Table
    from variantlake.telemetry.lineage import set_lineage
    from variantlake.telemetry.tracing import set_tracing

__all__ = [
    "AbsolutePathRefused",
    "AnalyzeResult",
    "AutoloadResult",
    "BatchReport",
    "ChangeResult",
    "ChangeScan",
    "CloneResult",
    "ClusterResult",
    "CommitConflict",
    "CommitLost",
    "CommitResult",
    "CommitUnknown",
    "Contract",
    "ContractBroken",
    "ContractFinding",
    "ContractReport",
    "ConvertResult",
    "Digest",
    "Drift",
    "DuckQuery",
    "DuplicateKey",
    "EraseResult",
    "Explanation",
    "ExportResult",
    "Expr",
    "HeadRows",
    "Health",
    "HealthFinding",
    "HistoryEntry",
    "InvalidJson",
    "InvalidPath",
    "InvalidQuery",
    "InvalidSchema",
    "InvalidValue",
    "LimitExceeded",
    "LoadResult",
    "LocalQuery",
    "LostCheckpoint",
    "MalformedFile",
    "MalformedLog",
    "MalformedVariant",
    "MergeBuilder",
    "MirrorResult",
    "MissingDependency",
    "MissingSource",
    "NamedVersion",
    "NotADeltaTable",
    "NotCompiled",
    "OptimizeResult",
    "OutOfMemory",
    "PathTypeMismatch",
    "Progress",
    "ReshredResult",
    "RestoreResult",
    "Result",
    "RetryResult",
    "Scan",
    "SourceProfile",
    "Stage",
    "StoreFailed",
    "Table",
    "TableReplaced",
    "TableReport",
    "UnknownVariantType",
    "UnsupportedFeature",
    "VacuumResult",
    "Variant",
    "VariantLakeError",
    "VariantPath",
    "VersionComparison",
    "__version__",
    "autoload",
    "col",
    "convert",
    "datafusion",
    "duckdb",
    "expr",
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
    "set_lineage",
    "set_storage_options",
    "set_tracing",
    "spark",
    "to_json",
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
    "ContractFinding": "variantlake.maintenance.contract_check",
    "DuckQuery": "variantlake.engine.duckdb_query",
    "VariantPath": "variantlake.expressions.from_python",
    "Stage": "variantlake.ingest.stage",
    "NamedVersion": "variantlake.delta.protocol.named_versions",
    "MirrorResult": "variantlake.mirroring.mirror",
    "CloneResult": "variantlake.maintenance.cloning.clone",
    "AnalyzeResult": "variantlake.delta.transaction.analyze",
    "AutoloadResult": "variantlake.autoloading.autoloader",
    "BatchReport": "variantlake.autoloading.batch",
    "ChangeResult": "variantlake.dml.result",
    "ChangeScan": "variantlake.feed.scan",
    "ClusterResult": "variantlake.maintenance.clustering.cluster",
    "CommitResult": "variantlake.shown",
    "ConvertResult": "variantlake.ingest.conversion.result",
    "Contract": "variantlake.contracts.contract",
    "ContractReport": "variantlake.maintenance.contract_check",
    "Digest": "variantlake.kernels.digest.rows",
    "Drift": "variantlake.maintenance.reshredding.drift",
    "EraseResult": "variantlake.erase.erase",
    "Explanation": "variantlake.planning.explain",
    "Health": "variantlake.maintenance.health_findings",
    "HealthFinding": "variantlake.maintenance.health_findings",
    "ExportResult": "variantlake.export.export",
    "HistoryEntry": "variantlake.delta.log.snapshot",
    "Progress": "variantlake.progress",
    "LoadResult": "variantlake.ingest.commit_load",
    "LocalQuery": "variantlake.engine.run",
    "MergeBuilder": "variantlake.dml.merge.builder",
    "OptimizeResult": "variantlake.maintenance.optimize",
    "ReshredResult": "variantlake.maintenance.reshredding.reshred",
    "RestoreResult": "variantlake.maintenance.restore",
    "Result": "variantlake.shown",
    "RetryResult": "variantlake.autoloading.loads",
    "HeadRows": "variantlake.scan.arrow_stream",
    "Scan": "variantlake.scan.table_scan",
    "SourceProfile": "variantlake.report.profile",
    "Table": "variantlake.table",
    "TableReport": "variantlake.report.table_report",
    "VacuumResult": "variantlake.maintenance.vacuuming.vacuum",
    "Variant": "variantlake.encoding.variant",
    "VersionComparison": "variantlake.maintenance.compare_versions",
    "autoload": "variantlake.autoloading.run",
    "convert": "variantlake.ingest.conversion.convert",
    "json_array": "variantlake.ingest.sources.sources",
    "json_files": "variantlake.ingest.sources.sources",
    "mirror": "variantlake.mirroring.mirror",
    "ndjson": "variantlake.ingest.sources.sources",
    "parse_json": "variantlake.functions",
    "path": "variantlake.expressions.from_python",
    "expr": "variantlake.expressions.from_python",
    "col": "variantlake.expressions.from_python",
    "Expr": "variantlake.expressions.from_python",
    "profile": "variantlake.report.profile",
    "scan_polars": "variantlake.interop.polars_scan",
    "set_absolute_paths": "variantlake.delta.log.files.file_paths",
    "set_lineage": "variantlake.telemetry.lineage",
    "set_storage_options": "variantlake.storage.options",
    "set_tracing": "variantlake.telemetry.tracing",
    "to_json": "variantlake.functions",
    "try_variant_array_append": "variantlake.functions",
    "try_variant_insert": "variantlake.functions",
    "try_variant_set": "variantlake.functions",
    "variant_array_append": "variantlake.functions",
    "variant_delete": "variantlake.functions",
    "variant_insert": "variantlake.functions",
    "variant_remove": "variantlake.functions",
    "variant_set": "variantlake.functions",
}
_MODULES = ("datafusion", "duckdb", "parquet", "spark")


def __getattr__(name: str) -> Any:
    """Load a public name from its module (PEP 562)."""
    if name == "__version__":
        # This import takes longer than all others here.
        from importlib.metadata import version

        value: Any = version("variantlake")
    elif name in _HOMES:
        value = getattr(load(_HOMES[name]), name)
    elif name in _MODULES:
        value = load(f"variantlake.{name}")
    else:
        from variantlake.familiar_names import no_such_name

        raise no_such_name("variantlake", name, __all__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

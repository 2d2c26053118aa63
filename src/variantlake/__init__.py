"""Semi-structured data in Delta tables as shredded Variant columns.

`import variantlake as vl` does not load PySpark: the names below load when touched.
"""

from __future__ import annotations

import importlib
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

from variantlake.errors import MissingDependency, VariantLakeError

if TYPE_CHECKING:
    from variantlake import parquet, spark
    from variantlake.arrow.convert import convert
    from variantlake.arrow.sources import json_array, ndjson
    from variantlake.encoding.json import parse_json
    from variantlake.encoding.variant import Variant
    from variantlake.planning.expressions import path
    from variantlake.storage.options import set_storage_options
    from variantlake.table import Table

__all__ = [
    "Table",
    "Variant",
    "VariantLakeError",
    "__version__",
    "convert",
    "json_array",
    "ndjson",
    "parquet",
    "parse_json",
    "path",
    "set_storage_options",
    "spark",
]

_HOMES = {
    "Table": "variantlake.table",
    "Variant": "variantlake.encoding.variant",
    "json_array": "variantlake.arrow.sources",
    "convert": "variantlake.arrow.convert",
    "ndjson": "variantlake.arrow.sources",
    "parse_json": "variantlake.encoding.json",
    "path": "variantlake.planning.expressions",
    "set_storage_options": "variantlake.storage.options",
}
_MODULES = ("parquet", "spark")

# Optional parts by the module whose absence stops an import of ours.
_OPTIONAL = {"pyspark": "spark", "pandas": "spark"}


def __getattr__(name: str) -> Any:
    """Load a public name from its home (PEP 562)."""
    if name == "__version__":
        value: Any = _version("variantlake")
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = _import_module(f"variantlake.{name}")
    else:
        raise AttributeError(f"module 'variantlake' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _import_module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in _OPTIONAL:
            raise
        raise MissingDependency(
            f"{name} needs {missing}, which is not installed",
            hint=f"pip install 'variantlake[{_OPTIONAL[missing]}]'",
        ) from error

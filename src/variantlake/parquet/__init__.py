"""Read, write, check and inspect Parquet files with Variant columns, without any table.

The names below load on first use, so that reading a footer does not load the code that rebuilds
Variants.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from variantlake.parquet.read.check import Finding, check_file
    from variantlake.parquet.read.inspect import inspect_file, why
    from variantlake.parquet.read.reader import find_variants, iter_batches, read_table
    from variantlake.parquet.read.single_paths import iter_paths, read_paths
    from variantlake.parquet.variant.variant_arrays import variant_array, variants
    from variantlake.parquet.write.file_writer import FileWriter, WriteOptions
    from variantlake.parquet.write.table_writer import write_table
    from variantlake.shredding.inference.infer import InferenceOptions

__all__ = [
    "FileWriter",
    "Finding",
    "InferenceOptions",
    "WriteOptions",
    "check_file",
    "find_variants",
    "inspect_file",
    "iter_batches",
    "iter_paths",
    "read_paths",
    "read_table",
    "variant_array",
    "variants",
    "why",
    "write_table",
]

_HOMES = {
    "FileWriter": "parquet.write.file_writer",
    "Finding": "parquet.read.check",
    "InferenceOptions": "shredding.inference.infer",
    "WriteOptions": "parquet.write.file_writer",
    "check_file": "parquet.read.check",
    "find_variants": "parquet.read.reader",
    "inspect_file": "parquet.read.inspect",
    "iter_batches": "parquet.read.reader",
    "iter_paths": "parquet.read.single_paths",
    "read_paths": "parquet.read.single_paths",
    "read_table": "parquet.read.reader",
    "variant_array": "parquet.variant.variant_arrays",
    "variants": "parquet.variant.variant_arrays",
    "why": "parquet.read.inspect",
    "write_table": "parquet.write.table_writer",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'variantlake.parquet' has no attribute {name!r}")
    home = importlib.import_module(f"variantlake.{_HOMES[name]}")
    return getattr(home, name)

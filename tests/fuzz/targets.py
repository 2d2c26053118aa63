"""What is fuzzed: by name, the function that does everything with one input."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tests.fuzz.runner import Case

TARGETS: Mapping[str, tuple[str, str, str]] = {
    "footers": ("footers", "case", "footers of Parquet files"),
    "pages": ("columns", "case", "files with shredded columns: pages, headers, footers"),
    "variants": ("values", "case", "metadata and values of Variants"),
    "commits": ("logs", "commit_case", "commits, by columns and action by action"),
    "statistics": ("logs", "facts_case", "statistics and tags in the log"),
    "tables": ("logs", "table_case", "checkpoints, checksums, compactions and hints"),
    "vectors": ("texts", "vector_case", "deletion vectors"),
    "conditions": ("texts", "condition_case", "conditions in SQL"),
    "queries": ("texts", "query_case", "queries and statements in SQL"),
    "ddl": ("texts", "ddl_case", "columns of tables and of shredding schemas"),
    "json": ("texts", "json_case", "JSON documents"),
    "many-variants": ("batches", "variants_case", "columns of Variants"),
    "many-documents": ("batches", "documents_case", "columns of JSON documents"),
    "many-statistics": ("batches", "statistics_case", "columns of statistics and tags"),
    "many-vectors": ("batches", "vectors_case", "deletion vectors, as bytes"),
}
"""Module, function, and what its inputs are."""

BULK: Mapping[str, int] = {
    "many-variants": 4096,
    "many-documents": 4096,
    "many-statistics": 256,
    "many-vectors": 256,
}
"""Inputs of one call where it is not one. Chance chooses them: branches tell them not apart."""


def target(name: str) -> tuple[Case, int]:
    """The function, and how many bytes of memory it may take for each byte of its input."""
    module, function, _ = TARGETS[name]
    found: Any = import_module(f"tests.fuzz.{module}")
    return getattr(found, function), found.MEMORY_MULTIPLE

"""Resolves the names of a query: those registered with a lake, and those in Spark's catalogs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from variantlake.quoting import Parts, quote_identifier
from variantlake.spark.scan.source_options import VERSION_IN_PATH
from variantlake.spark.session.janino import java_instance
from variantlake.spark.session.jvm import session_of


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """An entry of a catalog; `name` has all its parts: the catalog, the namespace, the table.

    A view has neither provider nor location. A temporary view has no name either.
    """

    name: Parts
    provider: str
    location: str

    @property
    def is_delta(self) -> bool:
        """Whether it is a Delta table with a location."""
        return self.provider.lower() == "delta" and bool(self.location)

    @property
    def is_view(self) -> bool:
        """Whether it is a view."""
        return not self.provider and not self.location


@dataclass(frozen=True, slots=True)
class Target:
    """The table that a name means: its `location` (a path or URI) and its full `name`.

    `in_spark` says whether Spark itself knows the name.
    """

    location: str
    name: Parts
    in_spark: bool


Resolve = Callable[[Parts], Target | None]
"""Maps a multi-part name to the Delta table that it means, other names to None."""


def target_of(found: CatalogTable | None) -> Target | None:
    """Return the Delta table of a catalog's entry; None for any other entry."""
    if found is None or not found.is_delta:
        return None
    return Target(found.location, found.name, in_spark=True)


def delta_name(location: str) -> str:
    """Return the name of the table at a location in a query's FROM."""
    return f"delta.{quote_identifier(location)}"


def versioned(location: str, name: Parts) -> tuple[str, int | None]:
    """Return location and version of a `path@v3` that the query itself wrote; else no version."""
    match = VERSION_IN_PATH.fullmatch(location) if location == name[-1] else None
    return (location, None) if match is None else (match[1], int(match[2]))


class CatalogNames:
    """The catalogs of one classic session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._names = java_instance(spark, "TableNames")

    def find(self, parts: Sequence[str]) -> CatalogTable | None:
        """Return the table or view of this name; None if there is none."""
        text = self._names.find(session_of(self._spark), json.dumps(parts))
        return None if text is None else catalog_entry(json.loads(text))


def catalog_entry(found: Mapping[str, Any]) -> CatalogTable:
    """Return the catalog entry that `TableNames.java` describes."""
    name = tuple(found.get("name", ()))
    return CatalogTable(name, found.get("provider", ""), found.get("location", ""))


def find_remote(spark: SparkSession, parts: Parts) -> CatalogTable | None:
    """Return the table or view of this name in a Spark Connect session; None if there is none."""
    name = ".".join(map(quote_identifier, parts))
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except PySparkException:
        return None
    # Details follow the columns, which may have the same names: the last entry counts.
    entry = {row[0]: row[1] for row in rows}
    return CatalogTable(parts, str(entry.get("Provider", "")), str(entry.get("Location", "")))

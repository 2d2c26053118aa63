"""What the names of a query mean in the catalogs of a user's session: tables and views."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from variantlake.quoting import Parts, quote_identifier
from variantlake.spark.session.janino import java_instance
from variantlake.spark.session.jvm import session_of


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table's entry in a catalog; `name` is whole: the catalog, the namespace, the table."""

    name: Parts
    provider: str
    location: str

    @property
    def is_delta(self) -> bool:
        """Whether it is a Delta table with a place of its own."""
        return self.provider.lower() == "delta" and bool(self.location)


@dataclass(frozen=True, slots=True)
class CatalogView:
    """A view's entry: its query, and what the query meant when the view was made.

    `name` is whole, and empty for a temporary view. `text` is None for a view of a DataFrame.
    `home` is the catalog and namespace of names without one, `configs` are the settings kept with
    it. `queried` are the columns of its query that those of `schema` come from (none where they
    follow the query). `plain` is false for a query that uses functions or variables of a session;
    `temporary_views` are those that it uses.
    """

    name: Parts
    text: str | None
    home: Parts
    configs: dict[str, str]
    schema: StructType
    queried: Parts
    plain: bool
    temporary_views: frozenset[Parts]


class CatalogNames:
    """The catalogs of one classic session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self._names = java_instance(spark, "TableNames")

    def find(
        self, parts: Sequence[str], home: Parts | None = None, *, temporary: bool = True
    ) -> CatalogTable | CatalogView | None:
        """The table or view of this name, None if there is none.

        Args:
            parts: The name.
            home: Catalog and namespace of a name without one; by default the session's.
            temporary: Whether it may be a temporary view.
        """
        text = self._names.find(
            session_of(self._spark), json.dumps(parts), home and json.dumps(home), temporary
        )
        if text is None:
            return None
        found = json.loads(text)
        if "provider" in found:
            return CatalogTable(tuple(found["name"]), found["provider"], found["location"])
        return CatalogView(
            name=tuple(found.get("name", ())),
            text=found["text"],
            home=tuple(found["catalog"]),
            configs=found["configs"],
            schema=StructType.fromJson(json.loads(found["schema"])),
            queried=tuple(found["queried"]),
            plain=found["plain"],
            temporary_views=frozenset(map(tuple, found["temporary_views"])),
        )

    def foreign_functions(self, names: Iterable[str]) -> list[str]:
        """Those of the functions that are not Spark's own."""
        found: list[str] = json.loads(
            self._names.foreign(session_of(self._spark), json.dumps(sorted(set(names))))
        )
        return found

    def settings(self) -> set[str]:
        """The settings that were made in the session, among them all that a view would keep."""
        found: list[str] = json.loads(self._names.settings(session_of(self._spark)))
        return set(found)

    def setting(self, key: str) -> str | None:
        """A setting's value, its default included; None for one that Spark does not know."""
        try:
            found: str = self._spark.conf.get(key)
        except PySparkException:
            return None
        return found


def find_remote(spark: SparkSession, parts: Parts) -> CatalogTable | None:
    """What a name means in a session of Spark Connect; None for one that nobody knows.

    Views are entries without provider and location there.
    """
    name = ".".join(map(quote_identifier, parts))
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except PySparkException:
        return None
    # What follows the columns of the table; the last of a name counts.
    entry = {row[0]: row[1] for row in rows}
    return CatalogTable(parts, str(entry.get("Provider", "")), str(entry.get("Location", "")))

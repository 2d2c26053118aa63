"""Versions of tables as relations of Spark's plans.

The rule reads them as a query needs them. Without it, or if it fails, they give all their rows.
"""

from __future__ import annotations

import itertools
import weakref
from typing import ClassVar

from pyspark.sql import DataFrame

from variantlake.spark.scan.dataframe import scan
from variantlake.spark.scan.tables import Tables, TableVersion
from variantlake.spark.session.classic_files import HelperSession
from variantlake.spark.session.jvm import Java as JavaObject
from variantlake.spark.session.jvm import dataset_of

_numbers = itertools.count()
_relations: weakref.WeakValueDictionary[int, TableRelation] = weakref.WeakValueDictionary()


class TableRelation:
    """A place where a plan reads a version of a table: a `Supplier` of the JVM, of all its rows.

    It lives as long as the plan, which keeps it. `tables` plan the table, `source` is how the query
    names it.
    """

    class Java:
        """What py4j, which knows it by this name, is to know of a class that the JVM calls."""

        implements: ClassVar = ["java.util.function.Supplier"]

    def __init__(
        self, table: TableVersion, tables: Tables, helper: HelperSession, source: str
    ) -> None:
        self.table = table
        self.tables = tables
        self.source = source
        self.number = next(_numbers)
        self._helper = helper
        _relations[self.number] = self

    def get(self) -> JavaObject:
        """The rows for the JVM. Raises RuntimeError for what py4j does not take there."""
        try:
            return dataset_of(self.rows())
        except Exception:
            raise
        except BaseException as error:
            raise RuntimeError(f"interrupted by {type(error).__name__}") from error

    def rows(self) -> DataFrame:
        """All columns as they are, of all rows. Raises what planning and scans of tables raise."""
        helper = self._helper
        helper.follow()
        plan = self.tables.plan_everything(self.table, has_kernels=lambda: helper.has_kernels)
        return scan(helper, self.table, plan, {})

    @property
    def shown(self) -> str:
        """What tells the version from all others, for people first."""
        snapshot = self.table.snapshot
        return f"{self.table.location} v{snapshot.version} of {snapshot.metadata.id}"

    def is_in(self, plan: str) -> bool:
        """Whether the text of a plan reads the relation, as its Java class writes it."""
        return f"{self.shown} ({self.number})" in plan


def relation_of(number: int) -> TableRelation:
    """The relation of this number. Raises KeyError for one whose plan is gone."""
    return _relations[number]

"""Relations in Spark's plans that stand for versions of tables.

The rule reads from them only what a query needs. Without the rule, or if it fails, they return all
rows.
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
    """One read of a table version in a plan: a `Supplier` for the JVM, which returns all rows.

    The plan keeps it alive. `tables` plans the scans, `source` is how the query names the table.
    """

    class Java:
        """The Java interfaces of the class; py4j looks for this name."""

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
        """Return the rows for the JVM. Raises RuntimeError for a BaseException such as Ctrl-C.

        py4j passes only an Exception on to the JVM.
        """
        try:
            return dataset_of(self.rows())
        except Exception:
            raise
        except BaseException as error:
            raise RuntimeError(f"interrupted by {type(error).__name__}") from error

    def rows(self) -> DataFrame:
        """Return all columns of all rows. Raises what planning and scans of tables raise."""
        helper = self._helper
        helper.follow()
        plan = self.tables.plan_everything(self.table, has_kernels=lambda: helper.has_kernels)
        return scan(helper, self.table, plan, {})

    @property
    def shown(self) -> str:
        """A readable text that identifies the table version."""
        snapshot = self.table.snapshot
        return f"{self.table.location} v{snapshot.version} of {snapshot.metadata.id}"

    def is_in(self, plan: str) -> bool:
        """Whether the text of a plan names this relation, as its Java class prints it."""
        return f"{self.shown} ({self.number})" in plan


def relation_of(number: int) -> TableRelation:
    """Return the relation with this number. Raises KeyError once its plan is gone."""
    return _relations[number]

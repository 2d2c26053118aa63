"""Decides whether our tasks begin an aggregate of one table, and makes their partial rows.

All is proven before the query runs: that tasks read the conditions and columns exactly as Spark
does, and that sums stay in their type in whatever order they are added. An aggregate is left to
Spark without that proof, and where it would not pay: few bytes, or keys that hardly repeat.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from typing import Literal as OneOf

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from variantlake.engine.queries import asked_of_log
from variantlake.errors import VariantLakeError
from variantlake.expressions.tree import (
    And,
    Compare,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
    map_refs,
    refs,
)
from variantlake.expressions.typing import BOOLEAN, INT_DIGITS, comparison_type, spark_type, type_of
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.exact.exactness import IDENTITY, Conversion, ConversionKind
from variantlake.planning.exact.readings import NullColumn, PhysicalColumn, Reading
from variantlake.planning.files import NO_ROWS, FileRows
from variantlake.planning.plan import ScanPlan
from variantlake.planning.stats.exact_facts import ExactFacts, KnownFiles
from variantlake.planning.stats.sums import greatest_sum
from variantlake.spark.scan.aggregate_task import AggregateTask, Groups, partial_rows
from variantlake.spark.scan.driver_groups import groups_here
from variantlake.spark.scan.pushed_filters import is_floating
from variantlake.spark.scan.stored_types import data_type
from variantlake.spark.scan.tables import TableVersion
from variantlake.spark.session.classic_files import HelperSession
from variantlake.spark.session.versions import arrow_schema
from variantlake.types import Kind, ShreddedType

if TYPE_CHECKING:
    from variantlake.engine.grouped import PartialGroups

MIN_BYTES = 128 << 20
"""With fewer bytes to read, Spark aggregates alone: starting Python costs more than it saves.

Of 500,000 events (60 MB) Spark's own tasks took 0.7 to 0.98 times as long as ours.
"""

MIN_BYTES_SETTING = "spark.variantlake.aggregates.minBytes"
"""The setting that replaces MIN_BYTES; a negative value leaves all aggregates to Spark."""

DRIVER_BYTES = 1 << 30
"""The driver groups the rows of a table if it reads at most these bytes of files.

This holds only if the driver also runs the tasks (`local[*]`). On a cluster the driver groups none,
because executors may be nearer to the files.
"""

DRIVER_BYTES_OF_ONE = 8 << 30
"""The same limit with one core, divided by the number of cores: tasks keep all of them busy.

Keys that hardly repeat within a task would be left to Spark alone. With two cores and 10 million
events (1.3 GB) that took 9 s for JSONBench 5, and threads of one process 1.4 s.
"""

DRIVER_MIN_BYTES = 16 << 20
"""The driver groups no fewer bytes than these, unless MIN_BYTES_SETTING says otherwise."""

DRIVER_BYTES_SETTING = "spark.variantlake.aggregates.driverBytes"
"""The setting that replaces DRIVER_BYTES, also on a cluster; 0 leaves aggregates to tasks."""

MOST_KEPT = 10_000
"""The most rows of an aggregate that are kept for an equal query."""

KINDS = frozenset(
    {
        *(Kind.BOOLEAN, Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.DECIMAL),
        *(Kind.FLOAT, Kind.DOUBLE, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.STRING),
    }
)
"""The types that keys and arguments may have."""

REPEATED = 4
"""The least rows per group in a sample: with fewer, there would be too many partial rows."""


How = OneOf["same", "count", "mean"]


@dataclass(frozen=True, slots=True)
class Merge:
    """How one function of the aggregate merges partial rows, by their columns' numbers."""

    how: How
    function: str
    columns: tuple[int, ...]
    filter: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values for `PartialAggregates.java`."""
        return {
            "how": self.how,
            "function": self.function,
            "columns": self.columns,
            "filter": self.filter,
        }


@dataclass(frozen=True, slots=True)
class PartialAggregate:
    """An aggregate over `view` by partial rows of `groups`, whose first `keys` keys the query has.

    `sums` are columns whose sums must stay below a limit, in whatever order rows are added.
    `whole` is the form for one row per group, which alone can count distinct values.
    """

    view: str
    keys: int
    groups: Groups
    merges: tuple[Merge, ...]
    sums: tuple[tuple[Ref, int], ...]
    whole: PartialAggregate | None = None

    def to_dict(self, *, done: bool) -> dict[str, Any]:
        """Return JSON-ready values for `PartialAggregates.java`, which gets the rows separately."""
        merges = [merge.to_dict() for merge in self.merges]
        return {"view": self.view, "keys": self.keys, "merges": merges, "done": done}

    def is_done(self, rows: int) -> bool:
        """Whether `rows` partial rows, one for each group, already are the aggregate's result.

        Not with floating keys, of which Spark makes one zero and one NaN, nor for no rows without
        keys, for which Spark gives one row.
        """
        own = self.groups.keys
        floating = any(is_floating(key) for key in own)
        if len(own) > self.keys or floating or (not own and not rows):
            return False
        # Functions over columns of keys (DISTINCT, FILTER) are left to Spark.
        return all(column >= self.keys for merge in self.merges for column in merge.columns)


@dataclass(frozen=True, slots=True)
class PushedAggregate:
    """An aggregate that our tasks begin, or threads of this process if `here`.

    `log_groups` are the groups of the files that the log answers.
    """

    partial: PartialAggregate
    table: TableVersion
    files: FileRows
    schema: StructType
    log_groups: PartialGroups | None
    answered: int
    here: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether the rows may be kept: the log answers all files, and the rows are few."""
        known = self.log_groups
        return not len(self.files) and known is not None and known.count <= MOST_KEPT

    def rows(self, helper: HelperSession) -> tuple[DataFrame, bool] | None:
        """Return the partial rows, and whether they need no merging.

        None if this process gave up, so that Spark reads the table itself.
        """
        if self.here and _given_up(self.partial) in self.files.columns.memo:
            return None
        arrow = arrow_schema(self.schema)
        known = None if self.log_groups is None else partial_rows(self.log_groups, arrow)
        if len(self.files) or known is None:
            tasks = pa.cpu_count() if self.here else helper.parallelism
            task = AggregateTask.of(
                self.table.snapshot,
                list(self.files),
                self.partial.groups,
                arrow,
                known=known,
                tasks=tasks,
            )
            if not self.here:
                return helper.batches(task, len(task.parts), self.schema), False
            known = groups_here(task, self.log_groups)
        if known is None:
            self.files.columns.memo[_given_up(self.partial)] = True
            return None
        return helper.rows(known, self.schema), self.partial.is_done(known.num_rows)


def bytes_here(least: int | None, most: int | None, cores: int) -> range:
    """Return the range of bytes of files that the driver groups on its `cores` (0 on a cluster).

    `least` and `most` are the user's settings, None where not set.
    """
    if most is None:
        most = max(DRIVER_BYTES, DRIVER_BYTES_OF_ONE // cores) if cores else 0
    return range(DRIVER_MIN_BYTES if least is None else least, most + 1)


def pushed_aggregate(
    found: PartialAggregate, table: TableVersion, plan: ScanPlan, *, least: int, here: range
) -> PushedAggregate | None:
    """Return the aggregate of a planned table; None if Spark computes it alone.

    Tasks pay from `least` bytes of files on. This process groups the rows itself if the bytes are
    in `here`.
    """
    if least < 0 or not _is_exact(found, table, plan):
        return None
    known, planned = _answered_by_log(found, table, plan), _planned(plan)
    if not np.isin(known.read, planned).all():
        return None  # the checks covered only planned files
    files = FileRows(plan.table, known.read)
    is_here = len(files) > 0 and files.size in here
    if is_here and found.whole is not None:
        # The log does not answer counts of distinct values: it may answer fewer files.
        whole = _answered_by_log(found.whole, table, plan)
        others = FileRows(plan.table, whole.read)
        if others.size in here and np.isin(whole.read, planned).all():
            found, known, files = found.whole, whole, others
    if is_here and _given_up(found) in files.columns.memo:
        return None
    if len(files) and not is_here and files.size < least:
        return None
    if not _sums_stay(found, table, plan, known.read):
        return None
    schema = _schema(found)
    if len(files) and not is_here and not _repeats(found, table, files, schema):
        return None
    part = None
    if len(known.answered):
        from variantlake.engine.grouped import merged, part_of_log

        part = merged([part_of_log(found.groups.keys, found.groups.aggregates, known)])
    return PushedAggregate(found, table, files, schema, part, len(known.answered), is_here)


def _schema(found: PartialAggregate) -> StructType:
    types = [type_of(key) for key in found.groups.keys]
    types += [each.type for each in found.groups.aggregates]
    return StructType(
        [StructField(f"c{at}", data_type(type_)) for at, type_ in enumerate(types) if type_]
    )


# --- What is exact --------------------------------------------------------------------------------


def _is_exact(found: PartialAggregate, table: TableVersion, plan: ScanPlan) -> bool:
    groups = found.groups
    conditions = [groups.where] if groups.where is not None else []
    conditions += groups.flags
    asked = list(groups.columns)
    asked += [ref for condition in conditions for ref in refs(condition)]
    return all(is_exact(each) for each in conditions) and all(
        _is_readable(ref, table, plan) for ref in dict.fromkeys(asked)
    )


def is_exact(condition: Predicate) -> bool:
    """Whether `expressions.rows` evaluates a condition as Spark does, without errors."""
    match condition:
        case And(terms) | Or(terms):
            return all(map(is_exact, terms))
        case Not(term):
            return is_exact(term)
        case Compare(_, Ref() as ref, Literal() as literal) | Compare(
            _, Literal() as literal, Ref() as ref
        ):
            return _compares(ref, (literal,))
        case In(Ref() as ref, options):
            return _compares(ref, options)
        case StartsWith(Ref() as ref, _):
            return ref.type == "string"
        case IsNull(Ref() as ref):
            return spark_type(ref.type) is not None
    return False


def _compares(ref: Ref, literals: Iterable[Literal]) -> bool:
    own = spark_type(ref.type)
    common = comparison_type(own, literals)
    if own is None or common is None:
        return False
    numbers = {Kind.DECIMAL, *INT_DIGITS}
    return own == common or {own.kind, common.kind} <= numbers


def _is_readable(ref: Ref, table: TableVersion, plan: ScanPlan) -> bool:
    """Whether tasks read a column or path, with exactly the values that Spark reads."""
    type_ = spark_type(ref.type)
    if type_ is None or type_.kind not in KINDS or len(ref.column) != 1:
        return False
    stored = table.stored_ref(ref)
    if ref.path is None:
        own = table.schema[ref.column[0]].dataType.simpleString()
        # Spark reads the timestamps of old writers in the session's time zone.
        plain = own == ref.type and not stored.char_length and type_.kind is not Kind.TIMESTAMP
        return plain and stored.column[0] != table.row_place
    if stored not in plan.requests:
        return False
    return all(_is_column(group.reading(stored), type_) for group in plan.groups)


def _is_column(reading: Reading, wanted: ShreddedType) -> bool:
    if isinstance(reading, NullColumn):
        return True
    return isinstance(reading, PhysicalColumn) and _is_plain(
        reading.stored, wanted, reading.conversion
    )


def _is_plain(stored: ShreddedType, wanted: ShreddedType, conversion: Conversion) -> bool:
    """Whether no value can fail: the column itself, or a cast from one of INT_DIGITS."""
    if conversion == IDENTITY:
        return True
    kinds = {*INT_DIGITS, Kind.DOUBLE, Kind.FLOAT}
    return (
        conversion.kind is ConversionKind.CAST
        and stored.kind in INT_DIGITS
        and wanted.kind in kinds
    )


def _sums_stay(found: PartialAggregate, table: TableVersion, plan: ScanPlan, read: Int64s) -> bool:
    for ref, limit in found.sums:
        most = greatest_sum(plan.table, read, table.stored_ref(ref), table.partition_types)
        if most is None or most >= limit:
            return False
    return True


def _planned(plan: ScanPlan) -> Int64s:
    """Return the files that the plan reads."""
    return np.sort(np.concatenate([NO_ROWS, *(group.files.rows for group in plan.groups)]))


# --- What the log knows ---------------------------------------------------------------------------


def _answered_by_log(found: PartialAggregate, table: TableVersion, plan: ScanPlan) -> KnownFiles:
    groups = found.groups
    # Flags are keys without a column in files.
    asked = None if groups.flags else asked_of_log(groups.keys, groups.aggregates, table.stored_ref)
    if asked is None:
        return KnownFiles(NO_ROWS, _planned(plan), (), ())
    where = None if groups.where is None else map_refs(groups.where, table.stored_ref)
    return ExactFacts(plan.table, table.partition_types).answerable(where, *asked)


def _given_up(found: PartialAggregate) -> tuple[str, Groups]:
    """Return the key of the files' memo for an aggregate that this process gave up."""
    return "too many groups", found.groups


# --- What pays ------------------------------------------------------------------------------------


def _repeats(
    found: PartialAggregate, table: TableVersion, files: FileRows, schema: StructType
) -> bool:
    """Whether keys repeat in the first row group of the largest file; the memo keeps the answer."""
    if all(type_of(key) == BOOLEAN for key in found.groups.keys):
        return True
    memo = files.columns.memo
    key = ("repeats", found.groups)
    known = memo.get(key)
    if not isinstance(known, bool):
        largest = int(files.rows[np.argmax(files.columns.sizes[files.rows])])
        (file,) = files.columns.files(np.array([largest]))
        task = AggregateTask.of(table.snapshot, [file], found.groups, arrow_schema(schema))
        try:
            rows, groups = task.sample()
        except (VariantLakeError, OSError, pa.ArrowException):
            return False  # Spark reports the error when it reads the file
        known = memo[key] = groups * REPEATED <= rows
    return known

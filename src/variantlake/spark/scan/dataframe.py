"""Turns a scan plan into one Spark DataFrame: a union of its groups, each read in its own way.

A Variant column that the query reads only by paths becomes a struct with the same name and place:
a field `__vl_p<i>` for each path, typed as requested, and `__vl_v`, the Variant itself, when some
group is read natively. In the query's text `event:kind::string` becomes `event.__vl_p0`. So
whatever passes the column on (stars, CTEs, aliases, outer joins) passes its paths, and nothing new
appears in stars or natural joins. Spark's optimizer takes the struct apart again and pushes filters
into the files.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from variantlake.expressions.spark_sql import condition_sql
from variantlake.expressions.tree import PRESENCE, Predicate, Ref, refs
from variantlake.planning.exact.implied import implied_bounds
from variantlake.planning.exact.readings import Native, NullTest, PhysicalColumn, Reading
from variantlake.planning.files import NO_ROWS, FileRows, ScanFile
from variantlake.planning.plan import ScanGroup, ScanPlan
from variantlake.quoting import quote_identifier, quote_string
from variantlake.scan.scan_task import ScanTask
from variantlake.shown import counted, size
from variantlake.shredding.layout import METADATA
from variantlake.spark.scan.deletion_vectors import FILE_NUMBER, has_deleted, without_deleted
from variantlake.spark.scan.path_columns import VARIANT_FIELD, PathColumn
from variantlake.spark.scan.pushed_filters import pushed_sql
from variantlake.spark.scan.stored_types import ELEMENT, Tree, data_type, struct_type
from variantlake.spark.scan.tables import TableVersion
from variantlake.spark.session.char_columns import char_columns, padded_sql, with_declarations
from variantlake.spark.session.classic_files import (
    EVERYTHING,
    Files,
    ListedFile,
    unused,
)
from variantlake.spark.session.schemas import type_ddl, without_ids
from variantlake.spark.session.versions import arrow_schema


def scan(
    helper: Files,
    table: TableVersion,
    plan: ScanPlan,
    columns: Mapping[str, PathColumn],
    joined: Sequence[Predicate] = (),
    *,
    needed: Collection[str] | None = None,
) -> DataFrame:
    """Return the rows of the plan's files with the table's columns, in the table's order.

    Columns that are NOT NULL in the table are not nullable, if `helper` can assert that. Spark
    trusts the declaration, and would read a NULL as some other value. So the scan of files declares
    it only if the log counts no NULL in any of them; else a NULL is an error above the scan.

    The scan reads `columns` as structs of paths, all others as they are in the table. `joined` are
    conjuncts of the plan that are not in the query's text. `needed` are the columns that the query
    reads, by the names in files; None for all.

    Raises UnsupportedFeature for files in an object store with types that Spark's Variant reader
    lacks if one of their Variants is needed.
    """
    joined = joined if plan.reach is None else (*joined, plan.reach)
    if table.required:
        table = _with_required(helper, table, plan.groups, needed)
    by_spark = [group for group in plan.groups if not group.by_kernels]
    skipped = plan.total_files - plan.read_files, plan.total_bytes - plan.read_bytes
    frames = [
        frame
        for group in plan.groups
        for frame in _LayoutGroup(
            helper,
            table,
            group,
            columns,
            plan.conjuncts,
            joined=joined,
            # Only one of a table's scans reports what was skipped.
            skipped=skipped if by_spark and group is by_spark[0] else (0, 0),
        ).frames(needed)
    ]
    if not frames:
        readings: tuple[tuple[Ref, Reading], ...] = ()
        nothing = ScanGroup(readings, FileRows(plan.table, NO_ROWS))
        frames = [_LayoutGroup(helper, table, nothing, columns).empty()]
    whole = functools.reduce(lambda one, other: one.unionAll(other), frames)
    whole = with_declarations(whole, table.snapshot.schema)
    if not table.required:
        return whole
    where = f"of {table.location}, which is NOT NULL in the table"
    return helper.asserted(whole, {name: f"column {name} {where}" for name in table.required})


def _with_required(
    helper: Files,
    table: TableVersion,
    groups: Sequence[ScanGroup],
    needed: Collection[str] | None,
) -> TableVersion:
    """Return the table; its needed NOT NULL columns are not nullable if no file has NULL there.

    `required` is empty if `helper` cannot assert NOT NULL.
    """
    if not helper.can_assert:
        return replace(table, required=frozenset())
    names = table.stored_names
    required = {names[name] for name in table.required}
    required &= required if needed is None else set(needed)
    return replace(table, stored=_without_nulls(table.stored, groups, required))


def _without_nulls(
    stored: StructType, groups: Sequence[ScanGroup], required: Collection[str]
) -> StructType:
    """Return the columns, not nullable where `required` and the log counts no NULL in any file."""
    return StructType(
        [
            StructField(
                item.name,
                item.dataType,
                item.name not in required or not all(_lacks_nulls(g, item.name) for g in groups),
                item.metadata,
            )
            for item in stored.fields
        ]
    )


def _lacks_nulls(group: ScanGroup, column: str) -> bool:
    known = group.files.columns.facts.column((column,))
    return known is not None and bool((known.nulls[group.files.rows] == 0).all())


class _LayoutGroup:
    """Reads files that share one layout for the requested paths."""

    def __init__(
        self,
        helper: Files,
        table: TableVersion,
        group: ScanGroup,
        columns: Mapping[str, PathColumn],
        conjuncts: Sequence[Predicate] = (),
        *,
        joined: Sequence[Predicate] = (),
        skipped: tuple[int, int] = (0, 0),
    ) -> None:
        self._helper = helper
        self._table = table
        self._files = group.files
        self._columns = columns
        self._conjuncts = conjuncts
        self._joined = joined
        self._skipped = skipped
        self._readings = dict(group.readings)
        self._constants = {
            name: unused(f"__vl_c{at}", table.stored.names)
            for at, name in enumerate(table.partition_types)
        }
        chars = char_columns(table.snapshot.schema)
        self._chars = chars if chars and helper.pads_chars else {}
        self._file_number = unused(FILE_NUMBER, table.stored.names)
        self._stored = self._stored_schema(group)
        self._by_kernels = group.by_kernels
        self._found_by = group.prefilter
        self._left_out: frozenset[str] = frozenset()

    def frames(self, needed: Collection[str] | None) -> Iterator[DataFrame]:
        """Yield the rows of the files; files with deletion vectors get a separate scan."""
        files = list(self._files)
        if self._by_kernels:
            if needed is not None:  # Spark prunes the columns of its own scans itself
                self._left_out = frozenset(self._table.stored.names) - frozenset(needed)
            yield self._select(self._kernel_rows(files), constants=True)
            return
        whole = [file for file in files if not has_deleted(file)]
        if whole and self._table.row_place:
            yield self._select(self._rows(whole, numbered=True), constants=True)
        elif whole:
            yield self._rows(whole, columns=self._columns_of(constants=True))
        rest = [file for file in files if has_deleted(file)]
        if rest:
            rows = self._rows(rest, numbered=True)
            store = self._table.snapshot.store
            rows = without_deleted(self._helper, rows, self._file_number, store, rest)
            yield self._select(rows, constants=True)

    def _rows(
        self,
        files: Sequence[ScanFile],
        *,
        columns: Sequence[str] = EVERYTHING,
        numbered: bool = False,
    ) -> DataFrame:
        """Read columns and partition values; `numbered` adds columns for `without_deleted`."""
        types = {item.name: item.dataType for item in self._table.stored.fields}
        constants = [StructField(field, types[name]) for name, field in self._constants.items()]
        constants += [StructField(self._file_number, IntegerType())] if numbered else []
        known = []
        for number, file in enumerate(files):
            # The protocol writes NULL as an empty string too.
            values = [file.partition.get(name) or None for name in self._constants]
            values += [str(number)] if numbered else []
            known.append(ListedFile(file.path, file.size, file.modified, tuple(values)))
        stored = [f for f in self._file_schema().fields if f.name != self._table.row_place]
        skipped, self._skipped = self._skipped, (0, 0)
        return self._helper.read_parquet(
            known,
            StructType(stored),
            StructType(constants),
            row_index=numbered,
            where=[*self._implied(), *self._pushed(), *self._plan_only_filters()],
            columns=columns,
            label=self._label(known),
            skipped=skipped,
        )

    def _label(self, files: Sequence[ListedFile]) -> str:
        """Return the name of a scan of these files in plans and in Spark's web UI."""
        table = self._table
        every = self._files.columns
        whole = int(every.sizes.sum()) + every.left_out.bytes
        read, count = sum(file.size for file in files), every.rows + every.left_out.files
        return (
            f"variantlake {table.location} v{table.snapshot.version}: "
            f"{len(files):,} of {counted(count, 'file')}, {size(read)} of {size(whole)}"
        )

    def _kernel_rows(self, files: Sequence[ScanFile]) -> DataFrame:
        """Return the rows as from `_rows`, read by our kernels, without deleted rows."""
        snapshot = self._table.snapshot
        # The kernels give fields of structs the table's names.
        own = dict(zip(self._table.stored.names, self._table.schema.fields, strict=True))
        schema = StructType(
            [
                StructField(
                    item.name,
                    item.dataType if item.name in self._columns else own[item.name].dataType,
                )
                for item in self._file_schema().fields
                if item.name not in self._left_out
            ]
        )
        texts = {f: name for name, f in self._constants.items() if name not in self._left_out}
        task = ScanTask.of(
            snapshot,
            files,
            arrow_schema(schema),
            texts,
            prefilter=self._found_by,
            partition_types=self._table.partition_types,
            tasks=self._helper.parallelism,
            row_place=self._table.row_place,
        )
        beside = (StructField(field, StringType()) for field in texts)
        columns = StructType([*schema.fields, *beside])
        rows = self._helper.batches(task, len(task.parts), columns)
        types = self._table.partition_types
        return rows.selectExpr(
            *(quote_identifier(item.name) for item in schema.fields),
            *(f"TRY_CAST({field} AS {types[name]}) AS {field}" for field, name in texts.items()),
        )

    def empty(self) -> DataFrame:
        """Return a DataFrame without rows, with the same columns as other groups."""
        return self._select(self._helper.empty(self._table.stored), constants=False)

    def _select(self, rows: DataFrame, *, constants: bool) -> DataFrame:
        return rows.selectExpr(*self._columns_of(constants=constants))

    def _columns_of(self, *, constants: bool) -> list[str]:
        """Return the table's columns as SQL: one call of the JVM instead of ten for each column."""
        fields = zip(self._stored.fields, self._table.schema.fields, strict=True)
        return [
            f"{self._column(stored, item, constants=constants)} AS {quote_identifier(item.name)}"
            for stored, item in fields
        ]

    def _stored_schema(self, group: ScanGroup) -> StructType:
        """Return the table's columns in these files, without ids if the files surely share names.

        By its id Spark finds a column under any name, but pushes a condition to the column that has
        this name in the file. Only files with the schema's names have facts of a layout.
        """
        table = self._table
        variants = [group.files.columns.facts.variant(column) for column in table.stored_variants]
        named = any(
            known is not None and bool((known.layout[group.files.rows] >= 0).all())
            for known in variants
        )
        return without_ids(table.stored) if named else table.stored

    def _pushed(self) -> list[str]:
        """Return the query's conditions on columns cast, hidden or asserted above the scan.

        Spark does not push these below, so the scan repeats them.
        """
        table = self._table
        changed = {
            stored.name
            for stored, item in zip(self._stored.fields, table.schema.fields, strict=True)
            if stored.name not in self._constants
            and stored.name not in self._chars
            and not stored.metadata
            and (
                type_ddl(stored.dataType) != type_ddl(item.dataType)
                or _is_hidden(stored.dataType)
                or (item.name in table.required and stored.nullable)
            )
        }
        texts = (pushed_sql(conjunct, changed) for conjunct in self._conjuncts)
        return [text for text in texts if text is not None]

    def _plan_only_filters(self) -> Iterator[str]:
        """Yield the conditions of `joined`, which the query lacks, on columns read as stored."""
        plain = {item.name for item in self._stored.fields if not item.metadata}
        plain -= self._chars.keys()
        for part in self._joined:
            text = self._on_path(part) or pushed_sql(part, plain - self._constants.keys())
            if text is not None:
                yield text

    def _on_path(self, condition: Predicate) -> str | None:
        """Return a condition on one path as SQL on its typed column, None if not pushable."""
        paths = {ref for ref in refs(condition) if ref.path is not None}
        reading = self._readings.get(next(iter(paths))) if len(paths) == 1 else None
        if not isinstance(reading, PhysicalColumn) or not reading.pushable:
            return None
        (ref,) = paths
        leaf = _leaf(quote_identifier(ref.column[0]), reading.steps)
        return condition_sql(condition, {ref: reading.conversion.sql(leaf)})

    def _file_schema(self) -> StructType:
        """Return the schema to read of a file, built as types: keys may be any text (rule 6)."""
        fields = []
        for item in self._stored.fields:
            if item.name in self._constants:
                continue
            if item.name in self._columns and not self._is_native(item.name):
                physical = self._physical_type(self._columns[item.name].paths)
                if physical.fields:
                    fields.append(StructField(item.name, physical, metadata=item.metadata))
            else:
                fields.append(item)
        return StructType(fields)

    def _implied(self) -> list[str]:
        """Return the bounds that the query's conditions imply for columns read through a cast.

        Spark pushes these bounds into the files, though not the casts (rule 13).
        """
        return [
            bound.sql(_leaf(quote_identifier(ref.column[0]), reading.steps))
            for ref, reading in self._readings.items()
            if isinstance(reading, PhysicalColumn) and ref.column[0] in self._columns
            if not any(
                isinstance(step, int) for step in reading.steps
            )  # Spark pushes none into arrays
            for conjunct in self._conjuncts
            for bound in implied_bounds(conjunct, ref, reading)
        ]

    def _is_native(self, column: str) -> bool:
        return any(
            isinstance(self._readings.get(ref), Native) for ref in self._columns[column].paths
        )

    def _physical_type(self, paths: Sequence[Ref]) -> StructType:
        root: Tree = {}
        for ref in paths:
            reading = self._readings.get(ref)
            if isinstance(reading, NullTest):
                root[METADATA] = BinaryType()
            elif isinstance(reading, PhysicalColumn):
                *above, leaf = (
                    ELEMENT if isinstance(step, int) else step for step in reading.steps
                )
                tree = root
                for step in above:
                    child = tree.setdefault(step, {})
                    if not isinstance(child, dict):
                        raise TypeError(f"{ref} goes through a typed leaf")
                    tree = child
                tree[leaf] = data_type(reading.stored)
        return struct_type(root)

    def _column(self, stored: StructField, item: StructField, *, constants: bool) -> str:
        name = quote_identifier(stored.name)
        if stored.name in self._left_out:
            # Should never be evaluated; an error is better than a wrong NULL.
            message = _LEFT_OUT.format(item.name)
            ddl = type_ddl(item.dataType, comments=True)
            return f"CAST(raise_error({quote_string(message)}) AS {ddl})"
        if stored.name in self._constants:
            constant = self._constants[stored.name] if constants else name
            return self._padded(constant, stored)
        if stored.name not in self._columns:
            # In id mode Spark would push a condition to the column that has this name in the file.
            by_id = bool(stored.metadata)
            read = hidden(name) if by_id or _is_hidden(item.dataType) else name
            read = self._padded(read, stored)
            if type_ddl(item.dataType) == type_ddl(stored.dataType):
                return read
            return f"CAST({read} AS {type_ddl(item.dataType, comments=True)})"
        wanted = self._columns[stored.name]
        fields = [f"{self._path(name, ref)} AS {wanted.field(ref)}" for ref in wanted.paths]
        if wanted.native:
            native = bool(self._readings) and self._is_native(stored.name)
            whole = hidden(name) if native else "CAST(NULL AS VARIANT)"
            fields.append(f"{whole} AS {VARIANT_FIELD}")
        return f"struct({', '.join(fields)})"

    def _padded(self, column: str, stored: StructField) -> str:
        declared = self._chars.get(stored.name)
        return column if declared is None else padded_sql(column, declared)

    def _path(self, column: str, ref: Ref) -> str:
        reading = self._readings.get(ref)
        if ref.type == PRESENCE:
            return f"IF({column} IS NULL, NULL, TRUE)"
        if not isinstance(reading, PhysicalColumn):
            return f"CAST(NULL AS {ref.type})"
        leaf = _leaf(column, reading.steps)
        return reading.conversion.sql(leaf if reading.pushable else hidden(leaf))


_LEFT_OUT = (
    "internal error of variantlake, not of the query: column {} was left out although the query "
    "needs it; please report it. A query over a view of `lake.read(table)` reads every column"
)


def _leaf(column: str, steps: Iterable[str | int]) -> str:
    """Write SQL for the value `steps` below a column; keys of any text are literals (rule 6).

    `get` gives NULL beyond the end of an array, in ANSI mode too (rule 7).
    """
    for step in steps:
        if isinstance(step, str):
            column = f"{column}[{quote_string(step)}]"
        else:
            column = f"get({column}, {step})"
    return column


def hidden(column: str) -> str:
    """Return the same values in a form that Spark's optimizer does not look through.

    Spark pushes `variant_get` and casts of a bare Variant column into the scan, which casts every
    row, also those that a CASE or an AND would have excluded (rule 1). It pushes a predicate on a
    bare float column to statistics that leave out NaN (rule 8).

    `coalesce(c, c)` prevents both. `if(c IS NULL, NULL, c)` does not: Spark pushes a cast of it
    into the branch, where `c` is bare again.
    """
    return f"coalesce({column}, {column})"


def _is_hidden(type_: DataType) -> bool:
    """Whether a type holds a Variant or a float, outside arrays, that must be `hidden`.

    Spark looks through structs, but not into arrays.
    """
    if isinstance(type_, StructType):
        return any(_is_hidden(item.dataType) for item in type_.fields)
    return isinstance(type_, VariantType | FloatType | DoubleType)

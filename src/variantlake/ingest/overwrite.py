"""Which rows an overwrite replaces: all, the partitions of the new rows, or those of a condition.

The choice is made on one version of the table: an overwrite never replaces rows added since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from variantlake.delta.actions.json_fields import StringMap
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.char_values import padded_to
from variantlake.delta.transaction.replace_where import (
    Replacement,
    replace_all,
    replace_chosen,
    replace_touched,
    replace_where,
)
from variantlake.errors import InvalidSchema, InvalidValue, MissingSource
from variantlake.expressions.arrays import Values
from variantlake.expressions.from_python import Expr
from variantlake.expressions.rows import of_refs, truth_of
from variantlake.expressions.tree import Predicate, Ref, refs
from variantlake.scan.files.file_rows import partition_column
from variantlake.sql.select import QueryText
from variantlake.writing.table_write import TableWrite

Where = Mapping[str, Any] | str | Expr
"""Values of partition columns by name, or a condition over partition columns."""


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Replace the rows of `where`, the partitions of the new rows (`partitions`), or all rows.

    `expected_version` is the version that the new rows were computed from; None means the newest.
    Raises InvalidValue for `where` together with `partitions`.
    """

    where: Where | None = None
    partitions: bool = False
    expected_version: int | None = None

    def __post_init__(self) -> None:
        if self.where is not None and self.partitions:
            raise InvalidValue("give where= or partitions=, not both")
        if self.expected_version is not None and type(self.expected_version) is not int:
            raise InvalidValue(
                f"expected_version is {self.expected_version!r}, expected the number of a version"
            )

    def applied(self, target: TableWrite) -> TableWrite:
        """The table with the files to replace, chosen on the expected version.

        A table that does not exist stays as it is. Raises MissingSource for an expected version
        that is not in the log, else as `of`.
        """
        snapshot, version = target.snapshot, self.expected_version
        if snapshot is None:
            if version is not None:
                raise MissingSource(
                    f"there is no table, and its version {version} was expected",
                    file=target.store.uri,
                )
            return target
        if version is not None and version != snapshot.version:
            store, applies = snapshot.store, snapshot.applies
            snapshot = Snapshot.read(store.uri, version, store=store, applies=applies)
        expected = TableWrite.of(snapshot, evaluated=target.evaluated, numbered=target.numbered)
        return replace(
            expected,
            replacing=self.of(snapshot),
            serializable=self.expected_version is not None,
            parameters=self._parameters(),
        )

    def _parameters(self) -> dict[str, Any]:
        """What Delta Spark records of an overwrite in the history, besides the mode."""
        if self.partitions:
            return {"isDynamicPartitionOverwrite": True}
        if self.where is None or isinstance(self.where, Mapping):
            return {}
        return {"predicate": str(self.where)}

    def of(self, snapshot: Snapshot) -> Replacement:
        """The choice of files to replace in a table.

        Raises InvalidSchema for columns that are not partition columns, InvalidQuery and
        UnsupportedFeature for a condition that does not parse or is not supported.
        """
        schema, columns = snapshot.schema, snapshot.partition_columns
        if self.partitions:
            return replace_touched(schema, columns)
        if self.where is None:
            return replace_all
        if isinstance(self.where, Mapping):
            return replace_where(schema, columns, self.where)
        predicate = QueryText(schema).condition(str(self.where))
        for ref in refs(predicate):
            if ref.column[0] not in columns:
                raise InvalidSchema(
                    f"{ref.column[0]!r} is not a partition column: whole partitions are replaced",
                    hint=f"partition columns: {', '.join(columns) or 'none'}",
                )
        return replace_chosen(schema, PartitionsWhere(snapshot, predicate))


class PartitionsWhere:
    """Tells whether a condition is true of a partition, as `Reads`; evaluates each one once."""

    def __init__(self, snapshot: Snapshot, predicate: Predicate) -> None:
        self._predicate = predicate
        self._fields = {field.name: field for field in snapshot.schema.fields}
        self._names = [self._fields[name].physical_name for name in snapshot.partition_columns]
        self._matches: dict[tuple[str | None, ...], bool] = {}

    def __call__(self, values: StringMap) -> bool:
        """See Reads."""
        key = tuple(values.get(name) for name in self._names)
        if key not in self._matches:

            def operand(ref: Ref) -> Values:
                field = self._fields[ref.column[0]]
                column = partition_column(field, values.get(field.physical_name), 1)
                return Values(padded_to(column.array, ref.char_length))

            truth = truth_of(self._predicate, of_refs(operand), 1)
            if truth.failed[0]:
                raise InvalidValue(f"a value cannot be cast or computed: {self._predicate}")
            self._matches[key] = bool(truth.true[0])
        return self._matches[key]

"""Changing what a table is: properties, columns, constraints, statistics."""

from __future__ import annotations

from collections.abc import Mapping

from variantlake.delta.protocol.cluster_paths import PROPERTY as CLUSTER_BY
from variantlake.delta.protocol.known_properties import check_properties
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.transaction import alter
from variantlake.delta.transaction.analyze import AnalyzeResult, analyze
from variantlake.delta.transaction.backfill import backfill_row_ids
from variantlake.delta.transaction.commit import commit
from variantlake.errors import InvalidValue
from variantlake.table.handle import TableHandle


class TableAlterations(TableHandle):
    """The part of `Table` that changes its metadata."""

    __slots__ = ()

    def set_properties(self, properties: Mapping[str, str]) -> int:
        """Set table properties and add the features that they need; returns the new version.

        `{"delta.enableVariantShredding": "true"}` shreds new files, `"false"` does not.
        `{"delta.enableRowTracking": "true"}` first gives row ids to the existing files, in separate
        commits.

        Raises:
            InvalidValue: A value that the property cannot have.
            InvalidSchema: A property that the columns do not go with.
            UnsupportedFeature: A property of a feature that we do not write, or one that the rows
                that are there would have to be checked or rewritten for.
            CommitConflict: Another writer changed the table in a way that contradicts this.
        """
        snapshot = self._newest()
        properties = check_properties(properties)
        if alter.enables_row_tracking(snapshot, properties):
            snapshot = backfill_row_ids(snapshot)
        return commit(snapshot, alter.set_properties(snapshot, properties))

    def analyze(self, *, dry_run: bool = False) -> AnalyzeResult:
        """Add missing statistics to files of other writers, from their footers.

        The files are added again under their own paths; no row changes. With `dry_run` nothing is
        committed, and the result says what would be.

        Raises:
            MalformedFile, MissingSource: A file that cannot be read, by name.
            CommitConflict: Another writer changed one of the files.
            UnsupportedFeature: The table needs a feature that we do not write.
        """
        return analyze(self._newest(), dry_run=dry_run)

    def unset_properties(self, *names: str) -> int:
        """Remove table properties, so that their defaults apply; returns the new version.

        Raises InvalidValue for a property that files depend on, else as `set_properties`.
        """
        snapshot = self._newest()
        return commit(snapshot, alter.unset_properties(snapshot, names))

    def set_clustering(self, *paths: str) -> int:
        """Set the paths that the table is clustered by; returns the new version.

        Loads then sort each file by them, and `cluster` orders the files. This rewrites nothing.

        Args:
            paths: Paths that are typed columns (`event:kind::string`, `$.kind` if there is one
                VARIANT column) and ordinary columns, at most 4; none removes the clustering.

        Raises:
            InvalidSchema: Rows cannot be ordered by this: a path that is not a typed column, a
                partition column, a column that does not exist or is a Variant.
            InvalidPath, InvalidValue: A path that does not parse, or too many.
            CommitConflict: As `set_properties`.
        """
        if not paths:
            return self.unset_properties(CLUSTER_BY)
        for path in paths:
            if not isinstance(path, str):
                raise InvalidValue(
                    f"a clustering path is {path!r}", hint="text such as 'event:kind::string'"
                )
        return self.set_properties({CLUSTER_BY: ", ".join(paths)})

    def drop_constraint(self, name: str) -> int:
        """Remove a CHECK constraint; returns the new version. `lake.add_constraint` adds one.

        Raises InvalidValue for one that does not exist, else as `set_properties`.
        """
        snapshot = self._newest()
        return commit(snapshot, alter.drop_constraint(snapshot, name))

    def drop_not_null(self, column: str) -> int:
        """Allow NULL in a column; returns the new version. `lake.set_not_null` does the opposite.

        Raises InvalidSchema for a column that does not exist, else as `set_properties`.
        """
        snapshot = self._newest()
        return commit(snapshot, alter.set_not_null(snapshot, column, not_null=False))

    def add_column(self, column: str) -> int:
        """Add columns at the end, NULL in existing rows; returns the new version.

        Args:
            column: DDL of one or more columns, `note STRING`. A VARIANT column adds its features.

        Raises:
            InvalidSchema: The DDL does not parse, the column is there already or is NOT NULL.
            UnsupportedFeature, CommitConflict: As `set_properties`.
        """
        snapshot = self._newest()
        changes = alter.add_columns(snapshot, parse_table_ddl(column))
        return commit(snapshot, changes)

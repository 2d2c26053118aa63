"""Schema evolution of a MERGE: adds columns of the source to the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from variantlake.delta.actions.actions import Metadata, Protocol
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.schema.type_parts import nullable_struct
from variantlake.delta.transaction.alter import evolved, merged_schema
from variantlake.sql.changes import Clause


@dataclass(frozen=True, slots=True)
class Evolution:
    """A table with the columns that a MERGE adds, and the actions that add them.

    The protocol in `altered` is None if the table's own suffices.
    """

    snapshot: Snapshot
    altered: tuple[Protocol | None, Metadata]


def evolution(
    snapshot: Snapshot, source: StructType, clauses: Iterable[Clause]
) -> Evolution | None:
    """Add the columns that a MERGE with schema evolution needs; None if the table has them all.

    These are the columns of `source` that a clause writes by `*` or by name. Columns that the table
    already has keep their type.

    Raises InvalidSchema for columns that a Delta table cannot have.
    """
    written = nullable_struct(_written(source, clauses))
    schema = merged_schema(snapshot.schema, written, types=False)
    if schema == snapshot.schema:
        return None
    protocol, metadata = evolved(snapshot, schema)
    schema = StructType.from_json(metadata.schema_string)
    return Evolution(
        replace(snapshot, protocol=protocol, metadata=metadata, schema=schema),
        (None if protocol == snapshot.protocol else protocol, metadata),
    )


def _written(source: StructType, clauses: Iterable[Clause]) -> StructType:
    names = {name.lower() for clause in clauses for name, _ in clause.set}
    kept = (each for each in source.fields if "*" in names or each.name.lower() in names)
    return StructType(tuple(kept))

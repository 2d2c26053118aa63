"""What is known about one file without reading its rows: counts and bounds of columns and paths.

The same records come from a finished file's footer, from our own writer (which knows more) and
from the log, so that planning never asks where they come from. Unknown is always -1 (counts), None
(bounds) or False (flags), and always the safe side: it keeps the file and takes the native way.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from variantlake.paths import Path
from variantlake.shredding.schema import Node, ShreddingSchema

UNKNOWN = -1
"""A count that nobody took."""

Raw = int | float | str | bytes | Decimal
"""A bound as stored: dates in days, times and timestamps as counts of the type's own unit since
midnight or the epoch, decimals exact with the column's scale, UUIDs as 16 bytes."""


@dataclass(frozen=True, slots=True)
class PathFacts:
    """One node of a Variant column's shredding schema, over all rows of the file.

    `typed` counts rows whose `typed_value` is set, `nulls` rows whose own residual `value` is the
    Variant null `00`, `residuals` rows with any other residual (for objects also the partial
    ones); -1 where unknown. Inside arrays there are no facts of this kind.

    `minimum` and `maximum` enclose the `typed_value`s of a primitive leaf, by value for numbers
    (without NaN), by unsigned bytes for strings, binary and UUIDs; None where unknown and where
    there are no values. A bound of zero of a float is widened to [-0.0, +0.0]. `*_exact` is false
    where the bound may lie outside of the values (a cut string).

    `plain_floats` is true when the leaf is FLOAT or DOUBLE and is known to hold neither NaN nor
    -0.0 (EXACTNESS, rule 8).
    """

    path: Path
    node: Node
    typed: int = UNKNOWN
    nulls: int = UNKNOWN
    residuals: int = UNKNOWN
    minimum: Raw | None = None
    maximum: Raw | None = None
    minimum_exact: bool = False
    maximum_exact: bool = False
    plain_floats: bool = False

    @property
    def clean(self) -> bool:
        """Every residual of the path's own is absent or a Variant null (EXACTNESS, rule 9)."""
        return self.residuals == 0 and self.nulls >= 0


@dataclass(frozen=True, slots=True)
class VariantFacts:
    """One Variant column: how this file shreds it, and the facts of each node.

    `column` is the column's path through structs, by the names in the file. `nulls` counts SQL
    NULLs, -1 where unknown. `paths` follow `schema.nodes()` one to one.
    """

    column: tuple[str, ...]
    schema: ShreddingSchema
    nulls: int
    paths: tuple[PathFacts, ...]

    def find(self, path: Path) -> PathFacts | None:
        """The facts of exactly this path; None where it is not a node of the schema."""
        return next((facts for facts in self.paths if facts.path == path), None)


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """One ordinary column, or one leaf of a struct; an array or map is one column without bounds.

    `nulls` counts rows without a value, a null struct above it included; -1 where unknown. Bounds,
    exactness and `plain_floats` as in PathFacts. `type` is the Arrow type that the file stores.
    """

    column: tuple[str, ...]
    type: pa.DataType
    nulls: int = UNKNOWN
    minimum: Raw | None = None
    maximum: Raw | None = None
    minimum_exact: bool = False
    maximum_exact: bool = False
    plain_floats: bool = False


@dataclass(frozen=True, slots=True)
class FileFacts:
    """One data file, or one row group of it. `size` is in bytes."""

    size: int
    num_records: int
    row_groups: int
    variants: tuple[VariantFacts, ...] = ()
    columns: tuple[ColumnFacts, ...] = ()

    def variant(self, column: tuple[str, ...]) -> VariantFacts | None:
        """The facts of this Variant column."""
        return next((facts for facts in self.variants if facts.column == column), None)

    def column(self, column: tuple[str, ...]) -> ColumnFacts | None:
        """The facts of this ordinary column."""
        return next((facts for facts in self.columns if facts.column == column), None)

"""Groups of files that are rewritten together, and counts of their input files."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from variantlake.delta.actions.actions import AddFile, DeletionVectorDescriptor
from variantlake.errors import InvalidValue
from variantlake.maintenance.rewrite.cells import Cells
from variantlake.parquet.stats.facts import FileFacts
from variantlake.paths import Path
from variantlake.shredding.schema import ShreddingSchema

APART_TAG = "variantlake.apart"
"""Tag of files that stay apart from others of their layout, because they contradict the others'
note on integers in decimal columns. Its value is a number; files of one number may be joined, and
rows that contradict them in turn get the next number."""

Key = tuple[str, str | None]
"""The key of a logical file: its path as in the log, and the id of its deletion vector."""


def check_whole(name: str, given: object, least: int = 1) -> None:
    """Raise InvalidValue for an option that is not a whole number from `least` on."""
    if type(given) is not int or given < least:
        raise InvalidValue(
            f"{name.replace('_', ' ')} is {given!r}", hint=f"a whole number, {least} or more"
        )


class Tier(enum.IntEnum):
    """How a file's rows get into a new file, the cheapest way first.

    COPY: row groups are copied as bytes. COLUMNS: physical columns are decoded and encoded, no
    Variant value is built. SHRED: Variants are rebuilt and shredded into another layout.
    """

    COPY = 1
    COLUMNS = 2
    SHRED = 3


@dataclass(frozen=True, slots=True)
class RewriteInput:
    """One input file. `rows` counts those that are not deleted, -1 if unknown.

    `tier` is what the plan expects; the file's footer decides. `size` is in bytes. `facts` are the
    log's facts about a file that may be copied.
    """

    path: str
    size: int
    rows: int = -1
    vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    row_commit_version: int | None = None
    tier: Tier = Tier.COLUMNS
    facts: FileFacts | None = None

    @classmethod
    def of(cls, add: AddFile, records: int, tier: Tier) -> Self:
        """Return the file of an `add` with `records` rows, deleted ones included; -1 if unknown."""
        vector = add.deletion_vector
        deleted = 0 if vector is None else vector.cardinality
        return cls(
            add.path,
            add.size,
            -1 if records < 0 else max(records - deleted, 0),
            vector,
            add.base_row_id,
            add.default_row_commit_version,
            tier,
        )

    @property
    def key(self) -> Key:
        """The key of the logical file."""
        return (self.path, None if self.vector is None else self.vector.unique_id)

    @property
    def deleted(self) -> int:
        """How many rows its deletion vector deletes."""
        return 0 if self.vector is None else self.vector.cardinality

    @property
    def live_bytes(self) -> int:
        """About the bytes of the rows that are not deleted."""
        if self.rows < 0 or not self.deleted:
            return self.size
        return self.size * self.rows // (self.rows + self.deleted)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files of one partition that become new files together; pickles.

    `partition_values` are serialised, by physical name. `layouts` are the new shredding of each
    top-level VARIANT column by physical name. `told_apart` are the DECIMAL columns in them whose
    integers are read as integers (`ValueNotes.told_apart`). `required` are the columns without
    NULL. With `cells`, each new file gets the rows of its cells, in order. `apart` is the number of
    the files, see APART_TAG; `tags` are added to the tags of the new files.
    """

    number: int
    files: tuple[RewriteInput, ...]
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    layouts: Mapping[str, ShreddingSchema] = field(default_factory=dict)
    told_apart: Mapping[str, frozenset[Path]] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    cells: Cells | None = None
    apart: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Bytes of the input files."""
        return sum(file.size for file in self.files)

    @property
    def live_bytes(self) -> int:
        """About the bytes of the rows that are not deleted, which the new files will have."""
        return sum(file.live_bytes for file in self.files)

    @property
    def tiers(self) -> TierCounts:
        """Counts of the input files by their expected tier."""
        return joined(
            {file.tier: InputCounts(1, file.size, max(file.rows, 0))} for file in self.files
        )

    @property
    def keys(self) -> Iterator[Key]:
        """The keys of the input files."""
        return (file.key for file in self.files)


@dataclass(frozen=True, slots=True)
class InputCounts:
    """Counts of input files of one tier, of their bytes, and of rows that are not deleted."""

    files: int = 0
    bytes: int = 0
    rows: int = 0

    def __add__(self, more: InputCounts) -> InputCounts:
        return InputCounts(self.files + more.files, self.bytes + more.bytes, self.rows + more.rows)


TierCounts = Mapping[Tier, InputCounts]


def total(tiers: TierCounts) -> InputCounts:
    """Add up all tiers."""
    return sum(tiers.values(), InputCounts())


def joined(parts: Iterable[TierCounts]) -> dict[Tier, InputCounts]:
    """Add up counts by tier."""
    found: dict[Tier, InputCounts] = {}
    for part in parts:
        for tier, each in part.items():
            found[tier] = found.get(tier, InputCounts()) + each
    return dict(sorted(found.items()))

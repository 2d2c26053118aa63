"""The layouts of data files, from their footers, cached between the queries of a table."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import StructField
from variantlake.expressions.tree import Ref
from variantlake.parquet.metadata.footer import Footer, read_footer
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.stats.facts import facts_of, row_group_facts
from variantlake.paths import Path
from variantlake.planning.exact.readings import Reader, Reading
from variantlake.planning.files import FileColumns, RecordFiles, ScanFile
from variantlake.scan.files.conform import find_field
from variantlake.storage.input_file import InputFile

MOST_FILES = 256
"""The most files to cache; those that were read last stay."""


class FileLayout:
    """The footer of one file, and how to read paths from its columns.

    `named` tells whether the file uses the table's physical names.
    """

    def __init__(self, snapshot: Snapshot, file: ScanFile, footer: Footer) -> None:
        self.footer = footer
        self.named = snapshot.has_stored_names(footer)
        self.variants = frozenset(snapshot.schema.variant_columns(physical=True))
        self._file = file
        self._readings: dict[Ref, Reading] = {}
        self._row_groups: dict[frozenset[Path], FileColumns | None] = {}
        self.leaves: dict[Ref, int] = {}
        """The leaves of paths that are typed columns."""
        self.without_runs: set[tuple[int, int]] = set()
        """Row groups and leaves that have too many runs, or cannot be read as runs."""

    def node(self, field: StructField) -> SchemaNode | None:
        """Find a column of the table in the file, by its name, or by its id if not `named`.

        None if the file has no such column.
        """
        return find_field(self.footer.schema, field, by_id=not self.named)

    def readings(self, requested: Iterable[Ref]) -> dict[Ref, Reading]:
        """How to read each path.

        Leaves out columns, whole Variants, and paths of Variants in structs: these are read whole.
        """
        paths_asked = (ref for ref in requested if ref.path is not None and ref.type != "variant")
        wanted = [ref for ref in paths_asked if len(ref.column) == 1]
        unknown = [ref for ref in wanted if ref not in self._readings]
        if unknown:
            paths = {ref.path for ref in unknown if ref.path is not None}
            facts = (
                facts_of(self.footer, self._file.size, self.variants, paths) if self.named else None
            )
            self._readings |= {ref: Reader(ref).read(facts) for ref in unknown}
        return {ref: self._readings[ref] for ref in wanted}

    def row_groups(self, paths: Iterable[Path]) -> FileColumns | None:
        """The row groups as files, with the facts of these paths; None if not `named`.

        They are cached with all that conditions derive from them, which took 0.6 ms a row group.
        """
        if not self.named:
            return None
        key = frozenset(paths)
        if key not in self._row_groups:
            file, found = self._file, row_group_facts(self.footer, self.variants, key)
            self._row_groups[key] = RecordFiles(
                [ScanFile(file.path, 0, facts, file.partition) for facts in found]
            )
        return self._row_groups[key]


class FileLayouts:
    """The layouts of the files that the scans of one table have read."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._layouts: OrderedDict[object, FileLayout] = OrderedDict()

    def of(self, snapshot: Snapshot, file: ScanFile, source: InputFile) -> FileLayout:
        """The layout of a file, which is open as `source`. Raises as `read_footer` does."""
        key = (file.path, file.size, file.modified, *sorted(file.partition.items()))
        with self._lock:
            if key in self._layouts:
                self._layouts.move_to_end(key)
                return self._layouts[key]
        made = FileLayout(snapshot, file, read_footer(source))
        with self._lock:
            self._layouts[key] = made
            if len(self._layouts) > MOST_FILES:
                self._layouts.popitem(last=False)
        return made

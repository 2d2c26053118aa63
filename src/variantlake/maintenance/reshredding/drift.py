"""Report what residuals hold, version by version, and which paths would be worth a column.

Sizes and counts come from the footers of a bounded number of files, spread over each group of
versions. New paths come from a sample of rows, by the inference that a first load uses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.properties import hints, shredding_schemas
from variantlake.delta.schema.table_schema import VariantType
from variantlake.errors import InvalidSchema, did_you_mean, in_file
from variantlake.ingest.learning.sample import (
    SAMPLE_FILES,
    ColumnSample,
    Trial,
    sample_column,
    spread,
)
from variantlake.maintenance.reshredding.versions import order_of_files, versions_of_files
from variantlake.parquet.metadata.footer import Footer, read_footer
from variantlake.parquet.stats.facts import UNKNOWN, facts_of
from variantlake.parquet.variant.variant_group import VariantGroup, variant_groups
from variantlake.paths import Path
from variantlake.progress import OnProgress, Progress
from variantlake.shown import Shown
from variantlake.shredding.ddl import format_ddl
from variantlake.shredding.inference.infer import InferenceOptions
from variantlake.shredding.schema import Leaf, ShreddingSchema, type_name

MAX_GROUPS = 12
"""A report has at most this many groups of versions."""

MAX_FILES = 240
"""A report reads at most this many footers, besides its sample."""

_THREADS = 16

_File = tuple[int, str, int]
"""Version, path and bytes."""


@dataclass(frozen=True, slots=True)
class PathResiduals:
    """One path of a Variant column in the examined files of a group of versions.

    `type` is that of its column (DDL; STRUCT, ARRAY or VARIANT without one), "several" if files
    differ. `rows` counts the rows of the files that have the node. `residual_rows` counts those
    whose residual is neither NULL nor a Variant null, None if a footer lacks the count. Bytes are
    compressed.
    """

    column: str
    path: str
    type: str
    rows: int
    residual_rows: int | None
    residual_bytes: int
    typed_bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class VersionsDrift(Shown):
    """The files that a run of versions added; both versions are None if the log no longer tells.

    Of the `files`, the report read the footers of `examined`. `rows`, `bytes`, `residual_bytes` (of
    all residuals, compressed), `paths`, and `layouts`, the number of different layouts, are about
    these.
    """

    first_version: int | None
    last_version: int | None
    files: int
    examined: int
    rows: int
    bytes: int
    residual_bytes: int
    layouts: int
    paths: tuple[PathResiduals, ...]

    @property
    def residual_share(self) -> float:
        """The share of the files' bytes that is in residuals."""
        return self.residual_bytes / self.bytes if self.bytes else 0.0


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A path that is worth a column of `type` (DDL), and has none, or one of another type.

    `why` is the reason that inference gives. `saves_bytes` estimates from the sample how much less
    a query of this path would read over the whole table, if it read the new column in place of the
    residual.
    """

    column: str
    path: str
    type: str
    why: str
    saves_bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class ColumnDrift(Shown):
    """A Variant column: the schema that the table has, and what inference would give it now.

    `sampled_rows` counts the rows of the sample. Two estimates come from it: `bytes`, the size of
    the whole column now, and `bytes_ratio`, its size when shredded anew divided by its size now.
    """

    column: str
    shredding: str | None
    proposed: str
    sampled_rows: int
    bytes: int
    bytes_ratio: float
    new_columns: tuple[NewColumn, ...]

    @property
    def pays_off(self) -> bool:
        """Whether a query of some new column saves more bytes than all of them add to the files.

        Each column costs some hundred bytes a file, more than tiny files can save.
        """
        growth = max(0.0, (self.bytes_ratio - 1) * self.bytes)
        return any(new.saves_bytes > growth for new in self.new_columns)


@dataclass(frozen=True, slots=True, repr=False)
class Drift(Shown):
    """How far the layout of a table has drifted from its data, at `version`."""

    version: int
    versions: tuple[VersionsDrift, ...]
    columns: tuple[ColumnDrift, ...]


def drift(
    snapshot: Snapshot, column: str | None = None, *, progress: OnProgress | None = None
) -> Drift:
    """Report on all top-level VARIANT columns, or on one.

    `progress` is called with the number of files read so far, and of all to read.

    Raises InvalidSchema for a column that is not a VARIANT column, MalformedFile and MissingSource
    naming a file that cannot be read.
    """
    columns = variant_columns(snapshot, column)
    ordered = order_of_files(snapshot, versions_of_files(snapshot))
    groups = _groups(ordered)
    chosen = [spread(group, max(1, MAX_FILES // max(len(groups), 1))) for group in groups]
    total = sum(map(len, chosen)) + min(len(ordered), SAMPLE_FILES) * len(columns)
    done = 0

    def count(_at: Progress | None = None) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(Progress(done, total, "files", "read"))

    names = {physical: name for name, physical in columns.items()}
    read = partial(_read, snapshot, names)
    versions = []
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="variantlake-drift") as pool:
        for group, examined in zip(groups, chosen, strict=True):
            sums = _Sums(names)
            for footer, (_, _, size) in zip(pool.map(read, examined), examined, strict=True):
                sums.add(footer, size)
                count()
            versions.append(sums.report(group, len(examined)))
    rows = _rows(snapshot, versions)
    found = [column_drift(snapshot, name, ordered, rows, progress=count) for name in columns]
    return Drift(snapshot.version, tuple(versions), tuple(found))


def column_drift(
    snapshot: Snapshot,
    column: str,
    ordered: Sequence[_File],
    rows: int,
    *,
    progress: OnProgress | None = None,
) -> ColumnDrift:
    """Return what inference would make of a VARIANT column now, from a sample of `ordered` files.

    `rows` is the number of rows of the table. Raises as `drift`.
    """
    physical = variant_columns(snapshot, column)[column]
    paths = [path for _, path, _ in spread(ordered, SAMPLE_FILES)]
    sample = sample_column(snapshot, paths, physical, progress=progress)
    known = shredding_schemas(snapshot.properties, snapshot.schema)
    options = InferenceOptions(hints=hints(snapshot.properties, physical))
    return _column(column, sample, options, known.get(physical), rows)


def variant_columns(snapshot: Snapshot, column: str | None = None) -> dict[str, str]:
    """Map the top-level VARIANT columns, or this one, to their physical names.

    Raises InvalidSchema if the table has no such VARIANT column.
    """
    found = {
        item.name: item.physical_name
        for item in snapshot.schema.fields
        if isinstance(item.type, VariantType)
    }
    if column is None:
        return found
    if column not in found:
        raise InvalidSchema(
            f"the table has no VARIANT column {column!r}",
            file=snapshot.store.uri,
            hint=did_you_mean(str(column), found)
            or f"VARIANT columns: {', '.join(found) or 'none'}",
        )
    return {column: found[column]}


# --- Footers --------------------------------------------------------------------------------------


def _groups(ordered: Sequence[_File]) -> list[list[_File]]:
    """Group the files by runs of versions; files of unknown versions are the first group."""
    unknown = [file for file in ordered if file[0] < 0]
    known = sorted({version for version, _, _ in ordered if version >= 0})
    limit = MAX_GROUPS - bool(unknown)
    place = {v: i if len(known) <= limit else i * limit // len(known) for i, v in enumerate(known)}
    groups: dict[int, list[_File]] = {}
    for file in ordered:
        if file[0] >= 0:
            groups.setdefault(place[file[0]], []).append(file)
    return [*([unknown] if unknown else []), *groups.values()]


def _read(
    snapshot: Snapshot, columns: Collection[str], file: _File
) -> tuple[Footer, dict[str, VariantGroup]]:
    """Read the footer of a file; returns it with the groups of these Variant columns."""
    location = snapshot.location(file[1])
    with in_file(location):
        footer = read_footer(location)
        found = variant_groups(footer, frozenset((column,) for column in columns))
    return footer, {group.column[0]: group for group in found if len(group.column) == 1}


@dataclass(slots=True)
class _Sums:
    """Sums over the footers of one group of versions; `names` are columns by physical name."""

    names: Mapping[str, str]
    rows: int = 0
    bytes: int = 0
    layouts: set[tuple[str, ShreddingSchema]] = field(default_factory=set)
    paths: dict[tuple[str, Path], PathResiduals] = field(default_factory=dict)

    def add(self, read: tuple[Footer, dict[str, VariantGroup]], size: int) -> None:
        footer, groups = read
        self.rows += footer.num_rows
        self.bytes += size
        facts = facts_of(footer, size, {(physical,) for physical in groups})
        for physical, group in groups.items():
            self.layouts.add((physical, group.schema))
            known = facts.variant((physical,))
            residuals = {} if known is None else {each.path: each.residuals for each in known.paths}
            for path, node in group.nodes():
                rows = residuals.get(path, UNKNOWN)
                leaf = None if node.element is not None else node.typed_value
                inside = [] if node.element is None else list(node.element.leaves())
                self._add(
                    PathResiduals(
                        self.names[physical],
                        str(path),
                        type_name(node.node),
                        footer.num_rows,
                        None if rows == UNKNOWN else rows,
                        _bytes(footer, [] if node.value is None else [node.value]),
                        _bytes(footer, inside if leaf is None else [leaf]),
                    ),
                    path,
                )

    def _add(self, more: PathResiduals, path: Path) -> None:
        key = (more.column, path)
        known = self.paths.get(key)
        if known is None:
            self.paths[key] = more
            return
        both = (known.residual_rows, more.residual_rows)
        self.paths[key] = replace(
            known,
            type=known.type if known.type == more.type else "several",
            rows=known.rows + more.rows,
            residual_rows=None if None in both else sum(filter(None, both)),
            residual_bytes=known.residual_bytes + more.residual_bytes,
            typed_bytes=known.typed_bytes + more.typed_bytes,
        )

    def report(self, group: Sequence[_File], examined: int) -> VersionsDrift:
        versions = [version for version, _, _ in group]
        known = min(versions) >= 0
        return VersionsDrift(
            first_version=min(versions) if known else None,
            last_version=max(versions) if known else None,
            files=len(group),
            examined=examined,
            rows=self.rows,
            bytes=self.bytes,
            residual_bytes=sum(each.residual_bytes for each in self.paths.values()),
            layouts=len(self.layouts),
            paths=tuple(self.paths.values()),
        )


def _bytes(footer: Footer, leaves: Sequence[int]) -> int:
    return sum(
        group.columns[leaf].compressed_size for group in footer.row_groups for leaf in leaves
    )


def _rows(snapshot: Snapshot, versions: Sequence[VersionsDrift]) -> int:
    """Estimate the rows of the table from the examined files."""
    examined = sum(each.examined for each in versions)
    rows = sum(each.rows for each in versions)
    return rows * snapshot.files.num_rows // examined if examined else 0


# --- New columns ----------------------------------------------------------------------------------


def _column(
    name: str,
    sample: ColumnSample,
    options: InferenceOptions,
    shredding: ShreddingSchema | None,
    rows: int,
) -> ColumnDrift:
    inference = sample.infer(options)
    now = shredding or ShreddingSchema()
    before, after = Trial.of(sample, now), Trial.of(sample, inference.schema)
    size = _bytes_of(before)
    share = rows / max(sample.table.num_rows, 1)
    found = []
    for path, node in inference.schema.nodes():
        if not isinstance(node, Leaf) or now.find(path) == (node, path):
            continue
        saved = _read_for(before, path) - _read_for(after, path)
        found.append(
            NewColumn(
                name,
                str(path),
                node.type.ddl,
                inference.why(path)[2],
                max(0, round(saved * share)),
            )
        )
    found.sort(key=lambda each: -each.saves_bytes)
    return ColumnDrift(
        name,
        None if shredding is None else format_ddl(shredding),
        format_ddl(inference.schema),
        sample.table.num_rows,
        round(size * share),
        _bytes_of(after) / size if size else 1.0,
        tuple(found),
    )


def _bytes_of(trial: Trial) -> int:
    return _bytes(trial.footer, list(trial.group.leaves()))


def _read_for(trial: Trial, path: Path) -> int:
    """Return the bytes that a query of a path reads: its column, and residuals that may hold it."""
    node, depth = trial.group.root, 0
    for step in path.steps:
        below = node.get(step) if isinstance(step, str) else None
        if below is None:
            break
        node, depth = below, depth + 1
    leaves = [leaf for leaf in (node.value, node.typed_value) if leaf is not None]
    if depth < len(path.steps) or node.typed_value is None:
        leaves += [] if trial.group.metadata is None else [trial.group.metadata]
    return _bytes(trial.footer, leaves)

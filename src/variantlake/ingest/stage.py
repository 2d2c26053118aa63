"""Staged loads: files written but invisible until published or dropped. See `Table.stage`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from variantlake.delta.actions.commit_properties import (
    CommitProperties,
    takes_commit_properties,
)
from variantlake.delta.log.files.logical_files import files_of
from variantlake.delta.log.files.path_index import PathIndex
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import InvalidValue
from variantlake.ingest.commit_load import LoadResult
from variantlake.scan.table_scan import Scan
from variantlake.shown import Shown, counted
from variantlake.sql.select import QueryText
from variantlake.storage.opening import open_store
from variantlake.units import EPOCH, check_limit
from variantlake.writing.staged_files import (
    StagedLoad,
    Staging,
    drop_stage,
    list_stages,
    publish_stage,
    read_stage,
)
from variantlake.writing.table_write import READER_FEATURES

if TYPE_CHECKING:
    from variantlake.expressions.from_python import Expr


@dataclass(frozen=True, slots=True, repr=False)
class Stage(Shown):
    """A load that is written but not published: its rows are not yet rows of the table.

    `id` is the load's id; publishing it adds `rows` in `files` of `size` bytes; `created` is in
    milliseconds since 1970. A Stage pickles; another process can also get it from `Table.stages()`.
    """

    uri: str
    id: str
    rows: int
    files: int
    size: int
    created: int

    @property
    def time(self) -> datetime:
        """When the load was staged, in UTC."""
        return EPOCH + timedelta(milliseconds=self.created)

    def scan(
        self,
        select: str | Expr | Sequence[str | Expr] = "*",
        where: str | Expr | None = None,
        *,
        limit: int | None = None,
    ) -> Scan:
        """Read the rows of this load only, as `Table.scan` does.

        Raises MissingSource if the load was published or dropped, else as `Table.scan`.
        """
        check_limit(limit)
        newest = self._newest()
        files = files_of(read_stage(newest.store, self.id).adds)
        rows = replace(newest, files=files, index=PathIndex())
        text = QueryText(rows.schema)
        condition = None if where is None else text.condition(str(where))
        return Scan(rows, text.items(select), condition, limit)

    def check(self, *conditions: str | Expr) -> int:
        """Raise InvalidValue unless every row fulfils these conditions; returns how many rows.

        `stage.check("event:ts::timestamp IS NOT NULL", "n >= 0")`. As in WHERE, a row for which a
        condition is NULL does not fulfil it. Also raises as `scan`.
        """
        for condition in conditions:
            broken = self.rows - self.scan(where=condition).count()
            if broken:
                raise InvalidValue(
                    f"{counted(broken, 'row')} of the staged load {self.id!r} "
                    f"{'does' if broken == 1 else 'do'} not fulfil {str(condition)!r}",
                    file=self.uri,
                    hint="stage.drop() removes the load; stage.scan(where=...) shows its rows",
                )
        return self.rows

    @takes_commit_properties
    def publish(self, *, commit_properties: CommitProperties = None) -> LoadResult:
        """Add the rows to the table in one commit.

        Does nothing if any process has published the load already (`already_loaded`).
        `commit_properties` are as for `Table.append`.

        Raises:
            CommitConflict: Since then the table's schema or constraints changed, or another writer
                used the numbers of an identity column; drop the load and stage it again.
            MissingSource: The load was dropped.
        """
        version, is_done, staged = publish_stage(self._newest(), self.id)
        if not is_done or staged is None:
            return LoadResult(version=version, already_loaded=True, load_id=self.id)
        return LoadResult(
            version=version,
            files_written=self.files,
            rows_written=self.rows,
            bytes_written=self.size,
            load_id=self.id,
        )

    def drop(self) -> int:
        """Drop the load; returns how many files the next vacuum will delete.

        Raises InvalidValue if the load was published.
        """
        return len(drop_stage(self._newest(), self.id).adds)

    def _newest(self) -> Snapshot:
        return Snapshot.read(self.uri, applies=READER_FEATURES)


def stage_load(
    uri: str, load: Callable[[Staging], LoadResult], options: Mapping[str, object]
) -> Stage:
    """Stage what `load` writes; `options` are the load's. See `Table.stage`."""
    if options.get("unique_by"):
        raise InvalidValue(
            "which rows a load with a key replaces is decided when it is committed",
            hint="leave out unique_by, or append the rows without staging them",
        )
    if options.get("merge_schema"):
        raise InvalidValue(
            "a staged load cannot add columns",
            hint="add them first: Table.add_column, or an append with merge_schema",
        )
    result = load(Staging())
    if result.already_loaded:
        raise InvalidValue(
            f"the load {result.load_id!r} was published as version {result.version}",
            file=uri,
            hint="a repeat does nothing; use another load_id for another load",
        )
    return stage_of(uri, read_stage(open_store(uri), result.load_id))


def stages_of(uri: str) -> list[Stage]:
    """The staged loads of a table, oldest first."""
    stages = (stage_of(uri, staged) for staged in list_stages(open_store(uri)))
    return sorted(stages, key=lambda each: (each.created, each.id))


def stage_of(uri: str, staged: StagedLoad) -> Stage:
    """The public view of a staged load."""
    return Stage(
        uri=uri,
        id=staged.load_id,
        rows=sum(add.num_records or 0 for add in staged.adds),
        files=len(staged.adds),
        size=sum(add.size for add in staged.adds),
        created=staged.created,
    )

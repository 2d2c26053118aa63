"""A staged load of a table: written, invisible, and published or dropped. See `Table.stage`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from variantlake.delta.actions.commit_properties import (
    CommitProperties,
    takes_commit_properties,
)
from variantlake.delta.log.logical_files import files_of
from variantlake.delta.log.path_index import PathIndex
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
    """A load that is written and not published: nobody reads its rows as rows of the table.

    `id` is the load's id, `rows` and `files` of `size` bytes are what it would add; `created` is in
    milliseconds since 1970. It pickles, and `Table.stages()` gives it to another process.
    """

    uri: str
    id: str
    rows: int
    files: int
    size: int
    created: int

    @property
    def time(self) -> datetime:
        """When it was staged, in UTC, to the millisecond."""
        return EPOCH + timedelta(milliseconds=self.created)

    def scan(
        self,
        select: str | Expr | Sequence[str | Expr] = "*",
        where: str | Expr | None = None,
        *,
        limit: int | None = None,
    ) -> Scan:
        """Read the rows of this load alone; all as for `Table.scan`.

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
        """Raise InvalidValue unless every row of the load fulfils these conditions; gives the rows.

        `stage.check("event:ts::timestamp IS NOT NULL", "n >= 0")`. As for WHERE, a row for which a
        condition is NULL does not fulfil it. Raises as `scan`, too.
        """
        for condition in conditions:
            fitting = self.scan(where=condition).count()
            if fitting != self.rows:
                broken = self.rows - fitting
                raise InvalidValue(
                    f"{counted(broken, 'row')} of the staged load {self.id!r} "
                    f"{'does' if broken == 1 else 'do'} not fulfil {str(condition)!r}",
                    file=self.uri,
                    hint="stage.drop() removes the load; stage.scan(where=...) shows its rows",
                )
        return self.rows

    @takes_commit_properties
    def publish(self, *, commit_properties: CommitProperties = None) -> LoadResult:
        """Add the rows to the table, in one commit; gives what was done.

        Published again, by whichever process, it does nothing (`already_loaded`).
        `commit_properties` are as for `Table.append`.

        Raises:
            CommitConflict: The table got another schema or constraint since, or gave out the
                numbers of an identity column; drop the load and stage it again.
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
        """Forget the load; gives how many files it has, which the next vacuum takes.

        Raises InvalidValue if it was published.
        """
        return len(drop_stage(self._newest(), self.id).adds)

    def _newest(self) -> Snapshot:
        return Snapshot.read(self.uri, applies=READER_FEATURES)


def stage_load(
    uri: str, load: Callable[[Staging], LoadResult], options: Mapping[str, object]
) -> Stage:
    """Stage what `load` writes by these options of its; see `Table.stage`."""
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
    done = load(Staging())
    if done.already_loaded:
        raise InvalidValue(
            f"the load {done.load_id!r} was published as version {done.version}",
            file=uri,
            hint="it does nothing again; another load_id makes another load",
        )
    return stage_of(uri, read_stage(open_store(uri), done.load_id))


def stages_of(uri: str) -> list[Stage]:
    """The loads of a table that are staged, oldest first."""
    found = (stage_of(uri, staged) for staged in list_stages(open_store(uri)))
    return sorted(found, key=lambda each: (each.created, each.id))


def stage_of(uri: str, staged: StagedLoad) -> Stage:
    """What users see of a staged load."""
    return Stage(
        uri=uri,
        id=staged.load_id,
        rows=sum(add.num_records or 0 for add in staged.adds),
        files=len(staged.adds),
        size=sum(add.size for add in staged.adds),
        created=staged.created,
    )

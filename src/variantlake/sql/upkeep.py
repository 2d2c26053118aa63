"""Parse statements about a whole table: its history, its files, and its upkeep.

The parser returns None for statements of other forms, which are left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from variantlake.sql.statements import verb_of
from variantlake.sql.token_cursor import TokenCursor


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    """`DESCRIBE HISTORY table [LIMIT n]`."""

    table: str
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class DescribeDetail:
    """`DESCRIBE DETAIL table`."""

    table: str


@dataclass(frozen=True, slots=True)
class DescribeColumns:
    """`DESCRIBE [TABLE] [EXTENDED | FORMATTED] table`."""

    table: str
    extended: bool


@dataclass(frozen=True, slots=True)
class DescribeColumn:
    """`DESCRIBE [TABLE] [EXTENDED | FORMATTED] table column`."""

    table: str
    column: str


@dataclass(frozen=True, slots=True)
class ShowColumns:
    """`SHOW COLUMNS IN table`."""

    table: str


@dataclass(frozen=True, slots=True)
class ShowPartitions:
    """`SHOW PARTITIONS table [PARTITION (p = 'x')]`, with the values as a condition."""

    table: str
    where: str | None = None


@dataclass(frozen=True, slots=True)
class ShowProperties:
    """`SHOW TBLPROPERTIES table [(key)]`."""

    table: str
    key: str | None


@dataclass(frozen=True, slots=True)
class OptimizeTable:
    """`OPTIMIZE table [FULL] [WHERE condition] [ZORDER BY (columns)]`.

    `purges` for `REORG TABLE ... APPLY (PURGE)`.
    """

    table: str
    where: str | None = None
    full: bool = False
    purges: bool = False
    z_order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VacuumTable:
    """`VACUUM table [LITE | FULL] [RETAIN n HOURS] [DRY RUN]`."""

    table: str
    hours: float | None
    lite: bool
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Moment:
    """`VERSION AS OF n`, or `TIMESTAMP AS OF expression`."""

    version: int | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class RestoreTable:
    """`RESTORE [TABLE] table [TO] moment`."""

    table: str
    moment: Moment


@dataclass(frozen=True, slots=True)
class CloneTable:
    """`CREATE [OR REPLACE] TABLE table [SHALLOW | DEEP] CLONE source [moment] [TBLPROPERTIES]`."""

    table: str
    source: str
    moment: Moment
    deep: bool
    replaces: bool
    exist_ok: bool
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TruncateTable:
    """`TRUNCATE TABLE table`."""

    table: str


@dataclass(frozen=True, slots=True)
class AnalyzeTable:
    """`ANALYZE TABLE table COMPUTE [DELTA] STATISTICS`."""

    table: str


@dataclass(frozen=True, slots=True)
class GenerateManifest:
    """`GENERATE mode FOR TABLE table`."""

    table: str
    mode: str


@dataclass(frozen=True, slots=True)
class RefreshTable:
    """`REFRESH TABLE table`."""

    table: str


@dataclass(frozen=True, slots=True)
class DropTable:
    """`DROP TABLE [IF EXISTS] table [PURGE]`."""

    table: str
    missing_ok: bool


@dataclass(frozen=True, slots=True)
class ConvertToDelta:
    """`CONVERT TO DELTA parquet.`path` [NO STATISTICS] [PARTITIONED BY (...)]`.

    `partitions` is the DDL of the partition columns.
    """

    table: str
    partitions: str = ""


Upkeep = (
    DescribeHistory
    | DescribeDetail
    | DescribeColumns
    | DescribeColumn
    | ShowColumns
    | ShowPartitions
    | ShowProperties
    | OptimizeTable
    | VacuumTable
    | RestoreTable
    | CloneTable
    | TruncateTable
    | AnalyzeTable
    | GenerateManifest
    | RefreshTable
    | DropTable
    | ConvertToDelta
)


def parse_upkeep(text: str) -> Upkeep | None:
    """Parse a statement about a whole table; None for any other text."""
    verb, rest = verb_of(text)
    if verb not in _VERBS or (verb == "CREATE" and not _CLONE.search(rest)):
        return None
    cursor = _UpkeepCursor(rest)
    found = _VERBS[verb](cursor)
    return found if cursor.read else None


_CLONE = re.compile(r"\bclone\b", re.IGNORECASE)


_MAX_DIGITS = 19  # of a BIGINT


class _UpkeepCursor(TokenCursor):
    """Reads the parts after the first word."""

    def describe(self) -> Upkeep | None:
        for word in ("HISTORY", "DETAIL"):
            # A table may have this name.
            if self.word(self.at) == word and self.at + 1 < len(self.tokens):
                self.at += 1
                table = self.name()
                if table is None or word == "DETAIL":
                    return None if table is None else DescribeDetail(table)
                return self._history(table)
        self.take("TABLE")
        extended = self.take("EXTENDED") or self.take("FORMATTED")
        table = self.name()
        if table is None or self.done:
            return None if table is None else DescribeColumns(table, extended)
        column = self.word_or_name()
        return None if column is None else DescribeColumn(table, column)

    def _history(self, table: str) -> DescribeHistory | None:
        if not self.take("LIMIT"):
            return DescribeHistory(table)
        limit = self._whole_number()
        return None if limit is None else DescribeHistory(table, limit)

    def show(self) -> Upkeep | None:
        if self.take("COLUMNS", "IN") or self.take("COLUMNS", "FROM"):
            table = self.name()
            return None if table is None else ShowColumns(table)
        if self.take("PARTITIONS"):
            table = self.name()
            chosen = self.items() if self.take("PARTITION") else []
            where = " AND ".join(f"({each})" for each in chosen) or None
            return None if table is None else ShowPartitions(table, where)
        if self.take("TBLPROPERTIES"):
            table = self.name()
            key = self.key() if self.take("(") else None
            if table is None or (key is not None and not self.take(")")):
                return None
            return ShowProperties(table, key)
        return None

    def optimize(self) -> Upkeep | None:
        table = self.name()
        full = self.take("FULL")
        where = self.until("ZORDER") if self.take("WHERE") else None
        if table is None or not self.take("ZORDER", "BY"):
            return None if table is None else OptimizeTable(table, where, full)
        items = self.items() or self._listed()
        return OptimizeTable(table, where, full, z_order=tuple(items)) if items else None

    def _listed(self) -> list[str]:
        """Read names with commas between them."""
        found = list[str]()
        while (name := self.name()) is not None:
            found.append(name)
            if not self.take(","):
                break
        return found

    def reorg(self) -> Upkeep | None:
        self.take("TABLE")
        table = self.name()
        where = self.until("APPLY") if self.take("WHERE") else None
        purges = self.take("APPLY", "(", "PURGE", ")")
        return OptimizeTable(table, where, purges=True) if table and purges else None

    def vacuum(self) -> Upkeep | None:
        table = self.name()
        hours: float | None = None
        lite = dry_run = False
        while not self.done:
            if self.take("LITE"):
                lite = True
            elif self.take("DRY", "RUN"):
                dry_run = True
            elif self.take("RETAIN"):
                hours = self._hours()
                if hours is None or not self.take("HOURS"):
                    return None
            elif not self.take("FULL"):
                return None
        return None if table is None else VacuumTable(table, hours, lite, dry_run)

    def restore(self) -> Upkeep | None:
        self.take("TABLE")
        table = self.name()
        if table is None:
            return None
        self.take("TO")
        moment = self._moment()
        return RestoreTable(table, moment) if moment else None

    def create(self) -> Upkeep | None:
        replaces = self.take("OR", "REPLACE")
        if not self.take("TABLE"):
            return None
        exist_ok = not replaces and self.take("IF", "NOT", "EXISTS")
        table = self.name()
        deep = not self.take("SHALLOW")
        if deep:
            self.take("DEEP")
        source = self.name() if self.take("CLONE") else None
        moment = Moment()
        if not self.done and self.word(self.at) != "TBLPROPERTIES":
            moment = self._moment() or moment
        properties = self.properties() if self.take("TBLPROPERTIES") else {}
        if table is None or source is None or properties is None:
            return None
        return CloneTable(table, source, moment, deep, replaces, exist_ok, properties)

    def truncate(self) -> Upkeep | None:
        table = self.name() if self.take("TABLE") else None
        return None if table is None else TruncateTable(table)

    def generate(self) -> Upkeep | None:
        mode = self.word_or_name()
        table = self.name() if self.take("FOR", "TABLE") else None
        return None if mode is None or table is None else GenerateManifest(table, mode)

    def refresh(self) -> Upkeep | None:
        self.take("TABLE")
        table = self.name()
        return None if table is None else RefreshTable(table)

    def convert(self) -> Upkeep | None:
        table = self.name() if self.take("TO", "DELTA") else None
        self.take("NO", "STATISTICS")
        partitions = ", ".join(self.items()) if self.take("PARTITIONED BY") else ""
        return None if table is None else ConvertToDelta(table, partitions)

    def drop(self) -> Upkeep | None:
        if not self.take("TABLE"):
            return None
        missing_ok = self.take("IF", "EXISTS")
        table = self.name()
        self.take("PURGE")
        return None if table is None else DropTable(table, missing_ok)

    def analyze(self) -> Upkeep | None:
        table = self.name() if self.take("TABLE") else None
        if table is None or not self.take("COMPUTE"):
            return None
        self.take("DELTA")
        return AnalyzeTable(table) if self.take("STATISTICS") else None

    def _moment(self) -> Moment | None:
        if self.take("VERSION", "AS", "OF"):
            version = self._whole_number()
            return None if version is None else Moment(version=version)
        if self.take("TIMESTAMP", "AS", "OF"):
            return Moment(timestamp=self.until("TBLPROPERTIES"))
        return None

    def _whole_number(self) -> int | None:
        word = self._digits(r"[0-9]+")
        return None if word is None else int(word)

    def _hours(self) -> float | None:
        word = self._digits(r"[0-9]+(\.[0-9]+)?")
        return None if word is None else float(word)

    def _digits(self, pattern: str) -> str | None:
        word = self.word(self.at)
        if len(word) > _MAX_DIGITS or not re.fullmatch(pattern, word):
            return None
        self.at += 1
        return word


_VERBS = {
    "DESCRIBE": _UpkeepCursor.describe,
    "DESC": _UpkeepCursor.describe,
    "SHOW": _UpkeepCursor.show,
    "OPTIMIZE": _UpkeepCursor.optimize,
    "REORG": _UpkeepCursor.reorg,
    "VACUUM": _UpkeepCursor.vacuum,
    "RESTORE": _UpkeepCursor.restore,
    "CREATE": _UpkeepCursor.create,
    "TRUNCATE": _UpkeepCursor.truncate,
    "ANALYZE": _UpkeepCursor.analyze,
    "GENERATE": _UpkeepCursor.generate,
    "REFRESH": _UpkeepCursor.refresh,
    "DROP": _UpkeepCursor.drop,
    "CONVERT": _UpkeepCursor.convert,
}

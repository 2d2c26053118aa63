"""Parse ALTER TABLE and COMMENT ON TABLE; expressions and types stay as they are written.

Parsers return None for statements of other forms, which are left to Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from variantlake.errors import InvalidQuery
from variantlake.quoting import quote_identifier
from variantlake.sql.token_cursor import TokenCursor
from variantlake.sql.tokens import TEXTS


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """`RENAME COLUMN column TO name`. Columns are paths of quoted names, here and below."""

    column: str
    name: str


@dataclass(frozen=True, slots=True)
class DropColumns:
    """`DROP COLUMNS [IF EXISTS] columns`."""

    columns: tuple[str, ...]
    missing_ok: bool


@dataclass(frozen=True, slots=True)
class ColumnToAdd:
    """One column of ADD COLUMNS: `rest` is the declaration after its name.

    `after` is the column before it; empty for the first place, None for the last one.
    """

    column: str
    rest: str
    after: str | None


@dataclass(frozen=True, slots=True)
class AddColumns:
    """`ADD COLUMNS (columns)`."""

    columns: tuple[ColumnToAdd, ...]


@dataclass(frozen=True, slots=True)
class ReplaceColumns:
    """`REPLACE COLUMNS (columns)`, with the declarations as text."""

    columns: str


@dataclass(frozen=True, slots=True)
class CommentColumn:
    """`ALTER COLUMN column COMMENT 'comment'`."""

    column: str
    comment: str


@dataclass(frozen=True, slots=True)
class MoveColumn:
    """`ALTER COLUMN column FIRST`, or AFTER another one."""

    column: str
    after: str | None


@dataclass(frozen=True, slots=True)
class NotNull:
    """`ALTER COLUMN column SET NOT NULL`, or DROP."""

    column: str
    not_null: bool


@dataclass(frozen=True, slots=True)
class Default:
    """`ALTER COLUMN column SET DEFAULT expression`; None for DROP."""

    column: str
    expression: str | None


@dataclass(frozen=True, slots=True)
class ChangeType:
    """`ALTER COLUMN column TYPE type`."""

    column: str
    type: str


ColumnChange = CommentColumn | MoveColumn | NotNull | Default | ChangeType


@dataclass(frozen=True, slots=True)
class ChangeColumns:
    """`ALTER COLUMN a TYPE type, b COMMENT 'comment'`, or a CHANGE COLUMN of one column."""

    changes: tuple[ColumnChange, ...]
    is_one: bool


@dataclass(frozen=True, slots=True)
class ClusterBy:
    """`CLUSTER BY (columns)`, which are paths of quoted names; no column for NONE.

    If one is a path of a Variant, all are in `paths`, as written.
    """

    columns: tuple[str, ...]
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetProperties:
    """`SET TBLPROPERTIES (...)`."""

    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """`UNSET TBLPROPERTIES [IF EXISTS] (...)`."""

    names: tuple[str, ...]
    missing_ok: bool


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """`ADD CONSTRAINT name CHECK (expression)`."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """`DROP CONSTRAINT [IF EXISTS] name`."""

    name: str
    missing_ok: bool


@dataclass(frozen=True, slots=True)
class SyncIdentity:
    """`ALTER COLUMN column SYNC IDENTITY`."""

    column: str


@dataclass(frozen=True, slots=True)
class DropFeature:
    """`DROP FEATURE name [TRUNCATE HISTORY]`."""

    name: str
    truncates: bool = False


@dataclass(frozen=True, slots=True)
class CommentTable:
    """`COMMENT ON TABLE ... IS 'comment'`; None for NULL."""

    comment: str | None


Alteration = (
    RenameColumn
    | DropColumns
    | AddColumns
    | ReplaceColumns
    | ColumnChange
    | ChangeColumns
    | ClusterBy
    | SetProperties
    | UnsetProperties
    | AddConstraint
    | DropConstraint
    | CommentTable
    | SyncIdentity
    | DropFeature
)


@dataclass(frozen=True, slots=True)
class AlterText:
    """A statement: the name of the table as written, and the change."""

    table: str
    change: Alteration


def parse_alter(text: str) -> AlterText | None:
    """Parse ALTER TABLE or COMMENT ON TABLE; None for any other text."""
    cursor = _AlterCursor(text)
    if cursor.take("COMMENT", "ON", "TABLE"):
        table = cursor.name()
        if table is None or not cursor.take("IS"):
            return None
        comment = None if cursor.take("NULL") else cursor.text()
        return AlterText(table, CommentTable(comment)) if cursor.read else None
    if not cursor.take("ALTER", "TABLE"):
        return None
    table = cursor.name()
    change = None if table is None else cursor.change()
    return None if table is None or change is None or not cursor.read else AlterText(table, change)


def parse_alteration(text: str) -> Alteration:
    """Parse the part of ALTER TABLE after the name of the table.

    Raises InvalidQuery for a text of another form.
    """
    # With the words before it: sqlglot reads some words as a whole statement if they come first.
    parsed = parse_alter(f"ALTER TABLE t {text}")
    if parsed is None and parse_alter(text) is not None:
        raise InvalidQuery(
            f"{text!r} is a whole statement",
            hint="leave out ALTER TABLE and the table's name; lake.sql(...) takes the whole",
            cli_hint="leave out ALTER TABLE and the table's name",
        )
    if parsed is None:
        raise InvalidQuery(
            f"{text!r} does not change a table",
            hint="RENAME COLUMN a TO b, DROP COLUMN a, ADD COLUMN a INT, ALTER COLUMN a COMMENT"
            " 'x' | FIRST | AFTER b | TYPE BIGINT | SET DEFAULT 1 | DROP DEFAULT | SET NOT NULL"
            " | DROP NOT NULL (of several columns with commas) | SYNC IDENTITY,"
            " REPLACE COLUMNS (a INT, b INT), ADD CONSTRAINT c CHECK (...), DROP CONSTRAINT c,"
            " CLUSTER BY (a), DROP FEATURE f,"
            " SET or UNSET TBLPROPERTIES (...)",
        )
    return parsed.change


class _AlterCursor(TokenCursor):
    """Reads the parts of ALTER TABLE."""

    def change(self) -> Alteration | None:
        """Read the part after the name of the table."""
        if self.take("RENAME", "COLUMN"):
            column = self.column()
            return self._renamed(column) if column and self.take("TO") else None
        if self.take("DROP", "CONSTRAINT"):
            missing_ok = self.take("IF", "EXISTS")
            name = self.word_or_name()
            return None if name is None else DropConstraint(name, missing_ok)
        if self.take("DROP", "FEATURE"):
            feature = self.word_or_name()
            truncates = self.take("TRUNCATE", "HISTORY")
            return None if feature is None else DropFeature(feature, truncates)
        if self.take("DROP", "COLUMNS") or self.take("DROP", "COLUMN"):
            return self._dropped()
        if self.take("ADD", "CONSTRAINT"):
            return self._constraint()
        if self.take("ADD", "COLUMNS") or self.take("ADD", "COLUMN"):
            return self._added()
        if self.take("REPLACE", "COLUMNS"):
            start = self.at + 1
            self.close()
            columns = self.span(start, self.at - 1)
            return ReplaceColumns(columns) if columns else None
        if self.take("SET", "TBLPROPERTIES"):
            properties = self.properties()
            return None if properties is None else SetProperties(properties)
        if self.take("UNSET", "TBLPROPERTIES"):
            missing_ok = self.take("IF", "EXISTS")
            names = self._keys()
            return UnsetProperties(names, missing_ok) if names else None
        for verb in ("ALTER", "CHANGE"):
            if self.take(verb):
                self.take("COLUMN")
                return self._column_changes(hive=verb == "CHANGE")
        if self.take("CLUSTER BY"):
            return ClusterBy(()) if self.take("NONE") else self._clustering()
        return None

    def column(self) -> str | None:
        """Read a column's path, and put every name in quotes."""
        parts = self.parts()
        return None if parts is None else ".".join(map(quote_identifier, parts))

    def _renamed(self, column: str) -> RenameColumn | None:
        name = self.word_or_name()
        return None if name is None else RenameColumn(column, name)

    def _dropped(self) -> DropColumns | None:
        missing_ok = self.take("IF", "EXISTS")
        opened = self.take("(")
        columns = list[str]()
        while (column := self.column()) is not None:
            columns.append(column)
            if not self.take(","):
                closed = self.take(")") if opened else True
                return DropColumns(tuple(columns), missing_ok) if closed else None
        return None

    def _constraint(self) -> AddConstraint | None:
        name = self.word_or_name()
        if name is None or not self.take("CHECK") or self.kind() is not TokenType.L_PAREN:
            return None
        start = self.at + 1
        self.close()
        return AddConstraint(name, self.span(start, self.at - 1))

    def _added(self) -> AddColumns | None:
        if self.take("IF", "NOT", "EXISTS"):
            raise InvalidQuery(
                "ADD COLUMN has no IF NOT EXISTS",
                hint="look for the column in the table's schema first; loads with"
                " merge_schema=True add the columns that are missing",
                cli_hint="`variantlake info` lists the columns; ingest --merge-schema adds those"
                " that are missing",
            )
        opened = self.take("(")
        columns = list[ColumnToAdd]()
        while (column := self.column()) is not None:
            rest = self._declared(",", ")", "FIRST", "AFTER")
            after: str | None = "" if self.take("FIRST") else None
            if after is None and self.take("AFTER"):
                after = self.word_or_name()
                if after is None:
                    return None
            columns.append(ColumnToAdd(column, rest, after))
            if not self.take(","):
                closed = self.take(")") if opened else True
                return AddColumns(tuple(columns)) if closed else None
        return None

    def _declared(self, *ends: str) -> str:
        """Read the declaration of a column, type and all, up to one of these words."""
        start, depth = self.at, 0
        while not self.done:
            word = self.word(self.at)
            if depth == 0 and word in ends:
                break
            if self.kind() not in TEXTS:
                depth += sum((char in "<(") - (char in ">)") for char in word)
            self.at += 1
        return self.span(start, self.at)

    def _clustering(self) -> ClusterBy | None:
        items = self.items()
        cursors = list(map(_AlterCursor, items))
        columns = tuple(column for cursor in cursors if (column := cursor.column()) is not None)
        if not columns or len(columns) < len(cursors):
            return None
        if all(cursor.done for cursor in cursors):
            return ClusterBy(columns)
        of_variants = all(cursor.kind() in (None, TokenType.COLON) for cursor in cursors)
        return ClusterBy((), tuple(items)) if of_variants else None

    def _column_changes(self, *, hive: bool) -> Alteration | None:
        found = list[ColumnChange]()
        while (column := self.column()) is not None:
            if not found and self.take("SYNC", "IDENTITY"):
                return SyncIdentity(column)
            change = self._column_change(column)
            if change is None:
                return self._whole_column(column) if hive and not found else None
            found.append(change)
            if not self.take(","):
                return found[0] if len(found) == 1 else ChangeColumns(tuple(found), is_one=False)
        return None

    def _whole_column(self, column: str) -> ChangeColumns | None:
        """Read `CHANGE COLUMN a a type` as Hive writes it, with a comment and a place."""
        name = self.word_or_name()
        if name is None:
            return None
        if [name.lower()] != [part.lower() for part in (TokenCursor(column).parts() or ())[-1:]]:
            raise InvalidQuery(
                f"CHANGE COLUMN does not rename {column} to {name}",
                hint=f"RENAME COLUMN {column} TO {quote_identifier(name)}",
            )
        # The type comes last: the history describes the column as it was before.
        type_ = ChangeType(column, self._declared("COMMENT", "FIRST", "AFTER"))
        others = list[ColumnChange]()
        while (change := self._column_change(column)) is not None:
            if not isinstance(change, CommentColumn | MoveColumn):
                return None
            others.insert(0, change)
        return ChangeColumns((*others, type_), is_one=True)

    def _column_change(self, column: str) -> ColumnChange | None:
        if self.take("COMMENT"):
            comment = self.text()
            return None if comment is None else CommentColumn(column, comment)
        if self.take("FIRST"):
            return MoveColumn(column, None)
        if self.take("AFTER"):
            after = self.word_or_name()
            return None if after is None else MoveColumn(column, after)
        for words, not_null in ((("SET", "NOT", "NULL"), True), (("DROP", "NOT", "NULL"), False)):
            if self.take(*words):
                return NotNull(column, not_null)
        if self.take("DROP", "DEFAULT"):
            return Default(column, None)
        if self.take("SET", "DEFAULT"):
            return Default(column, self.until(","))
        if self.take("TYPE"):
            return ChangeType(column, self._declared("COMMENT", "FIRST", "AFTER", ","))
        return None

    def _keys(self) -> tuple[str, ...]:
        found = list[str]()
        if not self.take("("):
            return ()
        while (key := self.key()) is not None:
            found.append(key)
            if not self.take(","):
                return tuple(found) if self.take(")") else ()
        return ()

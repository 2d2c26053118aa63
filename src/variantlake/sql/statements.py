"""Errors for statements that are not queries, with hints for Python and for the command line."""

from __future__ import annotations

import re

from variantlake.errors import UnsupportedFeature

_BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/|\()*+"
_WORDS = re.compile(rf"{_BLANK}([A-Za-z]+)(?:{_BLANK}([A-Za-z]+))?", re.DOTALL)

QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")

_DELTA = "Delta Spark runs it"
_SQL = "lake.sql(...) runs it"
_COLUMNS = (
    f"{_SQL}; vl.Table.open(...).schema lists the columns",
    "`variantlake info` describes a table",
)
_HISTORY = (f"{_SQL}; Table.history() lists versions", "`variantlake history` lists versions")
_DETAIL = (
    f"{_SQL}; vl.Table.open(...) has version, schema and properties",
    "`variantlake info` describes a table",
)
_ALTER = (
    (
        "Table.alter('RENAME COLUMN a TO b') runs what follows the name, lake.sql the whole;"
        " instead of RENAME TO and SET"
        " LOCATION: lake.register(name, path), or move the folder; partitions come with their rows"
    ),
    "`variantlake alter` changes columns, `variantlake set` properties",
)
_OPTIMIZE = (
    (
        f"{_SQL}, lake.optimize(...) and Table.optimize(...), too; Table.set_clustering(...) and"
        " cluster() order rows as ZORDER BY does"
    ),
    "`variantlake optimize` compacts files, `variantlake cluster` orders them",
)
_NOT_HERE = "each command reads a table by itself"
# By the first word, or the first two: the hints for Python and for the command line.
_INSTEAD = {
    "ALTER": _ALTER,
    "ANALYZE": (
        f"{_SQL}, and Table.analyze() fills in statistics",
        "`variantlake analyze` fills in statistics",
    ),
    "CACHE": ("lake.table(...).cache() keeps a table's rows in Spark", _NOT_HERE),
    "BEGIN": (
        "lake.sql(...) runs the statements of a script one by one; scripts of Spark query tables",
        "give each statement to a command of its own",
    ),
    "COMMENT": (
        "Table.set_comment(...) describes tables and columns",
        "`variantlake alter` describes columns, `variantlake set TABLE comment=...` the table",
    ),
    "CONVERT": (
        (
            f"{_SQL} for parquet.`folder`; lake.convert(table, 'files/*.parquet') and"
            " vl.convert(...) make a table of Parquet files"
        ),
        "`variantlake convert` makes a table of Parquet files",
    ),
    "CREATE": (
        "vl.Table.create(...) makes a table, and lake.sql(...) one with the rows of a query",
        "`variantlake create` makes a table",
    ),
    "COPY": (
        "lake.ingest(...) loads files once with a load_id, lake.autoload(...) each new one",
        "`variantlake ingest` loads files, `variantlake autoload` each new one",
    ),
    "DELETE": (
        "lake.sql(...), lake.delete(...) and Table.delete(...) delete rows",
        "`variantlake delete` deletes rows",
    ),
    "DESC": _COLUMNS,
    "DESCRIBE": _COLUMNS,
    "DESC DETAIL": _DETAIL,
    "DESCRIBE DETAIL": _DETAIL,
    "DESC HISTORY": _HISTORY,
    "DESCRIBE HISTORY": _HISTORY,
    "DROP": (
        f"{_SQL} for names of lake.register(...); files stay: remove the table's folder",
        "remove the table's folder",
    ),
    "FSCK": (
        "`variantlake check` names files that are missing; Table.health(orphans=True) lists others",
        "`variantlake check` names files that are missing",
    ),
    "GENERATE": (
        f"{_SQL}; Table.export(...) writes files for readers without Delta",
        "`variantlake export` writes files for readers without Delta",
    ),
    "INSERT": (
        f"{_SQL}, and lake.append(table, df) adds rows",
        "`variantlake ingest` adds documents",
    ),
    "LOAD": ("lake.ingest(...) loads files", "`variantlake ingest` loads files"),
    "MERGE": (
        f"lake.sql(...) and lake.merge(...) merge rows; {_DELTA}",
        "`variantlake merge` merges rows",
    ),
    "MSCK": ("nothing is to be repaired: Delta's log lists the partitions",) * 2,
    "OPTIMIZE": _OPTIMIZE,
    "REFRESH": ("nothing is to be refreshed: each query reads the newest version",) * 2,
    "REORG": (
        f"{_SQL} with APPLY (PURGE); lake.optimize(table, purge=True) does the same",
        "`variantlake optimize --purge` rewrites files with deleted rows and dropped columns",
    ),
    "REPLACE": (
        "vl.Table.create(..., replace=True) and lake.sql(...) replace a table",
        "`variantlake create --replace` replaces a table",
    ),
    "RESTORE": (
        f"{_SQL}, and lake.restore(...) and Table.restore(...) bring a version back",
        "`variantlake restore` brings a version back",
    ),
    "SHOW": (
        (
            "a lake has no list of tables; lake.sql(...) runs SHOW COLUMNS, PARTITIONS and"
            " TBLPROPERTIES, and vl.Table.open(...).schema lists columns"
        ),
        "a query is over one table; `variantlake info` describes it",
    ),
    "SYNC": (
        (
            "no catalog has to be brought up to date: lake.register(name, path) names a table,"
            " ALTER TABLE ... ALTER COLUMN a SYNC IDENTITY continues numbers"
        ),
        _NOT_HERE,
    ),
    "TRUNCATE": (f"{_SQL}, and Table.overwrite(...) with no rows empties a table", _DELTA),
    "UNCACHE": ("df.unpersist() drops what lake.table(...).cache() kept", _NOT_HERE),
    "UNDROP": ("a folder that was removed is gone; restore a backup or a clone",) * 2,
    "UPDATE": (
        f"lake.sql(...), lake.update(...) and Table.update(...) change rows; {_DELTA}",
        "`variantlake update` changes rows",
    ),
    "VACUUM": (
        f"{_SQL}, and lake.vacuum(...) and Table.vacuum(...) remove unneeded files",
        "`variantlake vacuum` removes unneeded files",
    ),
}


_CREATE = (
    "CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t (a INT, ...) USING delta, LIKE u USING delta,"
    " USING delta AS SELECT ..., and [SHALLOW | DEEP] CLONE u; a name that is neither"
    " delta.`/path` nor one of lake.register needs LOCATION '/path'"
)
# The forms that a lake runs, as hints for a statement of another form.
_FORMS = {
    "ALTER": (
        "ALTER TABLE t with ADD, DROP, REPLACE, RENAME, ALTER or CHANGE COLUMN, SET or UNSET"
        " TBLPROPERTIES, ADD CONSTRAINT c CHECK (...), DROP CONSTRAINT, CLUSTER BY, DROP FEATURE;"
        " instead of RENAME TO and SET LOCATION: lake.register(name, path), or move the folder;"
        " partitions come with their rows; keys, tags, owners, masks and filters are a catalog's"
    ),
    "ANALYZE": "ANALYZE TABLE t COMPUTE STATISTICS",
    "CREATE": _CREATE,
    "REPLACE": _CREATE,
    "BEGIN": (
        "scripts that query tables; give INSERT, UPDATE, DELETE, MERGE and other statements on"
        " Delta tables to lake.sql one by one"
    ),
    "COMMENT": "COMMENT ON TABLE t IS 'x'; ALTER TABLE t ALTER COLUMN a COMMENT 'x'",
    "DELETE": "DELETE FROM t [AS a] [WHERE ...]; MERGE deletes rows by those of another table",
    "DESC": "DESCRIBE [EXTENDED] t, DESCRIBE HISTORY t [LIMIT n], DESCRIBE DETAIL t",
    "DESCRIBE": "DESCRIBE [EXTENDED] t, DESCRIBE HISTORY t [LIMIT n], DESCRIBE DETAIL t",
    "DROP": "DROP TABLE [IF EXISTS] t",
    "GENERATE": "GENERATE symlink_format_manifest FOR TABLE t",
    "INSERT": (
        "INSERT [WITH SCHEMA EVOLUTION] INTO or OVERWRITE t [PARTITION (p = 'x')] [(a, b)]"
        " [BY NAME] [REPLACE WHERE ...] and VALUES or a query; the table has no alias"
    ),
    "MERGE": (
        "MERGE [WITH SCHEMA EVOLUTION] INTO t USING s ON ... WHEN [NOT] MATCHED ... THEN UPDATE,"
        " DELETE or INSERT; s is a table or a query in parentheses: (SELECT ... VERSION AS OF 1)"
    ),
    "OPTIMIZE": "OPTIMIZE t [WHERE ...] [ZORDER BY (a, b)]",
    "REORG": (
        "REORG TABLE t [WHERE ...] APPLY (PURGE); for UPGRADE UNIFORM take Delta Spark, with the"
        " package delta-iceberg"
    ),
    "RESTORE": "RESTORE TABLE t TO VERSION AS OF n, or TO TIMESTAMP AS OF '...'",
    "SHOW": (
        "SHOW COLUMNS IN t, SHOW PARTITIONS t, SHOW TBLPROPERTIES t [('key')]; a lake has no list"
        " of tables"
    ),
    "TRUNCATE": "TRUNCATE TABLE t; DELETE FROM t WHERE p = 'x' empties a partition",
    "UPDATE": (
        "UPDATE t [AS a] SET a = 1, s.x = 2 [WHERE ...]; an array or a map is set as a whole; MERGE"
        " changes rows by those of another table"
    ),
    "VACUUM": (
        "VACUUM t [LITE | FULL] [RETAIN n HOURS] [DRY RUN]; in the place of USING INVENTORY, LITE"
        " finds files by the log and lists no folder"
    ),
}


def first_word(text: str) -> str:
    """The first word of a statement, in capitals; empty if there is none."""
    return verb_of(text)[0]


def verb_of(text: str) -> tuple[str, str]:
    """The first word of a statement, in capitals, and the text after it."""
    found = _WORDS.match(text)
    return ("", text) if found is None else (found[1].upper(), text[found.end(1) :])


def not_run_by_lake(text: str) -> UnsupportedFeature | None:
    """The error for a statement that a lake does not run in this form; None as `not_a_query`."""
    word = first_word(text)
    form = _FORMS.get(word)
    if form is None:
        return not_a_query(text)
    return UnsupportedFeature(
        f"{word} is not supported in this form", hint=f"lake.sql runs {form}", cli_hint=""
    )


def not_a_query(text: str) -> UnsupportedFeature | None:
    """The error for a statement that is not run here; None for a query or an unknown one."""
    found = _WORDS.match(text)
    if found is None:
        return None
    word = found[1].upper()
    both = f"{word} {(found[2] or '').upper()}"
    instead = _INSTEAD.get(both) or _INSTEAD.get(word)
    if instead is None:
        return None
    name = both if both in _INSTEAD else word
    return UnsupportedFeature(
        f"{name} is not supported: this SQL reads tables", hint=instead[0], cli_hint=instead[1]
    )

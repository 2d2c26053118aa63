"""Statements that are not queries: what is to be done instead, in the words of each surface."""

from __future__ import annotations

import re

from variantlake.errors import UnsupportedFeature

_BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/|\()*+"
_WORDS = re.compile(rf"{_BLANK}([A-Za-z]+)(?:{_BLANK}([A-Za-z]+))?", re.DOTALL)

QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")

_DELTA = "Delta Spark runs it"
_COLUMNS = (
    "vl.Table.open(...).schema lists the columns",
    "`variantlake info` describes a table",
)
# By the first word, or the first two: what Python does, and what the command line does.
_INSTEAD = {
    "ALTER": (
        "Table.alter('RENAME COLUMN a TO b') runs what follows the name, lake.sql the whole",
        "`variantlake alter` changes columns, `variantlake set` properties",
    ),
    "ANALYZE": ("Table.analyze() fills in statistics", "`variantlake analyze` fills in statistics"),
    "COMMENT": (
        "Table.set_comment(...) describes tables and columns",
        "`variantlake alter` describes columns, `variantlake set TABLE comment=...` the table",
    ),
    "CREATE": (
        "vl.Table.create(...) makes a table, and lake.sql(...) one with the rows of a query",
        "`variantlake create` makes a table",
    ),
    "COPY": ("lake.ingest(...) loads files", "`variantlake ingest` loads files"),
    "DELETE": (
        "lake.sql(...), lake.delete(...) and Table.delete(...) delete rows",
        "`variantlake delete` deletes rows",
    ),
    "DESC": _COLUMNS,
    "DESCRIBE": _COLUMNS,
    "DESC HISTORY": ("Table.history() lists versions", "`variantlake history` lists versions"),
    "DESCRIBE HISTORY": ("Table.history() lists versions", "`variantlake history` lists versions"),
    "DROP": ("remove the table's folder", "remove the table's folder"),
    "INSERT": ("lake.append(table, df) adds rows", "`variantlake ingest` adds documents"),
    "LOAD": ("lake.ingest(...) loads files", "`variantlake ingest` loads files"),
    "MERGE": (
        f"lake.sql(...) and lake.merge(...) merge rows; {_DELTA}",
        "`variantlake merge` merges rows",
    ),
    "OPTIMIZE": (
        "lake.optimize(...) and Table.optimize(...) compact files",
        "`variantlake optimize` compacts files",
    ),
    "REPLACE": (
        "vl.Table.create(..., replace=True) and lake.sql(...) replace a table",
        "`variantlake create --replace` replaces a table",
    ),
    "RESTORE": (
        "lake.restore(...) and Table.restore(...) bring a version back",
        "`variantlake restore` brings a version back",
    ),
    "SHOW": (
        "a lake has no list of tables; vl.Table.open(...).schema lists columns",
        "a query is over one table; `variantlake info` describes it",
    ),
    "TRUNCATE": ("Table.overwrite(...) with no rows empties a table", _DELTA),
    "UPDATE": (
        f"lake.sql(...), lake.update(...) and Table.update(...) change rows; {_DELTA}",
        "`variantlake update` changes rows",
    ),
    "VACUUM": (
        "lake.vacuum(...) and Table.vacuum(...) remove unneeded files",
        "`variantlake vacuum` removes unneeded files",
    ),
}


def first_word(text: str) -> str:
    """The word that a statement starts with, in capitals; empty if none does."""
    found = _WORDS.match(text)
    return found[1].upper() if found else ""


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

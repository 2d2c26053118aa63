"""Random changes of texts that people and other systems give: JSON, SQL, DDL, vectors.

`python -m tests.fuzz.texts --seconds 60`; a case that fails prints its seed, and `--seed N` runs it
again. Whatever the text is, the outcome is an answer or VariantLakeError, in bounded time and
memory.
"""

from __future__ import annotations

import functools
import random
import sys
from contextlib import suppress

import numpy as np
from obstore.store import MemoryStore

from tests.fuzz.runner import changed, run
from tests.kernels.fuzz import Documents
from variantlake.delta.actions.actions import DeletionVectorDescriptor
from variantlake.delta.log.deletion_vectors import deleted_rows
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.dml.files.deletion_vectors import serialised, write_vectors
from variantlake.encoding.json import parse_json
from variantlake.errors import VariantLakeError
from variantlake.shredding.ddl import parse_ddl
from variantlake.sql.alter import parse_alter
from variantlake.sql.changes import parse_change
from variantlake.sql.create import parse_create
from variantlake.sql.select import QueryText, parse_select
from variantlake.sql.upkeep import parse_upkeep
from variantlake.storage.objects import ObjectStore

MEMORY_MULTIPLE = 4000
"""A parsed condition is a tree of objects for a text of few bytes."""

CONDITIONS = [
    b"event:id::bigint >= 3 AND event:k::string IN ('a', 'b', NULL) OR n BETWEEN -1 AND 1e3",
    b"NOT (event:a.b[0].c::decimal(10,2) = 1.50 OR k LIKE 'x\\_%' ESCAPE '\\\\')",
    b"try_variant_get(event, '$.a[1].`b c`', 'timestamp') IS NOT NULL AND cast(n AS STRING) <> ''",
    b"CASE WHEN n > 1 THEN 'x' ELSE k END = 'x' -- why",
    b"startswith(k, 'a') AND date '2026-01-01' < event:d::date",
]
STATEMENTS = [
    b"SELECT event:id::bigint AS id, count(*) n FROM t WHERE n > 1 GROUP BY 1 HAVING n > 2 LIMIT 3",
    b"SELECT * FROM (SELECT event:a[0].b::string x FROM t) u JOIN v ON u.x = v.k ORDER BY x DESC",
    b"MERGE INTO t USING s ON t.n = s.id WHEN MATCHED AND s.v < 0 THEN DELETE",
    b"MERGE INTO t USING s ON t.n = s.id WHEN NOT MATCHED THEN INSERT (n) VALUES (s.v)",
    b"UPDATE t SET n = n + 1, k = 'x' WHERE event:a.b::int IS NOT NULL",
    b"DELETE FROM `t` AS u WHERE u.n IN (1, 2)",
    b"ALTER TABLE t ADD COLUMNS (a STRUCT<b: INT> COMMENT 'c' FIRST, d STRING AFTER n)",
    b"ALTER TABLE t SET TBLPROPERTIES ('delta.appendOnly' = 'true', a.b = 3)",
    b"CREATE TABLE IF NOT EXISTS t (event VARIANT, n INT NOT NULL) USING delta CLUSTER BY (n)",
    b"OPTIMIZE t WHERE day >= '2026-01-01' ZORDER BY (n)",
    b"RESTORE TABLE t TO TIMESTAMP AS OF '2026-01-01 00:00:00'",
    b"VACUUM t RETAIN 168 HOURS DRY RUN",
]
DDLS = [
    b"a BIGINT, b STRUCT<c: ARRAY<STRING>, d: DECIMAL(9,2)>, e DOUBLE",
    b"event VARIANT NOT NULL COMMENT 'x', n INT DEFAULT 3, `m n` MAP<STRING, INT>, t CHAR(3)",
]


@functools.cache
def documents() -> list[bytes]:
    """JSON to start from."""
    return [document for document in Documents(3)(200) if len(document) < 2000]


@functools.cache
def vectors() -> list[bytes]:
    """Deletion vectors to start from."""
    chance = random.Random(7)
    sets = [
        range(5),
        range(0, 90_000, 3),
        [1, 1 << 31],
        [chance.randrange(1 << 34) for _ in range(60)],
    ]
    return [serialised(np.unique(np.array(list(rows), np.int64))) for rows in sets]


def json_case(chance: random.Random) -> int:
    """A document."""
    text = changed(chance.choice(documents()), documents(), chance)
    written = None
    with suppress(VariantLakeError):
        written = parse_json(text.decode("utf-8", "replace")).to_json()
    if written is not None:
        parse_json(written)  # what is written can be read
    return len(text)


def condition_case(chance: random.Random) -> int:
    """A condition, as `where` takes it."""
    text = changed(chance.choice(CONDITIONS), CONDITIONS, chance).decode("utf-8", "replace")
    with suppress(VariantLakeError):
        QueryText(parse_table_ddl("event VARIANT, n INT, k STRING")).condition(text)
    return len(text)


def query_case(chance: random.Random) -> int:
    """A query or a statement, by each parser that may be asked for it."""
    text = changed(chance.choice(STATEMENTS), STATEMENTS, chance).decode("utf-8", "replace")
    for parse in (parse_select, parse_change, parse_alter, parse_create, parse_upkeep):
        with suppress(VariantLakeError):
            parse(text)
    return len(text)


def ddl_case(chance: random.Random) -> int:
    """The columns of a table, and of a shredding schema."""
    text = changed(chance.choice(DDLS), DDLS, chance).decode("utf-8", "replace")
    for parse in (parse_ddl, parse_table_ddl):
        with suppress(VariantLakeError):
            parse(text)
    return len(text)


def vector_case(chance: random.Random) -> int:
    """A deletion vector in a file, of which the log says the place."""
    store = ObjectStore("memory://t", MemoryStore())
    (vector,), path = write_vectors(store, [np.arange(0, 3000, 7, dtype=np.int64)])
    assert path is not None
    data = changed(store.read(path), vectors(), chance)
    store.put(path, data)
    offset = chance.choice([1, 1, 1, chance.randrange(len(data) + 9)])
    size = chance.choice([vector.size_in_bytes] * 3 + [chance.randrange(1 << 33)])
    given = DeletionVectorDescriptor(
        vector.storage_type, vector.path_or_inline_dv, size, vector.cardinality, offset
    )
    with suppress(VariantLakeError):
        rows = deleted_rows(store, given, 3000)
        assert not len(rows) or rows[-1] < 3000
    return len(data)


def case(chance: random.Random) -> int:
    """One of them."""
    return chance.choice([json_case, condition_case, query_case, ddl_case, vector_case])(chance)


if __name__ == "__main__":
    sys.exit(run(case, MEMORY_MULTIPLE))

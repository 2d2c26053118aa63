"""Random queries of several SELECTs: joins of all kinds, common and derived tables, set operations.

What such a query asks is not hard to answer; which conditions may skip files of which of its tables
is (EXACTNESS, rule 18). The conditions are those of `random_expressions`.

`python -m tests.spark.random_joins sc://host:port --seconds 300` asks a Spark Connect server that
has Delta Spark and sees the same disk; without an address it asks a classic session of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.sessions import delta_session
from tests.spark.layouts import changed
from tests.spark.random_expressions import Branch, Queries
from tests.spark.random_queries import SETTINGS, Trial, found_first
from tests.spark.random_tables import make
from variantlake.spark.lake import connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOGETHER = 2
"""Queries of one text, each of several SELECTs."""

JOINS = (
    *("JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT OUTER JOIN", "FULL JOIN", "CROSS JOIN"),
    *("LEFT SEMI JOIN", "ANTI JOIN", "SEMI JOIN", "LEFT ANTI JOIN"),
)
COLUMNS = "event, k, c, f, ts, p"
OTHERS = (
    "(VALUES (3, 'a'), (30, 'b'), (77, NULL), (130, 'c')) AS s(j, w)",
    "(SELECT id AS j, string(id) AS w FROM range(0, 150, 7)) s",
)


class Joins:
    """Makes queries of several SELECTs for one table."""

    def __init__(self, queries: Queries, chance: random.Random) -> None:
        self._queries = queries
        self._chance = chance
        self._plain = False
        self._requested = queries.requested
        named = [
            requested for requested in queries.requested if _starts_with_a_name(requested.steps)
        ]
        self._named = named[:5]  # few, as one that is not a column of a file makes all be read so

    def branches(self) -> list[Branch]:
        """Queries of one text; of every second text they read Variants by paths alone."""
        self._plain = self._chance.random() < 0.5
        # The tokens of `event:['odd key']` are not looked through.
        self._queries.requested = self._named if self._plain else self._requested
        return [self._branch() for _ in range(TOGETHER)]

    def _branch(self) -> Branch:
        self._queries.look_elsewhere(variants=False if self._plain else None)
        chance = self._chance
        if self._plain:
            return chance.choice((self._join, self._join, self._other, self._chain, self._commas))()
        forms = (
            self._join, self._join, self._using, self._other, self._chain, self._commas,
            self._common, self._common, self._derived, self._derived, self._exists, self._sets,
        )  # fmt: skip
        return chance.choice(forms)()

    def _join(self) -> Branch:
        join = self._chance.choice(JOINS)
        a, b = self._source("a"), self._source("b")
        on = self._all(
            "a.k = b.k + 1", self._some("a."), self._some("b."), self._either("a.", "b.")
        )
        return self._over(f"{a} {join} {b} ON {on}", self._visible(join))

    def _using(self) -> Branch:
        chance = self._chance
        join = chance.choice([join for join in JOINS if join != "CROSS JOIN"])
        low = chance.randrange(120)
        where = self._all(f"k BETWEEN {low} AND {low + 40}", self._some("a."))
        joined = f"{{t}} a {join} {{t}} b"
        how = chance.choice((f"{joined} USING (k)", f"{joined} USING (k, c)"))
        if chance.random() < 0.2 and self._visible(join) == ("a.", "b."):
            one = f"(SELECT k, event FROM {{t}} WHERE {self._condition('')}) a"
            how = f"{one} NATURAL {join} (SELECT k, p, c, f, ts FROM {{t}}) b"
            return Branch(("string(k)",), how, f"k BETWEEN {low} AND {low + 40}")
        shown = (
            self._values("a.")
            if "b." not in self._visible(join)
            else (*self._values("a."), *self._values("b."))
        )
        return Branch(shown, how, where)

    def _other(self) -> Branch:
        """With a table that is not ours: names need no qualifiers."""
        chance = self._chance
        join, other = chance.choice(JOINS), chance.choice(OTHERS)
        on = self._all("k = j", self._some(""), chance.choice(("true", "w > 'a'", "j > 20")))
        if chance.random() < 0.5:
            return Branch(self._values(""), f"{{t}} {join} {other} ON {on}", self._condition(""))
        where = "true" if "SEMI" in join or "ANTI" in join else self._condition("")
        values = ("string(j)",) if where == "true" else self._values("")
        key = "CAST(j AS INT)"
        return Branch(values, f"{other} {join} {{t}} ON {on}", where, key)

    def _chain(self) -> Branch:
        chance = self._chance
        first, second = chance.choice(JOINS), chance.choice(JOINS)
        seen = self._visible(first)
        on = self._all("a.k = b.k + 1", self._some("a."), self._some("b."))
        more = self._all("c.k = a.k", *(self._some(prefix) for prefix in (*seen, "c.")))
        source = f"{{t}} a {first} {{t}} b ON {on} {second} {{t}} c ON {more}"
        return self._over(
            source, (*seen, *(("c.",) if "c." in self._visible(second, "c.") else ()))
        )

    def _commas(self) -> Branch:
        chance = self._chance
        join = chance.choice(JOINS)
        on = self._all("a.k = b.k + 1", self._some("a."), self._some("b."))
        other = chance.choice(OTHERS)
        return self._over(
            f"{other}, {{t}} a {join} {{t}} b ON {on}", self._visible(join), "a.k = j"
        )

    def _common(self) -> Branch:
        chance = self._chance
        inner = chance.choice((
            f"SELECT * FROM {{t}} WHERE {self._condition('')}",
            f"SELECT {COLUMNS} FROM {{t}}",
            f"SELECT *, k + 1 AS n FROM {{t}} x WHERE {self._condition('x.')}",
            "SELECT event, c AS k, k AS c, f, ts, p FROM {t}",
            f"SELECT x.* FROM {{t}} x SEMI JOIN {{t}} y ON x.k = y.k AND {self._condition('y.')}",
        ))  # fmt: skip
        outer = chance.choice((
            f"SELECT {COLUMNS} FROM c0 WHERE {self._condition('')}",
            f"SELECT c0.* FROM c0 JOIN {{t}} z ON c0.k = z.k AND {self._condition('c0.')}",
            f"SELECT * FROM c0 UNION ALL SELECT * FROM c0 WHERE {self._condition('')}",
            f"SELECT a.* FROM c0 a LEFT JOIN c0 b ON a.k = b.k AND {self._condition('b.')}",
        ))  # fmt: skip
        source = f"(WITH c0 AS ({inner}), c1 AS ({outer}) SELECT {COLUMNS} FROM c1) d"
        if "c0.*" not in outer and "a.*" not in outer:
            source = f"(WITH c0 AS ({inner}), c1 AS ({outer}) SELECT * FROM c1) d"
        return Branch(self._values("d."), source, self._condition("d."), "d.k")

    def _derived(self) -> Branch:
        chance = self._chance
        where = self._condition("")
        inner = chance.choice((
            f"SELECT * FROM {{t}} WHERE {where}",
            f"SELECT *, rank() OVER (ORDER BY k) AS r FROM {{t}} WHERE {where}",
            f"SELECT * FROM {{t}} WHERE {where} ORDER BY k LIMIT 40",
            "SELECT event, k % 3 AS k, f AS c, c AS f, ts, p FROM {t}",
            f"SELECT {COLUMNS}, event:id::bigint AS id FROM {{t}}",
            f"SELECT {COLUMNS} FROM {{t}} WHERE k % 2 = 0 UNION ALL SELECT {COLUMNS} FROM {{t}}",
            "SELECT max_by(event, k) event, max(k) k, c, f, ts, p FROM {t} GROUP BY c, f, ts, p",
        ))  # fmt: skip
        more = " AND d.r < 9" if " AS r " in inner else ""
        more = " AND id < 100" if " AS id " in inner else more
        join = chance.choice(("", "", " JOIN {t} z ON d.k = z.k", " LEFT JOIN {t} z ON d.k = z.k"))
        source = f"({inner}) d{join}"
        return Branch(self._values("d."), source, self._condition("d.") + more, "CAST(d.k AS INT)")

    def _exists(self) -> Branch:
        chance = self._chance
        inner = chance.choice((
            f"EXISTS (SELECT 1 FROM {{t}} b WHERE b.k = a.k + 1 AND {self._condition('b.')})",
            f"NOT EXISTS (SELECT * FROM {{t}} b WHERE b.k = a.k AND {self._condition('b.')})",
            f"a.k IN (SELECT k FROM {{t}} WHERE {self._condition('')})",
            f"a.k NOT IN (SELECT k FROM {{t}} b WHERE {self._condition('b.')} AND b.k > 9)",
            f"a.k > (SELECT min(k) FROM {{t}} WHERE {self._condition('')})",
            f"a.c >= (SELECT count(*) FROM {{t}} b WHERE b.k = a.k AND {self._condition('b.')})",
        ))  # fmt: skip
        return Branch(self._values("a."), "{t} a", self._all(inner, self._some("a.")), "a.k")

    def _sets(self) -> Branch:
        word = self._chance.choice(("INTERSECT", "EXCEPT", "UNION", "MINUS", "EXCEPT ALL"))
        one, other = self._condition(""), self._condition("b.")
        source = f"(SELECT k FROM {{t}} WHERE {one} {word} SELECT b.k FROM {{t}} b WHERE {other}) d"
        return Branch(("string(d.k)",), source, "d.k > 3", "d.k")

    # --- Parts ------------------------------------------------------------------------------------

    def _source(self, name: str) -> str:
        chance = self._chance
        if self._plain or chance.random() < 0.7:
            return f"{{t}} {name}"
        inner = f"SELECT * FROM {{t}} WHERE {self._condition('')}"
        return f"({inner}) AS {name}" if chance.random() < 0.7 else f"{{t}} AS {name}"

    def _visible(self, join: str, right: str = "b.") -> tuple[str, ...]:
        return ("a.",) if "SEMI" in join or "ANTI" in join else ("a.", right)

    def _over(self, source: str, seen: Sequence[str], where: str = "true") -> Branch:
        values = tuple(value for prefix in seen for value in self._values(prefix))
        conditions = [self._some(prefix) for prefix in seen]
        return Branch(values, source, self._all(where, *conditions, self._either(*seen)), "a.k")

    def _values(self, prefix: str) -> tuple[str, ...]:
        return self._queries.shown(prefix)

    def _condition(self, prefix: str) -> str:
        return self._queries.condition(prefix, 1)

    def _some(self, prefix: str) -> str:
        return self._condition(prefix) if self._chance.random() < 0.6 else "true"

    def _either(self, *prefixes: str) -> str:
        if self._chance.random() < 0.7:
            return "true"
        return f"({' OR '.join(self._condition(prefix) for prefix in prefixes)})"

    def _all(self, *conditions: str) -> str:
        return " AND ".join(part for part in conditions if part != "true") or "true"


def _starts_with_a_name(steps: Sequence[str | int]) -> bool:
    key = str(steps[0]) if steps else ""
    return key.isidentifier() and key.isascii()


def try_table(spark: SparkSession, folder: Path, seed: int, count: int) -> tuple[int, int, int]:
    """Asks one table `count` times; gives how many cases, files skipped and paths from columns.

    Raises AssertionError, with the query that answers wrong and what makes the table again.
    """
    trial = Trial(spark, connect(spark), make(spark, folder, seed))
    queries = Queries(trial.table, random.Random(seed))
    joins = Joins(queries, random.Random(seed))
    skipped = columns = 0
    for number in range(count):
        branches = joins.branches()
        first = contextlib.nullcontext() if number % 3 else found_first()
        with changed(spark, SETTINGS[(seed + number) % 4]), first:
            trial.agree(branches)
            saved = trial.saved(branches)
            skipped, columns = skipped + saved[0], columns + saved[1]
    return count * TOGETHER, skipped, columns


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 where an answer was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.random_joins")
    parser.add_argument("remote", nargs="?", help="a Spark Connect server")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="try this one table")
    parser.add_argument("--count", type=int, default=6, help="texts for each table")
    options = parser.parse_args(arguments)
    end = time.monotonic() + options.seconds
    seed = random.randrange(2**32) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory(prefix="variantlake-joins-") as scratch:
        spark = _session(options.remote, Path(scratch))
        while True:
            try:
                found = try_table(spark, Path(scratch) / str(seed), seed, options.count)
            except Exception:  # noqa: BLE001  # this is what we are looking for
                sys.stderr.write(f"seed {seed}\n{traceback.format_exc()}")
                return 1
            sys.stdout.write(
                "seed {}: {} cases, {} files skipped, {} columns\n".format(seed, *found)
            )
            sys.stdout.flush()
            seed += 1
            if options.seed is not None or time.monotonic() >= end:
                break
        spark.stop()
    return 0


def _session(remote: str | None, scratch: Path) -> SparkSession:
    if remote is None:
        return delta_session(scratch)
    from pyspark.sql import SparkSession

    return SparkSession.builder.remote(remote).getOrCreate()


if __name__ == "__main__":
    sys.exit(main())

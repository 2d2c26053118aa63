"""Conditions in the ways in which people write them: `scan` and `Table.sql` decide as Spark."""

from __future__ import annotations

import datetime as dt
import time
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.spark.layouts import PLAINLY, changed
from tests.strategies import MORE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = """k INT, id INT, b BIGINT, sm SMALLINT, ti TINYINT, d DOUBLE, f FLOAT, dec DECIMAL(10,2),
s STRING, bo BOOLEAN, da DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, bi BINARY, event VARIANT"""
DOUBLES = (0.5, -0.0, float("nan"), 1e300, 2.0, -1.5)
TEXTS = ("a", "b", "", "it's", "a%b", "A_", "ab\\c", None, "10", "1.5", "true", " x ")

TEXT_BESIDE_OTHERS = """
id = '1'; '1' = id; id > '2'; id <> '+3'; b = '10000000000'; sm <= '3'; id IN ('1', '2')
d = '2.0'; d > '1e3'
f = '0.25'; f < '.5'; bo = 'true'; bo = 'FALSE'; bi = 'ab'; bi > 'a'; event:k::int = '3'
id BETWEEN '1' AND '3'
CASE id WHEN '1' THEN true ELSE bo END; id <=> '3'; NOT id = '3'; id NOT IN ('1', NULL)
"""
LIKES = r"""
s LIKE 'a|%b' ESCAPE '|'; s LIKE 'A|_' ESCAPE '|'; s LIKE 'a\\%b'; s LIKE 'ab\\\\%'
s LIKE 'ab\\c' ESCAPE '|'
s LIKE ANY ('a%', 'b%'); s LIKE ALL ('a%', '%b'); s NOT LIKE ANY ('a%', 'b%')
s NOT LIKE ALL ('a%', 'b%')
s ILIKE ANY ('A%', 'b'); NOT s LIKE ANY ('a%', '%b'); s LIKE ANY ('a')
s LIKE 'aa%' ESCAPE 'a' OR k = 3
"""
BINARY = "bi = X'6162'; bi > X'00'; bi IN (X'', X'6162'); bi <> X''"
DOUBLES_ = """
isnan(d); NOT isnan(d); isnan(f); d = double('NaN'); d < double('NaN'); d = double('-Infinity')
sqrt(id) = 2
sqrt(d) > 1; isnan(sqrt(d)); d >= double('1.5')
"""
DECIMALS = """
dec + 1 = 1.25; 1 - dec = 0.75; dec * 2 > 1; dec - id = 0; dec * sm > 1.5; dec + b > 5
dec * dec > 1
dec + 1.005 > 2; -dec = 0.25
"""
DAYS = """
da + 1 = '2024-03-01'; 1 + da = '2024-03-01'; da - 1 = '2024-02-28'; da + id > DATE'2024-03-04'
da = DATE'2024-02-28' + 1; datediff(da, '2024-02-27') = 2; da + INTERVAL '1' DAY = '2024-03-01'
da - INTERVAL 2 DAYS = '2024-02-27'; date_add('2024-02-28', 1) = da; date_sub(da, 2) = '2024-02-27'
to_date(ts) = '2024-03-10'; to_date('2024-02-29') = da; extract(YEAR FROM da) = 2024
extract(hour FROM ts) = 4
"""
MOMENTS = """
ts >= DATE'2024-03-10'; DATE'2024-03-10' < tn; ts + INTERVAL 1 HOUR > TIMESTAMP'2024-03-10 06:00:00'
ts - INTERVAL '90' MINUTES < '2024-03-10 03:00:00'; tn - INTERVAL 30 SECONDS > '2024-03-10 05:00:00'
INTERVAL 2 DAYS + ts > '2024-03-12 04:00:00'; ts > TIMESTAMP'2024-03-11 05:00:00' - INTERVAL 1 DAY
ts < now(); tn < current_date(); da < current_date(); da > current_date() - 7
ts > now() - INTERVAL 7 DAYS
ts <= current_timestamp() + INTERVAL 1 SECOND; da >= current_date() - INTERVAL 30 DAYS
bigint(id) = 3
smallint(b % 100) = 0
"""
PRECEDENCE = """
(id & 3 | 4) = 7; (id & 3 ^ 1) = 2; (id ^ 1 | 4) = 6; (id | 1 | 2) = 3;
id & 1 + 1 = 2; id = 1 = true
id > 1 = bo; bo = (id < 4); (id IS NULL) = true; NOT id = 3 AND bo;
NOT id > 2 OR bo; bo = true IS NULL
id = 1 OR id = 2 AND bo; - id * 2 = -4; id - 1 - 1 = 1; id * 3 % 4 = 1; NOT id BETWEEN 1 AND 3
((id | 1) & 2) = 2
"""
PATHS_AS_TEXT = """
event:e LIKE 'a%'; event:e LIKE '%b'; event:e NOT LIKE 'a%'; event:e ILIKE 'A%'; event:k LIKE '1%'
event:e LIKE ANY ('a%', '1%'); upper(event:e) = 'A'; length(event:e) > 1; event:e || 'x' = 'ax'
concat('x', event:e, event:k) > 'x'; contains(event:e, 'b'); startswith(event:e, 'a')
endswith(event:e, '5'); substring(event:e, 1, 1) = 'a'; trim(event:e) = 'x'
lower(event:e) LIKE '%"k"%'; NOT startswith(event:none, 'a'); length(event:e::string) = 1
"""
GROUPS = {
    "paths as text": PATHS_AS_TEXT,
    "precedence": PRECEDENCE,
    "text": TEXT_BESIDE_OTHERS,
    "like": LIKES,
    "binary": BINARY,
    "doubles": DOUBLES_,
    "decimals": DECIMALS,
    "days": DAYS,
    "moments": MOMENTS,
}


def conditions(group: str) -> list[str]:
    return [each.strip() for each in GROUPS[group].replace("\n", ";").split(";") if each.strip()]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    made = vl.Table.create(tmp_path_factory.mktemp("conditions") / "t", COLUMNS)
    for rows in (range(-3, 3), range(3, 9)):
        made.append(
            {
                "k": k,
                "id": None if k == 5 else k,
                "b": k * 10**10,
                "sm": k,
                "ti": k,
                "d": DOUBLES[k % 6],
                "f": k / 4,
                "dec": None if k == 2 else Decimal(k) / 4,
                "s": TEXTS[k % 12],
                "bo": (True, False, None)[k % 3],
                "da": dt.date(2024, 2, 27) + dt.timedelta(k),
                "ts": dt.datetime(2024, 3, 10, 1 + k % 12, 30, tzinfo=dt.UTC),
                "tn": dt.datetime(2024, 3, 10, 1 + k % 12, 30),  # noqa: DTZ001 - has no zone
                "bi": b"ab" * (k % 3),
                "event": {"k": k, "e": (TEXTS[k % 12], k, {"K": k}, 1.5)[k % 4]},
            }
            for k in rows
        )
    return made


@pytest.mark.spark
@pytest.mark.parametrize("group", GROUPS)
def test_conditions(spark: SparkSession, table: vl.Table, group: str) -> None:
    every = conditions(group)
    with changed(spark, PLAINLY):
        items = ", ".join(f"({each}) AS c{n}" for n, each in enumerate(every))
        spark.read.format("delta").load(table.uri).createOrReplaceTempView("people_write")
        right = spark.sql(f"SELECT k, {items} FROM people_write").toArrow().to_pylist()
    for n, each in enumerate(every):
        rows = sorted(row["k"] for row in right if row[f"c{n}"])
        assert sorted(row["k"] for row in table.scan("k", each).to_pylist()) == rows, each
        found = table.sql(f"SELECT k, {each} AS c FROM t").to_pylist()
        assert {row["k"]: row["c"] for row in found} == {row["k"]: row[f"c{n}"] for row in right}, (
            each
        )


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 10**6), st.sampled_from(["+", "-"]))
@settings(max_examples=20 * MORE)
def test_a_moment_beyond_all_is_an_error(
    tmp_path_factory: pytest.TempPathFactory, micros: int, days: int, sign: str
) -> None:
    """Of the rows that the answer needs, as everywhere."""
    table = vl.Table.create(tmp_path_factory.mktemp("m") / "t", "n BIGINT")
    table.append([{"n": micros}])
    moment = f"timestamp_micros(n) {sign} INTERVAL {days} DAYS"
    text = f"SELECT {moment} > TIMESTAMP'2024-01-01' AS c FROM t"
    right = micros + (days if sign == "+" else -days) * 86_400_000_000
    if -(2**63) <= right < 2**63:
        limit = dt.datetime(2024, 1, 1, tzinfo=dt.UTC).timestamp() * 10**6
        assert table.sql(text).to_pylist() == [{"c": right > limit}]
    else:
        with pytest.raises(vl.InvalidValue):
            table.sql(text).to_pylist()


def test_now_is_the_time_of_the_query(table: vl.Table) -> None:
    first = _now_of(table)
    time.sleep(0.002)
    assert first < _now_of(table)


def _now_of(table: vl.Table) -> dt.datetime:
    (row,) = table.sql("SELECT greatest(max(ts), now()) AS n FROM t").to_pylist()
    now: dt.datetime = row["n"]
    assert abs((now - dt.datetime.now(dt.UTC)).total_seconds()) < 60
    return now


@pytest.mark.parametrize(
    "condition",
    [
        "id = '1.5'", "id = 'x'", "dec = '0.25'", "bo = 'yes'", "s LIKE 'a|b' ESCAPE '|'",
        "bi = X'6'", "s LIKE 'a' ESCAPE '%'", "da + 1.5 > '2024-01-01'",
        "da - DATE'2024-01-01' > 1",
        "ts + INTERVAL '1-2' YEAR TO MONTH > ts", "ts + INTERVAL '1 2' DAY TO HOUR > ts",
        "now(3) > ts",
        "da > DATE'2024-01-01' + 2147483647", "ts > now() + INTERVAL 300000000 DAYS",
        "ts < DATE'2024-01-01' + 200000000",
        "ts < ts + INTERVAL 99999999999999999999 SECONDS", "da + INTERVAL 99999999999 DAYS > da",
        "ts < now() - INTERVAL 99999999999999999999 DAYS",
        "(id | 1 & 2) = 3", "(1 | 2 & 4) = id", "(id | 1 ^ 3) = 3", "id > 1 = id < 4",
        "id IN (1, 2) = true", "bo = id BETWEEN 1 AND 2", "bo = s LIKE 'a%'",
        "s LIKE 'a%' = true", "bo = NOT bo",
        "double('1_0') > d", "extract(EPOCH FROM ts) > 1", "id + INTERVAL 1 DAY > 3",
    ],
)  # fmt: skip
def test_what_is_not_sure_is_left_to_spark(table: vl.Table, condition: str) -> None:
    with pytest.raises((vl.UnsupportedFeature, vl.InvalidQuery)):
        table.scan("k", condition).to_pylist()

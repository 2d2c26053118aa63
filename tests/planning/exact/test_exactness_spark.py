"""The exactness table against its judge: Spark's `variant_get` on the unshredded value."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.layouts import changed
from variantlake.expressions.casts.monotone import Beyond, monotone_cast
from variantlake.expressions.typing import INT_LIMITS, spark_type
from variantlake.parquet.stats.bounds import Bounds, Raw
from variantlake.parquet.stats.facts import PathFacts
from variantlake.paths import Path
from variantlake.planning.exact.casts import type_limits
from variantlake.planning.exact.exactness import Conversion, ConversionKind, conversion
from variantlake.shredding.schema import Leaf
from variantlake.types import Kind, ShreddedType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

STORED = [
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "DECIMAL(5,1)",
    "DECIMAL(9,2)",
    "DECIMAL(18,0)",
    "DECIMAL(18,6)",
    "DECIMAL(18,11)",
    "DECIMAL(18,13)",
    "DECIMAL(18,17)",
    "DECIMAL(38,0)",
    "DECIMAL(38,2)",
    "DECIMAL(38,18)",
    "DECIMAL(38,38)",
    "FLOAT",
    "DOUBLE",
    "BOOLEAN",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "STRING",
    "BINARY",
]
ASKED = [
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "decimal(1,0)",
    "decimal(5,0)",
    "decimal(10,2)",
    "decimal(18,1)",
    "decimal(18,6)",
    "decimal(38,0)",
    "decimal(38,10)",
    "decimal(38,38)",
    "float",
    "double",
    "string",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
    "binary",
]
ODD_TEXTS = (
    "| |5| 5 |\t5\n|+5|-5|5.|.5|5.5|-0|-0.0|5e3|5E-3|1e400|0x10|\uff11\uff12|5L|1d|5f|NaN|nan|"
    "Infinity|-inf|+Infinity|1_000|1,5|true|TRUE |t|yes|y|1|0|false|no|off|\u20075|\x005|5\x00|"
    "2020-01-01|2020-1-1|2020-01-01T00:00|2020-01-01 12:34:56.789|2020|2020-02-30|today|epoch|"
    "-2020-01-01|+12020-01-01|9223372036854775807|9223372036854775808|-9223372036854775809|127|128|"
    "-128.9|32768|2147483647.5|2147483648|abc|99999.5|0.05|1e37|1e38|1E-45|3.4028236e38|4.9e-325|"
    "2.2250738585072012e-308|\u00e9|\U0001f600|12345678901234567890|127.999999999999999999"
)
TEXTS = [*ODD_TEXTS.split("|"), "1" * 38, "1" * 39, "0" * 60 + "7", "0." + "3" * 60]


def values_of(stored: ShreddedType) -> list[Any]:
    """Boundary and random raw values of one type, small enough to compare in one query."""
    rng = random.Random(stored.ddl)
    if stored.kind in INT_LIMITS or stored.kind is Kind.DECIMAL:
        with localcontext(Context(prec=100)):
            return _numbers(stored, rng)
    if stored.kind in (Kind.FLOAT, Kind.DOUBLE):
        layout, size = ("<f", 4) if stored.kind is Kind.FLOAT else ("<d", 8)
        bits = [struct.unpack(layout, rng.randbytes(size))[0] for _ in range(60)]
        fixed = [0.0, -0.0, 1.5, -2.5, float("nan"), float("inf"), float("-inf"), 2.0**53, 1e30]
        return fixed + bits
    others: dict[Kind, list[Any]] = {
        Kind.BOOLEAN: [True, False],
        Kind.STRING: TEXTS + ["".join(rng.choices("0123456789.-+eE ", k=6)) for _ in range(150)],
        Kind.BINARY: [b"", b"\x00", b"abc", b"\xff\xfe", rng.randbytes(40)],
        Kind.DATE: [0, -1, 19_000, -719_162, 2_932_896, 4_000_000, -1_000_000],
        Kind.TIMESTAMP: [0, -1, 1, 1_732_206_349_000_001, -62_135_596_800_000_000, 10**17],
        Kind.TIMESTAMP_NTZ: [0, -1, 1, 1_732_206_349_000_001, -62_135_596_800_000_000, 10**17],
    }
    return others[stored.kind]


def _numbers(stored: ShreddedType, rng: random.Random) -> list[Any]:
    """Values at the edges of every type, on and beside the points where rounding turns."""
    low, high = type_limits(stored)
    assert isinstance(low, int | Decimal)
    assert isinstance(high, int | Decimal)
    unit = Decimal(1).scaleb(-stored.scale)
    wanted: set[Decimal] = {Decimal(low), Decimal(high), Decimal(0)}
    for edge in (*(1 << bits for bits in (7, 15, 31, 53, 63)), *(10**n for n in range(20))):
        for near in (
            edge,
            edge - 1,
            edge + 1,
            edge - Decimal("0.5"),
            edge - Decimal("0.05"),
            edge - unit,
        ):
            wanted |= {Decimal(near), -Decimal(near)}
    span = stored.precision or len(str(high))
    for _ in range(60):
        digits = rng.randint(1, span)
        wanted.add(rng.choice((1, -1)) * Decimal(rng.randrange(10**digits)).scaleb(-stored.scale))
    values = {value.quantize(unit) for value in wanted if abs(value) < Decimal(10) ** 40}
    kept = sorted(value for value in values if low <= value <= high)
    return kept if stored.kind is Kind.DECIMAL else [int(value) for value in kept]


def facts(stored: ShreddedType, values: list[Any]) -> PathFacts:
    """Facts of a clean path that holds these values."""
    ordered = stored.kind in INT_LIMITS or stored.kind is Kind.DECIMAL
    return PathFacts(
        Path.of("a"),
        Leaf(stored),
        typed=len(values),
        nulls=0,
        residuals=0,
        bounds=Bounds(
            min(values) if ordered and values else None,
            max(values) if ordered and values else None,
            minimum_exact=True,
            maximum_exact=True,
        ),
    )


def fitting(stored: ShreddedType, requested: ShreddedType, values: list[Any]) -> list[Any]:
    """The values that the cast holds; all of them for casts that are not monotone."""
    cast = monotone_cast(stored, requested)
    return values if cast is None else [v for v in values if not isinstance(cast(v), Beyond)]


def column(stored: ShreddedType) -> str:
    """SQL that makes the column `c` from `raw`, for types that Python rows cannot carry exactly."""
    makers = {
        Kind.DATE: "date_from_unix_date(raw)",
        Kind.TIMESTAMP: "timestamp_micros(raw)",
        Kind.TIMESTAMP_NTZ: "cast('1970-01-01' as timestamp_ntz) + make_dt_interval(0, 0, 0, 0) "
        "+ (raw div 1000000) * interval '1' second + (raw % 1000000) * interval '0.000001' second",
    }
    return makers.get(stored.kind, "raw")


def frame(spark: SparkSession, stored: ShreddedType, values: list[Any]) -> DataFrame:
    """`c` as the typed column, `v` the Variant made of it, `j` the one that JSON text gives."""
    raw_types = {Kind.DATE: "int", Kind.TIMESTAMP: "bigint", Kind.TIMESTAMP_NTZ: "bigint"}
    raw = raw_types.get(stored.kind, stored.ddl.lower())
    numeric = stored.kind in INT_LIMITS or stored.kind is Kind.DECIMAL
    rows = [(value, f"{Decimal(value):f}" if numeric else None) for value in values]
    base = spark.createDataFrame(rows, f"raw {raw}, text string")
    made = base.selectExpr(f"{column(stored)} AS c", "raw", "text")
    whole = "regexp_replace(text, '[.]0*$', '')"  # 5.00 came from the JSON text 5
    return made.selectExpr(
        "c",
        "raw",
        "cast(c AS variant) AS v",
        f"parse_json({whole}) AS j" if numeric else "NULL AS j",
    )


def literal(value: Raw, stored: ShreddedType) -> str:
    assert isinstance(value, Decimal | int)
    return f"cast('{Decimal(value):f}' AS {stored.ddl})"


@pytest.fixture(params=["true", "false"], ids=["ansi", "no-ansi"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """The session in each ANSI mode, with the judge's setting."""
    settings = {
        "spark.sql.ansi.enabled": request.param,
        "spark.sql.variant.pushVariantIntoScan": "false",
        "spark.sql.session.timeZone": "America/St_Johns",
    }
    with changed(spark, settings):
        yield spark


def proven(stored: ShreddedType) -> Iterator[tuple[str, bool, list[Any], Conversion]]:
    """Each asked type and strictness with a conversion, and the values that it was proven for."""
    values = values_of(stored)
    for requested in ASKED:
        target = spark_type(requested)
        assert target is not None
        for strict in (True, False):
            for subset in (fitting(stored, target, values), values):
                found = conversion(stored, requested, facts(stored, subset), strict=strict)
                if found is not None:
                    yield requested, strict, subset, found


@pytest.mark.rule(7)
@pytest.mark.parametrize("stored", [ShreddedType.parse(name) for name in STORED], ids=str)
def test_rule_7_a_conversion_gives_what_variant_get_gives(
    session: SparkSession, stored: ShreddedType
) -> None:
    values = values_of(stored)
    made = frame(session, stored, values)
    numeric = stored.kind in INT_LIMITS or stored.kind is Kind.DECIMAL
    pairs: list[tuple[str, str]] = []
    for requested, strict, subset, found in proven(stored):
        if len(subset) < len(values):
            low, high = literal(min(subset), stored), literal(max(subset), stored)
            guard = f"c BETWEEN {low} AND {high}"
        else:
            guard = "true"
        get = "variant_get" if strict else "try_variant_get"
        for source in ("v", "j") if numeric else ("v",):
            judge = f"{get}({source}, '$', '{requested}')"
            pairs.append(
                (
                    f"CASE WHEN {guard} THEN {found.sql('c')} END",
                    f"CASE WHEN {guard} THEN {judge} END",
                )
            )
    assert pairs, f"{stored} has no conversion at all"
    # As text: it tells -0.0 from 0.0 and carries years that Python has not.
    expressions = list(dict.fromkeys(side for pair in pairs for side in pair))
    types = dict(zip(expressions, made.selectExpr(*expressions).schema.fields, strict=True))
    shown = "hex" if stored.kind is Kind.BINARY else "string"
    rows = made.selectExpr("string(c)", *(f"{shown}({side})" for side in expressions)).collect()
    place = {side: at + 1 for at, side in enumerate(expressions)}
    for ours, judged in pairs:
        assert types[ours].dataType == types[judged].dataType, (ours, judged)
        wrong = [row[0] for row in rows if row[place[ours]] != row[place[judged]]]
        assert not wrong, f"{ours} is not {judged} for {wrong[:3]}"


@pytest.mark.rule(16)
@pytest.mark.parametrize("session", ["true"], ids=["ansi"], indirect=True)
@pytest.mark.parametrize("stored", [ShreddedType.parse(name) for name in STORED[:15]], ids=str)
def test_rule_16_monotone_casts_are_those_of_spark(
    session: SparkSession, stored: ShreddedType
) -> None:
    values = values_of(stored)
    targets = [
        (requested, cast)
        for requested in ASKED
        if (target := spark_type(requested)) and (cast := monotone_cast(stored, target))
    ]
    judged = [
        f"try_variant_get(v, '$', '{requested}')"
        if requested != "timestamp"
        else f"unix_micros(try_variant_get(v, '$', '{requested}'))"
        for requested, _ in targets
    ]
    rows = frame(session, stored, values).selectExpr("raw", *judged).collect()
    for raw, *results in rows:
        for (requested, cast), result in zip(targets, results, strict=True):
            ours = cast(raw)
            assert (None if isinstance(ours, Beyond) else ours) == result, (raw, requested)


def test_what_fails_in_variant_get_is_never_a_plain_cast() -> None:
    wide = ShreddedType.parse("DECIMAL(38,2)")
    far = facts(wide, [Decimal("1.00"), Decimal("9223372036854775808.00")])
    assert conversion(wide, "bigint", far, strict=True) is None
    assert conversion(wide, "bigint", far, strict=False) == Conversion(
        ConversionKind.TRY_CAST, "bigint"
    )

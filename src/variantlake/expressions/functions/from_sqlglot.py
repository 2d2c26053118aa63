"""Read the functions and operators in sqlglot's trees that have `signatures`."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from variantlake.errors import InvalidQuery
from variantlake.expressions.casts.permitted import explicit_cast
from variantlake.expressions.functions.nodes import Read, only, read_args
from variantlake.expressions.functions.patterns_from_sqlglot import (
    PARTS_FUNCTIONS,
    PATTERN_READERS,
    read_parts,
)
from variantlake.expressions.functions.signatures import call
from variantlake.expressions.literals import DAY, within
from variantlake.expressions.tree import Expression, Literal, Not
from variantlake.expressions.typing import NULL, compare, is_null, refused, type_text
from variantlake.types import Kind, ShreddedType

_BINARY: dict[type[exp.Expression], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.Mod: "remainder",
    exp.IntDiv: "div",
    exp.DPipe: "concat",
    exp.BitwiseAnd: "bit_and",
    exp.BitwiseOr: "bit_or",
    exp.BitwiseXor: "bit_xor",
    exp.Contains: "contains",
    exp.EndsWith: "endswith",
    exp.RegexpLike: "rlike",
    exp.SafeAdd: "try_add",
    exp.SafeSubtract: "try_subtract",
    exp.SafeMultiply: "try_multiply",
    exp.AddMonths: "add_months",
    exp.DateDiff: "datediff",
    exp.TsOrDsAdd: "date_add",
}
_UNARY: dict[type[exp.Expression], str] = {
    exp.Neg: "negate",
    exp.Abs: "abs",
    exp.Length: "length",
    exp.Upper: "upper",
    exp.Lower: "lower",
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
    exp.Quarter: "quarter",
    exp.DayOfWeek: "dayofweek",
    exp.DayOfYear: "dayofyear",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
    exp.BitwiseNot: "bit_not",
    exp.IsNan: "isnan",
    exp.Sqrt: "sqrt",
    exp.TsOrDsToDate: "to_date",
    exp.Negative: "negate",
    exp.Sign: "sign",
    exp.Reverse: "reverse",
    exp.WeekOfYear: "weekofyear",
    exp.LastDay: "last_day",
    exp.Dayname: "dayname",
    exp.Monthname: "monthname",
    exp.UnixSeconds: "unix_seconds",
    exp.UnixMillis: "unix_millis",
    exp.UnixMicros: "unix_micros",
    exp.UnixDate: "unix_date",
    exp.DateFromUnixDate: "date_from_unix_date",
    exp.BitLength: "bit_length",
    exp.MD5: "md5",
    exp.SHA: "sha1",
    exp.Hex: "hex",
}
_NAMED = {
    **{name: (name, 1) for name in ("timestamp_micros", "timestamp_millis", "timestamp_seconds")},
    **{name: (name, 1) for name in ("octet_length", "weekday", "crc32")},
    "btrim": ("trim", 1),
    "is_variant_null": ("is_variant_null", 1),
    "try_mod": ("try_remainder", 2),
    "pmod": ("pmod", 2),
    "regexp": ("rlike", 2),
    "rlike": ("rlike", 2),
}
"""Functions that sqlglot does not know: our name for each, and its number of arguments."""
_CASTS = {
    "bigint": ShreddedType(Kind.INT64),
    "smallint": ShreddedType(Kind.INT16),
    "tinyint": ShreddedType(Kind.INT8),
}
_HARMLESS = {"typed", "safe", "coalesce", "big_int", "this", "expression", "expressions"}
"""Arguments of sqlglot's operators that do not change their meaning."""


def read_function(node: exp.Expression, read: Read) -> Expression:
    """Read a function or an operator; `read` reads its operands.

    Raises UnsupportedFeature for others, and InvalidQuery for an arrow of JSON paths.
    """
    if type(node) in _BINARY:
        if isinstance(node.expression, exp.Interval) or isinstance(node.this, exp.Interval):
            return _moved(node, read)
        _check_bits(node)
        if isinstance(node, exp.DateDiff) and node.meta.get("arguments") == 3:
            return _difference(node, read)
        dates = ("unit",) if isinstance(node, exp.DateDiff | exp.TsOrDsAdd) else ()
        only(node, *_HARMLESS, *dates)
        if dates and str(node.args["unit"]).upper() != "DAY":
            raise refused(f"the unit {node.args['unit']}")
        return call(_BINARY[type(node)], *read(node.this, node.expression))
    if type(node) in _UNARY:
        only(node, "this")
        inner = node.this
        return call(
            _UNARY[type(node)],
            *read(inner.this if isinstance(inner, exp.TsOrDsToDate) else inner),
        )
    special = _SPECIAL.get(type(node))
    if special is not None:
        return special(node, read)
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        if name in _CASTS and len(node.expressions) == 1:
            (operand,) = read(*node.expressions)
            return explicit_cast(operand, _CASTS[name])
        if name in _NAMED and len(node.expressions) == _NAMED[name][1]:
            return call(_NAMED[name][0], *read(*node.expressions))
        if name == "bround" and 1 <= len(node.expressions) <= 2:
            return call("bround", *read(*node.expressions), *[_ZERO][len(node.expressions) - 1 :])
        if name == "date_part" and len(node.expressions) == 2:
            part, moment = node.expressions
            if not isinstance(part, exp.Literal):
                raise refused("date_part by other than a constant")
            return _part(part.name, *read(moment))
        if name in PARTS_FUNCTIONS and node.expressions:
            return read_parts(
                node.expressions[0], PARTS_FUNCTIONS[name], node.expressions[1:], read
            )
        if name == "positive" and len(node.expressions) == 1:
            (operand,) = read(*node.expressions)
            return call("negate", call("negate", operand))
        if name in ("zeroifnull", "nullifzero") and len(node.expressions) == 1:
            (operand,) = read(*node.expressions)
            return _or_zero(operand) if name == "zeroifnull" else _not_zero(operand)
        if name in ("isnull", "isnotnull") and len(node.expressions) == 1:
            found = is_null(*read(*node.expressions))
            return found if name == "isnull" else Not(found)
        raise refused(f"the function {name}")
    if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar) and "only_json_types" in node.args:
        hint = "a path in a VARIANT column is written event:a.b::string"
        raise InvalidQuery("Spark knows no path by an arrow", hint=hint, cli_hint=hint)
    raise refused(f"the expression {node.sql(dialect='databricks')}")


_BITS = (exp.BitwiseAnd, exp.BitwiseXor, exp.BitwiseOr)
"""In Spark's order of precedence, the highest first; sqlglot parses them left to right."""


def _check_bits(node: exp.Expression) -> None:
    both = isinstance(node, _BITS) and isinstance(node.this, _BITS)
    if both and _BITS.index(type(node.this)) > _BITS.index(type(node)):
        raise refused("bits of several kinds without parentheses")


def _coalesce(node: exp.Expression, read: Read) -> Expression:
    only(node, "this", "expressions")
    return call("coalesce", *read(node.this, *node.expressions))


def _if(node: exp.Expression, read: Read) -> Expression:
    default = node.args.get("false")
    parts = read(node.this, node.args["true"], *([] if default is None else [default]))
    return call("case", *parts, *([NULL] if default is None else []))


def _concat(node: exp.Expression, read: Read) -> Expression:
    return call("concat", *read(*node.expressions))


def _substring(node: exp.Expression, read: Read) -> Expression:
    only(node, "this", "start", "length")
    numbers = [node.args[name] for name in ("start", "length") if node.args.get(name)]
    return call("substring", *read(node.this, *numbers))


def _left(node: exp.Expression, read: Read) -> Expression:
    text, length = read(node.this, node.expression)
    return call("substring", text, Literal(1, type_text(length)), length)


_MONTHS = {"MONTH": 1, "YEAR": 12}
_INTERVALS = {
    "WEEK": 7 * DAY,
    "DAY": DAY,
    "HOUR": DAY // 24,
    "MINUTE": DAY // 1440,
    "SECOND": DAY // 86400,
}


def _moved(node: exp.Expression, read: Read) -> Expression:
    """Read a DATE plus or minus an INTERVAL of days or months, or a timestamp and any INTERVAL."""
    operand, interval = node.this, node.expression
    if isinstance(operand, exp.Interval) and isinstance(node, exp.Add):
        operand, interval = interval, operand
    count, unit = interval.this, str(interval.args.get("unit")).upper().removesuffix("S")
    number = str(count.this) if isinstance(count, exp.Literal) else ""
    known = unit in _INTERVALS or unit in _MONTHS
    if type(node) not in (exp.Add, exp.Sub) or not known or not number.isdecimal():
        raise refused("an INTERVAL of other than years, months, weeks, days or parts of a day")
    many = int(number) if isinstance(node, exp.Add) else -int(number)
    (moved,) = read(operand)
    if unit in _MONTHS:
        months = within(Literal(many * _MONTHS[unit], "int"), Kind.INT32)
        return call("add_months", moved, months)
    if unit in ("WEEK", "DAY") and type_text(moved) == "date":
        days = many * _INTERVALS[unit] // DAY
        return call("date_add", moved, within(Literal(days, "int"), Kind.INT32))
    micros = within(Literal(many * _INTERVALS[unit], "bigint"), Kind.INT64)
    return call("timestamp_add", moved, micros)


def _right(node: exp.Expression, read: Read) -> Expression:
    text, length = read(node.this, node.expression)
    if not isinstance(length, Literal) or type(length.value) is not int:
        raise refused("right by other than constants")
    start, *rest = (-length.value,) if length.value > 0 else (1, 0)
    return call("substring", text, *(Literal(each, "int") for each in (start, *rest)))


def _replace(node: exp.Expression, read: Read) -> Expression:
    only(node, "this", "expression", "replacement")
    operands = read(node.this, node.expression)
    replacement = node.args.get("replacement")
    last = read(replacement) if replacement else [Literal("", "string")]
    return call("replace", *operands, *last)


def _padded(node: exp.Expression, read: Read) -> Expression:
    only(node, "this", "expression", "fill_pattern", "is_left")
    parts = [node.args[name] for name in ("expression", "fill_pattern") if node.args.get(name)]
    return call("lpad" if node.args["is_left"] else "rpad", *read(node.this, *parts))


def _round(node: exp.Expression, read: Read) -> Expression:
    only(node, "this", "decimals")
    scale = node.args.get("decimals")
    return call("round", *read(node.this), *(read(scale) if scale else [_ZERO]))


_ZERO = Literal(0, "int")


def _or_zero(operand: Expression) -> Expression:
    return call("coalesce", operand, _ZERO)


def _not_zero(operand: Expression) -> Expression:
    return call("case", compare("=", operand, _ZERO), Literal(None, type_text(operand)), operand)


def _try_divide(node: exp.Expression, read: Read) -> Expression:
    left, right = read(node.this, node.expression)
    return call("divide", left, _not_zero(right))


def _equal_null(node: exp.Expression, read: Read) -> Expression:
    return compare("<=>", *read(node.this, node.expression))


def _unix_timestamp(node: exp.Expression, read: Read) -> Expression:
    """Read `unix_timestamp` of a timestamp, for which the format has no effect."""
    return call("unix_timestamp", *read(node.this))


def _concat_ws(node: exp.Expression, read: Read) -> Expression:
    return call("concat_ws", *read(*node.expressions))


def _trim(node: exp.Expression, read: Read) -> Expression:
    only(node, "this", "position", "expression")
    sides = {"LEADING": "ltrim", "TRAILING": "rtrim"}
    characters = [node.expression] if node.args.get("expression") else []
    return call(sides.get(str(node.args.get("position")), "trim"), *read(node.this, *characters))


def _extreme(node: exp.Expression, read: Read) -> Expression:
    function = "greatest" if isinstance(node, exp.Greatest) else "least"
    return call(function, *read(node.this, *node.expressions))


def _extracted(node: exp.Expression, read: Read) -> Expression:
    return _part(str(node.this), *read(node.expression))


def _part(name: str, moment: Expression) -> Expression:
    """Read a part of a moment by its name, as EXTRACT and `date_part` have it."""
    return call(_EXTRACTED.get(name.lower(), name.lower()), moment)


_EXTRACTED = {"week": "weekofyear", "dow": "dayofweek", "doy": "dayofyear"}


def _difference(node: exp.Expression, read: Read) -> Expression:
    unit = _INTERVALS.get(str(node.args.get("unit")).upper())
    if unit is None:
        raise refused(f"the unit {node.args.get('unit')}")
    return call("timestamp_diff", *read(node.expression, node.this), Literal(unit, "bigint"))


def _format(node: exp.Expression, read: Read) -> Expression:
    """Read `date_format`, or FROM_UNIXTIME, in which a number is seconds."""
    operand = node.this.this if isinstance(node.this, exp.TimeStrToTime) else node.this
    (moment,) = read(operand)
    if isinstance(node, exp.UnixToStr):
        moment = call("timestamp_seconds", moment)
    pattern = node.meta.get("format")
    if pattern is None:
        raise refused(f"the format {node.args.get('format')}")
    return call("date_format", moment, Literal(pattern, "string"))


def _type_name(node: exp.Expression, read: Read) -> Expression:
    only(node, "this")
    return Literal(type_text(*read(node.this)), "string")


def _nvl2(node: exp.Expression, read: Read) -> Expression:
    operand, there, absent = read(node.this, node.args["true"], node.args["false"])
    return call("case", is_null(operand), absent, there)


_DATE_UNITS = {
    "week": "week",
    **dict.fromkeys(("mon", "month", "mm"), "month"),
    "quarter": "quarter",
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
}
_TIME_UNITS = _DATE_UNITS | {
    **dict.fromkeys(("day", "dd"), "day"),
    "hour": "hour",
    "minute": "minute",
    "second": "second",
}


def _truncated(node: exp.Expression, read: Read) -> Expression:
    of_days = isinstance(node, exp.DateTrunc)
    unit = node.args["unit"]
    units = _DATE_UNITS if of_days else _TIME_UNITS
    found = units.get(str(unit.name if isinstance(unit, exp.Literal) else unit).lower())
    if found is None:
        raise refused(f"the unit {unit}")
    return call("trunc" if of_days else "date_trunc", *read(node.this), Literal(found, "string"))


_SPECIAL: dict[type[exp.Expression], Callable[[exp.Expression, Read], Expression]] = {
    **PATTERN_READERS,
    exp.Coalesce: _coalesce,
    exp.If: _if,
    exp.Concat: _concat,
    exp.Substring: _substring,
    exp.Left: _left,
    exp.Right: _right,
    exp.Replace: _replace,
    exp.StrPosition: read_args("locate", "this", "substr"),
    exp.Repeat: read_args("repeat", "this", "times"),
    exp.SplitPart: read_args("split_part", "this", "delimiter", "part_index"),
    exp.Pad: _padded,
    exp.Translate: read_args("translate", "this", "from_", "to"),
    exp.ConcatWs: _concat_ws,
    exp.Round: _round,
    exp.SafeDivide: _try_divide,
    exp.EqualNull: _equal_null,
    exp.StrToUnix: _unix_timestamp,
    exp.Trim: _trim,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.Nvl2: _nvl2,
    exp.Extract: _extracted,
    exp.TimestampDiff: _difference,
    exp.TimeToStr: _format,
    exp.UnixToStr: _format,
    exp.SubstringIndex: read_args("substring_index", "this", "delimiter", "count"),
    exp.SHA2: read_args("sha2", "this", "length"),
    exp.Typeof: _type_name,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
}

"""Texts of queries as DataFrames: cut into words of the DataFrame API if they are one SELECT.

Any other text reads DataFrames by `spark.sql(text, name=frame)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from tests.spark.layouts import changed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WORD = re.compile(r"'[^']*'|`[^`]*`|GROUP BY|\w+|.", re.DOTALL)
_CLAUSES = frozenset({"SELECT", "FROM", "WHERE", "GROUP BY"})
_OTHERS = re.compile(
    r"\b(?:ALL|CROSS|DISTINCT|EXISTS|FULL|HAVING|JOIN|LATERAL|LEFT|LIMIT|ORDER BY|OVER|RIGHT|"
    r"ROLLUP|UNION|WITH)\b|\(SELECT"
)
"""What only a text says."""

_TABLE = re.compile(r"\{(\w+)\}(?: (?:AS )?(\w+))?")
_NAMED = re.compile(r"(.+?)\s+(?:AS\s+)?\w+", re.DOTALL)


def frame_of(spark: SparkSession, text: str, tables: Mapping[str, DataFrame]) -> DataFrame:
    """A query as a DataFrame; `{name}` in its text stands for one of the tables."""
    read = _one_select(text)
    if read is None:
        named: dict[str, Any] = {name: tables[name] for name in _names(text)}
        return spark.sql(text, **named)
    items, (name, alias), where, keys = read
    rows = tables[name].alias(alias or name)
    if where:
        rows = rows.where(where)
    if not keys:
        return rows.selectExpr(*items)
    with changed(spark, {"spark.sql.retainGroupColumns": "false"}):
        return rows.groupBy(*map(F.expr, keys)).agg(*map(F.expr, items))


def is_cut(text: str) -> bool:
    """Whether a query is composed of words of the DataFrame API."""
    return _one_select(text) is not None


def _names(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


_Select = tuple[list[str], tuple[str, str | None], str, list[str]]


def _one_select(text: str) -> _Select | None:
    """What is selected, the table with its name, the condition, and the keys of groups.

    None for a text of other clauses.
    """
    if _OTHERS.search(text):
        return None
    parts: dict[str, str] = {}
    clause, depth = "", 0
    for word in _WORD.findall(text):
        depth += (word == "(") - (word == ")")
        if depth == 0 and word in _CLAUSES:
            clause = word
            parts[clause] = ""
        else:
            parts[clause] = parts.get(clause, "") + word
    table = _TABLE.fullmatch(parts.get("FROM", "").strip())
    if table is None or "" in parts:
        return None
    items = list(_listed(parts["SELECT"]))
    keys = [_key(key, items) for key in _listed(parts.get("GROUP BY", ""))]
    return items, (table[1], table[2]), parts.get("WHERE", "").strip(), keys


def _listed(text: str) -> Iterator[str]:
    """The items between commas."""
    item, depth = "", 0
    for word in _WORD.findall(text):
        depth += (word == "(") - (word == ")")
        if word == "," and depth == 0:
            yield item.strip()
            item = ""
        else:
            item += word
    if item.strip():
        yield item.strip()


def _key(key: str, items: list[str]) -> str:
    """What a number in GROUP BY stands for."""
    if not key.isdigit():
        return key
    item = items[int(key) - 1]
    named = _NAMED.fullmatch(item)
    return item if named is None else named[1]

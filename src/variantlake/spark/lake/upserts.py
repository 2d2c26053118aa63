"""`Lake.upsert`: MERGE by a key. Spark merges DataFrames, and this process all other rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType

from variantlake.delta.schema.table_schema import StructType, VariantType
from variantlake.dml.merge.upserts import check_complete, check_key, two_rows_of_a_key
from variantlake.expressions.tree import And, Ref
from variantlake.expressions.typing import compare
from variantlake.quoting import quote_identifier
from variantlake.spark.session.arguments import is_frame
from variantlake.sql.select import QueryText
from variantlake.writing.options.keywords import names_of

if TYPE_CHECKING:
    from variantlake.dml.result import ChangeResult
    from variantlake.ingest.inputs import Rows
    from variantlake.table.table import Table


def upsert(
    table: Table,
    rows: DataFrame | Rows,
    key: str | Sequence[str],
    *,
    json_columns: Collection[str],
    merge: Callable[[DataFrame, str], ChangeResult],
    merge_schema: bool,
    **options: Any,
) -> ChangeResult:
    """Replace rows that have the same key, as `Lake.upsert` does.

    `merge` merges a DataFrame into the table by a condition. `options` are passed to
    `Table.upsert`.
    """
    if not is_frame(rows):
        options.update(json_columns=json_columns, merge_schema=merge_schema)
        return table.upsert(rows, key, **options)
    if not merge_schema:
        check_complete(table.schema, rows.columns)
    refs = [item.ref for item in QueryText(table.schema).items(key)]
    check_key(refs)
    source = _parsed(rows, table.schema, names_of("json_columns", json_columns))
    _check_distinct(source, refs)
    on = And(tuple(compare("=", _of("t", ref), _of("s", ref)) for ref in refs))
    return merge(source, str(on))


def _parsed(frame: DataFrame, table: StructType, json_columns: Collection[str]) -> DataFrame:
    """Parse JSON text in `json_columns` and, as `append` does, for the table's VARIANT columns."""
    variants = {field.name.lower() for field in table.fields if isinstance(field.type, VariantType)}
    named = {name.lower() for name in json_columns}
    items = []
    for field in frame.schema.fields:
        name, quoted = field.name.lower(), quote_identifier(field.name)
        is_text = name in named or (name in variants and isinstance(field.dataType, StringType))
        items.append(f"parse_json({quoted}) AS {quoted}" if is_text else quoted)
    return frame.selectExpr(*items)


def _check_distinct(frame: DataFrame, key: Sequence[Ref]) -> None:
    """Raise InvalidQuery for two rows of one key: MERGE would insert both if the table has none."""
    # Cast leniently here, since the merge itself fails for a value that cannot be cast.
    texts = (str(replace(_of("", ref), strict=False)) for ref in key)
    names = [f"k{number}" for number in range(len(key))]
    keys = frame.selectExpr(*(f"{text} AS {name}" for text, name in zip(texts, names, strict=True)))
    if keys.dropna().groupBy(*names).count().where("count > 1").take(1):
        raise two_rows_of_a_key()


def _of(side: str, ref: Ref) -> Ref:
    """Qualify a column or path, by its logical names, with the name of a side of the merge."""
    names = ref.shown or ref.column
    return replace(ref, column=(side, *names) if side else names, shown=())

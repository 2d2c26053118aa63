"""The functions that change Variants, as UDFs over Arrow: for columns, and by name for SQL.

A VARIANT column reaches an Arrow UDF as struct<value, metadata> and may be returned as one, in
Spark 4.1 and newer. Spark 4.3 has its own functions of these names, which we do not replace.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import VariantType
from pyspark.util import PythonEvalType

from variantlake.encoding.edit import FUNCTIONS, Change, Edit
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidPath, UnsupportedFeature, VariantLakeError
from variantlake.kernels.variant.arrow_variants import as_variants, variant_column
from variantlake.kernels.variant.editor import edit_variants
from variantlake.parquet.variant.key_orders import in_spark_order
from variantlake.paths import Path
from variantlake.shredding.layout import is_variant_type
from variantlake.spark.session.jvm import is_connect

NAMES = tuple(FUNCTIONS)
"""The functions, by their names in SQL."""

_CALLS = re.compile(rf"\b({'|'.join(NAMES)})\s*\(", re.IGNORECASE)


def changed_column(target: Any, edit: Edit, value: Any, *, lenient: bool) -> Any:
    """Return the column after the change, as `variantlake.functions` documents it."""
    connect = is_connect(target)
    if edit.change is Change.DELETE:

        def deleted(rows: Any) -> Any:
            return _stored(_edited(_variants(rows), edit, None))

        return _udf(deleted, connect=connect)(target)
    if isinstance(value, Column) or is_connect(value):

        def changed(rows: Any, values: Any) -> Any:
            found = _edited(_variants(rows), edit, as_variants(values), lenient=lenient)
            return _stored(found)

        return _udf(changed, connect=connect)(target, value)
    new = Variant.of(value)

    def put(rows: Any) -> Any:
        given = variant_column([new])
        return _stored(_edited(_variants(rows), edit, given, lenient=lenient))

    return _udf(put, connect=connect)(target)


def register_functions(spark: SparkSession) -> tuple[str, ...]:
    """Let this session's SQL call `variant_set`, `variant_insert`, `variant_delete` and the others.

    They are temporary functions, which end with the session. This replaces no function of Spark
    (4.3 and newer) or of the user with such a name. `lake.sql` of a classic session does not need
    this call.

    Returns the registered names.
    """
    missing = tuple(name for name in NAMES if not spark.catalog.functionExists(name))
    for name in missing:
        spark.udf.register(name, _sql_function(name, connect=is_connect(spark)))
    return missing


_lock = threading.Lock()
_users: Counter[tuple[int, str]] = Counter()


@contextlib.contextmanager
def functions_of_text(spark: SparkSession, text: str) -> Iterator[None]:
    """Register the functions that a text calls while the block analyses it.

    The plan keeps the functions, so the block drops them from the catalog afterwards. It does
    nothing in Spark Connect, which analyses a text again whenever it runs.
    """
    called = {name.lower() for name in _CALLS.findall(text)}
    if not called or is_connect(spark):
        yield
        return
    held = []
    try:
        with _lock:
            for name in sorted(called):
                key = (id(spark), name)
                if not _users[key]:
                    if spark.catalog.functionExists(name):
                        continue
                    spark.udf.register(name, _sql_function(name, connect=False))
                _users[key] += 1
                held.append(name)
        yield
    finally:
        with _lock:
            for name in held:
                _users[id(spark), name] -= 1
                if not _users[id(spark), name]:
                    del _users[id(spark), name]
                    spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")


def _udf(function: Callable[..., Any], *, connect: bool) -> Any:
    if connect:
        from pyspark.sql.connect import udf as remote

        kind: Any = PythonEvalType.SQL_SCALAR_ARROW_UDF
        return remote._create_udf(function, VariantType(), kind)  # noqa: SLF001 # no public way
    # PySpark infers the kind of function from its type hints; passing a kind warns.
    names = (*inspect.signature(function).parameters, "return")
    function.__annotations__ = dict.fromkeys(names, pa.Array)
    made: Callable[..., Any] = arrow_udf
    return made(function, VariantType())


def _sql_function(name: str, *, connect: bool) -> Any:
    change, lenient = FUNCTIONS[name]

    def function(rows: Any, *rest: Any) -> Any:
        return _stored(_call(name, change, _variants(rows), rest, lenient=lenient))

    function.__name__ = name
    return _udf(function, connect=connect)


def _call(name: str, change: Change, rows: Any, rest: tuple[Any, ...], *, lenient: bool) -> Any:
    """Evaluate an SQL function over one batch of its arguments."""
    most = 3 if change is Change.SET else 2
    if change is Change.DELETE:
        for paths in rest:
            rows = _by_path(rows, paths, None, None, change, lenient=False)
        if not rest:
            raise InvalidPath(f"{name} needs a path")
        return rows
    if not 2 <= len(rest) <= most:
        raise UnsupportedFeature(
            f"{name} takes {most + 1} arguments at most, found {len(rest) + 1}"
        )
    flags = rest[2] if len(rest) > 2 else None
    return _by_path(rows, rest[0], as_variants(rest[1]), flags, change, lenient=lenient)


def _by_path(rows: Any, paths: Any, new: Any, flags: Any, change: Change, *, lenient: bool) -> Any:
    """Return the rows, each changed at its own path; most often all paths are equal.

    A NULL path or flag gives NULL, or for a deletion the row unchanged.
    """
    flags = pa.repeat(pa.scalar(True), len(rows)) if flags is None else flags
    keys = pa.table({"path": paths, "flag": flags})
    kinds = keys.group_by(["path", "flag"], use_threads=False).aggregate([]).to_pylist()
    done, order = [], []
    for kind in kinds:
        chosen = _rows_of(keys, kind) if len(kinds) > 1 else np.arange(len(rows))
        order.append(chosen)
        part = rows.take(pa.array(chosen)) if len(kinds) > 1 else rows
        if kind["path"] is None or kind["flag"] is None:
            done.append(part if new is None else variant_column([None] * len(part)))
            continue
        edit = Edit(change, Path.parse_spark(kind["path"]), kind["flag"])
        values = new
        if new is not None and len(kinds) > 1:
            values = new.take(pa.array(chosen))
        done.append(_edited(part, edit, values, lenient=lenient))
    if len(done) == 1:
        return done[0]
    whole = pa.concat_arrays([_stored(part) for part in done])
    return whole.take(pa.array(np.argsort(np.concatenate(order), kind="stable")))


def _edited(rows: Any, edit: Edit, new: Any, *, lenient: bool = False) -> Any:
    """Call `edit_variants`, but errors name no row: users do not know row numbers of a batch."""
    try:
        return edit_variants(rows, edit, new, lenient=lenient)
    except VariantLakeError as error:
        error.row = None
        raise


def _rows_of(keys: Any, kind: dict[str, Any]) -> Any:
    """Return the rows with this path and this flag."""
    found = np.ones(keys.num_rows, np.bool_)
    for name, value in kind.items():
        column: Any = keys[name]
        same: Any = pc.is_null(column)
        if value is not None:
            functions: Any = pc
            same = functions.fill_null(functions.equal(column, value), fill_value=False)
        found &= np.asarray(same)
    return np.flatnonzero(found)


def _variants(rows: Any) -> Any:
    if not is_variant_type(rows.type):
        raise UnsupportedFeature(
            f"expected a VARIANT, found {rows.type}", hint="make a VARIANT of JSON text first"
        )
    return rows


_STORED = [
    pa.field("value", pa.binary(), nullable=False),
    # The mark by which Spark tells a VARIANT from a struct with the same fields.
    pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
]


def _stored(found: Any) -> Any:
    """Return the Variants in the Arrow form that Spark accepts."""
    parts = [found.field(field.name) for field in _STORED]
    mask = found.is_null() if found.null_count else None
    return in_spark_order(pa.StructArray.from_arrays(parts, fields=_STORED, mask=mask))

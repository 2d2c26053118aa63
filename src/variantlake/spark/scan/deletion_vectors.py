"""Removes the deleted rows of files with deletion vectors.

The file index gives each file of a scan a number, as a constant column, and Spark sends the deleted
rows as bits to every task. A filter tests each row by its file's number and its place in the file,
and compares no paths (EXACTNESS, rule 15). A join would not do: Spark would push the query's
conditions below it, evaluate them for deleted rows too, and fail on values that the table no longer
has (rule 1). Of two filters, Spark evaluates the inner one first.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, IntegerType, LongType, StructField, StructType

from variantlake.delta.log.deletion_vectors import deleted_rows
from variantlake.errors import in_file
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.planning.files import ScanFile
from variantlake.spark.session.classic_files import ROW_INDEX, Files
from variantlake.spark.session.jobs import functions_of
from variantlake.storage.store import Store

FILE_NUMBER = "__vl_file"
"""The constant column with a file's number in its scan; longer if a column has this name."""

_DELETED = StructType(
    [StructField("__vl_of", IntegerType()), StructField("__vl_bits", ArrayType(LongType()))]
)
_WORD_BITS = 64
_THREADS = 16


def has_deleted(file: ScanFile) -> bool:
    """Whether some of the file's rows are deleted."""
    return file.vector is not None and file.vector.cardinality > 0


def without_deleted(
    helper: Files, rows: DataFrame, number: str, store: Store, files: Sequence[ScanFile]
) -> DataFrame:
    """Remove the deleted rows of files; column `number` has a file's place in `files`.

    Raises MalformedLog for a vector that does not match its descriptor.
    """
    with ThreadPoolExecutor(min(_THREADS, len(files))) as pool:
        vectors = list(pool.map(lambda file: _bits(store, file), files))
    table = b"".join(
        np.array([number, len(words)], "<i4").tobytes() + words.tobytes()
        for number, words in enumerate(vectors)
    )
    sf = functions_of(rows.sparkSession)
    by_file = sf.expr("transform(array_sort(collect_list(struct(*))), file -> file.__vl_bits)")
    words = sf.get(helper.deleted(table, _DELETED).agg(by_file).scalar(), sf.col(number))
    # After the last deleted row there are no words: the bit is NULL, and the row is kept.
    word = sf.get(words, sf.expr(f"int({ROW_INDEX} div {_WORD_BITS})"))
    bit = sf.getbit(word, sf.expr(f"int({ROW_INDEX} % {_WORD_BITS})"))
    kept: DataFrame = rows.filter(sf.coalesce(bit, sf.lit(0)) == 0)
    return kept


def _bits(store: Store, file: ScanFile) -> npt.NDArray[np.int64]:
    """Return the deleted rows as bits in 64-bit words, up to the last word with a bit set."""
    if file.vector is None:
        return np.empty(0, np.int64)
    rows = deleted_rows(store, file.vector, _num_records(file))
    flags = np.zeros((int(rows[-1]) // _WORD_BITS + 1) * _WORD_BITS, bool)
    flags[rows] = True
    return np.packbits(flags, bitorder="little").view("<i8")


def _num_records(file: ScanFile) -> int:
    """Return the rows in the file, deleted ones included."""
    if file.facts is not None and file.facts.num_records != UNKNOWN:
        return file.facts.num_records
    with in_file(file.path):
        return sum(group.num_rows for group in read_footer(file.path).row_groups)

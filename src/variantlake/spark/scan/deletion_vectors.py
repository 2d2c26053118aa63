"""Files with deletion vectors: their rows without the deleted ones.

Files of a scan have numbers, as constants that the index of files gives each of them, and their
deleted rows are bits that Spark sends to every task. So a row is tested by its file's number and
its own place in the file; no path of a file is compared (EXACTNESS, rule 15). It is tested in a
filter and not by a join: Spark pushes a query's conditions below a join, if they would be
evaluated for deleted rows, too, and fail for values that the table no longer has (rule 1). Of two
filters the inner one comes first.
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
"""The constant that tells a file of one scan from the others, unless a column has this name."""

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
    """The rows of files without the deleted ones; column `number` has a file's place in `files`.

    Raises MalformedLog for a vector that is not what its descriptor promises.
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
    # Beyond the last deleted row there is no word, and NULL deletes nothing.
    word = sf.get(words, sf.expr(f"int({ROW_INDEX} div {_WORD_BITS})"))
    bit = sf.getbit(word, sf.expr(f"int({ROW_INDEX} % {_WORD_BITS})"))
    kept: DataFrame = rows.filter(sf.coalesce(bit, sf.lit(0)) == 0)
    return kept


def _bits(store: Store, file: ScanFile) -> npt.NDArray[np.int64]:
    """The deleted rows as bits of words, up to the last word with one."""
    if file.vector is None:
        return np.empty(0, np.int64)
    rows = deleted_rows(store, file.vector, _num_records(file))
    flags = np.zeros((int(rows[-1]) // _WORD_BITS + 1) * _WORD_BITS, bool)
    flags[rows] = True
    return np.packbits(flags, bitorder="little").view("<i8")


def _num_records(file: ScanFile) -> int:
    """The rows in the file, deleted ones included."""
    if file.facts is not None and file.facts.num_records != UNKNOWN:
        return file.facts.num_records
    with in_file(file.path):
        return sum(group.num_rows for group in read_footer(file.path).row_groups)

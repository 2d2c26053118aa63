"""Extract members of many JSON texts at once: from a column of documents, columns of members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, arrow_scalar, numpy_array
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.log.log_stats import (
    MISSING,
    UNUSUAL,
    TextSpans,
    find_members,
    gather_strings,
)
from variantlake.kernels.tape.words import PADDING
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.types import Primitive

_PIECE = 4 << 20
"""Bytes of text for one tape, so that the tape fits the processor's cache."""

_WIDE = Context(prec=100)


class StringColumn(TextSpans):
    """One text for each row, in place: data[starts[row]:ends[row]], uint8; start -1 for none."""

    __slots__ = ()

    def text(self, row: int) -> bytes | None:
        """Return one row's text, None if it has none."""
        start, end = int(self.starts[row]), int(self.ends[row])
        return None if start < 0 else self.data[start:end].tobytes()

    def array(self) -> pa.Array[Any]:
        """Return the texts as an Arrow array, null for none."""
        there = self.starts >= 0
        starts, ends = np.where(there, self.starts, 0), np.where(there, self.ends, 0)
        found = gather(self.data, starts, ends - starts, pa.string())
        if not there.all():
            found = pc.if_else(arrow_array(there), found, arrow_scalar(None, pa.string()))
        return found

    def take(self, rows: Int64s) -> StringColumn:
        """Return these rows."""
        return StringColumn(self.data, self.starts[rows], self.ends[rows])

    def where(self, chosen: Bools) -> StringColumn:
        """Return the same rows, without the texts of rows that are not chosen."""
        return StringColumn(self.data, np.where(chosen, self.starts, -1), self.ends)


NO_TEXTS = StringColumn(np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))


def texts_of(array: Any) -> StringColumn:
    """Return the texts of an Arrow array of any string type, mostly without copying them."""
    if not pa.types.is_dictionary(array.type):
        return spans_of(array.cast(pa.string()))
    texts = spans_of(array.dictionary.cast(pa.string()))
    codes = numpy_array(array.indices, -1)
    starts = np.append(texts.starts, -1)[codes]
    return StringColumn(texts.data, starts, np.append(texts.ends, -1)[codes])


def spans_of(array: Any) -> StringColumn:
    """Return the bytes of an Arrow array of type string or binary, without copying them."""
    _, offsets, data = array.buffers()
    rows = len(array)
    places = np.frombuffer(offsets, np.int32)[array.offset : array.offset + rows + 1]
    starts = places[:-1].astype(np.int64)
    if array.null_count:
        starts[numpy_array(array.is_null())] = -1
    bytes_ = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return StringColumn(bytes_, starts, places[1:].astype(np.int64))


def gather(
    text: npt.NDArray[np.uint8], starts: Int64s, sizes: Int64s, type_: pa.DataType
) -> pa.Array[Any]:
    """Copy the bytes text[starts:starts + sizes] of each row to an Arrow array without nulls.

    Raises pyarrow.ArrowInvalid beyond 2 GB.
    """
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    if offsets[-1] >= 1 << 31:
        raise pa.ArrowInvalid("more than 2 GB of text in one array")
    if len(text) < int((starts + sizes).max(initial=0)) + PADDING:
        text = np.concatenate([text, np.zeros(PADDING, np.uint8)])
    out = np.empty(int(offsets[-1]) + PADDING, np.uint8)
    gather_strings(text, text, starts, offsets, out)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32).data), pa.py_buffer(out.data)]
    return pa.Array.from_buffers(type_, len(sizes), buffers)


@dataclass(frozen=True, slots=True)
class JsonMembers:
    """One member of each document.

    `tags` are Primitives, MISSING, or UNUSUAL for a value that only the plain parser can read.
    `values` holds integers, unscaled decimals, the bits of doubles, and the start of a STRING in
    the documents' text; `extras` holds the scale of a decimal and the bytes of a STRING.
    """

    documents: StringColumn
    tags: npt.NDArray[np.uint8]
    values: Int64s
    extras: Int64s

    @property
    def integers(self) -> Bools:
        """A mask of the rows with an integer."""
        found: Bools = (self.tags >= Primitive.INT8) & (self.tags <= Primitive.INT64)
        return found

    def counts(self) -> Int64s:
        """Return the counts, -1 if the member is not an integer of 0 or more."""
        return np.where(self.integers & (self.values >= 0), self.values, -1)

    def texts(self) -> StringColumn:
        """Return the members that are strings; other rows have no text."""
        is_text = self.tags == Primitive.STRING
        starts = np.where(is_text, self.values, -1)
        return StringColumn(self.documents.data, starts, starts + self.extras)

    def value(self, row: int) -> Any:
        """Return one scalar member as a Python value, a number with a point as Decimal or float.

        None for any other member.
        """
        tag, value, extra = (int(each[row]) for each in (self.tags, self.values, self.extras))
        if tag == Primitive.STRING:
            return self.documents.data[value : value + extra].tobytes().decode()
        if Primitive.INT8 <= tag <= Primitive.INT64:
            return value
        if tag in (Primitive.DECIMAL4, Primitive.DECIMAL8):
            return _WIDE.scaleb(Decimal(value), -extra)
        if tag == Primitive.DOUBLE:
            return float(self.values[row : row + 1].view(np.float64)[0])
        return None


def members_of(documents: StringColumn, paths: Sequence[tuple[str, ...]]) -> list[JsonMembers]:
    """Return the members at these paths of keys, in one pass; MISSING if a text is not JSON.

    Of equal keys the last one counts.
    """
    rows = len(documents.starts)
    found = [
        JsonMembers(
            documents,
            np.full(rows, MISSING, np.uint8),
            np.zeros(rows, np.int64),
            np.zeros(rows, np.int64),
        )
        for _ in paths
    ]
    reader = JsonReader(duplicate_keys="last")
    for first, last in _pieces(documents):
        starts, ends = documents.starts[first:last], documents.ends[first:last]
        there = starts >= 0
        if not there.any():
            continue
        base = int(starts[there].min())
        text = documents.data[base : int(ends[there].max()) + PADDING]
        tape = reader.read(text, np.where(there, starts - base, 0), np.where(there, ends - base, 0))
        ids = {name: number for number, name in enumerate(tape.keys.names())}
        keys = [ids.get(key.encode(errors="surrogatepass"), -1) for path in paths for key in path]
        ends_of_paths = np.cumsum([0, *map(len, paths)])
        nodes = np.empty((last - first) * len(paths), np.int64)
        find_members(tape.nodes, tape.first, np.array(keys, np.int32), ends_of_paths, nodes)
        for number, member in enumerate(found):
            at = nodes[number :: len(paths)]
            some = np.flatnonzero(at >= 0)
            at, some = at[some], some + first
            tags, values = tape.nodes["tag"][at], tape.nodes["value"][at]
            texts = tags == Primitive.STRING
            odd = (tags == Primitive.DECIMAL16) | (texts & (values < 0))
            member.tags[some] = np.where(odd, UNUSUAL, tags)
            member.values[some] = np.where(texts, values + base, values)
            member.extras[some] = tape.nodes["extra"][at]
    return found


def _pieces(documents: StringColumn) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows of about _PIECE bytes."""
    rows = len(documents.starts)
    sizes = np.where(documents.starts < 0, 0, documents.ends - documents.starts)
    total = np.cumsum(sizes)
    first = 0
    while first < rows:
        before = int(total[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(total, before + _PIECE, "right")))
        yield first, last
        first = last

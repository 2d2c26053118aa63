"""Choose the keys of each row's `metadata` and their ids in it.

Rows share one sorted dictionary while it stays small: readers copy the metadata for each row. 1 KB
costs Spark nothing; 4 KB take it 1.5 times as long, 64 KB 12 times. Otherwise each row has its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from variantlake.encoding.metadata import VERSION, encode_dictionary, unsigned_size
from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32s,
    Int32sIn,
    Int64s,
    Int64sIn,
    Records,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry
from variantlake.kernels.tape.arrow_arrays import AnyArray, array_of, buffer_of
from variantlake.kernels.tape.emit import FieldIds, put_number
from variantlake.kernels.tape.keys import Keys
from variantlake.kernels.tape.nodes import (
    ARRAY,
    OBJECT,
    Nodes,
    array_size,
    object_size,
    width_of,
)
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.tape.words import PADDING, copy_bytes, store8, trailing_zeros
from variantlake.types import EMPTY_METADATA

SHARED_BYTES = 1024
"""Rows always share a dictionary of this size or less."""
SHARED_RATIO = 2
"""A larger one may have up to this many times the mean size of the rows' own dictionaries."""

_SORTED = 0x10


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The metadata of a tape's rows.

    metadata: binary array, one a row, empty for bad rows.
    ids: int32; by key id, or by node where `per_node`.
    id_count: ids are below it. id_width: bytes of an id in objects.
    """

    metadata: AnyArray
    ids: Int32s
    per_node: bool
    id_count: int

    @property
    def id_width(self) -> int:
        """Bytes of the largest id."""
        return max(1, ((self.id_count - 1).bit_length() + 7) // 8) if self.id_count else 1


def choose_dictionary(tape: Tape) -> Dictionary:
    """Decide between a shared dictionary and one for each row, and build it."""
    lengths = tape.keys.keys["length"][: tape.key_count]
    if _metadata_size(lengths[1:]) <= SHARED_BYTES:
        # It may hold keys of earlier batches too, so that batches tend to share their metadata.
        return _shared(tape, tape.ranks())
    ranks = tape.ranks()
    used, sizes, largest = _measured(tape)
    size = _metadata_size(lengths[used != 0])
    good = np.count_nonzero(tape.status == 0)
    if size <= SHARED_BYTES or size * good <= SHARED_RATIO * int(sizes[-1]):
        places, order = _places(used, ranks)
        return _shared(tape, places, order)
    return _per_row(tape, sizes, largest)


def _measured(tape: Tape) -> tuple[Bytes, Int64s, int]:
    """Return the keys in use, the bytes of each row's own metadata and their sum, the most keys."""
    seen, used = np.zeros(tape.key_count, np.int64), np.zeros(tape.key_count, np.uint8)
    sizes = np.empty(tape.rows + 1, np.int64)
    most = int(measure_rows(tape.nodes, tape.first, tape.keys.keys, seen, used, sizes))
    return used, sizes, most


def _places(used: Bytes, ranks: Int32s) -> tuple[Int32s, Int64s]:
    """Return the ids of the used keys, by key id, and these keys in the order of their names."""
    places = np.zeros(len(used), np.int32)
    order = np.flatnonzero(used)
    order = order[np.argsort(ranks[order])]
    places[order] = np.arange(len(order), dtype=np.int32)
    return places, order


def dictionary_for_parts(tape: Tape, names: Collection[str]) -> tuple[Dictionary, bytes]:
    """Return one dictionary for a tape of parts of rows, and its metadata.

    It has the keys in use and `names`, which the tape's table must hold. Its `metadata` array has
    only empty values, as parts are no rows: their ids refer to the returned metadata.
    """
    used, _, _ = _measured(tape)
    known = {name: key for key, name in enumerate(tape.keys.names()[: tape.key_count])}
    used[[known[name.encode()] for name in names]] = 1
    places, order = _places(used, tape.ranks())
    texts = tape.keys.names()
    no_offsets = np.zeros(tape.rows + 1, np.int32)
    empty = array_of(pa.binary(), tape.rows, [None, buffer_of(no_offsets), pa.py_buffer(b"")])
    dictionary = Dictionary(empty, places, per_node=False, id_count=len(order))
    return dictionary, _encode([texts[key] for key in order.tolist()])


def own_dictionaries(tape: Tape) -> Dictionary:
    """Give each row a dictionary of its own keys alone."""
    _, sizes, largest = _measured(tape)
    return _per_row(tape, sizes, largest)


def used_keys(tape: Tape) -> set[str]:
    """Return the keys that a tape's rows use; its table may hold more."""
    used, _, _ = _measured(tape)
    names = tape.keys.names()
    return {names[key].decode() for key in np.flatnonzero(used).tolist()}


def _metadata_size(lengths: Int32s) -> int:
    """Return the bytes of a dictionary of names of these lengths."""
    total = int(lengths.sum())
    return 1 + unsigned_size(max(total, len(lengths))) * (len(lengths) + 2) + total


def _encode(names: Sequence[bytes]) -> bytes:
    return encode_dictionary(names, sorted_strings=True) if names else EMPTY_METADATA


def _shared(tape: Tape, ids: Int32s, order: Int64s | None = None) -> Dictionary:
    """Make one dictionary of the keys in `order`, or of all keys that the tape may use."""
    names = tape.keys.names()
    if order is None:
        chosen = sorted(names[1 : tape.key_count])
    else:
        chosen = [names[key] for key in order.tolist()]
    metadata = _encode(chosen)
    array = repeated(metadata, tape.status == 0)
    return Dictionary(array, ids, per_node=False, id_count=len(chosen))


def repeated(metadata: bytes, good: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> AnyArray:
    """Repeat the metadata for each good row; the others get empty bytes."""
    offsets = np.zeros(len(good) + 1, np.int32)
    np.cumsum(good * np.int32(len(metadata)), out=offsets[1:])
    data = metadata * int(np.count_nonzero(good))
    return array_of(pa.binary(), len(good), [None, buffer_of(offsets), pa.py_buffer(data)])


def _per_row(tape: Tape, sizes: Int64s, largest: int) -> Dictionary:
    offsets = np.zeros(tape.rows + 1, np.int32)
    np.cumsum(sizes[:-1], out=offsets[1:])
    data = np.empty(int(sizes[-1]) + PADDING, np.uint8)
    data[-PADDING:] = 0  # consumers of the buffer can read the padding
    ids = np.zeros(tape.node_count, np.int32)
    ranks = tape.ranks()
    by_rank = np.zeros(len(ranks), np.int32)
    by_rank[ranks[1:]] = np.arange(1, len(ranks), dtype=np.int32)
    words = _words(_words(len(ranks))) + _words(len(ranks))
    write_row_metadata(
        tape.nodes, tape.first, ranks, by_rank, tape.keys.keys, tape.keys.key_bytes,
        np.zeros(words, np.int64), np.zeros(len(ranks), np.int32), offsets, data, ids,
    )  # fmt: skip
    array = array_of(pa.binary(), tape.rows, [None, buffer_of(offsets), buffer_of(data)])
    return Dictionary(array, ids, per_node=True, id_count=largest)


def _words(bits: int) -> int:
    return (bits + 63) // 64


@entry
def measure_rows(
    nodes: Nodes, first: Int64sIn, keys: Keys, seen: Int64s, used: Bytes, sizes: Int64s
) -> int:
    """Mark the keys in use and measure each row's own metadata; returns the most keys of a row.

    nodes, first: of a tape. keys: KEY. seen (int64), used (uint8): zero, one a key; used is set.
    sizes: int64, rows + 1: bytes of each row's metadata, 0 for a row without nodes, and their
    sum. Allocates nothing, never raises.
    """
    largest, everything = int64(0), int64(0)
    rows = int64(first.size) - 1
    for row in range(rows):
        count, total = int64(0), int64(0)
        begin, end = first[uint64(row)], first[uint64(row + 1)]
        for t in range(begin, end):
            key = uint64(int64(nodes[uint64(t)].key))
            if key != 0 and seen[key] != row + 1:
                seen[key] = row + 1
                used[key] = 1
                count += 1
                total += int64(keys[key].length)
        largest = max(largest, count)
        size = int64(0)
        if end > begin:
            size = 1 + width_of(max(total, count)) * (count + 2) + total
        sizes[uint64(row)] = size
        everything += size
    sizes[uint64(rows)] = everything
    return largest


@entry
def write_row_metadata(
    nodes: Nodes,
    first: Int64sIn,
    ranks: Int32sIn,
    by_rank: Int32sIn,
    keys: Keys,
    key_bytes: BytesIn,
    bitmap: Int64s,
    local: Int32s,
    offsets: Int32sIn,
    out: Bytes,
    ids: Int32s,
) -> None:
    """Write each row's sorted metadata and the ids of its nodes' keys in it.

    nodes, first, keys, key_bytes: of a tape. ranks: int32, by key id; by_rank: int32, the
    inverse. bitmap: int64, zero, a bit for each key, then one for each word of these. local: int32,
    as long as by_rank. offsets: int32, where a row's metadata starts in `out` (uint8, padded). ids:
    int32, one a node, filled. Allocates nothing, never raises.
    """
    # A row has few of the many keys: the second bitmap finds the words that it sets.
    words = (by_rank.size + 63) // 64
    for row in range(int64(first.size) - 1):
        begin, end = first[uint64(row)], first[uint64(row + 1)]
        if begin == end:
            continue
        count, total = int64(0), int64(0)
        for t in range(begin, end):
            key = int64(nodes[uint64(t)].key)
            if key != 0:
                rank = int64(ranks[uint64(key)])
                bit = int64(1) << (rank & 63)
                if bitmap[uint64(rank >> 6)] & bit == 0:
                    bitmap[uint64(rank >> 6)] |= bit
                    bitmap[uint64(words + (rank >> 12))] |= int64(1) << ((rank >> 6) & 63)
                    count += 1
                    total += int64(keys[uint64(key)].length)
        width = width_of(max(total, count))
        to = int64(offsets[uint64(row)])
        store8(out, to, VERSION | (width - 1) << 6 | (_SORTED if count > 0 else 0))
        put_number(out, to + 1, count, width)
        place = to + 1 + width
        start = place + (count + 1) * width
        string = start
        found = int64(0)
        for block in range(words, bitmap.size):
            marks = bitmap[uint64(block)]
            bitmap[uint64(block)] = 0
            while marks != 0:
                word = (int64(block) - words) * 64 + trailing_zeros(marks)
                marks &= marks - 1
                bits = bitmap[uint64(word)]
                bitmap[uint64(word)] = 0
                while bits != 0:
                    rank = word * 64 + trailing_zeros(bits)
                    bits &= bits - 1
                    local[uint64(rank)] = found
                    found += 1
                    put_number(out, place, string - start, width)
                    place += width
                    key = int64(by_rank[uint64(rank)])
                    length = int64(keys[uint64(key)].length)
                    copy_bytes(out, string, key_bytes, int64(keys[uint64(key)].start), length)
                    string += length
        put_number(out, place, string - start, width)
        for t in range(begin, end):
            key = int64(nodes[uint64(t)].key)
            if key != 0:
                ids[uint64(t)] = local[uint64(int64(ranks[uint64(key)]))]


@entry
def widen_ids(nodes: Nodes, count: int, id_width: int) -> None:
    """Recompute the lengths of the first `count` nodes for field ids of `id_width` bytes.

    nodes: NODE, complete rows, changed in place. Allocates nothing, never raises.
    """
    # Go backwards, so that children are done before their container.
    for reverse in range(count):
        at = int64(count - 1 - reverse)
        node = nodes[uint64(at)]
        if node.tag < OBJECT:
            continue
        end = at + int64(node.span)
        content = int64(0)
        child = at + 1
        while child < end:
            content += int64(nodes[uint64(child)].length)
            child += int64(nodes[uint64(child)].span)
        node.content = content
        if node.tag == ARRAY:
            node.length = array_size(int64(node.extra), content)
        else:
            node.length = object_size(int64(node.extra), content, id_width)


def nodes_for(tape: Tape, dictionary: Dictionary) -> Records:
    """Return the tape's nodes, with lengths for the dictionary's id width."""
    if dictionary.id_width == 1:
        return tape.nodes
    count = tape.node_count
    nodes = tape.nodes[:count].copy()
    widen_ids(nodes, count, dictionary.id_width)
    return nodes


def field_ids(tape: Tape, dictionary: Dictionary) -> FieldIds:
    """Return the ids in the form `emit_value` takes, with room for any object of the tape."""
    words = (dictionary.id_count + 63) // 64
    work = np.empty(words + max(dictionary.id_count, tape.node_count), np.int64)
    work[:words] = 0
    per_node = int(dictionary.per_node)
    return FieldIds(dictionary.ids, per_node, dictionary.id_width, words, work)

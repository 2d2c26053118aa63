"""Large commits read by columns: from text to Arrow without an object for each file.

A line with an `add` of the usual form goes straight into columns. Every other line goes through
`parse_line`, as in the plain reader, and so gives the same action or error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variantlake.arrays import arrow_array
from variantlake.delta.actions import actions as log_actions
from variantlake.delta.actions.actions import Action, AddFile, RemoveFile, parse_line
from variantlake.delta.actions.json_fields import FieldKind, fields_of
from variantlake.delta.log.files.logical_files import (
    ADD_FIELDS,
    DELETION_VECTOR,
    FILES,
    REQUIRED,
    STRING_MAP,
    LogicalFiles,
    files_of,
)
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.json.lines import split_lines
from variantlake.kernels.log.log_stats import find_members, gather_strings
from variantlake.kernels.tape.nodes import INT8, INT64, NULL, OBJECT, STRING
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.tape.words import PADDING
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.types import Primitive

BLOCK_BYTES = 32 << 20
"""Bytes of text that are read at once: some thousand files, which then share their memory."""


def _keys(kind: FieldKind) -> dict[str, str]:
    """Return the protocol's names of the fields of an `add` of one kind, by the column's name."""
    return {field.name: field.key for field in ADD_FIELDS.values() if field.kind is kind}


_STRINGS, _INTEGERS, _MAPS = _keys(FieldKind.STRING), _keys(FieldKind.LONG), _keys(FieldKind.MAP)
_MEMBERS = [field.key for field in fields_of(AddFile)]


def read_by_columns(pieces: Iterable[bytes], file: str) -> tuple[LogicalFiles, list[Action]]:
    """Read the adds of a log file and its other actions; removes lose their statistics and tags.

    `pieces` are of any size. Raises MalformedLog and LimitExceeded naming `file` and the line.
    """
    tables: list[LogicalFiles] = []
    others: list[Action] = []
    reader, lines_before = JsonReader(duplicate_keys="last"), 0
    for block, size in _blocks(pieces):
        text = np.frombuffer(block, np.uint8)
        lines = split_lines(text[:size])
        tape = reader.read(text, lines.starts, lines.ends)
        adds = _Adds(tape)
        usual = adds.usual & (lines.ends - lines.starts <= log_actions.MAX_LINE_BYTES)
        rows = np.flatnonzero(usual)
        if len(rows):
            tables.append(LogicalFiles.of(adds.table(rows)))
        plain: list[AddFile] = []
        for row in np.flatnonzero(~usual).tolist():
            line = bytes(block[int(lines.starts[row]) : int(lines.ends[row])])
            action = parse_line(line, file, lines_before + int(lines.numbers[row]) + 1)
            if isinstance(action, AddFile):
                plain.append(action)
            elif isinstance(action, RemoveFile):
                # These are most of its bytes, and no state of a table holds them.
                others.append(replace(action, stats=None, tags=None))
            elif action is not None:
                others.append(action)
        if plain:
            tables.append(files_of(plain))
        if len(lines.ends):
            last = int(lines.ends[-1])
            lines_before += int(lines.numbers[-1]) + block.count(b"\n", last, size)
        else:
            lines_before += block.count(b"\n", 0, size)
    return LogicalFiles.joined(tables), others


def _blocks(pieces: Iterable[bytes]) -> Iterator[tuple[bytearray, int]]:
    """Yield blocks of whole lines, of about BLOCK_BYTES, and where the lines end in them.

    At least PADDING bytes follow the end. A line that exceeds MAX_LINE_BYTES is yielded unfinished.
    """
    held: list[bytes | bytearray] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size < BLOCK_BYTES:
            continue
        block = bytearray().join(held)
        end = block.rfind(b"\n") + 1
        if size - end > log_actions.MAX_LINE_BYTES:
            end = size
        held, size = [block[end:]], size - end
        if end:
            yield block + bytes(PADDING) if size < PADDING else block, end
    if size:
        yield bytearray().join([*held, bytes(PADDING)]), size


@dataclass(frozen=True, slots=True)
class _Member:
    """One member of the `add` of each line: index of its node (-1: none), its tag (NULL: none)."""

    at: Int64s
    tags: npt.NDArray[np.uint8]


class _Adds:
    """The adds of one tape of log lines."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._names = tape.keys.names()
        paths = [("add",), *(("add", name) for name in _MEMBERS)]
        ids = {name: number for number, name in enumerate(self._names)}
        keys = [ids.get(key.encode(), -1) for path in paths for key in path]
        ends = np.cumsum([0, *map(len, paths)])
        found = np.empty(tape.rows * len(paths), np.int64)
        find_members(tape.nodes, tape.first, np.array(keys, np.int32), ends, found)
        places = found.reshape(tape.rows, len(paths))
        self._add = places[:, 0]
        self._members = {
            name: self._member(places[:, number]) for number, name in enumerate(_MEMBERS, start=1)
        }
        self.usual: Bools = self._usual()

    def _member(self, places: Int64s) -> _Member:
        at = np.ascontiguousarray(places)
        return _Member(at, np.where(at >= 0, self._tape.nodes["tag"][at], NULL).astype(np.uint8))

    def _usual(self) -> Bools:
        """Return the lines with only an `add`, which has valid fields and no deletion vector."""
        tape = self._tape
        first = tape.first[:-1]
        usual: Bools = (self._add >= 0) & (tape.status == 0)
        # The root has one member: its span is that of the add and the root's own node.
        usual &= (
            tape.nodes["span"][self._add] + 1
            == tape.nodes["span"][np.minimum(first, max(tape.node_count - 1, 0))]
        )
        members = self._members
        for column, name in _STRINGS.items():
            usual &= _is(members[name], STRING, required=column in REQUIRED)
        for column, name in _INTEGERS.items():
            tags = members[name].tags
            integer = (tags >= INT8) & (tags <= INT64)
            usual &= integer if column in REQUIRED else integer | (tags == NULL)
        for column, name in _MAPS.items():
            usual &= _is(members[name], OBJECT, required=column in REQUIRED)
            usual &= self._plain_map(members[name])
        usual &= np.isin(members["dataChange"].tags, [Primitive.TRUE, Primitive.FALSE])
        usual &= members["deletionVector"].tags == NULL
        usual &= ~((members["size"].tags != NULL) & (self._value(members["size"]) < 0))
        return usual

    def _value(self, member: _Member) -> Int64s:
        values: Int64s = np.where(member.at >= 0, self._tape.nodes["value"][member.at], 0)
        return values

    def _entries(self, member: _Member) -> tuple[Int64s, Int64s]:
        """Return the number of entries of each flat map (0 for others), and all their nodes."""
        nodes = self._tape.nodes
        is_map = member.tags == OBJECT
        counts = np.where(is_map, nodes["extra"][member.at], 0).astype(np.int64)
        flat = nodes["span"][member.at] == counts + 1
        counts[~flat] = 0
        starts = np.repeat(member.at + 1 - (np.cumsum(counts) - counts), counts)
        return counts, starts + np.arange(len(starts))

    def _plain_map(self, member: _Member) -> Bools:
        """Return the lines whose member is no map, or has only strings and nulls as values."""
        nodes = self._tape.nodes
        counts, entries = self._entries(member)
        whole = (member.tags != OBJECT) | (nodes["extra"][member.at] == counts)
        tags = nodes["tag"][entries]
        odd = np.repeat(np.arange(len(counts)), counts)[(tags != STRING) & (tags != NULL)]
        whole[odd] = False
        plain: Bools = whole
        return plain

    def table(self, rows: Int64s) -> pa.Table:
        """Return these adds as rows of FILES."""
        columns: dict[str, Any] = {}
        for column, name in _STRINGS.items():
            columns[column] = self._strings(self._members[name].at[rows])
        for column, name in _INTEGERS.items():
            member = self._members[name]
            absent = member.tags[rows] == NULL
            columns[column] = arrow_array(self._value(member)[rows], pa.int64(), mask=absent)
        for column, name in _MAPS.items():
            member = self._members[name]
            columns[column] = self._map(_Member(member.at[rows], member.tags[rows]))
        columns["deletion_vector"] = pa.nulls(len(rows), DELETION_VECTOR)
        return pa.Table.from_arrays([columns[name] for name in FILES.names], schema=FILES)

    def _strings(self, at: Int64s) -> Any:
        """Return the texts of STRING nodes; null for other nodes and for absent ones."""
        nodes = self._tape.nodes
        there = (at >= 0) & (nodes["tag"][at] == STRING)
        sizes = np.where(there, nodes["extra"][at], 0)
        offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        out = np.empty(int(offsets[-1]) + PADDING, np.uint8)
        places = np.where(there, nodes["value"][at], 0)
        gather_strings(self._tape.text, self._tape.arena, places, offsets, out)
        valid = None if there.all() else arrow_array(there).buffers()[1]
        data = pa.py_buffer(out[: int(offsets[-1])].data)
        buffers = [valid, pa.py_buffer(offsets.astype(np.int32).data), data]
        return pa.Array.from_buffers(pa.string(), len(at), buffers)

    def _map(self, member: _Member) -> Any:
        counts, entries = self._entries(member)
        names = arrow_array([name.decode() for name in self._names], pa.string())
        keys = names.take(arrow_array(self._tape.nodes["key"][entries]))
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        absent = np.append(member.tags != OBJECT, False)
        places: Any = arrow_array(offsets, pa.int32(), mask=absent)
        array: Any = pa.MapArray.from_arrays(places, keys, self._strings(entries))
        return array.cast(STRING_MAP)


def _is(member: _Member, tag: int, *, required: bool) -> Bools:
    fits: Bools = member.tags == tag
    return fits if required else fits | (member.tags == NULL)

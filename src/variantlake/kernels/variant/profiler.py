"""Count what a tape holds at each path, for schema inference."""

from __future__ import annotations

import numpy as np

from variantlake.kernels.native.declared import (
    BytesIn,
    Int32s,
    Int64s,
    Int64sIn,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, tiny
from variantlake.kernels.tape.exact import count_digits, is_exact_number, scale_of
from variantlake.kernels.tape.keys import KeyTable, mix, new_seed
from variantlake.kernels.tape.nodes import ARRAY, OBJECT, Nodes
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.variant.profile_limits import MANY_PATHS, NAMED_PATHS, ProfileLimits
from variantlake.shredding.inference.profile import MAX_PROFILE_DEPTH, Profile
from variantlake.types import Primitive

# A path's facts: a count for each primitive type by its id, then:
_OBJECTS, _ARRAYS, _ROWS, _DIGITS, _SCALE = 24, 25, 26, 27, 28
_FACTS = 32

_ROOT, _ELEMENT = 0, -1
"""Steps that are not keys."""

_COUNT, _SEED = 0, 1
"""Places in the state array: the number of known paths, and the seed of their hashes."""


@tiny
def _find_path(
    parent: int, step: int, parents: Int32s, steps: Int32s, slots: Int32s, state: Int64s
) -> int:
    """Return the number of the path `step` below `parent`; add the path if it is new."""
    mask = int64(slots.size - 1)
    slot = mix(state[_SEED], (parent << 32) ^ step) & mask
    while True:
        path = int64(slots[uint64(slot)]) - 1
        if path < 0:
            break
        if parents[uint64(path)] == parent and steps[uint64(path)] == step:
            return path
        slot = (slot + 1) & mask
    path = int64(state[_COUNT])
    state[_COUNT] = path + 1
    parents[uint64(path)] = parent
    steps[uint64(path)] = step
    slots[uint64(slot)] = path + 1
    return path


@entry
def profile_rows(
    text: BytesIn,
    arena: BytesIn,
    nodes: Nodes,
    first: Int64sIn,
    row: int,
    parents: Int32s,
    steps: Int32s,
    slots: Int32s,
    facts: Int64s,
    stack: Int64s,
    state: Int64s,
) -> int:
    """Count the values at each path, from `row` on; return the first row that is not counted.

    text, arena, nodes, first: of a tape. parents, steps: int32, one a path, which identify it.
    slots: int32, a hash table whose size is a power of two, at least twice the number of paths; 0
    is free. facts: int64, 32 a path. stack: int64, 3 for each level of MAX_PROFILE_DEPTH. state:
    int64. Stops at a row that might have more new paths than fit. Allocates nothing, never raises.
    """
    rows = int64(first.size) - 1
    while row < rows:
        at, stop = first[uint64(row)], first[uint64(row + 1)]
        # Each node may be a new path: leave the whole row until the caller has made room.
        if state[_COUNT] + stop - at > parents.size:
            break
        depth = int64(0)
        parent, kind = int64(-1), int64(0)
        end = stop
        while at < stop:
            while at == end:
                depth -= 3
                parent = stack[uint64(depth)]
                end = stack[uint64(depth + 1)]
                kind = stack[uint64(depth + 2)]
            node = nodes[uint64(at)]
            tag = int64(node.tag)
            step = int64(_ROOT)
            if kind == OBJECT:
                step = int64(node.key)
            elif kind == ARRAY:
                step = int64(_ELEMENT)
            path = _find_path(parent, step, parents, steps, slots, state)
            place = path * _FACTS
            facts[uint64(place + _ROWS)] += 1
            if tag < OBJECT:
                facts[uint64(place + tag)] += 1
                if is_exact_number(tag):
                    scale = scale_of(node)
                    digits = count_digits(text, arena, node) - scale
                    facts[uint64(place + _DIGITS)] = max(facts[uint64(place + _DIGITS)], digits)
                    facts[uint64(place + _SCALE)] = max(facts[uint64(place + _SCALE)], scale)
                at += 1
                continue
            facts[uint64(place + (_OBJECTS if tag == OBJECT else _ARRAYS))] += 1
            # Deeper values cannot be columns.
            if depth == 3 * MAX_PROFILE_DEPTH:
                at += int64(node.span)
                continue
            stack[uint64(depth)] = parent
            stack[uint64(depth + 1)] = end
            stack[uint64(depth + 2)] = kind
            depth += 3
            parent, kind = path, tag
            end = at + int64(node.span)
            at += 1
        row += 1
    return row


@entry
def enter_paths(parents: Int32s, steps: Int32s, slots: Int32s, state: Int64s) -> None:
    """Enter all known paths into `slots`, which is larger than before and all zero."""
    mask = int64(slots.size - 1)
    for path in range(state[_COUNT]):
        parent, step = int64(parents[uint64(path)]), int64(steps[uint64(path)])
        slot = mix(state[_SEED], (parent << 32) ^ step) & mask
        while slots[uint64(slot)] != 0:
            slot = (slot + 1) & mask
        slots[uint64(slot)] = path + 1


def profile(tape: Tape, limits: ProfileLimits | None = None) -> Profile:
    """Count types, digits and fields at every path of the good rows; see Profiler."""
    profiler = Profiler(limits)
    profiler.add(tape)
    return profiler.result()


class Profiler:
    """Counts types, digits and fields at every path of the good rows of many tapes.

    It counts containers below MAX_PROFILE_DEPTH levels, but not what they hold. It counts the tapes
    of one reader together and builds the tree of profiles once, as with many paths building costs
    more than counting. With `limits` it leaves out the rare ones of many paths.
    """

    def __init__(self, limits: ProfileLimits | None = None) -> None:
        self._limits = limits
        self._before = Profile()
        self._stack = np.empty(3 * MAX_PROFILE_DEPTH, np.int64)
        self._begin(None)

    def _begin(self, keys: KeyTable | None) -> None:
        self._keys = keys
        self._state: Int64s = np.array([0, new_seed()], np.int64)
        self._tables = _tables(1024)

    def add(self, tape: Tape) -> None:
        """Count the good rows of a tape."""
        if self._keys is not tape.keys:
            if self._keys is not None:
                self._before.merge(self._counted())
            self._begin(tape.keys)
        row = 0
        while True:
            parents, steps, slots, facts = self._tables
            row = profile_rows(
                tape.text, tape.arena, tape.nodes, tape.first, row,
                parents, steps, slots, facts, self._stack, self._state,
            )  # fmt: skip
            if row == tape.rows:
                return
            self._grow(int(tape.first[row + 1] - tape.first[row]))

    def result(self) -> Profile:
        """Return the profile of all tapes so far."""
        found = Profile() if self._keys is None else self._counted()
        found.merge(self._before)
        return found

    def _counted(self) -> Profile:
        """Return the profile of the tapes with the current keys."""
        if self._limits is not None:
            self._forget_rare(self._limits.most if self._before.rows else NAMED_PATHS)
        parents, steps, _, facts = self._tables
        keys = self._keys or KeyTable()
        return _build(keys, int(self._state[_COUNT]), parents, steps, facts)

    def _grow(self, more: int) -> None:
        """Make room for `more` paths."""
        self._forget_rare(MANY_PATHS)
        parents, steps, _, facts = self._tables
        if int(self._state[_COUNT]) + more <= len(parents):
            return
        grown = _tables(max(2 * len(parents), int(self._state[_COUNT]) + more))
        grown[0][: len(parents)] = parents
        grown[1][: len(steps)] = steps
        grown[3][: len(facts)] = facts
        enter_paths(grown[0], grown[1], grown[2], self._state)
        self._tables = grown

    def _forget_rare(self, many: int) -> None:
        """If there are limits and more than `many` paths, drop the rare ones."""
        count = int(self._state[_COUNT])
        if self._limits is None or self._keys is None or count <= many:
            return
        tables = self._tables
        parents, steps = tables[0][:count], tables[1][:count]
        facts = tables[3].reshape(-1, _FACTS)[:count]
        wanted = self._limits.names
        names = self._keys.names() if wanted else ()
        ids = [key for key, name in enumerate(names) if name in wanted]
        named = np.flatnonzero(np.isin(steps, ids) & (steps > 0))
        rows = np.ascontiguousarray(facts[:, _ROWS])
        stays = self._limits.kept(parents, steps == _ELEMENT, rows, named)
        number = np.cumsum(stays) - 1
        kept = _tables(max(2 * int(stays.sum()), 2 * MANY_PATHS))
        size = int(number[-1]) + 1
        kept[0][:size] = np.where(parents[stays] < 0, -1, number[parents[stays]])
        kept[1][:size] = steps[stays]
        kept[3].reshape(-1, _FACTS)[:size] = facts[stays]
        self._state[_COUNT] = size
        enter_paths(kept[0], kept[1], kept[2], self._state)
        self._tables = kept


def _tables(paths: int) -> tuple[Int32s, Int32s, Int32s, Int64s]:
    return (
        np.zeros(paths, np.int32),
        np.zeros(paths, np.int32),
        np.zeros(1 << (2 * paths).bit_length(), np.int32),
        np.zeros(paths * _FACTS, np.int64),
    )


def _build(keys: KeyTable, count: int, parents: Int32s, steps: Int32s, facts: Int64s) -> Profile:
    """Build the tree of profiles; parents precede their children in the tables."""
    profiles: list[Profile] = []
    table = facts.reshape(-1, _FACTS)[:count]
    primitives: list[dict[Primitive, int]] = [{} for _ in range(count)]
    places, ids = np.nonzero(table[:, : len(Primitive)])
    for place, primitive, seen in zip(
        places.tolist(), ids.tolist(), table[places, ids].tolist(), strict=True
    ):
        primitives[place][Primitive(primitive)] = seen
    names = keys.names_of(np.maximum(steps[:count], 0))
    for path, (parent, step, name, row) in enumerate(
        zip(parents[:count].tolist(), steps[:count].tolist(), names, table.tolist(), strict=True)
    ):
        found = Profile(
            rows=row[_ROWS],
            primitives=primitives[path],
            integer_digits=row[_DIGITS],
            scale=row[_SCALE],
            objects=row[_OBJECTS],
            arrays=row[_ARRAYS],
        )
        profiles.append(found)
        if step > 0:
            profiles[parent].fields[name.decode()] = found
        elif step == _ELEMENT:
            profiles[parent].element = found
    return profiles[0] if profiles else Profile()

"""Find keys that occur twice in one JSON object, and drop all fields but the last of each key."""

from __future__ import annotations

from variantlake.kernels.native.declared import Int64s, Records, int64, uint64
from variantlake.kernels.native.jit import helper
from variantlake.kernels.tape.keys import KEY_SERIAL


@helper
def has_duplicate(nodes: Records, parent: int, end: int, seen: Int64s, state: Int64s) -> bool:
    """Whether two children of the object nodes[parent] have the same key."""
    serial = state[KEY_SERIAL] + 1
    state[KEY_SERIAL] = serial
    child = parent + 1
    while child < end:
        node = nodes[uint64(child)]
        key = uint64(int64(node.key))
        if seen[key] == serial:
            return True
        seen[key] = serial
        child += int64(node.span)
    return False


@helper
def keep_last(nodes: Records, parent: int, end: int, seen: Int64s, state: Int64s) -> int:
    """Drop the children of nodes[parent] whose key occurs again later; return the new end.

    Sets the count and content of nodes[parent] to those of the children that remain.
    """
    # A mark identifies a child: it is above those of earlier objects, below those of later ones.
    mark = state[KEY_SERIAL] + 1 - parent
    state[KEY_SERIAL] = mark + end
    child = parent + 1
    while child < end:
        node = nodes[uint64(child)]
        seen[uint64(int64(node.key))] = mark + child
        child += int64(node.span)
    count, content = int64(0), int64(0)
    to, child = parent + 1, parent + 1
    while child < end:
        node = nodes[uint64(child)]
        span = int64(node.span)
        if seen[uint64(int64(node.key))] == mark + child:
            count += 1
            content += int64(node.length)
            for k in range(span):
                source, target = nodes[uint64(child + k)], nodes[uint64(to + k)]
                target.tag = source.tag
                target.key = source.key
                target.value = source.value
                target.extra = source.extra
                target.length = source.length
                target.span = source.span
                target.content = source.content
            to += span
        child += span
    nodes[uint64(parent)].extra = count
    nodes[uint64(parent)].content = content
    return to

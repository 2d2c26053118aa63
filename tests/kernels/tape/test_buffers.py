"""Memory of a tape is used again only when nobody holds the tape."""

from __future__ import annotations

from tests.kernels.batches import read
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.tape.buffers import BufferPool, Buffers


def test_a_tape_that_is_held_keeps_its_nodes() -> None:
    reader = JsonReader()
    first = read([b'{"a":[1,2,3]}'], reader)
    nodes = first.nodes.copy()
    others = [read([b'["x","y","z",true]'], reader) for _ in range(4)]
    assert (first.nodes == nodes).all()
    assert len({each.nodes.ctypes.data for each in [first, *others]}) == 5


def test_memory_of_a_tape_that_is_gone_is_lent_again() -> None:
    pool = BufferPool()
    buffers = pool.take()
    assert pool.take() is buffers
    tape = read([b"1"])
    buffers.lend(tape)
    assert [buffers.free] == [False]
    other = pool.take()
    assert other is not buffers
    del tape
    assert [buffers.free] == [True]
    other.lend(read([b"1"]))  # gone at once
    assert pool.take() in (buffers, other)


def test_nodes_in_use_are_kept_when_there_is_room_for_more() -> None:
    buffers = Buffers()
    nodes = buffers.grow_nodes(0, 10)
    nodes[:3].key = [7, 8, 9]
    grown = buffers.grow_nodes(3, 11)
    assert len(grown) == 20
    assert grown[:3].key.tolist() == [7, 8, 9]
    assert buffers.grow_nodes(3, 5) is grown
    assert len(buffers.grow_arena(100)) == 100
    assert len(buffers.grow_arena(50)) == 100

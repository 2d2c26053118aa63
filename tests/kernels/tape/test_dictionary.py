"""Which metadata the rows of a tape get, and the ids of their keys in it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels.batches import expected, read
from variantlake.encoding.metadata import decode_metadata, encode_metadata
from variantlake.encoding.tree import encode_value, keys_of
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.tape.dictionary import (
    SHARED_BYTES,
    Dictionary,
    choose_dictionary,
    dictionary_for_parts,
    nodes_for,
    own_dictionaries,
)
from variantlake.kernels.tape.tape import Tape
from variantlake.types import EMPTY_METADATA


def document(names: list[str]) -> bytes:
    return ("{" + ",".join(f'"{name}":0' for name in names) + "}").encode()


def rows_of(dictionary: Dictionary) -> list[Any]:
    metadata: Any = dictionary.metadata
    metadata.validate(full=True)
    rows: list[Any] = metadata.to_pylist()
    return rows


def check_ids(tape: Tape, dictionary: Dictionary, metadata: list[bytes]) -> None:
    """The id of each node with a key leads to its name in the row's metadata."""
    names = tape.keys.names()
    for row in range(tape.rows):
        keys = decode_metadata(metadata[row]).keys if metadata[row] else ()
        for at in range(tape.first[row], tape.first[row + 1]):
            key = int(tape.nodes[at].key)
            if key:
                place = dictionary.ids[at if dictionary.per_node else key]
                assert keys[place].encode() == names[key]


def test_a_small_dictionary_is_shared_by_all_rows_and_later_batches() -> None:
    reader = JsonReader()
    tape = read([document(["b", "a"]), b"{", document(["é"])], reader)
    dictionary = choose_dictionary(tape)
    shared = encode_metadata(["a", "b", "é"])
    assert rows_of(dictionary) == [shared, b"", shared]
    assert (dictionary.per_node, dictionary.id_count, dictionary.id_width) == (False, 3, 1)
    check_ids(tape, dictionary, rows_of(dictionary))
    later = choose_dictionary(read([b"1"], reader))
    assert rows_of(later) == [shared]


def test_rows_without_keys_have_empty_metadata() -> None:
    dictionary = choose_dictionary(read([b"1", b"[{}]"]))
    assert rows_of(dictionary) == [EMPTY_METADATA, EMPTY_METADATA]
    assert dictionary.id_width == 1


def test_a_large_dictionary_that_few_rows_use_is_not_shared() -> None:
    names = [[f"row{row}_{number:04}" for number in range(40)] for row in range(20)]
    tape = read([document(each) for each in names])
    dictionary = choose_dictionary(tape)
    assert dictionary.per_node
    assert rows_of(dictionary) == [encode_metadata(each) for each in names]
    check_ids(tape, dictionary, rows_of(dictionary))


def test_rows_have_dictionaries_of_their_own_whatever_many_keys_there_are() -> None:
    names = [[f"k{row * step:06}" for step in (1, 4096, 64, 77777)] for row in range(1, 5000)]
    tape = read([document(sorted(set(each), reverse=True)) for each in names])
    dictionary = choose_dictionary(tape)
    assert dictionary.per_node
    assert tape.key_count > 3 * 4096
    assert rows_of(dictionary) == [encode_metadata(sorted(set(each))) for each in names]
    check_ids(tape, dictionary, rows_of(dictionary))


def test_a_large_dictionary_that_most_rows_use_is_shared() -> None:
    names = [f"name_{number:04}" for number in range(300)]
    tape = read([document(names), document(names[:200])])
    dictionary = choose_dictionary(tape)
    metadata = encode_metadata(names)
    assert len(metadata) > SHARED_BYTES
    assert not dictionary.per_node
    assert rows_of(dictionary) == [metadata, metadata]
    assert dictionary.id_width == 2
    check_ids(tape, dictionary, rows_of(dictionary))


def test_own_dictionaries_have_the_keys_of_their_rows_alone() -> None:
    tape = read([document(["b", "a"]), b'[{"a":1},{"a":2}]', b"{", b"null"])
    dictionary = own_dictionaries(tape)
    metadata = [encode_metadata(["a", "b"]), encode_metadata(["a"]), b"", EMPTY_METADATA]
    assert rows_of(dictionary) == metadata
    check_ids(tape, dictionary, metadata)


def test_a_dictionary_for_parts_has_names_that_no_part_uses() -> None:
    reader = JsonReader()
    read([document(["z", "m", "unused"])], reader)
    tape = read([document(["c", "a"])], reader)
    dictionary, metadata = dictionary_for_parts(tape, ["z"])
    assert list(decode_metadata(metadata).keys) == ["a", "c", "z"]
    assert rows_of(dictionary) == [b""]
    check_ids(tape, dictionary, [metadata])


@pytest.mark.parametrize("count", [256, 257, 65_537])
def test_lengths_follow_the_width_of_ids(count: int) -> None:
    names = [f"{number:05}" for number in range(count)]
    text = b'{"x":[' + document(names[:2]) + b'],"y":' + document(names) + b"}"
    tape = read([text])
    dictionary = choose_dictionary(tape)
    assert dictionary.id_width == (1 if count + 2 <= 256 else 2 if count + 2 <= 65_536 else 3)
    tree = expected(text)
    assert tree is not None
    ids = {name: place for place, name in enumerate(sorted(keys_of(tree)))}
    # The twin takes the narrowest ids of each object; ours all have the width of the largest id.
    spare = (dictionary.id_width - 1) * (2 + 2)
    root = nodes_for(tape, dictionary)[0]
    assert int(root.length) == len(encode_value(tree, ids)) + spare - late_ids(names, ids)
    assert (nodes_for(tape, dictionary) is tape.nodes) == (dictionary.id_width == 1)


def late_ids(names: list[str], ids: dict[str, int]) -> int:
    """Bytes that the twin's small objects spend on ids wider than one byte."""
    root = max(ids["x"], ids["y"])
    first = max(ids[name] for name in names[:2])
    return 2 * (width_of(root) - 1) + 2 * (width_of(first) - 1)


def width_of(number: int) -> int:
    return 1 if number < 256 else 2 if number < 65_536 else 3

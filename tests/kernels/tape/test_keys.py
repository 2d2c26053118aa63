"""Names to ids: many names, and names that were made up to be slow."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from tests.kernels.batches import read
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.tape.keys import KeyTable

COUNT = 20_000

# Names of which one part differs, at each place within the words that are hashed.
PLACES = {
    "numbers": [f"{i}" for i in range(COUNT)],
    "last-bytes-of-a-word": [f"abcd{a}{b}" for a, b in itertools.product(range(10, 99), repeat=2)],
    "first-bytes": [f"{i:05}abcdefghijk" for i in range(COUNT)],
    "high-bits": [f"abcde{chr(256 + i)}z" for i in range(COUNT)],
    "length": ["a" * i for i in range(1, 2000)],
}


def longest_run(table: KeyTable) -> int:
    """Used slots in a row: the steps of the worst search."""
    free = np.flatnonzero(table.slots == 0)
    return int(np.diff(free).max(initial=0))


@pytest.mark.parametrize("name", PLACES)
def test_no_names_share_more_than_a_few_slots(name: str) -> None:
    reader = JsonReader()
    names = PLACES[name]
    document = "{" + ",".join(f'"{key}":0' for key in names) + "}"
    tape = read([document.encode()], reader)
    assert tape.status.tolist() == [0]
    assert tape.keys.names()[1:] == [key.encode() for key in names]
    assert longest_run(tape.keys) < 200


def test_names_are_those_of_the_documents_also_with_quotes_in_them() -> None:
    reader, wanted = JsonReader(), [b""]
    for more in (["a", ""], ['b"c', "d"], ["e"], ['"', '""', "f"], []):
        tape = read([json.dumps(dict.fromkeys(more)).encode()], reader)
        wanted += [name.encode() for name in more]
        assert tape.keys.names() == wanted
    ids = np.array([3, 0, 6, 1], np.int32)
    assert tape.keys.names_of(ids) == [wanted[each] for each in ids.tolist()]


def test_two_tables_put_the_same_names_in_other_slots() -> None:
    # Whoever makes up names cannot know which of them share a slot.
    document = ("{" + ",".join(f'"k{i}":0' for i in range(300)) + "}").encode()
    one, two = (read([document], JsonReader()).keys for _ in range(2))
    assert one.names() == two.names()
    assert (one.slots != two.slots).any()

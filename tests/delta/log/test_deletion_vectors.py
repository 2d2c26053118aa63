"""Deletion vectors: the examples of the protocol, files, and damage."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from tests.delta.tables import add, metadata, remove, write_log
from variantlake.delta.actions.actions import DeletionVectorDescriptor
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log.deletion_vectors import deleted_rows, vector_location
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.features import SCAN_FEATURES
from variantlake.delta.stats import z85
from variantlake.errors import MalformedLog, MissingSource, VariantLakeError
from variantlake.storage.opening import open_store
from variantlake.storage.store import LocalStore

STORE = LocalStore(Path("/mytable"))
ROWS = [3, 4, 7, 11, 18, 29]
# PROTOCOL, "JSON Example 3" and "JSON Example 1".
INLINE = DeletionVectorDescriptor(
    "i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40, len(ROWS)
)
RELATIVE = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 6, offset=4)
NAME = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def _data(rows: list[int]) -> bytes:
    return (1681511377).to_bytes(4, "little") + bytes(BitMap64(rows).serialize())


def _inline(data: bytes, cardinality: int) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor("i", z85.encode(data), len(data), cardinality)


def _store(root: Path, data: bytes, *, before: bytes = b"") -> DeletionVectorDescriptor:
    frame = len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")
    (root / "ab").mkdir(exist_ok=True)
    (root / "ab" / NAME).write_bytes(b"\x01" + before + frame + b"behind")
    return replace(RELATIVE, size_in_bytes=len(data), offset=1 + len(before))


def test_the_inline_example_of_the_protocol() -> None:
    assert deleted_rows(STORE, INLINE, 30).tolist() == ROWS


def test_the_older_form_in_several_parts() -> None:
    parts = [bytes(BitMap([1]).serialize()), bytes(BitMap([2]).serialize())]
    data = b"".join(
        [b"\x64\x39\xd3\xd0\x00\x00\x00\x02"]
        + [len(part).to_bytes(4, "big") + part for part in parts]
    )
    assert deleted_rows(STORE, _inline(data, 2), 2**33).tolist() == [1, 2**32 + 2]
    with pytest.raises(MalformedLog, match="cut"):
        deleted_rows(STORE, _inline(data[:40], 2), 2**33)


def test_the_relative_example_of_the_protocol() -> None:
    assert vector_location(STORE, RELATIVE) == f"/mytable/ab/{NAME}"
    plain = replace(RELATIVE, path_or_inline_dv=RELATIVE.path_or_inline_dv[2:])
    assert vector_location(STORE, plain) == f"/mytable/{NAME}"
    absolute = DeletionVectorDescriptor("p", f"s3://mytable/a%20b/{NAME}", 40, 6, 4)
    assert vector_location(STORE, absolute) == f"s3://mytable/a b/{NAME}"


@given(st.sets(st.integers(0, 2**34), max_size=50))
def test_rows_beyond_32_bits(rows: set[int]) -> None:
    vector = _inline(_data(sorted(rows)), len(rows))
    assert deleted_rows(STORE, vector, 2**34 + 1).tolist() == sorted(rows)


@pytest.mark.parametrize("before", [b"", b"another vector"])
def test_a_vector_in_a_file(tmp_path: Path, before: bytes) -> None:
    vector = _store(tmp_path, _data(ROWS), before=before)
    assert deleted_rows(open_store(tmp_path), vector, 30).tolist() == ROWS
    if not before:
        without = replace(vector, offset=None)
        assert deleted_rows(open_store(tmp_path), without, 30).tolist() == ROWS


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cardinality": 5}, "6 rows says 5"),
        ({"cardinality": -1}, "cannot be"),
        ({"cardinality": 31}, "cannot be"),
        ({"size_in_bytes": 0, "path_or_inline_dv": ""}, "unknown format"),
        ({"size_in_bytes": 2**40}, "bytes"),
        ({"size_in_bytes": 41}, "says 41"),
        ({"size_in_bytes": 36}, "says 36"),
        ({"path_or_inline_dv": "wi5b"}, "3 bytes says 40"),
        ({"path_or_inline_dv": "~" * 50}, "not Z85"),
        ({"path_or_inline_dv": "0" * 50}, "unknown format"),
    ],
)
def test_an_inline_vector_that_is_not_what_it_says(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(MalformedLog, match=message) as caught:
        deleted_rows(STORE, replace(INLINE, **changes), 30)  # type: ignore[arg-type]  # any field
    assert caught.value.file == "/mytable"


def test_a_bad_inline_vector_names_its_place_in_the_log(tmp_path: Path) -> None:
    fields = {
        "storageType": "i",
        "pathOrInlineDv": "0" * 50,
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    }
    whole = {"protocol": protocol}, {"metaData": metadata()}, add("a.parquet")
    changed = [remove("a.parquet"), add("a.parquet", deletionVector=fields)]
    write_log(tmp_path, [*whole], changed, [add("b.parquet")])
    snapshot = Snapshot.read(tmp_path, applies=SCAN_FEATURES)
    (vector,) = [each.deletion_vector for each in snapshot.add_files() if each.deletion_vector]
    with pytest.raises(MalformedLog, match=r"a\.parquet, of version 1: .*unknown format") as caught:
        deleted_rows(snapshot.store, vector, 30)
    assert caught.value.file == snapshot.store.join(commit_path(1))
    write_checkpoint(snapshot.store)
    for version in range(3):
        (tmp_path / commit_path(version)).unlink()
    with pytest.raises(MalformedLog, match="of the checkpoint of version 2: ") as caught:
        deleted_rows(snapshot.store, vector, 30)
    assert caught.value.file.endswith(f"{2:020d}.checkpoint.parquet")


def test_rows_beyond_the_file_are_refused() -> None:
    with pytest.raises(MalformedLog, match="beyond the file"):
        deleted_rows(STORE, INLINE, 29)


def test_damage_to_a_file_is_found(tmp_path: Path) -> None:
    vector = _store(tmp_path, _data(ROWS))
    store, path = open_store(tmp_path), tmp_path / "ab" / NAME
    whole = path.read_bytes()
    for data in (
        b"",
        b"\x02" + whole[1:],
        whole[:20],
        whole[:10] + b"\xff" + whole[11:],
        whole[:-11] + b"\xff" + whole[-10:],
    ):
        path.write_bytes(data)
        with pytest.raises(MalformedLog) as caught:
            deleted_rows(store, vector, 30)
        assert caught.value.file == str(path)
    path.write_bytes(whole)
    for offset in (2, -1, 10_000):
        with pytest.raises(VariantLakeError):
            deleted_rows(store, replace(vector, offset=offset), 30)
    path.unlink()
    with pytest.raises(MissingSource):
        deleted_rows(store, vector, 30)


@pytest.mark.parametrize("prefix", ["../", "a/", "..", "%2e"])
def test_a_prefix_never_leads_away(prefix: str) -> None:
    vector = replace(RELATIVE, path_or_inline_dv=prefix + RELATIVE.path_or_inline_dv[2:])
    with pytest.raises(MalformedLog, match="names no deletion vector"):
        vector_location(STORE, vector)


@given(st.data())
def test_damaged_bytes_give_rows_or_one_of_our_errors(data: st.DataObject) -> None:
    older = z85.decode(INLINE.path_or_inline_dv)
    seeds = [_data(ROWS), _data(list(range(500))), _data([1 << 33]), older]
    whole = bytearray(data.draw(st.sampled_from(seeds)))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, min(len(whole), 60) - 1))] = data.draw(st.integers(0, 255))
    count = data.draw(st.sampled_from([1, 6, 500]))
    try:
        rows = deleted_rows(STORE, _inline(bytes(whole), count), 600)
    except VariantLakeError:
        return
    assert rows.size == count
    assert ((rows >= 0) & (rows < 600)).all()

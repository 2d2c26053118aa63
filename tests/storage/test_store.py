"""Stores: one contract for a local disk and an object store."""

from __future__ import annotations

import errno
import os
import threading
import uuid
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from variantlake.errors import MissingSource, StoreFailed, UnsupportedFeature
from variantlake.storage.objects import ObjectStore
from variantlake.storage.opening import open_store
from variantlake.storage.store import LocalStore, Store, is_local, local_path
from variantlake.storage.unreachable import disk_failure


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "local":
        return open_store(tmp_path / "table")
    return ObjectStore("memory://table", MemoryStore())


def test_put_if_absent_writes_once(store: Store) -> None:
    assert store.put_if_absent("_delta_log/0.json", b"first")
    assert not store.put_if_absent("_delta_log/0.json", b"second")
    assert store.read("_delta_log/0.json") == b"first"


def test_put_replaces(store: Store) -> None:
    store.put("_delta_log/_last_checkpoint", b"1")
    store.put("_delta_log/_last_checkpoint", b"22")
    assert store.read("_delta_log/_last_checkpoint") == b"22"
    found = store.entry("_delta_log/_last_checkpoint")
    assert found is not None
    assert found.size == 2


def test_reading_in_parts(store: Store) -> None:
    data = bytes(range(256)) * 100
    store.put("f", data)
    assert b"".join(store.stream("f")) == data
    assert store.read_range("f", 10, 5) == data[10:15]
    with store.open("f") as file:
        assert file.read_at(len(data), 0) == data


def test_listing_is_of_one_folder_in_order_from_a_name_on(store: Store) -> None:
    for name in ("b", "a", "c", "c/inner", "d"):
        if name != "c":
            store.put(f"log/{name}", b"x")
    store.put("log2/z", b"x")
    assert [entry.path for entry in store.list_from("log")] == ["log/a", "log/b", "log/d"]
    assert [entry.path for entry in store.list_from("log", "a")] == ["log/b", "log/d"]
    assert [entry.size for entry in store.list_from("log")] == [1, 1, 1]
    assert all(entry.modified > 1_600_000_000_000 for entry in store.list_from("log"))


def test_a_folder_that_does_not_exist_is_empty(store: Store) -> None:
    assert list(store.list_from("nowhere")) == []


def test_deleting_is_final_and_may_be_repeated(store: Store) -> None:
    store.put("f", b"x")
    store.delete("f")
    store.delete("f")
    assert store.entry("f") is None


@pytest.mark.parametrize("call", ["read", "stream", "open"])
def test_an_absent_file_is_named(store: Store, call: str) -> None:
    with pytest.raises(MissingSource, match="nothing"):
        # A stream fails at its first piece, the others at once.
        next(iter(getattr(store, call)("nothing")))


def test_an_empty_file_is_there(store: Store) -> None:
    assert store.entry("f") is None
    store.put("f", b"")
    assert store.entry("f") is not None


def test_a_writer_that_is_about_to_rename_is_waited_for(tmp_path: Path) -> None:
    """As Delta Spark's local log store: its temporary file shows what comes."""
    theirs = tmp_path / "_delta_log" / f".1.json.{uuid.uuid4()}.tmp"
    theirs.parent.mkdir()
    theirs.write_bytes(b"theirs")
    timer = threading.Timer(0.1, theirs.rename, [tmp_path / "_delta_log" / "1.json"])
    timer.start()
    store = open_store(tmp_path)
    assert store.put_if_absent("_delta_log/2.json", b"ours")
    assert theirs.exists()
    assert not store.put_if_absent("_delta_log/1.json", b"ours")
    timer.join()
    assert store.read("_delta_log/1.json") == b"theirs"


def test_a_file_that_nobody_renames_is_not_waited_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("variantlake.storage.renames.RENAME_SECONDS", 0.05)
    (tmp_path / f".1.json.{uuid.uuid4()}.tmp").write_bytes(b"left")
    assert open_store(tmp_path).put_if_absent("1.json", b"ours")


def test_of_many_writers_one_wins(store: Store) -> None:
    start = threading.Barrier(8)
    wins: list[int] = []

    def write(number: int) -> None:
        start.wait()
        if store.put_if_absent("log/0", str(number).encode() * 10_000):
            wins.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = wins
    assert store.read("log/0") == str(winner).encode() * 10_000


def _names(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "log").iterdir())


def test_no_temporary_file_stays(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put_if_absent("log/0", b"x")
    store.put_if_absent("log/0", b"y")
    store.put("log/1", b"z")
    assert _names(tmp_path) == ["0", "1"]


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    store = open_store(tmp_path)
    store.put("log/1", b"z")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreFailed, match="No space left"):
        store.put_if_absent("log/0", b"x")
    assert _names(tmp_path) == ["1"]


def test_a_disk_without_hard_links_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_source: object, _target: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(UnsupportedFeature, match="hard links"):
        open_store(tmp_path).put_if_absent("log/0", b"x")
    assert _names(tmp_path) == []


@pytest.mark.parametrize("write", ["put", "put_if_absent"])
def test_a_folder_that_may_not_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    """Its permission is taken away here: root, whom no folder's mode stops, runs this as well."""

    def fail(path: Path, *_args: object, **_kinds: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", fail)
    with pytest.raises(StoreFailed, match=r"log.*: Permission denied\nHint: check the owner"):
        getattr(open_store(tmp_path), write)("log/0", b"x")


@pytest.mark.parametrize(
    ("number", "hint"),
    [(errno.ENOSPC, "free some space"), (errno.EROFS, "reading only"), (errno.EIO, "")],
)
def test_what_a_disk_refuses_has_a_hint_where_something_can_be_done(number: int, hint: str) -> None:
    found = disk_failure(OSError(number, "as Arrow says it, with the path"), "a", "not written")
    assert found.sentence() == f"a: not written: {os.strerror(number)}"
    assert hint in found.hint
    assert bool(found.hint) == bool(hint)


@pytest.mark.parametrize("write", ["put", "put_if_absent"])
def test_a_file_in_the_folder_s_place_is_named(tmp_path: Path, write: str) -> None:
    (tmp_path / "log").write_bytes(b"")
    with pytest.raises(StoreFailed, match="log"):
        getattr(open_store(tmp_path), write)("log/0", b"x")


@pytest.mark.parametrize(
    ("location", "local"),
    [
        ("/a/b", True),
        ("a/b", True),
        ("file:/a", True),
        ("file:///a%20b", True),
        ("s3://bucket/t", False),
        ("abfss://c@a/t", False),
        ("odd:name", True),
    ],
)
def test_locations(location: str, local: bool) -> None:
    assert is_local(location) is local


def test_a_file_url_is_decoded_and_a_path_is_not() -> None:
    assert local_path("file:///a%20b") == "/a b"
    assert local_path("/a%20b") == "/a%20b"


def test_a_local_store_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("table")
    assert isinstance(store, LocalStore)
    assert store.uri == str(tmp_path / "table")
    assert store.join("a/b") == str(tmp_path / "table" / "a/b")


def test_urls_are_opened_by_obstore() -> None:
    store = open_store("memory:///")
    assert isinstance(store, ObjectStore)
    assert store.put_if_absent("x", b"1")


@pytest.mark.parametrize("location", ["gopher://x/y", "s3:///"])
def test_a_url_that_nobody_knows_is_refused(location: str) -> None:
    with pytest.raises(StoreFailed, match="cannot open") as caught:
        open_store(location)
    assert "\n" not in caught.value.message

"""Autoload from and to an S3 server: listing after the last name, and objects that move."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import variantlake as vl
from tests import s3_server
from tests.autoloading.crashes import objects_watched
from tests.autoloading.sources import ids, states
from tests.delta.crashes import Moments, fail
from variantlake.autoloading import discover
from variantlake.autoloading.listing import ObjectFolder
from variantlake.errors import InvalidValue, VariantLakeError
from variantlake.storage.objects import ObjectStore

FAIL_EVERY = 23
"""Each how manieth request fails."""

URL = f"s3://{s3_server.BUCKET}"


@pytest.fixture(scope="module")
def bucket() -> Iterator[ObjectStore]:
    with s3_server.running():
        yield ObjectStore(URL)


def put(bucket: ObjectStore, name: str, *found: int) -> None:
    bucket.put(name, "".join(f'{{"id": {each}}}\n' for each in found).encode())


def test_a_prefix_is_loaded_into_a_table_of_the_same_store(bucket: ObjectStore) -> None:
    for number in range(4):
        put(bucket, f"one/in/{number}.json", number)
    put(bucket, "one/in/sub/a.json", 10)
    put(bucket, "one/in/_temporary/b.json", 11)
    put(bucket, "one/in/empty.json")
    source, table = f"{URL}/one/in/", f"{URL}/one/table"
    result = vl.autoload(table, source, name="events", max_files=3)
    assert (result.files_read, result.batches, result.files_empty) == (5, 2, 1)
    assert vl.autoload(table, source, name="events").batches == 0
    put(bucket, "one/in/empty.json", 12)
    put(bucket, "one/in/2b.json", 13)
    assert vl.autoload(table, source, name="events").files_read == 2
    assert ids(table) == [0, 1, 2, 3, 10, 12, 13]
    put(bucket, "one/in/1.json", 1, 14)
    changed = vl.autoload(table, source, name="events", on_change="reload")
    assert (changed.files_read, changed.rows_written) == (1, 2)
    assert ids(table) == [0, 1, 1, 2, 3, 10, 12, 13, 14]


def test_where_names_ascend_the_listing_begins_after_the_last(
    bucket: ObjectStore, tmp_path: Path
) -> None:
    put(bucket, "two/in/a.json", 1)
    put(bucket, "two/in/c.json", 2)
    source, table = f"{URL}/two/in/*.json", tmp_path / "table"
    starts: list[bytes | None] = []
    pages = ObjectFolder.pages

    def watched(self: ObjectFolder, after: bytes | None) -> Any:
        starts.append(after)
        return pages(self, after)

    with patch.object(ObjectFolder, "pages", watched), patch.object(discover, "MANY_FILES", 2):
        vl.autoload(table, source)
        put(bucket, "two/in/d.json", 3)
        vl.autoload(table, source)
        put(bucket, "two/in/b.json", 4)
        vl.autoload(table, source)
        assert starts == [None, b"c.json", b"d.json"]
        assert ids(table) == [1, 2, 3]
        vl.autoload(table, source, backfill=0)  # the late one
        vl.autoload(table, source)  # names have not always come in order
    assert starts[3:] == [None, None]
    assert ids(table) == [1, 2, 3, 4]


def test_objects_are_moved_and_deleted_after_the_commit(
    bucket: ObjectStore, tmp_path: Path
) -> None:
    put(bucket, "three/in/a.json", 1)
    put(bucket, "three/in/x/b.json", 2)
    source, table = f"{URL}/three/in", tmp_path / "table"
    vl.autoload(table, source, after=f"move:{URL}/three/done")
    assert not list(bucket.list_from("three/in"))
    assert bucket.entry("three/done/a.json") is not None
    assert bucket.entry("three/done/x/b.json") is not None
    put(bucket, "three/in/c.json", 3)
    vl.autoload(table, source, after="delete")
    assert bucket.entry("three/in/c.json") is None
    assert ids(table) == [1, 2, 3]
    assert set(states(table).values()) == {"loaded"}
    with pytest.raises(InvalidValue, match="found there again"):
        vl.autoload(table, source, after=f"move:{URL}/three/in/done")


@pytest.mark.parametrize("after", ["keep", "delete"])
def test_a_store_that_fails_or_loses_its_answer_leaves_each_document_once(
    bucket: ObjectStore, after: str
) -> None:
    count = number = 0
    while number <= count:
        root = f"fail-{after}-{number}"
        put(bucket, f"{root}/in/a.json", 1, 2)
        put(bucket, f"{root}/in/b.json", 3)
        source, table = f"{URL}/{root}/in", f"{URL}/{root}/table"
        vl.autoload(table, source, max_files=1, after=after)
        put(bucket, f"{root}/in/c.json", 4)
        put(bucket, f"{root}/in/d.json", 5)
        # The first time nothing fails, so that the moments are counted.
        moments = Moments(fail, number - 1)
        with objects_watched(moments), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there is no checkpoint
            with contextlib.suppress(VariantLakeError):
                vl.autoload(table, source, max_files=1, after=after)
        found = ids(table)
        assert len(found) == len(set(found))
        vl.autoload(table, source, after=after)
        assert ids(table) == [1, 2, 3, 4, 5]
        left = [entry.path for entry in bucket.list_from(f"{root}/in")]
        assert len(left) == (0 if after == "delete" else 4)
        count = count or len(moments.names)
        number += FAIL_EVERY if number else 1

"""Sources and tables in an object store, with a real S3 server as the peer."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import obstore
import pytest

import variantlake as vl
from tests import s3_server
from tests.corpora import EARTHQUAKES
from tests.ingest.test_load import documents
from variantlake.delta.log.snapshot import Snapshot
from variantlake.encoding.json import parse_json
from variantlake.errors import InvalidJson, MissingSource, StoreFailed
from variantlake.ingest import load
from variantlake.ingest.local_run import ingest_here
from variantlake.ingest.sources.find_files import pattern_regex
from variantlake.ingest.sources.signatures import Compression
from variantlake.ingest.sources.sources import expand
from variantlake.storage.objects import open_object

ROOT = f"s3://{s3_server.BUCKET}"


@pytest.fixture(scope="module")
def s3() -> Iterator[Mapping[str, str]]:
    with s3_server.running() as environment:
        yield environment


def put(name: str, data: bytes) -> str:
    store, _ = open_object(ROOT)
    obstore.put(store.backend, name, data)
    return f"{ROOT}/{name}"


def names(url: str) -> list[str]:
    return [source.path.removeprefix(ROOT + "/") for source in expand(url)]


@pytest.mark.usefixtures("s3")
def test_objects_are_found_by_name_prefix_and_pattern() -> None:
    for name in (
        "f/a.json",
        "f/b.ndjson.gz",
        "f/sub/c.jsonl",
        "f/_x.json",
        "f/_s/d.json",
        "f/e.txt",
    ):
        put(name, b"1\n")
    put("f/odd *[1].json", b"2\n")
    assert names(f"{ROOT}/f/a.json") == ["f/a.json"]
    assert names(f"{ROOT}/f/odd *[1].json") == ["f/odd *[1].json"]
    everything = ["f/a.json", "f/b.ndjson.gz", "f/odd *[1].json", "f/sub/c.jsonl"]
    assert names(f"{ROOT}/f") == names(f"{ROOT}/f/") == everything
    assert names(f"{ROOT}/f/*.json") == ["f/a.json", "f/odd *[1].json"]
    assert names(f"{ROOT}/f/**/*.json*") == ["f/a.json", "f/odd *[1].json", "f/sub/c.jsonl"]
    assert names(f"{ROOT}/f/[!a].txt") == ["f/e.txt"]
    assert names(f"{ROOT}/f/_*.json") == ["f/_x.json"]


@pytest.mark.usefixtures("s3")
@pytest.mark.parametrize("missing", ["nowhere", "nowhere/", "f/*.parquet"])
def test_missing_objects_are_named(missing: str) -> None:
    with pytest.raises(MissingSource) as caught:
        expand(f"{ROOT}/{missing}")
    assert caught.value.file == f"{ROOT}/{missing}"
    assert [source.size for source in expand(put("empty.json", b""))] == [0]


@pytest.mark.usefixtures("s3")
def test_documents_and_table_in_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = gzip.decompress(EARTHQUAKES.read_bytes())[:200_000].rpartition(b"\n")[0]
    # Read by ranges: each task asks for its own bytes.
    monkeypatch.setattr(load, "SMALLEST_TASK_BYTES", len(text) // 3)
    monkeypatch.setattr(load, "TASK_BYTES", len(text) // 3)
    monkeypatch.setattr("variantlake.storage.objects.CHUNK", 10_000)
    plain = put("quakes/plain.ndjson", text)
    packed = put("quakes/packed.ndjson", gzip.compress(text))
    assert [s.compression for s in expand(f"{ROOT}/quakes")] == [Compression.GZIP, Compression.NONE]
    for number, source in enumerate((plain, packed)):
        ingest_here(source, tmp_path / f"t{number}")
        assert documents(tmp_path / f"t{number}") == [parse_json(x) for x in text.splitlines()]
    put("lines/bad.json", text + b"\n{\n")
    result = ingest_here(
        f"{ROOT}/lines", f"{ROOT}/table", mode="quarantine", load_id="x", order_by="$.id"
    )
    assert (result.version, result.rows_written, result.rows_bad) == (0, text.count(b"\n") + 1, 1)
    assert result.quarantine is not None
    assert result.quarantine.startswith(f"{ROOT}/table/_quarantine/")
    store, folder = open_object(result.quarantine)
    (record,) = store.list_from(folder)
    assert b'"text":"{"' in store.read(record.path)
    again = ingest_here(f"{ROOT}/lines", f"{ROOT}/table", load_id="x")
    assert (again.version, again.already_loaded) == (0, True)
    assert Snapshot.read(f"{ROOT}/table").files.num_rows == result.files_written
    assert (
        vl.Table.open(f"{ROOT}/table").append(vl.json_array(put("a/a.json", b"[1, 2]"))).version
        == 1
    )


@pytest.mark.usefixtures("s3")
def test_a_failed_load_leaves_nothing_in_the_store() -> None:
    source = put("bad.json", b'{"a": 1}\n' * 10 + b"{\n")
    with pytest.raises(InvalidJson) as caught:
        ingest_here(source, f"{ROOT}/failed", max_rows_per_file=3)
    assert (caught.value.file, caught.value.line) == (source, 11)
    store, _ = open_object(ROOT)
    assert [meta for page in obstore.list(store.backend, "failed") for meta in page] == []


def test_a_store_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ENDPOINT": "http://127.0.0.1:9",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setitem(os.environ, name, value)
    with pytest.raises(StoreFailed) as caught:
        expand("s3://nowhere-at-all/a.json")
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("a/*.json", ["a/b.json", "a/.json"], ["a/b/c.json", "a/bjson", "ab.json"]),
        ("**/x?", ["x1", "a/x1", "a/b/xé"], ["a/x", "a/x12"]),
        ("a/**", ["a/b", "a/b/c"], ["b/a"]),
        ("[a-c]+[!.].x", ["a+1.x"], ["d+1.x", "a+..x", "aa1.x"]),
        ("[]]\\d", ["]\\d"], ["]1"]),
    ],
)
def test_patterns_mean_what_they_mean_in_a_shell(
    pattern: str, matching: list[str], others: list[str]
) -> None:
    import re

    found = [name for name in matching + others if re.fullmatch(pattern_regex(pattern), name)]
    assert found == matching

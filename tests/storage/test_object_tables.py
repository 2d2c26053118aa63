"""Everything that reads a table or a file, on a real S3 server as on a disk."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import obstore
import pytest
from pyroaring import BitMap64

import variantlake as vl
from tests import s3_server
from tests.cli.command import run
from variantlake.delta.stats import z85
from variantlake.storage.objects import open_object

ROOT = f"s3://{s3_server.BUCKET}"
QUERY = "SELECT event:n::bigint AS n FROM t WHERE event:n::bigint >= 95"
VECTOR = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


@pytest.fixture(scope="module")
def s3() -> Iterator[Mapping[str, str]]:
    with s3_server.running() as environment:
        yield environment


@pytest.fixture(scope="module")
def table(s3: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """100 documents in two files of a folder with odd names, and a checkpoint."""
    assert s3
    lines = tmp_path_factory.mktemp("lines") / "x.ndjson"
    lines.write_text("".join(f'{{"n": {n}, "s": "v{n}"}}\n' for n in range(100)))
    location = f"{ROOT}/odd name%20/t"
    made = vl.Table.create(location, "event VARIANT", properties={"delta.checkpointInterval": "2"})
    made.append(vl.ndjson(lines), max_rows_per_file=50)
    made.append(vl.ndjson(lines))
    return location


def numbers(location: str, where: str | None = None) -> list[int]:
    found = vl.Table.open(location).scan(["event:n::bigint AS n"], where).to_arrow()
    values: list[Any] = found["n"].to_pylist()
    return sorted(values)


def test_a_scan_skips_and_reads(table: str) -> None:
    assert numbers(table) == sorted([*range(100), *range(100)])
    assert numbers(table.replace("s3:", "s3a:"), "event:n::bigint >= 95") == sorted(
        [*range(95, 100)] * 2
    )
    report = vl.Table.open(table).scan(["event"], "event:n::bigint >= 95").explain().to_dict()
    assert report["row_groups"]["read"] == 2


@pytest.mark.parametrize("storage", ["u", "p", "i"])
def test_rows_that_a_vector_deletes_are_gone(table: str, storage: str) -> None:
    opened = vl.Table.open(table)
    (add, *_) = (
        each
        for each in opened.snapshot.add_files()
        if each.stats and '"numRecords":50' in each.stats
    )
    store, folder = open_object(table)
    data = (1681511377).to_bytes(4, "little") + bytes(BitMap64([0, 7]).serialize())
    frame = len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")
    obstore.put(store.backend, f"{folder}/ab/{VECTOR}", b"\x01" + frame)
    where = {
        "u": "ab^-aqEH.-t@S}K{vb[*k^",
        "p": f"{ROOT}/odd%20name%2520/t/ab/{VECTOR}",
        "i": z85.encode(data),
    }[storage]
    vector = {"storageType": storage, "pathOrInlineDv": where, "cardinality": 2}
    vector |= {"sizeInBytes": len(data)} | ({} if storage == "i" else {"offset": 1})
    copied = f"{ROOT}/vectors/{storage}"
    vl.Table.create(copied, "event VARIANT")
    target, name = open_object(copied)
    log = f"{name}/_delta_log/{0:020}.json"
    actions = [json.loads(line) for line in target.read(log).decode().splitlines()]
    for action in actions:
        if "protocol" in action:
            for features in ("readerFeatures", "writerFeatures"):
                action["protocol"][features].append("deletionVectors")
    actions.append(
        {
            "add": {
                "path": f"{ROOT}/odd%20name%2520/t/{add.path}",
                "partitionValues": {},
                "size": add.size,
                "modificationTime": 0,
                "dataChange": True,
                "deletionVector": vector,
            }
        }
    )
    obstore.put(target.backend, f"{name}/ab/{VECTOR}", b"\x01" + frame)
    target.delete(log.replace(".json", ".crc"))
    obstore.put(target.backend, log, "\n".join(map(json.dumps, actions)).encode())
    assert numbers(copied) == [n for n in range(50) if n not in (0, 7)]


def test_one_file_by_its_url(table: str) -> None:
    (add, *_) = vl.Table.open(table).snapshot.add_files()
    url = f"{table}/{add.path}"
    rows = vl.parquet.read_table(url)
    assert rows.num_rows in (50, 100)
    assert list(vl.parquet.check_file(url)) == []
    assert vl.parquet.inspect_file(url).num_rows == rows.num_rows
    assert vl.parquet.read_paths(url, {"n": "event:n::bigint"}).num_rows == rows.num_rows


def test_the_commands(
    table: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (add, *_) = vl.Table.open(table).snapshot.add_files()
    file = f"{table}/{add.path}"
    for source in (table, file):
        for command in ("inspect", "check", "cat"):
            done = run(monkeypatch, capfd, command, source)
            assert done.code == 0, done.err
    assert run(monkeypatch, capfd, "history", table).code == 0
    for engine in ("local", "auto"):
        done = run(monkeypatch, capfd, "query", table, QUERY, "--engine", engine, "--json")
        assert done.code == 0, done.err
        assert sorted(json.loads(line)["n"] for line in done.out.splitlines()) == sorted(
            [*range(95, 100)] * 2
        )
    assert "local engine" in run(monkeypatch, capfd, "query", table, QUERY).err
    assert run(monkeypatch, capfd, "inspect", f"{ROOT}/nowhere").code == 1
    assert run(monkeypatch, capfd, "check", f"{ROOT}/nowhere.parquet").code == 1


def test_files_are_converted_from_a_store_into_it_and_out_of_it(table: str, tmp_path: Path) -> None:
    store, folder = open_object(table)
    for number, add in enumerate(vl.Table.open(table).snapshot.add_files()):
        data = store.read(f"{folder}/{add.path}")
        obstore.put(store.backend, f"raw/{number}.parquet", data)
    expected = numbers(table)
    done = vl.convert(f"{ROOT}/raw", f"{ROOT}/raw")
    assert {step.action.value for step in done.steps} == {"add"}
    assert numbers(f"{ROOT}/raw") == expected
    files = [step.path for step in done.steps]
    for target in (str(tmp_path / "t"), f"{ROOT}/copied"):
        assert {step.action.value for step in vl.convert(target, files).steps} == {"copy"}
        assert numbers(target) == expected
    vl.convert(f"{ROOT}/rewritten", files, rewrite=True)
    assert numbers(f"{ROOT}/rewritten") == expected
    with pytest.raises(vl.VariantLakeError, match="is a Delta table"):
        vl.convert(str(tmp_path / "u"), table)


def test_files_without_tags_are_read_by_their_footers_and_analyzed(table: str) -> None:
    location = f"{ROOT}/bare"
    vl.Table.create(location, "event VARIANT")
    store, name = open_object(location)
    source = next(iter(vl.Table.open(table).snapshot.add_files()))
    add = {
        "path": f"{ROOT}/odd%20name%2520/t/{source.path}",
        "partitionValues": {},
        "size": source.size,
        "modificationTime": 0,
        "dataChange": True,
    }
    log = f"{name}/_delta_log/{1:020}.json"
    obstore.put(store.backend, log, json.dumps({"add": add}).encode())
    bare = vl.Table.open(location)
    report = bare.scan(["event:n::bigint AS n"], "event:n::bigint > 1000").explain().to_dict()
    assert report["files"]["read"] == 0  # by the footer's bounds
    assert bare.analyze().files_completed == 1

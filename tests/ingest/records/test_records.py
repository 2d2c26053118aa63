"""Loads of CSV, Avro, MessagePack and BSON: types, bad records, hostile files."""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import gzip
import importlib
import io
import json
import tempfile
import uuid
import zlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.cli.command import run
from variantlake.errors import (
    InvalidValue,
    LimitExceeded,
    MalformedFile,
    MissingDependency,
    UnsupportedFeature,
)
from variantlake.ingest.records.records import record_tapes
from variantlake.ingest.sources.sources import Documents
from variantlake.storage.store import LocalStore
from variantlake.writing.options.row_policies import BadRows
from variantlake.writing.quarantine import BadRowLog

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678000, dt.UTC)


def loaded(place: Path, file: Path, **options: Any) -> list[Any]:
    table = vl.Table.create(place / "t", "event VARIANT", exist_ok=True)
    table.append(file, **options)
    return [row["event"] for row in table.scan()]


def quarantined(place: Path) -> list[dict[str, Any]]:
    files = (place / "t" / "_quarantine").rglob("*.ndjson")
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_csv_has_exact_values(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text(
        '\ufeffid,"na,me",n\n1,"a ""q"",\nb",1.10\n007,,""\n-3,true,1e3\n'
        "99999999999999999999,é,0.1\n"
    )
    assert loaded(tmp_path, file) == [
        {"id": 1, "na,me": 'a "q",\nb', "n": Decimal("1.10")},
        {"id": "007", "n": ""},
        {"id": -3, "na,me": True, "n": 1000.0},
        {"id": Decimal(99999999999999999999), "na,me": "é", "n": Decimal("0.1")},
    ]


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8) | st.one_of(
    st.integers().map(str), st.decimals(allow_nan=False, allow_infinity=False).map(str)
)


@settings(max_examples=25)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
def test_no_cell_of_csv_loses_anything(rows: list[tuple[str, str]]) -> None:
    """Each is the same text, or a number of the same value."""
    with io.StringIO(newline="") as text:
        csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("a", "b"), *rows])
        data = text.getvalue().encode()
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "x.csv").write_bytes(data)
        found = loaded(Path(name), Path(name) / "x.csv")
    for (a, b), value in zip(rows, found, strict=True):
        for cell, member in ((a, value["a"]), (b, value["b"])):
            if isinstance(member, str):
                assert member == cell
            elif isinstance(member, bool):
                assert cell == str(member).lower()
            else:
                assert Decimal(cell) == Decimal(str(member)), cell


def test_bad_rows_of_csv(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_bytes(b"id,n\n1,2\n1,2,3\n4,\xff\n5,6\n")
    with pytest.raises(InvalidValue, match="3 cells") as caught:
        loaded(tmp_path, file)
    assert (caught.value.file, caught.value.line) == (str(file), 3)
    assert loaded(tmp_path, file, mode="quarantine") == [{"id": 1, "n": 2}, {"id": 5, "n": 6}]
    assert [each.get("text") for each in quarantined(tmp_path)] == ["1,2,3", None]
    other = tmp_path / "null"
    assert sorted(map(str, loaded(other, file, mode="null")))[:2] == ["None", "None"]
    with pytest.raises(LimitExceeded):
        loaded(other, file, mode="quarantine", max_bad=1)
    file.write_bytes(b"id,n\n1,\xdd,3\n2,b\n")  # both at once
    assert loaded(tmp_path / "both", file, mode="quarantine") == [{"id": 2, "n": "b"}]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"a,a\n1,2\n", "two columns have the name 'a'"),
        (b"\xff\n1\n", "names of the columns"),
        (b'a,b\n1,"cut\n2,x\n', "ends within a quoted cell"),
        (b'a\n"cut', "ends within a quoted cell"),
        (b'a,b\n1,2,3\n1,"', "ends within a quoted cell"),
    ],
)
def test_csv_that_is_refused(tmp_path: Path, data: bytes, error: str) -> None:
    (tmp_path / "x.csv").write_bytes(data)
    with pytest.raises(MalformedFile, match=error):
        loaded(tmp_path, tmp_path / "x.csv")


def test_csv_in_other_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("id\n1\n")
    (folder / "b.tsv.gz").write_bytes(gzip.compress(b"id\tn\n2\t3\n"))
    (folder / "empty.csv").write_text("")
    (folder / "c.txt").write_text("id\n9\n")
    assert loaded(tmp_path, folder, format="csv") == [{"id": 1}, {"id": 2, "n": 3}]
    auto = vl.Table.create(tmp_path / "auto", "event VARIANT")
    auto.autoload(folder, settle=0, format="csv")
    auto.autoload(folder, settle=0, format="csv")
    assert [row["event"] for row in auto.scan()] == [{"id": 1}, {"id": 2, "n": 3}]
    done = run(monkeypatch, capfd, "ingest", folder, tmp_path / "cli", "--format", "csv")
    assert done.code == 0, done.err
    assert vl.profile(folder / "b.tsv.gz", format="csv").shredding == "id BIGINT, n BIGINT"
    assert vl.profile(Documents.of(folder / "a.csv", "csv"), sample_rows=1).rows == 1


def avro_file(place: Path, schema: Any, rows: list[Any], **options: Any) -> Path:
    fastavro = pytest.importorskip("fastavro")
    with (place / "x.avro").open("wb") as file:
        fastavro.writer(file, schema, rows, **options)
    return place / "x.avro"


def record(**fields: Any) -> dict[str, Any]:
    described = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "r", "fields": described}


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_avro_keeps_types(tmp_path: Path, codec: str) -> None:
    schema = record(
        d={"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        t={"type": "long", "logicalType": "timestamp-micros"},
        l={"type": "long", "logicalType": "local-timestamp-millis"},
        day={"type": "int", "logicalType": "date"},
        u={"type": "string", "logicalType": "uuid"},
        b=["null", "bytes"],
        m={"type": "map", "values": "double"},
        a={"type": "array", "items": ["null", "string"]},
        e={"type": "enum", "name": "e", "symbols": ["X", "Y"]},
    )
    row = {
        "d": Decimal("1.10"), "t": NOW, "l": NOW.replace(tzinfo=None), "day": NOW.date(),
        "u": uuid.UUID(int=7), "b": b"\x00\xff", "m": {"x": 0.1}, "a": ["q", None], "e": "Y",
    }  # fmt: skip
    file = avro_file(tmp_path, schema, [row] * 3, codec=codec)
    assert loaded(tmp_path, file) == [row] * 3


def test_a_bad_record_of_avro_ends_its_block(tmp_path: Path) -> None:
    file = avro_file(tmp_path, record(s="string"), [{"s": "abc"}] * 4)
    data = bytearray(file.read_bytes())
    data[data.rindex(b"\x06abc\x06abc\x06abc") :][:0]
    at = data.rindex(b"\x06abc\x06abc")
    data[at] = 0x7F  # a length beyond the block
    file.write_bytes(data)
    with pytest.raises(InvalidValue, match="the 1 behind it") as caught:
        loaded(tmp_path, file)
    assert caught.value.row == 2
    assert loaded(tmp_path, file, mode="quarantine") == [{"s": "abc"}] * 2
    assert quarantined(tmp_path)[0]["row"] == 2
    file.write_bytes(data[:-20])
    with pytest.raises(MalformedFile, match="damaged or cut"):
        loaded(tmp_path, file, mode="quarantine")


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        (record(a={"type": "array", "items": "null"}), "items without bytes"),
        (record(a={"type": "array", "items": record() | {"name": "z"}}), "items without bytes"),
        (record(a="null"), "have no bytes"),
        (record(n=["null", "r"]), "in itself"),
        (
            record(i=record(n=["null", "ns.i"]) | {"name": "i"}) | {"namespace": "ns"},
            "in itself",
        ),
    ],
)
def test_avro_schemas_that_need_no_bytes(tmp_path: Path, schema: Any, error: str) -> None:
    with pytest.raises(UnsupportedFeature, match=error):
        loaded(tmp_path, avro_file(tmp_path, schema, []))


def test_a_block_of_avro_that_unpacks_to_more_than_memory(tmp_path: Path) -> None:
    file = avro_file(tmp_path, record(s="bytes"), [{"s": b"x"}], codec="deflate")
    data = file.read_bytes()
    sync = data[-16:]
    head = data[: data.index(sync) + 16]
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    zeros = b"".join(packer.compress(bytes(1 << 20)) for _ in range(130)) + packer.flush()
    file.write_bytes(head + b"\x02" + _zigzag(len(zeros)) + zeros + sync)
    with pytest.raises(LimitExceeded, match="unpacked"):
        loaded(tmp_path, file)
    file.write_bytes(head + b"\x02" + _zigzag(1 << 60))
    with pytest.raises(LimitExceeded, match="a block has more"):
        loaded(tmp_path, file)


def _zigzag(number: int) -> bytes:
    number <<= 1
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def test_messagepack(tmp_path: Path) -> None:
    msgpack = pytest.importorskip("msgpack")
    values = [
        {"a": 1, "t": msgpack.Timestamp(5, 6000), "b": b"x"},
        {1: 2},
        msgpack.ExtType(5, b"x"),
        [1, None, 2.5],
        {"s": b"\xff".decode(errors="surrogateescape")},
    ]
    file = tmp_path / "x.msgpack"
    packed = [msgpack.packb(each, unicode_errors="surrogateescape") for each in values]
    file.write_bytes(b"".join(packed) + b"\x82\xa1a\x01\xa1a\x02")
    moment = dt.datetime(1970, 1, 1, 0, 0, 5, 6, dt.UTC)
    found = loaded(tmp_path, file, mode="quarantine")
    assert found == [{"a": 1, "t": moment, "b": b"x"}, [1, None, 2.5]]
    starts = [sum(map(len, packed[:n])) for n in (1, 2, 4, 5)]
    assert [(each["row"], each["offset"]) for each in quarantined(tmp_path)] == list(
        zip((1, 2, 4, 5), starts, strict=True)
    )
    with pytest.raises(InvalidValue, match="is not a string") as caught:
        loaded(tmp_path, file)
    assert caught.value.row == 1


def test_a_length_in_the_header_of_avro_that_no_memory_holds(tmp_path: Path) -> None:
    pytest.importorskip("fastavro")
    (tmp_path / "x.avro").write_bytes(b"Obj\x01\x02" + b"\xfe" + b"\xff" * 8 + b"\x01")
    with pytest.raises(MalformedFile, match="not an Avro file"):
        loaded(tmp_path, tmp_path / "x.avro")


def test_a_key_of_messagepack_that_is_an_array(tmp_path: Path) -> None:
    pytest.importorskip("msgpack")
    (tmp_path / "x.mpk").write_bytes(b"\x01\x81\x91\x01\x02\x03")  # 1, {[1]: 2}, 3
    assert loaded(tmp_path, tmp_path / "x.mpk", mode="quarantine") == [1, 3]
    with pytest.raises(InvalidValue, match="is not a string"):
        loaded(tmp_path, tmp_path / "x.mpk")


@pytest.mark.parametrize(
    "data", [b"\x92\x01", b"\x81\xa1a", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\x91" * 5000 + b"\xc0"]
)
def test_broken_messagepack(tmp_path: Path, data: bytes) -> None:
    pytest.importorskip("msgpack")
    (tmp_path / "x.mpk").write_bytes(b"\x01" + data)
    with pytest.raises(MalformedFile) as caught:
        loaded(tmp_path, tmp_path / "x.mpk", mode="quarantine")
    assert (caught.value.row, caught.value.offset) == (1, 1)


def test_bson(tmp_path: Path) -> None:
    bson = pytest.importorskip("bson")
    documents = [
        {
            "_id": bson.ObjectId("0123456789abcdef01234567"), "d": bson.Decimal128("1.50"),
            "t": NOW, "i": bson.Int64(5), "u": bson.Binary.from_uuid(uuid.UUID(int=7)), "b": b"x",
            "r": bson.Regex("a", "i"), "ts": bson.Timestamp(1, 2), "n": None, "f": 0.5,
        },
        {"c": bson.Code("x")},
        {"m": bson.MinKey()},
        {"x": [{"y": True}]},
    ]  # fmt: skip
    encoded = [bson.encode(each) for each in documents]
    twice = encoded[3].replace(b"y", b"y")
    file = tmp_path / "x.bson"
    file.write_bytes(b"".join(encoded) + twice)
    assert loaded(tmp_path, file, mode="quarantine") == [
        {
            "_id": "0123456789abcdef01234567", "d": Decimal("1.50"), "t": NOW, "i": 5,
            "u": uuid.UUID(int=7), "b": b"x", "r": {"pattern": "a", "options": "i"},
            "ts": {"t": 1, "i": 2}, "n": None, "f": 0.5,
        },
        {"x": [{"y": True}]},
        {"x": [{"y": True}]},
    ]  # fmt: skip
    assert [(each["row"], each["offset"]) for each in quarantined(tmp_path)] == [
        (1, len(encoded[0])),
        (2, len(encoded[0]) + len(encoded[1])),
    ]


@pytest.mark.parametrize(
    "data",
    [b"\x05\x00\x00", b"\xff\xff\xff\x7f", b"\x04\0\0\0", b"\xff\xff\xff\xff\0", b"\x09\0\0\0\0"],
)
def test_broken_bson(tmp_path: Path, data: bytes) -> None:
    pytest.importorskip("bson")
    (tmp_path / "x.bson").write_bytes(b"\x05\0\0\0\0" + data)
    with pytest.raises(MalformedFile) as caught:
        loaded(tmp_path, tmp_path / "x.bson", mode="quarantine")
    assert (caught.value.row, caught.value.offset) == (1, 5)


def test_a_key_of_bson_that_comes_twice_and_bytes_that_are_none(tmp_path: Path) -> None:
    pytest.importorskip("bson")
    twice = b"\x13\0\0\0\x10a\0\x01\0\0\0\x10a\0\x02\0\0\0\0"
    junk = b"\x09\0\0\0\x77a\0\0\0"
    (tmp_path / "x.bson").write_bytes(twice + junk + b"\x05\0\0\0\0")
    assert loaded(tmp_path, tmp_path / "x.bson", mode="quarantine") == [{}]
    reasons = [each["reason"] for each in quarantined(tmp_path)]
    assert "twice" in reasons[0]
    assert "not BSON" in reasons[1]


@given(st.binary(max_size=60), st.sampled_from(["csv", "avro", "msgpack", "bson"]))
def test_no_bytes_end_in_another_error(data: bytes, form: str) -> None:
    pytest.importorskip({"csv": "csv", "avro": "fastavro"}.get(form, form))
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "x").write_bytes(b"Obj\x01" + data if form == "avro" else data)
        (source,) = Documents.of(Path(name) / "x", form).sources
        with (
            contextlib.suppress(MalformedFile, LimitExceeded, UnsupportedFeature),
            BadRowLog(BadRows.NULL, LocalStore(Path(name)), "", 0) as bad_rows,
        ):
            for _ in record_tapes(source, bad_rows):
                pass


def test_a_library_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., Any] = importlib.import_module

    def missing(name: str, package: str | None = None) -> Any:
        if name in ("fastavro", "msgpack", "bson"):
            raise ImportError(name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", missing)
    for form in ("avro", "msgpack", "bson"):
        (tmp_path / f"x.{form}").write_bytes(b"\x00")
        with pytest.raises(MissingDependency, match="is not installed") as caught:
            loaded(tmp_path, tmp_path / f"x.{form}")
        assert f"variantlake[{form}]" in caught.value.hint

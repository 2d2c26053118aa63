"""Bad documents in all three ways: the load fails, they go to a quarantine, or become NULL."""

from __future__ import annotations

import base64
import gzip
import json
import os
from pathlib import Path
from typing import Any, Literal

import orjson
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.encoding.spark_json import LENIENT
from tests.ingest import bad_input
from tests.ingest.test_load import documents
from tests.strategies import MORE
from variantlake.delta.log.snapshot import Snapshot
from variantlake.encoding.json import parse_json
from variantlake.errors import (
    InvalidJson,
    InvalidSchema,
    InvalidValue,
    LimitExceeded,
    VariantLakeError,
)
from variantlake.ingest import load
from variantlake.ingest.encode.documents import read_tapes
from variantlake.ingest.local_run import ingest_here
from variantlake.ingest.sources import blocks
from variantlake.ingest.sources.sources import expand, split_sources
from variantlake.jobs.stop_flag import LoadStopped
from variantlake.storage.store import LocalStore
from variantlake.writing.options.row_policies import BadRows
from variantlake.writing.quarantine import BadRowLog

LINES = {
    "invalid UTF-8": b'{"a": "\xff"}',
    "lone surrogate": b'{"a": "\\ud800"}',
    "NUL byte in a string": b'{"a": "\x00"}',
    "NUL byte between documents": b"\x00",
    "duplicate keys": b'{"a": 1, "a": 2}',
    "cut document": b'{"a": [1, 2',
    "text behind the document": b"{} {}",
    "number that is none": b"01",
    "nesting beyond the limit": b"[" * 1001 + b"]" * 1001,
}
"""What no Variant can hold, each a line."""

FINE = {
    "NUL escaped": b'{"a": "\\u0000"}',
    "surrogate pair": b'"\\ud83d\\ude00"',
    "the greatest nesting": b"[" * 1000 + b"]" * 1000,
    "blanks around": b" \t{} \t\r",
}
"""What looks odd and is a document."""


def quarantined(folder: str | None) -> list[dict[str, Any]]:
    assert folder is not None
    return [
        json.loads(line)
        for path in sorted(Path(folder).glob("*.ndjson"))
        for line in path.read_bytes().splitlines()
    ]


def text_of(record: dict[str, Any]) -> bytes:
    return record["text"].encode() if "text" in record else base64.b64decode(record["base64"])


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", LINES)
def test_a_bad_line_is_raised_kept_or_null(tmp_path: Path, name: str, ending: bytes) -> None:
    source = tmp_path / "a.ndjson"
    # A byte order mark, blank lines, and a last line without its end are not documents.
    lines = [b"\xef\xbb\xbf1", b"", LINES[name], b"  ", b"2", LINES[name], b"3"]
    source.write_bytes(ending.join(lines))
    with pytest.raises(VariantLakeError) as caught:
        ingest_here(source, tmp_path / "strict")
    assert not (tmp_path / "strict").exists()
    with pytest.raises(VariantLakeError) as alone:
        parse_json(LINES[name] + ending)
    assert alone.value.message == caught.value.message
    assert alone.value.column == caught.value.column
    result = ingest_here(source, tmp_path / "quarantine", mode="quarantine")
    assert (result.rows_written, result.rows_bad, result.version) == (3, 2, 0)
    assert documents(tmp_path / "quarantine") == [parse_json(text) for text in "123"]
    records = quarantined(result.quarantine)
    assert [record["line"] for record in records] == [3, 6]
    assert [text_of(record) for record in records] == [LINES[name]] * 2
    for record in records:
        assert record["reason"] == caught.value.message
        assert (record["file"], record["column"]) == (str(source), caught.value.column)
        assert source.read_bytes().startswith(LINES[name], record["offset"])
    result = ingest_here(source, tmp_path / "null", mode="null")
    assert (result.rows_written, result.rows_bad, result.quarantine) == (5, 2, None)
    one, two, three = map(parse_json, "123")
    assert documents(tmp_path / "null") == [one, None, two, None, three]


@pytest.mark.parametrize("mode", ["strict", "quarantine", "null"])
@pytest.mark.parametrize("name", FINE)
def test_odd_documents_are_good_in_every_mode(
    tmp_path: Path, name: str, mode: Literal["strict", "quarantine", "null"]
) -> None:
    (tmp_path / "a").write_bytes(FINE[name])
    result = ingest_here(tmp_path / "a", tmp_path / "t", mode=mode)
    assert (result.rows_written, result.rows_bad, result.quarantine) == (1, 0, None)
    assert documents(tmp_path / "t") == [parse_json(FINE[name].strip())]
    assert not (tmp_path / "t" / "_quarantine").exists()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_positions_are_right_across_blocks_splits_and_files(
    tmp_path: Path, pack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("variantlake.ingest.load.SMALLEST_TASK_BYTES", 2000)
    monkeypatch.setattr("variantlake.ingest.load.TASK_BYTES", 2000)
    monkeypatch.setattr(blocks.read_blocks, "__kwdefaults__", {"block_bytes": 300})
    expected = []
    for name in "ab":
        lines = [f'{{"é": {i}' + ("" if i % 7 == 3 else "}") for i in range(900)]
        lines[1::5] = [""] * len(lines[1::5])
        (tmp_path / name).write_bytes(pack("\n".join(lines).encode()))
        expected += [
            (str(tmp_path / name), number, line)
            for number, line in enumerate(lines, start=1)
            if line and not line.endswith("}")
        ]
    result = ingest_here([tmp_path / "a", tmp_path / "b"], tmp_path / "t", mode="quarantine")
    records = quarantined(result.quarantine)
    assert [(r["file"], r["line"], r["text"]) for r in records] == expected
    assert {r["column"] - len(r["text"]) for r in records} == {1}
    assert result.rows_bad == len(expected)


@pytest.mark.parametrize("mode", ["quarantine", "null"])
def test_a_line_over_the_limit_is_noted_and_not_kept(
    tmp_path: Path, mode: Literal["quarantine", "null"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "MAX_VALUE_BYTES", 100)
    (tmp_path / "a").write_bytes(b'1\n"' + b"x" * 200 + b'"\n{\n2')
    result = ingest_here(tmp_path / "a", tmp_path / "t", mode=mode)
    assert result.rows_bad == 2
    if mode == "null":
        one, two = map(parse_json, "12")
        assert documents(tmp_path / "t") == [one, None, None, two]
        return
    long, cut = quarantined(result.quarantine)
    assert (long["line"], long["column"], long["offset"], "text" in long) == (2, 1, 2, False)
    assert "100 bytes" in long["reason"]
    assert (cut["line"], cut["text"]) == (3, "{")


def test_documents_up_to_128_mib_are_taken(tmp_path: Path) -> None:
    size = (128 << 20) - 5  # with the string's own header, exactly the limit
    with (tmp_path / "a").open("wb") as file:
        for length in (size, size + 1):
            file.write(b'"' + b"x" * length + b'"\n')
        file.write(b"1")
    result = ingest_here(tmp_path / "a", tmp_path / "t", mode="null", shredding="VARIANT")
    assert (result.rows_written, result.rows_bad) == (3, 1)
    rows = documents(tmp_path / "t")
    assert [None if row is None else len(row.value) for row in rows] == [size + 5, None, 2]


def test_a_load_of_bad_documents_alone_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("{\n")
    result = ingest_here(tmp_path / "a", tmp_path / "t", mode="quarantine")
    assert (result.version, result.rows_written, result.files_written, result.rows_bad) == (
        0,
        0,
        0,
        1,
    )
    assert Snapshot.read(tmp_path / "t").files.num_rows == 0
    assert len(quarantined(result.quarantine)) == 1


def test_what_is_wrong_with_a_file_fails_in_every_mode(tmp_path: Path) -> None:
    cut = bad_input.CASES["cut-gzip"].content
    assert cut is not None
    (tmp_path / "a").write_bytes(b"{\n")
    (tmp_path / "b").write_bytes(cut)
    with pytest.raises(VariantLakeError, match="cannot be read"):
        ingest_here([tmp_path / "a", tmp_path / "b"], tmp_path / "t", mode="quarantine")
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("text", LENIENT)
def test_a_document_ends_with_its_value(tmp_path: Path, text: str) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    data = pa.table({"event": [text]})
    with pytest.raises(InvalidJson, match="after the end of the document"):
        table.append(data, json_columns=["event"])
    (tmp_path / "in.ndjson").write_text(f"{text}\n")
    with pytest.raises(InvalidJson, match="after the end of the document"):
        ingest_here([tmp_path / "in.ndjson"], table.uri)
    assert table.refresh().version == 0


def test_the_history_counts_bad_rows(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n{\n2\n")
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    table.append(vl.ndjson(tmp_path / "a"), mode="quarantine")
    table.append(vl.ndjson(tmp_path / "a"), mode="null")
    entries = table.refresh().history()
    newest, before = (entry.info["operationMetrics"] for entry in entries[:2])
    assert (before["numOutputRows"], before["numQuarantinedRows"]) == ("2", "1")
    assert (newest["numOutputRows"], newest["numNulledRows"]) == ("3", "1")


def test_null_needs_a_nullable_column_and_modes_are_known(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("{\n")
    table = vl.Table.create(tmp_path / "t", "event VARIANT NOT NULL")
    with pytest.raises(InvalidSchema, match="NOT NULL"):
        table.append(vl.ndjson(tmp_path / "a"), mode="null")
    with pytest.raises(InvalidValue, match="mode is 'lenient'") as caught:
        table.append(vl.ndjson(tmp_path / "a"), mode="lenient")  # type: ignore[arg-type]
    assert "quarantine" in caught.value.hint
    with pytest.raises(InvalidValue, match="'modus'"):
        table.append(vl.ndjson(tmp_path / "a"), modus="null")  # type: ignore[call-arg]


@pytest.mark.parametrize("mode", ["strict", "quarantine", "null"])
def test_bad_json_text_of_arrow_data(
    tmp_path: Path, mode: Literal["strict", "quarantine", "null"]
) -> None:
    table = vl.Table.create(tmp_path / "t", "id INT, event VARIANT, other VARIANT")
    texts = ["1", '{"a": 1, "a": 2}', None, "{", "2"]
    data = pa.table({"id": range(5), "event": texts, "other": ["1", "2", "3", "]", "5"]})

    def append() -> int:
        return table.append(data, json_columns=["event", "other"], mode=mode).version

    if mode == "strict":
        with pytest.raises(InvalidJson, match="column 'event'") as caught:
            append()
        assert (caught.value.row, table.refresh().version) == (1, 0)
        return
    assert append() == 1
    table = table.refresh()
    (add,) = table.snapshot.add_files()
    rows = vl.parquet.read_table(table.snapshot.location(add.path)).to_pylist()
    good = [row["id"] for row in rows if row["event"] is not None]
    assert good == [0, 4]
    if mode == "null":
        assert [row["id"] for row in rows] == [0, 1, 2, 3, 4]
        assert [row["id"] for row in rows if row["other"] is None] == [3]
        return
    assert [row["id"] for row in rows] == [0, 2, 4]
    (folder,) = (tmp_path / "t" / "_quarantine").iterdir()
    records = quarantined(str(folder))
    assert [(record["row"], record["values"]["event"]) for record in records] == [
        (1, texts[1]),
        (3, texts[3]),
    ]
    assert all("column 'event'" in record["reason"] for record in records)


def test_bad_variants_of_arrow_data_are_kept_as_base64(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    values = [{"metadata": b"\x01\x00\x00", "value": value} for value in (b"\x00", b"\x02\x01")]
    data = pa.table({"event": pa.array(values)})
    assert table.append(data, mode="quarantine").version == 1
    (folder,) = (tmp_path / "t" / "_quarantine").iterdir()
    (record,) = quarantined(str(folder))
    assert record["row"] == 1
    assert base64.b64decode(record["values"]["event"]["value"]) == b"\x02\x01"


def test_a_file_whose_name_is_not_utf8_has_its_quarantine_and_column(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")
    Path(name).write_text("1\n{\n")
    done = ingest_here(name, tmp_path / "t", mode="quarantine", file_column="file")
    (record,) = quarantined(done.quarantine)
    assert record["file"] == f"{tmp_path}/\\xff.json"
    rows = vl.Table.open(tmp_path / "t").scan(["file"]).to_arrow()
    assert rows.column("file").to_pylist() == [record["file"]]


def test_values_that_python_lacks_are_kept_beside_a_bad_document(tmp_path: Path) -> None:
    table = vl.Table.create(
        tmp_path / "t", "name STRING, at TIMESTAMP, s STRUCT<x: STRING>, v VARIANT"
    )
    text: Any = pa.array([b"\xff"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 1, text.buffers())  # Arrow does not look at it
    late = pa.array([10**18], pa.int64()).cast(pa.timestamp("us", "UTC"))
    whole = pa.StructArray.from_arrays([text], ["x"])
    data = pa.table({"name": text, "at": late, "s": whole, "v": text})
    assert table.append(data, json_columns=["v"], mode="quarantine").version == 1
    (folder,) = (tmp_path / "t" / "_quarantine").iterdir()
    (record,) = quarantined(str(folder))
    code = base64.b64encode(b"\xff").decode()
    assert record["values"] == {
        "name": code,
        "at": "+33658-09-27 01:46:40+00:00",
        "s": {"x": code},
        "v": code,
    }


def test_a_quarantine_can_be_mended_and_loaded(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('1\n{"a": 1,}\n')
    result = ingest_here(tmp_path / "a", tmp_path / "t", mode="quarantine")
    mended = [record["text"].replace(",}", "}") for record in quarantined(result.quarantine)]
    (tmp_path / "b").write_text("\n".join(mended))
    ingest_here(tmp_path / "b", tmp_path / "t")
    assert sorted(row.to_json() for row in documents(tmp_path / "t") if row) == ["1", '{"a":1}']


def test_no_reader_takes_a_quarantine_for_data(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    (tmp_path / "a").write_text("1\n{\n")
    result = ingest_here(tmp_path / "a", tmp_path / "t", mode="quarantine")
    assert orjson.loads(next(Path(str(result.quarantine)).iterdir()).read_bytes())["line"] == 2
    assert Path(str(result.quarantine)).parent == tmp_path / "t" / "_quarantine"
    assert len(duckdb.sql(f"SELECT 1 FROM '{tmp_path}/t/*.parquet'").fetchall()) == 1


lines_of_bytes = st.lists(
    st.binary(max_size=6).map(lambda line: line.replace(b"\n", b""))
    | st.sampled_from([*LINES.values(), *FINE.values(), b'{"a": [1, 2.5]}', b'"\xc3\xa9"', b"\xef"])
    | st.from_regex(rb'[\[\]{}",:0-9.eE+-]{1,8}', fullmatch=True)
)


@settings(max_examples=40 * MORE, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=lines_of_bytes, ending=st.sampled_from([b"\n", b"\r\n"]), as_array=st.booleans())
def test_what_the_plain_parser_takes_is_loaded_and_all_else_is_kept(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], ending: bytes, as_array: bool
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    if as_array:  # what leaves a quote or a bracket open would take the next element along
        lines = [line for line in lines if not set(line) & set(b'"[]{},') or line in LINES.values()]
        lines = [line for line in lines if line != LINES["cut document"]]
        text = b"[" + (b"," + ending).join([b"0", *lines]) + b"]"
    else:
        text = ending.join([b"0", *lines])
    (folder / "a").write_bytes(text)
    good, bad = ["0"], []
    for line in lines:
        document = line.strip(b" \t\r") if not as_array else line
        if not document and not as_array:
            continue
        try:
            good.append(parse_json(document).to_json())
        except VariantLakeError:
            bad.append(document.lstrip(b" \t\r\n"))
    source = vl.json_array(folder / "a") if as_array else vl.ndjson(folder / "a")
    result = ingest_here(source, folder / "t", mode="quarantine")
    assert [row.to_json() for row in documents(folder / "t") if row] == good
    assert result.rows_bad == len(bad)
    if bad:
        assert list(map(text_of, quarantined(result.quarantine))) == bad


BAD = [b'{"a": 1}\n', b"{\n"]
MANY = (BAD[0] * 8 + BAD[1] * 2) * 300


@pytest.mark.parametrize("mode", ["quarantine", "null"])
@pytest.mark.parametrize("kind", ["lines", "lines-compressed", "arrow"])
def test_a_load_stops_at_too_many_bad_documents(
    tmp_path: Path, mode: Literal["quarantine", "null"], kind: str
) -> None:
    table, source = vl.Table.create(tmp_path / "t", "event VARIANT"), tmp_path / "a.json"
    source.write_bytes(gzip.compress(MANY) if kind == "lines-compressed" else MANY)
    rows = pa.table({"event": [line.decode() for line in MANY.splitlines()]})

    def appended(limit: int | str) -> int:
        done: Any
        if kind == "arrow":
            done = table.append(rows, json_columns=["event"], mode=mode, max_bad=limit)
        else:
            done = table.append(vl.ndjson(source), mode=mode, max_bad=limit)
        bad: int = done.rows_bad
        return bad

    before = bad_input.listing(tmp_path / "t")
    for limit in (0, 100, "599", "5%", "19.9%", "0%"):
        with pytest.raises(LimitExceeded, match=rf"bad, more than max_bad={limit}; ") as caught:
            appended(limit)
        where = "row 8" if kind == "arrow" else f"{source}, line 9, column 2"
        assert where in caught.value.message
        assert "of the 3,000 documents" in caught.value.message
        assert bad_input.listing(tmp_path / "t") == before
    assert [appended(limit) for limit in (600, "20%", "100 %")] == [600] * 3


def test_bad_documents_of_all_tasks_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "SMALLEST_TASK_BYTES", 1000)
    monkeypatch.setattr(load, "TASK_BYTES", 1000)
    source = tmp_path / "a.json"
    source.write_bytes((BAD[0] * 99 + BAD[1]) * 50)
    for limit in (49, "0.9%"):
        with pytest.raises(LimitExceeded, match=r"50 of the 5,000 documents read are bad"):
            ingest_here(source, tmp_path / "t", mode="quarantine", max_bad=limit)
        assert not (tmp_path / "t").exists()
    done = ingest_here(source, tmp_path / "t", mode="quarantine", max_bad="1%")
    assert (done.rows_bad, done.rows_written) == (50, 4950)


@pytest.mark.parametrize("limit", [-1, "-1", "101%", "5 percent", 0.05, True, "", "1e3"])
def test_a_limit_that_cannot_be_is_refused(tmp_path: Path, limit: Any) -> None:
    with pytest.raises(InvalidValue, match="max_bad"):
        ingest_here(tmp_path, tmp_path / "t", mode="quarantine", max_bad=limit)


def test_a_limit_says_nothing_in_strict_mode(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="strict") as caught:
        ingest_here(tmp_path, tmp_path / "t", max_bad=5)
    assert "--mode quarantine" in (caught.value.cli_hint or "")


ROWS = [{"a": i, "b": ["x", {"c": None}]} for i in range(300)]
SPREAD = {
    "array, printed": json.dumps(ROWS, indent=1),
    "array of lines": "[\n" + ",\n".join(map(json.dumps, ROWS)) + "\n]\n",
    "array of lines, commas first": "[" + "\n,".join(map(json.dumps, ROWS)) + "]",
    "array, two lines": '[{"a": 1},\n{"a": 2}]',
    "array of one": '[\n{"a": 1}\n]',
    "one document": json.dumps(ROWS[0], indent=1),
    "documents, printed": "\n".join(json.dumps(each, indent=1) for each in ROWS),
    "documents on two lines": '{"a": 1,\n"b": 2}\n' * 9,
    "behind blank lines": "\n\r\n [\n1,\n2\n]",
    "large": "[\n" + ",\n".join(['{"a": "%s"}' % ("x" * 90)] * 9000),
}
LINE_BY_LINE = {
    "cut": "[1,\n[3, 4]\n[5, 6]\n",
    "cut object": '{"a":\n{"a": 2}\n{"a": 3}\n',
    "cut in a string": '["a\n["b"]\n["c"]\n',
    "array on a line": '[{"a": 1}, {"a": 2}]\n{\n',
    "two": "[1,\n2\n",
}


@pytest.mark.parametrize("mode", ["quarantine", "null"])
@pytest.mark.parametrize("name", SPREAD)
def test_documents_over_several_lines_are_named_at_once(
    tmp_path: Path, name: str, mode: Literal["quarantine", "null"]
) -> None:
    (tmp_path / "a.json").write_text(SPREAD[name])
    with pytest.raises(InvalidJson, match="not one document a line") as caught:
        ingest_here(tmp_path / "a.json", tmp_path / "t", mode=mode)
    reader = "vl.json_array" if "[" in SPREAD[name][:9] else "vl.json_files"
    assert reader in caught.value.hint
    assert caught.value.column == (2 if name == "behind blank lines" else 1)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("name", LINE_BY_LINE)
def test_lines_that_are_cut_are_bad_one_by_one(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.json").write_text(LINE_BY_LINE[name])
    done = ingest_here(tmp_path / "a.json", tmp_path / "t", mode="quarantine")
    assert done.rows_bad + done.rows_written == LINE_BY_LINE[name].count("\n")


def test_a_task_of_bad_documents_alone_is_stopped(tmp_path: Path) -> None:
    source = tmp_path / "a.json"
    source.write_bytes(b'"\n' * 5000)
    (split,) = split_sources(expand(source), 1 << 20)
    log = BadRowLog(BadRows.QUARANTINE, LocalStore(tmp_path), "x", 0)

    def stop() -> None:
        raise LoadStopped

    log.check = stop
    with pytest.raises(LoadStopped), log:
        list(read_tapes([split], log))
    assert log.count < 5000
    assert not list((tmp_path / "_quarantine").rglob("*.ndjson"))

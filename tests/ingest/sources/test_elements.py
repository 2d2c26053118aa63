"""Files that are one JSON array: every element is a document, wherever blocks end."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.corpora import EARTHQUAKES
from tests.ingest.test_bad_rows import LINES, quarantined, text_of
from tests.ingest.test_load import documents
from tests.strategies import MORE
from variantlake.encoding.json import parse_json
from variantlake.errors import (
    InvalidJson,
    InvalidValue,
    LimitExceeded,
    MissingSource,
    VariantLakeError,
)
from variantlake.ingest.local_run import ingest_here
from variantlake.ingest.sources import elements as elements_module
from variantlake.ingest.sources.elements import read_document, read_elements
from variantlake.ingest.sources.sources import json_array

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


def elements(path: Path, block_bytes: int = 1 << 20) -> list[bytes]:
    (source,) = json_array(path).sources
    return [
        block.padded[start:end].tobytes()
        for block, starts, ends in read_elements(source, block_bytes=block_bytes)
        for start, end in zip(starts, ends, strict=True)
    ]


@settings(max_examples=50 * MORE, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(json_values, max_size=8),
    indent=st.sampled_from([None, 0, 2]),
    ascii_only=st.booleans(),
    block=st.integers(1, 40),
)
@example(values=['],"[', "\\", '\\"', {"[": "]"}], indent=None, ascii_only=False, block=1)
def test_elements_are_those_of_the_array(
    tmp_path: Path, values: list[Any], indent: int | None, ascii_only: bool, block: int
) -> None:
    path = tmp_path / "a.json"
    text = json.dumps(values, indent=indent, ensure_ascii=ascii_only)
    path.write_bytes(f"\ufeff \n{text}\r\n ".encode())
    assert [json.loads(element) for element in elements(path, block)] == values


def test_an_array_is_loaded_like_its_lines(tmp_path: Path) -> None:
    lines = gzip.decompress(EARTHQUAKES.read_bytes()).splitlines()[:300]
    text = json.dumps([json.loads(line) for line in lines], indent=1).encode()
    (tmp_path / "a.json").write_bytes(text)
    (tmp_path / "b.json").write_bytes(gzip.compress(text))
    expected = [parse_json(line) for line in lines]
    for name in "ab":
        result = ingest_here(vl.json_array(tmp_path / f"{name}.json"), tmp_path / name)
        assert result.rows_written == len(lines)
        assert documents(tmp_path / name) == expected
    assert "geometry" in result.shredding["event"]


@pytest.mark.parametrize("name", [name for name in LINES if name != "cut document"])
def test_a_bad_element_is_raised_kept_or_null(tmp_path: Path, name: str) -> None:
    source = tmp_path / "a.json"
    bad = LINES[name]
    source.write_bytes(b'[\n  {"n": 1},\n  ' + bad + b',\n  "\xc3\xa9", ' + bad + b"]")
    data = json_array(source)
    with pytest.raises(VariantLakeError) as caught:
        ingest_here(data, tmp_path / "strict")
    assert (caught.value.line, caught.value.file) == (3, str(source))
    result = ingest_here(data, tmp_path / "quarantine", mode="quarantine")
    assert (result.rows_written, result.rows_bad) == (2, 2)
    first, second = quarantined(result.quarantine)
    assert [text_of(first), text_of(second)] == [bad] * 2
    assert (first["line"], first["column"]) == (3, caught.value.column)
    assert first["column"] >= 3
    assert (second["line"], second["column"]) == (4, first["column"] + 5)
    result = ingest_here(data, tmp_path / "null", mode="null")
    assert documents(tmp_path / "null")[1::2] == [None, None]


BROKEN: dict[str, tuple[bytes, str, tuple[int, int]]] = {
    "object": (b'{"a": 1}', "not a JSON array", (1, 1)),
    "lines": (b' \n{"a": 1}\n{"a": 2}', "not a JSON array", (2, 1)),
    "open": (b'[1, \n{"a": 2}', "ends within the array", (2, 9)),
    "open string": (b'[1, "a, 2]', "ends within the array", (1, 11)),
    "text behind": (b"[1, 2]\n x", "after the array", (2, 2)),
    "two arrays": (b"[1, 2]\n[3]", "after the array", (2, 1)),
}


@pytest.mark.parametrize("mode", ["strict", "quarantine", "null"])
@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_array_fails_in_every_mode(
    tmp_path: Path, name: str, mode: Literal["strict", "quarantine", "null"]
) -> None:
    content, message, place = BROKEN[name]
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(InvalidJson, match=message) as caught:
        ingest_here(json_array(tmp_path / "a"), tmp_path / "t", mode=mode)
    assert (caught.value.line, caught.value.column) == place
    assert caught.value.hint
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(("text", "good"), [("[1,]", 1), ("[,1]", 1), ("[1,,2]", 2), ("[1 2]", 0)])
def test_misplaced_commas_are_bad_elements(tmp_path: Path, text: str, good: int) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(InvalidJson):
        ingest_here(json_array(tmp_path / "a"), tmp_path / "t")
    result = ingest_here(json_array(tmp_path / "a"), tmp_path / "t", mode="quarantine")
    assert (result.rows_written, result.rows_bad) == (good, 1)


def test_an_empty_array_has_no_document(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("[ ]")
    with pytest.raises(InvalidJson, match="no document"):
        ingest_here(json_array(tmp_path / "a"), tmp_path / "t")


def test_an_array_among_lines_is_explained(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('[\n  {"a": 1},\n  {"a": 2}\n]')
    with pytest.raises(InvalidJson) as caught:
        ingest_here(tmp_path / "a", tmp_path / "t")
    assert "json_array" in caught.value.hint
    # Lines that are arrays are documents: nothing guesses.
    (tmp_path / "b").write_text("[1]\n[2, 3]\n")
    assert ingest_here(tmp_path / "b", tmp_path / "t").rows_written == 2


def test_memory_follows_the_block_and_an_element_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"[" + b", ".join([b'{"a": "%s"}' % (b"x" * 1000)] * 5000) + b"]")
    tracemalloc.start()
    (source,) = json_array(path).sources
    count = sum(len(starts) for _, starts, _ in read_elements(source, block_bytes=10_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 5000
    assert peak < 1 << 20
    path.write_bytes(b'[1,\n "' + b"x" * 100_000)
    monkeypatch.setattr(elements_module, "MAX_VALUE_BYTES", 1000)
    with pytest.raises(LimitExceeded) as caught:
        elements(path, 100)
    assert (caught.value.line, caught.value.column) == (2, 2)


def test_a_missing_array_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingSource):
        vl.json_array(tmp_path / "nowhere.json")


PRINTED = json.dumps({"a": [1, 2, {"b": None}], "c": "x"}, indent=2)


@pytest.mark.parametrize("text", [f"\ufeff\n {PRINTED}\n", PRINTED, "[1,\n2]", "7"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_whole_file_is_a_document(tmp_path: Path, text: str, pack: Any) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_bytes(pack(text.encode()))
    assert ingest_here(tmp_path, tmp_path / "t", format="json").rows_written == 2
    table = vl.Table.open(tmp_path / "t")
    table.append(vl.json_files(tmp_path / "a.json"))
    rows: list[Any] = vl.Table.open(tmp_path / "t").scan("event").to_arrow()["event"].to_pylist()
    texts = [vl.Variant(row["metadata"], row["value"]).to_json() for row in rows]
    assert [json.loads(each) for each in texts] == [json.loads(text.strip("\ufeff"))] * 3


@pytest.mark.parametrize(
    ("text", "given", "reader"),
    [
        (PRINTED, "ndjson", "json_files"),
        ("[\n1]", "ndjson", "json_array"),
        ('{"a": 1}\n{"a": 2}\n', "json", "ndjson"),
        (PRINTED, "array", "json_files"),
        ('{"a": 1}\n{"a": 2}\n', "array", "ndjson"),
    ],
)
def test_another_format_is_suggested(tmp_path: Path, text: str, given: str, reader: str) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(InvalidJson) as caught:
        ingest_here(tmp_path / "a", tmp_path / "t", format=given)
    assert reader in caught.value.hint
    assert "--format" in (caught.value.cli_hint or "")
    assert "--format" not in caught.value.hint


def test_a_whole_document_is_bounded_and_has_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text('\n{"a":\n  x}')
    (source,) = vl.json_files(tmp_path / "a").sources
    with monkeypatch.context() as patched:
        patched.setattr(elements_module, "MAX_VALUE_BYTES", 3)
        with pytest.raises(LimitExceeded):
            read_document(source)
    with pytest.raises(InvalidJson) as caught:
        ingest_here(tmp_path / "a", tmp_path / "t", format="json")
    assert (caught.value.line, caught.value.column) == (3, 3)


def test_what_names_no_files_is_told_where_it_belongs(tmp_path: Path) -> None:
    wrong: Any
    for wrong in (None, 3, {"a": 1}, [{"a": 1}], pa.table({"a": [1]})):
        with pytest.raises(InvalidValue, match="are named by") as caught:
            ingest_here(wrong, tmp_path / "t")
        assert "lake.append" in caught.value.hint
    with pytest.raises(InvalidValue, match="format is 'xml'"):
        ingest_here(tmp_path, tmp_path / "t", format="xml")

"""Paths of data files: decoded once, never out of the table, absolute ones under a policy."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variantlake.delta.log.files.file_paths import (
    AbsolutePaths,
    check_paths,
    decode_path,
    decoded_paths,
    encode_path,
    locate,
    located,
)
from variantlake.errors import MalformedLog, UnsupportedFeature, VariantLakeError


def _column(*paths: str) -> pa.ChunkedArray[pa.StringScalar]:
    return pa.chunked_array([pa.array(paths, pa.string())])


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("part-0.parquet", "/t/part-0.parquet"),
        ("a/b.parquet", "/t/a/b.parquet"),
        ("test%25file%25prefix.parquet", "/t/test%file%prefix.parquet"),
        ("day=2026-01-01%2012%253A00/x", "/t/day=2026-01-01 12%3A00/x"),
        ("a/../b", "/t/b"),
        ("./a", "/t/a"),
        ("a//b", "/t/a/b"),
        ("%C3%A9", "/t/é"),
        ("é", "/t/é"),
        ("a\\..\\b", "/t/a\\..\\b"),
        ("/other/table/x%20y", "/other/table/x y"),
        ("file:/other/x", "/other/x"),
        ("file:///other/x%20y", "/other/x y"),
        ("FILE:///other/x", "/other/x"),
        ("s3://bucket/k%20ey", "s3://bucket/k ey"),
    ],
)
def test_a_path_leads_to_one_place(path: str, expected: str) -> None:
    check_paths(_column(path), AbsolutePaths.ALLOW)
    assert locate(path, "/t") == expected


def test_paths_below_a_url() -> None:
    assert locate("a%20b", "s3://bucket/t") == "s3://bucket/t/a b"
    assert locate("/x/y", "s3://bucket/t") == "s3://bucket/x/y"


@pytest.mark.rule(27)
@pytest.mark.parametrize(
    "path",
    ["..", "../x", "a/../../x", "%2e%2e/x", "%2E%2E%2Fx", "a/%2e%2e/../x", ".", "", "a/.."],
)
def test_a_relative_path_never_leaves_the_table(path: str) -> None:
    with pytest.raises(MalformedLog):
        check_paths(_column("fine", path), AbsolutePaths.ALLOW)
    with pytest.raises(MalformedLog):
        locate(path, "/t")


@pytest.mark.parametrize("path", ["%ff", "a%00b", "a\0b", "file:///%ff"])
def test_a_path_that_is_no_text_is_refused(path: str) -> None:
    with pytest.raises(MalformedLog):
        check_paths(_column(path), AbsolutePaths.ALLOW)


@pytest.mark.rule(27)
@pytest.mark.parametrize("path", ["/x", "file:/x", "s3://b/x", "C:/x"])
def test_absolute_paths_are_refused_where_the_policy_says_so(path: str) -> None:
    with pytest.raises(UnsupportedFeature, match="absolute"):
        check_paths(_column(path), AbsolutePaths.REFUSE)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12))
def test_an_encoded_path_leads_back(name: str) -> None:
    encoded = encode_path(f"d/{name}".replace("/.", "/_"))
    assert encoded.isascii()
    assert decode_path(encoded) == f"d/{name}".replace("/.", "/_")


def test_a_name_with_a_colon_stays_relative() -> None:
    assert locate(encode_path("a:b"), "/t") == "/t/a:b"


def test_two_spellings_of_a_file_are_one() -> None:
    assert decode_path("file:/x") == decode_path("file:///x")
    column = decoded_paths(_column("a%2Db", "a-b"))
    assert column.to_pylist() == ["a-b", "a-b"]


@given(st.text("./%2eEfF:a\\", max_size=10))
def test_no_path_escapes(path: str) -> None:
    try:
        check_paths(_column(path), AbsolutePaths.REFUSE)
        found = locate(path, "/table")
    except VariantLakeError:
        return
    assert found.startswith("/table/")
    assert "/../" not in f"{found}/"


def test_no_paths_are_located_nowhere() -> None:
    """PyArrow 26.0.0 ends the process at the indices of an array without chunks."""
    assert located(pa.chunked_array([], pa.string()), "/t") == []

"""Parquet files of apache/parquet-testing: read as pyarrow reads them, or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests import corpora
from variantlake.errors import VariantLakeError
from variantlake.parquet.metadata.footer import read_footer

FILES = corpora.place("suites/parquet-testing")
DATA = sorted(
    file
    for file in FILES.glob("data/**/*")
    if ".parquet" in file.name and file.suffix in (".parquet", ".encrypted")
)
BAD = sorted(FILES.glob("bad_data/*.parquet"))

REFUSED = {
    "datapage_v1-corrupt-checksum.parquet": "checksum",
    "rle-dict-uncompressed-corrupt-checksum.parquet": "checksum",
    "incorrect_map_schema.parquet": "Map keys must be annotated as required",
    "int96_from_spark.parquet": "negative Julian day",
    # The size of its dictionary page is wrong.
    "nation.dict-malformed.parquet": "a page of column 'name' does not fit its chunk",
    "encrypt_columns_plaintext_footer.parquet.encrypted": "column '.*' is encrypted",
}
FOOTER_ALONE = "large_string_map.brotli.parquet"
"""2 GB of text in one column: pyarrow cannot read it, and we take half a minute."""

READABLE = ("ARROW-GH-43605.parquet",)
"""Of `bad_data`: only older readers failed on a bit width of 0."""


@pytest.mark.corpus(FILES)
def test_the_files_are_there() -> None:
    assert len(DATA) > 80
    assert len(BAD) >= 8


@pytest.mark.corpus(FILES)
@pytest.mark.parametrize("file", DATA, ids=lambda file: f"{file.parent.name}-{file.name}")
def test_a_file_is_read_as_by_pyarrow_or_refused_by_name(file: Path) -> None:
    if file.name == FOOTER_ALONE:
        assert read_footer(file).num_rows == 2
        return
    refused = REFUSED.get(file.name)
    if file.suffix == ".encrypted":
        refused = refused or "the Parquet footer is encrypted"
    if refused:
        with pytest.raises(VariantLakeError, match=refused):
            vl.parquet.read_table(file)
        return
    found = vl.parquet.read_table(file)
    expected = pq.read_table(file, coerce_int96_timestamp_unit="us")
    assert found.num_rows == expected.num_rows == read_footer(file).num_rows
    for name in expected.column_names:
        same = found[name].equals(expected[name])  # but for NaN
        assert same or _values(found[name]) == _values(expected[name]), name


def _values(column: Any) -> list[str]:
    """As text, so that NaN is equal to itself."""
    return list(map(repr, column.to_pylist()))


@pytest.mark.corpus(FILES)
@pytest.mark.parametrize("file", BAD, ids=lambda file: file.name)
def test_bad_files_are_an_error_of_ours(file: Path) -> None:
    if file.name in READABLE:
        assert vl.parquet.read_table(file).num_rows == pq.read_table(file).num_rows
        return
    with pytest.raises(VariantLakeError) as caught:
        vl.parquet.read_table(file)
    assert caught.value.file == str(file)


@pytest.mark.corpus(FILES)
@pytest.mark.parametrize("file", [*DATA, *BAD], ids=lambda file: f"{file.parent.name}-{file.name}")
def test_every_file_can_be_inspected_and_checked_or_says_why_not(file: Path) -> None:
    """Their columns are no Variants, but their footers are read by the same code."""
    for look in (vl.parquet.inspect_file, vl.parquet.find_variants, _findings):
        error = _error_of(look, file)
        assert error is None or error.file == str(file)


def _error_of(look: Callable[[Path], object], file: Path) -> VariantLakeError | None:
    try:
        look(file)
    except VariantLakeError as error:
        return error
    return None


def _findings(file: Path) -> list[object]:
    return list(vl.parquet.check_file(file))


@pytest.mark.corpus(FILES)
def test_a_plain_file_has_the_schema_of_pyarrow() -> None:
    file = FILES / "data" / "alltypes_plain.parquet"
    assert vl.parquet.read_table(file).schema.equals(
        pq.read_table(file, coerce_int96_timestamp_unit="us").schema
    )
    assert isinstance(vl.parquet.read_table(file), pa.Table)

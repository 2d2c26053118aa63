"""The files of Apache parquet-testing with shredded Variants, one test id per case.

Valid cases must give the exact value with the exact types, invalid ones a clear error. Cases marked
INVALID may be read or refused; we refuse them but for optional field groups, which are harmless.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import corpora
from variantlake.encoding.metadata import metadata_size
from variantlake.encoding.tree import Tree, decode
from variantlake.errors import VariantLakeError
from variantlake.parquet.read.check import check_file
from variantlake.parquet.read.reader import iter_batches, read_table

FOLDER = corpora.SHREDDED_VARIANT
pytestmark = pytest.mark.corpus(FOLDER)
LIST = FOLDER / "cases.json"
CASES: list[dict[str, Any]] = json.loads(LIST.read_text()) if LIST.exists() else []
TOLERATED = {"case-084-INVALID"}
"""Optional groups of an object's fields: `check` reports them."""


def stem(case: dict[str, Any]) -> str:
    return Path(case["parquet_file"]).stem


def is_readable(case: dict[str, Any]) -> bool:
    return "error_message" not in case and ("notes" not in case or stem(case) in TOLERATED)


def expected_trees(case: dict[str, Any]) -> list[Tree | None]:
    files = case.get("variant_files") or [case["variant_file"]]
    return [None if file is None else tree_of(FOLDER / file) for file in files]


def tree_of(file: Path) -> Tree:
    """A Variant as these files hold it: metadata, and the value right behind it."""
    data = file.read_bytes()
    size = metadata_size(data)
    return decode(data[:size], data[size:])


def test_the_corpus_is_complete() -> None:
    listed = {case["parquet_file"] for case in CASES}
    assert listed == {file.name for file in FOLDER.glob("*.parquet")}
    assert len(listed) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=stem)
def test_case(case: dict[str, Any]) -> None:
    file = str(FOLDER / case["parquet_file"])
    if not is_readable(case):
        with pytest.raises(VariantLakeError) as caught:
            read_table(file)
        assert caught.value.file == file
        return
    rows = read_table(file).column("var").to_pylist()
    trees = [row and decode(row["metadata"], row["value"]) for row in rows]
    expected = expected_trees(case)
    assert trees == expected
    # Tuples compare 1 and True as equal; their texts tell types and zeros apart.
    assert repr(trees) == repr(expected)


@pytest.mark.parametrize("case", CASES, ids=stem)
def test_check_finds_what_is_invalid_and_nothing_else(case: dict[str, Any]) -> None:
    findings = list(check_file(str(FOLDER / case["parquet_file"])))
    assert bool(findings) == ("error_message" in case or "notes" in case), findings


@pytest.mark.parametrize("case", [c for c in CASES if is_readable(c)], ids=stem)
def test_batches_have_the_same_rows(case: dict[str, Any]) -> None:
    file = FOLDER / case["parquet_file"]
    batches = list(iter_batches(file, 1))
    assert [row for batch in batches for row in batch.to_pylist()] == read_table(file).to_pylist()

"""Files with flipped bits: an answer or our error, whatever they hold."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.parquet.write.test_table_writer import of
from tests.strategies import MORE
from variantlake.errors import MalformedFile, VariantLakeError
from variantlake.parquet.metadata.annotate import annotate
from variantlake.parquet.read.check import check_file
from variantlake.parquet.read.inspect import inspect_file
from variantlake.parquet.read.reader import read_table
from variantlake.parquet.read.single_paths import read_paths
from variantlake.parquet.write.table_writer import write_table


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    values = of({"a": 1, "b": ["x", 2.5]}, {"a": "q", "c": {"d": None}}, None, [1], {"b": []})
    file = tmp_path_factory.mktemp("hostile") / "t.parquet"
    write_table(
        pa.table({"v": values}), file, shredding="a BIGINT, b ARRAY<STRING>, c STRUCT<d: DATE>"
    )
    # Again by pyarrow: without checksums, which find most of what is changed here.
    pq.write_table(pq.read_table(file), file)
    annotate(file, [("v",)])
    return file.read_bytes()


@given(
    st.lists(st.tuples(st.integers(min_value=0), st.integers(0, 7)), min_size=1, max_size=4),
    st.integers(min_value=0) | st.none(),
)
@example([(0, 0)], 12)  # neither begins nor ends as Parquet
@example([(0, 0)], 0)
@settings(
    max_examples=50 * MORE,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_flipped_bits_give_an_answer_or_our_error(
    tmp_path: Path, original: bytes, flips: list[tuple[int, int]], cut: int | None
) -> None:
    data = bytearray(original)
    for position, bit in flips:
        data[position % len(data)] ^= 1 << bit
    file = tmp_path / "t.parquet"
    file.write_bytes(data if cut is None else data[: cut % len(data)])
    with contextlib.suppress(VariantLakeError):
        read_table(file)
    with contextlib.suppress(VariantLakeError):
        read_paths(file, {"a": "v:a::variant", "d": "v:c.d"}, on_mismatch="null")
    with contextlib.suppress(VariantLakeError):
        inspect_file(file)
    try:
        findings = list(check_file(file))
    except MalformedFile:  # no file of Parquet any more, neither by its first nor its last bytes
        assert b"PAR1" not in {file.read_bytes()[:4], file.read_bytes()[-4:]}
    else:
        assert all(finding.message for finding in findings)

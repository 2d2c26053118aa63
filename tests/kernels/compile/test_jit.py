"""How kernels are called, and that they run in every mode."""

from __future__ import annotations

import ast
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from tests.corpora import REPOSITORY
from variantlake.kernels.json.lines import find_newlines
from variantlake.kernels.tape.keys import KEY, KeyTable, fill_slots
from variantlake.kernels.tape.nodes import NODE
from variantlake.kernels.variant.variant_reader import VariantRows, key_arrays, read_variants

SWITCHES = ("VARIANTLAKE_PURE_PYTHON", "VARIANTLAKE_BOUNDS_CHECKED")


def run(*args: str, **env: str) -> str:
    plain = {key: value for key, value in os.environ.items() if key not in SWITCHES}
    done = subprocess.run(
        [sys.executable, "-W", "error", *args],
        env=plain | env,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


TEXT = np.frombuffer(b"a\n" * 100, np.uint8)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (TEXT.tobytes(), np.empty(8, np.int64)),
        (TEXT.view(np.int8), np.empty(8, np.int64)),
        (TEXT[::2], np.empty(8, np.int64)),
        (TEXT.reshape(2, -1), np.empty(8, np.int64)),
        (TEXT, np.empty(8, np.int32)),
        (TEXT, np.frombuffer(bytes(64), np.int64)),
        (TEXT, np.empty(72, np.uint8)[4:68].view(np.int64)),
    ],
    ids=["bytes", "signed", "every-other", "two-dimensions", "narrow", "read-only", "unaligned"],
)
def test_a_kernel_takes_no_other_arrays(text: np.ndarray, places: np.ndarray) -> None:
    with pytest.raises(TypeError):
        find_newlines(text, places)


def test_a_kernel_takes_no_records_of_another_layout() -> None:
    words = np.zeros(16, np.int64)
    other = np.zeros(2, np.dtype([*KEY.descr, ("more", "i4")]))
    with pytest.raises(TypeError):
        fill_slots(other, np.zeros(64, np.uint8), np.zeros(4, np.int32), words)


def test_a_kernel_is_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(find_newlines)) is find_newlines  # noqa: S301 - our own


def test_kernels_run_as_plain_python() -> None:
    out = run("-m", "tests.kernels.fuzz", "25", "11", VARIANTLAKE_PURE_PYTHON="1")
    assert "documents are good" in out


@pytest.fixture(scope="module")
def _bounds_checked() -> None:
    """A library whose kernels check each access, compiled if it is not there or older."""
    run("-m", "variantlake.kernels.compile", VARIANTLAKE_BOUNDS_CHECKED="1")


@pytest.mark.slow
@pytest.mark.xdist_group("bounds-checked")
@pytest.mark.usefixtures("_bounds_checked")
def test_an_access_outside_of_an_array_is_an_error_where_bounds_are_checked() -> None:
    code = """
import numpy as np
from variantlake.kernels.json.lines import trim_lines
short = np.empty(1, np.int64)
try:
    trim_lines(np.frombuffer(b"a\\nb", np.uint8), np.array([1, 3]), short, short, short)
except IndexError as error:
    print(error)
"""
    out = run("-c", code, VARIANTLAKE_BOUNDS_CHECKED="1")
    assert out == "json.lines.trim_lines went outside of an array\n"


@pytest.mark.slow
@pytest.mark.xdist_group("bounds-checked")
@pytest.mark.usefixtures("_bounds_checked")
def test_kernels_stay_within_their_arrays() -> None:
    out = run("-m", "tests.kernels.fuzz", "400", "12", VARIANTLAKE_BOUNDS_CHECKED="1")
    assert "documents are good" in out


def test_a_record_is_of_its_own_kind() -> None:
    """Its fields go to the machine code in order, so another tuple would be misread."""
    numbers, places = np.zeros(1, np.int64), np.zeros(1, np.int32)
    data = np.zeros(64, np.uint8)
    rows = VariantRows(data, places, data, places, data)
    nodes = np.zeros(1, NODE)
    table = key_arrays(KeyTable(), places)
    rest = (numbers, numbers, numbers, numbers, numbers)
    assert read_variants(rows, 0, nodes, table, *rest) == 0
    with pytest.raises(TypeError, match="VariantRows"):
        read_variants(tuple(rows), 0, nodes, table, *rest)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="int32"):
        read_variants(rows._replace(offsets=numbers), 0, nodes, table, *rest)  # type: ignore[arg-type]


MOST = 12


def test_no_kernel_takes_more_than_twelve_arguments() -> None:
    many = set()
    for file in (REPOSITORY / "src" / "variantlake" / "kernels").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                decorators = {ast.unparse(each) for each in node.decorator_list}
                if decorators & {"entry", "helper", "tiny"} and len(node.args.args) > MOST:
                    many.add(node.name)
    assert not many

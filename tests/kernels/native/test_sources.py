"""What the machine code of a unit was made from: all of it counts, and nothing else."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

from variantlake.encoding import limits
from variantlake.kernels.json import json_rows, lines, numbers
from variantlake.kernels.native import sources
from variantlake.kernels.native.declared import Kernel, KernelArray
from variantlake.kernels.native.sources import digest_of, modules_of
from variantlake.kernels.tape import containers, exact, utf8
from variantlake.kernels.tape.keys import KEY


@pytest.fixture(autouse=True)
def _digests_anew() -> Iterator[None]:
    sources._constants.cache_clear()
    sources._compiler.cache_clear()
    yield
    sources._constants.cache_clear()
    sources._compiler.cache_clear()


def changed(
    unit: str, change: pytest.MonkeyPatch, module: object, name: str, value: object
) -> bool:
    before = digest_of(unit)
    change.setattr(module, name, value)
    sources._constants.cache_clear()
    sources._compiler.cache_clear()
    return digest_of(unit) != before


def test_a_unit_comes_from_all_modules_that_its_kernels_call() -> None:
    names = {module.__name__.rpartition(".")[2] for module in modules_of("json.json_rows")}
    assert {"json_rows", "keys", "numbers", "doubles", "utf8", "words"} <= names
    assert "unshred_rows" not in names


def test_a_constant_of_another_part_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert json_rows._LIMIT == limits.MAX_VALUE_BYTES
    assert changed("json.json_rows", monkeypatch, json_rows, "_LIMIT", limits.MAX_VALUE_BYTES - 1)


def test_a_constant_of_a_helper_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert changed("shredded.unshred_rows", monkeypatch, containers, "_LIMIT", 1)
    assert not changed("json.lines", monkeypatch, containers, "_LIMIT", 2)


def test_one_number_of_a_table_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    table = exact.POWERS.copy()
    table[5] += 1
    assert changed("shredded.shred_rows", monkeypatch, exact, "POWERS", table)


def test_the_layout_of_records_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    digest_of("json.json_rows")  # a kernel knows its signature from then on
    wider = KernelArray(np.dtype([*KEY.descr, ("more", "i4")]))
    monkeypatch.setattr(json_rows, "Keys", Annotated[Any, wider])
    again = Kernel(inspect.unwrap(json_rows.read_rows))
    assert changed("json.json_rows", monkeypatch, json_rows, "read_rows", again)


@pytest.mark.parametrize(
    ("module", "counts"), [(lines, True), (numbers, False)], ids=["its-own", "another"]
)
def test_the_text_of_its_modules_counts(
    module: object, counts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(str(sys.modules[str(module.__name__)].__file__))  # type: ignore[attr-defined]
    edited = tmp_path / file.name
    edited.write_bytes(file.read_bytes() + b"# edited\n")
    assert changed("json.lines", monkeypatch, module, "__file__", str(edited)) is counts


def test_the_compiler_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert changed("json.lines", monkeypatch, sources, "_FOLDER", tmp_path)


def test_what_is_no_constant_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not changed("json.json_rows", monkeypatch, utf8, "__doc__", "another")

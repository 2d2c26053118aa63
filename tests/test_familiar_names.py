"""Names that other libraries have: the error says what ours are."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import re
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.familiar_names import _OURS, _PACKAGES, _VERBS
from variantlake.scan.arrow_stream import ArrowStream


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    return vl.Table.create(tmp_path / "t", "event VARIANT")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("columns", ": schema has the columns"),
        ("select", r": scan\(select=...\)"),
        ("appnd", "did you mean append"),
        ("zzz", "'zzz'$"),
        ("_apend", "'_apend'$"),
    ],
)
def test_a_table_says_what_its_own_names_are(table: vl.Table, name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(table, name)
    assert not hasattr(table, name)
    assert getattr(table, name, 7) == 7


def test_the_error_of_a_property_is_its_own(
    table: vl.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: vl.Table) -> int:
        raise AttributeError("'NoneType' object has no attribute 'rows'")

    monkeypatch.setattr(vl.Table, "version", property(broken))
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'rows'"):
        _ = table.version


@pytest.mark.parametrize("name", sorted(_PACKAGES))
def test_a_package_that_is_called_says_what_to_call(name: str) -> None:
    package = importlib.import_module(f"variantlake.{name}")
    with pytest.raises(TypeError, match=rf"vl.{name} is not a function: vl.Table.open\(location\)"):
        package("events")  # type: ignore[operator]  # as users do
    assert callable(getattr(vl.Table, name, vl.Table.open))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("to_parquet", r": export\('rows.parquet'\)"),
        ("write_csv", r": export\('rows.csv'\)"),
        ("fetchone", r": head\(1\)"),
        ("df", r": to_pandas\(\)"),
        ("to_arow", "did you mean to_arrow"),
        ("zzz", "'zzz'$"),
    ],
)
def test_rows_say_what_their_own_names_are(table: vl.Table, name: str, said: str) -> None:
    for rows in (table.scan(), table.sql("SELECT count(*) FROM t"), table.scan().as_json()):
        with pytest.raises(AttributeError, match=f"{type(rows).__name__}.*{said}"):
            getattr(rows, name)
        assert not hasattr(rows, name)


def test_an_error_within_a_property_is_told_as_it_is() -> None:
    class Broken(ArrowStream):
        @property
        def schema(self) -> pa.Schema:
            return self.lost  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(AttributeError, match="'Broken' has no attribute 'lost'"):
        _ = Broken().schema


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("DeltaTable", "vl.Table.open"),
        ("parse_jsn", "did you mean parse_json"),
        ("zzz", "'zzz'$"),
        *((verb, rf": vl.Table.open\(location\).{verb}\(") for verb in sorted(_VERBS)),
    ],
)
def test_the_package_says_what_its_own_names_are(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(vl, name)
    assert name not in _VERBS or callable(getattr(vl.Table, name))


def test_no_hint_is_of_a_name_that_is_there() -> None:
    for name, hint in _OURS.items():
        assert name not in {*dir(vl.Table)} & {*dir(vl)}
        for word in re.findall(r"(?:^|vl\.Table\.)([a-z_]+)\(", hint):
            assert hasattr(vl.Table, word) or hasattr(vl.Scan, word), hint


def test_a_table_is_copied_and_pickled_as_before(table: vl.Table) -> None:
    assert copy.copy(table) == table
    assert pickle.loads(pickle.dumps(table)) == table  # noqa: S301 - our own
    assert not inspect.isabstract(table)


def test_packages_go_to_tasks_by_name() -> None:
    """A user's function that uses one is pickled with it."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    for name in ("erase", "export", "report", "scan", "sql", "table"):
        package = import_module(f"variantlake.{name}")
        assert cloudpickle.loads(cloudpickle.dumps(package)) is package

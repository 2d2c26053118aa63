"""Names that other libraries have: the error says what ours are."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import re
from importlib import import_module
from inspect import signature
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.familiar_names import _KEYWORDS, _NO_KEYWORDS, _OURS, _PACKAGES, _VERBS
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


ROWS = [{"event": {"k": 1}}]


@pytest.mark.parametrize(
    ("verb", "given", "said"),
    [
        ("scan", {"filter": "1 = 1"}, ": write where=...$"),
        ("scan", {"columns": ["event"]}, ": write select=...$"),
        ("scan", {"n_rows": 3}, ": write limit=...$"),
        ("scan", {"selct": "event"}, ": did you mean select"),
        ("scan", {"zzz": 1}, "$"),
        ("upsert", {"rows": ROWS, "on": "event:k::int"}, ": write key=...$"),
        ("merge", {"source": ROWS, "predicate": "1 = 1"}, ": write on=...$"),
        ("merge", {"source": ROWS, "on": "1 = 1", "when_matched": "delete"}, ": merge_builder"),
        ("delete", {"predicate": "1 = 1"}, ": write where=...$"),
        ("update", {"updates": {}}, ": write set=...$"),
        ("overwrite", {"data": ROWS, "predicate": "1 = 1"}, ": write where=...$"),
        ("append", {"data": ROWS, "schema_mode": "merge"}, ": write merge_schema=...$"),
        ("optimize", {"z_order": ["event"]}, ": set_clustering"),
        ("vacuum", {"retention_hours": 1}, ": write retention=...$"),
        ("changes", {"since": 1}, ": write starting_version=... or starting_timestamp=...$"),
        ("export", {"path": "x.csv", "columns": ["event"]}, ": write select=...$"),
        ("open", {"as_of": 1}, ": write version=...$"),
        (
            "create",
            {"location": "t", "schema": "id INT", "mode": "append"},
            ": write replace=... or",
        ),
    ],
)
def test_a_verb_says_what_its_keywords_are(
    table: vl.Table, verb: str, given: dict[str, object], said: str
) -> None:
    keyword = list(given)[-1]
    wrong = rf"Table.{verb}\(\) got an unexpected keyword argument '{keyword}'{said}"
    with pytest.raises(TypeError, match=wrong):
        getattr(table, verb)(**given)
    assert table.refresh().version == 0


def test_functions_for_engines_say_what_their_keywords_are(table: vl.Table) -> None:
    wrong = "unexpected keyword argument 'columns': write select=...$"
    for call in (vl.scan_polars, vl.mirror, vl.duckdb.attach, vl.datafusion.attach):
        with pytest.raises(TypeError, match=wrong):
            call(table, columns=["event"])  # type: ignore[call-arg, arg-type]  # as users do
    for rows in (table, table.scan()):
        with pytest.raises(TypeError, match=r"'columns': scan\(select=...\) reads"):
            rows.to_pandas(columns=["event"])  # type: ignore[call-arg]  # the same


def test_keywords_are_those_of_verbs() -> None:
    verbs = [getattr(vl.Table, name) for name in dir(vl.Table) if not name.startswith("_")]
    parameters = {name for verb in filter(callable, verbs) for name in signature(verb).parameters}
    assert {ours for names in _KEYWORDS.values() for ours in names} <= parameters | {"merge_schema"}
    assert not parameters & {*_NO_KEYWORDS}
    for word in re.findall(r"([a-z_]+)\(", " ".join(_NO_KEYWORDS.values())):
        assert hasattr(vl.Table, word)


@pytest.mark.parametrize("name", ["limit", "where"])
def test_a_scan_has_no_methods_that_narrow_it(table: vl.Table, name: str) -> None:
    for rows in (table.scan(limit=1), table.scan(where="1 = 1"), table.sql("SELECT * FROM t")):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': scan\({name}="):
            getattr(rows, name)


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

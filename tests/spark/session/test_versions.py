"""Versions of Spark: too old, newer than those that were tried, of other inner parts."""

from __future__ import annotations

import tomllib
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import types as st

import variantlake as vl
from tests.corpora import REPOSITORY
from tests.spark.layouts import rows
from variantlake.errors import UnsupportedFeature
from variantlake.spark.session import janino, versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


QUERY = "SELECT event:id::bigint AS i, event:kind::string AS kind FROM t WHERE event:id::int > 17"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = vl.Table.create(tmp_path_factory.mktemp("versions") / "t", "event VARIANT")
    for first in (0, 10):
        texts = [f'{{"id": {n}, "kind": "k{n % 3}"}}' for n in range(first, first + 10)]
        made.append(pa.table({"event": texts}), json_columns=["event"])
    return str(made.snapshot.store.uri)


def of_version(text: str) -> Any:
    return SimpleNamespace(version=text)


def test_a_spark_that_is_too_old_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match=r"Spark 4\.0\.5 cannot open") as caught:
        versions.check_version(of_version("4.0.5"))
    assert "4.1 or newer" in (caught.value.hint or "")
    for text in ("4.1.0", "4.3.0-SNAPSHOT", "5.0.0", "of our own"):
        versions.check_version(of_version(text))


@pytest.mark.parametrize(("text", "more"), [("4.1.4", 0), ("4.2.0", 0), ("4.3.0", 1), ("5.0.0", 1)])
def test_a_java_class_has_what_a_version_adds(text: str, more: int) -> None:
    """The matrix compiles them with each version: a suite has one Spark alone."""
    source = versions.java_source(of_version(text), janino.source_of("StaticFileIndex"))
    lines = [line.split("//")[0] for line in source.splitlines() if "/*4.3" not in line]
    assert "\n".join(lines).count("scan.markedForSingleTaskExecution()") == more


@pytest.mark.parametrize("text", ["4.1.4", "4.2.0", "4.3.9"])
def test_versions_that_were_tried(text: str) -> None:
    assert versions.is_tried(of_version(text))


@pytest.mark.parametrize("text", ["4.4.0", "4.10.1", "5.0.0-preview1", "of our own"])
def test_a_newer_version_warns_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "_warned", set())
    with pytest.warns(UserWarning, match=rf"Spark {text} is newer .* up to Spark 4\.3"):
        assert not versions.is_tried(of_version(text))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not versions.is_tried(of_version(text))


def test_pyspark_that_is_installed_for_us_is_one_that_was_tried() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (oldest, newest) = (".".join(map(str, each)) for each in (versions.OLDEST, versions.NEWEST))
    major, minor = versions.NEWEST
    assert f"pyspark>={oldest},<{major}.{minor + 1}" in project["optional-dependencies"]["spark"]
    support = (REPOSITORY / "docs" / "support.md").read_text(encoding="utf-8")
    assert f"PySpark {oldest} to {newest}" in support


@pytest.mark.parametrize("version", ["4.1.4", "4.2.0", "4.3.0"])
def test_times_of_arrow_are_in_utc(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def old(schema: st.StructType, timestamp_utc: bool = True) -> tuple[Any, ...]:
        return ("old", schema, timestamp_utc)

    def new(schema: st.StructType, *, timezone: str | None = None) -> tuple[Any, ...]:
        return ("new", schema, timezone)

    schema = st.StructType([st.StructField("at", st.TimestampType())])
    is_old = version < "4.2"
    monkeypatch.setattr(pyspark, "__version__", version)
    monkeypatch.setattr(versions, "to_arrow_schema", old if is_old else new)
    expected = ("old", schema, True) if is_old else ("new", schema, "UTC")
    found: Any = versions.arrow_schema(schema)
    assert found == expected


@pytest.mark.parametrize("version", ["4.1.4", "4.2.0", "4.3.0", "9.0"])
def test_what_a_client_does_at_exit(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    names = {"4.1.4": "_cleanup_ml_cache", "4.2.0": "_on_exit", "4.3.0": "_on_exit"}
    client = SimpleNamespace(**{name: name for name in names.values()})
    if version in names:
        assert str(versions.at_exit(client)) == names[version]
    else:
        assert versions.at_exit(SimpleNamespace())() is None


@pytest.mark.spark
def test_an_untried_spark_reads_whole_tables_natively(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = {"t": table}
    known = vl.spark.connect(spark)
    expected = rows(known.sql(QUERY, tables=tables))
    (scan,) = known.explain(QUERY, tables=tables).tables
    assert scan.scan.read_files == 1
    assert all(path.physical for path in scan.scan.paths)

    monkeypatch.setattr(versions, "NEWEST", (4, 0))
    monkeypatch.setattr(versions, "_warned", set())
    lake = vl.spark.connect(spark)
    with pytest.warns(UserWarning, match="is newer than this version of variantlake"):
        found = lake.sql(QUERY, tables=tables)
    assert rows(found) == expected
    assert len(expected) == 2
    said = lake.explain(QUERY, tables=tables)
    assert said.note == f"whole Variants of all files are read: {versions.UNTRIED}"
    assert said.tables[0].scan.read_files == 2
    assert not any(path.physical for path in said.tables[0].scan.paths)
    assert said.tables[0].whole == ("event",)
    assert rows(lake.read(table)) == rows(known.read(table))
    assert lake.append(str(Path(table).with_name("copy")), lake.read(table)).rows_written == 20


@pytest.mark.spark
def test_java_that_does_not_compile_is_an_error_of_ours(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Gone.java").write_text("public class Gone { org.apache.spark.Gone gone; }")
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    with pytest.raises(
        UnsupportedFeature, match=r"internals of this Spark are not those"
    ) as caught:
        janino.java_instance(spark, "Gone")
    assert 'format("variantlake")' in (caught.value.hint or "")

"""Spans of OpenTelemetry, as its own exporter gets them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import variantlake as vl
from tests.corpora import library
from variantlake.telemetry import tracing


@pytest.fixture
def exporter() -> Iterator[Any]:
    trace = library("opentelemetry.sdk.trace")
    memory = library("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    export = library("opentelemetry.sdk.trace.export")
    exporter, provider = memory.InMemorySpanExporter(), trace.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    vl.set_tracing(provider=provider)
    yield exporter
    vl.set_tracing(False)


def _named(exporter: Any, name: str) -> list[Any]:
    return [each for each in exporter.get_finished_spans() if each.name == f"variantlake.{name}"]


def test_loads_commits_plans_and_reads_are_spans(exporter: Any, tmp_path: Path) -> None:
    Path(tmp_path, "a.ndjson").write_text('{"n": 1}\n{"n": 2}\n')
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    table.append(tmp_path / "a.ndjson")
    table.append([{"n": 3}])
    loads = _named(exporter, "load")
    assert [dict(each.attributes)["variantlake.rows"] for each in loads] == [2, 1]
    assert {each.attributes["variantlake.table"] for each in loads} == {table.uri}
    commits = _named(exporter, "commit")
    assert [
        (each.attributes["variantlake.operation"], each.attributes["variantlake.version"])
        for each in commits
    ] == [("CREATE TABLE", 0), ("WRITE", 1), ("WRITE", 2)]
    assert [each.parent and each.parent.span_id for each in commits] == [
        None,
        *(each.context.span_id for each in loads),
    ]
    exporter.clear()
    assert table.scan(where="event:n::int = 3").count() == 1
    assert table.scan(["event:n::int AS n"], where="event:n::int = 3").to_arrow().num_rows == 1
    plans, reads = _named(exporter, "plan"), _named(exporter, "read")
    assert (plans[-1].attributes["variantlake.files"], len(reads) > 0) == (2, True)
    assert plans[-1].attributes["variantlake.files_read"] == 1
    assert {each.attributes["variantlake.file"] for each in reads} <= {
        table.snapshot.location(add.path) for add in table.snapshot.add_files()
    }
    assert all(each.end_time >= each.start_time for each in reads)


def test_errors_are_of_their_span(exporter: Any, tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    Path(tmp_path, "a.ndjson").write_text("{\n")
    with pytest.raises(vl.InvalidJson):
        table.append(tmp_path / "a.ndjson")
    (load,) = _named(exporter, "load")
    assert not load.status.is_ok
    assert load.events[0].attributes["exception.type"].endswith("InvalidJson")


def test_off_there_are_no_spans_and_no_library(tmp_path: Path) -> None:
    assert tracing.begin("read", file="x") is None
    script = f"""
import sys
import variantlake as vl
t = vl.Table.create({str(tmp_path / "t")!r}, "event VARIANT")
t.append([{{"n": 1}}])
assert t.scan().to_arrow().num_rows == 1
assert not [name for name in sys.modules if "opentelemetry" in name or "prometheus" in name]
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_the_library_spans_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(vl.MissingDependency, match=r"opentelemetry is not installed"):
        vl.set_tracing()

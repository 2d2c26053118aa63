"""Events of OpenLineage, as its own client sends them."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import variantlake as vl
from tests.corpora import library
from variantlake.telemetry.lineage import MAX_INPUTS


@pytest.fixture
def events() -> Iterator[list[dict[str, Any]]]:
    """What is sent, as the JSON that a server gets."""
    serde = library("openlineage.client.serde").Serde
    client = library("openlineage.client").OpenLineageClient
    base: Any = library("openlineage.client.transport").Transport
    sent: list[dict[str, Any]] = []

    class Memory(base):  # type: ignore[misc] # of a library that need not be there
        kind = "memory"

        def emit(self, event: Any) -> None:
            sent.append(json.loads(serde.to_json(event)))

    vl.set_lineage(client=client(transport=Memory()), namespace="jobs")
    yield sent
    vl.set_lineage(False)


def _table(path: Path) -> vl.Table:
    return vl.Table.create(path, "event VARIANT, file STRING")


def test_a_load_says_from_where_and_into_what(events: list[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / "a.ndjson"
    file.write_text('{"n": 1}\n{"n": 2}\n')
    done = _table(tmp_path / "t").append(file, file_column="file")
    start, complete = events
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert uuid.UUID(start["run"]["runId"])
    assert complete["job"]["namespace"] == "jobs"
    assert complete["job"]["name"] == f"load:{tmp_path / 't'}"
    assert complete["producer"] == "urn:variantlake"
    (source,) = complete["inputs"]
    assert (source["namespace"], source["name"]) == ("file", str(file))
    (output,) = complete["outputs"]
    assert (output["namespace"], output["name"]) == ("file", str(tmp_path / "t"))
    fields = [(each["name"], each["type"]) for each in output["facets"]["schema"]["fields"]]
    assert fields == [("event", "variant"), ("file", "string")]
    assert output["facets"]["version"]["datasetVersion"] == "1"
    counts = output["outputFacets"]["outputStatistics"]
    assert (counts["rowCount"], counts["size"]) == (2, done.bytes_written)


def test_a_failed_load_says_so_without_values(events: list[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / "a.ndjson"
    file.write_text('{"secret": }\n')
    with pytest.raises(vl.InvalidJson):
        _table(tmp_path / "t").append(file)
    assert [each["eventType"] for each in events] == ["START", "FAIL"]
    assert events[1]["run"]["facets"]["errorMessage"]["message"] == "InvalidJson"
    assert "secret" not in json.dumps(events)


def test_rows_autoloads_and_mirrors_are_runs_too(
    events: list[dict[str, Any]], tmp_path: Path
) -> None:
    table = _table(tmp_path / "t")
    table.append([{"n": 1}])
    source = tmp_path / "in"
    source.mkdir()
    for number in range(MAX_INPUTS + 1):
        Path(source, f"{number}.ndjson").write_text(f'{{"n": {number}}}\n')
    vl.autoload(table, str(source), settle="0s")
    vl.mirror(table, tmp_path / "mirror", "event:n::bigint AS n")
    done = [each for each in events if each["eventType"] == "COMPLETE"]
    assert [each["job"]["name"].partition(":")[0] for each in done] == [
        "append",
        "autoload",
        "mirror",
    ]
    assert [[each["name"] for each in event["inputs"]] for event in done] == [
        [],
        [str(source)],
        [str(tmp_path / "t")],
    ]
    assert done[2]["inputs"][0]["facets"]["version"]["datasetVersion"] == str(
        table.refresh().version
    )
    rows = [each["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] for each in done]
    assert rows == [1, MAX_INPUTS + 1, MAX_INPUTS + 2]
    assert len({each["run"]["runId"] for each in done}) == 3


def test_an_event_that_cannot_be_sent_stops_no_load(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library("openlineage.client")

    class Broken:
        def emit(self, _: object) -> None:
            raise ConnectionError("nobody listens")

    vl.set_lineage(client=Broken())
    try:
        assert _table(tmp_path / "t").append([{"n": 1}]).rows_written == 1
    finally:
        vl.set_lineage(False)
    assert "nobody listens" in caplog.text


def test_off_the_library_is_not_imported(tmp_path: Path) -> None:
    script = f"""
import sys
import variantlake as vl
vl.Table.create({str(tmp_path / "t")!r}, "event VARIANT").append([{{"n": 1}}])
assert not [name for name in sys.modules if "openlineage" in name]
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_the_library_events_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    with pytest.raises(vl.MissingDependency, match="openlineage is not installed"):
        vl.set_lineage()

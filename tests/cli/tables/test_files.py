"""`variantlake cat`, `inspect` and `check`, of tables and of single files."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests import corpora
from tests.cli.command import run
from tests.corpora import EARTHQUAKES
from tests.delta.tables import add, first_commit, metadata, write_log
from tests.ingest import bad_input
from tests.parquet.write.test_table_writer import of
from variantlake.delta.protocol.features import SCAN_FEATURES
from variantlake.ingest.local_run import ingest_here
from variantlake.parquet.metadata.annotate import annotate
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import VARIANT_TYPE, arrow_type

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lake") / "earthquakes"
    ingest_here(EARTHQUAKES, path, max_rows_per_file=600)
    return path


@pytest.fixture(scope="module")
def file(table: Path) -> Path:
    return min(table.glob("*.parquet"))


@pytest.fixture(scope="module")
def lines() -> list[str]:
    with gzip.open(EARTHQUAKES, "rt", encoding="utf-8") as text:
        return [vl.parse_json(line).to_json() for line in text]


def test_cat_gives_the_documents_back(
    table: Path, lines: list[str], monkeypatch: Patch, capfd: Capture
) -> None:
    done = run(monkeypatch, capfd, "cat", table)
    assert done.code == 0
    assert done.out.splitlines() == lines


def test_cat_of_a_file_stops_at_the_limit(
    file: Path, lines: list[str], monkeypatch: Patch, capfd: Capture
) -> None:
    done = run(monkeypatch, capfd, "cat", "--limit", "3", "--json", file)
    assert [json.loads(line) for line in done.out.splitlines()] == [
        {"event": json.loads(line)} for line in lines[:3]
    ]
    done = run(monkeypatch, capfd, "cat", "--limit", "1", "--column", "event", file)
    assert done.out == lines[0] + "\n"


def test_cat_leaves_out_deleted_rows_and_knows_mapped_columns(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    made = vl.Table.create(tmp_path, "event VARIANT, k INT", properties=properties)
    rows = pa.table({"event": [f'{{"n":{n}}}' for n in range(4)], "k": pa.array(range(4), "int32")})
    made.append(rows, json_columns=["event"])
    made.delete("k = 2")
    assert any("deletionVector" in path.read_text() for path in tmp_path.glob("_delta_log/*2.json"))
    done = run(monkeypatch, capfd, "cat", "--json", tmp_path)
    found = [json.loads(line) for line in done.out.splitlines()]
    assert found == [{"event": {"n": n}, "k": n} for n in (0, 1, 3)]
    done = run(monkeypatch, capfd, "cat", "--column", "event", "--limit", "3", tmp_path)
    assert done.out.splitlines() == ['{"n":0}', '{"n":1}', '{"n":3}']


def test_short_files_and_files_for_tables_have_hints(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    file = tmp_path / "short"
    file.write_bytes(b"PAR1")
    for command, wanted in (("cat", "cut short"), ("history", "`variantlake cat`")):
        done = run(monkeypatch, capfd, command, file)
        assert done.code == 1
        assert wanted in done.err.split("Hint:")[1]


def test_cat_names_the_columns_when_one_is_unknown(
    table: Path, file: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    for source in (table, file):
        done = run(monkeypatch, capfd, "cat", "--column", "nope", source)
        assert done.code == 1
        assert "nope" in done.err
        assert "event" in done.err


def test_inspect_shows_paths_types_and_shares(
    table: Path, file: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    for source in (table, file):
        done = run(monkeypatch, capfd, "inspect", source)
        assert done.code == 0
        assert "$['properties']['mag']" in done.out
        assert "DECIMAL" in done.out


def test_inspect_gives_json(table: Path, file: Path, monkeypatch: Patch, capfd: Capture) -> None:
    done = run(monkeypatch, capfd, "inspect", "--json", table)
    known = json.loads(done.out)
    assert (known["version"], known["files"], known["rows"]) == (0, 3, 1707)
    paths = {each["path"]: each for each in known["columns"]["event"]}
    assert paths["$['properties']['time']"]["typed_rows"] == 1707
    assert paths["$['properties']['time']"]["clean_files"] == 3
    done = run(monkeypatch, capfd, "inspect", "--json", file)
    (variant,) = json.loads(done.out)["variants"]
    assert variant["annotated"]
    nodes = {node["path"]: node for node in variant["nodes"]}
    assert nodes["$['properties']['time']"]["share"] == 1


@pytest.fixture
def odd(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Path:
    """Residuals with TIME, integers beside decimals; the load warns of the former."""
    made = vl.Table.create(
        tmp_path / "t", "event VARIANT", shredding={"event": "a DECIMAL(9,2), b DECIMAL(9,2)"}
    )
    texts = ['{"a":7,"b":7}', '{"a":1.50,"b":7.0}']
    made.append(pa.table({"event": texts}), json_columns=["event"])
    assert caplog.messages == []
    made.append(pa.table({"event": of({"a": 1, "c": dt.time(1)})}))
    (message,) = caplog.messages
    assert "residuals of `event` in 1 of 1 new files hold TIME" in message
    return tmp_path / "t"


def test_inspect_says_what_residuals_and_decimals_hold(
    odd: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    told: list[dict[str, object]] = []
    for path in sorted(odd.glob("*.parquet")):
        (variant,) = json.loads(run(monkeypatch, capfd, "inspect", "--json", path).out)["variants"]
        told.append(variant["notes"])
        shown = run(monkeypatch, capfd, "inspect", path).out
        assert ("types that Spark lacks" in shown) == told[-1]["types_spark_lacks"]
        assert ("as decimals" in shown) == bool(told[-1]["integers_as_decimals"])
    assert sorted(told, key=str) == [
        {
            "types_spark_lacks": False,
            "key_orders_differ": False,
            "integers": ["$['a']"],
            "integers_as_decimals": ["$['b']"],
        },
        {
            "types_spark_lacks": True,
            "key_orders_differ": False,
            "integers": ["$['a']"],
            "integers_as_decimals": [],
        },
    ]
    found = json.loads(run(monkeypatch, capfd, "inspect", "--json", odd).out)
    assert found["residuals"] == {
        "event": {"types_spark_lacks": 1, "key_orders_differ": 0, "unknown": 0}
    }
    shown = run(monkeypatch, capfd, "inspect", odd).out
    assert "files whose residuals hold TIME" in shown


def test_inspect_says_where_spark_may_miss_keys(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture, caplog: pytest.LogCaptureFixture
) -> None:
    made = vl.Table.create(tmp_path / "t", "event VARIANT")
    made.append(
        pa.table({"event": ['{"\\ud83d\\ude00": 1, "\\uff21": 2}']}), json_columns=["event"]
    )
    (message,) = caplog.messages
    assert "keys of `event` in 1 of 1 new files have characters above U+FFFF" in message
    (path,) = (tmp_path / "t").glob("*.parquet")
    assert "above U+FFFF" in run(monkeypatch, capfd, "inspect", path).out
    found = json.loads(run(monkeypatch, capfd, "inspect", "--json", tmp_path / "t").out)
    assert found["residuals"]["event"]["key_orders_differ"] == 1
    assert "files with keys above U+FFFF" in run(monkeypatch, capfd, "inspect", tmp_path / "t").out
    for source in (path, tmp_path / "t"):
        done = run(monkeypatch, capfd, "check", source)
        assert (done.code, done.out) == (0, "1 file, nothing found\n")
        assert done.err.count(f"{path}: event has keys above U+FFFF") == 1


def test_inspect_says_why(file: Path, table: Path, monkeypatch: Patch, capfd: Capture) -> None:
    done = run(monkeypatch, capfd, "inspect", "--why", file)
    assert done.code == 0
    assert "$['geometry']['coordinates']" in done.out
    done = run(monkeypatch, capfd, "inspect", "--why", "--json", file)
    assert any(not reason["taken"] for reason in json.loads(done.out))
    assert run(monkeypatch, capfd, "inspect", "--why", table).code == 2


def test_check_finds_nothing_in_our_files(
    table: Path, file: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    done = run(monkeypatch, capfd, "check", table)
    assert (done.code, done.out) == (0, "3 files, nothing found\n")
    assert run(monkeypatch, capfd, "check", "--json", file).out == ""


@pytest.mark.corpus(corpora.DELTA_TABLES)
@pytest.mark.parametrize(
    "name",
    [
        "spark-shredded-variant-preview-delta",
        "spark-variant-checkpoint",
        "variant-stats-no-checkpoint",
        "variant-stats-state-reconstruction",
    ],
)
def test_check_finds_nothing_in_tables_of_other_writers(
    name: str, monkeypatch: Patch, capfd: Capture
) -> None:
    """Their files have no VARIANT annotation: Delta's protocol asks for none."""
    table = corpora.DELTA_TABLES / name
    done = run(monkeypatch, capfd, "check", table)
    assert (done.code, done.out.endswith(" nothing found\n")) == (0, True)


def test_check_reads_tables_of_every_feature_that_scans_obey(
    file: Path, tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    changes = [{"toType": "long", "fromType": "integer"}]
    widened = {"name": "n", "type": "long", "nullable": True}
    widened["metadata"] = {"delta.typeChanges": changes}
    event = {"name": "event", "type": "variant", "nullable": True, "metadata": {}}
    features = [*SCAN_FEATURES, "variantType", "variantShredding"]
    actions = [
        {"protocol": dict.fromkeys(("readerFeatures", "writerFeatures"), features)
         | {"minReaderVersion": 3, "minWriterVersion": 7}},
        {"metaData": {**metadata(**{"delta.columnMapping.mode": "name"}),
                      "schemaString": json.dumps({"type": "struct", "fields": [event, widened]})}},
        add(file.name, size=file.stat().st_size),
    ]  # fmt: skip
    write_log(tmp_path, actions)
    (tmp_path / file.name).write_bytes(file.read_bytes())
    done = run(monkeypatch, capfd, "check", tmp_path)
    assert (done.code, done.out) == (0, "1 file, nothing found\n")


@pytest.fixture(scope="module")
def bad_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A row with both a value and a typed value, which the shredding specification forbids."""
    path = tmp_path_factory.mktemp("bad") / "both.parquet"
    rows = [{"metadata": b"\x01\x00\x00", "value": b"\x00", "typed_value": 1}]
    table = pa.table({"v": pa.array(rows, arrow_type(parse_ddl("BIGINT")))})
    pq.write_table(table, path, store_schema=False)
    annotate(path, [("v",)])
    return path


@pytest.mark.rule(2)
def test_check_names_row_and_rule_of_a_bad_file(
    bad_file: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    done = run(monkeypatch, capfd, "check", bad_file)
    assert done.code == 4
    assert "rule: " in done.out
    done = run(monkeypatch, capfd, "check", "--json", bad_file)
    assert json.loads(done.out.splitlines()[0])["rule"]


@pytest.mark.parametrize("command", ["cat", "inspect", "check"])
def test_what_is_no_parquet_file_is_a_sentence(
    command: str, tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    text = tmp_path / "text.parquet"
    text.write_text("no Parquet at all")
    done = run(monkeypatch, capfd, command, text)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"Error: {text}")
    assert "Traceback" not in done.err


def test_rows_are_those_that_the_log_tells(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    adds = [add(f"f{n}", stats=json.dumps({"numRecords": 5})) for n in range(3)]
    table = write_log(tmp_path / "t", first_commit(*adds))
    assert json.loads(run(monkeypatch, capfd, "inspect", "--json", table).out)["rows"] == 15
    unknown = write_log(tmp_path / "u", first_commit(*adds, add("g")))
    assert json.loads(run(monkeypatch, capfd, "inspect", "--json", unknown).out)["rows"] is None


def test_a_parquet_file_that_was_cut_short_is_a_finding(
    file: Path, tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    short = tmp_path / "short.parquet"
    short.write_bytes(file.read_bytes()[:-100])
    done = run(monkeypatch, capfd, "check", short)
    assert done.code == 4
    assert done.out.startswith(f"{short}: file: the file does not end with")


def test_a_file_without_a_variant_is_named(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"n": [1, 2]}), path)
    done = run(monkeypatch, capfd, "check", path)
    assert (done.code, done.out) == (0, "1 file, nothing found\n")
    assert "no VARIANT column" in done.err
    done = run(monkeypatch, capfd, "check", "--json", path)
    assert (done.code, done.out) == (0, "")
    assert "no VARIANT column" in run(monkeypatch, capfd, "inspect", path).out
    assert json.loads(run(monkeypatch, capfd, "inspect", "--json", path).out)["variants"] == []
    assert run(monkeypatch, capfd, "cat", path).out == "1\n2\n"


def test_an_unmarked_group_is_read_as_a_variant_where_it_is_named(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    path = tmp_path / "t.parquet"
    row = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x07", "_note": 1}
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("_note", pa.int8())])
    twice = pa.struct([pa.field("x", kind)])
    pq.write_table(pa.table({"t": pa.array([{"x": row}], twice), "s": [{"n": 1}]}), path)
    done = run(monkeypatch, capfd, "cat", "--variant", "t.x", path)
    assert json.loads(done.out) == {"t": {"x": 7}, "s": {"n": 1}}
    done = run(monkeypatch, capfd, "inspect", "--variant", "t.x", "--json", path)
    assert [each["column"] for each in json.loads(done.out)["variants"]] == ["t.x"]
    done = run(monkeypatch, capfd, "check", "--variant", "s", path)
    assert "rule: the group is a Variant" in done.out
    for command in ("cat", "inspect", "check"):
        done = run(monkeypatch, capfd, command, "--variant", "nope", path)
        assert (done.code, "no group 'nope'" in done.err) == (1, True)


def test_a_table_names_its_own_variants(table: Path, monkeypatch: Patch, capfd: Capture) -> None:
    for command in ("cat", "inspect", "check"):
        assert run(monkeypatch, capfd, command, "--variant", "event", table).code == 2


def test_thresholds_of_why(file: Path, monkeypatch: Patch, capfd: Capture) -> None:
    def taken(*options: str) -> set[str]:
        done = run(monkeypatch, capfd, "inspect", "--why", "--json", *options, file)
        return {each["path"] for each in json.loads(done.out) if each["taken"]}

    usual = taken()
    assert "$['geometry']['coordinates']" in taken("--arrays") - usual
    assert taken("--max-columns", "3") < usual
    assert taken("--max-depth", "1") < usual
    assert taken("--min-share", "1") < usual
    assert taken("--min-purity", "1", "--sample", "500") <= usual
    assert run(monkeypatch, capfd, "inspect", "--why", "--min-share", "2", file).code == 2


@pytest.mark.parametrize("command", ["cat", "check"])
def test_progress_is_shown_on_a_terminal_and_results_are_not(
    command: str, file: Path, bad_file: Path, tmp_path: Path
) -> None:
    source = bad_file if command == "check" else file
    code, shown = on_terminal([command, "--json", str(source)], tmp_path / "result")
    assert code == (4 if command == "check" else 0)
    assert "rows " in shown
    lines = (tmp_path / "result").read_text(encoding="utf-8").splitlines()
    assert lines
    assert all(json.loads(line) for line in lines)


@pytest.mark.parametrize("command", ["cat", "check"])
def test_an_interrupt_ends_with_a_sentence(command: str, tmp_path: Path) -> None:
    path = tmp_path / "long.parquet"
    row = {"metadata": b"\x01\x00\x00", "value": b"\x03\x02\x00\x01\x02\x00\x00"}
    table = pa.table({"v": pa.array([row] * 200_000, VARIANT_TYPE)})
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(20):
            writer.write_table(table)
    code, shown = on_terminal([command, str(path)], tmp_path / "result", interrupt=True)
    assert code == 130
    assert shown.endswith("Interrupted.\r\n")


def on_terminal(arguments: list[str], result: Path, *, interrupt: bool = False) -> tuple[int, str]:
    """The exit code, and what a terminal shows as stderr, of a command with stdout to a file.

    Interrupted, where asked for, as soon as the terminal shows a row.
    """
    ours, theirs = os.openpty()
    with result.open("wb") as stdout:
        process = subprocess.Popen(
            [sys.executable, "-m", "variantlake.cli.main", *arguments],
            stdout=stdout,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm"},
        )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the end, on Linux
        while part := os.read(ours, 1 << 16):
            shown += part
            if interrupt and b"rows " in shown:
                process.send_signal(signal.SIGINT)
                interrupt = False
    os.close(ours)
    return process.wait(timeout=60), shown.decode()


def test_partition_values_and_later_columns_are_shown(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    shown = bad_input.listing(tmp_path)
    assert shown == []
    vl.Table.create(tmp_path / "t", "event VARIANT, note STRING")
    (tmp_path / "a").write_text('{"a": 1}\n')
    vl.Table.open(tmp_path / "t").append(vl.ndjson(tmp_path / "a"))
    done = run(monkeypatch, capfd, "cat", tmp_path / "t")
    assert json.loads(done.out) == {"event": {"a": 1}, "note": None}


@pytest.mark.parametrize("command", ["cat", "inspect", "check"])
def test_a_missing_file_is_a_sentence(
    command: str, tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    done = run(monkeypatch, capfd, command, tmp_path / "nowhere.parquet")
    assert done.code == 1
    assert str(tmp_path / "nowhere.parquet") in done.err
    assert "Traceback" not in done.err

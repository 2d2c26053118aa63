"""The matrix of engines: its page is that of its results, and it notices what is wrong.

`make interop` asks all engines, in environments of their own; here those of the tests' own.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from interop.compare import Columns, difference
from interop.engines import ENGINES, REPOSITORY, Died, Refused, Worker
from interop.features import FEATURES
from interop.kinds import KINDS
from interop.page import PAGE, RESULTS, render
from interop.run import Cell, build, cells
from interop.values import canonical
from interop.workers import others
from interop.workers.features import of_spark

import variantlake as vl
from interop import comparison, protocol, run
from variantlake.errors import VariantLakeError

BY_NAME = {engine.name: engine for engine in ENGINES}


def test_the_page_is_made_of_the_results() -> None:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    page = render(results["date"], [Cell(**entry) for entry in results["cells"]])
    assert PAGE.read_text(encoding="utf-8") == page


def test_the_results_have_every_engine_and_every_kind() -> None:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    asked = {(entry["engine"], entry["kind"]) for entry in results["cells"]}
    for engine in ENGINES:
        for kind in KINDS:
            if engine.files if kind.files_only else engine.tables:
                assert (engine.name, kind.name) in asked


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("deltalake", "plain,types,unshredded,partitions,deletion-vectors,mapping,checkpoint-v2"),
        ("polars", "plain,mirror,row-tracking"),
        ("duckdb", "file-unshredded,file-shredded,file-arrays"),
    ],
)
def test_engines_that_are_here_read_what_we_wrote(
    name: str, kinds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "environment", lambda _: sys.executable)
    expected = build(tmp_path, [kind for kind in KINDS if kind.name in kinds.split(",")])
    found = {cell.kind: cell for cell in cells(BY_NAME[name], tmp_path, expected)}
    assert set(kinds.split(",")) <= set(found)
    assert {kind: cell for kind, cell in found.items() if cell.outcome != "equal"} == {}


def test_a_feature_that_an_engine_lacks_is_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "environment", lambda _: sys.executable)
    expected = build(tmp_path, [kind for kind in KINDS if kind.name == "shredded"])
    engine = dataclasses.replace(BY_NAME["deltalake"], writes=False)
    (cell,) = cells(engine, tmp_path, expected)
    assert cell.outcome == "refuses"
    assert "VariantShredding" in cell.reason


DOCUMENT = {"variant": {"a": 1, "at": "2026-01-31 12:30:01.5+00:00"}}


@pytest.mark.parametrize(
    ("wanted", "row", "is_equal"),
    [
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": None}, False),
        ({"a": 1}, {"b": 1}, False),
        ({"a": [1, None]}, {"a": [1]}, False),
        (
            {"v": DOCUMENT},
            {"v": {"variant": '{"a": 1.00, "at": "2026-01-31T12:30:01.500Z"}'}},
            True,
        ),
        ({"v": DOCUMENT}, {"v": {"variant": '{"a": 1, "at": "2026-01-31 12:30:01.5"}'}}, False),
        ({"v": DOCUMENT}, {"v": {"variant": '{"a": 1}'}}, False),
        ({"v": {"variant": None}}, {"v": {"variant": "null"}}, True),
        ({"v": {"variant": None}}, {"v": None}, True),
        (
            {"v": {"variant": True}},
            {"v": {"metadata": canonical(b"\x01\0\0"), "value": canonical(b"\x04")}},
            True,
        ),
        (
            {"v": {"variant": True}},
            {"v": {"metadata": canonical(b"\x01\0\0"), "value": None}},
            False,
        ),
    ],
)
def test_other_values_are_noticed(wanted: Any, row: Any, is_equal: bool) -> None:
    assert (difference([wanted], [row]) == "") is is_equal


def test_other_counts_of_rows_are_noticed() -> None:
    assert difference([{"a": 1}], []) == "0 rows for 1"


def test_columns_of_a_shredded_variant_are_no_values() -> None:
    row = {"v": {"metadata": canonical(b""), "value": None, "typed_value": {"a": 1}}}
    with pytest.raises(Columns):
        difference([{"v": DOCUMENT}], [row])


def test_a_worker_that_dies_says_its_last_words() -> None:
    worker = Worker(sys.executable, ["interop.workers.others", "no such engine"])
    with pytest.raises(Died, match="KeyError"):
        worker.ask("read_table", path="x")
    worker.close()


def test_what_a_process_of_an_engine_prints_is_no_answer() -> None:
    """Spark's JVM is such a process, and a VACUUM of Delta Spark prints how much it deleted."""
    code = (
        "import subprocess; from interop.protocol import serve; "
        "say = lambda: subprocess.run(['echo', 'said']).returncode; "
        "serve(lambda: {'said': say} if say() == 0 else {})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input='{"action": "said"}\n', capture_output=True, text=True,
        cwd=REPOSITORY, check=True,
    )  # fmt: skip
    assert done.stdout == '{"answer": 0}\n'
    assert done.stderr == "said\nsaid\n"


def test_what_sail_offers_keeps_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server ends when nobody refers to it, and a client without one waits for minutes."""

    class Server:
        listening_address = "127.0.0.1", 1

        def __init__(self, **_: Any) -> None:
            servers.append(weakref.ref(self))

        def start(self, **_: Any) -> None:
            pass

    servers: list[weakref.ref[Server]] = []
    monkeypatch.setattr(others, "_module", lambda _: MagicMock(SparkConnectServer=Server))
    offers = protocol.offered(others.Sail()), of_spark(others.Sail(), is_sail=True)
    gc.collect()
    assert all(offers)
    assert [each() is not None for each in servers] == [True, True]


def test_an_error_of_an_engine_names_no_address() -> None:
    worker = Worker(sys.executable, ["interop.workers.others", "pyarrow"])
    with pytest.raises(Refused) as caught:
        worker.ask("read_files", path="https://example.com/x")
    assert "example.com" not in str(caught.value)
    worker.close()


def test_the_table_of_features_is_made_of_the_results() -> None:
    results = json.loads(comparison.RESULTS.read_text(encoding="utf-8"))
    page = comparison.PAGE.read_text(encoding="utf-8")
    assert comparison.render(page, results) == page


def test_probes_of_our_features_do_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "PLACE", tmp_path)
    wrong = {
        cell.kind: cell
        for cell in comparison.probed(None)
        if cell.outcome not in {"equal", "no call"}
    }
    assert wrong == {}


def test_a_probe_notices_who_does_not_skip(tmp_path: Path) -> None:
    by_name = {feature.name: feature for feature in FEATURES}
    for name in ("skip", "path-skip"):
        by_name[name].prepare(tmp_path / name)
        with pytest.raises(VariantLakeError):
            vl.Table.open(tmp_path / name).scan().to_arrow()
    by_name["path-column"].prepare(tmp_path / "column")
    with pytest.raises((VariantLakeError, OSError)):
        vl.Table.open(tmp_path / "column").scan(["event"]).to_arrow()

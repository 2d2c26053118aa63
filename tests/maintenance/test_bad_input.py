"""Upkeep that cannot be done: one sentence, with what to do next, in the words of each surface."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.cli.command import run
from variantlake.errors import (
    InvalidQuery,
    InvalidSchema,
    InvalidValue,
    MissingSource,
    UnsupportedFeature,
    VariantLakeError,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Call = tuple[str, dict[str, Any], list[str]]
"""A method, its arguments, and the command that does the same."""

WHERE = "event:z::int IN (SELECT 1)"
BAD: dict[str, tuple[Call, type[VariantLakeError], str, str]] = {
    # What is asked for; the error; what it says; what its hint says.
    "an unknown column": (
        ("optimize", {"where": "nope = 1"}, ["optimize", "--where", "nope = 1"]),
        InvalidQuery, "the table has no column 'nope'", "it has 'event', 'n', 'day'",
    ),
    "no condition": (
        ("reshred", {"where": " "}, ["reshred", "--where", " "]),
        InvalidQuery, "the condition is empty", "leave it out",
    ),
    "half a condition": (
        ("cluster", {"where": "n ="}, ["cluster", "--where", "n ="]),
        InvalidQuery, "'n =' does not parse", "",
    ),
    "a condition for Spark": (
        ("optimize", {"where": WHERE}, ["optimize", "--where", WHERE]),
        UnsupportedFeature, f"in '{WHERE}'", "comparisons of columns and paths with constants",
    ),
    "a schema without the path of the order": (
        ("reshred", {"shredding": "z BIGINT"}, ["reshred", "--shredding", "z BIGINT"]),
        InvalidSchema, "cannot cluster by 'event:kind': the path is not shredded into a column",
        "paths of event that are: event:z; reshredding makes columns of others",
    ),
    "a column that is no Variant": (
        ("reshred", {"shredding": {"day": "a INT"}}, ["reshred", "--shredding", "day=a INT"]),
        InvalidSchema, "the table has no VARIANT column 'day'", "VARIANT columns: event",
    ),
    "a version to come": (
        ("restore", {"version": 99}, ["restore", "--version", "99"]),
        MissingSource, "version 99 does not exist", "",
    ),
    "a short retention": (
        ("vacuum", {"retention": 1}, ["vacuum", "--yes", "--retention", "1"]),
        InvalidValue, "shorter than the table's own, 168 hours", "force",
    ),
    "quarantine by the log": (
        ("vacuum", {"lite": True, "quarantine": True}, ["vacuum", "-y", "--lite", "--quarantine"]),
        InvalidValue, "log does not name quarantine files", "leave out one of",
    ),
    "another feature": (
        ("drop_feature", {"name": "variantType"}, ["drop-feature", "variantType"]),
        UnsupportedFeature, "variantType cannot be dropped here", "no engine drops it",
    ),
    "versions from the end": (
        ("check_rewrite", {"from_version": 9, "to_version": 1},
         ["check", "--deep", "--from", "9", "--to", "1"]),
        InvalidValue, "there are no versions from 9 to 1", "",
    ),
}  # fmt: skip

ORDERS = {
    "nope": "the table has no column 'nope'",
    "event:nope::string": "the path is not shredded into a column",
    "event:kind::bigint": "the path is shredded as STRING",
    "event:o": "the path is not shredded into a column",
    "event:[0]": "an element of an array has no column",
    "event": "is a Variant, which has no order",
    "day": "the table is partitioned by it",
    "n, n": "a path appears twice",
}

FEATURES = {
    "frobnicate": "which this version does not know",
    "icebergCompatV2": "which cannot be written here",
}
REWRITES: list[Call] = [
    ("optimize", {}, ["optimize"]),
    ("cluster", {}, ["cluster"]),
    ("reshred", {}, ["reshred"]),
    ("unshred", {}, ["reshred", "--unshred"]),
    ("vacuum", {}, ["vacuum", "--yes"]),
    ("restore", {"version": 1}, ["restore", "--version", "1"]),
    ("drop_feature", {"name": "variantShredding"}, ["drop-feature"]),
]


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    made = vl.Table.create(
        tmp_path / "t",
        "event VARIANT, n INT, day STRING",
        partition_by="day",
        shredding={"event": "kind STRING, o STRUCT<x: BIGINT>"},
    )
    for _ in range(2):
        rows = {"event": ['{"kind": "a", "z": 1}'], "n": pa.array([1], pa.int32()), "day": ["x"]}
        made.append(pa.table(rows), json_columns=["event"])
    made.set_clustering("event:kind")
    return made.refresh()


def needing(table: vl.Table, feature: str) -> str:
    """The table from now on with a feature that writers must know."""
    known = table.snapshot.protocol
    log = Path(table.uri) / "_delta_log"
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": list(known.reader_features or ()),
        "writerFeatures": [*(known.writer_features or ()), feature],
    }
    actions: list[dict[str, Any]] = [{"protocol": protocol}]
    if feature.startswith("iceberg"):
        actions += [
            json.loads(line)
            for line in (log / f"{table.version:020d}.json").read_text().splitlines()
            if "metaData" in line
        ]
        actions[1]["metaData"]["configuration"]["delta.enableIcebergCompatV2"] = "true"
    lines = "".join(json.dumps(action) + "\n" for action in actions)
    (log / f"{table.version + 1:020d}.json").write_text(lines)
    return table.uri


def check(
    do: Callable[[], object], error: type[VariantLakeError], said: str, hint: str
) -> VariantLakeError:
    with pytest.raises(error) as caught:
        do()
    assert said in str(caught.value).partition("\nHint: ")[0]
    assert hint in caught.value.hint
    return caught.value


@pytest.mark.parametrize("name", BAD)
def test_it_is_a_sentence_for_a_table_and_on_the_command_line(
    table: vl.Table, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    (method, arguments, command), error, said, hint = BAD[name]
    version = table.refresh().version
    check(lambda: getattr(table, method)(**arguments), error, said, hint)
    shown = run(monkeypatch, capfd, command[0], table.uri, *command[1:])
    assert (shown.code, "Traceback" in shown.err) == (1, False)
    flat = shown.err.replace("\n", " ")
    assert said in flat
    assert hint in flat
    assert table.refresh().version == version


@pytest.mark.parametrize("by", ORDERS)
def test_what_rows_cannot_be_ordered_by_is_named(
    table: vl.Table, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], by: str
) -> None:
    version = table.refresh().version
    check(lambda: table.set_clustering(*by.split(", ")), InvalidSchema, ORDERS[by], "")
    shown = run(monkeypatch, capfd, "cluster", table.uri, "--by", by)
    assert (shown.code, ORDERS[by] in shown.err.replace("\n", " ")) == (1, True)
    assert table.refresh().version == version


@pytest.mark.parametrize("feature", FEATURES)
def test_a_table_that_we_may_not_rewrite_is_named_with_the_feature(
    table: vl.Table,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    feature: str,
) -> None:
    uri = needing(table, feature)
    opened = vl.Table.open(uri)
    for method, arguments, command in REWRITES:
        found = check(
            lambda: getattr(opened, method)(**arguments),  # noqa: B023 - called at once
            UnsupportedFeature,
            f"the feature {feature}, {FEATURES[feature]}",
            "",
        )
        assert (found.file, bool(found.hint)) == (uri, True)
        shown = run(monkeypatch, capfd, command[0], uri, *command[1:])
        assert (shown.code, feature in shown.err) == (1, True)
    assert vl.Table.open(uri).version == table.version + 1


@pytest.mark.spark
def test_it_is_the_same_sentence_in_spark(delta_spark: SparkSession, table: vl.Table) -> None:
    lake = vl.spark.connect(delta_spark)
    for (method, arguments, _), error, said, hint in BAD.values():
        check(lambda: getattr(lake, method)(table.uri, **arguments), error, said, hint)  # noqa: B023
    uri = needing(table, "frobnicate")
    for method, arguments, _ in REWRITES:
        check(
            lambda: getattr(lake, method)(uri, **arguments),  # noqa: B023
            UnsupportedFeature,
            "frobnicate, which this version does not know",
            "a newer version",
        )

"""Clustering of a table: rows stay, bounds part, runs come to an end."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from variantlake.errors import InvalidSchema, InvalidValue, VariantLakeError
from variantlake.maintenance.clustering import plan_clustering as plan_clustering_module
from variantlake.maintenance.clustering.overlap import overlapping
from variantlake.maintenance.clustering.plan_clustering import ORDERED_TAG, plan_clustering
from variantlake.maintenance.rewrite import cell_rows

KINDS = "abcdefgh"
ALL = ["event:kind::string AS k", "event:ts::bigint AS ts", "event", "n", "day"]


def documents(rows: int, seed: int, *, low: int = 0, high: int = 10**6) -> pa.Table:
    """Rows of random events; some lack the time, some have it as text."""
    found = random.Random(seed)
    docs: list[dict[str, Any]] = []
    for number in range(rows):
        doc = {"kind": found.choice(KINDS), "ts": found.randrange(low, high), "pad": "x" * number}
        if number % 50 == 7:
            del doc["ts"]
        if number % 50 == 9:
            doc["ts"] = str(doc["ts"])
        docs.append(doc)
    return pa.table(
        {
            "event": [json.dumps(doc) for doc in docs],
            "n": pa.array(range(rows), pa.int32()),
            "day": pa.array([found.choice("xy") for _ in docs]),
        }
    )


def append(table: vl.Table, rows: int, seed: int, **options: int) -> None:
    table.append(documents(rows, seed, **options), json_columns=["event"])


def content(table: vl.Table) -> list[str]:
    """All rows, in an order that does not depend on files."""
    rows = table.scan(ALL).to_arrow()
    return sorted(map(str, rows.to_pylist()))


def size_of(table: vl.Table) -> int:
    return sum(add.size for add in table.snapshot.add_files())


def overlaps_left(table: vl.Table) -> int:
    plan = plan_clustering(table.snapshot, budget=0, target=1 << 20)
    return sum(int(overlapping(part.extents.boxes).sum()) for part in plan.partitions)


def test_the_share_that_queries_read_is_of_the_files_that_a_condition_names(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "event VARIANT, n INT, day STRING", partition_by="day")
    for seed in range(4):
        append(table, 100, seed)
    table.set_clustering("n")
    done = table.cluster("day = 'x'")
    again = table.cluster("day = 'x'", dry_run=True)
    assert done.read_share_after == again.read_share_before


@pytest.mark.parametrize(
    ("by", "memory"),
    [("event:ts", 1), ("event:kind, event:ts", cell_rows.MEMORY), ("event:pad, n", 1)],
)
def test_files_part_and_rows_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str, memory: int
) -> None:
    monkeypatch.setattr(cell_rows, "MEMORY", memory)
    table = vl.Table.create(tmp_path / "t", "event VARIANT, n INT, day STRING", cluster_by=None)
    table.set_clustering(*by.split(", "))
    for seed in range(5):
        append(table, 200, seed)
    table = table.refresh()
    version, before = table.version, content(table)
    size = size_of(table) // 6
    planned = table.cluster(target_file_size=size, dry_run=True)
    assert planned.dry_run
    assert table.refresh().version == version
    done = table.cluster(target_file_size=size)
    assert done.files_read == planned.files_read == 5
    assert done.files_written > 2
    assert done.rows_rewritten == 1000
    assert done.read_share_after < 0.7 < done.read_share_before
    after = table.refresh()
    assert content(after) == before
    assert overlaps_left(after) == 0
    assert content(vl.Table.open(table.uri, table.version)) == before
    assert after.cluster(target_file_size=size).versions == ()
    assert after.cluster(target_file_size=size, budget=1 << 40).versions == ()


def test_a_large_table_is_ordered_by_several_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each parts its files at the same values; then each range is ordered by itself."""
    table = vl.Table.create(tmp_path / "t", "event VARIANT, n INT, day STRING")
    table.set_clustering("event:ts")
    for seed in range(6):
        append(table, 200, seed)
    table = table.refresh()
    before, size = content(table), size_of(table)
    monkeypatch.setattr(plan_clustering_module, "PART_BYTES", size // 3)
    done = table.cluster(target_file_size=size // 9)
    assert len(done.versions) == 2
    assert 6 + 4 * 3 <= done.files_read <= 6 + 4 * 4  # tasks, ranges
    assert (
        done.rows_rewritten > 2 * 1200 * 0.9
    )  # rows without a value are where they belong at once
    newest = table.refresh()
    assert content(newest) == before
    assert overlaps_left(newest) == 0
    assert done.read_share_after < 0.4 < done.read_share_before
    first = vl.Table.open(table.uri, done.versions[0])
    assert content(first) == before
    assert newest.cluster(target_file_size=size // 9).versions == ()


def test_partitions_are_ordered_each_by_itself_and_where_limits(tmp_path: Path) -> None:
    ddl = "event VARIANT, n INT, day STRING"
    table = vl.Table.create(tmp_path / "t", ddl, partition_by="day", cluster_by="event:ts")
    for seed in range(3):
        append(table, 100, seed)
    table = table.refresh()
    before = content(table)
    one = table.cluster("day = 'x'")
    assert (one.groups, one.files_read, one.files_written) == (1, 3, 1)
    rest = table.cluster()
    assert (rest.groups, rest.files_read) == (1, 3)
    assert content(table.refresh()) == before


def test_an_append_rewrites_at_most_twice_its_bytes(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT, n INT, day STRING", cluster_by="$.ts")
    written = new = 0
    rows = 0
    for seed in range(6):
        append(table, 300, seed)
        rows += 300
        table = table.refresh()
        fresh = sum(
            add.size for add in table.snapshot.add_files() if ORDERED_TAG not in (add.tags or {})
        )
        new += fresh
        done = table.cluster(target_file_size=20_000)
        assert done.new_bytes == fresh
        assert done.bytes_read <= 2 * fresh
        written += done.bytes_written
        table = table.refresh()
        assert table.cluster(target_file_size=20_000).versions == ()
    assert written <= 2.2 * new
    assert len(content(table)) == rows
    full = table.cluster(target_file_size=20_000, budget=1 << 40)
    assert full.read_share_after <= full.read_share_before
    assert table.cluster(target_file_size=20_000, budget=1 << 40).versions == ()


def test_files_in_order_are_left_alone(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT, n INT, day STRING", cluster_by="$.ts")
    for day in range(4):
        append(table, 7, day, low=day * 1000, high=day * 1000 + 999)
    assert table.cluster(budget=1 << 40).versions == ()


def test_long_strings_that_share_their_beginning_come_to_an_end(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT", cluster_by="event:id")
    prefix = "p" * 70
    for seed in range(3):
        ids = np.random.default_rng(seed).integers(0, 10**6, 200).tolist()
        rows = pa.table({"event": [json.dumps({"id": f"{prefix}{n}"}) for n in ids]})
        table.append(rows, json_columns=["event"])
    table = table.refresh()
    table.cluster(target_file_size=3000)
    assert table.cluster(target_file_size=3000, budget=1 << 40).versions == ()


def test_streams_see_no_change_of_data(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT, n INT, day STRING", cluster_by="n")
    append(table, 50, 1)
    append(table, 50, 2)
    version = table.cluster().versions[-1]
    log = (tmp_path / "t" / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    actions = [json.loads(line) for line in log]
    changed = [a[k]["dataChange"] for a in actions for k in ("add", "remove") if k in a]
    assert changed == [False, False, False]
    info = next(a["commitInfo"] for a in actions if "commitInfo" in a)
    assert info["operation"] == "OPTIMIZE"
    assert json.loads(info["operationParameters"]["clusterBy"]) == ["n"]


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"budget": -1}, InvalidValue, "budget is -1"),
        ({"target_file_size": 0}, InvalidValue, "target file size is 0"),
        ({"where": "other = 1"}, VariantLakeError, "other"),
    ],
)
def test_bad_options_are_named(
    tmp_path: Path, options: dict[str, Any], error: type[VariantLakeError], sentence: str
) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT, n INT", cluster_by="n")
    with pytest.raises(error, match=sentence):
        table.cluster(**options)


def test_a_table_without_an_order_is_refused_and_a_path_that_is_no_column(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT, n INT, day STRING")
    append(table, 20, 1)
    with pytest.raises(InvalidValue, match="does not name an order"):
        table.cluster()
    with pytest.raises(InvalidSchema, match="not shredded into a column"):
        table.set_clustering("event:nothing")


def test_values_that_only_spark_casts_are_null_in_the_order(tmp_path: Path) -> None:
    table = vl.Table.create(
        tmp_path / "t",
        "id BIGINT, event VARIANT",
        properties={"delta.enableVariantShredding": "true"},
        shredding={"event": "n DECIMAL(18, 2)"},
        cluster_by="event:n::decimal(18,2)",
    )
    for seed in range(4):
        texts = [
            f'{{"n": {1.5e300 if row % 5 == 0 else f"{(row * 7 + seed) % 50}.25"}}}'
            for row in range(50)
        ]
        data = pa.table({"id": pa.array([seed] * 50, pa.int64()), "event": texts})
        table.append(data, json_columns=["event"])
    before = table.refresh().digest()
    done = table.cluster(target_file_size=2_000, budget=1 << 30)
    assert done.rows_rewritten == 200
    assert table.refresh().digest() == before


def test_compaction_of_ordered_files_leaves_their_tag(tmp_path: Path) -> None:
    """Where all of them have it; so that what they become is not new to the next run."""
    table = vl.Table.create(tmp_path / "t", "event VARIANT, n INT, day STRING", cluster_by="$.ts")
    for seed in range(3):
        append(table, 300, seed)
    table.refresh().cluster(target_file_size=3_000, budget=1 << 40)
    table = table.refresh()
    before = content(table)
    assert table.optimize(target_file_size=30_000).files_read > 2
    table = table.refresh()
    assert all(ORDERED_TAG in (add.tags or {}) for add in table.snapshot.add_files())
    assert table.cluster(dry_run=True).new_bytes == 0
    append(table, 10, 9)
    table = table.refresh()
    table.optimize()
    table = table.refresh()
    (add,) = table.snapshot.add_files()
    assert ORDERED_TAG not in (add.tags or {})
    assert len(content(table)) == len(before) + 10


def test_an_empty_table_has_nothing_to_order(tmp_path: Path) -> None:
    """What becomes a column is decided with the first rows."""
    properties = {"variantlake.clusterBy": "event:a::bigint"}
    table = vl.Table.create(tmp_path / "t", "event VARIANT", properties=properties)
    assert (table.cluster().groups, table.refresh().version) == (0, 0)
    assert table.cluster(dry_run=True).groups == 0


def with_structs(rows: int, seed: int) -> pa.Table:
    found = random.Random(seed)
    column = [None if n % 9 == 0 else {"x": found.randrange(1000), "y": "a"} for n in range(rows)]
    kind = pa.struct([("x", pa.int64()), ("y", pa.string())])
    return pa.table({"n": pa.array(range(rows), pa.int64()), "s": pa.array(column, kind)})


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("of_delta", [False, True])
def test_files_part_by_fields_of_structs(tmp_path: Path, mapped: bool, of_delta: bool) -> None:
    table = vl.Table.create(
        tmp_path / "t",
        "n BIGINT, s STRUCT<x: BIGINT, y: STRING>",
        cluster_by="S.x" if of_delta else None,
        properties={"delta.columnMapping.mode": "name"} if mapped else {},
    )
    if not of_delta:
        table.set_clustering("s.X")
    for seed in range(5):
        table.refresh().append(with_structs(200, seed))
    table = table.refresh()
    before = sorted(map(str, table.scan().to_arrow().to_pylist()))
    if not of_delta:  # each load orders its own rows
        (first, *_) = table.snapshot.add_files()
        rows = pq.read_table(tmp_path / "t" / first.path).column(1).to_pylist()
        found = [next(iter(row.values())) for row in rows if row is not None]
        assert found == sorted(found)
    table.cluster(target_file_size=5_000)
    table = table.refresh()
    assert sorted(map(str, table.scan().to_arrow().to_pylist())) == before
    assert table.snapshot.files.num_rows > 1
    assert not overlaps_left(table)
    assert table.cluster(target_file_size=5_000).files_read == 0


def test_fields_of_structs_that_order_a_table_keep_their_names_and_places(tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    ddl = "n INT, s STRUCT<x: INT, a: ARRAY<STRUCT<z: INT>>, t: STRUCT<u: INT>>"
    table = vl.Table.create(tmp_path / "t", ddl, properties=mapped)
    table.set_clustering("s.x", "s.t.u", "n")
    table = table.refresh()
    for column in ("s.x", "s.t", "s"):
        with pytest.raises(InvalidSchema, match=r"is clustered by s\.x, s\.t\.u, n"):
            table.drop_columns(column)
    table.drop_columns("s.a")
    table.refresh().rename_column("s.t", "odd name")
    assert table.refresh().properties["variantlake.clusterBy"] == "s.x, s.`odd name`.u, n"
    table.refresh().rename_column("s", "r")
    assert table.refresh().properties["variantlake.clusterBy"] == "r.x, r.`odd name`.u, n"


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        ("s.q", "cannot cluster by 's.q': the table has no column"),
        ("s.t", "it is struct<u: integer>"),
        ("s.a.element.z", "in an array or a map"),
        ("s.x.y", "has no 'y'"),
        ("s..x", "does not name a column"),
        ("s.v", "it is variant"),
        ("s.x, S.X", "appears twice"),
    ],
)
def test_fields_without_an_order_are_refused(tmp_path: Path, by: str, sentence: str) -> None:
    ddl = "n INT, s STRUCT<x: INT, a: ARRAY<STRUCT<z: INT>>, t: STRUCT<u: INT>, v: VARIANT>"
    table = vl.Table.create(tmp_path / "t", ddl)
    with pytest.raises(InvalidSchema, match=sentence):
        table.set_clustering(by)
    with pytest.raises(InvalidSchema):  # as Delta's own
        vl.Table.create(tmp_path / "other", ddl, cluster_by=by)

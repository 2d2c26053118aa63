"""Keys of erased documents: gone from dictionaries, schemas and columns of files without them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.dml.changed import VECTORS
from tests.dml.tracked import tracked_rows
from tests.erase.remains import holders
from variantlake.delta.log.log_segment import commit_path

KEY = "anna@example.org"
GIVEN = {"event": "n BIGINT, user STRING"}


def rows(count: int = 18, secret: int = 7) -> pa.Table:
    """Documents of three days; one has a key that no other has, with more below it."""
    documents = [
        {"n": n, "user": f"u{n % 5}", "rest": {"deep": [n]}}
        | ({KEY: {f"{KEY}/n": n, f"{KEY}/deep": [{f"{KEY}/deeper": n}]}} if n == secret else {})
        for n in range(count)
    ]
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "day": [f"d{n % 3}" for n in range(count)],
            "event": [json.dumps(each) for each in documents],
        }
    )


def loaded(
    folder: Path,
    shredding: dict[str, str] | None = None,
    properties: dict[str, str] | None = None,
    partition_by: str | None = None,
    **options: Any,
) -> vl.Table:
    table = vl.Table.create(
        folder,
        "id BIGINT, day STRING, event VARIANT",
        shredding=shredding,
        properties=properties or {},
        partition_by=partition_by,
    )
    table.append(rows(), json_columns=["event"], **options)
    return table.refresh()


def left(table: vl.Table) -> list[int]:
    """The ids of the rows, each with its whole document."""
    found = table.refresh().scan("id, event:n::bigint AS n, event:rest.deep[0]::bigint AS d")
    values = found.to_arrow().to_pylist()
    assert all(row["id"] == row["n"] == row["d"] for row in values)
    return sorted(row["id"] for row in values)


@pytest.mark.parametrize("shredding", [GIVEN, None], ids=["given", "learned"])
@pytest.mark.parametrize(
    "options", [{"partition_by": "day"}, {"max_rows_per_file": 4}], ids=["partitions", "files"]
)
def test_files_that_never_held_the_row(
    tmp_path: Path, shredding: dict[str, str] | None, options: dict[str, Any]
) -> None:
    table = loaded(tmp_path / "t", shredding, **options)
    assert len(holders(tmp_path / "t", KEY)) > 2
    planned = table.erase("id = 7", dry_run=True)
    done = table.erase("id = 7", purge=True)
    assert (done.rows_erased, done.rows_hidden) == (1, 0)
    assert planned.files_rewritten == done.files_rewritten > 1
    assert holders(tmp_path / "t", KEY) == set()
    assert left(table) == [n for n in range(18) if n != 7]


def _optimized(table: vl.Table) -> None:
    table.append(rows(5, secret=-1), json_columns=["event"])
    table.refresh().delete("id < 5")
    table.refresh().optimize()


def _clustered(table: vl.Table) -> None:
    table.set_clustering("event:n")
    table.refresh().cluster()


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.delete("id = 3"),
        lambda table: table.update({"day": "x"}, "id = 3"),
        _optimized,
        _clustered,
        lambda table: table.checkpoint(),
    ],
    ids=["delete", "update", "optimize", "cluster", "checkpoint"],
)
@pytest.mark.parametrize("properties", [VECTORS, {}], ids=["vectors", "rewritten"])
def test_files_that_the_row_has_left(
    tmp_path: Path, change: Callable[[vl.Table], None], properties: dict[str, str]
) -> None:
    """Whether somebody deleted the row before or not: then no condition finds it any more."""
    table = loaded(tmp_path / "t", GIVEN, properties, max_rows_per_file=10)
    table.delete("id = 7")
    change(table.refresh())
    before = left(table)
    table.refresh().erase("id = 7", purge=True)
    assert holders(tmp_path / "t", KEY) == set()
    assert left(table) == before


def test_a_learned_schema_forgets_the_keys_and_a_given_one_stays(tmp_path: Path) -> None:
    learned = loaded(tmp_path / "learned")
    assert KEY in str(learned.snapshot.properties)
    learned.erase("id = 7", purge=True)
    schema = learned.refresh().snapshot.properties["variantlake.shredding.event"]
    assert schema == "n BIGINT, user STRING"
    # What is not erased is not forgotten, and what nobody has to forget is not written anew.
    again = learned.refresh().erase("id = 7")
    assert (again.files_rewritten, again.version) == (0, learned.refresh().version)
    # All rows of the table: nothing is left that could use a key.
    learned.erase("id >= 0", purge=True)
    assert "user" not in str(learned.refresh().snapshot.properties)
    # Whoever names a key himself has not told it by a row.
    given = loaded(tmp_path / "given", {"event": f"n BIGINT, `{KEY}` VARIANT"})
    given.erase("id = 7", purge=True)
    assert KEY in given.refresh().snapshot.properties["variantlake.shredding.event"]


def test_keys_that_other_rows_use_are_nobodys_secret(tmp_path: Path) -> None:
    """A file holds such a key in vain: it is not written anew for that."""
    table = loaded(tmp_path / "t", GIVEN, partition_by="day")
    table.append(rows(1, secret=0), json_columns=["event"])
    done = table.refresh().erase("id = 7")
    assert (done.files_rewritten, left(table)) == (1, [0, *range(7), *range(8, 18)])
    assert KEY in str(table.refresh().scan("event", where="id = 0").to_arrow().to_pylist())


def test_entries_of_a_dictionary_page_that_no_row_refers_to(tmp_path: Path) -> None:
    """Arrow writes a dictionary as it stands, and readers never see such an entry."""
    table = vl.Table.create(tmp_path / "t", "id BIGINT, event VARIANT", shredding=GIVEN)
    secret, plain = (vl.parse_json(text) for text in (f'{{"{KEY}":1}}', '{"n":1}'))
    metadata = pa.DictionaryArray.from_arrays(
        pa.array([1, 1], pa.int32()), pa.array([secret.metadata, plain.metadata])
    )
    values = pa.array([plain.value] * 2)
    column = pa.StructArray.from_arrays([metadata, values], ["metadata", "value"])
    path = tmp_path / "t" / "other.parquet"
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64()), "event": column}), path)
    assert holders(tmp_path / "t", KEY) == {"other.parquet"}
    add = {"path": path.name, "partitionValues": {}, "size": path.stat().st_size,
           "modificationTime": 1, "dataChange": True}  # fmt: skip
    (tmp_path / "t" / commit_path(1)).write_bytes(orjson.dumps({"add": add}))
    done = table.refresh().erase("id = 9", purge=True)
    assert (done.rows_erased, done.files_rewritten) == (0, 1)
    assert holders(tmp_path / "t", KEY) == set()
    assert table.refresh().scan("id").to_arrow()["id"].to_pylist() == [1, 2]


def test_a_dictionary_that_the_data_came_with(tmp_path: Path) -> None:
    """A column of the user's, encoded by a dictionary of more than a file's own values."""
    table = vl.Table.create(tmp_path / "t", "note STRING, day STRING", partition_by="day")
    notes = pa.array([KEY, "a", "b"]).dictionary_encode()
    table.append(pa.table({"note": notes, "day": ["d0", "d1", "d2"]}))
    table.refresh().erase("day = 'd0'", purge=True)
    assert holders(tmp_path / "t", KEY) == set()


def test_files_elsewhere_stay_and_an_order_of_others_names_nothing(tmp_path: Path) -> None:
    source = loaded(tmp_path / "source", GIVEN, partition_by="day")
    clone = tmp_path / "clone" / "_delta_log"
    clone.mkdir(parents=True)
    head, body = (
        (tmp_path / "source" / commit_path(version)).read_bytes().splitlines() for version in (0, 1)
    )
    actions = [orjson.loads(line) for line in (*head, *body) if b"commitInfo" not in line]
    for action in actions:
        if "add" in action:
            action["add"]["path"] = str(tmp_path / "source" / action["add"]["path"])
        if "metaData" in action:
            action["metaData"]["configuration"]["variantlake.clusterBy"] = "nothing:at"
    (clone / f"{0:020}.json").write_bytes(b"\n".join(map(orjson.dumps, actions)))
    done = vl.Table.open(tmp_path / "clone").erase("id = 7", purge=True)
    # The file with the row has another in its place now; files of the source are not the clone's.
    assert (done.rows_erased, done.files_rewritten) == (1, 1)
    assert holders(tmp_path / "clone", KEY) == set()
    assert left(source) == list(range(18))


def test_row_ids_are_not_lost_for_a_key(tmp_path: Path) -> None:
    tracked = {"delta.enableRowTracking": "true"}
    table = loaded(tmp_path / "t", GIVEN, tracked, partition_by="day")
    before = tracked_rows(table)
    table.erase("day = 'd1'")
    after = tracked_rows(table)
    assert after == {key: before[key] for key in after}

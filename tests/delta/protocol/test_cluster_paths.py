"""`variantlake.clusterBy`: which texts it takes, and what it makes of loads."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.delta.protocol.cluster_paths import PROPERTY, split_paths
from variantlake.delta.protocol.clustering import clustering_columns
from variantlake.errors import InvalidPath, InvalidSchema, InvalidValue, VariantLakeError

DDL = "event VARIANT, n INT, day DATE"
SHREDDING = {"event": "kind STRING, ts BIGINT, geo STRUCT<lat: DOUBLE>"}


def test_a_list_of_paths_is_parted_at_commas_outside_of_quotes() -> None:
    text = "event:a::decimal(10, 2), event:['x, y'] ,`odd, name`, day"
    assert split_paths(text) == ("event:a::decimal(10, 2)", "event:['x, y']", "`odd, name`", "day")


def test_paths_stand_in_our_property_and_not_in_deltas_domain(tmp_path: Path) -> None:
    given = "event:kind::string,  n"
    table = vl.Table.create(tmp_path / "t", DDL, cluster_by=given, shredding=SHREDDING)
    assert table.properties[PROPERTY] == "event:kind::string, n"
    assert not clustering_columns(table.snapshot.domains)
    assert "clustering" not in table.snapshot.features
    table.set_clustering("$.ts", "event:geo.lat::double")
    assert table.refresh().properties[PROPERTY] == "$.ts, event:geo.lat::double"
    table.set_clustering()
    assert PROPERTY not in table.refresh().properties


@pytest.mark.parametrize(
    ("text", "error", "sentence"),
    [
        ("event:", InvalidPath, "event:"),
        ("event:kind,", InvalidValue, "a path is empty"),
        ("event:['kind", InvalidValue, "not closed"),
        ("other:kind", InvalidSchema, "no column 'other'"),
        ("day", InvalidSchema, "partitioned by it"),
        ("event", InvalidSchema, "is a Variant, which has no order"),
        ("event:kind, $.kind", InvalidSchema, "appears twice"),
        ("event:nothing::string", InvalidSchema, "not shredded into a column"),
        ("event:geo", InvalidSchema, "not shredded into a column"),
        ("event:kind[0]", InvalidSchema, "an element of an array"),
        ("event:kind::bigint", InvalidSchema, "shredded as STRING"),
        ("n:a", InvalidSchema, "is integer"),
        ("n, n, n, n, n", InvalidValue, "at most 4"),
    ],
)
def test_what_rows_cannot_be_ordered_by_is_refused(
    tmp_path: Path, text: str, error: type[VariantLakeError], sentence: str
) -> None:
    table = vl.Table.create(tmp_path / "t", DDL, partition_by="day", shredding=SHREDDING)
    with pytest.raises(error, match=sentence):
        table.set_properties({PROPERTY: text})
    assert table.refresh().version == 0


def test_a_path_of_an_unshredded_table_is_refused(tmp_path: Path) -> None:
    off = {"delta.enableVariantShredding": "false"}
    with pytest.raises(InvalidSchema, match="not shredded into a column"):
        vl.Table.create(tmp_path / "t", DDL, cluster_by="event:kind", properties=off)


def test_loads_sort_each_file_by_the_tables_order(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", DDL, cluster_by="event:ts, n")
    rows = [({"ts": ts}, n) for ts, n in [(3, 1), (1, 9), (2, 5), (1, 2)]]
    data = pa.table(
        {
            "event": pa.array([f'{{"ts": {doc["ts"]}}}' for doc, _ in rows]),
            "n": pa.array([n for _, n in rows], pa.int32()),
        }
    )
    table.append(data, json_columns=["event"])
    got = vl.Table.open(tmp_path / "t").scan(["event:ts::int AS ts", "n"]).to_arrow()
    assert list(zip(*got.to_pydict().values(), strict=True)) == [(1, 2), (1, 9), (2, 5), (3, 1)]


def test_an_order_of_the_load_comes_before_that_of_the_table(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", DDL, cluster_by="event:ts")
    data = pa.table({"event": ['{"ts": 1}', '{"ts": 2}'], "n": pa.array([2, 1], pa.int32())})
    table.append(data, json_columns=["event"], order_by="n")
    assert table.refresh().scan("n").to_arrow()["n"].to_pylist() == [1, 2]


def test_documents_without_the_path_are_loaded_all_the_same(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT", cluster_by="event:ts")
    source = tmp_path / "rows.ndjson"
    source.write_text('{"a": 2}\n{"a": 1}\n')
    table.append(vl.ndjson(str(source)))
    assert table.refresh().scan("event:a::int AS a").to_arrow()["a"].to_pylist() == [2, 1]

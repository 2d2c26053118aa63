"""Strings with collations, and TIME: what a field of a struct cannot stand for is read natively."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.spark.layouts import rows
from variantlake.spark.lake import connect
from variantlake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DOCUMENTS = ('{"k": "good", "t": "10:00:00"}', '{"k": "GOOD", "t": "xx"}', '{"k": "zz", "t": 5}')
QUERIES = (
    "SELECT id FROM {t} WHERE variant_get(e, '$.k', 'string collate utf8_lcase') = 'GOOD'",
    "SELECT id FROM {t} WHERE (e:k::string) COLLATE utf8_lcase = 'GOOD'",
    "SELECT concat(variant_get(t.e, '$.k', 'string'), w.k) AS v FROM {t} t JOIN w USING (id)",
    "SELECT array(t.e:k::string, w.k) AS v FROM {t} t JOIN w USING (id)",
    "SELECT t.id FROM {t} t JOIN w ON t.e:k::string = w.k",
    "SELECT e:k::string AS v FROM {t} WHERE id > 1",
    "SELECT variant_get(e, '$.t', 'time') AS v FROM {t} WHERE id = 1",
    "SELECT try_variant_get(e, '$.t', 'time(3)') AS v, e:k::string AS k FROM {t}",
    "SELECT id FROM {t} WHERE try_variant_get(e, '$.t', 'time') IS NULL",
)


@pytest.fixture
def table(delta_spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    made = Table.create(tmp_path / "t", "id INT, e VARIANT")
    ids = pa.array([1, 2, 3], pa.int32())
    made.append(pa.table({"id": ids, "e": list(DOCUMENTS)}), json_columns=["e"])
    collated = "'GOOD' COLLATE utf8_lcase"
    delta_spark.sql(f"CREATE OR REPLACE TEMP VIEW w AS SELECT 1 AS id, {collated} AS k")
    values = ", ".join(f"({at + 1}, '{text}')" for at, text in enumerate(DOCUMENTS))
    delta_spark.sql(
        "CREATE OR REPLACE TEMP VIEW plain AS SELECT col1 AS id, parse_json(col2) AS e "
        f"FROM VALUES {values}"
    )
    yield f"delta.`{tmp_path / 't'}`"
    for view in ("w", "plain"):
        delta_spark.catalog.dropTempView(view)


@pytest.mark.rule(32)
def test_types_beyond_fields_are_what_they_are_for_spark(
    delta_spark: SparkSession, table: str
) -> None:
    lake = connect(delta_spark)
    for query in QUERIES:
        ours, theirs = (query.format(t=name) for name in (table, "plain"))
        found, wanted = lake.sql(ours), delta_spark.sql(theirs)
        assert [item.dataType for item in found.schema] == [item.dataType for item in wanted.schema]
        assert rows(found) == rows(wanted), query
    collated = lake.explain(QUERIES[0].format(t=table)).tables[0]
    assert collated.whole == ("e",)
    alone = lake.explain(f"SELECT e:k::string FROM {table}").tables[0]
    assert not alone.whole, "without a collation the path is a column"

"""What each extra is for, done by a process that has the package with this extra alone.

Each is a program, which fails if something is missing.
"""

from __future__ import annotations

_TABLE = """
import variantlake as vl
table = vl.Table.create("t", "event VARIANT")
table.append([{"n": n} for n in range(3)])
"""

EXTRAS = {
    "avro": """
import fastavro, variantlake as vl
schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}
with open("a.avro", "wb") as file:
    fastavro.writer(file, schema, [{"n": n} for n in range(3)], codec="deflate")
table = vl.Table.create("t", "event VARIANT")
table.append("a.avro")
assert table.scan().count() == 3
""",
    "bson": """
import bson, variantlake as vl
with open("a.bson", "wb") as file:
    file.write(bson.encode({"n": 1}) + bson.encode({"n": 2}))
table = vl.Table.create("t", "event VARIANT")
table.append("a.bson")
assert table.scan().count() == 2
""",
    "msgpack": """
import msgpack, variantlake as vl
with open("a.msgpack", "wb") as file:
    file.write(msgpack.packb({"n": 1}) + msgpack.packb({"n": 2}))
table = vl.Table.create("t", "event VARIANT")
table.append("a.msgpack")
assert table.scan().count() == 2
""",
    "duckdb": _TABLE
    + """
import duckdb
connection = duckdb.connect()
vl.duckdb.attach(connection, "t", table, "event:n::int AS n")
assert connection.sql("SELECT sum(n) FROM t WHERE n > 0").fetchall() == [(3,)]
""",
    "polars": _TABLE
    + """
import polars as pl
lazy = vl.scan_polars(table, "event:n::int AS n").filter(pl.col("n") > 0)
assert sorted(lazy.collect()["n"]) == [1, 2]
""",
    "datafusion": _TABLE
    + """
import datafusion
context = datafusion.SessionContext()
vl.datafusion.attach(context, "t", table, "event:n::int AS n")
assert context.sql("SELECT n FROM t WHERE n > 0").count() == 2
""",
    "dbt": "import variantlake.dbt",
    "dlt": """
import dlt, os, variantlake as vl, variantlake.dlt
os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
made = variantlake.dlt.destination(os.getcwd())
dlt.pipeline("p", destination=made, pipelines_dir="dlt").run([{"n": 1}], table_name="t")
assert vl.Table.open("t").scan().count() == 1
""",
    "dagster": """
import dagster, os, variantlake as vl, variantlake.dagster
def events():
    return [{"n": 1}]
manager = variantlake.dagster.VariantLakeIOManager(folder=os.getcwd())
dagster.materialize([dagster.asset(events)], resources={"io_manager": manager})
assert vl.Table.open("events").scan().count() == 1
""",
    "opentelemetry": "import variantlake as vl; vl.set_tracing()" + _TABLE,
    "openlineage": "import os; os.environ['OPENLINEAGE_DISABLED'] = 'true'\n"
    "import variantlake as vl; vl.set_lineage()" + _TABLE,
    "prometheus": """
import prometheus_client
from variantlake.telemetry import prometheus
""",
}

"""Run dbt in a Spark session with the rule: models over Delta tables stay as they are.

python run.py quakes [build]    # the table's folder; then words for dbt
"""

import sys
from pathlib import Path

from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

import variantlake as vl

DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars.packages", DELTA)
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)
vl.spark.accelerate(spark)  # dbt-spark's method `session` takes the session that is there
table = Path(sys.argv[1]).resolve()
spark.sql(f"CREATE TABLE IF NOT EXISTS quakes USING delta LOCATION '{table}'")

done = dbtRunner().invoke(sys.argv[2:] or ["build"])
if not done.success:
    raise SystemExit(f"dbt failed: {done.exception or 'see above'}")
spark.table("strong").orderBy("network").show()
print(vl.spark.connect(spark).explain(spark.sql(Path("models/strong.sql").read_text())))

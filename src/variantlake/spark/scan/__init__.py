"""Turn a scan plan into one Spark DataFrame: a union of its groups, each read in its own way.

In: a plan. Out: a DataFrame; also the data source `spark.read.format("variantlake")`.
"""

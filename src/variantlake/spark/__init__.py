"""The distributed engine: Spark runs what the planner and the kernels decide."""

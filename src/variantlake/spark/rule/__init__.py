"""A rule of Spark's optimizer: whatever a session reads of Delta tables is planned here.

`accelerate` puts the rule into a session, `planner` answers it, `uses` reads its plans.
"""

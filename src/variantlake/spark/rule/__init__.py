"""A rule in Spark's optimizer, which plans every read of a Delta table in a session.

`accelerate` installs the rule in a session, `planner` answers it, `uses` reads its plans.
"""

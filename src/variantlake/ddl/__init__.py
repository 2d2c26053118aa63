"""ALTER TABLE: from the parsed statement to a commit.

In: a snapshot and one change, as a statement's parts. Out: the version that was committed.
The caller provides the engine that checks existing rows.
"""

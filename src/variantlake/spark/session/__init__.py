"""What we keep beside a user's session: a helper session, Java classes, jobs, files as frames.

In: a session. Out: files as DataFrames under settings of our own (EXACTNESS, rule 11), functions
run once a task. The user's settings are never touched.
"""

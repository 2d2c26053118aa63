"""Helpers for a user's session: a helper session, Java classes, jobs, files as DataFrames.

In: a session. Out: files as DataFrames under our own settings (EXACTNESS, rule 11), and functions
that run once per task. This package never changes the user's settings.
"""

"""Collect facts about data files: counts and bounds, without reading their rows again.

In: footers, and the rows that a writer writes. Out: facts of one file, or of many as columns.
A bound that we do not fully understand is dropped.
"""

"""Statistics and tags of files in the log, written and read, one file or all at once.

In: facts of files; `stats`, `stats_parsed` and `tags` of any writer. Out: the text of statistics,
columns of counts and bounds that planning works on.
"""

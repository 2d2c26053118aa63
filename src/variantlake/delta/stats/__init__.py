"""Write and read the statistics and tags of files in the log, for one file or all at once.

In: facts of files; `stats`, `stats_parsed` and `tags` of any writer. Out: the text of statistics,
and the counts and bounds that planning works on.
"""

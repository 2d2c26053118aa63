"""A year in the life of a table: a real job with simulated clocks, and what it costs each day.

The job loads each hour, with late data and drifting documents, corrects, deletes and erases, keeps
the table in shape, goes back after mistakes and switches features on. Out comes a picture of size,
files, log, query time and cost per day, and whether any of them grows without bound. See
`python -m tests.year --help`, which `make soak` runs.
"""

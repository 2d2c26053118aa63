"""Suites that other projects publish, read where they lie: see `tests/corpora.py`."""

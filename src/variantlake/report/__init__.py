"""Describe a table or a source for people: profiles of paths, and a report as one page.

In: a table, a Parquet file or JSON documents. Out: a profile of the values at each path; a report
as versioned JSON and as one self-contained HTML page.
Statistics come from the log, values from a bounded sample of rows.
"""

from __future__ import annotations

from variantlake.familiar_names import say_what_to_call

say_what_to_call(__name__)

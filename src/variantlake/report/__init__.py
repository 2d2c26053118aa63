"""What a table or a source looks like, for people: profiles of paths, and a report as one page.

In: a table, a Parquet file or JSON documents. Out: a profile of what each path holds; a report as
versioned JSON and as one HTML page that needs nothing from outside.
Statistics come from the log; values come from a bounded sample of rows.
"""

from __future__ import annotations

from variantlake.familiar_names import say_what_to_call

say_what_to_call(__name__)

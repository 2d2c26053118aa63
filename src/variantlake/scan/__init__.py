"""Run a scan plan in this process, with Arrow.

In: a plan. Out: Arrow batches with exactly the values of Spark's `variant_get`.
Tasks of other engines read files with the same modules.
"""

from __future__ import annotations

from variantlake.familiar_names import say_what_to_call

say_what_to_call(__name__)

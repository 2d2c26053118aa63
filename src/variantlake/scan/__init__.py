"""Running a scan plan in this process, with Arrow.

In: a plan. Out: Arrow batches that hold exactly what Spark's `variant_get` gives.
Tasks of other engines read files by the same modules.
"""

from __future__ import annotations

from variantlake.familiar_names import say_what_to_call

say_what_to_call(__name__)

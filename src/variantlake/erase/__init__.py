"""Erase rows for good: from the table, then from its folder and its log.

In: the newest version and a condition. Out: a commit after which no file of the newest version
holds the rows; and the time after which a vacuum removes the rest, or a purge that does so at once.
"""

from __future__ import annotations

from variantlake.familiar_names import say_what_to_call

say_what_to_call(__name__)

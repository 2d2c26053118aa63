"""Read and change SQL text: tokens, tree, scopes, paths, spans. No engine is in it.

In: a user's query. Out: the tables and paths it names with their places in the text, the
conditions that hold for a table's rows, and the text with some spans replaced.
"""

from __future__ import annotations

from variantlake.familiar_names import say_what_to_call

say_what_to_call(__name__)

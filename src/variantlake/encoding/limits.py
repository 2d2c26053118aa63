"""Our own limits. The encoding has none; these keep hostile input from exhausting time and memory.

Each is at least what Spark 4.2 allows: what Spark writes, and JSON that its `parse_json` takes, is
within them.
"""

from __future__ import annotations

MAX_VALUE_BYTES = 128 * 1024 * 1024
"""Bytes of one `value`, and of one `metadata` (Spark's limit since 4.0)."""

MAX_DEPTH = 1000
"""Containers around one another (the nesting limit of Jackson, Spark's JSON parser)."""

MAX_KEYS = 1 << 24
"""Keys of one dictionary."""

MAX_PADDING = 1 << 24
"""Variant nulls that a change may put between the end of an array and a new element."""

MAX_NUMBER_DIGITS = 1000
"""Digits of one number in JSON text, those of its exponent included (Jackson's limit)."""

MEMORY_MULTIPLE = 64
"""Bytes of memory that decoding to plain Python takes at most for each byte of input; a test
measures it on the densest shapes."""

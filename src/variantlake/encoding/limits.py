"""Our limits, which the encoding lacks: they keep hostile input from exhausting time and memory.

Each is at least as large as Spark 4.2's: they accept everything that Spark writes, and all JSON
that its `parse_json` accepts.
"""

from __future__ import annotations

MAX_VALUE_BYTES = 128 * 1024 * 1024
"""Bytes of one `value`, and of one `metadata` (Spark's limit since 4.0)."""

MAX_DEPTH = 1000
"""Nested containers (the limit of Jackson, Spark's JSON parser)."""

MAX_KEYS = 1 << 24
"""Keys of one dictionary."""

MAX_PADDING = 1 << 24
"""Variant nulls that a change may put between the end of an array and a new element."""

MAX_NUMBER_DIGITS = 1000
"""Digits of one number in JSON text, with its exponent (Jackson's limit)."""

MEMORY_MULTIPLE = 64
"""The most bytes of memory that decoding to plain Python takes per byte of input. A test measures
it on the densest shapes."""

"""How large data files become: light to import, as defaults of the public methods are."""

TARGET_FILE_BYTES = 256 << 20
"""Bytes of a file from which the next one is begun."""

CLUSTERED_FILE_BYTES = 128 << 20
"""Bytes of a file, about, whose rows are in an order with those of other files."""

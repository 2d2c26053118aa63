"""What becomes of rows that a load cannot just append."""

from __future__ import annotations

import enum


class BadRows(enum.StrEnum):
    """What becomes of a document that is not JSON, breaks a contract, or fits no Variant."""

    STRICT = "strict"
    """The load fails with its position, and nothing is committed."""
    QUARANTINE = "quarantine"
    """It is left out, and written with its reason to a file beside the table."""
    NULL = "null"
    """Its row is kept, with NULL in the VARIANT column."""


class OnDuplicate(enum.StrEnum):
    """What becomes of a row whose key is there already, in the table or in the load."""

    REPLACE = "replace"
    """It takes the place of the other one; of a load's rows the last one stays."""
    SKIP = "skip"
    """It is left out; of a load's rows the first one stays."""

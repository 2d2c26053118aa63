"""The formats of files of documents."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Self

from variantlake.errors import InvalidValue
from variantlake.ingest.sources.find_files import NDJSON, RECORDS, SourceKind


class DocumentFormat(enum.StrEnum):
    """The format of a file of documents; values are the names for users."""

    LINES = "ndjson"
    """One document per line."""
    ARRAY = "array"
    """One JSON array of documents."""
    WHOLE = "json"
    """One document, on any number of lines."""
    CSV = "csv"
    """Lines of cells below a line of names."""
    AVRO = "avro"
    """Records of an object container file."""
    MSGPACK = "msgpack"
    """A sequence of MessagePack values."""
    BSON = "bson"
    """A sequence of BSON documents."""

    @property
    def is_json(self) -> bool:
        """Whether documents are JSON text; others are read record by record."""
        return self.value not in RECORDS

    @property
    def kind(self) -> SourceKind:
        """The files of this format in a folder."""
        return RECORDS.get(self.value, NDJSON)

    @classmethod
    def of(cls, name: str | None, files: Sequence[str] = ()) -> Self:
        """Return the format that a user names, else that of the ends of all files' names.

        Files with other names have LINES. Raises InvalidValue for an unknown format, and for files
        of several formats.
        """
        if name is None:
            forms = {_form_of(each) for each in files}
            if len(forms) > 1:
                raise InvalidValue(
                    f"files of several forms are given together: {', '.join(sorted(forms))}",
                    hint="load those of each form by themselves",
                )
            name = next(iter(forms), "ndjson")
        try:
            return cls(name)
        except ValueError:
            raise InvalidValue(
                f"format is {name!r}", hint=f"one of {', '.join(map(repr, map(str, cls)))}"
            ) from None


def _form_of(file: str) -> str:
    return next((form for form, kind in RECORDS.items() if kind.accepts(file)), "ndjson")

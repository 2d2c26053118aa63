"""What a caller asks of a conversion.

The keywords are those of `convert`, here and on Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Self, TypedDict, Unpack

from variantlake.ingest.target.options import no_option


class ConvertKeywords(TypedDict, total=False):
    """The keywords that converting here and on Spark share; their meaning is that of `convert`."""

    json_columns: Collection[str]
    variant_columns: Collection[str]
    shredding: str | Mapping[str, str] | None
    properties: Mapping[str, str] | None
    rewrite: bool
    truncate_timestamps: bool
    dry_run: bool
    skip_empty: bool


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for; see `convert`."""

    json_columns: tuple[str, ...] = ()
    variant_columns: tuple[str, ...] = ()
    shredding: str | Mapping[str, str] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    rewrite: bool = False
    truncate_timestamps: bool = False
    dry_run: bool = False
    skip_empty: bool = True

    @classmethod
    def of(cls, **keywords: Unpack[ConvertKeywords]) -> Self:
        """The request as users give it. Raises InvalidValue for an option that nobody knows."""
        known = ConvertKeywords.__annotations__
        if unknown := keywords.keys() - known.keys():
            raise no_option(min(unknown), known)
        return cls(
            json_columns=tuple(keywords.get("json_columns", ())),
            variant_columns=tuple(keywords.get("variant_columns", ())),
            shredding=keywords.get("shredding"),
            properties=dict(keywords.get("properties") or {}),
            rewrite=keywords.get("rewrite", False),
            truncate_timestamps=keywords.get("truncate_timestamps", False),
            dry_run=keywords.get("dry_run", False),
            skip_empty=keywords.get("skip_empty", True),
        )

"""The options of a conversion: the keywords of `convert`, here and on Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, Unpack

from variantlake.delta.actions.commit_properties import CommitKeywords
from variantlake.writing.options.keywords import check_keywords, names_of


class ConvertKeywords(CommitKeywords, total=False):
    """The keywords of conversions, here and on Spark; `convert` explains them."""

    json_columns: Collection[str]
    variant_columns: Collection[str]
    shredding: str | Mapping[str, str] | None
    properties: Mapping[str, str] | None
    partition_by: str | Sequence[str] | None
    rewrite: bool
    truncate_timestamps: bool
    dry_run: bool
    skip_empty: bool


@dataclass(frozen=True, slots=True)
class Request:
    """The options of one conversion; see `convert`."""

    json_columns: tuple[str, ...] = ()
    variant_columns: tuple[str, ...] = ()
    shredding: str | Mapping[str, str] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    rewrite: bool = False
    truncate_timestamps: bool = False
    dry_run: bool = False
    skip_empty: bool = True

    @classmethod
    def of(cls, **keywords: Unpack[ConvertKeywords]) -> Self:
        """Make a request of users' keywords. Raises InvalidValue for a wrong option."""
        given: dict[str, Any] = {name: each for name, each in keywords.items() if each is not None}
        by_column = isinstance(keywords.get("shredding"), Mapping)
        without = {**keywords, "shredding": None}  # it is not text if it is by column
        check_keywords(without if by_column else keywords, ConvertKeywords.__annotations__)
        for name in ("json_columns", "variant_columns", "partition_by"):
            given[name] = names_of(name, given.get(name, ()))
        return cls(**given)

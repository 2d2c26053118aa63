"""What every way of loading has in common: what becomes of bad rows, and how files are laid out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self, Unpack

from variantlake.contracts.contract import Contract, ContractLike
from variantlake.delta.actions.commit_properties import CommitKeywords
from variantlake.errors import InvalidValue
from variantlake.shredding.inference.infer import InferenceOptions
from variantlake.units import Size
from variantlake.writing.options.file_sizes import DEFAULT_LIMITS, FileLimits
from variantlake.writing.options.keywords import check_keywords, names_of
from variantlake.writing.options.max_bad import MaxBad, check_mode
from variantlake.writing.options.row_policies import BadRows, OnDuplicate

MAX_LOAD_ID = 512
"""Our limit on the characters of a load id: every snapshot of the table carries it."""


class LoadKeywords(CommitKeywords, total=False):
    """The keywords that `ingest` and `append` share; their meaning is that of `LoadOptions`.

    The verbs themselves take `commit_properties`.
    """

    mode: Literal["strict", "quarantine", "null"] | None
    contract: ContractLike | None
    load_id: str | None
    max_bad: int | str | None
    order_by: str | Sequence[str]
    arrays: bool
    max_rows_per_file: int | None
    target_file_size: Size | None
    truncate_timestamps: bool
    unique_by: str | Sequence[str]
    on_duplicate: Literal["replace", "skip"]


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How a load treats its rows and lays out its files.

    mode: What becomes of bad documents; None is `"quarantine"` if they have a contract, else
        `"strict"`.
    contract: A JSON Schema that the documents must fulfil, which becomes the table's own; see
        `Contract`. Those that break it are bad documents. None is the table's contract.
    max_bad: The most bad documents that the load takes, a number or a share (`"5%"`); with more it
        stops, and nothing is committed. A task counts a share of what it has read, from 1,000
        documents on; at the end it counts among all.
    load_id: A name of this load. The table remembers it (a `txn` action), and a load of the same
        name does nothing.
    order_by: Paths and columns (`$.a.b`, `event:a.b::bigint`, `day`) by which the rows of each file
        are sorted, ascending and NULL last; a path must be a shredded column. Files are not sorted
        among each other.
    arrays: Whether a schema that is inferred here makes columns of what arrays hold.
    limits: When the next file is begun.
    truncate_timestamps: Whether timestamps of Arrow data in nanoseconds lose the digits below
        microseconds; without it such digits are an error. Loads of documents refuse it.
    unique_by: Columns and typed paths (`"event:id::string"`) that are a key: no two rows of the
        load get it, nor does a row that the table has with it stay beside one of the load. A key
        with a NULL equals none. Rows that the table has are not compared with each other.
    on_duplicate: What becomes of a row whose key is there: it takes the place of the row that has
        it (`"replace"`; of a load's own rows the last one counts) or is left out (`"skip"`; the
        first one counts).

    Raises InvalidValue for a mode, load id or limit that cannot be, and for an order with a key.
    """

    mode: BadRows | None = None
    load_id: str | None = None
    order_by: tuple[str, ...] = ()
    arrays: bool = False
    limits: FileLimits = DEFAULT_LIMITS
    truncate_timestamps: bool = False
    max_bad: MaxBad | None = None
    unique_by: tuple[str, ...] = ()
    on_duplicate: OnDuplicate = OnDuplicate.REPLACE
    contract: Contract | None = None

    def __post_init__(self) -> None:
        check_mode(self.max_bad, is_strict=self.bad_rows({}) is BadRows.STRICT)
        if self.load_id is not None and not 0 < len(self.load_id) <= MAX_LOAD_ID:
            raise InvalidValue(f"a load id has 1 to {MAX_LOAD_ID} characters")
        if self.unique_by and self.order_by:
            raise InvalidValue(
                "unique_by goes by the order of the rows, which order_by changes",
                hint="give one of them; `Table.cluster` orders the rows afterwards",
                cli_hint="give one of them; `cluster` orders the rows afterwards",
            )

    @classmethod
    def of(cls, **keywords: Unpack[LoadKeywords]) -> Self:
        """The options as users give them."""
        check_keywords(keywords, LoadKeywords.__annotations__)
        max_bad, contract = keywords.get("max_bad"), keywords.get("contract")
        return cls(
            mode=_mode(keywords.get("mode")),
            load_id=keywords.get("load_id"),
            order_by=names_of("order_by", keywords.get("order_by", ())),
            arrays=keywords.get("arrays", False),
            limits=FileLimits.of(
                keywords.get("target_file_size"), keywords.get("max_rows_per_file")
            ),
            truncate_timestamps=keywords.get("truncate_timestamps", False),
            max_bad=None if max_bad is None else MaxBad.of(max_bad),
            unique_by=names_of("unique_by", keywords.get("unique_by", ())),
            on_duplicate=_on_duplicate(keywords),
            contract=None if contract is None else Contract.of(contract),
        )

    def bad_rows(self, contracts: Mapping[str, Contract]) -> BadRows:
        """What becomes of bad documents in a table with these contracts."""
        if self.mode is not None:
            return self.mode
        return BadRows.QUARANTINE if contracts or self.contract is not None else BadRows.STRICT

    @property
    def inference(self) -> InferenceOptions:
        """How a schema is inferred if the table has none."""
        return InferenceOptions(arrays=self.arrays)


def _on_duplicate(keywords: LoadKeywords) -> OnDuplicate:
    name = keywords.get("on_duplicate")
    if name is not None and not keywords.get("unique_by"):
        raise InvalidValue("on_duplicate needs unique_by, which says what the key is")
    try:
        return OnDuplicate(name or OnDuplicate.REPLACE)
    except ValueError:
        hint = f"one of {', '.join(OnDuplicate)}"
        raise InvalidValue(f"on_duplicate is {name!r}", hint=hint) from None


def _mode(name: str | None) -> BadRows | None:
    try:
        return None if name is None else BadRows(name)
    except ValueError:
        known = ", ".join(BadRows)
        hint = f"what becomes of bad rows is one of {known}; overwrite(...) replaces rows"
        raise InvalidValue(f"mode is {name!r}", hint=hint) from None

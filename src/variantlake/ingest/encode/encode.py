"""Encode Arrow columns for a table's files: shred Variants, and cast other columns exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from variantlake.contracts.contract import Contract
from variantlake.delta.schema.char_types import most_characters
from variantlake.delta.schema.char_values import within_length
from variantlake.delta.schema.column_mapping import physical_type
from variantlake.delta.schema.table_schema import VOID, StructField, arrow_type, types_in
from variantlake.encoding.json import LAST_KEY_HINT
from variantlake.errors import (
    ContractBroken,
    InvalidJson,
    InvalidSchema,
    InvalidValue,
    LimitExceeded,
    MalformedVariant,
    VariantLakeError,
)
from variantlake.ingest.encode.micros import check_micros
from variantlake.ingest.encode.plain_arrays import exact_cast
from variantlake.kernels.json.bad_document import bad_places, json_error
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.native.declared import Bytes, Int64s
from variantlake.kernels.shredded.shredder import Shredder
from variantlake.kernels.tape.arrow_arrays import slots_of
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.tape.words import PADDING
from variantlake.kernels.variant.arrow_variants import as_variants
from variantlake.kernels.variant.variant_reader import VariantReader, bad_variant
from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.parquet.metadata.value_notes import NO_NOTES
from variantlake.shredding import layout
from variantlake.shredding.arrays import AnyArray, valid_of
from variantlake.shredding.schema import ShreddingSchema
from variantlake.shredding.values import ValueNotes

BAD_VALUES = (ContractBroken, InvalidJson, LimitExceeded, MalformedVariant)
"""The errors for a bad document or Variant."""

TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.null())
"""The types that may hold JSON text."""

Reason = tuple[str, int | None, int | None]
"""The reason why a row is bad, and the line and column in its text."""

Decide = Callable[[Tape], ShreddingSchema]
"""The shredding schema of a column, which may depend on its first rows."""


class ColumnEncoder(Protocol):
    """Encodes one column; `name` is its physical name, `variants` its Variants' Parquet paths."""

    name: str
    variants: tuple[ColumnPath, ...]

    @property
    def notes(self) -> Mapping[ColumnPath, ValueNotes]:
        """Notes on the values of the rows that were encoded last, only for shredded Variants."""

    def encode(self, array: AnyArray) -> AnyArray:
        """Encode rows for storage. Raises with `row` counted from the array's start."""


def joined_notes(encoders: Iterable[ColumnEncoder]) -> Mapping[ColumnPath, ValueNotes]:
    """Return the notes of several columns."""
    return {path: notes for each in encoders for path, notes in each.notes.items()}


def check_not_null(array: AnyArray, field: StructField) -> None:
    """Raise InvalidValue for a null in a column that is NOT NULL."""
    if array.null_count and not field.nullable:
        row = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
        raise InvalidValue(f"column {field.name!r} is NOT NULL", row=row)


class PlainColumn:
    """A column without Variants."""

    variants: tuple[ColumnPath, ...] = ()
    notes: Mapping[ColumnPath, ValueNotes] = NO_NOTES

    def __init__(self, field: StructField, given: pa.DataType) -> None:
        self.name = field.physical_name
        self._field = field
        self._type = arrow_type(field.type)
        self._stored = physical_type(field.type)
        self._values = given
        self._most = most_characters(field)
        self._holds_void = any(type_ == VOID for type_ in types_in(field.type))

    def encode(self, array: AnyArray) -> AnyArray:
        """Cast if nothing is lost. Raises InvalidValue for text that is too long for the column."""
        check_not_null(array, self._field)
        if self._holds_void:
            # pyarrow's cast and view break slices of a struct with a VOID field.
            array = array.take(pa.array(range(len(array)), pa.int64()))
        try:
            found = exact_cast(array, self._type)
        except VariantLakeError as error:
            error.say_first(f"column {self._field.name!r} is {self._field.type}")
            raise
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            if pa.types.is_timestamp(self._type):
                check_micros(array, self._field.name)
            # The rest of the message advises to use functions of Arrow.
            said, advice, _ = str(error).partition(" If these timestamps are in local time")
            raise InvalidSchema(
                f"column {self._field.name!r} is {self._field.type}; {self._values} cannot be "
                f"stored in it: {said}",
                hint="a text names its zone: 2026-01-31T10:00:00Z" if advice else "",
            ) from error
        if self._most:
            found = within_length(found, self._most, self._field.name)
        return found if self._stored == self._type else found.view(self._stored)


class VariantColumn:
    """A VARIANT column given as Variants, as JSON text, or as Arrow data of any other type."""

    def __init__(
        self,
        field: StructField,
        given: pa.DataType,
        decide: Decide,
        *,
        from_json: bool,
        contract: Contract | None = None,
    ) -> None:
        self.name = field.physical_name
        self.variants: tuple[ColumnPath, ...] = ((self.name,),)
        self._field = field
        self._decide = decide
        self._contract = contract
        self._shredder: Shredder | None = None
        if from_json and given not in TEXTS:
            raise InvalidSchema(
                f"column {field.name!r} is given as {given}, expected JSON text (string or binary)"
            )
        self._check_struct(given)
        self._from_json = from_json or given in (pa.string(), pa.large_string())
        self._json_reader, self._variant_reader = JsonReader(), VariantReader()

    @property
    def notes(self) -> Mapping[ColumnPath, ValueNotes]:
        """See ColumnEncoder."""
        return {} if self._shredder is None else {self.variants[0]: self._shredder.notes}

    def encode(self, array: AnyArray) -> AnyArray:
        """Shred rows. If the schema depends on the first rows, these are the ones."""
        check_not_null(array, self._field)
        try:
            tape = self.read(array)
        except VariantLakeError as error:
            error.say_first(f"column {self._field.name!r}")
            raise
        if self._shredder is None:
            self._shredder = Shredder(self._decide(tape))
        return self._shredder.shred(tape)

    def bad_rows(self, array: AnyArray) -> list[int]:
        """Return the rows that are not a Variant or JSON, or break the contract, without NULLs."""
        tape = self.tape(array)
        return sorted([*_bad_rows(tape, array), *self._broken(tape)])

    def reasons(self, array: AnyArray, rows: Sequence[int]) -> Iterator[Reason]:
        """Yield the reason why each of these rows is bad, as `encode` would raise it."""
        broken = self._broken(self.tape(array.take(pa.array(rows, pa.int64()))))
        others = self._malformed(array, [row for n, row in enumerate(rows) if n not in broken])
        for place in range(len(rows)):
            if place in broken:
                yield f"column {self._field.name!r}: {broken[place]}", None, None
            else:
                yield next(others)

    def _broken(self, tape: Tape) -> dict[int, str]:
        """Return the rows that break the contract, with the reasons."""
        found = None if self._contract is None else self._contract.breaches(tape)
        if found is None:
            return {}
        return {row: found.breach(n).reason for n, row in enumerate(found.rows.tolist())}

    def _malformed(self, array: AnyArray, rows: Sequence[int]) -> Iterator[Reason]:
        about = f"column {self._field.name!r}"
        if not self._from_json:
            column = as_variants(array)
            for row in rows:
                yield f"{about}: {bad_variant(column, row).message}", None, None
            return
        text, starts, ends = _texts(array.take(pa.array(rows, pa.int64())))
        tape = self._json_reader.read(text, starts, ends)
        for message, line, character in bad_places(tape, starts, ends):
            yield f"{about}: {message}", line, character

    def _check_struct(self, given: pa.DataType) -> None:
        """Refuse types that are nearly a Variant: shredded, or with other binary types."""
        names = {each.name: each.type for each in given} if pa.types.is_struct(given) else {}
        parts = [names.get(name) for name in (layout.METADATA, layout.VALUE)]
        if pa.binary() in parts and not layout.is_variant_type(given):
            raise InvalidSchema(
                f"column {self._field.name!r} is a VARIANT; it is given as {given}, expected "
                "struct<metadata: binary, value: binary>",
                hint="a shredded Variant of a Parquet file: append the file by its path",
                cli_hint="",
            )

    def read(self, array: AnyArray) -> Tape:
        """Read the rows. Raises for the first that is neither good nor NULL."""
        tape = self.tape(array)
        bad = _bad_rows(tape, array)
        if not bad:
            self._check_contract(tape)
            return tape
        if self._from_json:
            raise _bad_json(array[bad[0]], bad[0])
        raise bad_variant(as_variants(array), bad[0])

    def _check_contract(self, tape: Tape) -> None:
        found = None if self._contract is None else self._contract.breaches(tape)
        if found is not None:
            first = found.breach(0)
            raise ContractBroken(first.reason, row=int(found.rows[0]))

    def tape(self, array: AnyArray) -> Tape:
        """Read the rows; bad ones and NULLs have a status."""
        if not self._from_json:
            return self._variant_reader.read(as_variants(array))
        return self._json_reader.read(*_texts(array))


def _texts(array: AnyArray) -> tuple[Bytes, Int64s, Int64s]:
    """Return a column of JSON text in the form for the reader."""
    # The bytes need not be UTF-8: the reader checks them.
    is_text = array.type in (pa.string(), pa.large_string(), pa.null())
    wide: Any = array.cast(pa.large_string() if is_text else pa.large_binary())
    text, offsets = slots_of(wide)
    # Take only these rows, and the padding that kernels may read after them.
    begin = int(offsets[0])
    text = text[begin : int(offsets[-1]) + PADDING]
    return text, offsets[:-1] - begin, offsets[1:] - begin


def _bad_rows(tape: Tape, array: AnyArray) -> list[int]:
    """Return the bad rows without NULLs, which have a status, too."""
    if not tape.status.any():
        return []
    valid = valid_of(array)
    found: list[int] = np.flatnonzero((tape.status != 0) & valid).tolist()
    return found


def _bad_json(scalar: Any, row: int) -> VariantLakeError:
    found = json_error(bytes(scalar.as_buffer()))  # need not be UTF-8, whatever Arrow says
    if found.hint == LAST_KEY_HINT:
        found.hint = ""
    found.row = row
    return found

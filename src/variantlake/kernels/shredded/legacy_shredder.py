"""Shred a tape into columns of the older layout. Twin: shredding.legacy.form."""

from __future__ import annotations

from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.kernels.shredded.shredder import Shredder
from variantlake.kernels.tape.arrow_arrays import AnyArray
from variantlake.kernels.tape.dictionary import own_dictionaries
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.variant.variant_reader import GOOD, VariantReader
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.shredding.legacy.form import join, to_legacy
from variantlake.shredding.schema import ShreddingSchema
from variantlake.shredding.values import ValueNotes


class LegacyShredder:
    """Shreds tapes by one schema into arrays of `legacy_type(schema)`. One thread at a time."""

    def __init__(self, schema: ShreddingSchema) -> None:
        self._schema = schema
        self._shredder = Shredder(schema)
        self._reader = VariantReader()

    @property
    def notes(self) -> ValueNotes:
        """As those of Shredder."""
        return self._shredder.notes

    def shred(self, tape: Tape) -> pa.StructArray:
        """The rows; a bad row is a null struct."""
        return to_legacy(self._shredder.shred(tape), self._schema, self._join)

    def _join(self, metadata: AnyArray, value: AnyArray) -> AnyArray:
        variants = pa.StructArray.from_arrays([metadata, value], fields=list(VARIANT_TYPE))
        tape = self._reader.read(variants)
        if (tape.status != GOOD).any():
            return join(metadata, value)
        parts = write_variant(tape, dictionary=own_dictionaries(tape)).flatten()
        joined = pc.binary_join_element_wise(*parts, b"")  # type: ignore[call-overload]
        return cast("AnyArray", joined)

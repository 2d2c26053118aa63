"""Remove documents that break a contract, and log them with the reasons."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variantlake.contracts.check import Breaches
from variantlake.contracts.contract import Contract
from variantlake.encoding.json_text import to_json
from variantlake.errors import ContractBroken
from variantlake.ingest.encode.bad_documents import Batch
from variantlake.ingest.sources.positions import PlaceCounter
from variantlake.ingest.sources.sources import Source
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.writing.options.row_policies import BadRows
from variantlake.writing.quarantine import BadRow, BadRowLog

Places = npt.NDArray[np.int64]


def unbroken_places(
    batch: Batch, found: Breaches, bad_rows: BadRowLog, counter: PlaceCounter
) -> tuple[Places, Places]:
    """Return the starts and ends of the documents to read again, without those that break it.

    In the mode "null", the latter have no bytes, and so become NULL. Raises ContractBroken in
    strict mode, with file, line and column.
    """
    for number, row in enumerate(found.rows.tolist()):
        offset = batch.block.offset + int(batch.starts[row])
        place = counter.place(batch.block, offset)
        error = ContractBroken(found.breach(number).reason, file=batch.block.source.label, **place)
        bad_rows.add(BadRow(error, offset, batch.text(row)))
    good = found.mask()
    if bad_rows.mode is BadRows.NULL:
        return batch.starts, np.where(good, batch.ends, batch.starts)
    return batch.starts[good], batch.ends[good]


def unbroken_records(tape: Tape, contract: Contract, source: Source, bad_rows: BadRowLog) -> Tape:
    """Remove the records that break the contract, for a source that is not JSON.

    Raises ContractBroken in strict mode, with the file.
    """
    found = contract.breaches(tape)
    if found is None:
        return tape
    records = write_variant(tape)
    for number, row in enumerate(found.rows.tolist()):
        record = records[row].as_py()
        error = ContractBroken(found.breach(number).reason, file=source.label)
        bad_rows.add(BadRow(error, text=to_json(record["metadata"], record["value"]).encode()))
    good = found.mask()
    if bad_rows.mode is BadRows.NULL:
        kept = records.take(pa.array(np.arange(tape.rows), pa.int64(), mask=~good))
    else:
        kept = records.filter(pa.array(good))
    return VariantReader().read(kept)

"""Check the rows of a table against a contract."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import numpy as np

from variantlake.contracts.check import Breach
from variantlake.contracts.contract import Contract
from variantlake.delta.log.snapshot import Snapshot
from variantlake.kernels.variant.arrow_variants import as_variants
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.progress import OnProgress, Progress
from variantlake.quoting import quote_identifier
from variantlake.scan.table_scan import Scan
from variantlake.shown import Shown
from variantlake.sql.select import QueryText

MAX_FINDINGS = 1_000
"""The most findings in a report; `broken` also counts the rows of further ones."""

_INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True, repr=False)
class ContractFinding(Shown):
    """Rows that break the same keyword of a contract at the same path.

    `path` has `[*]` for the elements of arrays, `says` is the keyword with its value. `value` is
    the shortened value in the first of the `rows`, and `file` is the data file of that row. A row
    counts only for the first keyword that it breaks.
    """

    path: str
    says: str
    rows: int
    value: str
    file: str


@dataclass(frozen=True, slots=True, repr=False)
class ContractReport(Shown):
    """The result of a contract check: `broken` of the `rows` documents break the contract."""

    rows: int
    broken: int
    findings: tuple[ContractFinding, ...] = field(repr=False)


def check_contract(
    snapshot: Snapshot, column: str, contract: Contract, progress: OnProgress | None = None
) -> ContractReport:
    """Check the documents of a VARIANT column, file by file; a NULL is no document.

    Raises as `Scan.to_batches`.
    """
    items = QueryText(snapshot.schema).items(quote_identifier(column))
    reader = VariantReader()
    rows = broken = 0
    found: dict[tuple[str, str], ContractFinding] = {}
    files = snapshot.files.num_rows
    for number in range(files):
        one = replace(snapshot, files=snapshot.files.take(np.array([number])))
        (file,) = (add.path for add in one.add_files())
        for batch in Scan(one, items).to_batches():
            tape = reader.read(as_variants(batch.column(0)))
            rows += int(np.count_nonzero(tape.status == 0))
            breaches = contract.breaches(tape)
            if breaches is not None:
                broken += len(breaches.rows)
                for place in range(len(breaches.rows)):
                    _count(found, breaches.breach(place), file)
            del tape, breaches
        if progress is not None:
            progress(Progress(number + 1, files, "files", "read"))
    most = sorted(found.values(), key=lambda each: -each.rows)
    return ContractReport(rows, broken, tuple(most))


def _count(found: dict[tuple[str, str], ContractFinding], breach: Breach, file: str) -> None:
    path = _INDEX.sub("[*]", breach.path)
    key = path, breach.says
    if key in found:
        found[key] = replace(found[key], rows=found[key].rows + 1)
    elif len(found) < MAX_FINDINGS:
        found[key] = ContractFinding(path, breach.says, 1, breach.value, file)

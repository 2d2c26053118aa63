"""What keeps a table in shape, interrupted at every moment around a storage call.

`python -m tests.maintenance.crashes` kills at all of them and prints the counts; see
`tests.delta.crashes`. Every older version reads as before, wherever it was interrupted.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pyarrow.parquet as pq

import variantlake as vl
from tests.delta.crashes import Operation, append, create, main, rows
from variantlake.errors import MissingSource, NotADeltaTable
from variantlake.maintenance import plan_compaction
from variantlake.parquet.write import copy_row_groups

ERASED = "event:a::bigint < 110"
OLD = "before.txt"
"""Beside the log: the digests of the versions before, which nothing here may change."""


def prepared(prepare: Callable[[Path], None]) -> Callable[[Path], None]:
    """What `prepare` makes, with a note of what each of its versions holds."""

    def made(root: Path) -> None:
        prepare(root)
        newest = vl.Table.open(root).version
        digests = [digest(root, version) for version in range(newest + 1)]
        (root / "_delta_log" / OLD).write_text("\n".join(digests))

    return made


def digest(root: Path, version: int) -> str:
    found = vl.Table.open(root, version).digest()
    return f"{found.hex} {found.rows}"


def check_older(root: Path, *, first: int = 0) -> None:
    """The versions from `first` on hold what they held."""
    known = (root / "_delta_log" / OLD).read_text().splitlines()
    for version, expected in enumerate(known):
        if version >= first:
            assert digest(root, version) == expected, version


def even(root: Path) -> None:
    """Small files of one partition, one with a deletion vector."""
    create(root)
    table = vl.Table.open(root)
    table.set_properties(
        {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    )
    for first in (0, 100, 200):
        append(root, *range(first, first + 60, 2))
    vl.Table.open(root).delete("event:a::bigint IN (102, 104)")


def even_whole(root: Path) -> None:
    create(root)
    for first in (0, 100, 200):
        append(root, *range(first, first + 60, 2))


def clustered(root: Path) -> None:
    even(root)
    vl.Table.open(root).set_clustering("event:a::bigint")
    append(root, *range(1, 240, 9)[1::2])


def vacuumed(root: Path) -> None:
    """Files that no version needs: of older ones, an orphan, a vector, in a folder of its own."""
    even(root)
    vl.Table.open(root).optimize()
    pq.write_table(rows(1), root / "orphan.parquet")
    (root / "day=7").mkdir()
    pq.write_table(rows(1), root / "day=7" / "orphan.parquet")
    long_ago = time.time() - 90 * 86_400
    for path in root.rglob("*.*"):
        if "_delta_log" not in path.parts:
            os.utime(path, (long_ago, long_ago))


def optimize(root: Path) -> None:
    vl.Table.open(root).optimize(max_deleted_share=0)


def copy(root: Path) -> None:
    with contextlib.ExitStack() as stack:
        for module in (plan_compaction, copy_row_groups):
            stack.enter_context(patch.object(module, "MIN_ROW_GROUP_BYTES", 100))
        done = vl.Table.open(root).optimize()
    assert not done.encoded.files


def cluster(root: Path) -> None:
    vl.Table.open(root).cluster(budget=1 << 30)


def vacuum(root: Path) -> None:
    vl.Table.open(root).vacuum(0, force=True)


def restore(root: Path) -> None:
    vl.Table.open(root).restore(3)


def drop(root: Path) -> None:
    table = vl.Table.open(root)
    if "variantShredding" in table.snapshot.features:
        table.drop_feature("variantShredding")


def nothing_left(work: Callable[[vl.Table], int]) -> Callable[[Path], None]:
    """Whether a plan made now has no files to change, and older versions are as they were."""

    def check(root: Path) -> None:
        assert work(vl.Table.open(root)) == 0
        check_older(root)

    return check


def check_vacuumed(root: Path) -> None:
    table = vl.Table.open(root)
    assert table.vacuum(0, force=True, dry_run=True).files_unneeded == 0
    assert not (root / "day=7").exists()
    newest = len((root / "_delta_log" / OLD).read_text().splitlines()) - 1
    check_older(root, first=newest)


def check_dropped(root: Path) -> None:
    table = vl.Table.open(root)
    assert "variantShredding" not in table.snapshot.features
    assert table.unshred(dry_run=True).files_read == 0
    check_older(root)


def check_erased(root: Path) -> None:
    assert vl.Table.open(root).erase(ERASED, dry_run=True).rows_hidden == 0
    check_older(root)


def check_purged(root: Path) -> None:
    table = vl.Table.open(root)
    live = {str(add.path) for add in table.snapshot.add_files()}
    assert {p.relative_to(root).as_posix() for p in root.rglob("*.parquet")} - live == {
        p.relative_to(root).as_posix() for p in (root / "_delta_log").rglob("*.parquet")
    }
    with contextlib.suppress(MissingSource, NotADeltaTable):
        vl.Table.open(root, 1)
        msg = "version 1 can still be read"
        raise AssertionError(msg)


def steps(
    prepare: Callable[[Path], None],
    operate: Callable[[Path], object],
    check_done: Callable[[Path], object],
) -> Operation:
    return Operation(prepared(prepare), operate, in_steps=True, check_done=check_done)


OPERATIONS = {
    "optimize with vectors": steps(
        even,
        optimize,
        nothing_left(lambda t: t.optimize(max_deleted_share=0, dry_run=True).files_read),
    ),
    "optimize by copying row groups": steps(even_whole, copy, check_older),
    "cluster": steps(
        clustered,
        cluster,
        nothing_left(lambda t: t.cluster(dry_run=True, budget=1 << 30).files_read),
    ),
    "reshred": steps(
        even,
        lambda root: vl.Table.open(root).reshred("s STRING"),
        nothing_left(lambda t: t.reshred("s STRING", dry_run=True).files_read),
    ),
    "unshred": steps(
        even,
        lambda root: vl.Table.open(root).unshred(),
        nothing_left(lambda t: t.unshred(dry_run=True).files_read),
    ),
    "drop the feature": steps(even, drop, check_dropped),
    "restore": steps(even, restore, check_older),
    "vacuum": steps(vacuumed, vacuum, check_vacuumed),
    "erase": steps(
        even, lambda root: vl.Table.open(root).erase("event:a::bigint < 110"), check_erased
    ),
    "erase and purge": steps(
        even,
        lambda root: vl.Table.open(root).erase("event:a::bigint < 110", purge=True),
        check_purged,
    ),
}

if __name__ == "__main__":
    main(OPERATIONS)

"""The files of a snapshot as planning takes them: piece by piece, and from version to version."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np

import variantlake as vl
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.stats.columns import files_part
from variantlake.expressions.tree import Compare, Literal, Ref
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.paths import Path as VariantPath
from variantlake.planning.log_files import LogFiles
from variantlake.planning.stats.skipping import Skipper

NUMBER = Ref(("event",), VariantPath.of("n"), "bigint")
PLACE = Ref(("event",), VariantPath.of("place"), "string")


def _table(root: Path, appends: int) -> vl.Table:
    table = vl.Table.create(root, "event VARIANT", shredding={"event": "n BIGINT, place STRING"})
    for number in range(appends):
        table.append([{"n": number, "place": f"p{number}"}])
    return table


def _skipped(files: LogFiles, ref: Ref, value: int | str) -> Int64s:
    return Skipper(Compare("=", ref, Literal(value, ref.type))).skipped_by(files)


def test_a_newer_version_knows_what_was_derived_of_the_pieces_that_it_shares(
    tmp_path: Path,
) -> None:
    table = _table(tmp_path, 3)
    table.checkpoint()
    snapshot = Snapshot.read(tmp_path)
    older = LogFiles(snapshot)
    assert _skipped(older, NUMBER, 1).tolist() == [0, -1, 0]
    table.append([{"n": 1, "place": "p"}])
    newer = LogFiles(snapshot.refresh(), older)
    first, _ = newer.pieces
    assert first.memo is older.memo
    read = files_part.FilesPart.once
    with patch.object(files_part.FilesPart, "once", autospec=True, side_effect=read) as asked:
        assert _skipped(newer, NUMBER, 1).tolist() == [0, -1, 0, -1]
    assert {call.args[0].rows for call in asked.call_args_list} == {1}


def test_a_removed_file_is_planned_no_longer(tmp_path: Path) -> None:
    table = _table(tmp_path, 3)
    table.checkpoint()
    snapshot = Snapshot.read(tmp_path)
    older = LogFiles(snapshot)
    assert _skipped(older, NUMBER, 1).tolist() == [0, -1, 0]
    table.delete("event:n::bigint = 0")
    newer = LogFiles(snapshot.refresh(), older)
    assert _skipped(newer, NUMBER, 1).tolist() == [-1, 0]


def test_columns_that_are_decoded_again_are_the_same(tmp_path: Path) -> None:
    _table(tmp_path, 4).checkpoint()
    with patch.object(files_part, "_RECENT_ROWS", 1):
        files = LogFiles(Snapshot.read(tmp_path))
        for _ in range(2):
            for number in range(4):
                wanted = np.arange(4) == number
                assert ((_skipped(files, NUMBER, number) == -1) == wanted).all()
                assert ((_skipped(files, PLACE, f"p{number}") == -1) == wanted).all()
                files.memo.clear()

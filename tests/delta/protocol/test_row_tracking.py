"""Row ids of files that are added."""

from __future__ import annotations

import pytest

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.protocol.row_tracking import with_row_ids
from variantlake.errors import InvalidValue


def test_a_file_gets_the_ids_behind_those_before_it() -> None:
    adds = [AddFile(name, 1, 1, stats='{"numRecords":10}') for name in "ab"]
    found, mark = with_row_ids([adds[0], AddFile("old", 1, 1, base_row_id=3), adds[1]], 7, 4)
    assert [add.base_row_id for add in found] == [5, 3, 15]
    assert mark is not None
    assert mark.configuration == '{"rowIdHighWaterMark":24}'


@pytest.mark.parametrize("stats", [None, "{}", "[]", '{"numRecords":-1}', '{"numRecords":1.5}'])
def test_a_file_that_does_not_count_its_rows_gets_none(stats: str | None) -> None:
    with pytest.raises(InvalidValue, match="'a' has no numRecords"):
        with_row_ids([AddFile("a", 1, 1, stats=stats)], 1, 0)

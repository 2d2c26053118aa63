"""Places of rows as columns that the table does not have."""

from __future__ import annotations

from pathlib import Path

import variantlake as vl
from variantlake.expressions.tree import Ref
from variantlake.spark.dml.row_places import FILE, ROW, placed
from variantlake.spark.scan.tables import Tables


def test_conditions_may_name_the_places(tmp_path: Path) -> None:
    vl.Table.create(tmp_path / "t", "id BIGINT, code CHAR(3)")
    table = placed(Tables().open(str(tmp_path / "t")))
    for name in (FILE, ROW):
        ref = Ref((name,), None, "bigint")
        assert table.stored_ref(ref) == ref
    assert table.stored_ref(Ref(("code",), None, "string")).char_length == 3

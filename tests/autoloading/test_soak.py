"""A short soak; `make test-soak` runs for as long as asked."""

from __future__ import annotations

from pathlib import Path

from tests.autoloading.soak import soak


def test_loaders_a_compaction_and_kills_leave_each_document_once(tmp_path: Path) -> None:
    assert "each in the table once" in soak(3, 7, tmp_path)

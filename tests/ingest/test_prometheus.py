"""Figures as Prometheus' collector reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.exposition import samples
from variantlake.errors import StoreFailed
from variantlake.ingest.prometheus import head, sample, write_whole

# A file of text has its own line ends; other control characters are as they are.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=20)


@given(TEXTS, TEXTS, st.floats(0, 1e18))
def test_labels_and_values_come_back(first: str, second: str, value: float) -> None:
    lines = [
        *head("x_total", "counter", "Things."),
        sample("x_total", {"a": first, "b": second}, value),
    ]
    labels = frozenset({("a", first), ("b", second)})
    assert samples("\n".join(lines) + "\n") == {("x_total", labels): pytest.approx(value)}


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "x.prom"
    for text in ("one\n", "name \udcff that is no UTF-8\n"):
        write_whole(file, text)
    assert file.read_text() == "name \\udcff that is no UTF-8\n"
    assert [each.name for each in tmp_path.iterdir()] == ["x.prom"]
    with pytest.raises(StoreFailed, match="metrics cannot be written"):
        write_whole(tmp_path / "none" / "x.prom", "")

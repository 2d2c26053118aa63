"""The one form of progress: every public `progress=` takes the same callable."""

from __future__ import annotations

import inspect

import pytest

import variantlake as vl
from variantlake.spark.lake.lake import Lake

PLACES = (vl, vl.parquet, vl.Table, Lake)


def parameters() -> list[tuple[str, str]]:
    found = []
    for place in PLACES:
        for name in dir(place):
            value = getattr(place, name, None)
            if name.startswith("_") or not inspect.isroutine(value):
                continue
            each = inspect.signature(value).parameters.get("progress")
            if each is not None:
                found.append((f"{place.__name__}.{name}", str(each.annotation)))
    return found


def test_every_progress_has_one_form() -> None:
    found = parameters()
    assert len(found) > 20
    assert {form for _, form in found} == {"OnProgress | None"}


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (vl.Progress(2, 5, "files", "copied"), "2 of 5 files copied"),
        (vl.Progress(1_200, None, "rows", "read"), "1,200 rows read"),
    ],
)
def test_words(progress: vl.Progress, words: str) -> None:
    assert str(progress) == words

"""The keywords of `ArrowStream.export`, in a module that imports little."""

from __future__ import annotations

from typing import TypedDict

from variantlake.progress import OnProgress
from variantlake.shredding.schema import ShreddingSchema


class ExportKeywords(TypedDict, total=False):
    """The keywords of `ArrowStream.export`."""

    overwrite: bool
    dry_run: bool
    shredding: str | ShreddingSchema | None
    progress: OnProgress | None

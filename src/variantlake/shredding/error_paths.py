"""The path of an error, put together while it unwinds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from variantlake.errors import VariantLakeError
from variantlake.paths import Path


@contextmanager
def below(step: str | int) -> Iterator[None]:
    """Puts a step in front of the path of an error that passes."""
    try:
        yield
    except VariantLakeError as error:
        error.path = Path.of(step).normalized() + error.path.removeprefix("$")
        raise

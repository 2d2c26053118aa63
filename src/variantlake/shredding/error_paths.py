"""Build the path of an error while it propagates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from variantlake.errors import VariantLakeError
from variantlake.paths import Path


@contextmanager
def below(step: str | int) -> Iterator[None]:
    """Prepend a step to the path of an error that is raised inside."""
    try:
        yield
    except VariantLakeError as error:
        error.path = Path.of(step).normalized() + error.path.removeprefix("$")
        raise

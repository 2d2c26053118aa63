"""A Spark of the command's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import variantlake as vl
from variantlake.errors import MissingDependency, UnsupportedFeature, VariantLakeError


@contextmanager
def spark_session(*, without: str, refusal: VariantLakeError | None = None) -> Iterator[Any]:
    """A local session, stopped at the end; `without` says what can be done if there is none.

    Where PySpark or Java is missing, it raises `refusal`, for which Spark would have been asked;
    without one MissingDependency.
    """
    with ExitStack() as stack:
        try:
            session = stack.enter_context(vl.spark.local_session())
        except MissingDependency as error:
            if refusal is None:
                error.cli_hint = f"{error.hint}; {without}"
                raise
            if isinstance(refusal, UnsupportedFeature):
                refusal.cli_hint = f"Spark may run it: {error.hint}"
            raise refusal from None
        yield session

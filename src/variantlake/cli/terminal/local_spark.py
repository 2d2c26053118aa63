"""A Spark of the command's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import variantlake as vl
from variantlake.errors import MissingDependency


@contextmanager
def spark_session(*, without: str) -> Iterator[Any]:
    """A local session, stopped at the end; `without` says what can be done where there is none.

    Raises MissingDependency where PySpark or Java is missing.
    """
    with ExitStack() as stack:
        try:
            session = stack.enter_context(vl.spark.local_session())
        except MissingDependency as error:
            error.cli_hint = f"{error.hint}; {without}"
            raise
        yield session

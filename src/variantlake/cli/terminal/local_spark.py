"""A Spark of the command's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import variantlake as vl
from variantlake.cli.terminal.options import Engine
from variantlake.cli.terminal.output import print_note
from variantlake.errors import MissingDependency, UnsupportedFeature, VariantLakeError

T = TypeVar("T")


def load_by(engine: Engine, here: Callable[[], T], by_spark: Callable[[Any], T]) -> T:
    """As `run_by`, for what this process does as well as Spark: no error starts one."""
    return run_by(Engine.LOCAL if engine is Engine.AUTO else engine, here, by_spark)


def run_by(engine: Engine, here: Callable[[], T], by_spark: Callable[[Any], T]) -> T:
    """What `here` gives, or a local Spark if that is asked for.

    Left to choose, also if `here` raises UnsupportedFeature. Raises as both, and MissingDependency.
    """
    refusal = None
    if engine is not Engine.SPARK:
        try:
            return here()
        except UnsupportedFeature as error:
            if engine is Engine.LOCAL:
                raise
            refusal = error
    with spark_session(refusal) as session:
        return by_spark(session)


@contextmanager
def spark_session(refusal: VariantLakeError | None = None, *, instead: str = "") -> Iterator[Any]:
    """A local session, stopped at the end; `refusal` is why it is needed, which a note says.

    `instead` is what runs it without Spark. If PySpark or Java is missing, it raises `refusal`;
    without one MissingDependency.
    """
    with ExitStack() as stack:
        try:
            session = stack.enter_context(vl.spark.local_session())
        except MissingDependency as error:
            if refusal is None:
                error.cli_hint = f"{error.hint}; --engine local runs without it"
                raise
            if isinstance(refusal, UnsupportedFeature):
                others = f"{instead}; " if instead else ""
                refusal.cli_hint = f"{others}Spark may run it: {error.hint}"
            raise refusal from None
        if refusal is not None:
            print_note(f"Spark was started: {refusal.sentence()}")
        yield session
